package publish

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// runResult is what came of one start of a solver on a checkpoint directory.
type runResult struct {
	restored int64 // increment that it started from; 0: fresh
	saved    int64 // highest increment whose save returned success
}

const crashDir = "/results/ckpt"

func crashConfig() Config {
	return Config{RestartFrom: Latest, Checkpoint: CheckpointConfig{Every: 1, Directory: crashDir, Keep: 2}}
}

// runSolver starts a solver and lets it take the given number of steps. Every
// rank checks what it was restored to, cell by cell.
func runSolver(t testing.TB, fsys vfs.FS, ranks, steps int) (runResult, error) {
	t.Helper()
	return runSolverTelling(t, fsys, ranks, steps, func(int64) {})
}

// runSolverTelling tells, on rank 0, each increment whose save has returned.
func runSolverTelling(t testing.TB, fsys vfs.FS, ranks, steps int, saved func(int64)) (runResult, error) {
	t.Helper()
	var result runResult
	err := onRanks(t, ranks, func(c *comm.Comm) error {
		ctx := context.Background()
		s, err := newTestSolver(c, 1, "phi", "T")
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		service, err := NewService(ctx, c, crashConfig(), Filesystem(fsys))
		if err != nil {
			return err
		}
		defer service.Close()
		loaded, err := service.Restore(ctx, s.solver())
		if err != nil {
			return err
		}
		var n int64
		if loaded != nil {
			n = loaded.Metadata.AcceptedIncrement
			if err := c.Agree(ctx, s.check(n)); err != nil {
				return fmt.Errorf("restored: %w", err)
			}
		}
		if c.Rank() == 0 {
			result.restored = n
		}
		for range steps {
			n++
			if err := c.Agree(ctx, s.advance(n)); err != nil {
				return err
			}
			if _, err := service.MaybeSave(ctx, s.solver()); err != nil {
				return err
			}
			if c.Rank() == 0 {
				result.saved = n
				saved(n)
			}
		}
		return nil
	})
	return result, err
}

// checkInvariants is the oracle: whatever a crash or a fault left behind, every
// final name verifies, the next run restarts from the last state whose save
// returned success or a newer one, and goes on.
func checkInvariants(t testing.TB, fsys vfs.FS, ranks int, saved, newest int64) error {
	t.Helper()
	if err := verifyFinalNames(fsys); err != nil {
		return err
	}
	result, err := runSolver(t, fsys, ranks, 2)
	if err != nil {
		return fmt.Errorf("the next run: %w", err)
	}
	if result.restored < saved || result.restored > newest {
		return fmt.Errorf("the next run restarted from step %d: want %d to %d", result.restored, saved, newest)
	}
	if result.saved != result.restored+2 {
		return fmt.Errorf("the next run saved up to step %d: want %d", result.saved, result.restored+2)
	}
	if err := verifyFinalNames(fsys); err != nil {
		return fmt.Errorf("after the next run: %w", err)
	}
	entries, err := fsys.ReadDir(crashDir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{StepName(result.saved - 1), StepName(result.saved)}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		return fmt.Errorf("after the next run the directory has %q: want %q", names, want)
	}
	return nil
}

func verifyFinalNames(fsys vfs.FS) error {
	entries, err := fsys.ReadDir(crashDir)
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := ParseStepName(e.Name()); !ok {
			continue
		}
		b, err := openBundle(fsys, filepath.Join(crashDir, e.Name()))
		if err == nil {
			err = errors.Join(b.Verify(context.Background(), nil), b.Close())
		}
		if err != nil {
			return fmt.Errorf("a final name does not verify: %w", err)
		}
	}
	return nil
}

// crashStates are the states that are looked at after each operation.
func crashStates() []vfs.CrashOptions {
	states := []vfs.CrashOptions{{Keep: vfs.KeepNone}, {Keep: vfs.KeepAll}}
	seeds := uint64(4)
	if raceDetector {
		states, seeds = nil, 1
	}
	for seed := range seeds {
		states = append(states, vfs.CrashOptions{Keep: vfs.KeepRandom, Seed: seed, Torn: seed%2 == 1})
	}
	return states
}

// crashPoint is what could be left by a crash, and what was promised by then.
type crashPoint struct {
	op    vfs.Op
	state string
	fsys  *vfs.Mem
	saved int64
}

// TestACrashAfterAnyCallLosesNothing crashes the machine after each filesystem
// call of two runs, the second of which restores, publishes and removes old
// bundles. It covers publication, retention, restart and the clearing of
// leftovers.
func TestACrashAfterAnyCallLosesNothing(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		t.Run(fmt.Sprintf("ranks=%d", ranks), func(t *testing.T) {
			base := vfs.NewMem()
			if err := base.Mkdir("/results", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := base.SyncDir("/"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				base = crashRun(t, base, ranks)
			}
		})
	}
}

// crashRun lets a solver run on base, tests every crash of it, and returns the
// files as the run left them.
func crashRun(t *testing.T, base *vfs.Mem, ranks int) *vfs.Mem {
	before, err := highestStep(base)
	if err != nil {
		t.Fatal(err)
	}
	inject := vfs.NewInject(base)
	var points []crashPoint
	var saved atomic.Int64
	saved.Store(before)
	inject.After(func(op vfs.Op, err error) {
		if op.Kind.Reads() {
			return
		}
		for _, o := range crashStates() {
			points = append(points, crashPoint{op, o.String(), base.CrashClone(o), saved.Load()})
		}
		points = append(points, crashPoint{op, "killed", base.KillClone(), saved.Load()})
	})
	result, err := runSolverTelling(t, inject, ranks, 3, saved.Store)
	if err != nil {
		t.Fatal(err)
	}
	if result.restored != before || result.saved != before+3 {
		t.Fatalf("the run went from step %d to %d: want %d to %d", result.restored, result.saved, before, before+3)
	}
	if len(points) < 100 {
		t.Fatalf("only %d crash states: the calls were not seen", len(points))
	}
	for _, p := range points {
		trace := p.fsys.Dump()
		if err := checkInvariants(t, p.fsys, ranks, p.saved, result.saved); err != nil {
			t.Fatalf("crash after %v, state %s, files\n\t%s\n%v", p.op, p.state, strings.Join(trace, "\n\t"), err)
		}
	}
	t.Logf("%d crash states", len(points))
	return base.KillClone()
}

func highestStep(fsys vfs.FS) (int64, error) {
	o, _ := newOptions([]Option{Filesystem(fsys)})
	steps, err := checkpoints{o: &o, dir: crashDir}.steps()
	if err != nil || len(steps) == 0 {
		return 0, err
	}
	return steps[0], nil
}

// TestAFaultInAnyCallIsOneErrorOnAllRanks fails each filesystem call of a run in
// turn. Either the run doesn't need the call, or all ranks return the same error
// with the errno; and the oracle of the crash test holds.
func TestAFaultInAnyCallIsOneErrorOnAllRanks(t *testing.T) {
	errnos := []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT}
	if raceDetector {
		errnos = errnos[2:]
	}
	for _, errno := range errnos {
		for _, sticky := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v sticky=%t", errno, sticky), func(t *testing.T) {
				start := vfs.NewMem()
				if err := start.Mkdir("/results", 0o777); err != nil {
					t.Fatal(err)
				}
				if _, err := runSolver(t, start, 2, 2); err != nil {
					t.Fatal(err)
				}
				before, err := highestStep(start)
				if err != nil {
					t.Fatal(err)
				}
				failures := 0
				for i := 1; ; i++ {
					base := start.KillClone()
					inject := vfs.NewInject(base)
					if sticky {
						inject.FailFrom(i, errno)
					} else {
						inject.FailAt(i, errno)
					}
					result, err := runSolver(t, inject, 2, 2)
					if err != nil {
						failures++
						if !errors.Is(err, errno) {
							t.Fatalf("call %d: %v does not carry %v\n%s", i, err, errno, strings.Join(inject.Trace(), "\n"))
						}
					}
					if inject.Count() < i {
						break
					}
					if err := checkInvariants(t, base.KillClone(), 2, max(before, result.saved), before+2); err != nil {
						t.Fatalf("call %d failed (%v): %v\n%s", i, err, err, strings.Join(inject.Trace(), "\n"))
					}
				}
				if failures < 20 {
					t.Fatalf("only %d calls mattered", failures)
				}
			})
		}
	}
}
