package publish

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// saveAs lets the service save the state of an increment, as change has it.
func saveAs(s session, n int64, change func(v *Solver)) (string, error) {
	if err := s.c.Agree(context.Background(), s.solver.advance(n)); err != nil {
		return "", err
	}
	v := s.solver.solver()
	if change != nil {
		change(&v)
	}
	return s.service.Save(context.Background(), v)
}

func wantPath(path string, err error, want string) error {
	if err != nil || path != want {
		return fmt.Errorf("path %q, %w: want %q", path, err, want)
	}
	return nil
}

// Most solvers end with a Save after their loop, and a job that is left over in the
// queue restores the last state and has nothing to do.
func TestASaveOfWhatIsSavedOrRestoredReturnsItsBundle(t *testing.T) {
	fsys := newFS(t)
	if err := fsys.Mkdir("/data/ckpt", 0o777); err != nil {
		t.Fatal(err)
	}
	err := withService(t, fsys, 3, unwaiting(""), nil, func(s session) error {
		if err := steps(10)(s); err != nil {
			return err
		}
		path, err := saveAs(s, 10, nil)
		return wantPath(path, err, "/data/ckpt/step_10")
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{Latest, "/data/ckpt/step_10", "/data/../data/ckpt/step_10"} {
		before := fsys.Dump()
		err = withService(t, fsys, 2, unwaiting(from), nil, func(s session) error {
			path, err := s.service.Save(context.Background(), s.solver.solver())
			return wantPath(path, err, "/data/ckpt/step_10")
		})
		if err != nil {
			t.Fatalf("restored from %s: %v", from, err)
		}
		sameFiles(t, fsys, before)
	}
	wantNames(t, fsys, "step_10")
}

// A clock that computes its time has not exactly the bundle's, and a method that takes
// any bundle is none.
func TestASaveOfWhatIsRestoredKnowsItByTheClockOfTheSolver(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, unwaiting(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	err := onRanks(t, 2, func(c *comm.Comm) error {
		ctx := context.Background()
		solver, err := newTestSolver(c, 1, "phi", "T")
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		service, err := NewService(ctx, c, unwaiting(Latest), Filesystem(fsys))
		if err != nil {
			return err
		}
		defer service.Close()
		v := solver.solver()
		v.Clock, v.Method = &computingClock{step: 1. / 3 * (1 + 2e-10)}, ""
		if _, err := service.Restore(ctx, v); err != nil {
			return err
		}
		path, err := service.Save(ctx, v)
		return wantPath(path, err, "/data/ckpt/step_10")
	})
	if err != nil {
		t.Error(err)
	}
}

// computingClock has the time that follows from the increment, whatever it is given.
type computingClock struct {
	n    int64
	step float64
}

func (c *computingClock) TimeAt(n int64) float64           { return float64(n) * c.step }
func (c *computingClock) Accepted() (int64, float64)       { return c.n, c.TimeAt(c.n) }
func (c *computingClock) Restore(n int64, _ float64) error { c.n = n; return nil }

// Everything else that is in the way is refused.
func TestASaveOfAnotherStateOfTheIncrementIsRefused(t *testing.T) {
	for name, change := range map[string]func(v *Solver){
		"another time":   func(v *Solver) { v.Clock = &testClock{20, 5} },
		"another method": func(v *Solver) { v.Method = "rk4" },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			err := withService(t, fsys, 2, unwaiting(""), nil, func(s session) error {
				if err := steps(10, 20)(s); err != nil {
					return err
				}
				before := fsys.Dump()
				if err := s.c.Meet(context.Background()); err != nil {
					return err
				}
				_, err := saveAs(s, 20, change)
				wantError(t, err, ErrExists, "step_20", "saved or restored it at time", `method "euler"`)
				_, err = saveAs(s, 10, nil) // not the last one
				wantError(t, err, ErrExists, "step_10")
				if s.c.Rank() == 0 {
					sameFiles(t, fsys, before)
				}
				return s.c.Meet(context.Background())
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	fsys := newFS(t)
	err := withService(t, fsys, 2, unwaiting(""), nil, func(s session) error {
		if err := steps(10)(s); err != nil {
			return err
		}
		_, err := saveAs(s, 10, func(v *Solver) {
			if s.c.Rank() == 1 {
				v.Clock = &testClock{10, 5}
			}
		})
		wantError(t, err, ErrInput, "the accepted time", "rank 1")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A bundle of another directory is no bundle of this one, nor is one that is gone.
// A bundle that was saved and has lost a file, or has given its place to something else, is
// no success.
func TestASaveOfWhatIsDamagedMeanwhileIsRefused(t *testing.T) {
	for name, damage := range map[string]func(fsys *vfs.Mem) error{
		"a field is gone": func(fsys *vfs.Mem) error { return fsys.Remove("/data/ckpt/step_10/fields/phi.bin") },
		"a file": func(fsys *vfs.Mem) error {
			if err := vfs.RemoveAll(fsys, "/data/ckpt/step_10"); err != nil {
				return err
			}
			return vfs.WriteFile(fsys, "/data/ckpt/step_10", []byte("x"), 0o666, false)
		},
	} {
		fsys := newFS(t)
		err := withService(t, fsys, 2, unwaiting(""), nil, func(s session) error {
			if _, err := saveAs(s, 10, nil); err != nil {
				return err
			}
			if err := s.c.OnRoot(context.Background(), nil, func() error { return damage(fsys) }); err != nil {
				return err
			}
			_, err := saveAs(s, 10, nil)
			return err
		})
		if !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v, want %v", name, err, ErrExists)
		}
	}
}

func TestASaveOfWhatTheDirectoryLacksSavesIt(t *testing.T) {
	fsys := newFS(t)
	other := unwaiting("")
	other.Checkpoint.Directory = "/data/other"
	if err := withService(t, fsys, 2, other, nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	err := withService(t, fsys, 3, unwaiting("/data/other/step_10"), nil, func(s session) error {
		path, err := s.service.Save(context.Background(), s.solver.solver())
		if err := wantPath(path, err, "/data/ckpt/step_10"); err != nil {
			return err
		}
		if s.c.Rank() == 0 {
			if err := vfs.RemoveAll(fsys, "/data/ckpt/step_10"); err != nil {
				t.Error(err)
			}
		}
		path, err = saveAs(s, 10, nil)
		return wantPath(path, err, "/data/ckpt/step_10")
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, fsys, 2, "/data/ckpt/step_10", 10); err != nil {
		t.Error(err)
	}
}

// The checkpoint directory may be reached by another way.
func TestASaveOfWhatIsRestoredThroughALinkReturnsItsBundle(t *testing.T) {
	dir := t.TempDir()
	cfg := unwaiting("")
	cfg.Checkpoint.Directory = filepath.Join(dir, "ckpt")
	if err := withService(t, vfs.OS, 1, cfg, nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("ckpt/step_10", filepath.Join(dir, "here")); err != nil {
		t.Fatal(err)
	}
	cfg.RestartFrom = filepath.Join(dir, "here")
	err := withService(t, vfs.OS, 2, cfg, nil, func(s session) error {
		path, err := s.service.Save(context.Background(), s.solver.solver())
		return wantPath(path, err, filepath.Join(dir, "ckpt", "step_10"))
	})
	if err != nil {
		t.Error(err)
	}
}

// outcomes are what MaybeSave says at each of some increments.
func outcomes(t *testing.T, cfg Config, ranks int, n ...int64) []Outcome {
	t.Helper()
	var list []Outcome
	err := withService(t, newFS(t), ranks, cfg, nil, func(s session) error {
		for _, i := range n {
			if err := s.c.Agree(context.Background(), s.solver.advance(i)); err != nil {
				return err
			}
			out, err := s.service.MaybeSave(context.Background(), s.solver.solver())
			if err != nil {
				return err
			}
			if s.c.Rank() == 0 {
				list = append(list, out)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// No save is reported where there was none: of the initial state, or of the same one again.
func TestMaybeSaveSaysWhatItDid(t *testing.T) {
	saved := func(n int64) Outcome { return Outcome{Saved: true, Path: "/data/ckpt/" + StepName(n)} }
	got := outcomes(t, unwaiting(""), 2, 0, 9, 10, 10, 11, 20)
	want := []Outcome{{}, {}, saved(10), {}, {}, saved(20)}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, every := range []int64{0, -1} {
		cfg := unwaiting("")
		cfg.Checkpoint.Every, cfg.Checkpoint.EverySeconds = every, -1
		if got := outcomes(t, cfg, 2, 0, 1, 2); fmt.Sprint(got) != fmt.Sprint(make([]Outcome, 3)) {
			t.Errorf("off, with every %d: got %+v", every, got)
		}
		cfg.Checkpoint.OnSignal = []string{"SIGUSR1"}
		if got := outcomes(t, cfg, 2, 0, 1, 2); fmt.Sprint(got) != fmt.Sprint(make([]Outcome, 3)) {
			t.Errorf("on a signal that never comes, with every %d: got %+v", every, got)
		}
	}
}

func TestASaveOfTheInitialStateIsNone(t *testing.T) {
	fsys := newFS(t)
	err := withService(t, fsys, 2, unwaiting(""), nil, func(s session) error {
		path, err := saveAs(s, 0, nil)
		return wantPath(path, err, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys)
}

// Each service that was closed can be closed again, and others go on.
func TestCloseGivesTheDirectoryBackOnce(t *testing.T) {
	fsys := newFS(t)
	err := withService(t, fsys, 1, unwaiting(""), nil, func(s session) error {
		s.service.Close()
		other := withService(t, fsys, 1, unwaiting(""), nil, func(o session) error {
			s.service.Close()
			wantError(t, newService(t, fsys, 1, unwaiting("")), ErrInUse)
			return nil
		})
		return errors.Join(other, s.c.Meet(context.Background()))
	})
	if err != nil {
		t.Error(err)
	}
}

// The tolerance is on the scale of the run: seconds or femtoseconds.
func TestADerivedClockIsComparedOnItsOwnScale(t *testing.T) {
	table := func(times ...float64) timeTable { return timeTable{times: times} }
	for _, tc := range []struct {
		name  string
		clock DerivedClock
		n     int64
		time  float64
		ok    bool
	}{
		{"ten times the step of a run in picoseconds", &computingClock{step: 1e-12}, 100, 1e-11, false},
		{"the same up to rounding", &computingClock{step: 1e-13}, 100, 1e-11 * (1 + 5e-10), true},
		{"past the tolerance", &computingClock{step: 1e-13}, 100, 1e-11 * (1 + 2e-9), false},
		{"a large time", &computingClock{step: 1e6}, 1000, 1e9 * (1 + 5e-10), true},
		{"zero up to rounding of the step", table(-0.1, 2.7e-17), 1, 0, true},
		{"zero, and no rounding of the step", table(-0.1, 2e-10), 1, 0, false},
		{"the beginning, by the next step", table(1e-11, 0.1), 0, 0, true},
		{"the beginning, too late", table(1e-9, 0.1), 0, 0, false},
		{"equal, with no step", table(0, 0), 1, 0, true},
		{"equal, with an infinite step", table(math.Inf(-1), 3), 1, 3, true},
		{"an infinite step is no scale", table(math.Inf(-1), 3), 1, 4, false},
		{"equal, with a step that is no number", table(math.NaN(), 3), 1, 3, true},
		{"a time that is no number", table(0, math.NaN()), 1, 3, false},
		{"an infinite time", table(0, math.Inf(1)), 1, 3, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := acceptClock(tc.clock, Metadata{AcceptedIncrement: tc.n, AcceptedTime: tc.time})
			if tc.ok && err != nil || !tc.ok && !errors.Is(err, ErrMismatch) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// timeTable has times that follow no rule, and panics beyond them.
type timeTable struct{ times []float64 }

func (c timeTable) Restore(int64, float64) error { return nil }
func (c timeTable) Accepted() (int64, float64)   { return 0, 0 }
func (c timeTable) TimeAt(n int64) float64       { return c.times[n] }

func TestASaveWithoutADirectoryIsRefused(t *testing.T) {
	fsys := newFS(t)
	cfg := unwaiting("")
	cfg.Checkpoint.Directory = ""
	before := fsys.Dump()
	err := withService(t, fsys, 2, cfg, nil, func(s session) error {
		_, err := saveAs(s, 10, nil)
		return err
	})
	wantError(t, err, ErrInput, "no checkpoint.directory")
	sameFiles(t, fsys, before)
}

// Where the increment alone says when, all ranks know it.
func TestMaybeSaveTalksToOtherRanksOnlyWhenItMust(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(k *CheckpointConfig)
		talks  int
	}{
		"increments": {func(k *CheckpointConfig) {}, 0},
		"off":        {func(k *CheckpointConfig) { k.Every = 0 }, 0},
		"seconds":    {func(k *CheckpointConfig) { k.EverySeconds = 1e6 }, 1},
		"signals":    {func(k *CheckpointConfig) { k.OnSignal = []string{"SIGUSR2"} }, 1},
	} {
		cfg := unwaiting("")
		tc.change(&cfg.Checkpoint)
		err := withService(t, newFS(t), 2, cfg, nil, func(s session) error {
			before := s.c.Collectives()
			if _, err := s.service.MaybeSave(context.Background(), Solver{Clock: &testClock{increment: 9}}); err != nil {
				return err
			}
			if got := s.c.Collectives() - before; got != tc.talks {
				return fmt.Errorf("%s: %d messages, want %d", name, got, tc.talks)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// The seconds count from the restart on, and a save that they make due is no stop.
func TestSecondsCountFromTheRestart(t *testing.T) {
	fsys := newFS(t)
	err := onRanks(t, 2, func(c *comm.Comm) error {
		ctx := context.Background()
		solver, err := newTestSolver(c, 1, "phi", "T")
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		cfg := unwaiting("")
		cfg.Checkpoint.Every, cfg.Checkpoint.EverySeconds = 0, 60
		cfg.Checkpoint.OnSignal = []string{"SIGUSR2"}
		service, err := NewService(ctx, c, cfg, Filesystem(fsys))
		if err != nil {
			return err
		}
		defer service.Close()
		now := service.since.Add(50 * time.Second) // an hour of reading, say
		service.now = func() time.Time { return now }
		if _, err := service.Restore(ctx, solver.solver()); err != nil {
			return err
		}
		for n, want := range []Outcome{{}, {Saved: true, Path: "/data/ckpt/step_2"}} {
			now = now.Add(40 * time.Second)
			if err := c.Agree(ctx, solver.advance(int64(n+1))); err != nil {
				return err
			}
			out, err := service.MaybeSave(ctx, solver.solver())
			if err != nil || out != want {
				return fmt.Errorf("step %d: %+v, %w, want %+v", n+1, out, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A service may be closed before the last Save, on some ranks or on all: that one takes
// the directory again, which others may have had meanwhile.
func TestASaveAfterCloseTakesTheDirectoryAgain(t *testing.T) {
	for _, closed := range [][]int{{0, 1}, {1}, {0}} {
		fsys := newFS(t)
		var log logs
		err := withService(t, fsys, 2, unwaiting(""), &log, func(s session) error {
			for _, rank := range closed {
				if s.c.Rank() == rank {
					s.service.Close()
				}
			}
			if err := s.c.Meet(context.Background()); err != nil {
				return err
			}
			if closed[0] == 0 && s.c.Rank() == 0 {
				if err := newService(t, fsys, 1, unwaiting("")); err != nil {
					t.Errorf("closed on ranks %v: another service: %v", closed, err)
				}
			}
			if path, err := saveAs(s, 10, nil); err != nil || path != "/data/ckpt/step_10" {
				return fmt.Errorf("closed on ranks %v: %q, %w", closed, path, err)
			}
			if s.c.Rank() == 0 {
				wantError(t, newService(t, fsys, 1, unwaiting("")), ErrInUse)
			}
			return s.c.Meet(context.Background())
		})
		if err != nil {
			t.Error(err)
		}
		wantNames(t, fsys, "step_10")
		if got := warnings(&log); got != nil {
			t.Errorf("closed on ranks %v: warnings %q", closed, got)
		}
	}
}

func TestADirectoryThatIsGoneIsMadeAnew(t *testing.T) {
	fsys := newFS(t)
	err := withService(t, fsys, 2, unwaiting(""), nil, func(s session) error {
		if err := steps(10)(s); err != nil {
			return err
		}
		if s.c.Rank() == 0 {
			if err := vfs.RemoveAll(fsys, "/data/ckpt"); err != nil {
				t.Error(err)
			}
		}
		return steps(20)(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_20")
}
