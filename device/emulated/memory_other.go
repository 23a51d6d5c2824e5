//go:build !linux

package emulated

// reserve returns a range of low addresses, where systems don't map anything.
func reserve(int64) (base uintptr, release func() error, err error) {
	return 1 << 20, func() error { return nil }, nil
}

// backing returns memory for the bytes of an allocation.
func backing(bytes int64) (mem []byte, release func() error, err error) {
	return alignedBytes(bytes), func() error { return nil }, nil
}
