package stepper

import (
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A layer is one layer of cells in a padded storage.
type layer struct {
	first int // place of its first cell
	size  [3]int
}

func (l layer) cells() int { return l.size[0] * l.size[1] * l.size[2] }

// A seam is a side with ghost cells.
type seam struct {
	axis, side    int
	inner, ghosts layer // the outermost owned cells, and those beyond
}

// seams lists the sides with ghost cells of a storage.
func seams(l pack.Layout, sides phasefield.Sides) []seam {
	if l.Cells() == 0 {
		return nil
	}
	var list []seam
	for axis := range sides {
		for side, kind := range sides[axis] {
			if kind != phasefield.Ghost {
				continue
			}
			at := func(n int) layer {
				var low [3]int
				size := l.Size
				low[axis], size[axis] = n, 1
				return layer{l.Index(low[0], low[1], low[2]), size}
			}
			n := l.Size[axis]
			outermost := [2][2]int{{0, -1}, {n - 1, n}}[side]
			list = append(list, seam{axis, side, at(outermost[0]), at(outermost[1])})
		}
	}
	return list
}
