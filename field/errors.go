package field

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/sentinel"
	"github.com/fieldstone-io/fieldstone/pack"
)

// ErrFreed says that a field was used after its Free.
var ErrFreed = errors.New("field is freed")

func init() { sentinel.Register("field.ErrFreed", ErrFreed) }

// OutsideError says that a field's box isn't within its domain.
type OutsideError struct {
	Box    grid.Box
	Domain grid.Box
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("box %v is not within the domain %v", e.Box, e.Domain)
}

// LengthError says that memory given to a field doesn't have the length of
// its padded storage.
type LengthError struct {
	// What is "data" or "mirror".
	What string
	// Got and Want are numbers of cells.
	Got, Want int64
	// Padded is the wanted size along each axis.
	Padded [3]int
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%s has %d cells, want %d (padded size %d x %d x %d)",
		e.What, e.Got, e.Want, e.Padded[0], e.Padded[1], e.Padded[2])
}

// CellError names the cell that can't be stored.
type CellError struct {
	// Cell holds its global indices.
	Cell [3]int
	// Err is the cause, such as a [*pack.NotFloat32Error].
	Err error
}

func (e *CellError) Error() string {
	var cause any = e.Err
	if n, ok := errors.AsType[*pack.NotFloat32Error](e.Err); ok {
		// Its own text has the number of the cell in the box, which says
		// nothing more.
		cause = fmt.Sprintf("%v is not exactly a float32", n.Value)
	}
	return fmt.Sprintf("cell (%d, %d, %d): %v", e.Cell[0], e.Cell[1], e.Cell[2], cause)
}

// Unwrap returns the cause.
func (e *CellError) Unwrap() error { return e.Err }
