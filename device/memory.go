package device

// Ptr is an address in device memory. The host can't use it for anything but
// arithmetic.
type Ptr uintptr

// Add returns the address the given number of bytes further.
func (p Ptr) Add(bytes int64) Ptr { return p + Ptr(bytes) }

// Memory is a range of device memory.
type Memory interface {
	// Ptr returns the address of the first byte.
	Ptr() Ptr
	// Size returns the number of bytes.
	Size() int64
	// Free gives the memory back. No queued work may use it any more. A
	// second call is ErrClosed.
	Free() error
}

// HostMemory is pinned host memory: the device copies from and to it directly.
type HostMemory interface {
	// Bytes returns the memory. It must not be used after Free if the space
	// allocated it.
	Bytes() []byte
	// Free gives the memory back, or ends its registration. No queued work
	// may use it any more. A second call is ErrClosed.
	Free() error
}
