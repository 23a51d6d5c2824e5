// Package emulated is a device in plain Go, for laptops and for tests. It
// behaves like a GPU where programs go wrong:
//
//   - Its addresses lie in an inaccessible mapping, so the host faults when it
//     uses one. The bytes live elsewhere.
//   - New memory holds NaNs.
//   - Streams are goroutines. By default they run their work as late as they
//     are allowed to, so that a forgotten synchronisation or event is seen
//     every time, not once in a hundred runs; see [Schedule].
//   - Copies are counted, calls can be made to fail, and what wasn't freed is
//     reported by Close.
//
// It is opened by name like every space, or made by [New], which gives access
// to what a test needs:
//
//	dev, err := emulated.New(emulated.Schedule(emulated.Eager))
//	if err != nil {
//		return err
//	}
//	defer dev.Close()
//	...
//	fmt.Println(dev.Transfers().ToHost.Bytes)
//
// Kernels are Go functions, registered by name in modules; see
// [RegisterModule]. Those that pack boxes are there ([device.BoxKernels]).
//
// Two opened devices have nothing in common, not even if they have the same
// name. Outside of Linux, addresses are merely numbers.
//
// # Concurrency
//
// As for every [device.Space], all methods may be called from several
// goroutines.
package emulated
