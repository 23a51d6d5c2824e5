package field_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"pgregory.net/rapid"
)

// shape is a random place of a field in its domain.
type shape struct {
	domain grid.Domain
	box    grid.Box
	halo   [3]int
	iter   [3]int
}

func (s shape) options() []field.Option {
	return []field.Option{field.HaloXYZ(s.halo[0], s.halo[1], s.halo[2]), field.IterationHaloXYZ(s.iter[0], s.iter[1], s.iter[2])}
}

func genShape() *rapid.Generator[shape] {
	return rapid.Custom(func(t *rapid.T) shape {
		s := shape{domain: domain(1, 1, 1)}
		for a := range 3 {
			s.domain.Size[a] = rapid.IntRange(1, 8).Draw(t, "domain")
			s.box.Low[a] = rapid.IntRange(0, s.domain.Size[a]).Draw(t, "low")
			s.box.Size[a] = rapid.IntRange(0, s.domain.Size[a]-s.box.Low[a]).Draw(t, "size")
			s.halo[a] = rapid.IntRange(0, 3).Draw(t, "halo")
			s.iter[a] = rapid.IntRange(0, s.halo[a]).Draw(t, "iteration")
		}
		return s
	})
}

// Index, Global and Coordinates agree with plain arithmetic, and the ranges
// visit exactly their cells, x fastest.
func TestGeometryAgreesWithPlainArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genShape().Draw(t, "shape")
		f := get(field.New[float32](s.domain, s.box, s.options()...))(t)
		if f.IterationHalo() != s.iter {
			t.Fatalf("iteration halo %v, want %v", f.IterationHalo(), s.iter)
		}
		n := s.box.Size
		if s.box.Empty() {
			if f.Layout().PaddedCells() != 0 {
				t.Fatalf("an empty box has storage %+v", f.Layout())
			}
			return
		}
		place := 0
		data := get(f.MutableView())(t)
		for k := -s.halo[2]; k < n[2]+s.halo[2]; k++ {
			for j := -s.halo[1]; j < n[1]+s.halo[1]; j++ {
				for i := -s.halo[0]; i < n[0]+s.halo[0]; i++ {
					if got := f.Index(i, j, k); got != place {
						t.Fatalf("index of (%d, %d, %d) is %d, want %d", i, j, k, got, place)
					}
					place++
					g := [3]int{s.box.Low[0] + i, s.box.Low[1] + j, s.box.Low[2] + k}
					if got := f.Global(i, j, k); got != g {
						t.Fatalf("global indices of (%d, %d, %d) are %v, want %v", i, j, k, got, g)
					}
					want := [3]float64{1 + 0.5*float64(g[0]), 2 + 0.25*float64(g[1]), 3 + 2*float64(g[2])}
					if got := f.Coordinates(i, j, k); got != want {
						t.Fatalf("coordinates of (%d, %d, %d) are %v, want %v", i, j, k, got, want)
					}
				}
			}
		}
		if place != len(data) {
			t.Fatalf("storage has %d cells, want %d", len(data), place)
		}
		checkRange(t, f, "owned", f.Owned(), [3]int{})
		checkRange(t, f, "iteration", f.Iteration(), s.iter)
		checkRange(t, f, "padded", f.Padded(), s.halo)
	})
}

func checkRange(t *rapid.T, f *field.Field[float32], name string, r field.Range, halo [3]int) {
	n := f.Box().Size
	var want [][3]int
	for k := -halo[2]; k < n[2]+halo[2]; k++ {
		for j := -halo[1]; j < n[1]+halo[1]; j++ {
			for i := -halo[0]; i < n[0]+halo[0]; i++ {
				want = append(want, [3]int{i, j, k})
			}
		}
	}
	at := 0
	for c := range r.Cells() {
		if at == len(want) || c != want[at] {
			t.Fatalf("%s: cell number %d is %v", name, at, c)
		}
		at++
	}
	if at != len(want) {
		t.Fatalf("%s: %d cells, want %d", name, at, len(want))
	}
	at = 0
	for row := range r.Rows() {
		for place := row.Start; place < row.End; place++ {
			c := [3]int{row.I + place - row.Start, row.J, row.K}
			if c != want[at] || f.Index(c[0], c[1], c[2]) != place {
				t.Fatalf("%s: cell %v of a row at %d, want %v", name, c, place, want[at])
			}
			at++
		}
	}
	if at != len(want) {
		t.Fatalf("%s: rows have %d cells, want %d", name, at, len(want))
	}
}

func TestRangesCanBeLeftEarly(t *testing.T) {
	f := get(field.New[float64](domain(3, 3, 3), domain(3, 3, 3).Box()))(t)
	cells, rows := 0, 0
	for range f.Owned().Cells() {
		if cells++; cells == 4 {
			break
		}
	}
	for range f.Owned().Rows() {
		if rows++; rows == 4 {
			break
		}
	}
	if cells != 4 || rows != 4 {
		t.Errorf("%d cells, %d rows", cells, rows)
	}
}
