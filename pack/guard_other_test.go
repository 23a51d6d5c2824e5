//go:build !unix

package pack

import "testing"

// newArena returns at least size bytes; this system has no guard pages.
func newArena(t testing.TB, size int) []byte {
	return make([]byte, size)
}
