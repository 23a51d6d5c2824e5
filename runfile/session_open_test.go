package runfile

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
)

// twoSegments is a store with the first two segments of a run, each of some steps.
func twoSegments(t *testing.T) *memory {
	t.Helper()
	m := newMemory()
	cfg := decayConfig()
	cfg.Resume = true
	cfg.Stop.Steps = 20
	for range 2 {
		if out, err := runSegment(t.Context(), comm.Self(), cfg, m); err != nil || !out.Stop {
			t.Fatal(out, err)
		}
	}
	return m
}

// unlocking is a store whose lock is let go at the given try to take it.
type unlocking struct {
	*memory
	at int
}

func (u *unlocking) lock() (func() error, error) {
	if u.at--; u.at == 0 {
		u.crash()
	}
	return u.memory.lock()
}

// A job that is started again meets its dying predecessor.
func TestOpenWaitsForAnotherRunOfTheName(t *testing.T) {
	for _, tc := range []struct {
		name string
		wait time.Duration
		at   int // of the tries the one that the lock is let go at; 0: none
		text string
	}{
		{"by itself", 0, 3, ""},
		{"as long as it takes", time.Minute, 3, ""},
		{"no longer than it is to", 20 * time.Millisecond, 0, "waited for during 20ms"},
		{"not at all", -1, 3, "run.lock"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &unlocking{newMemory(), tc.at}
			m.locked = true
			var log bytes.Buffer
			err := comm.Run(3, func(c *comm.Comm) error {
				cfg := decayConfig()
				cfg.Wait = tc.wait
				if c.Rank() == 0 {
					cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				}
				s, err := open(t.Context(), c, cfg, m, time.Now)
				if tc.text == "" {
					return errors.Join(err, s.Close(t.Context()))
				}
				if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("rank %d: error is %v, want ErrInUse with %q", c.Rank(), err, tc.text)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			waited := strings.Count(log.String(), "waiting for another run")
			if want := map[bool]int{true: 0, false: 1}[tc.wait < 0]; waited != want {
				t.Errorf("%d warnings that it waits, want %d:\n%s", waited, want, log.String())
			}
		})
	}
}

func TestAContextEndsTheWaitOfOpen(t *testing.T) {
	for _, rank := range []int{0, 2} {
		m := newMemory()
		m.locked = true
		err := comm.Run(3, func(c *comm.Comm) error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if c.Rank() != rank {
				ctx = t.Context()
			}
			cfg := decayConfig()
			cfg.Wait = time.Hour
			if _, err := open(ctx, c, cfg, m, time.Now); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("rank %d: error is %v", c.Rank(), err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, c *Config, m *memory)
		is     error
		text   string
	}{
		{"a name that is none", func(t *testing.T, c *Config, m *memory) { c.Name = "a/b" }, ErrInput, `"a/b"`},
		{"no directory", func(t *testing.T, c *Config, m *memory) { c.Directory = "" }, ErrInput, "directory"},
		{"a directory with NUL", func(t *testing.T, c *Config, m *memory) { c.Directory = "a\x00" }, ErrInput, `"a\x00"`},
		{"a segment of five digits", func(t *testing.T, c *Config, m *memory) { c.Segment = 10000 }, ErrInput, "10000"},
		{"a state of no file", func(t *testing.T, c *Config, m *memory) { c.FromState = 2 }, ErrInput, "state 2"},
		{"to resume and to overwrite", func(t *testing.T, c *Config, m *memory) { c.Overwrite, c.Resume = true, true }, ErrInput, "exclude"},
		{"a layout that can't be", func(t *testing.T, c *Config, m *memory) { c.Layout.Unknowns[1].Name = "n" }, ErrInput, `"n" is there twice`},
		{"an initial state of another length", func(t *testing.T, c *Config, m *memory) { c.Initial = []float64{1} }, ErrInput, "1 numbers, the layout 3"},
		{"one time point", func(t *testing.T, c *Config, m *memory) { c.TimePoints = c.TimePoints[:1] }, ErrInput, "1 time points"},
		{"time points that stand still", func(t *testing.T, c *Config, m *memory) { c.TimePoints = []float64{0, 1, 1} }, ErrInput, "time point 2 is 1, not greater than 1"},
		{"a time point that is no number", func(t *testing.T, c *Config, m *memory) { c.TimePoints[1] = math.NaN() }, ErrInput, "NaN"},
		{"a save time between time points", func(t *testing.T, c *Config, m *memory) { c.SaveTimes = []float64{0.3} }, ErrInput, "save time 0, 0.3"},
		{"an update with a name that is none", func(t *testing.T, c *Config, m *memory) { c.Updates = []string{"order"} }, ErrInput, "order"},
		{"an update twice", func(t *testing.T, c *Config, m *memory) { c.Updates = []string{"a", "a"} }, ErrInput, `"a" is there twice`},
		{"a negative limit", func(t *testing.T, c *Config, m *memory) { c.Stop.Steps = -1 }, ErrInput, "Stop.Steps"},
		{"an interval that is no number", func(t *testing.T, c *Config, m *memory) { c.Checkpoint.Interval = math.NaN() }, ErrInput, "NaN"},
		{"checkpoints that are off and due", func(t *testing.T, c *Config, m *memory) { c.Checkpoint.Off = true }, ErrInput, "Off"},
		{"a signal that nobody knows", func(t *testing.T, c *Config, m *memory) { c.Stop.Signals = []string{"SIGKILL"} }, ErrInput, `"SIGKILL"`},
		{"a signal twice", func(t *testing.T, c *Config, m *memory) { c.Stop.Signals = []string{"SIGTERM", "SIGTERM"} }, ErrInput, "twice"},
		{"a field that isn't given", func(t *testing.T, c *Config, m *memory) {
			c.Layout.Unknowns = append(c.Layout.Unknowns, Unknown{Name: "phi", Kind: Field,
				Domain: grid.Domain{Size: [3]int{2, 2, 2}, Spacing: [3]float64{1, 1, 1}}})
		}, ErrInput, `"phi"`},

		{"a second run of the name", func(t *testing.T, c *Config, m *memory) { m.locked = true }, ErrInUse, "run.lock"},
		{"a stop file that is there", func(t *testing.T, c *Config, m *memory) { c.Stop.File, m.there["halt"] = "halt", true }, ErrStopFile, "the stop file is there: halt (remove"},
		{"an existing segment", func(t *testing.T, c *Config, m *memory) { delete(m.files, 2); m.last = nil }, ErrFilesExist, "run.segment0001.h5"},
		{"an existing checkpoint", func(t *testing.T, c *Config, m *memory) { clear(m.files) }, ErrFilesExist, "last is of segment 2"},
		{"higher segments", func(t *testing.T, c *Config, m *memory) { m.last = nil }, ErrFilesExist, "run.segment0002.h5"},
		{"higher segments, to overwrite", func(t *testing.T, c *Config, m *memory) { c.Overwrite = true }, ErrFilesExist, "run.segment0002.h5"},
		{"higher segments, to resume", func(t *testing.T, c *Config, m *memory) {
			c.Resume = true
			m.files[4] = m.files[2]
		}, ErrFilesExist, "run.segment0004.h5"},
		{"unreadable checkpoints", func(t *testing.T, c *Config, m *memory) { m.last, m.unreadable = nil, errKilled; clear(m.files) }, ErrUnreadable, "killed"},
		{"unreadable checkpoints, to resume", func(t *testing.T, c *Config, m *memory) { c.Resume, m.last, m.unreadable = true, nil, errKilled }, ErrUnreadable, "killed"},
		{"to resume into the output of a run without checkpoints", func(t *testing.T, c *Config, m *memory) {
			c.Resume, c.Checkpoint = true, CheckpointConfig{Off: true}
			*m = *newMemory()
			if _, err := runSegment(t.Context(), comm.Self(), *c, m); err != nil {
				t.Fatal(err)
			}
		}, ErrFilesExist, "without checkpoints"},

		{"another number than follows", func(t *testing.T, c *Config, m *memory) { c.Resume, c.Segment = true, 4 }, ErrResume, "last is of segment 2"},
		{"a later segment from nothing", func(t *testing.T, c *Config, m *memory) { c.Segment, m.last = 3, nil }, ErrResume, "segment 3"},
		{"the last number's successor", func(t *testing.T, c *Config, m *memory) {
			c.Resume, m.last.Segment = true, 9999
			clear(m.files) // segment 9999 is none of them
		}, ErrResume, "10000"},
		{"a state that isn't there", func(t *testing.T, c *Config, m *memory) { c.From = "nowhere.h5" }, fs.ErrNotExist, "nowhere.h5"},
		{"a checkpoint before the first time point", func(t *testing.T, c *Config, m *memory) {
			c.Resume, c.TimePoints[0], c.SaveTimes = true, 0.01, nil
			m.last.Time = 0.005
		}, ErrResume, "0.005 s is not within"},
		{"a checkpoint beyond the last time point", func(t *testing.T, c *Config, m *memory) {
			c.Resume, c.TimePoints, c.SaveTimes = true, c.TimePoints[:2], nil
			m.last.Time = 0.3
			delete(m.files, 2)
		}, ErrResume, "0.3 s is not within"},
		{"a state of an output file between time points", func(t *testing.T, c *Config, m *memory) {
			k := *m.last
			k.HasStepper, k.Time, k.File = false, 0.3, "other.h5"
			*m = *newMemory()
			m.outputs["other.h5 -1"] = &k
			c.From = "other.h5"
		}, ErrResume, "0.3 s is not one of the time points"},
		{"to start over where a checkpoint was", func(t *testing.T, c *Config, m *memory) {
			c.Resume, m.last = true, nil
			delete(m.files, 2)
		}, ErrFilesExist, "was written with checkpoints, and none is there"},
		{"a segment shorter than the checkpoint", func(t *testing.T, c *Config, m *memory) {
			c.Resume = true
			m.last.Time = 0.99
		}, ErrResume, "0.99 s: they are of different runs"},
		{"a segment of another session than the checkpoint", func(t *testing.T, c *Config, m *memory) {
			c.Resume = true
			m.files[2].Settings = withKey(t, m.files[2].Settings, "environment", "session", "other")
		}, ErrResume, "is of the session other"},
		{"a segment of another setup than the checkpoint", func(t *testing.T, c *Config, m *memory) {
			c.Resume = true
			var err error
			if m.last.Settings, err = m.last.Settings.With("setup_hash", "other"); err != nil {
				t.Fatal(err)
			}
		}, ErrResume, "of other: they are of different runs"},

		{"an unknown that isn't stored", func(t *testing.T, c *Config, m *memory) {
			c.Resume, c.Initial = true, nil
			c.Layout.Unknowns = append(c.Layout.Unknowns, Unknown{Name: "E", Kind: Scalar})
		}, ErrResume, `no unknown "E"`},
		{"another kind", func(t *testing.T, c *Config, m *memory) {
			c.Resume, c.Initial = true, nil
			c.Layout.Unknowns[0] = Unknown{Name: "n", Kind: Radial, Components: 1}
		}, ErrResume, `unknown "n": it is radial, stored is a scalar one`},
		{"another number of radii", func(t *testing.T, c *Config, m *memory) {
			c.Resume, c.Initial = true, nil
			c.Layout.R = []float64{0, 1}
		}, ErrResume, "2 faces, stored are 3"},
		{"another face", func(t *testing.T, c *Config, m *memory) { c.Resume, c.Layout.R = true, []float64{0, 0.5, 2} }, ErrResume, "face 3 of the radial grid is 2, stored is 1"},
		{"other components", func(t *testing.T, c *Config, m *memory) {
			c.Resume, c.Initial = true, nil
			c.Layout.Unknowns[1].Components = 2
		}, ErrResume, "2 components, stored are 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := twoSegments(t)
			cfg := decayConfig()
			tc.change(t, &cfg, m)
			locked, files, trace := m.locked, len(m.files), len(m.trace)
			s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
			if err == nil {
				t.Fatal("it opens segment", s.Start().Segment)
			}
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error is %q, want one of %q with %q", err, tc.is, tc.text)
			}
			if m.locked != locked || len(m.files) != files || len(m.trace) != trace {
				t.Errorf("locked is %v, was %v; %d files, were %d", m.locked, locked, len(m.files), files)
			}
		})
	}
}

func TestOpenAllows(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(t *testing.T, c *Config, m *memory)
		segment int
	}{
		{"a new run in an empty directory", func(t *testing.T, c *Config, m *memory) { *m = *newMemory() }, 1},
		{"to resume where there is nothing", func(t *testing.T, c *Config, m *memory) { *m = *newMemory(); c.Resume = true }, 1},
		{"to resume", func(t *testing.T, c *Config, m *memory) { c.Resume = true }, 3},
		{"to resume as the number that follows", func(t *testing.T, c *Config, m *memory) { c.Resume, c.Segment = true, 3 }, 3},
		{"to replace a segment that no checkpoint names", func(t *testing.T, c *Config, m *memory) { c.Resume = true; m.files[3] = m.files[2] }, 3},
		{"to replace the first such segment", func(t *testing.T, c *Config, m *memory) {
			c.Resume, m.last = true, nil
			delete(m.files, 2)
			m.files[1].Settings = withKey(t, m.files[1].Settings, "segment", "checkpoint_written", false)
		}, 1},
		{"to resume without the segments before", func(t *testing.T, c *Config, m *memory) { c.Resume = true; clear(m.files) }, 3},
		{"to overwrite the segment of the number", func(t *testing.T, c *Config, m *memory) { c.Overwrite = true; delete(m.files, 2) }, 1},
		{"to overwrite with unreadable checkpoints", func(t *testing.T, c *Config, m *memory) {
			c.Overwrite, m.last, m.unreadable = true, nil, errKilled
			delete(m.files, 2)
		}, 1},
		{"a state of the run's own output", func(t *testing.T, c *Config, m *memory) {
			m.outputs["run.segment0001.h5 -1"] = storedState(m, 1, 0.5)
			m.last.Segment = 1
			delete(m.files, 2)
			c.From = "run.segment0001.h5"
		}, 2},
		{"a state of another run's output", func(t *testing.T, c *Config, m *memory) {
			k := storedState(m, 7, 0.5)
			k.File = "other.h5"
			*m = *newMemory()
			m.outputs["other.h5 1"] = k
			c.From, c.FromState = "other.h5", 2
		}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := twoSegments(t)
			cfg := decayConfig()
			tc.change(t, &cfg, m)
			s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Start().Segment; got != tc.segment {
				t.Errorf("it is segment %d, want %d", got, tc.segment)
			}
			if _, err := advance(t.Context(), s); err != nil {
				t.Error(err)
			}
			if err := s.Close(t.Context()); err != nil || m.locked {
				t.Errorf("locked: %v; %v", m.locked, err)
			}
		})
	}
}

// withKey gives a key of a section another value.
func withKey(t *testing.T, settings record.Record, section, key string, value any) record.Record {
	t.Helper()
	r, err := settings.Record(section)
	if err == nil {
		r, err = r.With(key, value)
	}
	if err == nil {
		settings, err = settings.With(section, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

// A resumed run has save times of its own: the state that it begins with is saved unless
// the run saved it before.
func TestTheFirstStateOfAResumedSegment(t *testing.T) {
	ctx := t.Context()
	for name, tc := range map[string]struct {
		before, now []float64
		due         bool
	}{
		"saved before":                {[]float64{0, 0.5, 1}, []float64{0, 0.5, 1}, false},
		"all time points":             {nil, nil, false},
		"not to be saved":             {[]float64{0, 1}, []float64{0, 1}, false},
		"no more to be saved":         {[]float64{0, 0.5}, []float64{0, 1}, false},
		"to be saved by now":          {[]float64{0, 1}, []float64{0, 0.5, 1}, true},
		"all to be saved by now":      {[]float64{0, 1}, nil, true},
		"saved before, as one of all": {nil, []float64{0, 0.5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			cfg := decayConfig()
			cfg.Resume, cfg.SaveTimes, cfg.Checkpoint, cfg.Updates = true, tc.before, CheckpointConfig{Steps: 1}, nil
			s, err := open(ctx, comm.Self(), cfg, m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			for {
				err := s.SaveState(ctx, cfg.Initial)
				if err == nil && s.time > 0 {
					_, err = s.Checkpoint(ctx, cfg.Initial, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				if s.time == 0.5 {
					break
				}
				s.Attempt(Attempt{Time: s.NextTime(), Accepted: true})
			}
			if err := s.Close(ctx); err != nil {
				t.Fatal(err)
			}
			cfg.SaveTimes = tc.now
			s, err = open(ctx, comm.Self(), cfg, m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			if s.time != 0.5 || s.saveIsDue() != tc.due {
				t.Errorf("at %v s: a state is to be saved: %v, want %v", s.time, s.saveIsDue(), tc.due)
			}
			if err := s.Close(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// storedState is the last checkpoint as if it were in an output file.
func storedState(m *memory, segment int, time float64) *Checkpoint {
	k := *m.last
	k.File, k.Segment, k.Time = memoryFile(segment), segment, time
	k.HasStepper, k.Stepper, k.Summary, k.output = false, record.Record{}, Summary{}, true
	return &k
}

// The record of a resumed segment says what it began with.
func TestRecordOfAResumedSegment(t *testing.T) {
	m := twoSegments(t)
	attempts, begin := m.last.Summary.Attempted, m.last.Time
	hash, err := m.last.Settings.Text("setup_hash")
	if err != nil {
		t.Fatal(err)
	}
	cfg := decayConfig()
	cfg.Resume = true
	cfg.Setup.Solver = mustOf(t, "type", "newton")
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if _, err := runSegment(t.Context(), comm.Self(), cfg, m); err != nil {
		t.Fatal(err)
	}
	segment, err := m.files[3].Settings.Record("segment")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"index": int64(3), "resumed": true, "resumed_from": "last", "resumed_from_segment": int64(2),
		"start_time": begin, "saved_before": int64(len(m.files[1].Times) + len(m.files[2].Times)),
		"attempts_before": attempts, "previous_setup_hash": hash, "settings_changed": true,
	} {
		v, err := segment.Get(key)
		if err != nil || v.Any() != want {
			t.Errorf("%s is %v, %v; want %v", key, v, err, want)
		}
	}
	if segment.Has("commit_changed") {
		t.Error("it says whether the commit changed, which nobody knows")
	}
	if changed, err := segment.Texts("changed_sections"); err != nil || !slices.Equal(changed, []string{"solver"}) {
		t.Errorf("changed sections are %q, %v", changed, err)
	}
	if !strings.Contains(log.String(), "another one than before") {
		t.Errorf("the log is %q", log.String())
	}
}

// Whether the commit is another one is told where both are known.
func TestWhetherTheCommitChanged(t *testing.T) {
	for _, tc := range []struct {
		before, now string
		want        any // nil: not known
	}{
		{"abc", "abc", false}, {"abc", "def", true},
		{unknownCommit, "abc", nil}, {"abc", unknownCommit, nil}, {unknownCommit, unknownCommit, nil},
	} {
		m := twoSegments(t)
		cfg := decayConfig()
		cfg.Resume = true
		s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
		if err != nil {
			t.Fatal(err)
		}
		from := *m.last
		from.Settings = withKey(t, from.Settings, "code", "commit", tc.before)
		s.settings = withKey(t, s.settings, "code", "commit", tc.now)
		if err := s.describeOrigin(&from); err != nil {
			t.Fatal(err)
		}
		settings, err := s.withSegment()
		if err != nil {
			t.Fatal(err)
		}
		changed, err := optional(settings.Bool("segment/commit_changed"))
		if err != nil || (changed != nil) != (tc.want != nil) || changed != nil && *changed != tc.want {
			t.Errorf("%s after %s: %v, %v; want %v", tc.now, tc.before, changed, err, tc.want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A state of an output file brings no counts of attempts, whichever segment it begins.
func TestFirstSegmentFromAnotherRun(t *testing.T) {
	for from, want := range map[string]bool{"other.h5": false, "a checkpoint": true} {
		m := newMemory()
		k := storedState(twoSegments(t), 7, 0.5)
		k.File, k.output = from, !want
		m.outputs[from+" -1"] = k
		cfg := decayConfig()
		cfg.From = from
		if _, err := runSegment(t.Context(), comm.Self(), cfg, m); err != nil {
			t.Fatal(err)
		}
		if got := m.files[1].Settings.Has("segment/attempts_before"); got != want {
			t.Errorf("from %s: there is a count of attempts before: %v", from, got)
		}
	}
}

// A state of an output file brings no counts of attempts.
func TestSegmentFromAnOutputFile(t *testing.T) {
	m := twoSegments(t)
	m.outputs["run.segment0002.h5 -1"] = storedState(m, 2, 0.5)
	cfg := decayConfig()
	cfg.From = "run.segment0002.h5"
	s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	if start := s.Start(); !start.Resumed || start.HasStepper || start.Time != 0.5 || start.Segment != 3 || start.FromSegment != 2 {
		t.Errorf("it starts with %+v", start)
	}
	if _, err := advance(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.files[3].Settings.Has("segment/attempts_before") {
		t.Error("there is a count of attempts before")
	}
	if got := m.files[3].Times; !slices.Equal(got, []float64{1}) {
		t.Errorf("saved times are %v", got)
	}
}

func TestUnitsOfAResumedState(t *testing.T) {
	for name, tc := range map[string]struct {
		stored, declared string
		known, warns     bool
	}{
		"the same":           {"eV", "eV", true, false},
		"another one":        {"keV", "eV", true, true},
		"none is stored":     {"", "eV", true, false},
		"none is declared":   {"eV", "", true, false},
		"files without them": {"keV", "eV", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := twoSegments(t)
			m.last.units["T"] = tc.stored
			if !tc.known {
				m.last.units = nil
			}
			cfg := decayConfig()
			cfg.Resume = true
			cfg.Layout.Unknowns[1].Unit = tc.declared
			var log bytes.Buffer
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(log.String(), "another unit"); warned != tc.warns {
				t.Errorf("the log is %q", log.String())
			}
			if got := s.Start().State; !slices.Equal(got, m.last.State) {
				t.Errorf("the state is %v, stored is %v", got, m.last.State)
			}
			if changed, err := s.withSegment(); err != nil || changed.Has("segment/changed_sections") {
				t.Errorf("a unit changes the setup (%v)", err)
			}
		})
	}
}

// Unknowns are matched by name: their order and the grids' names don't matter.
func TestUnknownsAreMatchedByName(t *testing.T) {
	kinetic := func(order []string, gridName string) Layout {
		l := Layout{R: []float64{0, 1, 2}, Grids: []MomentumGrid{{Name: gridName, P: []float64{0, 1, 3}, Xi: []float64{-1, 1}}}}
		for _, name := range order {
			switch name {
			case "f":
				l.Unknowns = append(l.Unknowns, Unknown{Name: "f", Kind: Kinetic, Grids: []string{gridName}})
			default:
				l.Unknowns = append(l.Unknowns, Unknown{Name: name, Kind: Scalar})
			}
		}
		return l
	}
	from := &Checkpoint{Layout: kinetic([]string{"E", "f", "gone"}, "grid_1"), State: []float64{9, 1, 2, 3, 4, -1}}
	l := kinetic([]string{"f", "new", "E"}, "a")
	var log bytes.Buffer
	got, err := matchUnknowns(&l, from, []float64{0, 0, 0, 0, 7, 0}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !slices.Equal(got, []float64{1, 2, 3, 4, 7, 9}) {
		t.Errorf("state is %v, %v", got, err)
	}
	for _, text := range []string{"unknown=new", "unknown=gone"} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("the log lacks %q: %q", text, log.String())
		}
	}
	l.Grids[0].P = []float64{0, 1, 3.5}
	if _, err := matchUnknowns(&l, from, make([]float64, 6), silent); err == nil || !strings.Contains(err.Error(), `unknown "f": face 3 of p at radius 1 is 3.5, stored is 3`) {
		t.Errorf("another momentum grid gives %v", err)
	}
}

func mustOf(t *testing.T, keysAndValues ...any) record.Record {
	t.Helper()
	r, err := record.Of(keysAndValues...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
