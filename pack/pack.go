package pack

import (
	"math"
	"math/bits"
	"unsafe"
)

// A Source yields the owned cells of a brick in packed order, as the bytes of
// a file: little-endian float64 or complex128.
type Source interface {
	// ReadCells fills dst with the cells from number first on. dst is a whole
	// number of cells. Calls may repeat and overlap, from one goroutine at a
	// time.
	ReadCells(dst []byte, first int64) error
}

// A Sink takes the owned cells of a brick in packed order, as the bytes of a
// file.
type Sink interface {
	// CheckCells reports whether WriteCells could store these cells. It
	// changes nothing.
	CheckCells(src []byte, first int64) error

	// WriteCells stores the cells from number first on. Ghost cells keep their
	// bits. One goroutine at a time calls.
	WriteCells(src []byte, first int64) error
}

// A RowSource can also put its cells into rows that lie apart, as a brick's
// rows do in a part of the file.
type RowSource interface {
	Source

	// ReadRows is ReadCells of n*rows cells from number first on, of which row
	// i goes to the n cells at dst[i*dstRow]. dstRow counts bytes and is a
	// whole number of cells, n at least if there are several rows. What lies
	// between the rows and behind them keeps its bits.
	ReadRows(dst []byte, first int64, n, rows, dstRow int) error
}

// A RowSink can also take its cells from rows that lie apart.
type RowSink interface {
	Sink

	// WriteRows is WriteCells of n*rows cells from number first on, of which
	// row i is the n cells at src[i*srcRow]. srcRow counts bytes and is a
	// whole number of cells, n at least if there are several rows.
	WriteRows(src []byte, first int64, n, rows, srcRow int) error
}

// A LendSource can also lend its cells, packed in memory of its own, such as what a
// device has filled: then nobody copies them.
type LendSource interface {
	Source

	// LendCells returns the bytes of cells from number first on: one cell at
	// least, whole ones, and no more than most bytes. They stay as they are until
	// they are given to ReturnCells, whatever else is called. Neither cells nor
	// an error mean that there is nothing to lend now: ReadCells has them. It is
	// called as ReadCells is, by one goroutine at a time. The memory is limited,
	// so whoever has cells returns them before it asks for others.
	LendCells(first int64, most int) ([]byte, error)

	// ReturnCells takes back what LendCells has returned, once each, from any
	// goroutine and at any time.
	ReturnCells(cells []byte)
}

// A FlushSink may return before what it was given is where it belongs.
type FlushSink interface {
	Sink

	// Flush waits until it is, and reports what failed on the way. Without it a
	// load is not done.
	Flush() error
}

// CheckRows reports what is wrong with moving n*rows cells from number first on,
// of size bytes each on the packed side, where their rows lie row bytes apart in
// length bytes; op names the operation in the error. It is what [PackRows] and the
// others check, for those who move the cells of a layout in other ways.
func CheckRows(op string, l Layout, first int64, n, rows, row, length, size int) error {
	_, _, err := checkRows(op, l, l.PaddedCells(), first, n, rows, row, length, size)
	return err
}

// check validates the layout, the length of the storage and the range of
// cells.
func check(op string, l Layout, storage, first, count int64) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if want := l.PaddedCells(); storage != want {
		return &SizeError{Op: op, What: "padded storage", Got: storage, Want: want}
	}
	if cells := l.Cells(); first < 0 || count < 0 || count > cells || first > cells-count {
		return &RangeError{Op: op, First: first, Count: count, Cells: cells}
	}
	return nil
}

// checkRows is check for n*rows cells in rows that lie row bytes apart in a
// slice of length bytes. It returns the number of rows that there is anything
// in, and their distance in cells.
func checkRows(op string, l Layout, storage, first int64, n, rows, row, length, size int) (int, int, error) {
	count := int64(math.MaxInt64)
	if n < 0 || rows < 0 {
		count = int64(min(n, rows))
	} else if n == 0 || int64(rows) <= count/int64(n) {
		count = int64(n) * int64(rows)
	}
	if err := check(op, l, storage, first, count); err != nil || count == 0 {
		return 0, 0, err
	}
	if rows == 1 {
		row = 0
	} else if row%size != 0 {
		return 0, 0, &PartialCellError{Op: op, Bytes: int64(row), CellSize: size}
	} else if row /= size; row < n {
		return 0, 0, &SizeError{Op: op, What: "distance of rows", Got: int64(row), Want: int64(n)}
	}
	have := length / size
	if n > have || rows > 1 && row > (have-n)/(rows-1) {
		hi, want := bits.Mul64(uint64(rows-1), uint64(row))
		if hi != 0 || want > math.MaxInt64-uint64(n) {
			want = math.MaxInt64 - uint64(n)
		}
		return 0, 0, &SizeError{Op: op, What: "memory of rows", Got: int64(have), Want: int64(want) + int64(n)}
	}
	return rows, row, nil
}

// whole returns the number of size-byte cells in b, or an error if a part of a
// cell is left over.
func whole(op string, b []byte, size int) (int, error) {
	if len(b)%size != 0 {
		return 0, &PartialCellError{Op: op, Bytes: int64(len(b)), CellSize: size}
	}
	return len(b) / size, nil
}

// Pack copies the owned cells [first, first+len(dst)) of the padded storage
// src to dst, x fastest. src must have l.PaddedCells() cells.
func Pack[T Number](dst, src []T, l Layout, first int64) error {
	if err := check("pack", l, int64(len(src)), first, int64(len(dst))); err != nil {
		return err
	}
	packCells(kernels.copyRows, Bytes(dst), src, l, first, len(dst), 1, 0)
	return nil
}

// PackBytes is [Pack] into the bytes of a file: little-endian, at any address.
func PackBytes[T Number](dst []byte, src []T, l Layout, first int64) error {
	var t T
	n, err := whole("pack", dst, int(unsafe.Sizeof(t)))
	if err != nil {
		return err
	}
	return packRows(kernels.copyRows, dst, src, l, first, n, 1, 0)
}

// PackRows is [PackBytes] of n*rows cells into rows that lie apart: row i goes
// to the n cells at dst[i*dstRow]. dstRow counts bytes and is a whole number of
// cells, n at least if there are several rows. Other bytes of dst are left
// alone.
//
// The rows are streamed as by [PackStream]. They lie apart because others put
// theirs in between: the lines are in the caches of other cores, and to get them
// from there takes longer than to store past them.
func PackRows[T Number](dst []byte, src []T, l Layout, first int64, n, rows, dstRow int) error {
	if bigEndian {
		return packRows(kernels.copyRows, dst, src, l, first, n, rows, dstRow) // swaps right away
	}
	err := packRows(kernels.streamRows, dst, src, l, first, n, rows, dstRow)
	kernels.fence()
	return err
}

func packRows[T Number](move mover, dst []byte, src []T, l Layout, first int64, n, rows, dstRow int) error {
	var t T
	size := int(unsafe.Sizeof(t))
	rows, row, err := checkRows("pack", l, int64(len(src)), first, n, rows, dstRow, len(dst), size)
	if err != nil {
		return err
	}
	packCells(move, dst, src, l, first, n, rows, row)
	if bigEndian {
		swapRows[T](dst, n, rows, row)
	}
	return nil
}

// Stream copies src to the beginning of dst, which is not read soon by this core;
// see [PackStream]. They have the same length.
func Stream(dst, src []byte) error {
	if len(dst) != len(src) {
		return &SizeError{Op: "stream", What: "destination", Got: int64(len(dst)), Want: int64(len(src))}
	}
	if len(src) > 0 {
		kernels.streamRows(dst, src, len(src), len(src), len(src), 1)
		kernels.fence()
	}
	return nil
}

// A StreamSource can also fill memory that is not read soon.
type StreamSource interface {
	Source

	// ReadStream is ReadCells by [PackStream], if there is enough to stream.
	ReadStream(dst []byte, first int64) error
}

// PackStream is [PackBytes] for bytes that are not read soon, by this core or
// another: a snapshot of more than the caches hold. It stores whole cache lines
// straight to memory, which saves reading them first and leaves the caches to
// others. It is slower than PackBytes if the bytes are written to a file or
// summed up right away.
func PackStream[T Number](dst []byte, src []T, l Layout, first int64) error {
	if bigEndian {
		return PackBytes(dst, src, l, first) // swaps right away
	}
	var t T
	n, err := whole("pack", dst, int(unsafe.Sizeof(t)))
	if err != nil {
		return err
	}
	if err := check("pack", l, int64(len(src)), first, int64(n)); err != nil {
		return err
	}
	packCells(kernels.streamRows, dst, src, l, first, n, 1, 0)
	kernels.fence()
	return nil
}

// A mover is a kernel that copies rows.
type mover = func(dst, src []byte, n, dstRow, srcRow, rows int)

// packCells fills rows of n cells that lie row cells apart.
func packCells[T Number](move mover, dst []byte, src []T, l Layout, first int64, n, rows, row int) {
	var t T
	size := int(unsafe.Sizeof(t))
	from := Bytes(src)
	var b block
	for w := l.walk(first, n, rows, row); w.next(&b); {
		move(dst[b.other*size:b.otherEnd()*size], from[b.store*size:b.storeEnd()*size],
			b.n*size, b.otherRow*size, b.storeRow*size, b.rows)
	}
}

// Unpack copies src to the owned cells [first, first+len(src)) of the padded
// storage dst, which must have l.PaddedCells() cells. Ghost cells and the
// other owned cells keep their bits.
func Unpack[T Number](dst, src []T, l Layout, first int64) error {
	if err := check("unpack", l, int64(len(dst)), first, int64(len(src))); err != nil {
		return err
	}
	unpackCells(kernels.copyRows, dst, Bytes(src), l, first, len(src), 1, 0)
	return nil
}

// UnpackBytes is [Unpack] from the bytes of a file: little-endian, at any
// address.
func UnpackBytes[T Number](dst []T, src []byte, l Layout, first int64) error {
	var t T
	n, err := whole("unpack", src, int(unsafe.Sizeof(t)))
	if err != nil {
		return err
	}
	return UnpackRows(dst, src, l, first, n, 1, 0)
}

// UnpackRows is [UnpackBytes] of n*rows cells from rows that lie apart: row i
// is the n cells at src[i*srcRow]. srcRow counts bytes and is a whole number of
// cells, n at least if there are several rows.
func UnpackRows[T Number](dst []T, src []byte, l Layout, first int64, n, rows, srcRow int) error {
	var t T
	size := int(unsafe.Sizeof(t))
	rows, row, err := checkRows("unpack", l, int64(len(dst)), first, n, rows, srcRow, len(src), size)
	if err != nil {
		return err
	}
	if bigEndian {
		return swapped[T](src, n*size, rows, row*size, func(piece []byte, cell int64) error {
			unpackCells(kernels.copyRows, dst, piece, l, first+cell, len(piece)/size, 1, 0)
			return nil
		})
	}
	unpackCells(kernels.copyRows, dst, src, l, first, n, rows, row)
	return nil
}

// UnpackStream is [UnpackBytes] into storage that is not read soon; see
// [PackStream].
func UnpackStream[T Number](dst []T, src []byte, l Layout, first int64) error {
	if bigEndian {
		return UnpackBytes(dst, src, l, first)
	}
	var t T
	n, err := whole("unpack", src, int(unsafe.Sizeof(t)))
	if err != nil {
		return err
	}
	if err := check("unpack", l, int64(len(dst)), first, int64(n)); err != nil {
		return err
	}
	unpackCells(kernels.streamRows, dst, src, l, first, n, 1, 0)
	kernels.fence()
	return nil
}

// unpackCells empties rows of n cells that lie row cells apart.
func unpackCells[T Number](move mover, dst []T, src []byte, l Layout, first int64, n, rows, row int) {
	var t T
	size := int(unsafe.Sizeof(t))
	to := Bytes(dst)
	var b block
	for w := l.walk(first, n, rows, row); w.next(&b); {
		move(to[b.store*size:b.storeEnd()*size], src[b.other*size:b.otherEnd()*size],
			b.n*size, b.storeRow*size, b.otherRow*size, b.rows)
	}
}
