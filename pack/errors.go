package pack

import "fmt"

// A SizeError reports a slice whose length does not fit the layout.
type SizeError struct {
	Op   string // "pack", "unpack", "widen", "narrow"
	What string // "padded storage", "memory of rows", "distance of rows"
	Got  int64  // cells
	Want int64  // cells
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s cells: %s has %d cells, want %d", e.Op, e.What, e.Got, e.Want)
}

// A RangeError reports a range of cells that does not lie inside the brick.
type RangeError struct {
	Op    string
	First int64 // first cell of the range
	Count int64 // its length
	Cells int64 // owned cells of the brick
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("%s cells: %d cells from %d on asked for, the brick has %d", e.Op, e.Count, e.First, e.Cells)
}

// A PartialCellError reports bytes that are not a whole number of cells.
type PartialCellError struct {
	Op       string
	Bytes    int64
	CellSize int
}

func (e *PartialCellError) Error() string {
	return fmt.Sprintf("%s cells: %d bytes are not a whole number of %d-byte cells", e.Op, e.Bytes, e.CellSize)
}

// A NotFloat32Error reports a float64 that no float32 equals.
type NotFloat32Error struct {
	Cell  int64 // number of the cell in packed order
	Value float64
}

func (e *NotFloat32Error) Error() string {
	return fmt.Sprintf("cell %d: %v is not exactly a float32", e.Cell, e.Value)
}
