package pack

// A kernelSet holds the loops that move the cells. Each works on rows of equal
// length n whose starts lie a fixed distance apart; rows is at least 1. The
// slices reach exactly to the end of the last row, so a kernel must not touch
// anything behind it.
type kernelSet struct {
	name string

	// copyRows copies rows of n bytes.
	copyRows func(dst, src []byte, n, dstRow, srcRow, rows int)

	// streamRows is copyRows for a destination that is not read soon: its lines
	// go past the caches where that is faster. fence must follow before
	// anybody else may see the destination.
	streamRows func(dst, src []byte, n, dstRow, srcRow, rows int)
	fence      func()

	// widenRows converts rows of n float32 cells to n float64 cells in native
	// byte order. dst has 8 bytes a cell and need not be aligned; dstRow and
	// srcRow count cells.
	widenRows func(dst []byte, src []float32, n, dstRow, srcRow, rows int)

	// narrowRows is the reverse. Every cell is exactly a float32.
	narrowRows func(dst []float32, src []byte, n, dstRow, srcRow, rows int)

	// inexact returns the number of the first cell of src, 8 bytes a cell in
	// native byte order, that is not exactly a float32, or -1.
	inexact func(src []byte) int

	// remainder feeds b to the register r of a checksum. ahead, if it is not
	// nil, points to memory that is needed next: about as many bytes of it as b
	// has are fetched into the cache meanwhile, where the set can do that.
	// Reading behind the end of that memory is harmless, it is a hint.
	remainder func(r uint64, b []byte, ahead *byte) uint64

	// copySumRows, which a set may lack, is copyRows of rows that are whole
	// multiples of sumBlock. It also moves sum forward over what it copies:
	// sum has the same remainder as all bytes so far. If it is to count, it returns
	// what nonFinite would for all of them.
	copySumRows func(dst, src []byte, n, dstRow, srcRow, rows int, sum *[16]uint64, count bool) int

	// nonFinite counts the NaNs and infinities among the little-endian float64
	// numbers that b consists of.
	nonFinite func(b []byte) int
}

// sumBlock is the number of bytes that copySumRows takes at once.
const sumBlock = 128

// kernels is the set in use. It is chosen once, when the program starts, out of
// what available lists: the sets that this machine can run, the best one last.
// The generic one is always the first; the tests run all of them against it.
var kernels = choose()

func choose() *kernelSet {
	all := available()
	return all[len(all)-1]
}
