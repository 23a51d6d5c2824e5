package devtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/cuda" // is opened by its name
	_ "github.com/fieldstone-io/fieldstone/device/hip"  // likewise
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// boxSource finds what stands in for the code object of the box kernels, from the
// folder of a package, in which its tests run.
func boxSource(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		path := filepath.Join(dir, "device/internal/kernels/box.cu")
		if _, serr := os.Stat(path); serr == nil {
			return path
		}
		if filepath.Dir(dir) == dir {
			err = os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("box.cu: %v", err)
	return ""
}

// illegalAddress is the number of an error of both vendors, after which a device can't
// be used.
const illegalAddress = 700

// fakeDevices are those of the fake drivers. Where these can't be built their tests are
// skipped, see [fakegpu.Build].
func fakeDevices() []Device {
	var list []Device
	for _, kind := range []string{"cuda"} {
		for _, mode := range fakegpu.Modes {
			var gpu *fakegpu.Driver
			list = append(list, Device{
				Name:  kind + " " + mode.String(),
				Slow:  mode != fakegpu.Lazy, // its kernels are interpreted
				Open:  func() (device.Space, error) { return device.Open(kind + ":0") },
				Break: func(_ device.Space, nth int) { gpu.FailKernel(nth, illegalAddress) },
				load: func(t *testing.T) {
					gpu = fakegpu.Load(t, kind, boxSource(t))
					gpu.Set(t, mode)
				},
				end: func(t *testing.T) {
					if live := gpu.Live(); live != (fakegpu.Live{}) {
						t.Errorf("not given back: %+v", live)
					}
				},
			})
		}
	}
	return list
}
