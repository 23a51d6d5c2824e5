//go:build unix

package shm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func alloc(n int) (*Memory, error) {
	size, align := n, 0
	if n >= worthHuge {
		size, align = (n+hugePage-1)/hugePage*hugePage+hugePage, hugePage
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	m := &Memory{Bytes: b[:n:n], mapping: b}
	if align != 0 {
		skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(align-1))
		m.Bytes = b[skip : skip+n : skip+n]
		adviseHuge(b[skip : skip+size-hugePage])
	}
	return m, nil
}

func unmap(b []byte) error { return unix.Munmap(b) }
