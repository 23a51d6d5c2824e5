package stepper

import (
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A seam is a side with ghost cells: two layers of a padded storage, of the same
// size.
type seam struct {
	axis, side    int
	inner, ghosts int // places of the first of the outermost owned cells, and of the cells beyond
	size          [3]int
}

func (s seam) cells() int { return s.size[0] * s.size[1] * s.size[2] }

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
			at := func(n int) int {
				var cell [3]int
				cell[axis] = n
				return l.Index(cell[0], cell[1], cell[2])
			}
			s := seam{axis: axis, side: side, inner: at(0), ghosts: at(-1), size: l.Size}
			if side == 1 {
				s.inner, s.ghosts = at(l.Size[axis]-1), at(l.Size[axis])
			}
			s.size[axis] = 1
			list = append(list, s)
		}
	}
	return list
}
