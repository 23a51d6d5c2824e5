package grid

import "fmt"

// Box is a range of cells in global indices: along each axis the cells from
// Low up to, not including, Low + Size. A box is empty if it has no extent
// along one of the axes.
type Box struct {
	// Low is the global index of the first cell, in the order x, y, z.
	Low [3]int
	// Size is the number of cells along each axis.
	Size [3]int
}

// High returns the exclusive upper end: Low + Size.
func (b Box) High() [3]int {
	return [3]int{b.Low[0] + b.Size[0], b.Low[1] + b.Size[1], b.Low[2] + b.Size[2]}
}

// Empty reports whether the box holds no cell.
func (b Box) Empty() bool {
	return b.Size[0] <= 0 || b.Size[1] <= 0 || b.Size[2] <= 0
}

// Cells returns the number of cells.
func (b Box) Cells() int64 {
	if b.Empty() {
		return 0
	}
	return int64(b.Size[0]) * int64(b.Size[1]) * int64(b.Size[2])
}

// Contains reports whether all cells of c lie in b. An empty c has none, so
// every box contains it, wherever it lies.
func (b Box) Contains(c Box) bool {
	if c.Empty() {
		return true
	}
	for a := range b.Low {
		// Written so that no sum of a malformed box overflows.
		if c.Low[a] < b.Low[a] || c.Size[a] > b.Size[a] || c.Low[a]-b.Low[a] > b.Size[a]-c.Size[a] {
			return false
		}
	}
	return true
}

// ContainsCell reports whether the cell with the given global indices lies in
// b.
func (b Box) ContainsCell(cell [3]int) bool {
	return !b.Empty() && b.Contains(Box{Low: cell, Size: [3]int{1, 1, 1}})
}

// Intersect returns the cells that b and c have in common. Without a common
// cell that is the zero Box.
func (b Box) Intersect(c Box) Box {
	if b.Empty() || c.Empty() {
		return Box{}
	}
	var r Box
	bh, ch := b.High(), c.High()
	for a := range r.Low {
		r.Low[a] = max(b.Low[a], c.Low[a])
		r.Size[a] = min(bh[a], ch[a]) - r.Low[a]
	}
	if r.Empty() {
		return Box{}
	}
	return r
}

// String returns the half-open index ranges along x, y and z, for example
// "[0:10, 0:6, 4:7]".
func (b Box) String() string {
	h := b.High()
	return fmt.Sprintf("[%d:%d, %d:%d, %d:%d]", b.Low[0], h[0], b.Low[1], h[1], b.Low[2], h[2])
}
