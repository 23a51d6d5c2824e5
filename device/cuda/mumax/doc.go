// Package mumax is a device space for solvers that are built on mumax³'s CUDA
// bindings, github.com/mumax/3/cuda/cu: it works in the context that the solver
// has made, on its buffers and streams, through the calls of that package alone.
// Solvers that aren't built on it use package cuda, which can do more.
//
// # Licence
//
// mumax³ is under the GNU General Public License, version 3. A program that is
// built with the tag mumax contains part of it, so such a program as a whole can
// only be passed on under that licence. Fieldstone's own files, those of this
// package among them, stay under theirs. Without the tag the package is empty,
// and nothing of mumax³ is built or linked.
//
// # Use
//
// The package needs cgo and the tag mumax; cgo finds <cuda.h> and libcuda by the
// flags of package cu or by CGO_CFLAGS and CGO_LDFLAGS. CUDA 13 has other headers
// than cu expects.
//
// On the thread where the solver's context is current:
//
//	runtime.LockOSThread()
//	cu.Init(0)
//	cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(0)) // current on this thread now
//	buffer := cu.MemAlloc(bytes)
//	...
//	space, err := mumax.Adopt()
//	...
//	stream, err := space.AdoptStream(0)
//	...
//	psi, err := field.WrapDevice[float64](domain, box, device.Ptr(buffer), stream, nil)
//
// device.Open("mumax:0") does the same if the calling thread's context is one of
// device 0, and makes a context of its own otherwise.
//
// # Threads
//
// A CUDA context is current on an OS thread. Each call runs on the thread of its
// caller, locked for as long. Where the space's context is current, as on the
// solver's own thread, nothing else is done; elsewhere it is made current for the
// time of the call, and what was current before is restored. So all of it may be
// called from any goroutine, and a call that waits holds up nobody else.
//
// # What cu lacks
//
// Package cu panics with a number, knows no events, no strided copies and no
// registration of host memory, and unloads no modules. Here:
//
//   - Panics become errors of type device.Error with the driver's number and name.
//   - An event stands for all of its stream up to the record. To synchronise with it
//     waits for the stream's whole queue; its query may say no for as long as the
//     stream has later work.
//   - Streams synchronise with the default stream, since cu makes no others. That is
//     how a stream waits for an event: an empty piece of work in the default stream,
//     which runs after everything that is queued on all streams, and before everything
//     that is queued later. The host doesn't wait, but streams lose the overlap of
//     that moment. Only streams that were made by cu are sure to take part; for
//     those of WrapStream that may be others, the host waits instead, within Wait.
//     AdoptStream says that a stream was made by cu.
//   - Closing a stream waits for it if an event was recorded on it that isn't known to
//     be over.
//   - A box is copied row by row unless its rows lie close together on both sides: one
//     driver call, of the order of a microsecond, for each. The kernels of device.BoxKernels
//     are the better way for large ones.
//   - Registered host memory isn't pinned. Its copies are correct, but staged by the
//     driver. AllocateHost returns pinned memory.
//   - A module that was closed stays loaded until the context ends. The same image isn't
//     loaded twice by one space. What the compiler has to say about a bad one isn't
//     known, only the number.
//
// # Errors
//
// After an error that leaves the context unusable, such as an illegal address in a
// kernel, every call fails with device.ErrLost, that cause, and the call that was told
// of it first. Calls that free something succeed then; Close of the space reports
// the cause if nobody was told before.
package mumax
