//go:build mumax && linux

package mumax_test

import (
	"runtime"
	"testing"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda/mumax"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

func config() devicetest.Config {
	return devicetest.Config{
		Open:   func() (device.Space, error) { return device.Open("mumax:0") },
		Image:  kernels.TestPTX(),
		Faults: true,
	}
}

func TestConformance(t *testing.T) {
	for _, mode := range fakegpu.Modes {
		t.Run(mode.String(), func(t *testing.T) {
			gpu := fake(t)
			gpu.Set(t, mode)
			devicetest.Run(t, config())
			if live := gpu.Live(); live != (fakegpu.Live{}) {
				t.Errorf("left over: %+v", live)
			}
		})
	}
}

// The context is the solver's, and current on the thread that makes the calls. The
// solver destroys it in the end, and with it what the driver keeps after a fault.
func TestConformanceInTheSolversContext(t *testing.T) {
	gpu := fake(t)
	var contexts []cu.Context
	adopting := config()
	adopting.Open = func() (device.Space, error) {
		runtime.LockOSThread() // until the check's goroutine ends
		cu.Init(0)
		contexts = append(contexts, cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(1)))
		return mumax.Adopt()
	}
	devicetest.Run(t, adopting)
	if live := gpu.Live(); live.Contexts != int64(len(contexts)) {
		t.Errorf("%d contexts are left of the solver's %d", live.Contexts, len(contexts))
	}
	for _, ctx := range contexts {
		result(ctx.Destroy) // which tells of the fault
	}
	if live := gpu.Live(); live != (fakegpu.Live{}) {
		t.Errorf("left over: %+v", live)
	}
}

func TestSuiteNoticesPlantedBugs(t *testing.T) {
	fake(t).Set(t, fakegpu.Lazy)
	devicetest.RunPlanted(t, config(), 3)
}

func TestConformanceOfNamedDevice(t *testing.T) {
	name := onNamedDevice(t)
	named := config()
	named.Open = func() (device.Space, error) { return device.Open(name) }
	devicetest.Run(t, named)
}
