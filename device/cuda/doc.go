// Package cuda makes NVIDIA GPUs spaces of package device. It uses the driver
// library libcuda.so.1, which it loads when the first space is opened, so a
// program that imports it builds and runs everywhere, and needs neither cgo nor
// the CUDA toolkit. Where there is no driver, or no GPU, opening a space is
// device.ErrUnavailable.
//
// Importing the package registers the kind "cuda":
//
//	import _ "github.com/fieldstone-io/fieldstone/device/cuda"
//	...
//	space, err := device.Open("cuda:0")
//
// # Contexts
//
// CUDA's objects belong to a context, and each OS thread has a current one. A
// space is made in
//
//   - the context that is current on the calling thread, if there is one, for
//     the name "cuda:current". Without one the error is device.ErrNotFound.
//   - the current context if it is one of device n, otherwise the device's
//     primary context, for the name "cuda:n". The primary context is the one
//     that CUDA's runtime library uses.
//   - the current context if there is one, otherwise the primary context of
//     device 0, for the name "cuda".
//   - a context that the solver names, by [Adopt].
//
// A goroutine that relies on the current context must have called
// runtime.LockOSThread before it made it current. Memory, streams and events
// of one context can't be used in another. A context of the solver's must
// outlive the space, which is lost with it otherwise; a primary context is retained until the space is closed.
//
// All methods can be called from any goroutine on any OS thread. They make the
// space's context current, and afterwards again what was current before.
//
// # Memory
//
// Copies run asynchronously from and to host memory that is pinned: by
// AllocateHost or RegisterHost of any space of the kind, or by the solver in the
// driver. Copies from and to other host memory are over when the call returns.
// That holds too where the device reaches all memory of the host by itself: memory is
// pinned that was allocated or registered for it.
//
// # Modules
//
// The image of a module is PTX, a cubin or a fat binary. PTX is compiled by the
// driver; if it refuses, the error has the compiler's messages. Arguments of
// kernels are passed as one block, see [device.Args].
//
// # Errors
//
// Errors have the driver's name and number. An error after which the context
// can't be used any more, such as that of a kernel which reached memory that
// isn't there, is reported once by the call that met it, together with the
// kernel that was launched last; from then on calls fail with device.ErrLost and
// that first cause, and calls that free or close something succeed.
package cuda
