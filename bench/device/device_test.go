package main

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/emulated"
)

// Each line is in the file before it is printed.
func TestEverythingIsMeasured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures")
	out := &checked{t: t, path: path}
	args := []string{"-device", "emulated:0", "-size", "12", "-big", "4096", "-repeats", "2", "-batch", "0", "-folder", t.TempDir(), "-also", path}
	if err := run(context.Background(), args, out); err != nil {
		t.Fatal(err)
	}
	const number = ` +\d+\.`
	for _, want := range []string{
		"float64, 4845 cells, .*beyond index 4096", "float32, 9044 cells, .*beyond index 8192",
		"float64 contiguous: pack" + number, "float64 cube, halo 1: unpack" + number, "float64 cube, halo 4: pack" + number,
		"float64, rows of 16: unpack" + number, "float64, rows of 512: pack" + number, "float32 cube, halo 2: pack" + number,
		"ring of 4 x 1 MiB, save" + number + ".*host, pinned", "ring of 8 x 8 MiB, load" + number + ".*plain copy",
		"best for saves: the ring of", "best for loads: the ring of .* default of 4 x 1 MiB",
		"capture: again" + number, "capture: restore", "load the module", "launch a kernel and wait" + number,
		"save of .*, without fsync: the solver is blocked for", "save of .*, with fsync: ", "background save: not measured",
		"float64 to the host: direct" + number, "float64 to the host: mirror" + number, "float32 to the device: direct" + number,
		"save: direct" + number, "save: mirror" + number, "load: direct" + number,
	} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(out.String()) {
			t.Errorf("there is no line %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

type checked struct {
	strings.Builder
	t    *testing.T
	path string
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.Builder.Write(p)
	if file, ferr := os.ReadFile(c.path); ferr != nil || string(file) != c.String() {
		c.t.Errorf("%v: the file has %d bytes when %d are printed", ferr, len(file), c.Len())
	}
	return n, err
}

// A device whose memory is too small for some of it does the rest.
func TestWhatHasNoRoomIsLeftOut(t *testing.T) {
	space, err := emulated.New(emulated.Capacity(128 << 20))
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	var out strings.Builder
	s := settings{size: 12, big: 1 << 31, fields: 1, repeats: 1, folder: t.TempDir()}
	if err := measure(context.Background(), s, space, &out, "big", "kernels", "ring"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"float64, 2150615025 cells: left out, for it needs 16", "and 128 are free", "rings: left out", "float64 contiguous: pack"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing is said of %q:\n%s", want, out.String())
		}
	}
}

func TestPartsAreChosen(t *testing.T) {
	var out strings.Builder
	args := []string{"-device", "emulated:0", "-size", "4", "-repeats", "1", "-parts"}
	if err := run(context.Background(), append(args, "costs"), &out); err != nil || strings.Contains(out.String(), "ring") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := run(context.Background(), append(args, "cost"), &out); err == nil || !strings.Contains(err.Error(), `no part "cost": there are big,kernels`) {
		t.Errorf("error is %v", err)
	}
}

func TestWrongCellsAreNoticed(t *testing.T) {
	for _, bug := range []devicetest.Bug{
		devicetest.StreamSynchronizeReturnsAtOnce,
		devicetest.CopyToHostLosesTheLastByte,
		devicetest.CopyToDeviceGoesAstray,
		devicetest.LaunchDoesNothing,
	} {
		for _, part := range []string{"big", "kernels", "readings", "ring", "bundles"} {
			t.Run(string(bug)+", "+part, func(t *testing.T) {
				space, err := device.Open("emulated:0")
				if err != nil {
					t.Fatal(err)
				}
				defer space.Close()
				planted := struct {
					device.Space
					device.BoxKernels // Plant's space has none
				}{devicetest.Plant(space, bug), space.(device.BoxKernels)}
				var out strings.Builder
				s := settings{size: 12, big: 4096, fields: 1, repeats: 1, folder: t.TempDir()}
				if err := measure(context.Background(), s, planted, &out, part); err == nil {
					t.Errorf("no error\n%s", out.String())
				} else {
					t.Log(err)
				}
			})
		}
	}
}

// Kernels that count cells with too few bits take the cells of another place, which the
// big boxes show; those of the other parts have too few cells.
func TestIndicesThatWrapAreNoticed(t *testing.T) {
	space, err := emulated.New(emulated.Capacity(256 << 20))
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	const limit = 1 << 12
	for _, name := range []device.BoxKernel{device.PackFloat64, device.UnpackFloat64, device.PackFloat32, device.UnpackFloat32} {
		var out strings.Builder
		s := settings{size: 12, big: limit, fields: 1, repeats: 1, folder: t.TempDir()}
		err := measure(context.Background(), s, wrapping{space, space, string(name), limit}, &out, "big")
		if err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: error %v\n%s", name, err, out.String())
		}
		if err := measure(context.Background(), s, wrapping{space, space, string(name), limit}, &out, "kernels"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// wrapping is a space in which the first cell of a box is taken modulo a limit by one
// kernel.
type wrapping struct {
	device.Space
	device.BoxKernels
	kernel string
	limit  uint64
}

func (w wrapping) NewStream() (device.Stream, error) {
	s, err := w.Space.NewStream()
	return wrappingStream{s, w}, err
}

type wrappingStream struct {
	device.Stream
	w wrapping
}

func (s wrappingStream) Launch(k device.Kernel, config device.LaunchConfig, args *device.Args) error {
	if k.Name() == s.w.kernel {
		first := args.Bytes()[16:24] // behind the two addresses
		binary.LittleEndian.PutUint64(first, binary.LittleEndian.Uint64(first)%s.w.limit)
	}
	return s.Stream.Launch(k, config, args)
}
