//go:build amd64 || arm64

package hip_test

import (
	"errors"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/hip"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// config is for the fake runtime that is loaded. After a failure that stays, HIP's
// devices are lost for the process, so the fake one is begun anew.
func config(t *testing.T, gpu *fakegpu.Driver, mode fakegpu.Mode) devicetest.Config {
	gpu.Set(t, mode)
	open := func() (device.Space, error) { return device.Open("hip:0") }
	return devicetest.Config{
		Open: func() (device.Space, error) {
			space, err := open()
			if err != nil {
				return nil, err
			}
			if _, err := space.MemoryInfo(); !errors.Is(err, device.ErrLost) {
				return space, err
			}
			if err := space.Close(); err != nil {
				return nil, err
			}
			gpu.Reset()
			gpu.Set(t, mode)
			return open()
		},
		Faults: true,
	}
}

// versions are those of ROCm, newest first.
var versions = []string{"7", "6", "5"}

// load makes one version of the fake runtime the one that is opened.
func load(t testing.TB, version string) *fakegpu.Driver {
	t.Helper()
	devtest.OnFakes(t)
	gpu := fakegpu.Load(t, "hip"+version, "../internal/kernels/box.cu", "../internal/kernels/devicetest.cu")
	hip.Use("libamdhip64.so." + version)
	return gpu
}

func TestConformance(t *testing.T) {
	for _, version := range versions {
		for _, mode := range fakegpu.Modes {
			t.Run("ROCm "+version+", "+mode.String(), func(t *testing.T) {
				gpu := load(t, version)
				devicetest.Run(t, config(t, gpu, mode))
				live := gpu.Live()
				live.Contexts = 0 // a device keeps its context
				if live != (fakegpu.Live{}) {
					t.Errorf("left over: %+v", live)
				}
			})
		}
	}
}

// On a lazy device, each planted bug is noticed by the check of what it breaks,
// every time.
func TestSuiteNoticesPlantedBugs(t *testing.T) {
	gpu := load(t, "7")
	devicetest.RunPlanted(t, config(t, gpu, fakegpu.Lazy), 3)
	gpu.Misuse() // some of the bugs are
}

// A fault may end the process, so there are none.
func TestConformanceOnTheDevice(t *testing.T) {
	name := devtest.On(t, "hip")
	devicetest.Run(t, devicetest.Config{Open: func() (device.Space, error) { return device.Open(name) }})
}
