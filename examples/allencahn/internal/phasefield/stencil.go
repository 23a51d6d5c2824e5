package phasefield

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/pack"
)

// A Side tells what lies beyond one side of a box.
type Side int

const (
	// Wall lets nothing through.
	Wall Side = iota
	// Wrap stands for the other end of the same box: a periodic axis that isn't
	// cut.
	Wrap
	// Ghost stands for ghost cells, which hold the cells of another box.
	Ghost
)

// Sides tells it for all sides: by axis, x first, and by side, the lower one first.
type Sides [3][2]Side

// A Stencil tells where in an array the cells of a box and their neighbours are. x
// is the fastest axis.
type Stencil struct {
	First      int    // place of the first cell
	Size       [3]int // of the box
	Row, Slice int    // distance of neighbours along y and z
	// Beyond is the way, by axis and side, from a cell at a side of the box to its
	// neighbour beyond: to a ghost cell, to the other end of the box, or nowhere at
	// a wall, where the cell is its own neighbour.
	Beyond [3][2]int
}

// NewStencil returns the stencil of a padded array.
func NewStencil(l pack.Layout, sides Sides) (Stencil, error) {
	if err := l.Validate(); err != nil {
		return Stencil{}, err
	}
	padded := l.PaddedSize()
	s := Stencil{First: l.Index(0, 0, 0), Size: l.Size, Row: padded[0], Slice: padded[0] * padded[1]}
	if l.Cells() == 0 {
		return Stencil{}, nil
	}
	for axis, stride := range [3]int{1, s.Row, s.Slice} {
		for side, kind := range sides[axis] {
			outwards := (2*side - 1) * stride
			switch kind {
			case Wall:
			case Wrap:
				s.Beyond[axis][side] = -outwards * (l.Size[axis] - 1)
			case Ghost:
				if l.Halo[axis] < 1 {
					return Stencil{}, fmt.Errorf("halo is %v, must be 1 or more where there are ghost cells", l.Halo)
				}
				s.Beyond[axis][side] = outwards
			default:
				return Stencil{}, fmt.Errorf("what lies beyond a side is %d", kind)
			}
		}
	}
	return s, nil
}

// Index returns the place of a cell.
func (s Stencil) Index(i, j, k int) int { return s.First + i + j*s.Row + k*s.Slice }

// Span returns the number of elements from the beginning of an array that hold
// the box and the neighbours of its cells.
func (s Stencil) Span() int {
	last := s.Index(s.Size[0]-1, s.Size[1]-1, s.Size[2]-1)
	return last + 1 + max(0, s.Beyond[0][1], s.Beyond[1][1], s.Beyond[2][1])
}

// neighbors returns the places of the two neighbours along an axis of the cell at
// a place, the n-th one along it.
func (s Stencil) neighbors(axis, n, at int) (lower, upper int) {
	stride := [3]int{1, s.Row, s.Slice}[axis]
	lower, upper = at-stride, at+stride
	if n == 0 {
		lower = at + s.Beyond[axis][0]
	}
	if n == s.Size[axis]-1 {
		upper = at + s.Beyond[axis][1]
	}
	return lower, upper
}
