package pack

import (
	"slices"
	"testing"
)

func TestPackFollowsPlainIndexArithmetic(t *testing.T) {
	for _, l := range []Layout{
		{Size: [3]int{5, 1, 1}},
		{Size: [3]int{5, 1, 1}, Halo: [3]int{2, 0, 0}},
		{Size: [3]int{5, 4, 1}, Halo: [3]int{0, 2, 0}},
		{Size: [3]int{5, 4, 3}, Halo: [3]int{0, 0, 1}},
		{Size: [3]int{5, 4, 3}, Halo: [3]int{0, 1, 1}},
		{Size: [3]int{5, 4, 3}, Halo: [3]int{1, 2, 3}},
		{Size: [3]int{1, 4, 3}, Halo: [3]int{2, 2, 2}},
		{Size: [3]int{5, 1, 3}, Halo: [3]int{0, 2, 2}},
	} {
		storage := make([]float64, l.PaddedCells())
		for i := range storage {
			storage[i] = float64(i)
		}
		var want []float64
		for k := range l.Size[2] {
			for j := range l.Size[1] {
				for i := range l.Size[0] {
					want = append(want, float64(l.Index(i, j, k)))
				}
			}
		}
		for first := range len(want) + 1 {
			for end := first; end <= len(want); end++ {
				got := make([]float64, end-first)
				if err := Pack(got, storage, l, int64(first)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want[first:end]) {
					t.Fatalf("%v [%d, %d): got %v, want %v", l, first, end, got, want[first:end])
				}
				back := slices.Clone(storage)
				for _, v := range got {
					back[int(v)] = -1
				}
				if err := Unpack(back, got, l, int64(first)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(back, storage) {
					t.Fatalf("%v [%d, %d): unpack changed other cells", l, first, end)
				}
			}
		}
	}
}
