// Package fakegpu has a CUDA driver and a HIP runtime for tests on machines without a
// GPU: shared libraries in C, with the vendors' ABI, that are compiled by the test that
// wants them. A test loads one, and from then on whoever opens the vendor's library in
// this process gets the fake:
//
//	func TestSomething(t *testing.T) {
//		gpu := fakegpu.Load(t, "cuda")
//		gpu.Set(t, fakegpu.Delayed)
//		gpu.Fail("cuMemAlloc", 3, 2) // the third call is out of memory
//		...
//	}
//
// For programs that are started by a test, [Libraries] has the folder for
// LD_LIBRARY_PATH, and the environment says what methods of [Driver] say here:
//
//	FAKEGPU_MODE=lazy|delayed|eager   see [Mode]; lazy if it isn't set
//	FAKEGPU_DELAY=microseconds        longest delay in delayed mode
//	FAKEGPU_SEED=number               of the delays
//	FAKEGPU_DEVICES=number            2 if it isn't set
//	FAKEGPU_MEM=bytes                 memory of each device, 256 MiB if it isn't set
//	FAKEGPU_STRICT=1                  see [Driver.Strict]
//	FAKEGPU_HMM=1                     the device reaches all memory of the host: what isn't
//	                                  pinned looks so, and is copied asynchronously
//	FAKEGPU_FAIL=api:nth=code,...     see [Driver.Fail]
//	FAKEGPU_TRACE=1                   a line on standard error for each call, and for each
//	                                  context that is made
//	FAKEGPU_CC=90, FAKEGPU_PTX=82     compute capability, newest PTX version
//	FAKEGPU_STEPS=number              most instructions of a thread of a PTX kernel
//	FAKEGPU_ARCH=gfx942:xnack-        architecture of the AMD devices
//	FAKEGPU_OBJECT=5                  newest version of code objects that HIP loads
//
// # What it does
//
// Device addresses lie in memory without any access; the bytes lie elsewhere. New
// memory is NaN, ends at a page without access, has canaries around it, and its address
// is never used again. Streams are threads. CUDA's kernels are interpreted from PTX;
// HIP's are looked up in the code object, and run as functions that the same source was
// compiled to for the host. All that they load and store is checked.
//
// After an asynchronous failure every call on the context returns it, as with real
// drivers. Pinned memory belongs to a queued copy: what is copied to is NaN until the
// copy has run, and what is copied from must not change.
//
// What a program does wrong, but gets away with here, is a misuse: it is counted, a
// line on standard error says what it was, and the test that loaded the driver fails.
//
// # Concurrency
//
// A process has one driver of each library; tests that use it can't run in parallel.
// All methods may be called from any goroutine.
package fakegpu
