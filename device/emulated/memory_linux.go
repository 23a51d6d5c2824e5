package emulated

import (
	"syscall"
	"unsafe"
)

// reserve returns a range of addresses that nothing can access.
func reserve(bytes int64) (base uintptr, release func() error, err error) {
	window, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return 0, nil, err
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(window))), func() error { return syscall.Munmap(window) }, nil
}

// backing returns page-aligned memory for the bytes of an allocation. It is a
// mapping of its own, so that a kernel that uses it after Free faults.
func backing(bytes int64) (mem []byte, release func() error, err error) {
	mem, err = syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	return mem, func() error { return syscall.Munmap(mem) }, nil
}
