package stepper

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
)

// A driver may fuse a product and a sum that don't say how they are rounded, and
// the bits would differ from those of the host.
func TestKernelRoundsEveryOperation(t *testing.T) {
	found := 0
	for line := range strings.Lines(ptx) {
		op, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		op = strings.TrimSpace(op)
		if !strings.HasSuffix(op, ".f64") {
			continue
		}
		switch kind, _, _ := strings.Cut(op, "."); kind {
		case "add", "sub", "mul":
			found++
			if op != kind+".rn.f64" {
				t.Errorf("%s", line)
			}
		case "fma", "mad", "div":
			t.Errorf("%s", line)
		}
	}
	if want := 9 + 5; found != want { // the sums and products of Rates.Next
		t.Errorf("%d sums and products, want %d", found, want)
	}
}

func TestImagesAreWhatTheDriversLoad(t *testing.T) {
	for _, arch := range []string{"gfx90a", "gfx942", "gfx1100", "gfx90a:sramecc+:xnack-", "gfx908", "gfx906:sramecc+:xnack-", "gfx1012", "gfx1030", "gfx1151", "gfx1201"} {
		code, err := image(device.Properties{Kind: "hip", Arch: arch})
		if err != nil || !bytes.HasPrefix(code, []byte("\x7fELF")) || !bytes.Contains(code, []byte(kernelName)) {
			t.Errorf("%s: %d bytes, error %v", arch, len(code), err)
		}
	}
	code, err := image(device.Properties{Kind: "cuda", Arch: "sm_90"})
	if err != nil || !bytes.HasSuffix(code, []byte("\x00")) || !bytes.Contains(code, []byte(".entry "+kernelName+"(")) {
		t.Errorf("PTX: %d bytes, error %v", len(code), err)
	}
	if _, err := image(device.Properties{Kind: "hip", Arch: "gfx1"}); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("error is %v", err)
	}
	names, err := fs.Glob(objects, "*")
	if err != nil || len(names) != 9 {
		t.Errorf("code objects are %v, error %v", names, err)
	}
}

func TestBoxesOfTheKernel(t *testing.T) {
	for _, tc := range []struct {
		size [3]int
		want int
	}{
		{[3]int{1, 1, 1}, 1},
		{[3]int{32, 8, 16}, 1},
		{[3]int{33, 9, 17}, 8},
		{[3]int{0, 100, 100}, 0},
		{[3]int{1 << 20, 1 << 16, 1}, 1 << 28},
	} {
		if got, err := blocks(tc.size); err != nil || got != tc.want {
			t.Errorf("%v cells are %d blocks, %v, want %d", tc.size, got, err, tc.want)
		}
	}
	if n, err := blocks([3]int{1 << 30, 1 << 30, 1 << 30}); !errors.Is(err, device.ErrInvalid) {
		t.Errorf("%d blocks, error %v", n, err)
	}
}
