//go:build !purego

package pack

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// The assembly. Rows are not empty and there is at least one.
//
//go:noescape
func copyRowsAVX512(dst, src []byte, n, dstRow, srcRow, rows int)

//go:noescape
func streamRowsAVX512(dst, src []byte, n, dstRow, srcRow, rows int)

//go:noescape
func widenRowsAVX512(dst []byte, src []float32, n, dstRow, srcRow, rows int)

//go:noescape
func narrowRowsAVX512(dst []float32, src []byte, n, dstRow, srcRow, rows int)

//go:noescape
func exactAVX512(src []byte) int

//go:noescape
func foldAVX512(r uint64, p []byte, ahead *byte, keys *[16]uint64, rest *[16]byte)

//go:noescape
func copySumRowsAVX512(dst, src []byte, n, dstRow, srcRow, rows int, sum, keys *[16]uint64, count bool) int

//go:noescape
func nonFiniteAVX512(b []byte) int

//go:noescape
func copyRowsAVX2(dst, src []byte, n, dstRow, srcRow, rows int)

//go:noescape
func streamLinesAVX2(dst, src []byte, n, dstRow, srcRow, rows int)

//go:noescape
func widenRowsAVX2(dst []byte, src []float32, n, dstRow, srcRow, rows int)

//go:noescape
func narrowRowsAVX2(dst []float32, src []byte, n, dstRow, srcRow, rows int)

//go:noescape
func exactAVX2(src []byte) int

//go:noescape
func nonFiniteAVX2(b []byte) int

func fenceSSE2()

var avx2 = kernelSet{
	name:       "AVX2",
	copyRows:   copyRowsAVX2,
	streamRows: streamRowsAVX2,
	fence:      fenceSSE2,
	widenRows:  widenRowsAVX2,
	narrowRows: narrowRowsAVX2,
	inexact:    inexactAVX2,
	remainder:  remainderGeneric,
	nonFinite:  nonFiniteAVX2,
}

var avx512 = kernelSet{
	name:       "AVX-512",
	copyRows:   copyRowsAVX512,
	streamRows: streamAVX512,
	fence:      fenceSSE2,
	widenRows:  widenRowsAVX512,
	narrowRows: narrowRowsAVX512,
	inexact:    inexactAVX512,
	remainder:  remainderGeneric,
	nonFinite:  nonFiniteAVX512,
}

// withFold is avx512 on a machine that also multiplies polynomials in such wide
// registers.
var withFold = func() kernelSet {
	k := avx512
	k.name = "AVX-512, VPCLMULQDQ"
	k.remainder = remainderAVX512
	k.copySumRows = func(dst, src []byte, n, dstRow, srcRow, rows int, sum *[16]uint64, count bool) int {
		return copySumRowsAVX512(dst, src, n, dstRow, srcRow, rows, sum, &foldKeys, count)
	}
	return k
}()

func available() []*kernelSet {
	all := []*kernelSet{&generic}
	if cpuid.CPU.Supports(cpuid.AVX2) {
		all = append(all, &avx2)
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.BMI2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL) {
		all = append(all, &avx512)
		if cpuid.CPU.Supports(cpuid.VPCLMULQDQ) {
			all = append(all, &withFold)
		}
	}
	return all
}

const line = 64 // bytes of a cache line

// longRow is the length in bytes from which on rows are streamed that share
// lines with bytes that other stores write: those lines are stored in the
// ordinary way, which reads them first (BenchmarkStreamAgainstPlain).
const longRow = 768

// streamAVX512 streams rows behind one another from a line on: the kernel puts
// the lines that two of them share together.
func streamAVX512(dst, src []byte, n, dstRow, srcRow, rows int) {
	start := int(uintptr(unsafe.Pointer(unsafe.SliceData(dst))))
	if n < line || n < longRow && dstRow != n && (start|n|dstRow)%line != 0 {
		copyRowsAVX512(dst, src, n, dstRow, srcRow, rows)
		return
	}
	streamRowsAVX512(dst, src, n, dstRow, srcRow, rows)
}

func streamRowsAVX2(dst, src []byte, n, dstRow, srcRow, rows int) {
	start := int(uintptr(unsafe.Pointer(unsafe.SliceData(dst))))
	switch {
	case (start|n|dstRow)%line == 0:
		streamLinesAVX2(dst, src, n, dstRow, srcRow, rows)
	case n < longRow:
		copyRowsAVX2(dst, src, n, dstRow, srcRow, rows)
	default:
		for d, s := 0, 0; rows > 0; rows-- {
			head := -(start + d) & (line - 1)
			body := (n - head) &^ (line - 1)
			copy(dst[d:d+head], src[s:])
			streamLinesAVX2(dst[d+head:d+head+body], src[s+head:s+head+body], body, 0, 0, 1)
			copy(dst[d+head+body:d+n], src[s+head+body:])
			d += dstRow
			s += srcRow
		}
	}
}

func inexactAVX512(src []byte) int { return inexactWith(src, exactAVX512) }
func inexactAVX2(src []byte) int   { return inexactWith(src, exactAVX2) }

// inexactWith looks closely at the 8 cells that exact stumbles over, and at
// those behind the last whole step.
func inexactWith(src []byte, exact func(src []byte) int) int {
	for at := 0; ; {
		at += exact(src[8*at:])
		end := min(at+8, len(src)/8)
		if i := inexactGeneric(src[8*at : 8*end]); i >= 0 {
			return at + i
		}
		if at = end; 8*at == len(src) {
			return -1
		}
	}
}

// foldKeys are the multipliers of foldAVX512, for the distances that it moves
// 128-bit blocks over. The first 64 bits of a block, those of higher degree,
// have the first number of a pair. A carry-less product of reversed numbers is
// one bit short of the reversed product, hence the power less one.
var foldKeys = func() (k [16]uint64) {
	for i, bytes := range []uint64{512, 256, 128, 64, 48, 32, 16} {
		k[2*i] = power(8*bytes + 64 - 1)
		k[2*i+1] = power(8*bytes - 1)
	}
	return k
}()

// power returns x to the power of n modulo P.
func power(n uint64) uint64 {
	r, square := uint64(one), uint64(one)>>1
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			r = times(r, square)
		}
		square = times(square, square)
	}
	return r
}

// foldBlock is what foldAVX512 takes at once. From one of them on it overtakes
// the others (BenchmarkSum).
const foldBlock = 512

func remainderAVX512(r uint64, b []byte, ahead *byte) uint64 {
	if len(b) < foldBlock {
		return remainderGeneric(r, b, nil)
	}
	if ahead == nil {
		ahead = unsafe.SliceData(b)
	}
	n := len(b) &^ (foldBlock - 1)
	var rest [16]byte
	foldAVX512(r, b[:n], ahead, &foldKeys, &rest)
	return remainderGeneric(remainderTables(0, rest[:]), b[n:], nil)
}
