package pack

import (
	"fmt"
	"math"
	"math/bits"
)

// Layout describes the padded storage of a brick: Size owned cells along x, y
// and z, with Halo cells of padding on each side of an axis. Storage is one
// slice, x fastest, then y, then z.
//
// Lower dimensions have Size 1 and usually Halo 0 along the axes that they
// lack. A Size of 0 is an empty brick; its padding, if any, still counts as
// storage.
type Layout struct {
	Size, Halo [3]int
}

// maxCells keeps every byte offset inside a storage within an int, for the
// widest element.
const maxCells = math.MaxInt / 16

// Validate reports a negative size or halo, or a storage whose byte offsets
// would not fit an int. No other method checks for overflow; those that move
// cells call Validate themselves.
func (l Layout) Validate() error {
	total := uint64(1)
	for a := range 3 {
		if l.Size[a] < 0 {
			return fmt.Errorf("layout: size along %c is %d, want 0 or more", "xyz"[a], l.Size[a])
		}
		if l.Halo[a] < 0 {
			return fmt.Errorf("layout: halo along %c is %d, want 0 or more", "xyz"[a], l.Halo[a])
		}
		if l.Size[a] > maxCells || l.Halo[a] > maxCells {
			return l.tooLarge()
		}
		padded := uint64(l.Size[a]) + 2*uint64(l.Halo[a])
		hi, lo := bits.Mul64(total, padded)
		if hi != 0 || lo > maxCells {
			return l.tooLarge()
		}
		// An axis without any cell must not hide an overflow of the others.
		total = max(lo, 1)
	}
	return nil
}

func (l Layout) tooLarge() error {
	return fmt.Errorf("layout: size %v with halo %v has more than %d padded cells", l.Size, l.Halo, int64(maxCells))
}

// Cells returns the number of owned cells.
func (l Layout) Cells() int64 {
	return int64(l.Size[0]) * int64(l.Size[1]) * int64(l.Size[2])
}

// PaddedSize returns the extent of the storage along x, y and z.
func (l Layout) PaddedSize() [3]int {
	return [3]int{
		l.Size[0] + 2*l.Halo[0],
		l.Size[1] + 2*l.Halo[1],
		l.Size[2] + 2*l.Halo[2],
	}
}

// PaddedCells returns the number of cells of the storage.
func (l Layout) PaddedCells() int64 {
	p := l.PaddedSize()
	return int64(p[0]) * int64(p[1]) * int64(p[2])
}

// Index returns where the cell (i, j, k) lies in the storage. The first owned
// cell is (0, 0, 0); valid coordinates run over [-halo, size+halo). They are
// not checked.
func (l Layout) Index(i, j, k int) int {
	p := l.PaddedSize()
	return ((k+l.Halo[2])*p[1]+j+l.Halo[1])*p[0] + i + l.Halo[0]
}
