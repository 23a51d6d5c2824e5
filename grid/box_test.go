package grid_test

import (
	"math"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"pgregory.net/rapid"
)

func box(x0, x1, y0, y1, z0, z1 int) grid.Box {
	return grid.Box{Low: [3]int{x0, y0, z0}, Size: [3]int{x1 - x0, y1 - y0, z1 - z0}}
}

func TestBoxString(t *testing.T) {
	if got, want := box(0, 10, 0, 6, 4, 7).String(), "[0:10, 0:6, 4:7]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBoxContains(t *testing.T) {
	whole := box(0, 10, 0, 6, 4, 7)
	tests := []struct {
		name string
		box  grid.Box
		want bool
	}{
		{"itself", whole, true},
		{"a part", box(2, 3, 0, 6, 5, 7), true},
		{"one cell too high", box(2, 11, 0, 6, 4, 7), false},
		{"one cell too low", box(0, 10, 0, 6, 3, 7), false},
		{"an empty box anywhere", box(99, 99, 0, 6, 4, 7), true},
		{"a box whose end overflows", grid.Box{Low: [3]int{1, 0, 4}, Size: [3]int{math.MaxInt, 1, 1}}, false},
		{"a box that begins beyond", grid.Box{Low: [3]int{math.MaxInt, 0, 4}, Size: [3]int{1, 1, 1}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := whole.Contains(tt.box); got != tt.want {
				t.Errorf("%v contains %v: %t, want %t", whole, tt.box, got, tt.want)
			}
		})
	}
	if (grid.Box{}).ContainsCell([3]int{}) {
		t.Error("the empty box contains a cell")
	}
}

func genBox() *rapid.Generator[grid.Box] {
	return rapid.Custom(func(t *rapid.T) grid.Box {
		var b grid.Box
		for a := range 3 {
			b.Low[a] = rapid.IntRange(-3, 4).Draw(t, "low")
			b.Size[a] = rapid.IntRange(0, 4).Draw(t, "size")
		}
		return b
	})
}

// Cells, Intersect, Contains and Empty agree with the set of cells.
func TestBoxIsASetOfCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genBox().Draw(t, "a"), genBox().Draw(t, "b")
		common := a.Intersect(b)
		var inA, inBoth int64
		for z := -4; z < 9; z++ {
			for y := -4; y < 9; y++ {
				for x := -4; x < 9; x++ {
					c := [3]int{x, y, z}
					both := a.ContainsCell(c) && b.ContainsCell(c)
					if a.ContainsCell(c) {
						inA++
					}
					if both {
						inBoth++
					}
					if both != common.ContainsCell(c) {
						t.Fatalf("cell %v: in both %t, in intersection %t", c, both, !both)
					}
				}
			}
		}
		if a.Cells() != inA || a.Empty() != (inA == 0) {
			t.Fatalf("%v: %d cells, empty %t; want %d", a, a.Cells(), a.Empty(), inA)
		}
		if common.Empty() && common != (grid.Box{}) {
			t.Fatalf("empty intersection is %v, want the zero box", common)
		}
		if got, want := a.Contains(b), inBoth == b.Cells(); got != want {
			t.Fatalf("%v contains %v: %t, want %t", a, b, got, want)
		}
	})
}
