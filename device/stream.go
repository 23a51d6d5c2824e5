package device

// Stream is a queue of work on a device. Copy, Fill, Launch, Record and Wait
// put work into the queue and return; see the package documentation for what
// that means for the memory they are given. Lengths are in bytes, and nothing
// is done for lengths of 0.
type Stream interface {
	// Space returns the space that the stream belongs to.
	Space() Space

	// Handle returns the driver's own handle, for calls that are made past
	// this package.
	Handle() uintptr

	// CopyToDevice queues a copy of all of src to dst.
	CopyToDevice(dst Ptr, src []byte) error
	// CopyToHost queues a copy from src that fills dst.
	CopyToHost(dst []byte, src Ptr) error
	// CopyOnDevice queues a copy between two places of the device that don't
	// overlap.
	CopyOnDevice(dst, src Ptr, bytes int64) error

	// CopyBoxToDevice queues a copy of a box. The first byte of the box is
	// src[0] and goes to dst; the strides of the two sides may differ.
	CopyBoxToDevice(dst Ptr, dstPitch Pitch, src []byte, srcPitch Pitch, extent Extent) error
	// CopyBoxToHost is CopyBoxToDevice in the other direction. Bytes of dst
	// between the rows of the box keep their values.
	CopyBoxToHost(dst []byte, dstPitch Pitch, src Ptr, srcPitch Pitch, extent Extent) error
	// CopyBoxOnDevice is CopyBoxToDevice between two places of the device
	// that don't overlap.
	CopyBoxOnDevice(dst Ptr, dstPitch Pitch, src Ptr, srcPitch Pitch, extent Extent) error

	// Fill queues setting all bytes of a range to one value.
	Fill(dst Ptr, value byte, bytes int64) error

	// Launch queues a kernel. The arguments are copied before it returns.
	Launch(k Kernel, config LaunchConfig, args *Args) error

	// Record lets e stand for the work that is in the queue now. What e stood
	// for before is forgotten, but not by the streams that wait for it
	// already.
	Record(e Event) error
	// Wait makes work that is queued afterwards wait for what e stands for
	// now. The host doesn't wait. An event that was never recorded stands for
	// nothing, so nothing waits for it.
	Wait(e Event) error

	// Query reports, without waiting, whether the queue has been run
	// completely.
	Query() (bool, error)
	// Synchronize waits until the queue has been run completely, and reports
	// the error of any work of the space that has failed.
	Synchronize() error

	// Close ends the stream. Work in its queue still runs. A second call is
	// ErrClosed.
	Close() error
}

// Event stands for a point in a stream's queue. Once that stream is closed the event can
// only be closed, or recorded on another one: CUDA would allow more, HIP's runtime would
// follow a pointer to memory that it has given back.
type Event interface {
	// Query reports, without waiting, whether the work that the event stands
	// for has been run. An event that was never recorded has.
	Query() (bool, error)
	// Synchronize waits until the work that the event stands for has been
	// run.
	Synchronize() error
	// Close ends the event. Streams that wait for it already aren't affected.
	// A second call is ErrClosed.
	Close() error
}

// Module is a set of kernels.
type Module interface {
	// Kernel returns a kernel by its name. The error is ErrNotFound if there
	// is none.
	Kernel(name string) (Kernel, error)
	// Close unloads the module; its kernels must not be launched any more.
	// A second call is ErrClosed.
	Close() error
}

// Kernel is a function that runs on the device.
type Kernel interface {
	// Name returns the name that the kernel was found by.
	Name() string
}

// LaunchConfig tells in how many threads a kernel runs.
type LaunchConfig struct {
	// Grid is the number of blocks along x, y, z; Block is the number of
	// threads of each block. Numbers of 0 count as 1.
	Grid, Block [3]int
	// SharedBytes is the size of the shared memory of each block that is
	// chosen at launch.
	SharedBytes int
}
