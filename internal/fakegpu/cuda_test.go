//go:build linux && (amd64 || arm64)

package fakegpu_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// cuda calls what only CUDA has.
type cuda struct {
	*gpu
	init        func(flags uint32) int32
	retain      func(c *uintptr, device int32) int32
	release     func(device int32) int32
	create      func(c *uintptr, flags uint32, device int32) int32
	destroy     func(c uintptr) int32
	setCurrent  func(c uintptr) int32
	getCurrent  func(c *uintptr) int32
	push        func(c uintptr) int32
	pop         func(c *uintptr) int32
	device      func(d *int32) int32
	devices     func(n *int32) int32
	loadEx      func(m *uintptr, image *byte, n uint32, options *int32, values *unsafe.Pointer) int32
	copy3D      func(m *memcpy3D, s uintptr) int32
	attribute   func(value unsafe.Pointer, attribute int32, p uintptr) int32
	fill32      func(p uintptr, value uint32, n uint64) int32
	errorName   func(code int32, name *unsafe.Pointer) int32
	primaryOpen func(device int32, flags *uint32, active *int32) int32
}

// memcpy3D is CUDA_MEMCPY3D; blank is what the tests leave 0.
type memcpy3D struct {
	srcX, srcY, srcZ, _  uintptr
	srcType              uint32
	_                    unsafe.Pointer
	srcDevice, _, _      uintptr
	srcPitch, srcHeight  uintptr
	_, _, _, _           uintptr
	dstType              uint32
	dstHost              unsafe.Pointer
	_, _, _              uintptr
	dstPitch, dstHeight  uintptr
	width, height, depth uintptr
}

func openCUDA(g *gpu) *cuda {
	c := &cuda{gpu: g}
	for name, fn := range map[string]any{
		"cuInit": &c.init, "cuDevicePrimaryCtxRetain": &c.retain, "cuDevicePrimaryCtxRelease_v2": &c.release,
		"cuCtxCreate_v2": &c.create, "cuCtxDestroy_v2": &c.destroy, "cuCtxSetCurrent": &c.setCurrent,
		"cuCtxGetCurrent": &c.getCurrent, "cuCtxPushCurrent_v2": &c.push, "cuCtxPopCurrent_v2": &c.pop,
		"cuCtxGetDevice": &c.device, "cuDeviceGetCount": &c.devices, "cuModuleLoadDataEx": &c.loadEx,
		"cuMemcpy3DAsync_v2": &c.copy3D, "cuPointerGetAttribute": &c.attribute, "cuMemsetD32_v2": &c.fill32,
		"cuGetErrorName": &c.errorName, "cuDevicePrimaryCtxGetState": &c.primaryOpen,
	} {
		g.bind(fn, name)
	}
	return c
}

func newCUDA(t *testing.T) *cuda { return openCUDA(open(t, "cuda")) }

func (c *cuda) primary(device int32) uintptr {
	c.t.Helper()
	var ctx uintptr
	c.must(c.retain(&ctx, device))
	return ctx
}

func (c *cuda) current() uintptr {
	c.t.Helper()
	var ctx uintptr
	c.must(c.getCurrent(&ctx))
	return ctx
}

// onOtherThread runs fn on a thread that never called the driver.
func onOtherThread(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends with the goroutine
		fn()
	}()
	<-done
}

func TestCUDAContextsBelongToThreads(t *testing.T) {
	c := newCUDA(t)
	mine := c.current()
	onOtherThread(func() {
		var p uintptr
		c.want(c.malloc(&p, 8), invalidContext, "allocate on a thread without a context")
		if got := c.current(); got != 0 {
			t.Errorf("a new thread has the context %#x", got)
		}
		c.want(c.push(mine), ok, "push")
		c.want(c.malloc(&p, 8), ok, "allocate")
		c.want(c.free(p), ok, "free")
		var popped uintptr
		c.want(c.pop(&popped), ok, "pop")
		if popped != mine {
			t.Errorf("popped %#x, pushed %#x", popped, mine)
		}
		c.want(c.pop(&popped), invalidContext, "pop from an empty stack")
	})
	if c.current() != mine {
		t.Error("another thread changed the current context of this one")
	}
}

func TestCUDAContextStack(t *testing.T) {
	c := newCUDA(t)
	first := c.current()
	var second uintptr
	c.must(c.create(&second, 0, 1))
	if c.current() != second {
		t.Error("the new context isn't current")
	}
	var device int32
	c.must(c.device(&device))
	if device != 1 {
		t.Errorf("device %d, want 1", device)
	}
	c.must(c.destroy(second))
	if c.current() != first {
		t.Error("destroying the current context doesn't uncover the one below")
	}
	c.must(c.setCurrent(0))
	if c.current() != 0 {
		t.Error("there is a current context after setting none")
	}
	c.want(c.setCurrent(second), invalidContext, "make a destroyed context current")
	c.want(c.setCurrent(0x1234), invalidContext, "make nonsense current")
}

func TestCUDADestroyedContextStaysDestroyed(t *testing.T) {
	c := newCUDA(t)
	var other uintptr
	c.must(c.create(&other, 0, 0))
	onOtherThread(func() { c.want(c.destroy(other), ok, "destroy") })
	var p uintptr
	c.want(c.malloc(&p, 8), destroyed, "allocate in a context that another thread destroyed")
}

func TestCUDAPrimaryContextIsCounted(t *testing.T) {
	c := newCUDA(t) // has retained it once
	var flags uint32
	var active int32
	if again := c.primary(0); again != c.current() {
		t.Error("a device has two primary contexts")
	}
	p := c.alloc(64)
	c.must(c.release(0))
	c.must(c.primaryOpen(0, &flags, &active))
	if active != 1 {
		t.Error("the primary context is gone while it is retained")
	}
	c.want(c.destroy(c.current()), invalidContext, "destroy a primary context")
	c.must(c.release(0))
	c.must(c.primaryOpen(0, &flags, &active))
	if active != 0 {
		t.Error("the primary context is still there")
	}
	if live := c.fake.Live(); live.Allocations != 0 || live.Bytes != 0 || live.Contexts != 0 {
		t.Errorf("left after the context: %+v", live)
	}
	c.want(c.free(p), destroyed, "free after the context")
	c.want(c.release(0), invalidContext, "release once more")
}

func TestCUDANeedsInit(t *testing.T) {
	c := newCUDA(t)
	c.want(c.init(1), invalidValue, "init with flags")
	c.fake.Fail("cuInit", 1, 100)
	c.want(c.init(0), 100, "init that is to fail")
}

func TestCUDANoDevice(t *testing.T) {
	c := newCUDA(t)
	c.fake.Devices(t, 0)
	c.want(c.init(0), 100, "init without a device")
}

func TestCUDASticky(t *testing.T) {
	c := newCUDA(t)
	s, p, e := c.stream(), c.alloc(64), c.event()
	f := c.pack3d()
	var pinned unsafe.Pointer
	c.must(c.pin(&pinned, 64, 0))
	c.fake.FailKernel(1, illegalAddress)
	c.must(c.pack(f, p, p, box{0, 0, 0, 1, 1, 1, 1, 1}, s))
	c.want(c.syncStream(s), illegalAddress, "synchronise")
	c.want(c.free(p), illegalAddress, "free")
	c.want(c.unpin(pinned), illegalAddress, "free pinned")
	c.want(c.closeStream(s), illegalAddress, "close stream")
	c.want(c.closeEvent(e), illegalAddress, "close event")
	c.want(c.queryEvent(e), illegalAddress, "query event")
	var q uintptr
	c.want(c.malloc(&q, 8), illegalAddress, "allocate")
	ctx := c.current() // no error
	c.must(c.setCurrent(ctx))

	var other uintptr
	c.must(c.create(&other, 0, 0))
	c.must(c.malloc(&q, 8)) // the error is that of the other context
	c.must(c.destroy(other))
	c.must(c.release(0))
	if live := c.fake.Live(); live.Contexts != 0 || live.Allocations != 0 || live.Pinned != 0 || live.Streams != 0 || live.Events != 0 || live.Modules != 0 {
		t.Errorf("left after the context: %+v", live)
	}
	c.must(c.setCurrent(c.primary(0)))
	c.must(c.malloc(&q, 8))
}

func TestCUDACodesThatStay(t *testing.T) {
	for code, stays := range map[int32]bool{outOfMemory: false, 999: false, illegalAddress: true, 214: true, launchFailed: true, misaligned: true} {
		c := newCUDA(t)
		c.fake.Fail("cuStreamQuery", 1, int(code))
		c.want(c.queryStream(0), code, "query")
		after := int32(ok)
		if stays {
			after = code
		}
		c.want(c.sync(), after, "synchronise")
	}
}

// The default stream orders itself with the blocking streams, and with no others.
func TestCUDALegacyStream(t *testing.T) {
	for _, test := range []struct {
		name    string
		flags   uint32
		ordered bool
	}{
		{"waits for blocking streams", 0, true},
		{"doesn't wait for others", nonBlocking, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCUDA(t)
			var s uintptr
			c.must(c.newStream(&s, test.flags))
			src, dst := c.filled(count(10)), c.alloc(80)
			c.must(c.onDeviceOn(dst, src, 80, s))
			c.must(c.syncStream(0))
			got := c.read(dst, 10) // on the default stream
			if ordered := got[1] == 1; ordered != test.ordered {
				t.Errorf("the copy of the other stream has run: %v, want %v", ordered, test.ordered)
			}
			c.must(c.sync())
		})
	}
}

func TestCUDAOtherStreamsWaitForTheLegacyOne(t *testing.T) {
	c := newCUDA(t)
	var s uintptr
	c.must(c.newStream(&s, 0))
	p, out := c.filled(count(10)), c.pinned(10)
	c.must(c.fill32(p, 0, 20)) // only queued
	c.must(c.toHostOn(pointer(out), p, 80, s))
	c.must(c.syncStream(s))
	c.wantNumbers(out, make([]float64, 10))
}

func TestCUDAStreamOfThread(t *testing.T) {
	c := newCUDA(t)
	const perThread = 2
	src, dst, out := c.filled(count(10)), c.alloc(80), c.pinned(10)
	c.must(c.onDeviceOn(dst, src, 80, perThread))
	c.must(c.toHostOn(pointer(out), dst, 80, perThread))
	c.must(c.syncStream(perThread))
	c.wantNumbers(out, count(10))
	c.want(c.syncStream(0xdead0), invalidHandle, "synchronise nonsense")
}

func TestCUDABoxes(t *testing.T) {
	const host, device = 1, 2
	for _, mode := range []string{"lazy", "delayed", "eager"} {
		t.Run(mode, func(t *testing.T) {
			c := newCUDA(t)
			c.fake.Setting(t, "MODE", mode)
			s := c.stream()
			array := c.filled(count(6 * 5 * 4))
			out := c.pinned(3 * 2 * 2)
			before := c.fake.Transfers()
			c.must(c.copy3D(&memcpy3D{
				srcType: device, srcDevice: array, srcX: 8 * 2, srcY: 1, srcZ: 1, srcPitch: 8 * 6, srcHeight: 5,
				dstType: host, dstHost: pointer(out), dstPitch: 8 * 3, dstHeight: 2,
				width: 8 * 3, height: 2, depth: 2,
			}, s))
			c.must(c.syncStream(s))
			var want []float64
			for z := 1; z < 3; z++ {
				for y := 1; y < 3; y++ {
					for x := 2; x < 5; x++ {
						want = append(want, float64(x+6*(y+5*z)))
					}
				}
			}
			c.wantNumbers(out, want)
			if moved := c.fake.Transfers().ToHost.Bytes - before.ToHost.Bytes; moved != 8*12 {
				t.Errorf("%d bytes were counted, want %d", moved, 8*12)
			}
			c.want(c.copy3D(&memcpy3D{
				srcType: device, srcDevice: array, srcPitch: 8 * 6, srcHeight: 5, srcZ: 3,
				dstType: host, dstHost: pointer(out), dstPitch: 8 * 3, dstHeight: 2,
				width: 8 * 3, height: 2, depth: 2,
			}, s), invalidValue, "a box past the end")
			c.want(c.copy3D(&memcpy3D{
				srcType: device, srcDevice: array, srcPitch: 8 * 2, srcHeight: 5,
				dstType: host, dstHost: pointer(out), dstPitch: 8 * 3, dstHeight: 2,
				width: 8 * 3, height: 2, depth: 1,
			}, s), invalidValue, "rows that overlap")
		})
	}
}

func TestCUDAPointers(t *testing.T) {
	const memoryType, ordinal = 2, 9
	c := newCUDA(t)
	p, pinned := c.alloc(100), c.pinned(10)
	var kind uint32
	c.must(c.attribute(unsafe.Pointer(&kind), memoryType, p+50))
	if kind != 2 {
		t.Errorf("memory of the device is of type %d", kind)
	}
	c.must(c.attribute(unsafe.Pointer(&kind), memoryType, uintptr(pointer(pinned))))
	if kind != 1 {
		t.Errorf("pinned memory is of type %d", kind)
	}
	pageable := make([]byte, 8)
	c.want(c.attribute(unsafe.Pointer(&kind), memoryType, uintptr(pointer(pageable))), invalidValue, "pageable memory")
	var device int32
	c.must(c.attribute(unsafe.Pointer(&device), ordinal, p))
	if device != 0 {
		t.Errorf("device %d", device)
	}
	// Where the device reaches all memory of the host, all of that is of the host's
	// type; but no context has it.
	const context, rangeStart = 1, 11
	c.fake.Setting(t, "HMM", "1")
	c.must(c.attribute(unsafe.Pointer(&kind), memoryType, uintptr(pointer(pageable))))
	if kind != 1 {
		t.Errorf("pageable memory is of type %d", kind)
	}
	for want, memory := range map[bool]unsafe.Pointer{true: pointer(pinned), false: pointer(pageable)} {
		var owner uintptr
		c.must(c.attribute(unsafe.Pointer(&owner), context, uintptr(memory)))
		var start uintptr
		code := c.attribute(unsafe.Pointer(&start), rangeStart, uintptr(memory))
		if (owner != 0) != want || (code == ok) != want {
			t.Errorf("memory is pinned: %t; its context is %#x, its range code %d", want, owner, code)
		}
	}
	runtime.KeepAlive(pageable)
}

func TestCUDAErrorsHaveNames(t *testing.T) {
	c := newCUDA(t)
	for code, want := range map[int32]string{
		0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 214: "CUDA_ERROR_ECC_UNCORRECTABLE",
		600: "CUDA_ERROR_NOT_READY", 700: "CUDA_ERROR_ILLEGAL_ADDRESS", 719: "CUDA_ERROR_LAUNCH_FAILED", 999: "CUDA_ERROR_UNKNOWN",
	} {
		var name unsafe.Pointer
		c.must(c.errorName(code, &name))
		if got := text(name); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
	var name unsafe.Pointer
	c.want(c.errorName(12345, &name), invalidValue, "name of no error")
}

func text(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// loadPTX returns the error of a load and what the compiler's log says.
func (c *cuda) loadPTX(ptx string) (module uintptr, code int32, log string) {
	const errorLog, errorLogSize = 5, 6
	buffer := make([]byte, 300)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&buffer[0])
	options := []int32{errorLog, errorLogSize}
	size := uintptr(len(buffer))
	values := []unsafe.Pointer{pointer(buffer), *(*unsafe.Pointer)(unsafe.Pointer(&size))}
	image := append([]byte(ptx), 0)
	code = c.loadEx(&module, &image[0], uint32(len(options)), &options[0], &values[0])
	return module, code, strings.TrimRight(string(buffer[:uintptr(values[1])]), "\x00")
}

func TestCUDALoadErrors(t *testing.T) {
	c := newCUDA(t)
	const head = ".version 6.0\n.target sm_70\n.address_size 64\n"
	for _, test := range []struct {
		name, ptx string
		code      int32
		log       string
	}{
		{"unknown instruction", head + ".visible .entry k()\n{\n\tret;\n\tfrobnicate.u32 %r1, 2;\n}", invalidPTX, "line 7: instruction frobnicate.u32 is not supported"},
		{"unknown modifier", head + ".visible .entry k()\n{\n.reg .b32 %r<2>;\n\tadd.cc.u32 %r1, %r0, 2;\n}", invalidPTX, "line 7: instruction add.cc.u32 is not supported: .cc"},
		{"undeclared register", head + ".visible .entry k()\n{\n\tadd.u32 %r1, %r0, 2;\n}", invalidPTX, "line 6: %r1 isn't known"},
		{"missing label", head + ".visible .entry k()\n{\n\tbra $nowhere;\n}", invalidPTX, "line 6: there is no label $nowhere"},
		{"barrier", head + ".visible .entry k()\n{\n\tbar.sync 0;\n}", invalidPTX, "line 6: instruction bar.sync is not supported"},
		{"function", head + ".func f()\n{\n}", invalidPTX, "line 4: .func is not supported"},
		{"end in the middle", head + ".visible .entry k()\n{\n", invalidPTX, "a name is missing"},
		{"not PTX", "hello", invalidPTX, "line 1: hello where .version should be"},
		{"nothing", "", invalidPTX, "no .version"},
		{"too new", ".version 9.9\n.target sm_70\n", unsupportedPTX, "9.9 is newer than 8.2"},
		{"another device", ".version 6.0\n.target sm_99\n", noBinary, "sm_99, and the device is sm_90"},
		{"code for a device", "\x7fELF", noBinary, ""},
	} {
		_, code, log := c.loadPTX(test.ptx) // here: the context is that of this thread
		if code != test.code || !strings.Contains(log, test.log) {
			t.Errorf("%s: error %d, log %q; want %d, %q", test.name, code, log, test.code, test.log)
		}
	}
	if live := c.fake.Live(); live.Modules != 0 {
		t.Errorf("%d modules are left", live.Modules)
	}
}
