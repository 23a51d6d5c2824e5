package device

// Space is one device with its memory: a GPU, or an emulated one.
type Space interface {
	// Name returns the name that [Open] takes, such as "cuda:0".
	Name() string

	// Properties describes the device.
	Properties() Properties

	// MemoryInfo returns how much memory the device has, and how much of it
	// is free.
	MemoryInfo() (MemoryInfo, error)

	// Allocate returns new device memory of the given size, aligned to 256
	// bytes or more, with undefined content. A size that isn't greater than 0
	// is ErrInvalid; where there isn't enough memory, the error is
	// ErrOutOfMemory, and the space stays usable.
	Allocate(bytes int64) (Memory, error)

	// WrapMemory returns memory that somebody else allocated on this device.
	// Its Free leaves the memory alone. The error is ErrAddress if the range
	// isn't memory of this device.
	WrapMemory(p Ptr, bytes int64) (Memory, error)

	// AddressRange returns the allocation that p points into. The error is
	// ErrAddress if p isn't memory of this device, as when it is a host
	// address.
	AddressRange(p Ptr) (base Ptr, bytes int64, err error)

	// AllocateHost returns new pinned host memory, page-aligned or aligned to
	// 64 bytes at least, with undefined content. It isn't seen by the garbage
	// collector.
	AllocateHost(bytes int64) (HostMemory, error)

	// RegisterHost pins host memory that the caller owns, so that copies from
	// and to it run at full speed and asynchronously. Free ends that and
	// leaves the memory alone. The memory must stay allocated until then, and
	// must not be registered twice.
	RegisterHost(mem []byte) (HostMemory, error)

	// NewStream returns a new, empty stream, which doesn't synchronise with
	// any other one implicitly.
	NewStream() (Stream, error)

	// WrapStream returns a stream that somebody else made on this device, by
	// the driver's own handle. Its Close leaves the stream alone. Handle 0 is the
	// default stream, which all threads share. CUDA, and newer versions of HIP, have
	// another handle for it, 1, and one for the default stream of the calling OS
	// thread, 2, which is ErrInvalid, as goroutines move between threads. A program
	// that is built with default streams for each thread uses 0 as well: work there
	// runs after what is queued on those, and they wait for it.
	WrapStream(handle uintptr) (Stream, error)

	// NewEvent returns a new event.
	NewEvent() (Event, error)

	// LoadModule loads kernels from an image in a format that the backend
	// documents: PTX, a code object, or a name for emulated kernels. The
	// image isn't needed afterwards.
	LoadModule(image []byte) (Module, error)

	// Synchronize waits until all streams of the space have run what is in
	// their queues, and reports the error of any of it.
	Synchronize() error

	// Close gives the device back. Everything that was made on the space must
	// be freed or closed before; a backend may report what wasn't. Further
	// calls fail with ErrClosed.
	Close() error
}

// Properties describes a device. Fields that a backend can't find out are
// empty.
type Properties struct {
	// Kind is the first part of the space's name: "cuda", "hip", "emulated".
	Kind string
	// Ordinal is the number of the device among those of its kind.
	Ordinal int
	// Model is the vendor's name of the device.
	Model string
	// Arch is the instruction set that a module must be built for, such as
	// "sm_90" or "gfx942".
	Arch string
	// Driver names the driver and its version.
	Driver string
}

// MemoryInfo tells how much memory a device has, in bytes.
type MemoryInfo struct {
	Free, Total int64
}
