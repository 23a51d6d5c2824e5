//go:build hdf5

package samerun

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// A sample is a small solution, with cells of its field.
type sample struct {
	runfile.Solution
	hash  string
	cells [][]float64
}

// written writes a sample, after a change, and reads it back.
func written(t *testing.T, change func(s *sample)) *runfile.Solution {
	t.Helper()
	s := &sample{
		Solution: runfile.Solution{
			Layout: runfile.Layout{R: []float64{0, 1, 2}, Unknowns: []runfile.Unknown{
				{Name: "n", Kind: runfile.Radial, Components: 1},
				{Name: "phi", Kind: runfile.Field, Domain: grid.Domain{Size: [3]int{2, 1, 2}, Spacing: [3]float64{1, 1, 1}}},
			}},
			Times:  []float64{0, 1},
			States: [][]float64{{1, 2}, {3, math.NaN()}},
			Statistics: runfile.Statistics{
				Time: []float64{1, 1}, StepLength: []float64{1, 1}, Accepted: []bool{false, true},
				ErrorEstimate: []float64{5, 0.5}, NonlinearIterations: []int64{1, 1}, LinearIterations: []int64{2, 3},
				WallTime: []float64{7, 8}, Outcome: []string{"rejected", "accepted"},
				IterationAttempt: []int64{1, 2}, IterationResidual: []float64{0.1, 0.2}, IterationLinear: []int64{2, 3},
			},
			Updates: []runfile.UpdateStates{{Name: "u", States: [][]float64{{1}, {2}}}},
		},
		hash:  "h",
		cells: [][]float64{{1, 2, 3, 4}, {5, 6, 7, 8}},
	}
	change(s)
	settings, err := record.Of("setup_hash", s.hash)
	if err != nil {
		t.Fatal(err)
	}
	s.Settings = settings
	path := filepath.Join(t.TempDir(), "out.h5")
	err = runfile.WriteOutput(t.Context(), path, &s.Solution, runfile.Fields(
		func(_ context.Context, _ string, state int, box grid.Box, dst []float64) error {
			for z := range box.Size[2] {
				for x := range box.Size[0] {
					dst[z*box.Size[0]+x] = s.cells[state][(box.Low[2]+z)*2+box.Low[0]+x]
				}
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	out, err := runfile.ReadOutput(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCompare(t *testing.T) {
	plain := written(t, func(*sample) {})
	for _, tc := range []struct {
		name   string
		change func(s *sample)
		want   string // empty: the same
	}{
		{"the same, with a NaN", func(*sample) {}, ""},
		{"other wall times", func(s *sample) { s.Statistics.WallTime[1] = 99 }, ""},
		{"another setup", func(s *sample) { s.hash = "g" }, "setup hashes are h and g"},
		{"another layout", func(s *sample) { s.Layout.R[2] = 3 }, "layout: the radial grids differ"},
		{"another update", func(s *sample) { s.Updates[0].States[1][0] = 1 }, "interval update u at 1 s: number 0 is 2 and 1"},
		{"an update of another name", func(s *sample) { s.Updates[0].Name = "v" }, "interval update u: only in A"},
		{"no update", func(s *sample) { s.Updates = nil }, "interval update u: only in A"},
		{"another time", func(s *sample) { s.Times[1] = 2 }, "times at 1 s: number 0 is 1 and 2"},
		{"fewer states", func(s *sample) {
			s.Times, s.States, s.Updates[0].States = s.Times[:1], s.States[:1], s.Updates[0].States[:1]
		}, "times: 2 saved states in A, 1 in B"},
		{"the last bit of a state", func(s *sample) { s.States[1][0] = math.Nextafter(3, 4) }, "unknown n at 1 s: number 0 is 3 and 3.0000000000000004"},
		{"a number for a NaN", func(s *sample) { s.States[1][1] = 0 }, "unknown n at 1 s: number 1 is NaN and 0"},
		{"an attempt more", func(s *sample) {
			s.Statistics.Time = append(s.Statistics.Time, 2)
			s.Statistics.StepLength = append(s.Statistics.StepLength, 1)
			s.Statistics.Accepted = append(s.Statistics.Accepted, false)
			s.Statistics.ErrorEstimate = append(s.Statistics.ErrorEstimate, 1)
			s.Statistics.NonlinearIterations = append(s.Statistics.NonlinearIterations, 0)
			s.Statistics.LinearIterations = append(s.Statistics.LinearIterations, 0)
			s.Statistics.WallTime = append(s.Statistics.WallTime, 1)
			s.Statistics.Outcome = append(s.Statistics.Outcome, "rejected")
		}, "statistics time: 2 entries in A, 3 in B"},
		{"step length", func(s *sample) { s.Statistics.StepLength[0] = 2 }, "statistics step_length: number 0 is 1 and 2"},
		{"error estimate", func(s *sample) { s.Statistics.ErrorEstimate[0] = 2 }, "statistics error_estimate: number 0 is 5 and 2"},
		{"accepted", func(s *sample) { s.Statistics.Accepted[0] = true }, "statistics accepted: number 0 is false and true"},
		{"outcome", func(s *sample) { s.Statistics.Outcome[0] = "failed" }, "statistics outcome: number 0 is rejected and failed"},
		{"nonlinear iterations", func(s *sample) { s.Statistics.NonlinearIterations[0] = 9 }, "statistics nonlinear_iterations: number 0 is 1 and 9"},
		{"linear iterations", func(s *sample) { s.Statistics.LinearIterations[0] = 9 }, "statistics linear_iterations: number 0 is 2 and 9"},
		{"attempt of an iteration", func(s *sample) { s.Statistics.IterationAttempt[0] = 2 }, "statistics iterations/attempt: number 0 is 1 and 2"},
		{"residual", func(s *sample) { s.Statistics.IterationResidual[0] = 9 }, "statistics iterations/residual: number 0 is 0.1 and 9"},
		{"linear iterations of an iteration", func(s *sample) { s.Statistics.IterationLinear[0] = 9 }, "statistics iterations/linear_iterations: number 0 is 2 and 9"},
		{"a cell", func(s *sample) { s.cells[1][3] = -8 }, "unknown phi at 1 s: cell [1 0 1] is 8 and -8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Compare(t.Context(), plain, written(t, tc.change))
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.Is(err, ErrDiffer) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestFieldThatCannotBeReadIsNoDifference(t *testing.T) {
	a, b := written(t, func(*sample) {}), written(t, func(*sample) {})
	if err := os.Remove(b.Files[0]); err != nil {
		t.Fatal(err)
	}
	if err := Compare(t.Context(), a, b); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDiffer) {
		t.Errorf("error is %v", err)
	}
}
