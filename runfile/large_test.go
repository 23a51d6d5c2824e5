//go:build hdf5

package runfile

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
)

// What is moved without a buffer, with one of a state or of several, comes back as it
// was, from the states of a file and from one of them.
func TestLargeUnknownsComeBack(t *testing.T) {
	closed(t)
	const n = directBytes / 8
	s := &Solution{Layout: Layout{R: []float64{0, 1}, Unknowns: []Unknown{
		{Name: "first", Kind: Scalar},
		{Name: "large", Kind: Radial, Components: n},
		{Name: "small", Kind: Radial, Components: 3},
		{Name: "nearly", Kind: Radial, Components: n - 1},
		{Name: "last", Kind: Scalar},
	}}}
	for k := range 4 {
		state := make([]float64, s.Layout.Size())
		for i := range state {
			state[i] = float64(k*len(state) + i)
		}
		s.Times = append(s.Times, float64(k))
		s.States = append(s.States, state)
	}
	ctx := context.Background()
	for name, opts := range map[string][]Option{"plain": nil, "extendible": {Extendible()}} {
		path := filepath.Join(t.TempDir(), name+".h5")
		if err := WriteOutput(ctx, path, s, opts...); err != nil {
			t.Fatal(err)
		}
		got, err := ReadOutput(ctx, []string{path})
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range s.States {
			if !slices.Equal(got.States[k], want) {
				t.Errorf("%s: state %d has other numbers", name, k)
			}
		}
		one, err := ReadState(ctx, path, State(2))
		if err != nil || !slices.Equal(one.State, s.States[2]) {
			t.Errorf("%s: other numbers alone, %v", name, err)
		}
	}
}
