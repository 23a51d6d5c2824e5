package runfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// scalarConfig is a run of two scalars and a radial unknown, with a checkpoint after each
// step.
func scalarConfig(log *bytes.Buffer) Config {
	cfg := decayConfig()
	cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, Unknown{Name: "mask", Kind: Scalar})
	cfg.Initial, cfg.Updates = []float64{1, 2, 3, 4}, nil
	cfg.SaveTimes = []float64{}
	cfg.Checkpoint = CheckpointConfig{Steps: 1}
	if log != nil {
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	return cfg
}

// checkpoints lets ranks step to the next time points with the given states.
func checkpoints(ctx context.Context, s *Session, states ...[]float64) error {
	for _, state := range states {
		s.Attempt(Attempt{Time: s.NextTime(), StepLength: 0.25, Accepted: true})
		if s.c.Rank() > 0 {
			state = nil
		}
		if _, err := s.Checkpoint(ctx, state, nil); err != nil {
			return err
		}
	}
	return nil
}

var (
	nan   = math.NaN()
	sound = []float64{1, 2, 3, 4}
	blown = []float64{nan, math.Inf(1), nan, 4}
)

func TestTheCheckpointThatIsFiniteOutlivesThoseThatAreNot(t *testing.T) {
	m := newMemory()
	var log bytes.Buffer
	err := comm.Run(2, func(c *comm.Comm) error {
		own := &log
		if c.Rank() > 0 {
			own = nil
		}
		s, err := open(t.Context(), c, scalarConfig(own), m, newClock().now)
		if err != nil {
			return err
		}
		err = checkpoints(t.Context(), s, sound, blown, blown, blown)
		return errors.Join(err, s.Close(t.Context()))
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.prev.Time != 0.25 || m.last.Time != 1 {
		t.Errorf("checkpoints are at %v and %v", m.prev.Time, m.last.Time)
	}
	if want := map[string]int64{"n": 1, "T": 2}; !maps.Equal(m.last.NonFinite, want) || m.prev.NonFinite == nil || len(m.prev.NonFinite) > 0 {
		t.Errorf("counts are %v and %v", m.last.NonFinite, m.prev.NonFinite)
	}
	if n := strings.Count(log.String(), "not finite"); n != 1 || !strings.Contains(log.String(), `1 number of unknown \"n\", 2 numbers of unknown \"T\"`) {
		t.Errorf("want one warning:\n%s", log.String())
	}

	// The next job goes on from the finite one.
	log.Reset()
	cfg := scalarConfig(&log)
	cfg.Resume, cfg.TimePoints = true, append(cfg.TimePoints, 1.25)
	s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if start := s.Start(); start.Time != 0.25 || start.State[0] != 1 || start.Segment != 2 {
		t.Errorf("the start is %+v", start)
	}
	if !strings.Contains(log.String(), "passed over for the one before, since it is not finite") {
		t.Errorf("no warning:\n%s", log.String())
	}
	if err := checkpoints(t.Context(), s, sound); err != nil {
		t.Fatal(err)
	}
	if m.last.Time != 0.5 || m.prev.Time != 0.25 {
		t.Errorf("checkpoints are at %v and %v", m.prev.Time, m.last.Time)
	}
}

// Each of the states of three checkpoints is finite or not.
func TestWhichCheckpointsStay(t *testing.T) {
	for _, c := range []struct {
		states     [3][]float64
		policy     NonFinitePolicy
		prev, last float64
		start      float64 // of the next job
	}{
		{[3][]float64{sound, sound, sound}, "", 0.5, 0.75, 0.75},
		{[3][]float64{sound, sound, blown}, "", 0.5, 0.75, 0.5},
		{[3][]float64{sound, blown, blown}, "", 0.25, 0.75, 0.25},
		{[3][]float64{sound, blown, sound}, "", 0.25, 0.75, 0.75},
		{[3][]float64{blown, blown, blown}, "", 0.5, 0.75, 0.75},
		{[3][]float64{blown, sound, blown}, "", 0.5, 0.75, 0.5},
		{[3][]float64{sound, blown, blown}, IgnoreNonFinite, 0.5, 0.75, 0.75},
	} {
		m := newMemory()
		cfg := scalarConfig(nil)
		cfg.Checkpoint.NonFinite = c.policy
		s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
		if err == nil {
			err = errors.Join(checkpoints(t.Context(), s, c.states[:]...), s.Close(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.prev.Time != c.prev || m.last.Time != c.last {
			t.Errorf("%v: checkpoints are at %v and %v, want %v and %v", c.states, m.prev.Time, m.last.Time, c.prev, c.last)
		}
		cfg.Resume = true
		if s, err = open(t.Context(), comm.Self(), cfg, m, newClock().now); err != nil {
			t.Fatal(err)
		}
		if got := s.Start().Time; got != c.start {
			t.Errorf("%v: the next job begins at %v, want %v", c.states, got, c.start)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusedNumbersOfAState(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		m := newMemory()
		errs := make([]error, ranks)
		err := comm.Run(ranks, func(c *comm.Comm) error {
			cfg := scalarConfig(nil)
			cfg.Checkpoint.NonFinite = WarnNonFinite
			cfg.Checkpoint.NonFiniteUnknowns = map[string]NonFinitePolicy{"T": RefuseNonFinite, "mask": IgnoreNonFinite}
			s, err := open(t.Context(), c, cfg, m, newClock().now)
			if err != nil {
				return err
			}
			err = checkpoints(t.Context(), s, []float64{nan, 2, 3, nan})
			if err := c.Agree(t.Context(), err); err != nil {
				return err
			}
			before := len(m.trace)
			errs[c.Rank()] = checkpoints(t.Context(), s, blown)
			if err := c.Meet(t.Context()); err != nil {
				return err
			}
			if len(m.trace) != before {
				return fmt.Errorf("written is %q", m.trace)
			}
			// The session is as it was: a state that is finite is taken.
			state := sound
			if c.Rank() > 0 {
				state = nil
			}
			out, err := s.Checkpoint(t.Context(), state, nil)
			if err == nil && !out.Written {
				err = errors.New("no checkpoint")
			}
			return errors.Join(err, s.Close(t.Context()))
		})
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range errs {
			const want = `checkpoint of run run: rank 0: NaN or infinite numbers are refused: 2 numbers of unknown "T"`
			if !errors.Is(err, ErrNonFinite) || err.Error() != want {
				t.Errorf("rank %d: %v, want %s", r, err, want)
			}
		}
	}
}

func TestPoliciesOfARunThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*CheckpointConfig){
		`Checkpoint.NonFinite: "maybe": want "warn", "refuse" or "ignore"`: func(k *CheckpointConfig) { k.NonFinite = "maybe" },
		`Checkpoint.NonFiniteUnknowns: unknown "n": ""`: func(k *CheckpointConfig) {
			k.NonFiniteUnknowns = map[string]NonFinitePolicy{"n": ""}
		},
		`Checkpoint.NonFiniteUnknowns: unknown "m" is not one of ["n" "T" "mask"]`: func(k *CheckpointConfig) {
			k.NonFiniteUnknowns = map[string]NonFinitePolicy{"m": IgnoreNonFinite}
		},
		"Checkpoint.Off excludes": func(k *CheckpointConfig) { *k = CheckpointConfig{Off: true, NonFinite: WarnNonFinite} },
	} {
		cfg := scalarConfig(nil)
		change(&cfg.Checkpoint)
		if _, err := open(t.Context(), comm.Self(), cfg, newMemory(), newClock().now); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := newMemory()
	err := comm.Run(2, func(c *comm.Comm) error {
		cfg := scalarConfig(nil)
		if c.Rank() == 1 {
			cfg.Checkpoint.NonFinite = RefuseNonFinite
		}
		_, err := open(t.Context(), c, cfg, m, newClock().now)
		return err
	})
	if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "the policy for numbers that aren't finite") {
		t.Error(err)
	}
}
