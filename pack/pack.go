package pack

import "unsafe"

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

// check validates the layout, the length of the storage and the range of
// cells.
func check(op string, l Layout, storage, first, count int64) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if want := l.PaddedCells(); storage != want {
		return &SizeError{Op: op, What: "padded storage", Got: storage, Want: want}
	}
	if cells := l.Cells(); first < 0 || count > cells || first > cells-count {
		return &RangeError{Op: op, First: first, Count: count, Cells: cells}
	}
	return nil
}

// whole returns the number of size-byte cells in b, or an error if a part of a
// cell is left over.
func whole(op string, b []byte, size int) (int64, error) {
	if len(b)%size != 0 {
		return 0, &PartialCellError{Op: op, Bytes: int64(len(b)), CellSize: size}
	}
	return int64(len(b) / size), nil
}

// Pack copies the owned cells [first, first+len(dst)) of the padded storage
// src to dst, x fastest. src must have l.PaddedCells() cells.
func Pack[T Number](dst, src []T, l Layout, first int64) error {
	if err := check("pack", l, int64(len(src)), first, int64(len(dst))); err != nil {
		return err
	}
	packRows(Bytes(dst), src, l, first, int64(len(dst)))
	return nil
}

// PackBytes is [Pack] into the bytes of a file: little-endian, at any address.
func PackBytes[T Number](dst []byte, src []T, l Layout, first int64) error {
	var t T
	n, err := whole("pack", dst, int(unsafe.Sizeof(t)))
	if err != nil {
		return err
	}
	if err := check("pack", l, int64(len(src)), first, n); err != nil {
		return err
	}
	packRows(dst, src, l, first, n)
	if bigEndian {
		swapCells[T](dst)
	}
	return nil
}

func packRows[T Number](dst []byte, src []T, l Layout, first, count int64) {
	var t T
	size := int(unsafe.Sizeof(t))
	from := Bytes(src)
	for s := l.rowsOf(first, count); s.left > 0; {
		r := s.next()
		n := r.n * size
		last := (r.store + (r.rows-1)*r.row + r.n) * size
		kernels.copyRows(dst[:r.rows*n], from[r.store*size:last], n, n, r.row*size, r.rows)
		dst = dst[r.rows*n:]
	}
}

// Unpack copies src to the owned cells [first, first+len(src)) of the padded
// storage dst, which must have l.PaddedCells() cells. Ghost cells and the
// other owned cells keep their bits.
func Unpack[T Number](dst, src []T, l Layout, first int64) error {
	if err := check("unpack", l, int64(len(dst)), first, int64(len(src))); err != nil {
		return err
	}
	unpackRows(dst, Bytes(src), l, first, int64(len(src)))
	return nil
}

// UnpackBytes is [Unpack] from the bytes of a file: little-endian, at any
// address.
func UnpackBytes[T Number](dst []T, src []byte, l Layout, first int64) error {
	var t T
	size := int(unsafe.Sizeof(t))
	n, err := whole("unpack", src, size)
	if err != nil {
		return err
	}
	if err := check("unpack", l, int64(len(dst)), first, n); err != nil {
		return err
	}
	if bigEndian {
		return swapped[T](src, func(piece []byte, cell int64) error {
			unpackRows(dst, piece, l, first+cell, int64(len(piece)/size))
			return nil
		})
	}
	unpackRows(dst, src, l, first, n)
	return nil
}

func unpackRows[T Number](dst []T, src []byte, l Layout, first, count int64) {
	var t T
	size := int(unsafe.Sizeof(t))
	to := Bytes(dst)
	for s := l.rowsOf(first, count); s.left > 0; {
		r := s.next()
		n := r.n * size
		last := (r.store + (r.rows-1)*r.row + r.n) * size
		kernels.copyRows(to[r.store*size:last], src[:r.rows*n], n, r.row*size, n, r.rows)
		src = src[r.rows*n:]
	}
}
