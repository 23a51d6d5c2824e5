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
	widenCells(Bytes(dst), src, l, first, int64(len(dst)))
	return nil
}

// WidenBytes is [Widen] into the bytes of a file: little-endian, at any
// address.
func WidenBytes(dst []byte, src []float32, l Layout, first int64) error {
	n, err := whole("widen", dst, 8)
	if err != nil {
		return err
	}
	if err := check("widen", l, int64(len(src)), first, n); err != nil {
		return err
	}
	widenCells(dst, src, l, first, n)
	if bigEndian {
		swapCells[float64](dst)
	}
	return nil
}

func widenCells(dst []byte, src []float32, l Layout, first, count int64) {
	for s := l.rowsOf(first, count); s.left > 0; {
		r := s.next()
		n := r.n * r.rows
		last := r.store + (r.rows-1)*r.row + r.n
		kernels.widenRows(dst[:8*n], src[r.store:last], r.n, r.n, r.row, r.rows)
		dst = dst[8*n:]
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
	narrowCells(dst, Bytes(src), l, first, int64(len(src)))
	return nil
}

// NarrowBytes is [Narrow] from the bytes of a file: little-endian, at any
// address.
func NarrowBytes(dst []float32, src []byte, l Layout, first int64) error {
	n, err := whole("narrow", src, 8)
	if err != nil {
		return err
	}
	if err := check("narrow", l, int64(len(dst)), first, n); err != nil {
		return err
	}
	if err := CheckNarrowBytes(src, first); err != nil {
		return err
	}
	if bigEndian {
		return swapped[float64](src, func(piece []byte, cell int64) error {
			narrowCells(dst, piece, l, first+cell, int64(len(piece)/8))
			return nil
		})
	}
	narrowCells(dst, src, l, first, n)
	return nil
}

func narrowCells(dst []float32, src []byte, l Layout, first, count int64) {
	for s := l.rowsOf(first, count); s.left > 0; {
		r := s.next()
		n := r.n * r.rows
		last := r.store + (r.rows-1)*r.row + r.n
		kernels.narrowRows(dst[r.store:last], src[:8*n], r.n, r.row, r.n, r.rows)
		src = src[8*n:]
	}
}

// CheckNarrow reports the first value of src that is not exactly a float32 as
// a [*NotFloat32Error]; first is the cell number of src[0].
func CheckNarrow(src []float64, first int64) error {
	if i := kernels.inexact(Bytes(src)); i >= 0 {
		return &NotFloat32Error{Cell: first + int64(i), Value: src[i]}
	}
	return nil
}

// CheckNarrowBytes is [CheckNarrow] on the bytes of a file: little-endian, at
// any address.
func CheckNarrowBytes(src []byte, first int64) error {
	if _, err := whole("narrow", src, 8); err != nil {
		return err
	}
	if bigEndian {
		return swapped[float64](src, func(piece []byte, cell int64) error {
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
