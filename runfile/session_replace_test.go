package runfile

import (
	"errors"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// All ranks of a run that overwrites close its segment, whether or not it has made a step.
func TestRanksOverwriteTogether(t *testing.T) {
	m := twoSegments(t)
	delete(m.files, 2)
	err := comm.Run(3, func(c *comm.Comm) error {
		cfg := decayConfig()
		cfg.Overwrite = true
		s, err := open(t.Context(), c, cfg, m, newClock().now)
		if err != nil {
			return err
		}
		return errors.Join(c.Meet(t.Context()), s.Close(t.Context()))
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.last != nil || m.prev != nil || len(m.files[1].Times) != 0 {
		t.Errorf("there are the checkpoints %v and %v, and states at %v", m.last, m.prev, m.files[1].Times)
	}
	if got := m.trace[len(m.trace)-4:]; !slices.Equal(got, []string{"segment 1", "aside last", "aside prev", "segment 1"}) {
		t.Errorf("written are %q", got)
	}
}
