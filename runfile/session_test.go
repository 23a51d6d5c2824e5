package runfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

func TestUninterruptedRun(t *testing.T) {
	m := newMemory()
	out, err := runSegment(t.Context(), comm.Self(), decayConfig(), m)
	if err != nil || !out.Done || !out.Written || out.Stop {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	s := m.files[1]
	if want := []float64{0, 0.5, 1}; !slices.Equal(s.Times, want) {
		t.Errorf("saved times are %v, want %v", s.Times, want)
	}
	accepted, rejected := 0, 0
	for _, ok := range s.Statistics.Accepted {
		if ok {
			accepted++
		} else {
			rejected++
		}
	}
	if accepted < 20 || rejected < 3 {
		t.Fatalf("%d steps accepted and %d rejected: the solver is too simple for these tests", accepted, rejected)
	}
	if k := m.last; k.Time != 1 || k.SavedCount != 3 || k.Summary.Attempted != int64(accepted+rejected) || k.Summary.Accepted != int64(accepted) {
		t.Errorf("checkpoint at %v s with %d saved states, %+v", k.Time, k.SavedCount, k.Summary)
	}
	for i := 0; i+1 < len(m.trace); i += 2 {
		if m.trace[i] != "segment 1" || m.trace[i+1] != "checkpoint 1" {
			t.Fatalf("writes are %q", m.trace)
		}
	}
	if n := len(m.trace); n != 2*((accepted+2)/3)+1 || m.trace[n-1] != "segment 1" {
		t.Errorf("%d writes for %d steps: %q", n, accepted, m.trace)
	}
	want := map[string]any{
		"index": int64(1), "start_time": 0.0, "saved_before": int64(0), "resumed": false, "status": "completed",
		"end_time": 1.0, "steps": int64(accepted), "checkpoint_written": true, "attempts_before": int64(0), "deterministic": true,
	}
	segment, err := s.Settings.Record("segment")
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range segment.All() {
		if value.Any() != want[key] {
			t.Errorf("segment/%s is %v, want %v", key, value, want[key])
		}
	}
	if segment.Len() != len(want) {
		t.Errorf("the record of the segment is\n%v", segment)
	}
}

// However a run is cut into segments, it is the same run.
func TestResumedRunRepeatsTheUninterruptedOne(t *testing.T) {
	want := uninterrupted(t)
	for steps := int64(1); steps < 30; steps += 3 {
		t.Run(fmt.Sprintf("%d steps a segment", steps), func(t *testing.T) {
			m := newMemory()
			cfg := decayConfig()
			cfg.Resume = true
			cfg.Stop.Steps = steps
			for n := 1; ; n++ {
				out, err := runSegment(t.Context(), comm.Self(), cfg, m)
				if err != nil {
					t.Fatal(err)
				}
				if out.Done {
					break
				}
				if !out.Stop || out.Reason != fmt.Sprintf("limit of %d steps", steps) || n > 1000 {
					t.Fatalf("segment %d ended with %+v", n, out)
				}
			}
			if len(m.files) < 2 {
				t.Fatalf("%d segments", len(m.files))
			}
			sameOutput(t, m.joined(t), want)
		})
	}
}

var errKilled = errors.New("killed")

func init() { comm.Register("runfile.errKilled", errKilled) }

// A job may die before and after each write. The next one goes on, and the whole is
// the same run; no state is lost that a checkpoint names.
func TestKilledRunGoesOn(t *testing.T) {
	want := uninterrupted(t)
	for _, closed := range []bool{false, true} { // a failed write, after which the session is closed
		for write := 0; ; write++ {
			for _, after := range []bool{false, true} {
				m := newMemory()
				cfg := decayConfig()
				cfg.Resume = true
				hit := false
				m.fail = func(n int, a bool) error {
					if n == write && a == after {
						hit = true
						return errKilled
					}
					return nil
				}
				s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
				if err != nil {
					t.Fatal(err)
				}
				_, err = advance(t.Context(), s)
				if err == nil {
					err = s.Close(t.Context())
				}
				if !hit {
					if write < 10 {
						t.Fatalf("the run has %d writes only", write)
					}
					return
				}
				if !errors.Is(err, errKilled) {
					t.Fatalf("write %d: %v", write, err)
				}
				if closed {
					if err := s.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				m.crash()
				if out, err := runSegment(t.Context(), comm.Self(), cfg, m); err != nil {
					t.Fatalf("after a kill at write %d: %v (%+v)", write, err, out)
				}
				sameOutput(t, m.joined(t), want)
				if t.Failed() {
					t.Fatalf("after a kill at write %d, after it: %v; closed: %v; writes %q", write, after, closed, m.trace)
				}
			}
		}
	}
}

// A write that failed is tried again after the next step, and nothing is lost.
func TestSessionSurvivesAFailedWrite(t *testing.T) {
	m := newMemory()
	m.fail = func(n int, after bool) error {
		if n == 4 && !after {
			return errKilled
		}
		return nil
	}
	s, err := open(t.Context(), comm.Self(), decayConfig(), m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDecay(s)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	s.SetUpdate("mean", []float64{1, 0})
	for !s.Done() {
		if err := s.SaveState(t.Context(), d.state); err != nil {
			t.Fatal(err)
		}
		a := d.attempt(s.NextTime())
		s.Attempt(a)
		if !a.Accepted {
			continue
		}
		if err := s.SaveState(t.Context(), d.state); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Checkpoint(t.Context(), d.state, d.record); errors.Is(err, errKilled) {
			failed++
			before := m.writes
			if out, err := s.Checkpoint(t.Context(), d.state, d.record); err != nil || !out.Written || m.writes != before+2 {
				t.Fatalf("the second try gives %+v, %v after %d writes", out, err, m.writes-before)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil || failed != 1 {
		t.Fatalf("%d writes failed; %v", failed, err)
	}
	if got, want := m.joined(t).Statistics.Attempts(), uninterrupted(t).Statistics.Attempts(); got != want {
		t.Errorf("%d attempts, want %d", got, want)
	}
}

// A completed run that is resumed has nothing to do and leaves no file.
func TestCompletedRunIsNotResumedIntoAFile(t *testing.T) {
	m := newMemory()
	cfg := decayConfig()
	cfg.Resume = true
	for range 2 {
		if _, err := runSegment(t.Context(), comm.Self(), cfg, m); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.files) != 1 || m.locked {
		t.Errorf("%d segments; locked: %v; writes %q", len(m.files), m.locked, m.trace)
	}
	// With more time points it goes on.
	cfg.TimePoints, cfg.SaveTimes = append(cfg.TimePoints, 1.5), append(cfg.SaveTimes, 1.5)
	out, err := runSegment(t.Context(), comm.Self(), cfg, m)
	if err != nil || !out.Done {
		t.Fatal(out, err)
	}
	if got := m.joined(t).Times; !slices.Equal(got, []float64{0, 0.5, 1, 1.5}) {
		t.Errorf("times are %v", got)
	}
	changed, err := m.files[2].Settings.Texts("segment/changed_sections")
	if err != nil || !slices.Equal(changed, []string{"time"}) {
		t.Errorf("changed sections are %q, %v", changed, err)
	}
}

func TestWhenCheckpointsAreDue(t *testing.T) {
	for name, tc := range map[string]struct {
		k    CheckpointConfig
		want func(accepted int) int // checkpoints of so many steps
	}{
		"at the end alone":  {CheckpointConfig{}, func(int) int { return 1 }},
		"off":               {CheckpointConfig{Off: true}, func(int) int { return 0 }},
		"by steps":          {CheckpointConfig{Steps: 4}, func(n int) int { return (n + 3) / 4 }},
		"by simulated time": {CheckpointConfig{Interval: 0.5}, func(int) int { return 2 }},
		"by wall time":      {CheckpointConfig{WallTime: 1}, func(n int) int { return n }},
		"by whatever is first": {CheckpointConfig{Steps: 1000, Interval: 0.25, WallTime: 1000000000000},
			func(int) int { return 4 }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			cfg := decayConfig()
			cfg.Checkpoint = tc.k
			if _, err := runSegment(t.Context(), comm.Self(), cfg, m); err != nil {
				t.Fatal(err)
			}
			steps, err := m.files[1].Settings.Int("segment/steps")
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, w := range m.trace {
				if strings.HasPrefix(w, "checkpoint") {
					got++
				}
			}
			if want := tc.want(int(steps)); got != want {
				t.Errorf("%d checkpoints in %d steps, want %d", got, steps, want)
			}
		})
	}
}
