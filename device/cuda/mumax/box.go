//go:build mumax

package mumax

import (
	"iter"

	"github.com/fieldstone-io/fieldstone/device"
)

// parts yields where the longest contiguous parts of a box begin in two arrays.
// The extent becomes that of one part and their number.
func parts(a, b device.Pitch, e *device.Extent) iter.Seq2[int64, int64] {
	if e.Rows == 1 || a.Row == e.Row && b.Row == e.Row {
		*e = device.Extent{Row: e.Row * e.Rows, Rows: 1, Slices: e.Slices}
		if a.Row*a.Rows == e.Row && b.Row*b.Rows == e.Row {
			*e = device.Extent{Row: e.Row * e.Slices, Rows: 1, Slices: 1}
		}
	}
	return func(yield func(int64, int64) bool) {
		for z := range e.Slices {
			for y := range e.Rows {
				if !yield((z*a.Rows+y)*a.Row, (z*b.Rows+y)*b.Row) {
					return
				}
			}
		}
	}
}
