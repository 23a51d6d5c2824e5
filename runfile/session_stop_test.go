package runfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/record"
)

// Whatever stops a segment, its last step is in a checkpoint, its record has the
// reason, and the next segment goes on.
func TestStopConditions(t *testing.T) {
	usr1, usr2 := signalNamed(t, "SIGUSR1"), signalNamed(t, "SIGUSR2")
	want := uninterrupted(t)
	for _, tc := range []struct {
		name   string
		stop   StopConfig
		meddle func(s *Session, m *memory, step int)
		reason string
		steps  int64 // 0: whatever
	}{
		{"steps", StopConfig{Steps: 7}, nil, "limit of 7 steps", 7},
		{"wall time", StopConfig{WallTime: 20 * time.Millisecond}, nil, "wall time limit of 20ms", 0},
		{"a file", StopConfig{File: "halt"}, func(s *Session, m *memory, step int) {
			if step == 5 {
				m.there["halt"] = true
				s.fileSeen = s.fileSeen.Add(-fileEvery) // a second goes by
			}
		}, "file halt", 5},
		{"a signal", StopConfig{Signals: []string{"SIGUSR2", "SIGUSR1"}}, func(s *Session, m *memory, step int) {
			if step == 9 {
				s.inbox <- usr1
			}
		}, "signal SIGUSR1", 9},
		{"all at once", StopConfig{Steps: 3, Signals: []string{"SIGUSR2", "SIGUSR1"}}, func(s *Session, m *memory, step int) {
			if step == 3 {
				s.inbox <- usr1
				s.inbox <- usr2
			}
		}, "limit of 3 steps, signal SIGUSR2, signal SIGUSR1", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMemory()
			cfg := decayConfig()
			cfg.Resume = true
			cfg.Checkpoint = CheckpointConfig{}
			cfg.Stop = tc.stop
			cfg.Progress.Steps = 2
			var log bytes.Buffer
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			step := 0
			out, err := advanceWith(t.Context(), s, func() {
				step++
				if tc.meddle != nil {
					tc.meddle(s, m, step)
				}
			})
			if err != nil || !out.Stop || out.Done || !out.Written || out.Reason != tc.reason {
				t.Fatalf("outcome %+v, %v", out, err)
			}
			if tc.steps != 0 && s.accepted != tc.steps {
				t.Errorf("it stopped after %d steps, want %d", s.accepted, tc.steps)
			}
			if m.last.Time != s.time || !slices.Equal(m.trace, []string{"segment 1", "checkpoint 1"}) {
				t.Errorf("checkpoint at %v s, the time is %v s; writes %q", m.last.Time, s.time, m.trace)
			}
			for range 2 { // as it is before and after Close
				segment := m.files[1].Settings
				reason, err := segment.Text("segment/stop_reason")
				status, err2 := segment.Text("segment/status")
				if err != nil || err2 != nil || reason != tc.reason || status != statusStopped {
					t.Errorf("the segment is %q for %q, %v, %v", status, reason, err, err2)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !strings.Contains(log.String(), "reason=") || strings.Count(log.String(), "msg=progress") < int(s.accepted)/2 {
				t.Errorf("the log is\n%s", log.String())
			}
			cfg.Stop = StopConfig{}
			if _, err := runSegment(t.Context(), comm.Self(), cfg, m); err != nil {
				t.Fatal(err)
			}
			sameOutput(t, m.joined(t), want)
		})
	}
}

// A stop whose checkpoint can't be written stays one.
func TestStopIsNotForgotten(t *testing.T) {
	usr2 := signalNamed(t, "SIGUSR2")
	m := newMemory()
	cfg := decayConfig()
	cfg.Checkpoint = CheckpointConfig{}
	cfg.Stop.Signals = []string{"SIGUSR2"}
	s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDecay(s)
	if err != nil {
		t.Fatal(err)
	}
	s.SetUpdate("mean", []float64{1, 0})
	if err := s.SaveState(t.Context(), d.state); err != nil {
		t.Fatal(err)
	}
	s.inbox <- usr2
	m.fail = func(n int, after bool) error {
		if n == 0 {
			return errKilled
		}
		return nil
	}
	accept(s, d)
	if out, err := s.Checkpoint(t.Context(), d.state, d.record); !errors.Is(err, errKilled) || !out.Stop {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	accept(s, d)
	out, err := s.Checkpoint(t.Context(), d.state, d.record)
	if err != nil || !out.Stop || !out.Written || out.Reason != "signal SIGUSR2" {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	// And then the session has ended.
	if _, err := s.Checkpoint(t.Context(), d.state, d.record); !errors.Is(err, ErrStopped) {
		t.Errorf("a checkpoint after it gives %v", err)
	}
	if err := s.SaveState(t.Context(), d.state); !errors.Is(err, ErrStopped) {
		t.Errorf("a state after it gives %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// accept attempts steps until one is accepted.
func accept(s *Session, d *decay) {
	for {
		a := d.attempt(s.NextTime())
		s.Attempt(a)
		if a.Accepted {
			return
		}
	}
}

// A signal that comes with an error is not lost.
func TestSignalIsNotLostWithAnError(t *testing.T) {
	usr2 := signalNamed(t, "SIGUSR2")
	s, d := begun(t, newMemory(), func(c *Config) { c.Stop.Signals = []string{"SIGUSR2"} })
	s.inbox <- usr2
	accept(s, d)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Checkpoint(cancelled, d.state, d.record); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled context gives %v", err)
	}
	out, err := s.Checkpoint(t.Context(), d.state, d.record)
	if err != nil || !out.Stop || out.Reason != "signal SIGUSR2" {
		t.Errorf("outcome %+v, %v", out, err)
	}
}

// begun is a session whose first state is saved, and its solver.
func begun(t *testing.T, m *memory, change func(c *Config)) (*Session, *decay) {
	t.Helper()
	cfg := decayConfig()
	change(&cfg)
	s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d, err := newDecay(s)
	if err != nil {
		t.Fatal(err)
	}
	s.SetUpdate("mean", []float64{1, 0})
	if err := s.SaveState(t.Context(), d.state); err != nil {
		t.Fatal(err)
	}
	return s, d
}

// After Close signals have their own effect again.
func TestCloseStopsListening(t *testing.T) {
	usr2 := signalNamed(t, "SIGUSR2")
	own := make(chan os.Signal, 1)
	signal.Notify(own, usr2) // without it the signal would end the test
	defer signal.Stop(own)
	s, _ := begun(t, newMemory(), func(c *Config) { c.Stop.Signals = []string{"SIGUSR2"} })
	for _, want := range []int{1, 0} {
		if err := raise(usr2); err != nil {
			t.Fatal(err)
		}
		<-own
		if want == 1 {
			<-s.inbox // the two are told in no particular order
		} else if got := len(s.inbox); got != 0 {
			t.Errorf("the closed session has %d signals", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Rank 0 asks the filesystem for the stop file once a second, not at each step.
func TestLooksForTheStopFile(t *testing.T) {
	m := newMemory()
	s, d := begun(t, m, func(c *Config) { c.Stop.File = "halt" })
	at := &clock{at: s.opened, step: 0}
	s.now = at.now
	before := m.looks
	for i := range 8 {
		at.at = at.at.Add(300 * time.Millisecond)
		accept(s, d)
		if err := s.SaveState(t.Context(), d.state); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Checkpoint(t.Context(), d.state, d.record); err != nil {
			t.Fatal(err)
		}
		if got, want := m.looks-before, (i+1)/4; got != want {
			t.Fatalf("%d looks after %d steps of 0.3 s, want %d", got, i+1, want)
		}
	}
}

// Checkpoints by wall time are counted from the last one, or from what the segment began
// with; those by interval from the beginning of the run.
func TestFromWhenCheckpointsAreCounted(t *testing.T) {
	m := newMemory()
	s, d := begun(t, m, func(c *Config) { c.Checkpoint = CheckpointConfig{WallTime: time.Second} })
	at := &clock{at: s.opened, step: 0}
	s.now = at.now
	for i := range 9 {
		at.at = at.at.Add(400 * time.Millisecond)
		accept(s, d)
		if err := s.SaveState(t.Context(), d.state); err != nil {
			t.Fatal(err)
		}
		out, err := s.Checkpoint(t.Context(), d.state, d.record)
		if err != nil || out.Written != (i%3 == 2) {
			t.Fatalf("after %d steps of 0.4 s: %+v, %v", i+1, out, err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	cfg := decayConfig()
	cfg.Resume, cfg.Checkpoint = true, CheckpointConfig{Interval: 0.02}
	s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = newDecay(s); err != nil {
		t.Fatal(err)
	}
	begin := s.Start().Time
	for written := false; !written; {
		accept(s, d)
		out, err := s.Checkpoint(t.Context(), d.state, d.record)
		if err != nil {
			t.Fatal(err)
		}
		if written = out.Written; written != (math.Floor(s.time/0.02) > math.Floor(begin/0.02)) {
			t.Fatalf("begun at %v s, at %v s: %+v", begin, s.time, out)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Close does its work whatever has become of the context.
func TestCloseWithACancelledContext(t *testing.T) {
	m := newMemory()
	s, d := begun(t, m, func(c *Config) { c.Checkpoint = CheckpointConfig{} })
	accept(s, d)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(cancelled); err != nil || m.locked || m.files[1] == nil {
		t.Fatalf("locked: %v; writes %q; %v", m.locked, m.trace, err)
	}
	status, err := m.files[1].Settings.Text("segment/status")
	if err != nil || status != statusInterrupted {
		t.Errorf("status is %q, %v", status, err)
	}
}

// What the solver hands over is its own again.
func TestSessionCopies(t *testing.T) {
	m := newMemory()
	s, d := begun(t, m, func(c *Config) { c.Checkpoint = CheckpointConfig{} })
	update := []float64{5, 6}
	s.SetUpdate("mean", update)
	update[0] = 7
	if got := s.updates[0].State[0]; got != 5 {
		t.Errorf("the update's state became %v", got)
	}
	d.state[0] = 9
	if got := s.states[0][0]; got != 1 {
		t.Errorf("the saved state became %v", got)
	}
	s.Start().State[0] = 9
	if got := s.Start().State[0]; got != 1 {
		t.Errorf("the start became %v", got)
	}
}

// A run without checkpoints stops too; its output is written by Close.
func TestStopWithoutCheckpoints(t *testing.T) {
	m := newMemory()
	cfg := decayConfig()
	cfg.Checkpoint = CheckpointConfig{Off: true}
	cfg.Stop.Steps = 3
	out, err := runSegment(t.Context(), comm.Self(), cfg, m)
	if err != nil || !out.Stop || out.Written {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	if !slices.Equal(m.trace, []string{"segment 1"}) {
		t.Errorf("writes are %q", m.trace)
	}
	kind, err := m.files[1].Settings.Text("checkpoint/type")
	if written, err2 := m.files[1].Settings.Bool("segment/checkpoint_written"); err != nil || err2 != nil || kind != none || written {
		t.Errorf("checkpoints are %q, written: %v; %v, %v", kind, written, err, err2)
	}
}

// A wrong call is the error of the next collective one, and the file stays as it was until
// Close.
func TestWrongCalls(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		call func(s *Session, d *decay) error
		text string
	}{
		"a step back":           {func(s *Session, d *decay) error { s.Attempt(Attempt{Time: 0, Accepted: true}); return nil }, "0 s is accepted at the accepted time"},
		"a step to nowhere":     {func(s *Session, d *decay) error { s.Attempt(Attempt{Time: -1 / zero, Accepted: true}); return nil }, "-Inf"},
		"outcome with NUL":      {func(s *Session, d *decay) error { s.Attempt(Attempt{Time: 0.2, Outcome: "a\x00"}); return nil }, "the string contains NUL"},
		"outcome in no UTF-8":   {func(s *Session, d *decay) error { s.Attempt(Attempt{Time: 0.2, Outcome: "\xff"}); return nil }, "the string is not UTF-8"},
		"across a time point":   {func(s *Session, d *decay) error { s.Attempt(Attempt{Time: 0.3, Accepted: true}); return nil }, "across the time point 0.25 s"},
		"an unknown update":     {func(s *Session, d *decay) error { s.SetUpdate("max", nil); return nil }, `"max"`},
		"an update that grows":  {func(s *Session, d *decay) error { s.SetUpdate("mean", make([]float64, 3)); return nil }, "3 numbers, had 2"},
		"a state that is short": {func(s *Session, d *decay) error { _, err := s.Checkpoint(ctx, d.state[:1], nil); return err }, "1 numbers, the layout 3"},
		"a stepper that fails": {func(s *Session, d *decay) error {
			return forced(s, d, func() (record.Record, error) { return record.Record{}, errKilled })
		}, "record of the stepper: killed"},
		"a stepper that panics": {func(s *Session, d *decay) error { return forced(s, d, func() (record.Record, error) { panic("ouch") }) }, "ouch"},
		"a save time passed by": {func(s *Session, d *decay) error {
			for range 2 {
				s.Attempt(Attempt{Time: s.NextTime(), Accepted: true})
			}
			_, err := s.Checkpoint(ctx, d.state, nil)
			return err
		}, "save time 0.5 s is not saved"},
		"on from a save time": {func(s *Session, d *decay) error {
			for range 3 {
				s.Attempt(Attempt{Time: s.NextTime(), Accepted: true})
			}
			return nil
		}, "before the state at the save time 0.5 s is saved"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			s, err := open(ctx, comm.Self(), decayConfig(), m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			d, err := newDecay(s)
			if err != nil {
				t.Fatal(err)
			}
			s.SetUpdate("mean", []float64{1, 0})
			if err := s.SaveState(ctx, d.state); err != nil {
				t.Fatal(err)
			}
			accept(s, d)
			err = tc.call(s, d)
			if err == nil {
				_, err = s.Checkpoint(ctx, d.state, d.record)
			}
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error is %v, want one with %q", err, tc.text)
			}
			if len(m.trace) != 0 {
				t.Errorf("writes are %q", m.trace)
			}
			// Close writes what was before, and says again what the session has refused.
			wrong := s.broken
			err = s.Close(ctx)
			if m.locked || (wrong == nil) != (err == nil) || wrong != nil && (!errors.Is(err, ErrInput) || !strings.Contains(err.Error(), wrong.Error())) {
				t.Errorf("close gives %v after %v; locked: %v", err, wrong, m.locked)
			}
			if out := m.files[1]; !slices.Equal(m.trace, []string{"segment 1"}) || !slices.Equal(out.Times, []float64{0}) || out.Statistics.Attempts() < 1 {
				t.Errorf("writes are %q: %+v", m.trace, out)
			}
			if err := s.Close(ctx); err != nil {
				t.Errorf("close again gives %v", err)
			}
		})
	}
	t.Run("a save before an update is in force", func(t *testing.T) {
		s, err := open(ctx, comm.Self(), decayConfig(), newMemory(), newClock().now)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SaveState(ctx, s.Start().State); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), `"mean" has no state`) {
			t.Errorf("error is %v", err)
		}
	})
}

var zero = 0.0

// forced makes a checkpoint due.
func forced(s *Session, d *decay, stepper func() (record.Record, error)) error {
	s.cfg.Checkpoint.Steps = 1
	_, err := s.Checkpoint(context.Background(), d.state, stepper)
	return err
}

// All ranks have the same outcome, whatever happens on which; the same run as on one
// rank comes out.
func TestSessionOnSeveralRanks(t *testing.T) {
	usr1 := signalNamed(t, "SIGUSR1")
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		m := newMemory() // rank 0 alone uses its own
		last := c.Size() - 1
		cfg := decayConfig()
		cfg.Resume = true
		cfg.Stop.Signals = []string{"SIGUSR1"}

		s, err := open(t.Context(), c, cfg, m, newClock().now)
		if err != nil {
			t.Fatal(err)
		}
		step := 0
		out, err := advanceWith(t.Context(), s, func() {
			if step++; step == 8 && c.Rank() == last {
				s.inbox <- usr1 // one rank gets it, all stop
			}
		})
		if err != nil || !out.Stop || out.Reason != "signal SIGUSR1" || s.accepted != 8 {
			t.Fatalf("outcome %+v after %d steps, %v", out, s.accepted, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		// The others have the state from rank 0.
		if s, err = open(t.Context(), c, cfg, m, newClock().now); err != nil {
			t.Fatal(err)
		}
		start := s.Start()
		if start.Segment != 2 || len(start.State) != 3 || start.Time != s.time || !start.HasStepper || !start.Stepper.Has("length") || len(start.Updates) != 1 {
			t.Errorf("it starts with %+v", start)
		}
		out, err = advance(t.Context(), s)
		if err != nil || !out.Done {
			t.Fatalf("outcome %+v, %v", out, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.Rank() == 0 {
			sameOutput(t, m.joined(t), uninterrupted(t))
		} else if len(m.trace) > 0 || m.locked {
			t.Errorf("it wrote %q", m.trace)
		}
	})
}

// An error on one rank is the same error on all.
func TestErrorsOnSeveralRanks(t *testing.T) {
	mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		last := c.Size() - 1
		same := func(name string, err error, is error) {
			t.Helper()
			if !errors.Is(err, is) {
				t.Errorf("%s: %v, want %v", name, err, is)
			}
			texts, gatherErr := c.AllGather(ctx, fmt.Append(nil, err))
			if gatherErr != nil {
				t.Fatal(gatherErr)
			}
			for rank, text := range texts {
				if string(text) != string(texts[0]) {
					t.Errorf("%s: rank 0 has %q, rank %d has %q", name, texts[0], rank, text)
				}
			}
		}
		m := newMemory()
		begin := func(change func(cfg *Config)) (*Session, error) {
			cfg := decayConfig()
			if change != nil {
				change(&cfg)
			}
			return open(ctx, c, cfg, m, newClock().now)
		}
		_, err := begin(func(cfg *Config) {
			if c.Rank() == last {
				cfg.Name = ""
			}
		})
		same("a wrong name on the last rank", err, ErrInput)
		_, err = begin(func(cfg *Config) { cfg.TimePoints[0] = float64(-c.Rank()); cfg.SaveTimes = nil })
		same("other time points on each rank", err, ErrInput)
		if !strings.Contains(err.Error(), "section time") {
			t.Errorf("the error is %v", err)
		}
		m.locked = true
		_, err = begin(nil)
		same("a lock", err, ErrInUse)
		m.crash()
		cancelled, cancel := context.WithCancel(ctx)
		if c.Rank() == last {
			cancel()
		}
		_, err = open(cancelled, c, decayConfig(), m, newClock().now)
		same("a cancelled context on the last rank", err, context.Canceled)
		cancel()
		if m.locked {
			t.Error("the lock is held")
		}

		s, err := begin(nil)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDecay(s)
		if err != nil {
			t.Fatal(err)
		}
		m.fail = func(int, bool) error { return errKilled }
		s.SetUpdate("mean", []float64{1, 0})
		if err := s.SaveState(ctx, d.state); err != nil {
			t.Fatal(err)
		}
		accept(s, d)
		same("a write that fails on rank 0", forced(s, d, d.record), errKilled)
		m.fail = nil
		accept(s, d)
		same("a stepper that fails on the last rank", forced(s, d, func() (record.Record, error) {
			if c.Rank() == last {
				return record.Record{}, errKilled
			}
			return d.record()
		}), errKilled)
		accept(s, d)
		if c.Rank() == last {
			s.SetUpdate("max", nil)
		}
		_, err = s.Checkpoint(ctx, d.state, d.record)
		same("a wrong call on the last rank", err, ErrInput)
		same("and in the end", s.Close(ctx), ErrInput)
		if m.locked {
			t.Error("the lock is held")
		}
	})
}

// A step that one rank alone is refused, so that the ranks are at different times, loses
// nothing that was saved before.
func TestAWrongCallLosesNoState(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx, m := t.Context(), newMemory()
		s, err := open(ctx, c, decayConfig(), m, newClock().now)
		if err != nil {
			t.Fatal(err)
		}
		s.SetUpdate("mean", []float64{1, 0})
		if err := s.SaveState(ctx, s.Start().State); err != nil {
			t.Fatal(err)
		}
		s.Attempt(Attempt{Time: 0.125, Accepted: true})
		next := 0.25
		if c.Rank() == c.Size()-1 {
			next = 0.3
		}
		s.Attempt(Attempt{Time: next, Accepted: true})
		err = s.Close(ctx)
		if !errors.Is(err, ErrInput) || strings.Count(err.Error(), "0.3 s is accepted across") != 1 || m.locked {
			t.Errorf("close gives %v; locked: %v", err, m.locked)
		}
		texts, gather := c.AllGather(ctx, fmt.Append(nil, err))
		if gather != nil {
			t.Fatal(gather)
		}
		if string(texts[0]) != string(texts[c.Rank()]) {
			t.Errorf("rank 0 has %q, this one %q", texts[0], texts[c.Rank()])
		}
		if c.Rank() == 0 && (m.files[1] == nil || !slices.Equal(m.files[1].Times, []float64{0}) || m.files[1].Statistics.Attempts() < 1) {
			t.Errorf("the segment is %+v", m.files[1])
		}
	})
}

// Ranks that make different calls, or take different steps, find out.
func TestRanksOutOfStep(t *testing.T) {
	mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		for _, tc := range []struct {
			name   string
			call   func(s *Session, d *decay) error
			text   string
			closed bool // rank 0 has closed the session
		}{
			{"another call", func(s *Session, d *decay) error {
				if c.Rank() == 0 {
					return s.Close(ctx)
				}
				_, err := s.Checkpoint(ctx, d.state, d.record)
				return err
			}, "some are in Close, others in Checkpoint", true},
			{"another time", func(s *Session, d *decay) error {
				s.Attempt(Attempt{Time: s.time + 1e-9*float64(1+min(1, c.Rank())), Accepted: true})
				_, err := s.Checkpoint(ctx, d.state, d.record)
				return err
			}, "their accepted times are", false},
		} {
			m := newMemory()
			s, err := open(ctx, c, decayConfig(), m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			d, err := newDecay(s)
			if err != nil {
				t.Fatal(err)
			}
			s.SetUpdate("mean", []float64{1, 0})
			if err := s.SaveState(ctx, d.state); err != nil {
				t.Fatal(err)
			}
			if err := tc.call(s, d); !errors.Is(err, ErrOutOfStep) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %v", tc.name, err)
			}
			// From now on no rank waits for another: here one makes no call at all.
			if c.Rank() > 0 {
				if _, err := s.Checkpoint(ctx, d.state, d.record); !errors.Is(err, ErrOutOfStep) {
					t.Errorf("%s: the next call: %v", tc.name, err)
				}
				if err := s.Close(ctx); !errors.Is(err, ErrOutOfStep) {
					t.Errorf("%s: close: %v", tc.name, err)
				}
			}
			if err := c.Meet(ctx); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(ctx); c.Rank() == 0 && tc.closed == (err != nil) || m.locked {
				t.Errorf("%s: close of rank %d: %v; locked: %v", tc.name, c.Rank(), err, m.locked)
			}
		}
	})
}
