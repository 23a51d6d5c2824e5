//go:build mpi

package comm_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
)

// A program that was built without the tag, under the launcher of the MPI that
// this test is linked to.
func TestBuiltWithoutTag(t *testing.T) {
	program := filepath.Join(t.TempDir(), "alone")
	build := exec.Command("go", "build", "-o", program, "./testdata/alone")
	build.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	name, _, _ := strings.Cut(mpi.Implementation(), " ")
	for ranks, refused := range map[string]bool{"1": false, "2": true} {
		cmd := exec.Command("mpirun."+name, "-n", ranks, program)
		cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		output, err := cmd.CombinedOutput()
		if said := bytes.Contains(output, []byte(comm.ErrNoMPI.Error())); (err != nil) != refused || said != refused {
			t.Errorf("%s ranks: %v:\n%s", ranks, err, output)
		}
	}
}
