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
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// spoil makes every n-th cell of the fields NaN or infinite, counted over the domain; of 0
// none are.
func (s *cellSolver) spoil(t testing.TB, phi, heat int) {
	t.Helper()
	at := func(every int) func(time float64, x, y, z int) float64 {
		return func(time float64, x, y, z int) float64 {
			n := x + seriesDomain.Size[0]*(y+seriesDomain.Size[1]*z)
			if every == 0 || n%every != 0 {
				return float64(n)
			}
			return []float64{math.NaN(), math.Inf(-1), math.Inf(1)}[n/every%3]
		}
	}
	fill(t, s.phi, 0, at(phi))
	fill(t, s.heat, 0, at(heat))
}

func spoilt(every int) int64 {
	if every == 0 {
		return 0
	}
	return (seriesDomain.Cells()-1)/int64(every) + 1
}

// spoiltStep makes a step to a state that is not finite, and its checkpoint.
func (s *cellSolver) spoiltStep(t testing.TB, run *Session, phi, heat int, e float64) error {
	next := run.NextTime()
	run.Attempt(Attempt{Time: next, StepLength: 1, Accepted: true, WallTime: 1})
	s.spoil(t, phi, heat)
	err := run.SaveState(t.Context(), []float64{e})
	if err == nil {
		_, err = run.Checkpoint(t.Context(), []float64{e}, nil)
	}
	return err
}

// readBoth reads the counts of the last checkpoint and of the one before.
func readBoth(t testing.TB, dir string) (last, previous *Checkpoint) {
	t.Helper()
	var both [2]*Checkpoint
	for i, path := range []string{CheckpointFile(dir, "run"), PreviousFile(dir, "run")} {
		o, err := newOptions(nil)
		if err == nil {
			both[i], err = o.checkpointAt(t.Context(), path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return both[0], both[1]
}

// The cells of fields are counted, exactly, however they are cut, and wherever they are.
func TestACheckpointTellsHowManyNumbersAreNotFinite(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		for _, name := range slices.Sorted(maps.Keys(cuts)) { // on all ranks alike
			for _, device := range []bool{false, true} {
				dir := filepath.Join(t.TempDir(), fmt.Sprint(name, device))
				s := newCellSolver(t, cuts[name](c.Size())[c.Rank()], 1, device)
				cfg := s.config(dir)
				cfg.Checkpoint.Steps = 1
				run, err := open(t.Context(), c, cfg, smallDisk(cfg, vfs.OS), time.Now)
				if err != nil {
					t.Fatal(err)
				}
				s.set(t, 0)
				err = run.SaveState(t.Context(), []float64{0})
				for _, step := range []struct {
					phi, heat int
					e         float64
				}{{0, 0, 1}, {1, 7, 1}, {0, 3, math.Inf(1)}} {
					if err == nil {
						err = s.spoiltStep(t, run, step.phi, step.heat, step.e)
					}
					if err != nil {
						t.Fatal(err)
					}
					if c.Rank() > 0 {
						continue
					}
					want := map[string]int64{}
					for name, n := range map[string]int64{"phi": spoilt(step.phi), "heat": spoilt(step.heat)} {
						if n > 0 {
							want[name] = n
						}
					}
					if math.IsInf(step.e, 0) {
						want["E"] = 1
					}
					last, _ := readBoth(t, dir)
					if last.NonFinite == nil || !maps.Equal(last.NonFinite, want) {
						t.Errorf("%s, device %t: counts are %v, want %v", name, device, last.NonFinite, want)
					}
				}
				if err := run.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.free(t)
			}
		}
	})
}

func TestARunThatBlewUpGoesOnFromWhatWasFinite(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		dir := filepath.Join(t.TempDir(), "run")
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
		defer s.free(t)
		var log bytes.Buffer
		cfg := s.config(dir)
		cfg.Checkpoint.Steps = 1
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		run, err := open(t.Context(), c, cfg, smallDisk(cfg, vfs.OS), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.set(t, 0)
		err = run.SaveState(t.Context(), []float64{0})
		if err == nil {
			err = s.step(t.Context(), t, run)
		}
		if err == nil {
			_, err = run.Checkpoint(t.Context(), []float64{1}, nil)
		}
		for range 3 {
			if err == nil {
				err = s.spoiltStep(t, run, 1, 1, 5)
			}
		}
		if err = errors.Join(err, run.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if c.Rank() == 0 {
			last, previous := readBoth(t, dir)
			if last.Time != 4 || previous.Time != 1 {
				t.Errorf("checkpoints are at %v and %v", last.Time, previous.Time)
			}
			if n := strings.Count(log.String(), "not finite"); n != 1 {
				t.Errorf("%d warnings:\n%s", n, log.String())
			}
		}
		if err := c.Meet(t.Context()); err != nil {
			t.Fatal(err)
		}
		run, err = open(t.Context(), c, cfg, smallDisk(cfg, vfs.OS), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if start := run.Start(); start.Time != 1 || start.State[0] != 1 || start.Segment != 2 {
			t.Errorf("the start is %+v", start)
		}
		s.check(t, "what was finite", 1)
		s.advance(t.Context(), t, run)
		if c.Rank() == 0 {
			if !strings.Contains(log.String(), "passed over for the one before, since it is not finite") {
				t.Errorf("no warning:\n%s", log.String())
			}
			checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
			if _, err := os.Stat(CheckpointFile(dir, "run") + ".superseded"); err != nil {
				t.Error(err)
			}
		}
	})
}

// Cells that are refused are found before anything is written.
func TestRefusedCellsOfARun(t *testing.T) {
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		dir := filepath.Join(t.TempDir(), "run")
		s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 1, false)
		defer s.free(t)
		cfg := s.config(dir)
		cfg.Checkpoint.Steps, cfg.SaveTimes = 1, []float64{}
		cfg.Checkpoint.NonFinite = RefuseNonFinite
		cfg.Checkpoint.NonFiniteUnknowns = map[string]NonFinitePolicy{"heat": IgnoreNonFinite}
		run, err := open(t.Context(), c, cfg, smallDisk(cfg, vfs.OS), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.spoiltStep(t, run, 0, 2, 1); err != nil {
			t.Fatal(err)
		}
		files := func() (list []string) {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				info, err := e.Info()
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, fmt.Sprint(e.Name(), info.Size(), info.ModTime()))
			}
			return list
		}
		if err := c.Meet(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := files()
		err = s.spoiltStep(t, run, 50, 2, 1)
		want := fmt.Sprintf(`checkpoint of run run: NaN or infinite numbers are refused: %d numbers of unknown "phi"`, spoilt(50))
		if !errors.Is(err, ErrNonFinite) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if err := c.Meet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := files(); !slices.Equal(before, after) {
			t.Errorf("files are %q, were %q", after, before)
		}
		if err := run.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// What is in a bundle is judged by the bundle.
func TestCheckpointsOfBundlesThatAreNotFinite(t *testing.T) {
	dir := t.TempDir()
	s := newCellSolver(t, seriesDomain.Box(), 1, false)
	defer s.free(t)
	said := map[string]string{
		"step_1": `{"fieldstone": {"non_finite": {}}}`,
		"step_2": `{"fieldstone": {"non_finite": {"phi": 3, "other": 4}}}`,
		"step_3": `{"fieldstone": {}}`,
		"step_4": `{"fieldstone": {"non_finite": {"heat": 1}}}`,
		"step_5": `[`,
	}
	cfg := s.config(dir)
	cfg.Checkpoint.Steps, cfg.SaveTimes = 1, []float64{}
	var run *Session
	cfg.Bundle = func(ctx context.Context) (string, error) {
		name := fmt.Sprintf("step_%v", run.time)
		err := os.Mkdir(filepath.Join(dir, name), 0o777)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name, "metadata.json"), []byte(said[name]), 0o666)
		}
		if run.time == 4 { // by the whole path
			name = filepath.Join(dir, name)
		}
		return name, err
	}
	run, err := open(t.Context(), comm.Self(), cfg, diskWith(cfg, vfs.OS), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]int64{{}, {"phi": 3}, {}, {"heat": 1}, {}} {
		run.Attempt(Attempt{Time: run.NextTime(), StepLength: 1, Accepted: true})
		if _, err := run.Checkpoint(t.Context(), []float64{1}, nil); err != nil {
			t.Fatal(err)
		}
		k, err := ReadCheckpoint(t.Context(), dir, "run")
		if err != nil || !maps.Equal(k.NonFinite, want) {
			t.Errorf("checkpoint %d: %v, %v, want %v", i+1, k.NonFinite, err, want)
		}
	}
	if err := run.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCountsOfACheckpointAreReadAsWritten(t *testing.T) {
	dir := t.TempDir()
	for _, counts := range []map[string]int64{nil, {}, {"scalar": 1, "field": 1 << 40}} {
		k := checkpointAt(t, 2.5)
		k.NonFinite = counts
		names := k.Layout.names()
		if len(counts) > 0 {
			k.NonFinite = map[string]int64{names[0]: 1, names[len(names)-1]: 1 << 40}
		}
		if err := WriteCheckpoint(t.Context(), dir, "run", k, Fields(fieldValues)); err != nil {
			t.Fatal(err)
		}
		got, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
		if err != nil || !maps.Equal(got.NonFinite, k.NonFinite) || (got.NonFinite == nil) != (k.NonFinite == nil) {
			t.Errorf("%v, %v, want %v", got.NonFinite, err, k.NonFinite)
		}
	}
	for _, counts := range []map[string]int64{{"nobody": 1}, {checkpointAt(t, 2.5).Layout.names()[0]: -1}} {
		k := checkpointAt(t, 2.5)
		k.NonFinite = counts
		if err := WriteCheckpoint(t.Context(), dir, "run", k, Fields(fieldValues)); !errors.Is(err, ErrInput) {
			t.Errorf("%v: %v", counts, err)
		}
	}
	// A count that is none.
	path := CheckpointFile(dir, "run")
	err := change(path, func(f *h5.File) error { return h5.Write(f, h5.Join(nonFiniteGroup, "bad"), []int64{-3}) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadState(t.Context(), path); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), "non_finite/bad: ") {
		t.Error(err)
	}
}

// TestTheFiniteCheckpointWhoseBundleIsGone: others than the session keep bundles, and may have
// removed that of the checkpoint before. Then the last one is better than none.
func TestTheFiniteCheckpointWhoseBundleIsGone(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		dir := filepath.Join(t.TempDir(), "run")
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
		defer s.free(t)
		var log bytes.Buffer
		var run *Session
		var loads []string
		cfg := s.config(dir)
		cfg.Checkpoint.Steps = 1
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		cfg.Bundle = func(context.Context) (string, error) { return fmt.Sprintf("step_%v", run.time), nil }
		cfg.LoadBundle = func(_ context.Context, start Start) error {
			loads = append(loads, start.Bundles["phi"])
			if start.Time == 1 {
				return fmt.Errorf("step_1: %w", fs.ErrNotExist)
			}
			s.set(t, start.Time)
			return nil
		}
		run, err := open(t.Context(), c, cfg, smallDisk(cfg, vfs.OS), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.set(t, 0)
		err = run.SaveState(t.Context(), []float64{0})
		for _, state := range []float64{1, math.NaN(), math.NaN()} {
			if err == nil {
				err = s.step(t.Context(), t, run)
			}
			if err == nil {
				_, err = run.Checkpoint(t.Context(), []float64{state}, nil)
			}
		}
		if err = errors.Join(err, run.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		run, err = open(t.Context(), c, cfg, smallDisk(cfg, vfs.OS), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if start := run.Start(); start.Time != 3 || start.Segment != 2 {
			t.Errorf("the start is %+v", start)
		}
		if !slices.Equal(loads, []string{"step_1", "step_3"}) {
			t.Errorf("loaded are %q", loads)
		}
		if c.Rank() == 0 && !strings.Contains(log.String(), "goes on from the last checkpoint, though it is not finite") {
			t.Errorf("no warning:\n%s", log.String())
		}
		if out := s.advance(t.Context(), t, run); !out.Done {
			t.Errorf("the run ends with %+v", out)
		}
	})
}
