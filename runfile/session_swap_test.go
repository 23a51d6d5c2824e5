//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// A pingPong is a solver whose state is in one of two buffers by turns. The other one has
// cells of another time.
type pingPong struct{ now, other *cellSolver }

func (p *pingPong) fields() []field.Named {
	return []field.Named{{ID: "heat", Field: p.now.heat}, {ID: "phi", Field: p.now.phi}}
}

// step makes a step into the other buffer.
func (p *pingPong) step(ctx context.Context, t testing.TB, run *Session, told bool) error {
	next := run.NextTime()
	p.other.set(t, next)
	p.now, p.other = p.other, p.now
	p.other.set(t, -1000)
	run.Attempt(Attempt{Time: next, StepLength: 1, Accepted: true})
	if told {
		run.SetFields(p.fields())
	}
	return run.SaveState(ctx, []float64{next})
}

// Whichever buffer has the state, it is what is saved, from memory of the host and of
// devices, on several ranks, and after a resumption.
func TestSolverWithTwoBuffers(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx, dir := t.Context(), t.TempDir()
		for segment := 1; ; segment++ {
			box := cuts[[]string{"x", "z"}[segment%2]](c.Size())[c.Rank()]
			p := &pingPong{newCellSolver(t, box, segment%2, segment == 2), newCellSolver(t, box, 1, true)}
			cfg := p.now.config(dir)
			cfg.Stop.Steps = 2
			run, err := Open(ctx, c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if segment > 1 {
				p.now.check(t, fmt.Sprint("segment ", segment), run.Start().Time)
			} else {
				p.now.set(t, 0)
			}
			err = run.SaveState(ctx, []float64{run.time})
			var out Outcome
			for err == nil && !out.Done && !out.Stop {
				if err = p.step(ctx, t, run, true); err == nil {
					out, err = run.Checkpoint(ctx, []float64{run.time}, nil)
				}
			}
			if err = errors.Join(err, run.Close(ctx)); err != nil {
				t.Fatal(err)
			}
			p.now.free(t)
			p.other.free(t)
			if out.Done {
				break
			}
		}
		if c.Rank() == 0 {
			checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
		}
	})
}

// A field that isn't named stays, and one that no file holds is none of the session's
// business.
func TestSomeFieldsAreSet(t *testing.T) {
	dir := t.TempDir()
	s, other := newCellSolver(t, seriesDomain.Box(), 0, false), newCellSolver(t, seriesDomain.Box(), 2, false)
	cfg := s.config(dir)
	cfg.Fields = append(cfg.Fields, field.Named{ID: "scratch"})
	run, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.set(t, 0)
	err = run.SaveState(t.Context(), []float64{0})
	for err == nil && !run.Done() {
		now := run.NextTime()
		fill(t, other.phi, now, phiAt)
		fill(t, s.phi, -1000, phiAt)
		fill(t, s.heat, now, heatAt)
		run.Attempt(Attempt{Time: now, Accepted: true})
		run.SetFields([]field.Named{{ID: "phi", Field: other.phi}, {ID: "scratch", Field: other.heat}})
		if err = run.SaveState(t.Context(), []float64{now}); err == nil {
			_, err = run.Checkpoint(t.Context(), []float64{now}, nil)
		}
	}
	if err = errors.Join(err, run.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
}

// A field that can't be in another's place is the error of the next collective call, the
// same on all ranks, and what was saved before is in the segment.
func TestFieldsThatCannotBeSet(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		last := c.Rank() == c.Size()-1
		box := cuts["x"](c.Size())[c.Rank()]
		coarse := seriesDomain
		coarse.Spacing[1] = 2
		for _, tc := range []struct { // in the same order on all ranks
			name   string
			change func(p *pingPong, list []field.Named) []field.Named // on the last rank
			text   string
		}{
			{"nil", func(_ *pingPong, list []field.Named) []field.Named { list[1].Field = nil; return list }, `field "phi" is nil`},
			{"nil in a type", func(_ *pingPong, list []field.Named) []field.Named {
				list[1].Field = (*field.Field[float64])(nil)
				return list
			}, "panic"},
			{"an unknown name", func(_ *pingPong, list []field.Named) []field.Named { list[0].ID = "psi"; return list }, `field "psi" is not in Fields`},
			{"one twice", func(_ *pingPong, list []field.Named) []field.Named { return append(list, list[0]) }, `field "heat" is there twice`},
			{"another kind", func(p *pingPong, list []field.Named) []field.Named { list[1].Field = p.now.heat; return list }, `field "phi" is float32, was float64`},
			{"complex numbers", func(p *pingPong, list []field.Named) []field.Named {
				f, err := field.New[complex128](seriesDomain, box)
				if err != nil {
					t.Fatal(err)
				}
				list[0].Field = f
				return list
			}, `field "heat" is complex128, was float32`},
			{"another box", func(_ *pingPong, list []field.Named) []field.Named {
				other := box
				other.Size[2]--
				f, err := field.New[float64](seriesDomain, other)
				if err != nil {
					t.Fatal(err)
				}
				list[1].Field = f
				return list
			}, `field "phi" has the cells`},
			{"another grid", func(_ *pingPong, list []field.Named) []field.Named {
				f, err := field.New[float32](coarse, box)
				if err != nil {
					t.Fatal(err)
				}
				list[0].Field = f
				return list
			}, `field "heat": `},
		} {
			ctx, dir := t.Context(), filepath.Join(t.TempDir(), tc.name)
			p := &pingPong{newCellSolver(t, box, 1, false), newCellSolver(t, box, 1, false)}
			cfg := p.now.config(dir)
			cfg.Checkpoint = CheckpointConfig{}
			run, err := Open(ctx, c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			p.now.set(t, 0)
			if err := errors.Join(run.SaveState(ctx, []float64{0}), p.step(ctx, t, run, true)); err != nil {
				t.Fatal(err)
			}
			list := p.fields()
			if last {
				list = tc.change(p, list)
			}
			run.SetFields(list)
			if _, err = run.Checkpoint(ctx, []float64{1}, nil); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: the checkpoint returns %v, want %q", tc.name, err, tc.text)
			}
			sameOnAllRanks(t, c, tc.name, err)
			err = run.Close(ctx)
			if !errors.Is(err, ErrInput) || errors.Is(err, ErrOutOfStep) {
				t.Errorf("%s: close returns %v", tc.name, err)
			}
			sameOnAllRanks(t, c, tc.name+", at the end", err)
			p.now.free(t)
			p.other.free(t)
			if c.Rank() != 0 {
				continue
			}
			if out := joinedOnDisk(t, dir); !slices.Equal(out.Times, []float64{0, 1}) {
				t.Errorf("%s: saved times are %v", tc.name, out.Times)
			}
		}
	})
}

// A rank that doesn't say that its buffers are swapped is found out, before anything is
// written.
func TestBuffersAreSwappedOnSomeRanks(t *testing.T) {
	mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
		for at, call := range []string{"save state", "checkpoint"} {
			ctx, dir := t.Context(), filepath.Join(t.TempDir(), call)
			box := cuts["z"](c.Size())[c.Rank()]
			p := &pingPong{newCellSolver(t, box, 0, false), newCellSolver(t, box, 0, false)}
			cfg := p.now.config(dir)
			cfg.SaveTimes = [][]float64{{0, 1, 2}, {0}}[at]
			run, err := Open(ctx, c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			p.now.set(t, 0)
			if err := run.SaveState(ctx, []float64{0}); err != nil {
				t.Fatal(err)
			}
			err = p.step(ctx, t, run, c.Rank() != 1)
			if err == nil {
				_, err = run.Checkpoint(ctx, []float64{1}, nil)
			}
			if !errors.Is(err, ErrOutOfStep) || !strings.Contains(err.Error(), call) || !strings.Contains(err.Error(), "SetFields 1 and 0 times") {
				t.Errorf("%s: %v", call, err)
			}
			sameOnAllRanks(t, c, call, err)
			if err := run.Close(ctx); !errors.Is(err, ErrOutOfStep) {
				t.Errorf("close returns %v", err)
			}
			if _, err := os.Stat(CheckpointFile(dir, "run")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: a checkpoint: %v", call, err)
			}
			p.now.free(t)
			p.other.free(t)
		}
	})
}
