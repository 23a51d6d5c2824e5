package pack

// A kernelSet holds the loops that move the cells. Each works on rows of equal
// length n whose starts lie a fixed distance apart; rows is at least 1. The
// slices reach exactly to the end of the last row, so a kernel must not touch
// anything behind it.
type kernelSet struct {
	name string

	// copyRows copies rows of n bytes.
	copyRows func(dst, src []byte, n, dstRow, srcRow, rows int)

	// widenRows converts rows of n float32 cells to n float64 cells in native
	// byte order. dst has 8 bytes a cell and need not be aligned; dstRow and
	// srcRow count cells.
	widenRows func(dst []byte, src []float32, n, dstRow, srcRow, rows int)

	// narrowRows is the reverse. Every cell is exactly a float32.
	narrowRows func(dst []float32, src []byte, n, dstRow, srcRow, rows int)

	// inexact returns the number of the first cell of src, 8 bytes a cell in
	// native byte order, that is not exactly a float32, or -1.
	inexact func(src []byte) int
}

// kernels is the set in use. It is chosen once, when the program starts.
var kernels = choose()

// available lists the sets that this machine can run, the best one last. The
// generic one is always the first; the tests run all of them against it.
func available() []*kernelSet {
	return []*kernelSet{&generic}
}

func choose() *kernelSet {
	all := available()
	return all[len(all)-1]
}
