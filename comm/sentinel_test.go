package comm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/sentinel"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/record"
)

// What fields, devices, files and records fail with is the same error on all ranks, in a
// program that has none of the packages that write files.
func TestErrorsOfOtherPackagesTravelByThemselves(t *testing.T) {
	if len(sentinel.Errors([]string{"publish.ErrExists", "brick.ErrSize"})) > 0 {
		t.Fatal("this program has packages that it must not have")
	}
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		for _, want := range []error{
			device.ErrLost, device.ErrOutOfMemory, device.ErrDriver, device.ErrNotFound, device.ErrUnavailable,
			field.ErrFreed, vfs.ErrLocked, vfs.ErrNoLocks, vfs.ErrTooLarge, record.ErrMissing, record.ErrType,
			errors.ErrUnsupported, comm.ErrDead, comm.ErrFreed, comm.ErrNoMPI,
		} {
			var own error
			if c.Rank() == c.Size()-1 {
				own = fmt.Errorf("field %q: %w", "psi", &device.Error{Space: "cuda:0", Op: "copy", Err: want})
			}
			err := c.Agree(context.Background(), own)
			if !errors.Is(err, want) {
				t.Errorf("agreed on %v, which is not %q", err, want)
			}
			if want != device.ErrLost && errors.Is(err, device.ErrLost) {
				t.Errorf("agreed on %v, which is said to be %q", err, device.ErrLost)
			}
		}
	})
}
