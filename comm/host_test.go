//go:build mpi

package comm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
)

// launch runs a program that is no test binary under the launcher of the MPI
// that this test is linked to.
func launch(ranks, program string) (string, error) {
	name, _, _ := strings.Cut(mpi.Implementation(), " ")
	args := []string{"-n", ranks, program}
	if name == "openmpi" {
		args = append([]string{"--oversubscribe", "--bind-to", "none"}, args...)
	}
	cmd := exec.Command("mpirun."+name, args...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func build(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v:\n%s", args, err, output)
	}
}

// A program that was built without the tag takes itself for the whole only where
// it is.
func TestBuiltWithoutTag(t *testing.T) {
	program := filepath.Join(t.TempDir(), "alone")
	build(t, []string{"GOFLAGS=", "CGO_ENABLED=0"}, "go", "build", "-o", program, "./testdata/alone")
	for ranks, refused := range map[string]bool{"1": false, "2": true} {
		output, err := launch(ranks, program)
		if said := strings.Contains(output, comm.ErrNoMPI.Error()); (err != nil) != refused || said != refused {
			t.Errorf("%s ranks: %v:\n%s", ranks, err, output)
		}
	}
}

// A program in C that owns MPI, with the least thread level, hands over its
// communicators by their Fortran handles.
func TestHostProgramInC(t *testing.T) {
	dir := t.TempDir()
	archive, program := filepath.Join(dir, "host.a"), filepath.Join(dir, "host")
	build(t, nil, "go", "build", "-buildmode=c-archive", "-o", archive, "./testdata/host")
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "ompi").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-o", program, "testdata/hostmain/main.c", archive}, strings.Fields(string(flags))...)
	build(t, nil, "gcc", append(args, "-lpthread")...)
	output, err := launch("3", program)
	if err != nil || strings.Count(output, "sum of ranks 3\n") != 3 {
		t.Errorf("%v:\n%s", err, output)
	}
}
