package grid_test

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/grid"
)

// A domain is cut for 12 ranks; each one owns a box.
func ExampleDecompose() {
	d := grid.Domain{
		Size:     [3]int{256, 256, 128},
		Spacing:  [3]float64{0.5, 0.5, 0.5},
		Periodic: [3]bool{true, true, false},
	}
	dec, err := grid.Decompose(d, 12)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(dec.Processes(), dec.Box(0), dec.Box(11))
	right, ok := dec.Neighbor(1, 0, +1)
	fmt.Println(right, ok)
	// Output:
	// [2 3 2] [0:128, 0:86, 0:64] [128:256, 171:256, 64:128]
	// 0 true
}

// The boxes of a hand-made decomposition leave a plane out.
func ExampleTile() {
	whole := grid.Box{Size: [3]int{10, 6, 7}}
	err := grid.Tile(whole, []grid.Box{
		{Low: [3]int{0, 0, 0}, Size: [3]int{10, 6, 3}},
		{Low: [3]int{0, 0, 4}, Size: [3]int{10, 6, 3}},
	})
	if gap, ok := errors.AsType[*grid.GapError](err); ok {
		fmt.Println(gap.Gap)
	}
	fmt.Println(err)
	// Output:
	// [0:10, 0:6, 3:4]
	// gap: cells [0:10, 0:6, 3:4] of [0:10, 0:6, 0:7] belong to no box
}
