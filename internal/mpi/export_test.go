//go:build mpi

package mpi

// SetChunk changes the size of the pieces that communicators move, and gives
// what it was.
func SetChunk(bytes int) int {
	old := chunk
	chunk = bytes
	return old
}

// SetMultiple says whether the library takes calls from several threads at once,
// and returns the value before.
func SetMultiple(multiple bool) bool {
	old := library.multiple
	library.multiple = multiple
	return old
}

// SetMaxMove changes how much one call on a file moves, and returns the value before.
func SetMaxMove(bytes int) int {
	old := maxMove
	maxMove = bytes
	return old
}
