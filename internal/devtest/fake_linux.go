//go:build amd64 || arm64

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
	for _, kind := range []string{"cuda", "hip"} {
		for _, mode := range fakegpu.Modes {
			f := &fake{kind: kind, mode: mode}
			list = append(list, Device{
				Name:  kind + " " + mode.String(),
				Slow:  mode != fakegpu.Lazy, // its kernels are interpreted
				Open:  f.open,
				Break: f.breakKernel,
				load:  f.load,
				end:   f.end,
			})
		}
	}
	return list
}

// fake is a device of a fake driver.
type fake struct {
	kind   string
	mode   fakegpu.Mode
	gpu    *fakegpu.Driver
	t      *testing.T
	broken bool
}

func (f *fake) load(t *testing.T) {
	f.gpu, f.t = fakegpu.Load(t, f.kind, boxSource(t)), t
	f.gpu.Set(t, f.mode)
}

// open begins anew after a loss, as another process would: HIP's runtime has one
// context for each device, and what is lost there stays so.
func (f *fake) open() (device.Space, error) {
	if f.broken {
		f.gpu.Reset()
		f.gpu.Set(f.t, f.mode)
		f.broken = false
	}
	return device.Open(f.kind + ":0")
}

func (f *fake) breakKernel(_ device.Space, nth int) {
	f.gpu.FailKernel(nth, illegalAddress)
	f.broken = true
}

// end looks for what wasn't given back. A device that is lost takes nothing back.
func (f *fake) end(t *testing.T) {
	live := f.gpu.Live()
	if f.kind == "hip" {
		live.Contexts = 0 // its runtime keeps it
	}
	if !f.broken && live != (fakegpu.Live{}) {
		t.Errorf("not given back: %+v", live)
	}
}
