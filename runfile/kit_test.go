//go:build hdf5

package runfile

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// closed checks at the end of a test that the library has nothing open.
func closed(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if n := h5.OpenObjects(); n != 0 {
			t.Errorf("the library has %d objects open", n)
		}
	})
}

func mustRecord(t *testing.T, keysAndValues ...any) record.Record {
	t.Helper()
	r, err := record.Of(keysAndValues...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustArray[T record.Element](t *testing.T, v []T, dims ...int) record.Array {
	t.Helper()
	a, err := record.NewArray(v, dims...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// everyKind is a record with a value of each kind.
func everyKind(t *testing.T) record.Record {
	t.Helper()
	return mustRecord(t,
		"bool", true, "no", false,
		"int", int64(-5), "large", uint64(math.MaxUint64), "float", 0.1, "minus_zero", math.Copysign(0, -1), "nan", math.NaN(),
		"text", "grüße", "empty_text", "",
		"texts", []string{"a", "", "längst"}, "no_texts", []string{},
		"int8", mustArray(t, []int8{-1, 2}), "int16", mustArray(t, []int16{-1, 2}), "int32", mustArray(t, []int32{-1, 2}), "int64", mustArray(t, []int64{-1, 2}),
		"uint8", mustArray(t, []uint8{1, 2}), "uint16", mustArray(t, []uint16{1, 2}), "uint32", mustArray(t, []uint32{1, 2}), "uint64", mustArray(t, []uint64{1, math.MaxUint64}),
		"float32", mustArray(t, []float32{0.5, 2}), "float64", mustArray(t, []float64{1, 2, 3, 4, 5, 6}, 1, 3, 2),
		"no_numbers", mustArray(t, []float64{}), "no_matrix", mustArray(t, []int32{}, 2, 0, 3),
		"arrays", []record.Array{mustArray(t, []float64{1}), mustArray(t, []int8{1, 2, 3, 4}, 2, 2)}, "no_arrays", []record.Array{},
		"many_arrays", manyArrays(t, 12),
		"record", mustRecord(t, "inner", mustRecord(t, "x", 1)), "no_record", mustRecord(t),
		"records", []record.Record{mustRecord(t, "name", "z", "v", 1), mustRecord(t, "name", "a b", "v", 1.0)}, "no_records", []record.Record{},
	)
}

func manyArrays(t *testing.T, n int) []record.Array {
	list := make([]record.Array, n)
	for i := range list {
		list[i] = mustArray(t, []int64{int64(i)})
	}
	return list
}

var box = grid.Domain{Size: [3]int{4, 3, 2}, Origin: [3]float64{0, -1, 2}, Spacing: [3]float64{1, 0.5, 0.25}, Periodic: [3]bool{true, false, true}}

// everyUnknown is a layout with an unknown of each kind.
func everyUnknown() Layout {
	return Layout{
		R: []float64{0, 0.1, 0.3, 0.6},
		Grids: []MomentumGrid{
			{Name: "grid_1", P: []float64{0, 1, 2, 4, 8}, Xi: []float64{-1, 0, 1}},
			{Name: "grid_2", P: []float64{0, 0.5, 1}, Xi: []float64{-1, -0.5, 0, 1}},
		},
		Unknowns: []Unknown{
			{Name: "current", Kind: Scalar, Unit: "A", Scale: 1e6},
			{Name: "E", Kind: Radial, Unit: "V/m", Scale: 1, Components: 1},
			{Name: "ions", Kind: Radial, Unit: "m^-3", Scale: 1e19, Components: 5, Groups: []int{0, 2},
				Lower: &LowerLimit{Tolerance: 1e-3, Value: -1, Reference: "E"}},
			{Name: "f", Kind: Kinetic, Scale: 1, Grids: []string{"grid_1"}, Lower: &LowerLimit{Tolerance: 0.5}},
			{Name: "hot", Kind: Kinetic, Unit: "m^-3", Scale: 1, Grids: []string{"grid_1", "grid_2", "grid_2"}},
			{Name: "phi", Kind: Field, Scale: 1, Domain: box},
		},
	}
}

// value is the value of a field at a cell.
func value(state, x, y, z int) float64 {
	return float64(state) + float64(x)/8 + float64(y)/64 + float64(z)/512
}

func fieldValues(_ context.Context, name string, state int, b grid.Box, dst []float64) error {
	if name != "phi" {
		return fmt.Errorf("no field %q", name)
	}
	i := 0
	for z := range b.Size[2] {
		for y := range b.Size[1] {
			for x := range b.Size[0] {
				dst[i] = value(state, x+b.Low[0], y+b.Low[1], z+b.Low[2])
				i++
			}
		}
	}
	return nil
}

// everything is a solution with all that a file can hold.
func everything(t *testing.T, states int) *Solution {
	t.Helper()
	s := &Solution{Settings: everyKind(t), Layout: everyUnknown()}
	for i := range states {
		s.Times = append(s.Times, float64(i)*0.5)
		state := make([]float64, s.Layout.Size())
		for k := range state {
			state[k] = float64(i) + float64(k)/1024
		}
		s.States = append(s.States, state)
	}
	for _, name := range []string{"flux", "mean"} {
		u := UpdateStates{Name: name}
		for i := range states {
			u.States = append(u.States, []float64{float64(i), 7})
		}
		s.Updates = append(s.Updates, u)
	}
	s.Statistics = Statistics{
		Time: []float64{0.5, 0.25, 1}, StepLength: []float64{0.5, 0.25, 0.75}, Accepted: []bool{false, true, true},
		ErrorEstimate: []float64{2, math.NaN(), 0.5}, NonlinearIterations: []int64{9, 2, 1}, LinearIterations: []int64{90, 20, 10},
		WallTime: []float64{0.1, 0.2, 0.3}, Outcome: []string{"error too large", "", "converged"},
		IterationAttempt: []int64{1, 1, 2, 3}, IterationResidual: []float64{1, 1e-3, 1e-9, 0}, IterationLinear: []int64{4, 5, 6, 7},
	}
	return s
}

// same compares what files hold, NaN being equal.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	options := cmp.Options{
		cmpopts.EquateNaNs(), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(Solution{}, "Files", "Version", "units", "origins", "carried", "fieldSums", "reading"),
		cmpopts.IgnoreFields(Statistics{}, "others"),
		cmpopts.IgnoreFields(Checkpoint{}, "File", "Version", "Previous", "units", "carried", "origin", "output", "policies", "passed", "fieldSums", "reading"),
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// noWarnings fails the test on a warning.
func noWarnings(t *testing.T) Option {
	return Warn(func(text string) { t.Errorf("warning: %s", text) })
}
