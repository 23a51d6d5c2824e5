package pack

import (
	"encoding/binary"
	"math"
)

// Widen copies the owned cells [first, first+len(dst)) of the padded storage
// src to dst as float64. This is exact: [Narrow] gives back the same bits,
// those of NaNs included.
func Widen(dst []float64, src []float32, l Layout, first int64) error {
	if err := check("widen", l, int64(len(src)), first, int64(len(dst))); err != nil {
		return err
	}
	widenCells(Bytes(dst), src, l, first, len(dst), 1, 0)
	return nil
}

// WidenBytes is [Widen] into the bytes of a file: little-endian, at any
// address.
func WidenBytes(dst []byte, src []float32, l Layout, first int64) error {
	n, err := whole("widen", dst, 8)
	if err != nil {
		return err
	}
	return WidenRows(dst, src, l, first, n, 1, 0)
}

// WidenRows is [WidenBytes] of n*rows cells into rows that lie apart: row i
// goes to the n cells, 8 bytes each, at dst[i*dstRow]; see [PackRows].
func WidenRows(dst []byte, src []float32, l Layout, first int64, n, rows, dstRow int) error {
	rows, row, err := checkRows("widen", l, int64(len(src)), first, n, rows, dstRow, len(dst), 8)
	if err != nil {
		return err
	}
	widenCells(dst, src, l, first, n, rows, row)
	if bigEndian {
		swapRows[float64](dst, n, rows, row)
	}
	return nil
}

func widenCells(dst []byte, src []float32, l Layout, first int64, n, rows, row int) {
	var b block
	for w := l.walk(first, n, rows, row); w.next(&b); {
		kernels.widenRows(dst[8*b.other:8*b.otherEnd()], src[b.store:b.storeEnd()], b.n, b.otherRow, b.storeRow, b.rows)
	}
}

// Narrow copies src to the owned cells [first, first+len(src)) of the padded
// storage dst as float32. Every value must be exactly a float32: one that
// [Widen] can yield. Otherwise the result is a [*NotFloat32Error] and nothing
// has changed. Zeros keep their sign and NaNs their bits; a NaN whose payload
// needs more than a float32 has is refused.
func Narrow(dst []float32, src []float64, l Layout, first int64) error {
	if err := check("narrow", l, int64(len(dst)), first, int64(len(src))); err != nil {
		return err
	}
	if err := CheckNarrow(src, first); err != nil {
		return err
	}
	narrowCells(dst, Bytes(src), l, first, len(src), 1, 0)
	return nil
}

// NarrowBytes is [Narrow] from the bytes of a file: little-endian, at any
// address.
func NarrowBytes(dst []float32, src []byte, l Layout, first int64) error {
	n, err := whole("narrow", src, 8)
	if err != nil {
		return err
	}
	return NarrowRows(dst, src, l, first, n, 1, 0)
}

// NarrowRows is [NarrowBytes] of n*rows cells from rows that lie apart: row i
// is the n cells, 8 bytes each, at src[i*srcRow]; see [UnpackRows].
func NarrowRows(dst []float32, src []byte, l Layout, first int64, n, rows, srcRow int) error {
	rows, row, err := checkRows("narrow", l, int64(len(dst)), first, n, rows, srcRow, len(src), 8)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := checkFloat32(src[8*i*row:][:8*n], first+int64(i)*int64(n)); err != nil {
			return err
		}
	}
	if bigEndian {
		return swapped[float64](src, 8*n, rows, 8*row, func(piece []byte, cell int64) error {
			narrowCells(dst, piece, l, first+cell, len(piece)/8, 1, 0)
			return nil
		})
	}
	narrowCells(dst, src, l, first, n, rows, row)
	return nil
}

func narrowCells(dst []float32, src []byte, l Layout, first int64, n, rows, row int) {
	var b block
	for w := l.walk(first, n, rows, row); w.next(&b); {
		kernels.narrowRows(dst[b.store:b.storeEnd()], src[8*b.other:8*b.otherEnd()], b.n, b.storeRow, b.otherRow, b.rows)
	}
}

// CheckNarrow reports the first value of src that is not exactly a float32 as
// a [*NotFloat32Error]; first is the cell number of src[0].
func CheckNarrow(src []float64, first int64) error {
	return checkNative(Bytes(src), first)
}

// CheckNarrowBytes is [CheckNarrow] on the bytes of a file: little-endian, at
// any address.
func CheckNarrowBytes(src []byte, first int64) error {
	if _, err := whole("narrow", src, 8); err != nil {
		return err
	}
	return checkFloat32(src, first)
}

// checkFloat32 is CheckNarrowBytes of whole cells.
func checkFloat32(src []byte, first int64) error {
	if bigEndian {
		return swapped[float64](src, len(src), 1, 0, func(piece []byte, cell int64) error {
			return checkNative(piece, first+cell)
		})
	}
	return checkNative(src, first)
}

func checkNative(src []byte, first int64) error {
	if i := kernels.inexact(src); i >= 0 {
		v := math.Float64frombits(binary.NativeEndian.Uint64(src[8*i:]))
		return &NotFloat32Error{Cell: first + int64(i), Value: v}
	}
	return nil
}
