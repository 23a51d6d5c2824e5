package runfile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// stuckLock is a store whose lock can't be given up.
type stuckLock struct{ *memory }

var errStuck = errors.New("the lock is stuck")

func (s stuckLock) lock() (func() error, error) {
	release, err := s.memory.lock()
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(release(), errStuck) }, nil
}

// Whatever goes wrong on rank 0 alone, beside what all ranks know, Open and Close return one
// text on all ranks.
func TestOpenAndCloseReturnOneText(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name string
		fail func(m *memory)
		want []string // in the error
		open bool     // Open fails
	}{
		{"the lock", func(*memory) {}, []string{"close run", errStuck.Error()}, false},
		{"the segment", func(m *memory) { m.fail = func(int, bool) error { return boom } }, []string{"close run", "boom"}, false},
		{"the checkpoint", func(m *memory) { m.unreadable = boom }, []string{"open run", "boom"}, true},
	} {
		m := newMemory()
		var errs [3]error
		if err := comm.Run(3, func(c *comm.Comm) error {
			var own store = m
			if c.Rank() == 0 {
				tc.fail(m)
				own = stuckLock{m}
			}
			cfg := decayConfig()
			cfg.Resume = true
			s, err := open(context.Background(), c, cfg, own, newClock().now)
			if err == nil {
				s.SetUpdate("mean", []float64{0, 0})
				var state []float64
				if c.Rank() == 0 {
					state = []float64{1, 0, 2}
				}
				if err := s.SaveState(context.Background(), state); err != nil {
					return err
				}
				err = s.Close(context.Background())
			} else if !tc.open {
				return err
			}
			errs[c.Rank()] = err
			return nil
		}); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		for _, err := range errs {
			if fmt.Sprint(err) != fmt.Sprint(errs[0]) {
				t.Errorf("%s: rank 0 has %v, another %v", tc.name, errs[0], err)
			}
			for _, text := range tc.want {
				if !strings.Contains(fmt.Sprint(err), text) {
					t.Errorf("%s: %v doesn't say %q", tc.name, err, text)
				}
			}
		}
	}
}
