// Package samerun compares the output of two runs bit for bit, in all that can repeat:
// wall times can't.
package samerun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// ErrDiffer says that the runs are not the same.
var ErrDiffer = errors.New("the runs differ")

// Compare returns nil if the solutions have the same setup, layout, saved states, cells
// of fields, statistics and interval updates. The error tells the first difference and
// matches ErrDiffer; any other says that something can't be read.
func Compare(ctx context.Context, a, b *runfile.Solution) error {
	hashA, errA := a.Settings.Text("setup_hash")
	hashB, errB := b.Settings.Text("setup_hash")
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	switch {
	case hashA != hashB:
		return differ("setup hashes are %s and %s", hashA, hashB)
	case !reflect.DeepEqual(a.Layout, b.Layout):
		return differ("layouts are %+v and %+v", a.Layout, b.Layout)
	case len(a.Updates) != len(b.Updates):
		return differ("%d interval updates and %d", len(a.Updates), len(b.Updates))
	}
	if err := sameBits("saved times", a.Times, b.Times); err != nil {
		return err
	}
	for i, t := range a.Times {
		if err := sameBits(fmt.Sprintf("state at %v s", t), a.States[i], b.States[i]); err != nil {
			return err
		}
	}
	for i, u := range a.Updates {
		if u.Name != b.Updates[i].Name {
			return differ("interval update %d is %s and %s", i, u.Name, b.Updates[i].Name)
		}
		for k, t := range a.Times {
			if err := sameBits(fmt.Sprintf("interval update %s at %v s", u.Name, t), u.States[k], b.Updates[i].States[k]); err != nil {
				return err
			}
		}
	}
	if err := sameStatistics(&a.Statistics, &b.Statistics); err != nil {
		return err
	}
	for _, u := range a.Layout.Unknowns {
		if u.Kind != runfile.Field {
			continue
		}
		for i := range a.Times {
			if err := sameField(ctx, a, b, u, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func differ(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDiffer}, args...)...)
}

func sameBits(what string, a, b []float64) error {
	if len(a) != len(b) {
		return differ("%s: %d numbers and %d", what, len(a), len(b))
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return differ("%s: number %d is %v and %v", what, i, a[i], b[i])
		}
	}
	return nil
}

func sameStatistics(a, b *runfile.Statistics) error {
	for _, f := range []struct {
		name string
		a, b []float64
	}{
		{"time", a.Time, b.Time},
		{"step length", a.StepLength, b.StepLength},
		{"error estimate", a.ErrorEstimate, b.ErrorEstimate},
		{"residual of iterations", a.IterationResidual, b.IterationResidual},
	} {
		if err := sameBits("statistics: "+f.name, f.a, f.b); err != nil {
			return err
		}
	}
	for name, same := range map[string]bool{
		"accepted":                slices.Equal(a.Accepted, b.Accepted),
		"outcome":                 slices.Equal(a.Outcome, b.Outcome),
		"nonlinear iterations":    slices.Equal(a.NonlinearIterations, b.NonlinearIterations),
		"linear iterations":       slices.Equal(a.LinearIterations, b.LinearIterations),
		"attempts of iterations":  slices.Equal(a.IterationAttempt, b.IterationAttempt),
		"linear iterations of it": slices.Equal(a.IterationLinear, b.IterationLinear),
	} {
		if !same {
			return differ("statistics: %s", name)
		}
	}
	return nil
}

// sameField compares a field at saved state i, a plane at a time.
func sameField(ctx context.Context, a, b *runfile.Solution, u runfile.Unknown, i int) error {
	plane := u.Domain.Box()
	plane.Size[2] = 1
	cellsA, cellsB := make([]float64, plane.Cells()), make([]float64, plane.Cells())
	for z := range u.Domain.Size[2] {
		box := grid.Box{Low: [3]int{plane.Low[0], plane.Low[1], z}, Size: plane.Size}
		if err := errors.Join(a.ReadField(ctx, u.Name, i, box, cellsA), b.ReadField(ctx, u.Name, i, box, cellsB)); err != nil {
			return err
		}
		if err := sameBits(fmt.Sprintf("field %s at %v s, plane %d", u.Name, a.Times[i], z), cellsA, cellsB); err != nil {
			return err
		}
	}
	return nil
}
