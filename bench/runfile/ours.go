package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// A saved state of a case has three unknowns of so many numbers each.
var unknowns = []string{"distribution", "profiles", "potential"}

// saved is how many states the solution of a case has.
func saved(c plan.Case) int {
	switch c.Kind {
	case plan.ReadRun:
		return c.Fields / 2
	case plan.ReadRunField:
		return c.Fields
	}
	return c.Fields / len(unknowns)
}

// number is the value of a number of an unknown.
func number(unknown, state, i int) float64 {
	return float64(unknown+1)*(1<<40) + float64(state)*(1<<30) + float64(i)
}

// fieldstone has a solution, and memory for a field.
type fieldstone struct {
	c        plan.Case
	solution *runfile.Solution
	fields   [][]float64 // of each state
	into     []float64
}

func newOurs(c plan.Case) *fieldstone {
	n := c.Cells[0] * c.Cells[1] * c.Cells[2]
	f := &fieldstone{c: c, into: reserve(n)}
	faces := func(n int) []float64 {
		v := make([]float64, n+1)
		for i := range v {
			v[i] = float64(i)
		}
		return v
	}
	f.solution = &runfile.Solution{
		Settings: record.Record{},
		Layout: runfile.Layout{
			R:     faces(c.Cells[2]),
			Grids: []runfile.MomentumGrid{{Name: "grid_1", P: faces(c.Cells[0]), Xi: faces(c.Cells[1])}},
			Unknowns: []runfile.Unknown{
				{Name: unknowns[0], Kind: runfile.Kinetic, Scale: 1, Grids: []string{"grid_1"}},
				{Name: unknowns[1], Kind: runfile.Radial, Scale: 1, Components: c.Cells[0] * c.Cells[1]},
				{Name: unknowns[2], Kind: runfile.Field, Scale: 1, Domain: grid.Domain{Size: c.Cells, Spacing: [3]float64{1, 1, 1}}},
			},
		},
	}
	for k := range saved(c) {
		state := reserve(2 * n)
		for i := range n {
			state[i], state[n+i] = number(0, k, i), number(1, k, i)
		}
		field := reserve(n)
		for i := range field {
			field[i] = number(2, k, i)
		}
		f.solution.Times = append(f.solution.Times, float64(k))
		f.solution.States = append(f.solution.States, state)
		f.fields = append(f.fields, field)
	}
	return f
}

// field gives whole planes of a field.
func (f *fieldstone) field(_ context.Context, _ string, state int, box grid.Box, dst []float64) error {
	plane := f.c.Cells[0] * f.c.Cells[1]
	copy(dst, f.fields[state][box.Low[2]*plane:][:box.Size[2]*plane])
	return nil
}

func (f *fieldstone) do(ctx context.Context, what plan.Kind, path string) (float64, error) {
	switch what {
	case plan.WriteRun:
		start := time.Now()
		err := runfile.WriteOutput(ctx, path, f.solution, runfile.Fields(f.field))
		return time.Since(start).Seconds(), err
	case plan.ReadRun:
		start := time.Now()
		s, err := runfile.ReadOutput(ctx, []string{path})
		seconds := time.Since(start).Seconds()
		if err != nil {
			return 0, err
		}
		for k, want := range f.solution.States {
			if !slices.Equal(s.States[k], want) {
				return 0, fmt.Errorf("%s: state %d was read with other numbers", path, k)
			}
		}
		return seconds, nil
	default:
		s, err := runfile.ReadOutput(ctx, []string{path})
		if err != nil {
			return 0, err
		}
		box := grid.Box{Size: f.c.Cells}
		seconds := 0.0
		for k, want := range f.fields {
			for i := range f.into {
				f.into[i] = math.NaN()
			}
			start := time.Now()
			err := s.ReadField(ctx, unknowns[2], k, box, f.into)
			seconds += time.Since(start).Seconds()
			if err != nil {
				return 0, err
			}
			if !slices.Equal(f.into, want) {
				return 0, fmt.Errorf("%s: the field was read with other numbers in state %d", path, k)
			}
		}
		return seconds, nil
	}
}

func (f *fieldstone) check(_ context.Context, path string) (err error) {
	file, err := h5.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	n := len(f.into)
	for u, name := range unknowns {
		got, shape, err := h5.Read[float64](file, "unknowns/"+name)
		if err != nil {
			return err
		}
		if len(got) != n*len(f.fields) || shape[0] != len(f.fields) {
			return fmt.Errorf("%s: %s has the shape %v", path, name, shape)
		}
		for i, v := range got {
			if v != number(u, i/n, i%n) {
				return fmt.Errorf("%s: number %d of %s is %v", path, i, name, v)
			}
		}
	}
	return nil
}

func (f *fieldstone) close() error {
	for _, v := range append(append(f.fields, f.solution.States...), f.into) {
		release(v)
	}
	return nil
}
