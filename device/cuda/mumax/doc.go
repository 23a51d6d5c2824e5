// Package mumax is for solvers that are built on mumax³'s CUDA bindings,
// github.com/mumax/3/cuda/cu: it makes the context that such a solver works in a
// space of package device, through calls of cu alone. Package cuda does the same
// without cgo, without its own licence, and with more of the driver's functions.
//
// # Licence
//
// mumax³ is under the GNU General Public License, version 3. A program built with
// the tag mumax contains part of it, and as a whole can be passed on under that
// licence only. Fieldstone's own files stay under theirs, those of this package
// too. Without the tag the package is empty, and nothing of mumax³ is built.
//
// # Use
//
// The package needs the tag mumax and cgo, which finds <cuda.h> and libcuda by the
// flags of package cu, or by CGO_CFLAGS and CGO_LDFLAGS. Package cu doesn't compile
// with the header of CUDA 13; that of an older CUDA does for any driver.
//
// On the thread where the solver's context is current:
//
//	runtime.LockOSThread()
//	cu.Init(0)
//	cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(0)) // is current on this thread now
//	buffer := cu.MemAlloc(bytes)
//	...
//	space, err := mumax.Adopt()
//	...
//	stream, err := mumax.WrapStream(space, 0)
//	...
//	psi, err := field.WrapDevice[float64](domain, box, device.Ptr(buffer), stream, nil)
//
// Importing the package registers the kind "mumax". As with package cuda,
// "mumax:current" is the context that is current on the calling thread, and "mumax:n"
// too if it is one of device n. Otherwise "mumax:n" makes a context of its own and
// destroys it when the space is closed, for cu knows no primary contexts.
//
// # Threads
//
// A context is current on an OS thread. Each call runs on its caller's, locked for as
// long. On the solver's own thread, where the context is current, that is all; elsewhere
// it is made current for the time of the call, and afterwards again what was before. So
// calls from any goroutine work, and one that waits holds up no other.
//
// # What cu lacks
//
// Package cu panics with a number that is no error, and has no events, no copies of
// boxes, no registration of host memory, and nothing to unload a module with. Here:
//
//   - Panics become errors with the driver's number and name, as package device has them.
//   - An event is known to be over once its stream was found empty. Its Synchronize waits
//     for all that is in the stream at that time, and its Query may say no for as long as
//     the stream is given more.
//   - All streams that cu makes synchronise with the default stream. That is how one waits
//     for another: by an empty piece of work in the default stream, which comes after all that
//     is in any of them, and before all that comes later. The host doesn't wait, but at
//     such a point the streams don't overlap. A stream that somebody else has made may not
//     take part, so where one that isn't known as cu's waits or is waited for, the host
//     waits instead: give streams of cu to WrapStream.
//   - Closing a stream waits for it, if it holds an event's record that isn't known to be over.
//   - A box is copied part by part, each as long as both sides are contiguous: a call of
//     the driver, of the order of a microsecond, for each row in the worst case. The
//     kernels of device.BoxKernels are better for large ones.
//   - Registered host memory isn't pinned: its copies are slower, and over when the call
//     returns. AllocateHost pins.
//   - A closed module stays loaded until the context ends. A space loads the same image
//     once only. What the driver's compiler says of a bad image isn't known, but its number.
//   - cu.LaunchKernel can end the program while garbage is collected, with "found bad
//     pointer in Go heap", if C's memory holds old addresses of Go's. Launches of a space
//     are safe. A solver's own are safer if it gives cu no Go memory to copy from or to.
package mumax
