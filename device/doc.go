// Package device says what a memory space beside the host's must be able to
// do: allocate memory, copy between host and device on streams, order streams
// by events, and launch kernels by name. Packages cuda and hip implement it over
// the vendors' driver libraries, package emulated in plain Go, for laptops and
// tests.
//
// A space is opened by name, the kind and which one:
//
//	space, err := device.Open("emulated:0")
//	if err != nil {
//		return err
//	}
//	defer space.Close()
//	mem, err := space.Allocate(8 * cells)
//	...
//	stream, err := space.NewStream()
//	...
//	err = stream.CopyToDevice(mem.Ptr(), hostBytes)
//	...
//	err = stream.Synchronize() // now the bytes are there
//
// A program imports the package of each kind that it wants to offer; importing
// registers the kind, see [RegisterDriver].
//
// # Asynchronous calls
//
// The methods of a [Stream] that copy, fill or launch only put work into the
// stream's queue. Work of one stream runs in the order of the calls; between
// streams there is no order but that made by events ([Stream.Record],
// [Stream.Wait]). Host memory given to a copy belongs to the device until the
// stream has passed the copy, which [Stream.Synchronize], [Event.Synchronize]
// or [Space.Synchronize] wait for: before that it must not be read after a
// copy to the host, nor written after a copy to the device, nor be freed. The
// same holds for device memory that queued work uses. Only copies of pinned host
// memory are sure not to keep the host waiting: a backend may finish those of
// other host memory before the call returns, and what the stream had to do
// before.
//
// # Errors
//
// Errors are values of type [*Error] that name the space and the call and wrap
// one of the sentinels of this package, [ErrOutOfMemory] and so on. Queued work
// that fails can't be reported by the call that queued it. It is reported by a
// later call on the space, at the latest by the Synchronize that waits for the
// work, and stays: from then on every call on the space, except those that
// free something, fails with an error that wraps [ErrLost] and the first cause.
// If freeing fails otherwise, nothing is freed, and it can be tried again.
//
// # Concurrency
//
// All methods of all types may be called from any goroutine, and from several
// at once. Calls on one stream from several goroutines are queued in some
// order. A backend whose driver keeps a current context for each OS thread
// makes its own one current for the time of a call and restores what was
// current before, so it neither disturbs nor depends on the solver's use of
// the thread. Calls in a row can share that, see [Holder].
package device
