//go:build mpi

package mpi

// SetChunk changes the size of the pieces that communicators move, and gives
// what it was.
func SetChunk(bytes int) int {
	old := chunk
	chunk = bytes
	return old
}
