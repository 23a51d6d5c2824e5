//go:build linux && (amd64 || arm64)

package fakegpu_test

import (
	"math"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

const kernels = "../../device/internal/kernels/"

// Numbers of errors, which are the same for both vendors.
const (
	ok             = 0
	invalidValue   = 1
	outOfMemory    = 2
	notInitialized = 3
	invalidImage   = 200
	invalidContext = 201
	noBinary       = 209
	invalidPTX     = 218
	unsupportedPTX = 222
	invalidHandle  = 400
	notFound       = 500
	notReady       = 600
	illegalAddress = 700
	outOfResources = 701
	launchTimeout  = 702
	destroyed      = 709
	registered     = 712
	notRegistered  = 713
	misaligned     = 716
	launchFailed   = 719
	nonBlocking    = 1
)

// gpu calls a driver. The two vendors have functions of the same shape for what is here.
type gpu struct {
	t      *testing.T
	vendor string
	fake   *fakegpu.Driver
	handle uintptr

	malloc       func(p *uintptr, bytes uint64) int32
	free         func(p uintptr) int32
	memInfo      func(free, total *uint64) int32
	addressRange func(base *uintptr, bytes *uint64, p uintptr) int32
	pin          func(p *unsafe.Pointer, bytes uint64, flags uint32) int32
	unpin        func(p unsafe.Pointer) int32
	register     func(p unsafe.Pointer, bytes uint64, flags uint32) int32
	unregister   func(p unsafe.Pointer) int32
	toDevice     func(dst uintptr, src unsafe.Pointer, bytes uint64) int32
	toHost       func(dst unsafe.Pointer, src uintptr, bytes uint64) int32
	onDevice     func(dst, src uintptr, bytes uint64) int32
	toDeviceOn   func(dst uintptr, src unsafe.Pointer, bytes uint64, stream uintptr) int32
	toHostOn     func(dst unsafe.Pointer, src uintptr, bytes uint64, stream uintptr) int32
	onDeviceOn   func(dst, src uintptr, bytes uint64, stream uintptr) int32
	newStream    func(s *uintptr, flags uint32) int32
	closeStream  func(s uintptr) int32
	syncStream   func(s uintptr) int32
	queryStream  func(s uintptr) int32
	wait         func(s, e uintptr, flags uint32) int32
	newEvent     func(e *uintptr, flags uint32) int32
	closeEvent   func(e uintptr) int32
	record       func(e, s uintptr) int32
	queryEvent   func(e uintptr) int32
	syncEvent    func(e uintptr) int32
	elapsed      func(ms *float32, from, to uintptr) int32
	load         func(m *uintptr, image *byte) int32
	unload       func(m uintptr) int32
	function     func(f *uintptr, m uintptr, name string) int32
	launch       func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, s uintptr, arguments, extra *unsafe.Pointer) int32
	sync         func() int32
}

func (g *gpu) functions() map[string]any {
	cuda := map[string]any{
		"cuMemAlloc_v2": &g.malloc, "cuMemFree_v2": &g.free, "cuMemGetInfo_v2": &g.memInfo,
		"cuMemGetAddressRange_v2": &g.addressRange, "cuMemHostAlloc": &g.pin, "cuMemFreeHost": &g.unpin,
		"cuMemHostRegister_v2": &g.register, "cuMemHostUnregister": &g.unregister,
		"cuMemcpyHtoD_v2": &g.toDevice, "cuMemcpyDtoH_v2": &g.toHost, "cuMemcpyDtoD_v2": &g.onDevice,
		"cuMemcpyHtoDAsync_v2": &g.toDeviceOn, "cuMemcpyDtoHAsync_v2": &g.toHostOn, "cuMemcpyDtoDAsync_v2": &g.onDeviceOn,
		"cuStreamCreate": &g.newStream, "cuStreamDestroy_v2": &g.closeStream, "cuStreamSynchronize": &g.syncStream,
		"cuStreamQuery": &g.queryStream, "cuStreamWaitEvent": &g.wait, "cuEventCreate": &g.newEvent,
		"cuEventDestroy_v2": &g.closeEvent, "cuEventRecord": &g.record, "cuEventQuery": &g.queryEvent,
		"cuEventSynchronize": &g.syncEvent, "cuEventElapsedTime": &g.elapsed, "cuModuleLoadData": &g.load,
		"cuModuleUnload": &g.unload, "cuModuleGetFunction": &g.function, "cuLaunchKernel": &g.launch, "cuCtxSynchronize": &g.sync,
	}
	hip := map[string]any{
		"hipMalloc": &g.malloc, "hipFree": &g.free, "hipMemGetInfo": &g.memInfo,
		"hipMemGetAddressRange": &g.addressRange, "hipHostMalloc": &g.pin, "hipHostFree": &g.unpin,
		"hipHostRegister": &g.register, "hipHostUnregister": &g.unregister,
		"hipMemcpyHtoD": &g.toDevice, "hipMemcpyDtoH": &g.toHost, "hipMemcpyDtoD": &g.onDevice,
		"hipMemcpyHtoDAsync": &g.toDeviceOn, "hipMemcpyDtoHAsync": &g.toHostOn, "hipMemcpyDtoDAsync": &g.onDeviceOn,
		"hipStreamCreateWithFlags": &g.newStream, "hipStreamDestroy": &g.closeStream, "hipStreamSynchronize": &g.syncStream,
		"hipStreamQuery": &g.queryStream, "hipStreamWaitEvent": &g.wait, "hipEventCreateWithFlags": &g.newEvent,
		"hipEventDestroy": &g.closeEvent, "hipEventRecord": &g.record, "hipEventQuery": &g.queryEvent,
		"hipEventSynchronize": &g.syncEvent, "hipEventElapsedTime": &g.elapsed, "hipModuleLoadData": &g.load,
		"hipModuleUnload": &g.unload, "hipModuleGetFunction": &g.function, "hipModuleLaunchKernel": &g.launch, "hipDeviceSynchronize": &g.sync,
	}
	if g.vendor == "cuda" {
		return cuda
	}
	return hip
}

// open loads a driver; CUDA gets the primary context of device 0.
func open(t *testing.T, vendor string) *gpu {
	t.Helper()
	g := &gpu{t: t, vendor: vendor, fake: fakegpu.Load(t, vendor, kernels+"devicetest.cu")}
	runtime.LockOSThread() // for good: the thread ends with the test, and what was current on it too
	name := "libcuda.so.1"
	if vendor != "cuda" {
		name = "libamdhip64.so." + vendor[len("hip"):]
	}
	var err error
	if g.handle, err = purego.Dlopen(name, purego.RTLD_NOW); err != nil {
		t.Fatal(err)
	}
	for name, fn := range g.functions() {
		g.bind(fn, name)
	}
	if vendor == "cuda" {
		c := openCUDA(g)
		c.must(c.init(0))
		c.must(c.setCurrent(c.primary(0)))
	}
	return g
}

func (g *gpu) bind(fn any, name string) {
	g.t.Helper()
	purego.RegisterLibFunc(fn, g.handle, name)
}

// each runs a test on all drivers, in all modes.
func each(t *testing.T, test func(t *testing.T, g *gpu)) {
	for _, vendor := range []string{"cuda", "hip5", "hip6", "hip7"} {
		for _, mode := range fakegpu.Modes {
			t.Run(vendor+"/"+mode.String(), func(t *testing.T) {
				g := open(t, vendor)
				g.fake.Set(t, mode)
				test(t, g)
			})
		}
	}
}

// lazily runs a test on a driver of each vendor, in lazy mode: for what is sure there
// and a matter of luck elsewhere.
func lazily(t *testing.T, test func(t *testing.T, g *gpu)) {
	for _, vendor := range []string{"cuda", "hip7"} {
		t.Run(vendor, func(t *testing.T) { test(t, open(t, vendor)) })
	}
}

func (g *gpu) must(code int32) {
	g.t.Helper()
	if code != ok {
		g.t.Fatalf("error %d", code)
	}
}

func (g *gpu) want(code, want int32, what string) {
	g.t.Helper()
	if code != want {
		g.t.Errorf("%s: error %d, want %d", what, code, want)
	}
}

func (g *gpu) alloc(bytes int) uintptr {
	g.t.Helper()
	var p uintptr
	g.must(g.malloc(&p, uint64(bytes)))
	return p
}

func (g *gpu) stream() uintptr {
	g.t.Helper()
	var s uintptr
	g.must(g.newStream(&s, nonBlocking))
	return s
}

func (g *gpu) event() uintptr {
	g.t.Helper()
	var e uintptr
	g.must(g.newEvent(&e, 0))
	return e
}

// pinned returns pinned memory; it isn't given back, but by the next reset.
func (g *gpu) pinned(n int) []float64 {
	g.t.Helper()
	var p unsafe.Pointer
	g.must(g.pin(&p, uint64(8*n), 0))
	return unsafe.Slice((*float64)(p), n)
}

func pointer[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

func bytesOf[T any](s []T) uint64 {
	var zero T
	return uint64(len(s)) * uint64(unsafe.Sizeof(zero))
}

// filled returns device memory of these numbers.
func (g *gpu) filled(numbers []float64) uintptr {
	g.t.Helper()
	p := g.alloc(int(bytesOf(numbers)))
	g.must(g.toDevice(p, pointer(numbers), bytesOf(numbers)))
	g.must(g.sync())
	return p
}

func (g *gpu) read(p uintptr, n int) []float64 {
	g.t.Helper()
	numbers := make([]float64, n)
	g.must(g.toHost(pointer(numbers), p, bytesOf(numbers)))
	return numbers
}

func count(n int) []float64 {
	numbers := make([]float64, n)
	for i := range numbers {
		numbers[i] = float64(i)
	}
	return numbers
}

func (g *gpu) wantNumbers(got, want []float64) {
	g.t.Helper()
	for i := range want {
		if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			g.t.Fatalf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func (g *gpu) wantMisuse(n int64) {
	g.t.Helper()
	if got, what := g.fake.Misuse(); got != n {
		g.t.Errorf("%d misuses (%s), want %d", got, what, n)
	}
}

// pack3d loads the kernel that the suite of the devices uses.
func (g *gpu) pack3d() uintptr {
	g.t.Helper()
	name := "devicetest.gfx942.hsaco"
	if g.vendor == "cuda" {
		name = "devicetest.ptx"
	}
	image, err := os.ReadFile(kernels + name)
	if err != nil {
		g.t.Fatal(err)
	}
	var m, f uintptr
	g.must(g.load(&m, unsafe.SliceData(append(image, 0))))
	g.must(g.function(&f, m, "pack3d"))
	return f
}

// box are the arguments of pack3d after the pointers: origin, size, strides.
type box [8]int64

// pack launches pack3d.
func (g *gpu) pack(f, dst, src uintptr, b box, stream uintptr) int32 {
	g.t.Helper()
	values := []int64{int64(dst), int64(src)}
	values = append(values, b[:]...)
	pointers := make([]unsafe.Pointer, len(values))
	for i := range values {
		pointers[i] = unsafe.Pointer(&values[i])
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	for i := range values {
		pin.Pin(&values[i])
	}
	cells := b[3] * b[4] * b[5]
	return g.launch(f, uint32((cells+255)/256), 1, 1, 256, 1, 1, 0, stream, unsafe.SliceData(pointers), nil)
}
