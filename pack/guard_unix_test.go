//go:build unix

package pack

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// newArena maps at least size bytes between two pages that must not be
// touched.
func newArena(t testing.TB, size int) []byte {
	t.Helper()
	page := os.Getpagesize()
	inner := (size + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(m); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{m[:page], m[page+inner:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return m[page : page+inner : page+inner]
}
