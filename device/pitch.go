package device

import (
	"fmt"
	"math"
)

// Extent is the size of a box of bytes.
type Extent struct {
	// Row is the length of each row in bytes.
	Row int64
	// Rows is the number of rows of each slice, Slices the number of slices.
	Rows, Slices int64
}

// Bytes returns the number of bytes in the box.
func (e Extent) Bytes() int64 { return e.Row * e.Rows * e.Slices }

// Pitch tells how the rows of a box lie in memory.
type Pitch struct {
	// Row is the distance in bytes from one row to the next.
	Row int64
	// Rows is the distance in rows from one slice to the next.
	Rows int64
}

// Span returns the distance in bytes from the first byte of a box of this
// extent to the end of its last row in memory with pitch p, or 0 for an empty
// box. The error, ErrInvalid, says what is wrong: a negative number, rows or
// slices that overlap, or a box that no memory can hold.
func (p Pitch) Span(e Extent) (int64, error) {
	if e.Row < 0 || e.Rows < 0 || e.Slices < 0 {
		return 0, fmt.Errorf("%w: negative extent %+v", ErrInvalid, e)
	}
	if e.Row == 0 || e.Rows == 0 || e.Slices == 0 {
		return 0, nil
	}
	if p.Row < e.Row {
		return 0, fmt.Errorf("%w: row pitch %d is less than the row's length %d", ErrInvalid, p.Row, e.Row)
	}
	if p.Rows < e.Rows {
		return 0, fmt.Errorf("%w: slice pitch of %d rows is less than the %d rows of a slice", ErrInvalid, p.Rows, e.Rows)
	}
	// Number of row pitches before the last row.
	if e.Slices-1 > (math.MaxInt64-e.Rows)/p.Rows {
		return 0, fmt.Errorf("%w: extent %+v with pitch %+v is too large", ErrInvalid, e, p)
	}
	before := (e.Slices-1)*p.Rows + e.Rows - 1
	if before > (math.MaxInt64-e.Row)/p.Row {
		return 0, fmt.Errorf("%w: extent %+v with pitch %+v is too large", ErrInvalid, e, p)
	}
	return before*p.Row + e.Row, nil
}
