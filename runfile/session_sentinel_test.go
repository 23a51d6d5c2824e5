package runfile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/record"
)

// A session alone, in a program without bundles, gives all ranks the error that one of
// them met in a package that knows nothing of ranks.
func TestRanksOfASessionTellErrorsApart(t *testing.T) {
	for _, want := range []error{device.ErrLost, field.ErrFreed, vfs.ErrLocked, h5.ErrFormat, record.ErrType, errors.ErrUnsupported, ErrNoHDF5, ErrHash} {
		t.Run(want.Error(), func(t *testing.T) {
			m := newMemory()
			if err := comm.Run(2, func(c *comm.Comm) error {
				s, err := open(t.Context(), c, decayConfig(), m, newClock().now)
				if err != nil {
					return err
				}
				s.SetUpdate("mean", []float64{1, 0})
				s.Attempt(Attempt{Time: 0.1, Accepted: false})
				if err := s.SaveState(t.Context(), s.Start().State); err != nil {
					return err
				}
				for i := range 3 {
					s.Attempt(Attempt{Time: 0.01 * float64(i+1), Accepted: true})
				}
				_, err = s.Checkpoint(t.Context(), s.Start().State, func() (record.Record, error) {
					if c.Rank() == 1 {
						return record.Record{}, fmt.Errorf("copy from the device: %w", want)
					}
					return record.Record{}, nil
				})
				if !errors.Is(err, want) {
					return fmt.Errorf("rank %d got %v, which is not %q", c.Rank(), err, want)
				}
				return s.Close(t.Context())
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
