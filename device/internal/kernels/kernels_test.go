package kernels

import (
	"errors"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
)

var boxKernels = []device.BoxKernel{device.PackFloat64, device.PackFloat32, device.UnpackFloat64, device.UnpackFloat32}

func TestPTXHasTheKernelsAndRunsOnOldDevices(t *testing.T) {
	text := string(PTX())
	for _, want := range []string{".version 6.0\n", ".target sm_70\n", ".address_size 64\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	for _, k := range boxKernels {
		if !strings.Contains(text, ".visible .entry "+string(k)+"(") {
			t.Errorf("the text lacks %s", k)
		}
	}
	if n := strings.IndexByte(text, 0); n != len(text)-1 {
		t.Errorf("the first NUL is byte %d of %d, want the last", n, len(text))
	}
	for _, bad := range []string{
		".ftz",    // flushes subnormal numbers
		".approx", // not rounded to nearest
		".local",  // memory for registers that spill
		".f16",
	} {
		if strings.Contains(text, bad) {
			t.Errorf("the text has %q", bad)
		}
	}
}

func TestAnUnknownArchitectureIsAnErrorThatNamesTheOthers(t *testing.T) {
	_, err := CodeObject("gfx803")
	if !errors.Is(err, device.ErrUnsupported) {
		t.Fatalf("error %v, want one that is %q", err, device.ErrUnsupported)
	}
	for _, want := range []string{"gfx803", "gfx90a", "gfx942", "gfx1100", "gfx11-generic"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q doesn't name %s", err, want)
		}
	}
}
