//go:build linux

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

func TestSmokeHIP(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := fakegpu.Load(t, "hip6", "../../device/internal/kernels/devicetest.cu")
	h, err := purego.Dlopen("libamdhip64.so.6", purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	call := func(name string, args ...uintptr) {
		t.Helper()
		sym, err := purego.Dlsym(h, name)
		if err != nil {
			t.Fatal(err)
		}
		r, _, _ := purego.SyscallN(sym, args...)
		if int32(r) != 0 {
			t.Fatalf("%s: %d", name, r)
		}
	}
	var p, q, s, mod, fn uintptr
	call("hipInit", 0)
	call("hipMalloc", uintptr(unsafe.Pointer(&p)), 8000)
	call("hipMalloc", uintptr(unsafe.Pointer(&q)), 8000)
	call("hipStreamCreateWithFlags", uintptr(unsafe.Pointer(&s)), 1)
	src, dst := make([]float64, 1000), make([]float64, 1000)
	for i := range src {
		src[i] = float64(i)
	}
	image, err := os.ReadFile("../../device/internal/kernels/devicetest.gfx942.hsaco")
	if err != nil {
		t.Fatal(err)
	}
	call("hipModuleLoadData", uintptr(unsafe.Pointer(&mod)), uintptr(unsafe.Pointer(&image[0])))
	name := []byte("pack3d\x00")
	call("hipModuleGetFunction", uintptr(unsafe.Pointer(&fn)), mod, uintptr(unsafe.Pointer(&name[0])))
	call("hipMemcpyAsync", p, uintptr(unsafe.Pointer(&src[0])), 8000, 1, s)
	args := []uint64{uint64(q), uint64(p), 1, 1, 1, 8, 8, 8, 10, 100}
	size := uint64(80)
	extra := []uintptr{1, uintptr(unsafe.Pointer(&args[0])), 2, uintptr(unsafe.Pointer(&size)), 3}
	call("hipModuleLaunchKernel", fn, 2, 1, 1, 256, 1, 1, 0, s, 0, uintptr(unsafe.Pointer(&extra[0])))
	call("hipMemcpyAsync", uintptr(unsafe.Pointer(&dst[0])), q, 8000, 2, s)
	call("hipStreamSynchronize", s)
	if dst[0] != 111 || dst[511] != 888 || !math.IsNaN(dst[512]) {
		t.Fatal(dst[0], dst[511], dst[512])
	}
	t.Logf("%+v %+v", d.Live(), d.Transfers())
}
