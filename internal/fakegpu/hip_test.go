//go:build linux && (amd64 || arm64)

package fakegpu_test

import (
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"
)

// hip calls what only HIP has.
type hip struct {
	*gpu
	setDevice   func(d int32) int32
	device      func(d *int32) int32
	devices     func(n *int32) int32
	version     func(n *int32) int32
	lastError   func() int32
	peekError   func() int32
	reset       func() int32
	properties  func(p *byte, d int32) int32
	attributes  func(a *pointerAttributes, p uintptr) int32
	copy3D      func(m *memcpy3DParms, s uintptr) int32
	errorName   func(code int32) string
	getFunction func(value *int32, attribute int32, f uintptr) int32
}

type pointerAttributes struct {
	kind, device int32
	deviceP, _   uintptr
	_, _         int32
}

type pitched struct {
	p                   uintptr
	pitch, xsize, ysize uintptr
}

type memcpy3DParms struct {
	_      uintptr
	srcPos [3]uintptr
	src    pitched
	_      uintptr
	_      [3]uintptr
	dst    pitched
	extent [3]uintptr
	kind   int32
}

func newHIP(t *testing.T, vendor string) *hip {
	h := &hip{gpu: open(t, vendor)}
	for name, fn := range map[string]any{
		"hipSetDevice": &h.setDevice, "hipGetDevice": &h.device, "hipGetDeviceCount": &h.devices,
		"hipRuntimeGetVersion": &h.version, "hipGetLastError": &h.lastError, "hipPeekAtLastError": &h.peekError,
		"hipDeviceReset": &h.reset, "hipGetDeviceProperties": &h.properties, "hipPointerGetAttributes": &h.attributes,
		"hipMemcpy3DAsync": &h.copy3D, "hipGetErrorName": &h.errorName, "hipFuncGetAttribute": &h.getFunction,
	} {
		h.bind(fn, name)
	}
	return h
}

func eachHIP(t *testing.T, test func(t *testing.T, h *hip, version int)) {
	for version := 5; version <= 7; version++ {
		vendor := "hip" + string(rune('0'+version))
		t.Run(vendor, func(t *testing.T) { test(t, newHIP(t, vendor), version) })
	}
}

func TestHIPVersions(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, version int) {
		var n int32
		h.must(h.version(&n))
		if int(n)/10_000_000 != version {
			t.Errorf("version %d, want %d", n, version)
		}
	})
}

func TestHIPDeviceBelongsToThread(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, _ int) {
		h.must(h.setDevice(1))
		onOtherThread(func() {
			var d int32
			h.want(h.device(&d), ok, "get device")
			if d != 0 {
				t.Errorf("a new thread is on device %d", d)
			}
		})
		var d int32
		h.must(h.device(&d))
		if d != 1 {
			t.Errorf("device %d, want 1", d)
		}
		h.want(h.setDevice(7), 101, "set a device that isn't there")
	})
}

func TestHIPMemoryIsOfItsDevice(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, version int) {
		h.must(h.setDevice(1))
		p, s := h.alloc(64), h.stream()
		h.must(h.setDevice(0))
		var a pointerAttributes
		h.must(h.attributes(&a, p+8))
		device := map[bool]int32{false: 1, true: 2}[version >= 6]
		if a.kind != device || a.device != 1 || a.deviceP != p+8 {
			t.Errorf("memory of device 1: %+v", a)
		}
		f := h.pack3d()
		h.want(h.pack(f, p, p, box{0, 0, 0, 1, 1, 1, 1, 1}, s), invalidHandle, "launch on a stream of another device")
		h.must(h.syncStream(s))
		h.want(h.syncStream(0xdead0), destroyed, "synchronise nonsense")
	})
}

func TestHIPPointersOfTheHost(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, version int) {
		pinned, pageable := h.pinned(8), make([]float64, 8)
		var a pointerAttributes
		h.must(h.attributes(&a, uintptr(pointer(pinned))))
		if want := map[bool]int32{false: 0, true: 1}[version >= 6]; a.kind != want {
			t.Errorf("pinned memory is of type %d, want %d", a.kind, want)
		}
		want := int32(ok)
		if version < 6 {
			want = invalidValue
		}
		h.want(h.attributes(&a, uintptr(pointer(pageable))), want, "pageable memory")
		if a.kind != 0 {
			t.Errorf("pageable memory is of type %d", a.kind)
		}
		runtime.KeepAlive(pageable)
	})
}

func TestHIPProperties(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, version int) {
		h.fake.Setting(t, "ARCH", "gfx90a:sramecc+:xnack-")
		check := func(size, at, memory int) {
			t.Helper()
			p := make([]byte, size)
			h.must(h.properties(&p[0], 1))
			if got := string(p[at:][:len("gfx90a:")]); got != "gfx90a:" {
				t.Errorf("architecture %q", got)
			}
			if got := string(p[:len("Fake GPU 1")]); got != "Fake GPU 1" {
				t.Errorf("name %q", got)
			}
			if got := binary.LittleEndian.Uint64(p[memory:]); got != 256<<20 {
				t.Errorf("memory %d", got)
			}
		}
		check(792, 396, 256)
		if version >= 6 {
			h.bind(&h.properties, "hipGetDevicePropertiesR0600")
			check(1472, 1160, 288)
		}
	})
}

func TestHIPLastError(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, version int) {
		var p uintptr
		h.want(h.malloc(&p, 1<<40), outOfMemory, "allocate too much")
		h.want(h.peekError(), outOfMemory, "peek")
		h.must(h.setDevice(0))
		want := int32(ok)
		if version >= 7 {
			want = outOfMemory
		}
		h.want(h.lastError(), want, "error after a call that works")
		h.want(h.lastError(), ok, "error once it was taken")
	})
}

func TestHIPImages(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, _ int) {
		image, err := os.ReadFile(kernels + "devicetest.gfx90a.hsaco")
		if err != nil {
			t.Fatal(err)
		}
		var m, f uintptr
		h.want(h.load(&m, &image[0]), noBinary, "load code of another device")
		h.fake.Setting(t, "ARCH", "gfx90a")
		h.must(h.load(&m, &image[0]))
		h.want(h.function(&f, m, "nothing"), notFound, "look for a kernel that isn't there")
		h.must(h.function(&f, m, "pack3d"))
		var n int32
		h.must(h.getFunction(&n, 0, f))
		if n != 256 {
			t.Errorf("%d threads a block, want 256", n)
		}
		h.must(h.unload(m))
		h.want(h.unload(m), invalidHandle, "unload twice")
		junk := []byte(strings.Repeat("not an image ", 10))
		h.want(h.load(&m, &junk[0]), invalidImage, "load nonsense")
	})
}

func TestHIPSticky(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, _ int) {
		p, f := h.alloc(64), h.pack3d()
		h.fake.Fail("@pack3d", 1, illegalAddress)
		h.must(h.pack(f, p, p, box{0, 0, 0, 1, 1, 1, 1, 1}, 0))
		h.want(h.sync(), illegalAddress, "synchronise")
		h.want(h.free(p), illegalAddress, "free")
		h.must(h.setDevice(1))
		h.must(h.free(h.alloc(8))) // the error is that of device 0
		h.must(h.setDevice(0))
		h.must(h.reset())
		h.must(h.free(h.alloc(8)))
	})
}

func TestHIPBoxes(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, _ int) {
		const toHost = 2
		array, out, s := h.filled(count(6*5*4)), h.pinned(3*2*2), h.stream()
		m := memcpy3DParms{
			srcPos: [3]uintptr{8 * 2, 1, 1}, src: pitched{array, 8 * 6, 8 * 6, 5},
			dst: pitched{uintptr(pointer(out)), 8 * 3, 8 * 3, 2}, extent: [3]uintptr{8 * 3, 2, 2}, kind: toHost,
		}
		h.must(h.copy3D(&m, s))
		h.must(h.syncStream(s))
		h.wantNumbers(out, []float64{38, 39, 40, 44, 45, 46, 68, 69, 70, 74, 75, 76})
		m.kind = 1
		h.want(h.copy3D(&m, s), invalidValue, "the wrong direction")
		m.kind = 77
		h.want(h.copy3D(&m, s), 21, "no direction")
	})
}

// The runtime reads the image of a module as long as that is loaded.
func TestHIPImagesMustStay(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, _ int) {
		image, err := os.ReadFile(kernels + "devicetest.gfx942.hsaco")
		if err != nil {
			t.Fatal(err)
		}
		var m, f uintptr
		h.must(h.load(&m, &image[0]))
		h.must(h.function(&f, m, "pack3d"))
		p := h.filled(count(8))
		h.must(h.pack(f, p, p, box{0, 0, 0, 1, 1, 1, 1, 1}, 0))
		h.must(h.sync())
		image[len(image)/2]++
		h.want(h.pack(f, p, p, box{0, 0, 0, 1, 1, 1, 1, 1}, 0), invalidImage, "launch")
		h.want(h.function(&f, m, "pack3d"), invalidImage, "look for a kernel")
		h.wantMisuse(2)
		image[len(image)/2]--
		h.must(h.pack(f, p, p, box{0, 0, 0, 1, 1, 1, 1, 1}, 0))
		h.must(h.sync())
		h.must(h.unload(m))
	})
}

func TestHIPCountsThreadsIn32Bits(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, _ int) {
		f := h.pack3d()
		h.want(h.launch(f, 1<<24, 1, 1, 256, 1, 1, 0, 0, nil, nil), 9, "launch 2^32 threads")
		h.want(h.launch(f, 1<<24-1, 1, 1, 256, 1, 1, 0, 0, nil, nil), invalidValue, "launch as many as there may be, without arguments")
	})
}

// Where the device reaches all memory of the host, all of that looks pinned, except that
// it is part of no allocation.
func TestHIPReachesTheHost(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, version int) {
		h.fake.Setting(t, "HMM", "1")
		pinned, ordinary := h.pinned(8), make([]float64, 8)
		want := map[bool]int32{false: 0, true: 1}[version >= 6]
		for _, p := range [][]float64{pinned, ordinary} {
			var a pointerAttributes
			h.must(h.attributes(&a, uintptr(pointer(p))))
			if a.kind != want || a.deviceP != uintptr(pointer(p)) {
				t.Errorf("attributes %+v", a)
			}
		}
		var base uintptr
		var bytes uint64
		h.must(h.addressRange(&base, &bytes, uintptr(pointer(pinned))+8))
		if base != uintptr(pointer(pinned)) || bytes != 64 {
			t.Errorf("%d bytes at %#x", bytes, base)
		}
		h.want(h.addressRange(&base, &bytes, uintptr(pointer(ordinary))), notFound, "range of ordinary memory")
		runtime.KeepAlive(ordinary)
	})
}

// What the compiler of the host lets pass, as the processor does, the device doesn't.
func TestHIPMisaligned(t *testing.T) {
	eachHIP(t, func(t *testing.T, h *hip, _ int) {
		f, p := h.pack3d(), h.filled(count(8))
		h.must(h.pack(f, p, p+4, box{0, 0, 0, 1, 1, 1, 1, 1}, 0))
		h.want(h.sync(), illegalAddress, "synchronise")
		h.want(h.free(p), illegalAddress, "free")
	})
}

func TestHIPErrorsHaveNames(t *testing.T) {
	h := newHIP(t, "hip7")
	for code, want := range map[int32]string{
		0: "hipSuccess", 1: "hipErrorInvalidValue", 2: "hipErrorOutOfMemory", 600: "hipErrorNotReady",
		700: "hipErrorIllegalAddress", 719: "hipErrorLaunchFailure", 4711: "hipErrorUnknown",
	} {
		if got := h.errorName(code); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
}

func TestHIPKernelOfTheHostMustBeThatOfTheImage(t *testing.T) {
	h := newHIP(t, "hip7")
	image, err := os.ReadFile(kernels + "box.gfx942.hsaco")
	if err != nil {
		t.Fatal(err)
	}
	var m, f uintptr
	h.must(h.load(&m, &image[0]))
	h.want(h.function(&f, m, "fieldstone_pack_f64"), notFound, "a kernel whose source wasn't compiled for the host")
}
