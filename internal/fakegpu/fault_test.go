//go:build linux && (amd64 || arm64)

package fakegpu_test

import (
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

func TestOutOfMemory(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		g.fake.Memory(t, 1000)
		p := g.alloc(600)
		var q uintptr
		g.want(g.malloc(&q, 401), outOfMemory, "allocate more than there is")
		q = g.alloc(400)
		var free, total uint64
		g.must(g.memInfo(&free, &total))
		if free != 0 || total != 1000 {
			t.Errorf("%d of %d bytes are free", free, total)
		}
		g.must(g.free(p))
		g.must(g.free(q))
		g.must(g.memInfo(&free, &total))
		if free != 1000 {
			t.Errorf("%d bytes are free after all was freed", free)
		}
		g.want(g.free(q), invalidValue, "free twice")
		g.want(g.free(0x1000), invalidValue, "free nonsense")
		g.want(g.malloc(&q, 1<<63), outOfMemory, "allocate nonsense")
	})
}

func TestAddresses(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		p := g.alloc(100)
		if p%256 != 0 {
			t.Errorf("%#x isn't aligned to 256 bytes", p)
		}
		var base uintptr
		var bytes uint64
		g.must(g.addressRange(&base, &bytes, p+99))
		if base != p || bytes != 100 {
			t.Errorf("%d bytes at %#x, want 100 at %#x", bytes, base, p)
		}
		g.want(g.addressRange(&base, &bytes, p+100), notFound, "look past the end")
		out := make([]byte, 200)
		g.want(g.toHost(pointer(out), p, 101), invalidValue, "copy past the end")
		g.want(g.toHost(pointer(out), p-1, 10), invalidValue, "copy from before the start")
		g.must(g.free(p))
		g.want(g.toHost(pointer(out), p, 10), invalidValue, "copy after free")
		if q := g.alloc(100); q == p {
			t.Error("an address is used again")
		}
	})
}

func TestRegisteredMemory(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		mem := make([]float64, 100)
		g.must(g.register(pointer(mem), 400, 0))
		g.want(g.register(unsafe.Pointer(&mem[10]), 8, 0), registered, "register twice")
		g.want(g.unregister(unsafe.Pointer(&mem[1])), notRegistered, "unregister the middle")
		if live := g.fake.Live(); live.Registered != 1 {
			t.Errorf("%d ranges are registered", live.Registered)
		}
		s, p := g.stream(), g.filled(count(10))
		g.must(g.toHostOn(pointer(mem), p, 80, s))
		g.must(g.syncStream(s))
		g.wantNumbers(mem, count(10))
		if n := g.fake.PageableCopies(); n != 0 {
			t.Errorf("%d copies of registered memory were staged", n)
		}
		g.must(g.unregister(pointer(mem)))
		g.want(g.unregister(pointer(mem)), notRegistered, "unregister twice")
		g.want(g.unpin(pointer(mem)), invalidValue, "free what isn't pinned")
	})
}

func TestFaultsOfCalls(t *testing.T) {
	names := map[string][2]string{"cuda": {"cuMemAlloc", "cuMemAlloc_v2"}, "hip7": {"hipMalloc", "hipMalloc"}}
	lazily(t, func(t *testing.T, g *gpu) {
		var p uintptr
		g.alloc(8)
		g.fake.Fail(names[g.vendor][0], 2, outOfMemory)
		g.alloc(8)
		g.want(g.malloc(&p, 8), outOfMemory, "the second call")
		g.alloc(8)
		g.fake.Fail(names[g.vendor][1], 0, 999)
		g.want(g.malloc(&p, 8), 999, "every call")
		g.want(g.malloc(&p, 8), 999, "every call")
		g.fake.Reset()
	})
}

func TestFaultsOnTheDevice(t *testing.T) {
	for what, queue := range map[string]func(g *gpu, f, p, s uintptr, pinned []float64){
		"@copy":   func(g *gpu, f, p, s uintptr, pinned []float64) { g.must(g.toHostOn(pointer(pinned), p, 80, s)) },
		"@kernel": func(g *gpu, f, p, s uintptr, pinned []float64) { g.must(g.pack(f, p, p, box{3: 1, 4: 1, 5: 1}, s)) },
		"@pack3d": func(g *gpu, f, p, s uintptr, pinned []float64) { g.must(g.pack(f, p, p, box{3: 1, 4: 1, 5: 1}, s)) },
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, g *gpu) {
				f, p, s, pinned := g.pack3d(), g.alloc(80), g.stream(), g.pinned(10)
				g.fake.Fail(what, 1, launchFailed)
				queue(g, f, p, s, pinned)
				g.want(g.syncStream(s), launchFailed, "synchronise")
				g.want(g.queryStream(s), launchFailed, "query")
				g.want(g.closeStream(s), launchFailed, "close")
				g.want(g.free(p), launchFailed, "free")
				g.wantNumbers(pinned, nans(10)) // nothing has run
			})
		})
	}
}

// After an error nothing that is queued runs any more, on no stream.
func TestNothingRunsAfterAnError(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		first, second := g.stream(), g.stream()
		f, p, out := g.pack3d(), g.filled(count(10)), g.pinned(10)
		g.must(g.toHostOn(pointer(out), p, 80, second))
		g.fake.FailKernel(1, illegalAddress)
		g.must(g.pack(f, p, p, box{3: 1, 4: 1, 5: 1}, first))
		g.want(g.syncStream(first), illegalAddress, "synchronise")
		g.want(g.syncStream(second), illegalAddress, "synchronise the other stream")
		g.wantNumbers(out, nans(10))
	})
}

func TestKernelsThatStray(t *testing.T) {
	for _, test := range []struct {
		name string
		b    box
		dst  func(p uintptr) uintptr
	}{
		{"read past the end", box{3: 11, 4: 1, 5: 1}, func(p uintptr) uintptr { return p + 80 }},
		{"read before the start", box{-1, 0, 0, 1, 1, 1, 1, 1}, func(p uintptr) uintptr { return p }},
		{"write past the end", box{3: 2, 4: 1, 5: 1}, func(p uintptr) uintptr { return p + 8*19 }},
		{"write to nothing", box{3: 2, 4: 1, 5: 1}, func(uintptr) uintptr { return 0 }},
		{"write to the host", box{3: 2, 4: 1, 5: 1}, func(uintptr) uintptr { return uintptr(unsafe.Pointer(&hostMemory)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			each(t, func(t *testing.T, g *gpu) {
				f, p, small, s := g.pack3d(), g.alloc(160), g.alloc(80), g.stream()
				g.must(g.pack(f, test.dst(p), small, test.b, s))
				g.want(g.syncStream(s), illegalAddress, "synchronise")
			})
		})
	}
}

var hostMemory [10]float64

func TestKernelsReachPinnedMemory(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		f, p, s, pinned := g.pack3d(), g.filled(count(10)), g.stream(), g.pinned(10)
		g.must(g.pack(f, uintptr(pointer(pinned)), p, box{3: 10, 4: 1, 5: 1}, s))
		g.must(g.syncStream(s))
		g.wantNumbers(pinned, count(10))
	})
}

func TestLaunchesHaveLimits(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		f, p := g.pack3d(), g.alloc(8)
		values := []int64{int64(p), int64(p), 0, 0, 0, 0, 1, 1, 1, 1}
		size := uint64(8 * len(values))
		end := uintptr(3)
		if g.vendor == "cuda" {
			end = 0
		}
		extra := [5]unsafe.Pointer{word(1), pointer(values), word(2), unsafe.Pointer(&size), word(end)}
		launch := func(gx, gy, gz, bx, by, bz uint32) int32 {
			return g.launch(f, gx, gy, gz, bx, by, bz, 0, 0, nil, &extra[0])
		}
		tooLarge := int32(outOfResources)
		if g.vendor != "cuda" {
			tooLarge = launchFailed
		}
		g.must(launch(1, 1, 1, 256, 1, 1))
		g.want(launch(1, 1, 1, 257, 1, 1), tooLarge, "more threads than the kernel's bound")
		g.want(launch(1, 1, 1, 1024, 2, 1), invalidValue, "more threads than a device has")
		g.want(launch(0, 1, 1, 1, 1, 1), invalidValue, "no blocks")
		g.want(launch(1, 1, 1, 1, 0, 1), invalidValue, "no threads")
		g.want(launch(1, 70000, 1, 1, 1, 1), invalidValue, "too many blocks along y")
		size--
		g.want(launch(1, 1, 1, 1, 1, 1), invalidValue, "too few arguments")
		g.must(g.sync())
		g.want(g.launch(f, 1, 1, 1, 1, 1, 1, 0, 0, nil, nil), invalidValue, "no arguments")
		g.want(g.launch(p, 1, 1, 1, 1, 1, 1, 0, 0, nil, nil), invalidHandle, "no kernel")
	})
}

func word(n uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&n)) }

func TestALoadedModuleOutlivesItsHandle(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		f, p, s := g.pack3d(), g.filled(count(10)), g.stream()
		out := g.alloc(80)
		g.must(g.pack(f, out, p, box{3: 10, 4: 1, 5: 1}, s))
		g.fake.Set(t, fakegpu.Lazy) // still queued
		g.must(g.syncStream(s))
		g.wantNumbers(g.read(out, 10), count(10))
	})
}

func TestLiveAndReset(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		before := g.fake.Live()
		g.alloc(10)
		g.alloc(20)
		g.stream()
		g.event()
		g.pinned(3)
		g.pack3d()
		got := g.fake.Live()
		want := fakegpu.Live{Allocations: 2, Pinned: 1, Streams: 1, Events: 1, Modules: 1, Contexts: max(before.Contexts, 1), Bytes: 30}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		g.fake.Reset()
		if got := g.fake.Live(); got != (fakegpu.Live{}) {
			t.Errorf("left after a reset: %+v", got)
		}
		if got := g.fake.Transfers(); got != (fakegpu.Transfers{}) {
			t.Errorf("counted after a reset: %+v", got)
		}
	})
}

func TestTransfersAreCounted(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		p, q := g.alloc(80), g.alloc(80)
		out := make([]byte, 80)
		g.must(g.toDevice(p, pointer(out), 80))
		g.must(g.onDevice(q, p, 40))
		g.must(g.toHost(pointer(out), q, 30))
		g.must(g.toHost(pointer(out), q, 10))
		g.must(g.toHost(pointer(out), q, 0))
		want := fakegpu.Transfers{
			ToDevice: fakegpu.Traffic{Calls: 1, Bytes: 80},
			OnDevice: fakegpu.Traffic{Calls: 1, Bytes: 40},
			ToHost:   fakegpu.Traffic{Calls: 2, Bytes: 40},
		}
		if got := g.fake.Transfers(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
