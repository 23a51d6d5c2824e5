//go:build mumax && linux

package mumax_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/fieldstone-io/fieldstone/device"
)

// What C's memory holds when a kernel is launched must not reach the garbage
// collector: here it holds addresses of objects that were collected.
func TestLaunchWhileCollectingGarbage(t *testing.T) {
	fake(t)
	space := adopt(t)
	s := get[device.Stream](t)(space.NewStream())
	defer s.Close()
	m := get[device.Module](t)(space.LoadModule([]byte(mixedPTX)))
	defer m.Close()
	k := get[device.Kernel](t)(m.Kernel("mixed"))
	out := get[device.Memory](t)(space.Allocate(20))
	defer out.Free()
	args := new(device.Args).Ptr(out.Ptr()).Uint32(1).Float32(2).Float64(3).Uint32(4)
	const bytes = 5 * 8

	libc, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	must(t, err)
	var malloc func(n uint64) unsafe.Pointer
	var free func(p unsafe.Pointer)
	purego.RegisterLibFunc(&malloc, libc, "malloc")
	purego.RegisterLibFunc(&free, libc, "free")
	leave := func(stale []uintptr) {
		var p [2]unsafe.Pointer
		for i := range p {
			p[i] = malloc(bytes)
			copy(unsafe.Slice((*uintptr)(p[i]), bytes/8), stale)
		}
		free(p[0])
		free(p[1])
	}

	// So many small objects that marking them takes a while, and addresses of
	// large ones that are gone.
	small := make([]*[4]*int, 1<<19)
	for i := range small {
		small[i] = new([4]*int)
	}
	var stale []uintptr
	for range 100 {
		gone := make([]byte, 1<<20) // more than a stack has room for
		stale = append(stale, uintptr(unsafe.Pointer(&gone[0])))
	}
	runtime.GC()
	runtime.GC()

	var stop atomic.Bool
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for !stop.Load() {
			runtime.GC()
		}
	}()
	for i := range 1000 {
		leave(stale[i%90:][:bytes/8])
		must(t, s.Launch(k, device.LaunchConfig{}, args))
		must(t, s.Synchronize())
	}
	stop.Store(true)
	<-stopped
	runtime.KeepAlive(small)
}
