package cuda_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/cuda"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

var config = devicetest.Config{
	Open:   func() (device.Space, error) { return device.Open("cuda:0") },
	Faults: true,
}

func TestConformance(t *testing.T) {
	for _, mode := range fakegpu.Modes {
		t.Run(mode.String(), func(t *testing.T) {
			gpu := fakegpu.Load(t, "cuda")
			gpu.Set(t, mode)
			devicetest.Run(t, config)
			if live := gpu.Live(); live != (fakegpu.Live{}) {
				t.Errorf("left over: %+v", live)
			}
		})
	}
}

// On a lazy device, each planted bug is noticed by the check of what it breaks,
// every time.
func TestSuiteNoticesPlantedBugs(t *testing.T) {
	gpu := fakegpu.Load(t, "cuda")
	gpu.Set(t, fakegpu.Lazy)
	devicetest.RunPlanted(t, config, 3)
	gpu.Misuse() // some of the bugs are
}
