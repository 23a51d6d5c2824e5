//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/publish"
)

// halting is a field that, when it is armed, never gives its cells.
type halting struct {
	field.Any
	armed *bool
}

func (h halting) Source() (pack.Source, error) {
	s, err := h.Any.Source()
	return haltingSource{s, h.armed}, err
}

type haltingSource struct {
	pack.Source
	armed *bool
}

func (s haltingSource) ReadCells(dst []byte, first int64) error {
	if *s.armed {
		fmt.Println("halted")
		time.Sleep(time.Hour)
	}
	return s.Source.ReadCells(dst, first)
}

// jobTest is what a program in a job of several ranks gives to helpers of tests: an
// error ends it.
type jobTest struct {
	testing.TB
	ctx context.Context
}

func (jobTest) Helper()                             {}
func (t jobTest) Context() context.Context          { return t.ctx }
func (jobTest) Fatal(args ...any)                   { panic(fmt.Sprint(args...)) }
func (jobTest) Fatalf(format string, args ...any)   { panic(fmt.Sprintf(format, args...)) }
func (t jobTest) Error(args ...any)                 { t.Fatal(args...) }
func (t jobTest) Errorf(format string, args ...any) { t.Fatalf(format, args...) }

func init() {
	// A run with fields that stops in the middle of a write on the last rank: args are
	// the directory, the time, and whether it is a state or a checkpoint.
	mpitest.Register("halting run", func(c *comm.Comm, args []string) error {
		ctx := context.Background()
		t := jobTest{ctx: ctx}
		at, err := strconv.ParseFloat(args[1], 64)
		if err != nil {
			return err
		}
		s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 1, false)
		armed := false
		cfg := s.config(args[0])
		cfg.Fields[1].Field = halting{s.heat, &armed}
		run, err := Open(ctx, c, cfg)
		if err != nil {
			return err
		}
		s.set(t, 0)
		err = run.SaveState(ctx, []float64{0})
		for err == nil && !run.Done() {
			mine := c.Rank() == c.Size()-1 && run.NextTime() == at
			armed = mine && args[2] == "state"
			if err = s.step(ctx, t, run); err == nil {
				armed = mine && args[2] == "checkpoint"
				_, err = run.Checkpoint(ctx, []float64{run.time}, nil)
			}
		}
		return errors.Join(err, run.Close(ctx))
	})

	// A run whose checkpoints name bundles of a service. With a time as the second
	// argument it halts when the bundle of that time is there, before the checkpoint.
	mpitest.Register("run with bundles", func(c *comm.Comm, args []string) error {
		t := jobTest{ctx: context.Background()}
		at := math.Inf(1)
		if len(args) > 1 {
			var err error
			if at, err = strconv.ParseFloat(args[1], 64); err != nil {
				return err
			}
		}
		return runWithBundles(t, c, args[0], at)
	})
}

// Ranks that are killed while they write leave the files as they were, and the next run
// goes on.
func TestKilledWhileFieldsAreWritten(t *testing.T) {
	for _, tc := range []struct {
		name, at, what string
		ranks          int
		all            bool
		saved          []float64 // in the files
	}{
		{"one rank, before the first checkpoint", "1", "state", 2, false, nil},
		{"one rank, saving a state", "3", "state", 3, false, []float64{0, 1, 2}},
		{"all ranks, saving a state", "3", "state", 2, true, []float64{0, 1, 2}},
		{"one rank, writing a checkpoint", "4", "checkpoint", 2, false, []float64{0, 1, 2, 3, 4}},
		{"all ranks, writing a checkpoint", "4", "checkpoint", 3, true, []float64{0, 1, 2, 3, 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			j := mpitest.Start(t, tc.ranks, "halting run", []string{dir, tc.at, tc.what})
			j.WaitFor("halted", 1)
			if tc.all {
				j.KillAll()
			} else {
				j.Kill(tc.ranks - 1)
			}
			j.Wait()
			k, err := ReadCheckpoint(t.Context(), dir, "run")
			if err != nil || (k == nil) != (tc.saved == nil) || k != nil && (k.Time != 2 || k.Previous) {
				t.Fatalf("the checkpoint is %+v, %v", k, err)
			}
			if tc.saved != nil {
				checkCellsIn(t, dir, tc.saved...)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) != 1 {
				t.Errorf("the working files are %q", left)
			}
			s := newCellSolver(t, seriesDomain.Box(), 2, false)
			run, err := Open(t.Context(), comm.Self(), s.config(dir))
			if err != nil {
				t.Fatal(err)
			}
			s.advance(t.Context(), t, run)
			checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
			if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
				t.Errorf("%q is left", left)
			}
		})
	}
}

// sessionClock is the clock of a service: that of a run with a step for each second.
type sessionClock struct{ time float64 }

func (c *sessionClock) Accepted() (int64, float64)          { return int64(c.time), c.time }
func (c *sessionClock) Restore(_ int64, time float64) error { c.time = time; return nil }

// runWithBundles runs or resumes a run to its end. Its fields go into the segments, and
// with each checkpoint into a bundle.
func runWithBundles(t testing.TB, c *comm.Comm, dir string, at float64) error {
	t.Helper()
	ctx := t.Context()
	s := newCellSolver(t, cuts["as it is done"](c.Size())[c.Rank()], 1, false)
	cfg := s.config(dir)
	clock := &sessionClock{}
	solver := publish.Solver{Fields: cfg.Fields, Clock: clock, Method: "cells"}
	var service *publish.Service
	cfg.Bundle = func(ctx context.Context) (string, error) {
		path, err := service.Save(ctx, solver)
		if err == nil && clock.time == at {
			if err = c.Meet(ctx); err == nil {
				fmt.Println("published")
				time.Sleep(time.Hour)
			}
		}
		return path, err
	}
	run, err := Open(ctx, c, cfg)
	if err != nil {
		return err
	}
	// The bundle that the checkpoint names is loaded. A newer one, which no checkpoint
	// names, would be in the way of the one to come.
	service, err = publish.NewService(ctx, c, publish.Config{
		RestartFrom: run.Start().Bundles["phi"],
		Checkpoint:  publish.CheckpointConfig{Every: 1, Directory: filepath.Join(dir, "bundles"), Keep: 3, Superseded: publish.SetAside},
	})
	if err != nil {
		return errors.Join(err, run.Close(ctx))
	}
	defer service.Close()
	if _, err := service.Restore(ctx, solver); err != nil {
		return errors.Join(err, run.Close(ctx))
	}
	if run.Start().Resumed {
		s.check(t, "the loaded bundle", run.Start().Time)
	} else {
		s.set(t, 0)
	}
	err = run.SaveState(ctx, []float64{run.time})
	for err == nil && !run.Done() {
		if err = s.step(ctx, t, run); err == nil {
			clock.time = run.time
			_, err = run.Checkpoint(ctx, []float64{run.time}, nil)
		}
	}
	return errors.Join(err, run.Close(ctx))
}

// A job that is killed when a bundle is published, and the checkpoint that names it is
// not written yet, goes on from the checkpoint before, on another number of ranks.
func TestBundlesOfAService(t *testing.T) {
	dir := t.TempDir()
	for i, ranks := range []int{2, 3} {
		at := 2 + 2*i
		j := mpitest.Start(t, ranks, "run with bundles", []string{dir, strconv.Itoa(at)})
		j.WaitFor("published", ranks)
		j.KillAll()
		j.Wait()
		if _, err := publish.Inspect(filepath.Join(dir, "bundles", publish.StepName(int64(at)))); err != nil {
			t.Fatal(err)
		}
		k, err := ReadCheckpoint(t.Context(), dir, "run")
		if err != nil || (k == nil) != (i == 0) || k != nil && k.Time != 2 {
			t.Fatalf("after the kill at %d s: the checkpoint is %+v, %v", at, k, err)
		}
		if i == 0 { // one more run, which gets as far as a checkpoint
			j := mpitest.Start(t, 1, "run with bundles", []string{dir, "4"})
			j.WaitFor("published", 1)
			j.KillAll()
			j.Wait()
		}
	}
	if output, exit := mpitest.Command(t, 4, "run with bundles", dir); exit != 0 {
		t.Fatalf("exit status %d: %s", exit, output)
	}
	out := joinedOnDisk(t, dir)
	if want := []float64{0, 1, 2, 3, 4, 5}; !slices.Equal(out.Times, want) {
		t.Fatalf("saved times are %v", out.Times)
	}
	cells := make([]float64, seriesDomain.Cells())
	for i, time := range out.Times {
		if err := out.ReadField(t.Context(), "phi", i, seriesDomain.Box(), cells); err != nil {
			t.Fatal(err)
		}
		for n, got := range cells {
			if want := phiAt(time, n%7, n/7%5, n/35); got != want {
				t.Fatalf("cell %d of phi at %v s is %v, want %v", n, time, got, want)
			}
		}
	}
	for _, file := range []string{CheckpointFile(dir, "run"), PreviousFile(dir, "run")} {
		k, err := ReadState(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		if there, err := publish.Inspect(k.Bundles["heat"]); err != nil || there.Metadata.AcceptedTime != k.Time {
			t.Errorf("%s at %v s: the bundle is %+v, %v", file, k.Time, there, err)
		}
	}
}

// A run on any number of ranks begins with the state of an output file, whatever form
// its fields have there.
func TestFieldsOfOutputFiles(t *testing.T) {
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		dir := t.TempDir()
		s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 2, true)
		cfg := s.config(dir)
		run, err := Open(ctx, c, cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.advance(ctx, t, run)
		from := SegmentFile(dir, "run", 1)
		for i, recoded := range []bool{false, true} {
			err := c.OnRoot(ctx, nil, func() error {
				if recoded {
					return tryPython("recode", from)
				}
				return tryPython("series", from)
			})
			if errors.Is(err, errNoPython) {
				if c.Rank() == 0 {
					t.Log("no h5py: other forms are not tested")
				}
				if recoded {
					continue
				}
			} else if err != nil {
				t.Fatal(err)
			}
			for _, state := range []int{1, 4} {
				other := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, state == 1)
				cfg := other.config(filepath.Join(dir, fmt.Sprint(i, state)))
				cfg.From, cfg.FromState = from, state
				run, err := Open(ctx, c, cfg)
				if err != nil {
					t.Fatal(err)
				}
				other.check(t, fmt.Sprintf("state %d, recoded: %v", state, recoded), float64(state-1))
				if err := run.Close(ctx); err != nil {
					t.Fatal(err)
				}
				other.free(t)
			}
			if err := c.Meet(ctx); err != nil {
				t.Fatal(err)
			}
		}
		s.free(t)
	})
}

// The fields of a run may be cut in different ways.
func TestFieldsThatAreCutDifferently(t *testing.T) {
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		dir := t.TempDir()
		solver := func(phi, heat string) *cellSolver {
			s := newCellSolver(t, cuts[phi](c.Size())[c.Rank()], 1, false)
			err := s.heat.Free()
			if err == nil {
				s.heat, err = field.New[float32](seriesDomain, cuts[heat](c.Size())[c.Rank()], field.Halo(2))
			}
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := solver("z", "x")
		run, err := Open(ctx, c, s.config(dir))
		if err != nil {
			t.Fatal(err)
		}
		s.advance(ctx, t, run)
		s.free(t)
		s = solver("x", "z")
		cfg := s.config(filepath.Join(dir, "other"))
		cfg.From, cfg.FromState = SegmentFile(dir, "run", 1), 3
		if run, err = Open(ctx, c, cfg); err != nil {
			t.Fatal(err)
		}
		s.check(t, "fields", 2)
		if err := run.Close(ctx); err != nil {
			t.Fatal(err)
		}
		s.free(t)
	})
}

// Whoever reads the files of a run while it goes on finds all that a checkpoint had.
func TestReadersOfARunningRun(t *testing.T) {
	mpitest.Run(t, []int{1, 2}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		dir := t.TempDir()
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
		cfg := s.config(dir)
		cfg.Checkpoint.Steps = 1
		cfg.TimePoints = nil
		for i := range 21 {
			cfg.TimePoints = append(cfg.TimePoints, float64(i))
		}
		run, err := Open(ctx, c, cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.set(t, 0)
		if err := run.SaveState(ctx, []float64{0}); err != nil {
			t.Fatal(err)
		}
		if err := s.step(ctx, t, run); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Checkpoint(ctx, []float64{1}, nil); err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan error, 1)
		if c.Rank() == 0 {
			go func() { done <- readAgainAndAgain(ctx, dir, stop) }()
		} else {
			done <- nil
		}
		for !run.Done() {
			if err := s.step(ctx, t, run); err != nil {
				t.Fatal(err)
			}
			if _, err := run.Checkpoint(ctx, []float64{run.time}, nil); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := run.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// readAgainAndAgain reads what a run has written, once at least.
func readAgainAndAgain(ctx context.Context, dir string, stop chan struct{}) error {
	cells := make([]float64, seriesDomain.Cells())
	for {
		k, err := ReadCheckpoint(ctx, dir, "run")
		if err != nil {
			return err
		}
		out, err := ReadRun(ctx, dir, "run")
		if err != nil {
			return err
		}
		n := len(out.Times)
		if n < k.SavedCount {
			return fmt.Errorf("the segment has %d states, a checkpoint before counted %d", n, k.SavedCount)
		}
		if err := out.ReadField(ctx, "phi", n-1, seriesDomain.Box(), cells); err != nil {
			return err
		}
		for i, got := range cells {
			if want := phiAt(out.Times[n-1], i%7, i/7%5, i/35); got != want {
				return fmt.Errorf("cell %d at %v s is %v, want %v", i, out.Times[n-1], got, want)
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

func init() { comm.Register("runfile.errNoPython", errNoPython) }
