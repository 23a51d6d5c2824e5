//go:build amd64 || arm64

package hip_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/hip"
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

func image(t testing.TB, space device.Space) []byte {
	t.Helper()
	image, err := kernels.TestCodeObject(space.Properties().Arch)
	must(t, err)
	return image
}

// solver is a program's own use of the runtime, on a locked thread.
type solver struct {
	t   *testing.T
	lib *dl.Library
}

func newSolver(t *testing.T, version string) *solver {
	t.Helper()
	lib, err := dl.Open("libamdhip64.so." + version)
	must(t, err)
	runtime.LockOSThread() // for good: the thread ends with the test, and what was current on it too
	return &solver{t, lib}
}

func (s *solver) call(name string, do func(f dl.Func) int32) {
	s.t.Helper()
	f, err := s.lib.Func(name)
	must(s.t, err)
	if c := do(f); c != 0 {
		s.t.Fatalf("%s: code %d", name, c)
	}
}

func (s *solver) setDevice(n uintptr) {
	s.t.Helper()
	s.call("hipSetDevice", func(f dl.Func) int32 { return f.Call1(n) })
}

func (s *solver) current() (n uintptr) {
	s.t.Helper()
	s.call("hipGetDevice", func(f dl.Func) (c int32) {
		n, c = f.Out()
		return c
	})
	return n
}

// lastError returns what is left behind on the thread, and removes it.
func (s *solver) lastError() int32 {
	s.t.Helper()
	f, err := s.lib.Func("hipGetLastError")
	must(s.t, err)
	return f.Call0()
}

func TestOpenWithoutARuntime(t *testing.T) {
	devtest.OnFakes(t)
	hip.Use("libamdhip64.so.none")
	for _, name := range []string{"hip", "hip:0", "hip:current"} {
		_, err := device.Open(name)
		if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "libamdhip64.so.none: cannot open shared object file") {
			t.Errorf("open %s: %v", name, err)
		}
	}
	if _, err := device.Devices("hip"); !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("devices: %v", err)
	}
}

func TestOpenALibraryThatIsAnother(t *testing.T) {
	devtest.OnFakes(t)
	hip.Use("libc.so.6")
	_, err := device.Open("hip:0")
	if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "libc.so.6 lacks hip") {
		t.Errorf("open: %v", err)
	}
}

func TestOpenWithoutADevice(t *testing.T) {
	for _, version := range versions {
		gpu := load(t, version)
		gpu.Devices(t, 0)
		_, err := device.Open("hip:0")
		if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "unavailable: hipErrorNoDevice (code 100)") {
			t.Errorf("ROCm %s: open: %v", version, err)
		}
		gpu.Reset()
	}
}

func TestOpen(t *testing.T) {
	for _, version := range versions {
		t.Run("ROCm "+version, func(t *testing.T) {
			gpu := load(t, version)
			gpu.Devices(t, 3)
			gpu.Setting(t, "ARCH", "gfx90a:sramecc+:xnack-")
			s := newSolver(t, version)
			s.setDevice(2)
			for name, want := range map[string]string{"hip": "hip:2", "hip:current": "hip:2", "hip:0": "hip:0", "hip:1": "hip:1"} {
				space, err := device.Open(name)
				must(t, err)
				if space.Name() != want {
					t.Errorf("%s is %s, want %s", name, space.Name(), want)
				}
				must(t, space.Close())
			}
			for name, want := range map[string]error{
				"hip:3":   device.ErrUnavailable,
				"hip:-1":  device.ErrInvalid,
				"hip:one": device.ErrInvalid,
			} {
				if _, err := device.Open(name); !errors.Is(err, want) {
					t.Errorf("open %s: error %v, want %v", name, err, want)
				}
			}
			list, err := device.Devices("hip")
			must(t, err)
			if len(list) != 3 {
				t.Fatalf("%d devices, want 3", len(list))
			}
			for i, p := range list {
				if p.Kind != "hip" || p.Ordinal != i || p.Model == "" || p.Arch != "gfx90a:sramecc+:xnack-" || !strings.HasPrefix(p.Driver, "HIP "+version+".") {
					t.Errorf("device %d: %+v", i, p)
				}
			}
			if name, err := device.ForRank("hip", 4); name != "hip:1" || err != nil {
				t.Errorf("rank 4 has %q, %v", name, err)
			}
			s.setDevice(0)
		})
	}
}

func TestOpenFromOtherFolders(t *testing.T) {
	devtest.OnFakes(t)
	none, has := t.TempDir(), t.TempDir()
	must(t, os.Symlink(fakegpu.Build(t).HIP, filepath.Join(has, "libamdhip64.so.elsewhere")))
	restore := hip.UseFrom("libamdhip64.so.elsewhere", none, has)
	if _, err := device.Devices("hip"); err != nil {
		t.Errorf("devices: %v", err)
	}
	restore()
	hip.Use("libamdhip64.so.none")
	_, err := device.Open("hip:0")
	if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "/opt/rocm/lib/libamdhip64.so.none: ") {
		t.Errorf("error %v", err)
	}
}

// A program that is told where they are finds the newest runtime, or the one that the
// solver has loaded: two of them in a process know nothing of each other's memory.
func TestTheRightRuntimeIsFound(t *testing.T) {
	if os.Getenv("FIELDSTONE_PRINT_HIP") != "" {
		if path := os.Getenv("FIELDSTONE_LOAD_HIP"); path != "" {
			_, err := dl.Open(path)
			must(t, err)
		}
		list, err := device.Devices("hip")
		must(t, err)
		fmt.Printf("found %s\n", list[0].Driver)
		return
	}
	devtest.OnFakes(t)
	libs := fakegpu.Build(t)
	for _, tt := range []struct{ has, loaded, want string }{
		{"5 6 7", "", "7"}, {"5 6", "", "6"}, {"5", "", "5"},
		{"5 6 7", "6", "6"}, {"6 7", "5", "5"}, {"5 6 7", "7", "7"},
	} {
		dir := t.TempDir()
		for v := range strings.FieldsSeq(tt.has) {
			must(t, os.Symlink(libs.Dir+"/libamdhip64.so."+v, dir+"/libamdhip64.so."+v))
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestTheRightRuntimeIsFound$")
		cmd.Env = append(os.Environ(), "FIELDSTONE_PRINT_HIP=1", "LD_LIBRARY_PATH="+dir)
		if tt.loaded != "" {
			cmd.Env = append(cmd.Env, "FIELDSTONE_LOAD_HIP="+libs.Dir+"/libamdhip64.so."+tt.loaded)
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "found HIP "+tt.want+".") {
			t.Errorf("of %s, with %q loaded: %v\n%s", tt.has, tt.loaded, err, out)
		}
	}
}

func TestEveryCallLeavesTheThreadAsItWas(t *testing.T) {
	for _, version := range versions {
		t.Run("ROCm "+version, func(t *testing.T) {
			load(t, version)
			s := newSolver(t, version)
			for _, mine := range []uintptr{0, 1} {
				s.setDevice(mine)
				space := open(t, "hip:1")
				gputest.EachCall(t, space, image(t, space), func(call string) {
					if got := s.current(); got != mine {
						t.Fatalf("after %s the current device is %d, want %d", call, got, mine)
					}
					if c := s.lastError(); c != 0 {
						t.Errorf("%s leaves error %d behind", call, c)
					}
				})
				for what, err := range failures(space) {
					if err == nil {
						t.Errorf("%s works", what)
					}
					if c := s.lastError(); c != 0 {
						t.Errorf("%s leaves error %d behind", what, c)
					}
				}
			}
			s.setDevice(0)
		})
	}
}

// failures makes calls that the runtime refuses.
func failures(space device.Space) map[string]error {
	_, allocate := space.Allocate(1 << 50)
	_, wrap := space.WrapMemory(device.Ptr(4096), 8)
	return map[string]error{"allocate": allocate, "wrap memory": wrap}
}

func TestModulesForAnotherArchitecture(t *testing.T) {
	gpu := load(t, "7")
	gpu.Setting(t, "ARCH", "gfx90a")
	space := open(t, "hip:0")
	other, err := kernels.TestCodeObject("gfx942")
	must(t, err)
	if _, err := space.LoadModule(other); !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "hipErrorNoBinaryForGpu") {
		t.Errorf("another architecture's code object: %v", err)
	}
	if _, err := space.LoadModule([]byte("this is none")); !errors.Is(err, device.ErrInvalid) || !strings.Contains(err.Error(), "hipErrorInvalidImage: neither a code object") {
		t.Errorf("no code object: %v", err)
	}
	if _, err := space.LoadModule(other[:len(other)-100]); !errors.Is(err, device.ErrInvalid) || !strings.Contains(err.Error(), "image: ") {
		t.Errorf("a code object that is cut off: %v", err)
	}

	gpu.Setting(t, "ARCH", "gfx803")
	_, err = open(t, "hip:1").(device.BoxKernels).BoxModule()
	if !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "gfx908, gfx90a, gfx942") {
		t.Errorf("box kernels for an architecture without: %v", err)
	}
}

func TestCallsDoNotAllocate(t *testing.T) {
	gpu := load(t, "7")
	gpu.Set(t, fakegpu.Eager)
	space := open(t, "hip:1")
	gputest.Allocations(t, space, image(t, space))
}

// The fake driver's own time is part of it.
func BenchmarkCalls(b *testing.B) {
	gpu := load(b, "7")
	gpu.Set(b, fakegpu.Eager)
	space := open(b, "hip:1")
	gputest.Benchmark(b, space, image(b, space))
}

func TestFreedAddresses(t *testing.T) {
	for _, version := range versions {
		gpu := load(t, version)
		gputest.Freed(t, gpu, open(t, "hip:0"), "hipMemGetAddressRange", 1, 17, 500)
	}
}

// The runtime counts threads in 32 bits along each axis.
func TestLaunchOfTooManyThreads(t *testing.T) {
	gpu := load(t, "7")
	space := open(t, "hip:0")
	m, err := space.LoadModule(image(t, space))
	must(t, err)
	k, err := m.Kernel("pack3d")
	must(t, err)
	s, err := space.NewStream()
	must(t, err)
	for a := range 3 {
		config := device.LaunchConfig{}
		config.Grid[a], config.Block[a] = 1<<30, 4
		if err := s.Launch(k, config, nil); !errors.Is(err, device.ErrInvalid) || !strings.Contains(err.Error(), "hipErrorInvalidConfiguration") {
			t.Errorf("%+v: %v", config, err)
		}
	}
	if n := gpu.Calls("hipModuleLaunchKernel"); n != 0 {
		t.Errorf("%d launches", n)
	}
	must(t, errors.Join(s.Close(), m.Close()))
}

func TestHostMemory(t *testing.T) {
	for _, version := range versions {
		t.Run("ROCm "+version, func(t *testing.T) {
			gpu := load(t, version)
			s := newSolver(t, version)
			gputest.HostMemory(t, gpu, open(t, "hip:0"), "hipStreamSynchronize", func(bytes int) ([]byte, func()) {
				var p unsafe.Pointer
				s.call("hipHostMalloc", func(f dl.Func) int32 { return f.Call3(uintptr(unsafe.Pointer(&p)), uintptr(bytes), 0) })
				return unsafe.Slice((*byte)(p), bytes), func() {
					s.call("hipHostFree", func(f dl.Func) int32 { return f.Call1(uintptr(p)) })
				}
			})
		})
	}
}

// The runtime calls a stream that it doesn't know one of a destroyed context. That is the
// end of a mistaken call, not of the device.
func TestAStreamThatTheRuntimeDoesNotKnow(t *testing.T) {
	for _, version := range versions {
		t.Run("ROCm "+version, func(t *testing.T) {
			load(t, version)
			space := open(t, "hip:0")
			if _, err := space.WrapStream(0xdeadbee0); !errors.Is(err, device.ErrInvalid) || errors.Is(err, device.ErrLost) {
				t.Errorf("error %v", err)
			}
			if err := space.Synchronize(); err != nil {
				t.Error(err)
			}
		})
	}
}
