package runfile

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// Axes with the same coordinates share a scale; others of a name are numbered.
func TestScalesOfALayout(t *testing.T) {
	one := grid.Domain{Size: [3]int{4, 3, 2}, Spacing: [3]float64{1, 0.5, 0.25}}
	wider, moved, finer := one, one, one
	wider.Size[0] = 5
	moved.Origin[0] = -1
	finer.Spacing[2] = 0.125
	field := func(name string, d grid.Domain) Unknown { return Unknown{Name: name, Kind: Field, Domain: d} }
	radial := func(name string, n int) Unknown { return Unknown{Name: name, Kind: Radial, Components: n} }
	l := Layout{
		R:     []float64{0, 1, 3},
		Grids: []MomentumGrid{{Name: "g", P: []float64{0, 1}, Xi: []float64{-1, 1}}},
		Unknowns: []Unknown{
			field("a", one), {Name: "n", Kind: Scalar}, field("b", wider), field("c", moved), field("d", finer), field("e", one),
			{Name: "f", Kind: Kinetic, Grids: []string{"g"}}, radial("u", 2), radial("v", 1), radial("w", 2), field("bundled", grid.Domain{Size: [3]int{9, 9, 9}, Spacing: one.Spacing}),
		},
	}
	s := l.scales(map[string]string{"bundled": "step_1"})
	want := []h5.Scaled{
		{Dataset: "unknowns/a", Scales: []string{"time", "z", "y", "x"}},
		{Dataset: "unknowns/b", Scales: []string{"time", "z", "y", "x_2"}},
		{Dataset: "unknowns/c", Scales: []string{"time", "z", "y", "x_3"}},
		{Dataset: "unknowns/d", Scales: []string{"time", "z_2", "y", "x"}},
		{Dataset: "unknowns/e", Scales: []string{"time", "z", "y", "x"}},
		{Dataset: "unknowns/u", Scales: []string{"time", "r", "component"}},
		{Dataset: "unknowns/v", Scales: []string{"time", "r", "component_2"}},
		{Dataset: "unknowns/w", Scales: []string{"time", "r", "component"}},
	}
	if diff := cmp.Diff(want, s.users); diff != "" {
		t.Errorf("scales (-want +got):\n%s", diff)
	}
	values := map[string][]float64{}
	for _, of := range s.scales {
		if of.at == nil {
			continue
		}
		err := of.pieces(t.Context(), func(first int, part []float64) error {
			values[of.path] = append(values[of.path], part...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]float64{
		"x": {0, 1, 2, 3}, "x_2": {0, 1, 2, 3, 4}, "x_3": {-1, 0, 1, 2}, "y": {0, 0.5, 1}, "z": {0, 0.25}, "z_2": {0, 0.125}, "r": {0.5, 2},
	} {
		if !slices.Equal(values[path], want) {
			t.Errorf("%s is %v, want %v", path, values[path], want)
		}
	}
	// They are where the solver has its cells.
	for i := range 3 {
		if got, want := values["x_3"][i], moved.Coordinates(i, 0, 0)[0]; got != want {
			t.Errorf("cell %d is at %v, want %v", i, got, want)
		}
	}
}
