//go:build mpi

package comm_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func init() {
	mpitest.Register("hang in an open", func(c *comm.Comm, args []string) error {
		handle, _ := c.Fortran()
		limited, err := comm.FromFortran(handle, comm.HangLimit(300*time.Millisecond))
		if err != nil {
			return err
		}
		part, err := limited.Split(0, 0) // which has the limit too
		if err != nil {
			return err
		}
		_, err = part.Handle().OpenFile(args[0], false, nil)
		return fmt.Errorf("the call has returned: %w", err)
	})
}

// A call on a file that hangs ends the job, if that is asked for, and says where.
func TestACallThatHangsEndsTheJob(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo") // that nobody writes keeps an open waiting
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	output, exit := mpitest.Command(t, 2, "hang in an open", fifo)
	if exit == 0 || !strings.Contains(output, "MPI_File_open "+fifo+" has not returned for 300ms: ending the job") {
		t.Errorf("exit status %d:\n%s", exit, output)
	}
	if err := comm.Run(1, nil, comm.HangLimit(0)); err == nil || !strings.Contains(err.Error(), "hang limit: 0s is not positive") {
		t.Errorf("a limit of 0: %v", err)
	}
}
