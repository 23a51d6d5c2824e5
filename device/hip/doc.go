// Package hip makes AMD GPUs spaces of package device. It uses ROCm's runtime
// library, libamdhip64.so of ROCm 5, 6 or 7, which it loads when the first space
// is opened, so a program that imports it builds and runs everywhere, and needs
// neither cgo nor ROCm's compilers. Where there is no such library, or no GPU,
// opening a space is device.ErrUnavailable. The one that the program has loaded is
// taken, otherwise the newest that is installed.
//
// Importing the package registers the kind "hip":
//
//	import _ "github.com/fieldstone-io/fieldstone/device/hip"
//	...
//	space, err := device.Open("hip:0")
//
// # Devices
//
// HIP's objects belong to a device, and each OS thread has a current one, 0 at
// first. The name "hip:n" stands for device n; "hip:current" and "hip" stand for
// the one that is current on the calling thread. A goroutine that relies on
// that must have called runtime.LockOSThread before it made the device current.
//
// All methods can be called from any goroutine on any OS thread. They make the
// space's device current, and afterwards again what was current before. A call
// that the runtime refuses leaves no last error of the thread behind: with its own
// it removes one of the solver's that nobody has asked for.
//
// # Memory
//
// Copies run asynchronously from and to host memory that is pinned: by
// AllocateHost or RegisterHost of any space of the kind, or by the solver in the
// runtime. Copies from and to other host memory are over when the call returns.
// That holds too where the device reaches all memory of the host by itself: memory is
// pinned that was allocated or registered for it.
//
// # Modules
//
// The image of a module is a code object for the device's architecture, such as
// "gfx942", which is the first part of the Arch property, or a bundle of them. One
// for a family of architectures, such as "gfx11-generic", serves all of these since
// ROCm 6.4. [Targets] says which code objects a device takes.
// The runtime writes what it has against one to the standard error, not into the
// error. Arguments of kernels are passed as one block, see [device.Args].
//
// # Errors
//
// Errors have the runtime's name and number. An error after which the device
// can't be used any more, such as that of a kernel which reached memory that
// isn't there, is reported once by the call that met it, together with the
// kernel that was launched last; from then on calls fail with device.ErrLost and
// that first cause, and calls that free or close something succeed. After some
// such faults the runtime ends the process instead.
package hip
