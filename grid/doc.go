// Package grid describes the geometry of a simulation by value: the global
// domain, boxes of its cells, and the Cartesian decomposition of the domain
// over ranks.
//
// A [Domain] is a structured grid with its size in cells, its physical origin
// and spacing, and a periodic flag per axis. A [Box] is an axis-aligned range
// of global cell indices. [Decompose] assigns one box to each rank:
//
//	d := grid.Domain{
//		Size:    [3]int{256, 256, 128},
//		Spacing: [3]float64{0.5, 0.5, 0.5},
//	}
//	dec, err := grid.Decompose(d, 12)
//	if err != nil {
//		return err
//	}
//	mine := dec.Box(rank)
//
// Axes are always in the order x, y, z, and x is the fastest one: in storage,
// in files, and in the numbering of the ranks of a decomposition. A problem in
// one or two dimensions has size 1 along the axes that it lacks.
//
// [Tile] checks that the boxes of all ranks, however they were made, cover the
// domain exactly once.
//
// # Concurrency
//
// All types are plain values without hidden state. They may be copied,
// compared with ==, and used by several goroutines at once.
package grid
