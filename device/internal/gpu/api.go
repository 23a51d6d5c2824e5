package gpu

import (
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

// Code is the driver's number of a result. It differs between the vendors, but
// for these two.
type Code int32

const (
	// Success is the result of a call that worked.
	Success Code = 0
	// NotReady is the result of a query of what hasn't run yet.
	NotReady Code = 600
)

// Meaning says what a code stands for.
type Meaning struct {
	// Name is the vendor's: "CUDA_ERROR_OUT_OF_MEMORY".
	Name string
	// Err is the sentinel of package device that says the same.
	Err error
	// Sticky says that the device, or its context, can't be used any more:
	// every further call would fail with the same code.
	Sticky bool
}

// Context is what the driver must know to be current on an OS thread: the
// handle of a context, or the number of a device.
type Context uintptr

// API is a vendor's driver. But for Meaning, Current and SetCurrent, the space's
// context is current on the OS thread of the caller, and stays so during the
// call. Handles and addresses are the driver's. Pointers to host memory are
// used until the call returns, and by copies until the stream has passed them.
type API interface {
	Meaning(c Code) Meaning

	// Current returns what is current on this OS thread, SetCurrent changes it.
	Current() (Context, Code)
	SetCurrent(c Context) Code

	MemoryInfo() (device.MemoryInfo, Code)
	Allocate(bytes int64) (device.Ptr, Code)
	Free(p device.Ptr) Code
	// AddressRange returns the allocation that p points into, or none if p is
	// no memory of the context.
	AddressRange(p device.Ptr) (base device.Ptr, bytes int64, c Code)

	AllocateHost(bytes int64) (unsafe.Pointer, Code)
	FreeHost(p unsafe.Pointer) Code
	RegisterHost(p unsafe.Pointer, bytes int64) Code
	UnregisterHost(p unsafe.Pointer) Code
	// HostIsPinned reports whether the driver knows p as pinned host memory,
	// whoever pinned it.
	HostIsPinned(p unsafe.Pointer) (bool, Code)

	NewStream() (uintptr, Code)
	CloseStream(stream uintptr) Code
	QueryStream(stream uintptr) Code
	SynchronizeStream(stream uintptr) Code

	NewEvent() (uintptr, Code)
	CloseEvent(event uintptr) Code
	QueryEvent(event uintptr) Code
	SynchronizeEvent(event uintptr) Code
	Record(event, stream uintptr) Code
	Wait(stream, event uintptr) Code

	CopyToDevice(dst device.Ptr, src unsafe.Pointer, bytes int64, stream uintptr) Code
	CopyToHost(dst unsafe.Pointer, src device.Ptr, bytes int64, stream uintptr) Code
	CopyOnDevice(dst, src device.Ptr, bytes int64, stream uintptr) Code
	CopyBox(dst, src Side, e device.Extent, stream uintptr) Code
	Fill(p device.Ptr, value byte, bytes int64, stream uintptr) Code

	// LoadModule returns what the driver's compiler or linker has written, too. The
	// image is followed by a NUL, and stays where it is until CloseModule has
	// succeeded.
	LoadModule(image []byte) (module uintptr, log string, c Code)
	CloseModule(module uintptr) Code
	Kernel(module uintptr, name string) (uintptr, Code)
	Launch(kernel uintptr, l Launch, stream uintptr, args *device.Args) Code

	// Synchronize waits for everything in the context.
	Synchronize() Code
}

// Side is one end of a copy of a box: Host if it isn't nil, or Ptr. The other one
// is 0. The caller keeps Host alive.
type Side struct {
	Host  unsafe.Pointer
	Ptr   device.Ptr
	Pitch device.Pitch
}

// Launch is a device.LaunchConfig that makes sense.
type Launch struct {
	Grid, Block [3]uint32
	SharedBytes uint32
}
