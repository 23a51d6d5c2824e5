package field

import (
	"iter"

	"github.com/fieldstone-io/fieldstone/pack"
)

// Index returns the place in the padded storage of the cell with the local
// indices i, j, k. Along each axis they run over [-halo, n+halo), where n is
// the owned size; they aren't checked.
func (f *Field[T]) Index(i, j, k int) int { return f.layout.Index(i, j, k) }

// Global returns the global indices of a cell. Those of ghost cells may lie
// outside of the domain.
func (f *Field[T]) Global(i, j, k int) [3]int {
	return [3]int{f.box.Low[0] + i, f.box.Low[1] + j, f.box.Low[2] + k}
}

// Coordinates returns the physical position of the cell with the local indices
// i, j, k.
func (f *Field[T]) Coordinates(i, j, k int) [3]float64 {
	g := f.Global(i, j, k)
	return f.domain.Coordinates(g[0], g[1], g[2])
}

// IterationHalo returns the number of ghost cells on each side that
// [Field.Iteration] visits.
func (f *Field[T]) IterationHalo() [3]int { return f.iteration }

// Owned returns the owned cells: [0, n) along each axis.
func (f *Field[T]) Owned() Range { return f.rangeOf([3]int{}) }

// Iteration returns the owned cells and those of the iteration halo:
// [-iteration halo, n + iteration halo) along each axis.
func (f *Field[T]) Iteration() Range { return f.rangeOf(f.iteration) }

// Padded returns all cells of the storage: [-halo, n+halo) along each axis.
func (f *Field[T]) Padded() Range { return f.rangeOf(f.halo) }

func (f *Field[T]) rangeOf(halo [3]int) Range {
	r := Range{layout: f.layout}
	if f.box.Empty() {
		return r
	}
	for a := range halo {
		r.Low[a], r.High[a] = -halo[a], f.box.Size[a]+halo[a]
	}
	return r
}

// Range is a range of a field's cells in local indices: [Low, High) along each
// axis.
type Range struct {
	Low, High [3]int
	layout    pack.Layout
}

// Row is a run of cells along x, contiguous in the storage.
type Row struct {
	// I, J, K are the local indices of its first cell.
	I, J, K int
	// Start and End are the places in the padded storage of the first cell
	// and past the last one.
	Start, End int
}

// Cells yields the local indices of every cell, x fastest.
func (r Range) Cells() iter.Seq[[3]int] {
	return func(yield func([3]int) bool) {
		for k := r.Low[2]; k < r.High[2]; k++ {
			for j := r.Low[1]; j < r.High[1]; j++ {
				for i := r.Low[0]; i < r.High[0]; i++ {
					if !yield([3]int{i, j, k}) {
						return
					}
				}
			}
		}
	}
}

// Rows yields every row, y fastest. Loops over the cells of a row run at full
// speed:
//
//	for row := range f.Iteration().Rows() {
//		for n := row.Start; n < row.End; n++ {
//			data[n] *= 2
//		}
//	}
func (r Range) Rows() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		if r.High[0] <= r.Low[0] {
			return
		}
		for k := r.Low[2]; k < r.High[2]; k++ {
			for j := r.Low[1]; j < r.High[1]; j++ {
				start := r.layout.Index(r.Low[0], j, k)
				row := Row{r.Low[0], j, k, start, start + r.High[0] - r.Low[0]}
				if !yield(row) {
					return
				}
			}
		}
	}
}
