//go:build hdf5

package runfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

var errTorn = errors.New("the bundle is torn")

func init() { comm.Register("runfile.errTorn", errTorn) }

// A shelf has the bundles of a run, as a service keeps them: a load sets newer ones aside,
// and one that is there is not replaced. Each rank has its own.
type shelf struct {
	there  map[string]float64 // bundles by name
	bad    map[string]error   // those that can't be loaded
	loads  []string           // that were tried
	before int                // of these in earlier jobs
}

func newShelf() *shelf { return &shelf{there: map[string]float64{}, bad: map[string]error{}} }

// job is a configuration of one job of a run of a solver, with the bundles.
func (b *shelf) job(s *cellSolver, t testing.TB, dir string, now func() float64) Config {
	cfg := s.config(dir)
	cfg.Bundle = func(context.Context) (string, error) {
		name := fmt.Sprintf("step_%v", now())
		if _, ok := b.there[name]; ok {
			return "", fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
		b.there[name] = now()
		delete(b.bad, name)
		return name, nil
	}
	cfg.LoadBundle = func(_ context.Context, start Start) error {
		name := start.Bundles["phi"]
		b.loads = append(b.loads, name)
		time, ok := b.there[name]
		if !ok {
			return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		if err := b.bad[name]; err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if time != start.Time || start.State[0] != time || start.Bundles["heat"] != name {
			return fmt.Errorf("the bundle of %v s is to be loaded for %+v", time, start)
		}
		for other, at := range b.there {
			if at > time {
				delete(b.there, other)
			}
		}
		s.set(t, time)
		return nil
	}
	return cfg
}

// run runs one job of a run, over some files, until it is killed after some steps, if
// ever.
func (b *shelf) run(t testing.TB, c *comm.Comm, dir string, fsys vfs.FS, change func(*Config), killed int) (*Session, error) {
	t.Helper()
	ctx := t.Context()
	b.before = len(b.loads)
	s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 1, false)
	defer s.free(t)
	var run *Session
	cfg := b.job(s, t, dir, func() float64 { return run.time })
	if change != nil {
		change(&cfg)
	}
	run, err := open(ctx, c, cfg, diskWith(cfg, fsys), time.Now)
	if err != nil {
		return nil, err
	}
	if run.Start().Resumed {
		s.check(t, "what was loaded", run.Start().Time)
	} else {
		s.set(t, 0)
	}
	err = run.SaveState(ctx, []float64{run.time})
	for out := (Outcome{}); err == nil && !run.Done() && !out.Stop; killed-- {
		if killed == 0 {
			run.stopListening()
			run.fields.close()
			return run, run.unlock() // and nothing else
		}
		if err = s.step(ctx, t, run); err == nil {
			out, err = run.Checkpoint(ctx, []float64{run.time}, nil)
		}
	}
	return run, errors.Join(err, run.Close(ctx))
}

// checkJoined compares what a run has written with a run without a stop.
func checkJoined(t testing.TB, dir string) {
	t.Helper()
	out := joinedOnDisk(t, dir)
	if !slices.Equal(out.Times, []float64{0, 1, 2, 3, 4, 5}) || !slices.Equal(out.Statistics.Time, []float64{1, 2, 3, 4, 5}) {
		t.Fatalf("saved times are %v, those of the attempts %v", out.Times, out.Statistics.Time)
	}
	cells := make([]float64, seriesDomain.Cells())
	for i, time := range out.Times {
		if err := out.ReadField(t.Context(), "phi", i, seriesDomain.Box(), cells); err != nil {
			t.Fatal(err)
		}
		for n, got := range cells {
			if want := phiAt(time, n%7, n/7%5, n/35); got != want || out.States[i][0] != time {
				t.Fatalf("cell %d of phi at %v s is %v, want %v; the state is %v", n, time, got, want, out.States[i])
			}
		}
	}
	for _, file := range []string{CheckpointFile(dir, "run"), PreviousFile(dir, "run")} {
		if _, err := Verify(t.Context(), file); err != nil {
			t.Error(err)
		}
	}
}

// A job of a run has so many steps from one checkpoint to the next, until it stops, if it is
// not 0, and until it is killed, if it is not negative. -2 stands for a kill between the
// segment and the checkpoint.
type job struct{ every, stop, killed int }

// What a run has when the bundle of its last checkpoint is lost.
var lostBundles = []struct {
	name    string
	jobs    []job
	last    string // the bundle that is lost
	good    string
	segment int // that goes on
	aside   []string
}{
	{"both checkpoints of a killed segment", []job{{1, 0, 3}}, "step_3", "step_2", 2, nil},
	{"both checkpoints of a stopped segment", []job{{2, 3, -1}}, "step_3", "step_2", 2, nil},
	{"the first checkpoint of a segment", []job{{2, 2, -1}, {2, 0, 2}}, "step_4", "step_2", 2, []string{"run.segment0002.h5"}},
	{"checkpoints of the second segment", []job{{1, 1, -1}, {1, 2, -1}}, "step_3", "step_2", 3, nil},
	{"a segment without a checkpoint behind it", []job{{2, 2, -1}, {1, 1, -1}, {9, 0, -2}}, "step_3", "step_2", 2,
		[]string{"run.segment0002.h5", "run.segment0003.h5"}},
	{"one without a checkpoint behind that of both", []job{{1, 3, -1}, {9, 0, -2}}, "step_3", "step_2", 2, []string{"run.segment0002.h5"}},
}

// lose makes a run whose last bundle is lost.
func lose(t testing.TB, c *comm.Comm, dir string, jobs []job) *shelf {
	t.Helper()
	b := newShelf()
	for _, j := range jobs {
		_, err := b.run(t, c, dir, vfs.OS, func(cfg *Config) {
			cfg.Checkpoint.Steps, cfg.Stop.Steps = int64(j.every), int64(j.stop)
			if j.killed == -2 {
				cfg.TimePoints = cfg.TimePoints[:5]
				cfg.Bundle = func(context.Context) (string, error) { return "", errTorn }
			}
		}, j.killed)
		if j.killed == -2 && errors.Is(err, errTorn) {
			err = nil
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// A run whose last bundle can't be loaded goes on from the checkpoint before, and its
// output is that of an uninterrupted one. Nothing is lost: what is computed again is kept
// under other names.
func TestARunGoesBackToTheCheckpointBefore(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		for i, tc := range lostBundles {
			for _, gone := range []bool{false, true}[:1+i/4] { // a bundle that isn't there is no other case
				dir := filepath.Join(t.TempDir(), fmt.Sprint(i, gone))
				b := lose(t, c, dir, tc.jobs)
				if gone {
					delete(b.there, tc.last)
				} else if c.Rank() == c.Size()-1 { // one rank finds out
					b.bad[tc.last] = errTorn
				}
				var log bytes.Buffer
				run, err := b.run(t, c, dir, vfs.OS, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) }, -1)
				if err != nil {
					t.Fatalf("%s: %v", tc.name, err)
				}
				start := run.Start()
				if start.Segment != tc.segment || start.Bundles["phi"] != tc.good || filepath.Base(start.File) != "run.checkpoint.prev.h5" {
					t.Errorf("%s: it starts with %+v", tc.name, start)
				}
				if got := b.loads[b.before:]; !slices.Equal(got, []string{tc.last, tc.good}) {
					t.Errorf("%s: loaded are %q", tc.name, got)
				}
				if c.Rank() > 0 {
					continue
				}
				for _, text := range []string{"passed over for the one before", tc.last, "run.checkpoint.h5", "run.checkpoint.prev.h5"} {
					if !strings.Contains(log.String(), text) {
						t.Errorf("%s: the log lacks %q: %s", tc.name, text, log.String())
					}
				}
				checkJoined(t, dir)
				for _, name := range append(tc.aside, "run.checkpoint.h5") {
					if _, err := os.Stat(filepath.Join(dir, name+".superseded")); err != nil {
						t.Errorf("%s: %v", tc.name, err)
					}
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*.superseded*")); len(left) != len(tc.aside)+1 {
					t.Errorf("%s: set aside are %q", tc.name, left)
				}
			}
		}
	})
}

// A job that goes back and is killed, before whichever change of a name, leaves a
// checkpoint from which the next one goes on.
func TestKilledAfterGoingBack(t *testing.T) {
	tc := lostBundles[4]
	from := t.TempDir()
	lost := lose(t, comm.Self(), from, tc.jobs)
	lost.bad[tc.last] = errTorn
	// What names stand for changes by these, and by nothing else.
	kinds := []vfs.Kind{vfs.OpRename, vfs.OpRenameNoReplace, vfs.OpRemove, vfs.OpSyncDir}
	var ops []vfs.Op // of the job that nobody kills
	killed := 0
	for call := -1; call < len(ops); call++ {
		if call >= 0 && !slices.Contains(kinds, ops[call].Kind) {
			continue
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		b := &shelf{there: maps.Clone(lost.there), bad: maps.Clone(lost.bad)}
		in := vfs.NewInject(vfs.OS)
		if call >= 0 {
			in.FailFrom(call, errKilled)
		}
		_, err := b.run(t, comm.Self(), dir, in, func(cfg *Config) { cfg.Stop.Steps = 1 }, -1)
		trace := strings.Join(in.Trace(), "\n")
		if call < 0 {
			if ops = in.Ops(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if killed++; !errors.Is(err, errKilled) {
			t.Fatalf("killed at call %d: %v\n%s", call, err, trace)
		}
		if _, err := b.run(t, comm.Self(), dir, vfs.OS, func(cfg *Config) { cfg.Checkpoint.Steps = 9 }, -1); err != nil {
			t.Fatalf("after a kill at call %d: %v\n%s", call, err, trace)
		}
		checkJoined(t, dir)
		// The bundle that is lost is none of those that checkpoints name now.
		if b.bad[tc.last] != nil && b.there[tc.last] != 0 {
			t.Fatalf("after a kill at call %d the bundles are %v\n%s", call, b.there, trace)
		}
	}
	if killed < 10 {
		t.Errorf("it is killed at %d calls alone", killed)
	}
}

// Where no checkpoint is of use, the error says what each of them is and how to go on, and
// nothing has changed.
func TestNoCheckpointToGoBackTo(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		rank := fmt.Sprintf("rank %d: ", c.Size()-1)
		one := map[string]error{"step_3": errTorn}
		for i, tc := range []struct { // in the same order on all ranks
			name   string
			jobs   []job
			lost   map[string]error // on the last rank
			edit   func(dir string) error
			change func(dir string, cfg *Config)
			loads  []string
			is     error
			texts  []string
		}{
			{"both bundles", []job{{1, 3, -1}}, map[string]error{"step_3": errTorn, "step_2": errTorn}, nil, nil, []string{"step_3", "step_2"},
				ErrResume, []string{
					"run.checkpoint.h5, whose fields are in step_3: " + rank + "step_3: the bundle is torn; and ",
					"run.checkpoint.prev.h5, whose fields are in step_2: " + rank + "step_2: the bundle is torn (bring a bundle back, or start anew",
				}},
			{"the only one", []job{{9, 3, -1}}, one, nil, nil, []string{"step_3"},
				ErrResume, []string{"step_3: the bundle is torn; and there is no checkpoint before it (bring a bundle back"}},
			{"a checkpoint before that is none", []job{{1, 3, -1}}, one, func(dir string) error {
				return os.WriteFile(PreviousFile(dir, "run"), []byte("nothing"), 0o666)
			}, nil, []string{"step_3"}, ErrResume, []string{"step_3: the bundle is torn; and the checkpoint before can't be read: ", "run.checkpoint.prev.h5", "(bring a bundle back"}},
			{"a state that is refused", []job{{1, 3, -1}}, map[string]error{"step_3": fmt.Errorf("another model: %w", ErrResume)}, nil, nil, []string{"step_3"},
				ErrResume, []string{"another model"}},
			{"a bundle that a node doesn't see", []job{{1, 3, -1}}, map[string]error{"step_3": onedir.ErrNotSeen}, nil, nil, []string{"step_3"},
				onedir.ErrNotSeen, nil},
			{"a bundle whose directory another job holds", []job{{1, 3, -1}}, map[string]error{"step_3": vfs.ErrLocked}, nil, nil, []string{"step_3"},
				vfs.ErrLocked, nil},
			{"a context that is cancelled", []job{{1, 3, -1}}, map[string]error{"step_3": context.Canceled}, nil, nil, []string{"step_3"},
				context.Canceled, nil},
			{"another number of the segment", []job{{1, 2, -1}, {9, 1, -1}}, one, nil, func(_ string, cfg *Config) { cfg.Segment = 3 },
				[]string{"step_3"}, ErrResume, []string{"the bundle is torn; and ", "prev.h5 is of segment 1, where this is to be segment 3"}},
			{"a file that was named", []job{{1, 3, -1}}, one, nil, func(dir string, cfg *Config) {
				cfg.Name, cfg.Resume, cfg.From = "other", false, CheckpointFile(dir, "run")
			}, []string{"step_3"}, ErrResume, []string{"the bundle is torn"}},
			{"the one before, which is the last", []job{{1, 3, -1}}, map[string]error{"step_2": errTorn}, func(dir string) error {
				return os.Remove(CheckpointFile(dir, "run"))
			}, nil, []string{"step_2"}, ErrResume, []string{"prev.h5, whose fields are in step_2"}},
		} {
			ctx, dir := t.Context(), filepath.Join(t.TempDir(), fmt.Sprint(i))
			b := lose(t, c, dir, tc.jobs)
			if c.Rank() == c.Size()-1 {
				b.bad = tc.lost
			}
			if tc.edit != nil {
				if err := c.OnRoot(ctx, nil, func() error { return tc.edit(dir) }); err != nil {
					t.Fatal(err)
				}
			}
			before := mustNames(t, dir)
			_, err := b.run(t, c, dir, vfs.OS, func(cfg *Config) {
				if tc.change != nil {
					tc.change(dir, cfg)
				}
			}, -1)
			if !errors.Is(err, tc.is) {
				t.Errorf("%s: %v, want %v", tc.name, err, tc.is)
			}
			for _, text := range tc.texts {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %v lacks %q", tc.name, err, text)
				}
			}
			sameOnAllRanks(t, c, tc.name, err)
			if got := b.loads[b.before:]; !slices.Equal(got, tc.loads) {
				t.Errorf("%s: loaded are %q, want %q", tc.name, got, tc.loads)
			}
			if after := mustNames(t, dir); c.Rank() == 0 && !slices.Equal(withoutLocks(after), withoutLocks(before)) {
				t.Errorf("%s: %q, were %q", tc.name, after, before)
			}
		}
	})
}

// A checkpoint whose cells can't be read is refused with the way on, by hand: with it
// moved away the run goes on from the one before.
func TestTheWayBackByHand(t *testing.T) {
	dir := t.TempDir()
	s := newCellSolver(t, seriesDomain.Box(), 1, false)
	cfg := s.config(dir)
	cfg.Checkpoint.Steps, cfg.Stop.Steps = 2, 4
	run, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.advance(t.Context(), t, run)
	cfg.Stop.Steps = 0
	last := CheckpointFile(dir, "run")
	in := vfs.NewInject(vfs.OS)
	if err := in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpReadAt}, Pattern: last}); err != nil {
		t.Fatal(err)
	}
	_, err = open(t.Context(), comm.Self(), cfg, diskWith(cfg, in), time.Now)
	if want := "a run that finds " + last + " moved away goes on from the checkpoint before"; !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %q", err, want)
	}
	if err := os.Rename(last, last+".away"); err != nil {
		t.Fatal(err)
	}
	if run, err = Open(t.Context(), comm.Self(), cfg); err != nil {
		t.Fatal(err)
	}
	s.check(t, "the checkpoint before", 2)
	s.advance(t.Context(), t, run)
	checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
}

// All ranks load bundles, or none does.
func TestBundlesAreLoadedOnSomeRanks(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		cfg := decayConfig()
		if c.Rank() == 1 {
			cfg.LoadBundle = func(context.Context, Start) error { return nil }
		}
		_, err := open(t.Context(), c, cfg, newMemory(), newClock().now)
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "whether bundles are loaded") {
			t.Error(err)
		}
	})
}

func withoutLocks(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".lock") })
}
