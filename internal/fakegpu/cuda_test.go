//go:build linux

package fakegpu_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

func TestSmoke(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := fakegpu.Load(t, "cuda", "../../device/internal/kernels/box.cu")
	h, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW)
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
	var ctx, p, s uintptr
	call("cuInit", 0)
	call("cuDevicePrimaryCtxRetain", uintptr(unsafe.Pointer(&ctx)), 0)
	call("cuCtxSetCurrent", ctx)
	call("cuMemAlloc_v2", uintptr(unsafe.Pointer(&p)), 1024)
	call("cuStreamCreate", uintptr(unsafe.Pointer(&s)), 1)
	src, dst := make([]byte, 1024), make([]byte, 1024)
	for i := range src {
		src[i] = byte(i)
	}
	call("cuMemcpyHtoDAsync_v2", p, uintptr(unsafe.Pointer(&src[0])), 1024, s)
	call("cuMemcpyDtoHAsync_v2", uintptr(unsafe.Pointer(&dst[0])), p, 1024, s)
	call("cuStreamSynchronize", s)
	for i := range dst {
		if dst[i] != byte(i) {
			t.Fatal(i, dst[i])
		}
	}
	call("cuMemFree_v2", p)
	call("cuStreamDestroy_v2", s)
	call("cuDevicePrimaryCtxRelease_v2", 0)
	t.Logf("%+v %+v", d.Live(), d.Transfers())
}
