//go:build amd64 || arm64

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda"
	"github.com/fieldstone-io/fieldstone/device/internal/dl"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu/gputest"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, name string) device.Space {
	t.Helper()
	space, err := device.Open(name)
	must(t, err)
	t.Cleanup(func() {
		if err := space.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return space
}

// solver is a program's own use of the driver, on a locked thread.
type solver struct {
	t   *testing.T
	lib *dl.Library
}

func newSolver(t *testing.T) *solver {
	t.Helper()
	lib, err := dl.Open("libcuda.so.1")
	must(t, err)
	s := &solver{t, lib}
	runtime.LockOSThread() // for good: the thread ends with the test, and what was current on it too
	s.call("cuInit", func(f dl.Func) int32 { return f.Call1(0) })
	return s
}

func (s *solver) call(name string, do func(f dl.Func) int32) {
	s.t.Helper()
	f, err := s.lib.Func(name)
	must(s.t, err)
	if c := do(f); c != 0 {
		s.t.Fatalf("%s: code %d", name, c)
	}
}

func (s *solver) out(name string, args ...uintptr) (value uintptr) {
	s.t.Helper()
	s.call(name, func(f dl.Func) (c int32) {
		value, c = f.Out(args...)
		return c
	})
	return value
}

// context makes a context of the solver's and makes it current.
func (s *solver) context(ordinal int) uintptr {
	s.t.Helper()
	c := s.out("cuCtxCreate_v2", 0, uintptr(ordinal))
	s.t.Cleanup(func() { s.call("cuCtxDestroy_v2", func(f dl.Func) int32 { return f.Call1(c) }) })
	return c
}

func (s *solver) current() uintptr { return s.out("cuCtxGetCurrent") }

func (s *solver) wantCurrent(want uintptr) {
	s.t.Helper()
	if got := s.current(); got != want {
		s.t.Fatalf("the current context is %#x, want %#x", got, want)
	}
}

func TestOpenWithoutADriver(t *testing.T) {
	devtest.OnFakes(t)
	cuda.Use("libcuda.so.none")
	defer cuda.Use("libcuda.so.1")
	for _, name := range []string{"cuda", "cuda:0", "cuda:current"} {
		_, err := device.Open(name)
		if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "libcuda.so.none: cannot open shared object file") {
			t.Errorf("open %s: %v", name, err)
		}
	}
	if _, err := device.Devices("cuda"); !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("devices: %v", err)
	}
	if _, err := cuda.Adopt(1); !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("adopt: %v", err)
	}
}

// The driver is found in a folder where the loader doesn't look; where it is nowhere the
// error names all places.
func TestOpenFromOtherFolders(t *testing.T) {
	devtest.OnFakes(t)
	defer cuda.Use("libcuda.so.1")
	none, has := t.TempDir(), t.TempDir()
	must(t, os.Symlink(fakegpu.Build(t).CUDA, filepath.Join(has, "libcuda.so.elsewhere")))
	restore := cuda.UseFrom("libcuda.so.elsewhere", none, has)
	if _, err := device.Devices("cuda"); err != nil {
		t.Errorf("devices: %v", err)
	}
	restore()
	cuda.Use("libcuda.so.none")
	_, err := device.Open("cuda:0")
	for _, place := range []string{"libcuda.so.none: ", "/usr/local/nvidia/lib64/libcuda.so.none: ", "/usr/local/cuda/compat/libcuda.so.none: "} {
		if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), place) {
			t.Errorf("error %v, want one that names %s", err, place)
		}
	}
}

func TestOpenALibraryThatIsAnother(t *testing.T) {
	devtest.OnFakes(t)
	cuda.Use("libc.so.6")
	defer cuda.Use("libcuda.so.1")
	_, err := device.Open("cuda:0")
	if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "libc.so.6 lacks cu") {
		t.Errorf("open: %v", err)
	}
}

func TestOpenWithoutADevice(t *testing.T) {
	gpu := load(t)
	gpu.Devices(t, 0)
	_, err := device.Open("cuda:0")
	if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "cuInit: unavailable: CUDA_ERROR_NO_DEVICE (code 100)") {
		t.Errorf("open: %v", err)
	}
}

func TestOpen(t *testing.T) {
	gpu := load(t)
	gpu.Devices(t, 3)
	for name, want := range map[string]string{"cuda": "cuda:0", "cuda:0": "cuda:0", "cuda:2": "cuda:2"} {
		space := open(t, name)
		if space.Name() != want {
			t.Errorf("%s is %s, want %s", name, space.Name(), want)
		}
	}
	for name, want := range map[string]error{
		"cuda:3":       device.ErrUnavailable,
		"cuda:-1":      device.ErrInvalid,
		"cuda:one":     device.ErrInvalid,
		"cuda:current": device.ErrNotFound,
	} {
		if _, err := device.Open(name); !errors.Is(err, want) {
			t.Errorf("open %s: error %v, want %v", name, err, want)
		}
	}
	list, err := device.Devices("cuda")
	must(t, err)
	if len(list) != 3 {
		t.Fatalf("%d devices, want 3", len(list))
	}
	for i, p := range list {
		if p.Kind != "cuda" || p.Ordinal != i || p.Model == "" || p.Arch != "sm_90" || !strings.HasPrefix(p.Driver, "CUDA ") {
			t.Errorf("device %d: %+v", i, p)
		}
	}
	if name, err := device.ForRank("cuda", 4); name != "cuda:1" || err != nil {
		t.Errorf("rank 4 has %q, %v", name, err)
	}
}

func TestContexts(t *testing.T) {
	gpu := load(t)
	// run runs a test on a locked thread, where the solver has a context.
	run := func(name string, test func(t *testing.T, s *solver, mine uintptr)) {
		t.Run(name, func(t *testing.T) {
			s := newSolver(t)
			test(t, s, s.context(1))
		})
	}

	run("the solver's context is used for its device", func(t *testing.T, s *solver, mine uintptr) {
		for _, name := range []string{"cuda", "cuda:1", "cuda:current"} {
			space, err := device.Open(name)
			must(t, err)
			if space.Name() != "cuda:1" || gpu.Live().Contexts != 1 {
				t.Errorf("%s is %s, with %d contexts", name, space.Name(), gpu.Live().Contexts)
			}
			must(t, space.Close())
			s.wantCurrent(mine)
		}
	})
	run("another device has its primary context, until the space is closed", func(t *testing.T, s *solver, mine uintptr) {
		space, err := device.Open("cuda:0")
		must(t, err)
		if n := gpu.Live().Contexts; n != 2 {
			t.Errorf("%d contexts", n)
		}
		must(t, space.Close())
		if n := gpu.Live().Contexts; n != 1 {
			t.Errorf("%d contexts after close", n)
		}
		s.wantCurrent(mine)
	})
	run("a context can be adopted from anywhere", func(t *testing.T, s *solver, mine uintptr) {
		done := make(chan error)
		go func() {
			space, err := cuda.Adopt(mine)
			if err == nil && space.Name() != "cuda:1" {
				err = fmt.Errorf("it is %s", space.Name())
			}
			if err == nil {
				_, err = space.MemoryInfo()
			}
			if err == nil {
				err = space.Close()
			}
			done <- err
		}()
		must(t, <-done)
	})
	run("no context and one that is none are refused", func(t *testing.T, s *solver, mine uintptr) {
		for _, context := range []uintptr{0, mine + 1} {
			if _, err := cuda.Adopt(context); !errors.Is(err, device.ErrInvalid) {
				t.Errorf("adopt %#x: %v", context, err)
			}
			s.wantCurrent(mine)
		}
	})
	run("memory of another context is refused", func(t *testing.T, s *solver, mine uintptr) {
		space, err := device.Open("cuda:0")
		must(t, err)
		p := s.out("cuMemAlloc_v2", 4096) // of device 1
		if _, err := space.WrapMemory(device.Ptr(p), 4096); !errors.Is(err, device.ErrAddress) {
			t.Errorf("another device's memory: %v", err)
		}
		must(t, space.Close())

		space, err = cuda.Adopt(mine)
		must(t, err)
		m, err := space.WrapMemory(device.Ptr(p), 4096)
		must(t, err)
		must(t, m.Free())
		must(t, space.Close())

		other := s.context(1)
		space, err = cuda.Adopt(other)
		must(t, err)
		if _, err := space.WrapMemory(device.Ptr(p), 4096); !errors.Is(err, device.ErrAddress) {
			t.Errorf("another context's memory: %v", err)
		}
		must(t, space.Close())
		s.call("cuCtxSetCurrent", func(f dl.Func) int32 { return f.Call1(mine) })
		s.call("cuMemFree_v2", func(f dl.Func) int32 { return f.Call1(p) })
	})
	run("every call leaves the current context as it was", func(t *testing.T, s *solver, mine uintptr) {
		space := open(t, "cuda:0")
		s.wantCurrent(mine)
		gputest.EachCall(t, space, kernels.TestPTX(), func(call string) {
			if got := s.current(); got != mine {
				t.Fatalf("after %s the current context is %#x, want %#x", call, got, mine)
			}
		})
	})
	run("a hold leaves the current context as it was", func(t *testing.T, s *solver, mine uintptr) {
		space := open(t, "cuda:0")
		h := space.(device.Holder)
		h.Hold()
		if s.current() == mine {
			t.Error("the solver's context is current during the hold")
		}
		_, err := space.MemoryInfo()
		must(t, err)
		h.Release()
		s.wantCurrent(mine)
	})
	run("a thread without a context has none afterwards", func(t *testing.T, s *solver, mine uintptr) {
		space := open(t, "cuda:0")
		done := make(chan uintptr)
		go func() {
			runtime.LockOSThread()
			if c := s.current(); c != 0 {
				t.Errorf("the thread starts with context %#x", c)
			}
			_, err := space.MemoryInfo()
			if err != nil {
				t.Error(err)
			}
			done <- s.current()
		}()
		if c := <-done; c != 0 {
			t.Errorf("the thread has context %#x", c)
		}
	})
	run("a context that can't be restored loses the space", func(t *testing.T, s *solver, mine uintptr) {
		space := open(t, "cuda:0")
		gpu.Fail("cuCtxSetCurrent", 2, 304)
		_, err := space.MemoryInfo()
		must(t, err) // the second attempt works
		s.wantCurrent(mine)
		gpu.Fail("cuCtxSetCurrent", 2, 304)
		gpu.Fail("cuCtxSetCurrent", 3, 304)
		_, err = space.MemoryInfo()
		must(t, err) // it was done
		_, err = space.MemoryInfo()
		if !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), "restore the current context: driver error: CUDA_ERROR_OPERATING_SYSTEM") {
			t.Errorf("next call: %v", err)
		}
		s.call("cuCtxSetCurrent", func(f dl.Func) int32 { return f.Call1(mine) })
	})
}

func TestFailureToFindTheContext(t *testing.T) {
	gpu := load(t)
	s := newSolver(t)
	mine := s.context(0)
	for _, function := range []string{"cuCtxGetCurrent", "cuCtxGetDevice"} {
		gpu.Fail(function, 1, 304)
		if _, err := device.Open("cuda"); !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), function) {
			t.Errorf("open: %v", err)
		}
		gpu.Fail(function, 1, 304)
		if _, err := cuda.Adopt(mine); !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), function) {
			t.Errorf("adopt: %v", err)
		}
		s.wantCurrent(mine)
	}
}

func TestTheCompilersMessagesAreInTheError(t *testing.T) {
	load(t)
	space := open(t, "cuda:0")
	for _, tt := range []struct {
		name, image string
		want        error
		text        string
	}{
		{"a text that is no PTX", "this is no PTX", device.ErrInvalid, "CUDA_ERROR_INVALID_PTX: "},
		{"a version that is too new", ".version 99.0\n.target sm_70\n.address_size 64\n", device.ErrUnsupported, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
		{"a target that is too new", ".version 6.0\n.target sm_999\n.address_size 64\n", device.ErrUnsupported, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
		{"an object file that is cut off", "\x7fELF\x02\x01\x01", device.ErrInvalid, "image: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := space.LoadModule([]byte(tt.image))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) || strings.HasSuffix(err.Error(), ": ") {
				t.Errorf("error %v, want one that is %q and has %q", err, tt.want, tt.text)
			}
		})
	}
}

func TestBoxKernelsThatAreRefused(t *testing.T) {
	gpu := load(t)
	t.Run("what the driver has against them stays", func(t *testing.T) {
		boxes := open(t, "cuda:0").(device.BoxKernels)
		gpu.Fail("cuModuleLoadDataEx", 1, 304)
		for range 2 {
			if _, err := boxes.BoxModule(); !errors.Is(err, device.ErrDriver) {
				t.Errorf("error %v", err)
			}
		}
	})
	t.Run("a loss is nothing against them", func(t *testing.T) {
		boxes := open(t, "cuda:0").(device.BoxKernels)
		gpu.Fail("cuModuleLoadDataEx", 1, 700)
		for _, text := range []string{"load module of box kernels: device lost: ", "device lost since load module of box kernels: "} {
			if _, err := boxes.BoxModule(); !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), text) {
				t.Errorf("error %v, want one that has %q", err, text)
			}
		}
	})
}

func TestCallsDoNotAllocate(t *testing.T) {
	gpu := load(t)
	gpu.Set(t, fakegpu.Eager)
	gputest.Allocations(t, open(t, "cuda:0"), kernels.TestPTX())
}

// The fake driver's own time is part of it.
func BenchmarkCalls(b *testing.B) {
	gpu := load(b)
	gpu.Set(b, fakegpu.Eager)
	space := open(b, "cuda:0")
	gputest.Benchmark(b, space, kernels.TestPTX())
}

func TestFreedAddresses(t *testing.T) {
	gpu := load(t)
	gputest.Freed(t, gpu, open(t, "cuda:0"), "cuMemGetAddressRange", 1, 500)
}

// The errors of MPS, after which no client of it can go on.
func TestMPSEnds(t *testing.T) {
	gpu := load(t)
	for code, name := range map[int]string{
		805: "CUDA_ERROR_MPS_CONNECTION_FAILED", 806: "CUDA_ERROR_MPS_RPC_FAILURE", 807: "CUDA_ERROR_MPS_SERVER_NOT_READY",
		808: "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", 809: "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", 810: "CUDA_ERROR_MPS_CLIENT_TERMINATED",
	} {
		space, err := device.Open("cuda:0")
		must(t, err)
		gpu.Fail("cuCtxSynchronize", 1, code)
		if err := space.Synchronize(); !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), name) {
			t.Errorf("code %d: %v", code, err)
		}
		must(t, space.Close())
		gpu.Reset()
	}
}

// A context that the solver has destroyed, although a space is in it, is a loss; the
// same code for a mistaken argument isn't.
func TestContextThatIsDestroyed(t *testing.T) {
	gpu := load(t)
	s := newSolver(t)
	mine := s.out("cuCtxCreate_v2", 0, 1)
	space, err := cuda.Adopt(mine)
	must(t, err)
	m, err := space.Allocate(64)
	must(t, err)
	gpu.Fail("cuMemGetInfo", 1, 201)
	if _, err := space.MemoryInfo(); !errors.Is(err, device.ErrInvalid) || errors.Is(err, device.ErrLost) {
		t.Errorf("a refusal: %v", err)
	}
	s.call("cuCtxDestroy_v2", func(f dl.Func) int32 { return f.Call1(mine) })
	if _, err := space.MemoryInfo(); !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_CONTEXT (code 201)") {
		t.Errorf("the context is gone: %v", err)
	}
	must(t, m.Free())
	must(t, space.Close())
}

func TestHostMemory(t *testing.T) {
	gpu := load(t)
	s := newSolver(t)
	space := open(t, "cuda:0")
	gputest.HostMemory(t, gpu, space, "cuStreamSynchronize", func(bytes int) ([]byte, func()) {
		var p unsafe.Pointer
		context := s.out("cuDevicePrimaryCtxRetain", 0)
		s.call("cuCtxSetCurrent", func(f dl.Func) int32 { return f.Call1(context) })
		s.call("cuMemHostAlloc", func(f dl.Func) int32 { return f.Call3(uintptr(unsafe.Pointer(&p)), uintptr(bytes), 0) })
		return unsafe.Slice((*byte)(p), bytes), func() {
			s.call("cuMemFreeHost", func(f dl.Func) int32 { return f.Call1(uintptr(p)) })
			s.call("cuCtxSetCurrent", func(f dl.Func) int32 { return f.Call1(0) })
			s.call("cuDevicePrimaryCtxRelease_v2", func(f dl.Func) int32 { return f.Call1(0) })
		}
	})
}
