//go:build mumax && linux

package mumax_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda/mumax"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		name    string
		devices int
		open    string
		want    error
		text    string
	}{
		{"without devices", 0, "mumax:0", device.ErrUnavailable, "CUDA_ERROR_NO_DEVICE"},
		{"a device that isn't there", 2, "mumax:2", device.ErrUnavailable, "CUDA_ERROR_INVALID_DEVICE"},
		{"no number", 2, "mumax:first", device.ErrInvalid, `"first" is neither`},
		{"a negative number", 2, "mumax:-1", device.ErrInvalid, `"-1" is neither`},
		{"the current context where there is none", 2, "mumax:current", device.ErrNotFound, "current on the thread"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gpu := fake(t)
			gpu.Devices(t, tt.devices)
			onThread(func() {
				_, err := device.Open(tt.open)
				if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("error %v, want one that is %q and says %q", err, tt.want, tt.text)
				}
			})
			if live := gpu.Live(); live != (fakegpu.Live{}) {
				t.Errorf("left over: %+v", live)
			}
		})
	}
}

func TestOpenTakesTheSolversContext(t *testing.T) {
	gpu := fake(t)
	ctx := newContext(t, 1)
	for _, tt := range []struct {
		open, name string
		solvers    bool
	}{
		{"mumax", "mumax:1", true},
		{"mumax:current", "mumax:1", true},
		{"mumax:1", "mumax:1", true},
		{"mumax:0", "mumax:0", false},
	} {
		space := get[device.Space](t)(device.Open(tt.open))
		if space.Name() != tt.name {
			t.Errorf("open %s: name %s, want %s", tt.open, space.Name(), tt.name)
		}
		if got := mumax.Context(space) == ctx; got != tt.solvers {
			t.Errorf("open %s: in the solver's context: %v, want %v", tt.open, got, tt.solvers)
		}
		if now := cu.CtxGetCurrent(); now != ctx {
			t.Errorf("open %s: the thread's context is %#x, want %#x", tt.open, now, ctx)
		}
		must(t, space.Close())
		if mumax.Context(space) != 0 {
			t.Errorf("open %s: the context is known after close", tt.open)
		}
	}
	if live := gpu.Live(); live != (fakegpu.Live{Contexts: 1}) {
		t.Errorf("live: %+v, want the solver's context and nothing else", live)
	}
}

func TestProperties(t *testing.T) {
	fake(t)
	list, err := device.Devices("mumax")
	must(t, err)
	space := adopt(t)
	p := space.Properties()
	if len(list) != 3 || list[0] != p {
		t.Errorf("devices %+v, want 3 that begin with %+v", list, p)
	}
	if p.Kind != "mumax" || p.Ordinal != 0 || p.Model == "" || p.Arch != "sm_90" || !strings.HasPrefix(p.Driver, "CUDA 1") {
		t.Errorf("properties %+v", p)
	}
}

// roundTrip shows that a space works.
func roundTrip(space device.Space) error {
	s, err := space.NewStream()
	if err != nil {
		return err
	}
	m, err := space.Allocate(100)
	if err != nil {
		return err
	}
	want, got := bytes.Repeat([]byte("0123456789"), 10), make([]byte, 100)
	err = errors.Join(s.CopyToDevice(m.Ptr(), want), s.CopyToHost(got, m.Ptr()), s.Synchronize(), m.Free(), s.Close())
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("got %q back", got)
	}
	return err
}

func TestCallsLeaveTheThreadsContextAlone(t *testing.T) {
	fake(t)
	space := adopt(t)
	check := func(what string, want cu.Context) {
		if err := roundTrip(space); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := cu.CtxGetCurrent(); got != want {
			t.Errorf("%s: context %#x is current afterwards, want %#x", what, got, want)
		}
	}
	check("the solver's thread", mumax.Context(space))
	onThread(func() { check("a thread without context", 0) })
	onThread(func() {
		other := cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(1))
		check("a thread with another context", other)
		other.Destroy()
	})
}

// The solver's thread is locked, and calls cu itself, while others use the space.
func TestGoroutinesAndTheSolversThreadAtOnce(t *testing.T) {
	for _, mode := range fakegpu.Modes {
		t.Run(mode.String(), func(t *testing.T) {
			fake(t).Set(t, mode)
			space := adopt(t)
			var wg sync.WaitGroup
			errs := make([]error, 4)
			for g := range errs {
				wg.Go(func() {
					for range 10 {
						errs[g] = errors.Join(errs[g], roundTrip(space))
					}
				})
			}
			for range 10 {
				must(t, roundTrip(space))
				p := cu.MemAlloc(64)
				cu.MemsetD8(p, 1, 64)
				cu.CtxSynchronize()
				p.Free()
			}
			wg.Wait()
			must(t, errors.Join(errs...))
		})
	}
}

func TestSolversMemoryAndStreams(t *testing.T) {
	fake(t)
	space := adopt(t)
	p := cu.MemAlloc(1000)
	defer p.Free()
	own := cu.StreamCreate()
	defer own.Destroy()

	m := get[device.Memory](t)(mumax.WrapMemory(space, p+100))
	if m.Ptr() != device.Ptr(p+100) || m.Size() != 900 {
		t.Errorf("%d bytes at %#x, want 900 at %#x", m.Size(), m.Ptr(), p+100)
	}
	s := get[device.Stream](t)(mumax.WrapStream(space, own))
	if s.Handle() != uintptr(own) || s.Space() != space {
		t.Errorf("stream %#x of %v", s.Handle(), s.Space())
	}
	cu.MemsetD8Async(p, 7, 1000, own)
	got := make([]byte, 900)
	must(t, s.CopyToHost(got, m.Ptr()))
	must(t, s.Synchronize())
	if !bytes.Equal(got, bytes.Repeat([]byte{7}, 900)) {
		t.Error("the solver's fill isn't there")
	}
	must(t, m.Free())
	must(t, s.Close())
	own.Synchronize() // both are still the solver's
	cu.MemsetD8(p, 0, 1000)
	cu.CtxSynchronize()

	for what, address := range map[string]cu.DevicePtr{
		"nothing":            0,
		"ordinary memory":    cu.DevicePtr(uintptr(unsafe.Pointer(&got[0]))),
		"pinned host memory": cu.DevicePtr(uintptr(pinned(t, 64))),
	} {
		if _, err := mumax.WrapMemory(space, address); !errors.Is(err, device.ErrAddress) {
			t.Errorf("wrap %s: error %v, want %v", what, err, device.ErrAddress)
		}
	}
	var e *device.Error
	if _, err := mumax.WrapStream(space, 0x1000); !errors.Is(err, device.ErrInvalid) || !errors.As(err, &e) {
		t.Errorf("wrap no stream: error %v", err)
	}

	other, err := emulated.New()
	must(t, err)
	defer other.Close()
	if _, err := mumax.WrapStream(other, 0); !errors.Is(err, device.ErrInvalid) {
		t.Errorf("wrap a stream in an emulated device: error %v", err)
	}
	if mumax.Context(other) != 0 {
		t.Error("an emulated device has a context")
	}
}

func pinned(t *testing.T, bytes int64) unsafe.Pointer {
	p := cu.MemAllocHost(bytes)
	t.Cleanup(func() { cu.MemFreeHost(p) })
	return p
}

func TestModulesAreLoadedOnce(t *testing.T) {
	gpu := fake(t)
	space := adopt(t)
	for range 3 {
		m := get[device.Module](t)(space.LoadModule(kernels.TestPTX()))
		k := get[device.Kernel](t)(m.Kernel("pack3d"))
		if k.Name() != "pack3d" {
			t.Errorf("kernel %q", k.Name())
		}
		must(t, m.Close())
		if _, err := m.Kernel("pack3d"); !errors.Is(err, device.ErrClosed) {
			t.Errorf("kernel of a closed module: error %v", err)
		}
	}
	if n := gpu.Live().Modules; n != 1 {
		t.Errorf("the driver has %d modules, want 1", n)
	}
}

// A kernel whose parameters are of 8 and of 4 bytes.
const mixedPTX = `.version 6.0
.target sm_70
.address_size 64
.visible .entry mixed(.param .u64 out, .param .u32 a, .param .f32 b, .param .f64 c, .param .u32 d)
{
	.reg .b64 %rd<3>;
	.reg .b32 %r<3>;
	.reg .f32 %f<2>;
	.reg .f64 %fd<2>;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u32 %r1, [a];
	st.global.u32 [%rd2], %r1;
	ld.param.f32 %f1, [b];
	st.global.f32 [%rd2+4], %f1;
	ld.param.f64 %fd1, [c];
	st.global.f64 [%rd2+8], %fd1;
	ld.param.u32 %r2, [d];
	st.global.u32 [%rd2+16], %r2;
	ret;
}
`

func TestArgumentsOfAllSizes(t *testing.T) {
	fake(t)
	space := adopt(t)
	s := get[device.Stream](t)(space.NewStream())
	defer s.Close()
	m := get[device.Module](t)(space.LoadModule([]byte(mixedPTX)))
	defer m.Close()
	k := get[device.Kernel](t)(m.Kernel("mixed"))
	out := get[device.Memory](t)(space.Allocate(20))
	defer out.Free()
	args := new(device.Args).Ptr(out.Ptr()).Uint32(0x01020304).Float32(1.5).Float64(-2.25).Uint32(0xfffefdfc)
	must(t, s.Launch(k, device.LaunchConfig{}, args))
	got := make([]byte, 20)
	must(t, s.CopyToHost(got, out.Ptr()))
	must(t, s.Synchronize())
	want := []byte{4, 3, 2, 1, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 0x02, 0xc0, 0xfc, 0xfd, 0xfe, 0xff}
	if !bytes.Equal(got, want) {
		t.Errorf("the kernel saw\n% x, want\n% x", got, want)
	}
}

func TestBoxesAreCopiedInTheLongestParts(t *testing.T) {
	gpu := fake(t)
	space := adopt(t)
	s := get[device.Stream](t)(space.NewStream())
	defer s.Close()
	m := get[device.Memory](t)(space.Allocate(4096))
	defer m.Free()
	h := get[device.HostMemory](t)(space.AllocateHost(4096))
	defer h.Free()
	pitch := func(row, rows int64) device.Pitch { return device.Pitch{Row: row, Rows: rows} }
	for _, tt := range []struct {
		name         string
		extent       device.Extent
		host, device device.Pitch
		calls        int64
	}{
		{"no gaps: one part", device.Extent{Row: 8, Rows: 4, Slices: 3}, pitch(8, 4), pitch(8, 4), 1},
		{"gaps between slices: one for each", device.Extent{Row: 8, Rows: 4, Slices: 3}, pitch(8, 4), pitch(8, 6), 3},
		{"gaps between rows: one for each", device.Extent{Row: 8, Rows: 4, Slices: 3}, pitch(8, 4), pitch(10, 4), 12},
		{"gaps on the other side", device.Extent{Row: 8, Rows: 4, Slices: 3}, pitch(10, 4), pitch(8, 4), 12},
		{"slices of one row that touch: one part", device.Extent{Row: 8, Rows: 1, Slices: 3}, pitch(8, 1), pitch(8, 1), 1},
		{"slices of one row with gaps", device.Extent{Row: 8, Rows: 1, Slices: 3}, pitch(8, 2), pitch(8, 1), 3},
		{"one row", device.Extent{Row: 8, Rows: 1, Slices: 1}, pitch(20, 3), pitch(30, 4), 1},
	} {
		before := gpu.Transfers()
		must(t, s.CopyBoxToDevice(m.Ptr(), tt.device, h.Bytes(), tt.host, tt.extent))
		must(t, s.CopyBoxToHost(h.Bytes(), tt.host, m.Ptr(), tt.device, tt.extent))
		must(t, s.CopyBoxOnDevice(m.Ptr().Add(2048), tt.host, m.Ptr(), tt.device, tt.extent))
		must(t, s.Synchronize())
		after := gpu.Transfers()
		want := fakegpu.Traffic{Calls: tt.calls, Bytes: tt.extent.Bytes()}
		for what, got := range map[string]fakegpu.Traffic{
			"to device": {Calls: after.ToDevice.Calls - before.ToDevice.Calls, Bytes: after.ToDevice.Bytes - before.ToDevice.Bytes},
			"to host":   {Calls: after.ToHost.Calls - before.ToHost.Calls, Bytes: after.ToHost.Bytes - before.ToHost.Bytes},
			"on device": {Calls: after.OnDevice.Calls - before.OnDevice.Calls, Bytes: after.OnDevice.Bytes - before.OnDevice.Bytes},
		} {
			if got != want {
				t.Errorf("%s: %s: %+v, want %+v", tt.name, what, got, want)
			}
		}
	}
}

// Copies of registered memory, which the driver knows nothing of, are over when the call
// returns, on a machine too where the device reaches all memory of the host and the
// driver makes such copies asynchronous.
func TestRegisteredMemoryIsWaitedFor(t *testing.T) {
	gpu := fake(t)
	gpu.Setting(t, "HMM", "1")
	space := adopt(t)
	stream := get[device.Stream](t)(space.NewStream())
	memory := get[device.Memory](t)(space.Allocate(4096))
	must(t, stream.Fill(memory.Ptr(), 5, 4096))
	own, pinned := make([]byte, 4096), get[device.HostMemory](t)(space.AllocateHost(4096))
	registered := get[device.HostMemory](t)(space.RegisterHost(own))
	must(t, stream.CopyToHost(own, memory.Ptr()))
	if own[0] != 5 || own[4095] != 5 {
		t.Error("the copy isn't over")
	}
	must(t, stream.CopyToHost(pinned.Bytes(), memory.Ptr()))
	if pinned.Bytes()[0] == 5 {
		t.Error("a copy of pinned memory is waited for")
	}
	must(t, stream.Synchronize())
	must(t, errors.Join(registered.Free(), pinned.Free(), memory.Free(), stream.Close()))
}

// That the context is none is a loss where it is made current, and elsewhere the mistake
// of one call.
func TestContextThatIsDestroyed(t *testing.T) {
	gpu := fake(t)
	newContext(t, 1)
	space := get[device.Space](t)(mumax.Adopt())
	gpu.Fail("cuMemGetInfo", 1, int(cu.ERROR_INVALID_CONTEXT))
	if _, err := space.MemoryInfo(); !errors.Is(err, device.ErrInvalid) || errors.Is(err, device.ErrLost) {
		t.Errorf("a refusal: %v", err)
	}
	onThread(func() {
		gpu.Fail("cuCtxSetCurrent", 1, int(cu.ERROR_INVALID_CONTEXT))
		if _, err := space.MemoryInfo(); !errors.Is(err, device.ErrLost) {
			t.Errorf("the context is gone: %v", err)
		}
	})
	must(t, space.Close())
}
