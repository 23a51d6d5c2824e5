//go:build mumax && linux

package mumax_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda/mumax"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// things are one of each kind.
type things struct {
	space  device.Space
	memory device.Memory
	host   device.HostMemory
	a, b   device.Stream
	event  device.Event
	module device.Module
	kernel device.Kernel
}

// make makes them, up to the first error.
func (x *things) make(space device.Space) (err error) {
	x.space = space
	for _, step := range []func() error{
		func() (err error) { x.memory, err = space.Allocate(4096); return err },
		func() (err error) { x.host, err = space.AllocateHost(4096); return err },
		func() (err error) { x.a, err = space.NewStream(); return err },
		func() (err error) { x.b, err = space.NewStream(); return err },
		func() (err error) { x.event, err = space.NewEvent(); return err },
		func() (err error) { x.module, err = space.LoadModule(kernels.TestPTX()); return err },
		func() (err error) { x.kernel, err = x.module.Kernel("pack3d"); return err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (x *things) copyAndLaunch() error {
	p := x.memory.Ptr()
	args := new(device.Args).Ptr(p).Ptr(p.Add(2048))
	for _, v := range []int64{0, 0, 0, 10, 1, 1, 10, 10} {
		args.Int64(v)
	}
	pitch, extent := device.Pitch{Row: 16, Rows: 2}, device.Extent{Row: 8, Rows: 2, Slices: 2}
	for _, step := range []func() error{
		func() error { return x.a.CopyToDevice(p, x.host.Bytes()) },
		func() error { return x.a.Fill(p, 0, 100) },
		func() error { return x.a.CopyBoxToDevice(p, pitch, x.host.Bytes(), pitch, extent) },
		func() error { return x.a.Record(x.event) },
		func() error { return x.b.Wait(x.event) },
		func() error {
			return x.b.Launch(x.kernel, device.LaunchConfig{Grid: [3]int{1}, Block: [3]int{256}}, args)
		},
		func() error { return x.b.CopyOnDevice(p, p.Add(2048), 100) },
		func() error { return x.b.CopyToHost(make([]byte, 100), p) },
		func() error { _, err := x.event.Query(); return err },
		func() error { return x.b.CopyToHost(x.host.Bytes(), p) },
		func() error { return x.b.Record(x.event) },
		func() error { return x.event.Synchronize() },
		func() error { return x.b.Synchronize() },
		func() error { _, err := x.space.MemoryInfo(); return err },
		func() error { _, _, err := x.space.AddressRange(p); return err },
		func() error { return x.space.Synchronize() },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// free frees what has been made, the space too. It returns all errors but those
// that say that something wasn't freed, when freeing it failed.
func (x *things) free() []error {
	var errs []error
	try := func(err error) {
		var leak *device.LeakError
		if err != nil && (len(errs) == 0 || !errors.As(err, &leak)) {
			errs = append(errs, err)
		}
	}
	// After an error work may be queued that uses the memory.
	_ = x.space.Synchronize()
	if x.module != nil {
		try(x.module.Close())
	}
	if x.event != nil {
		try(x.event.Close())
	}
	for _, s := range []device.Stream{x.a, x.b} {
		if s != nil {
			try(s.Close())
		}
	}
	if x.memory != nil {
		try(x.memory.Free())
	}
	if x.host != nil {
		try(x.host.Free())
	}
	try(x.space.Close())
	return errs
}

// What the space calls of the driver, but for what frees something.
var calls = []string{
	"cuInit", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
	"cuCtxCreate", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxGetDevice", "cuCtxSynchronize",
	"cuMemAlloc", "cuMemAllocHost", "cuMemGetInfo", "cuMemGetAddressRange", "cuPointerGetAttribute",
	"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemsetD8Async",
	"cuStreamCreate", "cuStreamQuery", "cuStreamSynchronize", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel",
}

var frees = []string{"cuMemFree", "cuMemFreeHost", "cuStreamDestroy", "cuCtxDestroy"}

// each lets the first call of a function fail, then the second, and so on until
// there are no more, and gives the errors of using and of freeing to check.
func each(t *testing.T, api string, code int, check func(used error, freed []error)) {
	t.Helper()
	for nth := 1; ; nth++ {
		gpu := fake(t)
		gpu.Fail(api, nth, code)
		var x things
		var freed []error
		space, used := device.Open("mumax:0")
		if used == nil {
			used = x.make(space)
			if used == nil {
				used = x.copyAndLaunch()
			}
			freed = x.free()
		}
		check(used, freed)
		if live := gpu.Live(); len(freed) == 0 && live != (fakegpu.Live{}) {
			t.Errorf("%s call %d: left over: %+v", api, nth, live)
		}
		if used == nil && len(freed) == 0 {
			if nth == 1 {
				t.Errorf("%s isn't called", api)
			}
			return
		}
		if t.Failed() || nth > 200 {
			t.Fatalf("%s call %d: used: %v; freed: %v", api, nth, used, freed)
		}
	}
}

func TestEveryCallMayFail(t *testing.T) {
	const outOfMemory, illegalAddress = 2, 700
	for _, api := range calls {
		t.Run(api, func(t *testing.T) {
			each(t, api, outOfMemory, func(used error, freed []error) {
				switch {
				case used != nil && (len(freed) > 0 || !errors.Is(used, device.ErrOutOfMemory) || errors.Is(used, device.ErrLost)):
					t.Error("the failure isn't the one error")
				case used == nil && len(freed) > 1:
					t.Error("one failure is reported several times")
				}
			})
		})
		t.Run(api+" at a lost device", func(t *testing.T) {
			each(t, api, illegalAddress, func(used error, freed []error) {
				switch {
				case used != nil && len(freed) > 0:
					t.Error("cleaning up fails after the loss was reported")
				case len(freed) > 1:
					t.Error("the loss is reported several times")
				}
				for _, err := range append(freed, used) {
					if err != nil && !errors.Is(err, device.ErrAddress) {
						t.Error("the cause is hidden")
					}
				}
			})
		})
	}
}

func TestFreeingMayFail(t *testing.T) {
	const invalidValue = 1
	for _, api := range frees {
		t.Run(api, func(t *testing.T) {
			gpu := fake(t)
			gpu.Fail(api, 1, invalidValue)
			var x things
			must(t, x.make(get[device.Space](t)(device.Open("mumax:0"))))
			errs := x.free()
			if len(errs) == 0 || !errors.Is(errs[0], device.ErrInvalid) {
				t.Errorf("errors %v, want one that is %v", errs, device.ErrInvalid)
			}
			if err := x.space.Close(); err != nil && !errors.Is(err, device.ErrClosed) {
				t.Errorf("close, again: %v", err)
			}
			if live := gpu.Live(); live != (fakegpu.Live{}) {
				t.Errorf("left over: %+v", live)
			}
		})
	}
}

func TestErrorsHaveTheDriversNumberAndName(t *testing.T) {
	gpu := fake(t)
	space := adopt(t)
	for _, tt := range []struct {
		code int
		want error
		name string
	}{
		{1, device.ErrInvalid, "CUDA_ERROR_INVALID_VALUE"},
		{2, device.ErrOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
		{3, device.ErrUnavailable, "CUDA_ERROR_NOT_INITIALIZED"},
		{209, device.ErrUnsupported, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
		{218, device.ErrInvalid, "CUDA_ERROR_INVALID_PTX"},
		{222, device.ErrUnsupported, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
		{304, device.ErrDriver, "CUDA_ERROR_OPERATING_SYSTEM"},
		{500, device.ErrNotFound, "CUDA_ERROR_NOT_FOUND"},
		{801, device.ErrUnsupported, "CUDA_ERROR_NOT_SUPPORTED"},
		{913, device.ErrDriver, "CUDA error 913"},
	} {
		gpu.Fail("cuMemGetInfo", 1, tt.code)
		_, err := space.MemoryInfo()
		var e *device.Error
		if !errors.As(err, &e) || e.Code != tt.code || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("code %d: error %v, want one that is %q and names %s", tt.code, err, tt.want, tt.name)
		}
		if _, err := space.MemoryInfo(); err != nil {
			t.Errorf("after code %d: %v", tt.code, err)
		}
		gpu.Fail("cuMemGetInfo", 0, 0)
	}
}

func TestLossNamesItsOrigin(t *testing.T) {
	for _, code := range []int{4, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999} {
		t.Run(fmt.Sprint("code ", code), func(t *testing.T) {
			gpu := fake(t)
			var x things
			must(t, x.make(get[device.Space](t)(device.Open("mumax:0"))))
			gpu.Fail("cuStreamSynchronize", 1, code)
			err := x.a.Synchronize()
			if !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), fmt.Sprint(code)) {
				t.Errorf("error %v, want one that is %q with the code", err, device.ErrLost)
			}
			_, later := x.space.Allocate(8)
			if !errors.Is(later, device.ErrLost) || !strings.Contains(later.Error(), "synchronize stream") {
				t.Errorf("later error %v, want one that is %q and names the first call", later, device.ErrLost)
			}
			if errs := x.free(); len(errs) > 0 {
				t.Errorf("cleaning up: %v", errs)
			}
		})
	}
}

// The solver must not, but where it does, nothing breaks.
func TestSolverDestroysItsContextFirst(t *testing.T) {
	gpu := fake(t)
	onThread(func() {
		cu.Init(0)
		ctx := cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(0))
		space, err := mumax.Adopt()
		if err != nil {
			t.Error(err)
			return
		}
		var x things
		if err := x.make(space); err != nil {
			t.Error(err)
			return
		}
		ctx.Destroy()
		if err := x.copyAndLaunch(); !errors.Is(err, device.ErrLost) {
			t.Errorf("error %v, want one that is %q", err, device.ErrLost)
		}
		if errs := x.free(); len(errs) > 0 {
			t.Errorf("cleaning up: %v", errs)
		}
	})
	if live := gpu.Live(); live != (fakegpu.Live{}) {
		t.Errorf("left over: %+v", live)
	}
}
