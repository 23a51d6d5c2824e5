package emulated_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := emulated.RegisterModule("box", map[string]emulated.KernelFunc{
		"pack3d":   func(l *emulated.Launch) error { return copyBox(l, false) },
		"unpack3d": func(l *emulated.Launch) error { return copyBox(l, true) },
		"fill": func(l *emulated.Launch) error {
			p, n, v := l.Ptr(), l.Int32(), l.Float64()
			s, err := emulated.Slice[float64](l, p, int64(n))
			for i := range s {
				s[i] = v
			}
			return err
		},
		"panics": func(*emulated.Launch) error { panic("kernel out of its depth") },
	}); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// copyBox is pack3d, or unpack3d.
func copyBox(l *emulated.Launch, unpack bool) error {
	out, in := l.Ptr(), l.Ptr()
	var v [8]int64
	for i := range v {
		v[i] = l.Int64()
	}
	ox, oy, oz, nx, ny, nz, sy, sz := v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
	n := nx * ny * nz
	box, packed := in, out
	if unpack {
		box, packed = out, in
	}
	a, err := emulated.Slice[float64](l, box, (oz+nz-1)*sz+(oy+ny-1)*sy+ox+nx)
	if err != nil {
		return err
	}
	b, err := emulated.Slice[float64](l, packed, n)
	if err != nil {
		return err
	}
	for t := range min(n, int64(l.Threads())) {
		x, y, z := t%nx, t/nx%ny, t/(nx*ny)
		at := ox + x + (oy+y)*sy + (oz+z)*sz
		if unpack {
			a[at] = b[t]
		} else {
			b[t] = a[at]
		}
	}
	return nil
}

var modes = []emulated.Mode{emulated.Lazy, emulated.Eager, emulated.Delayed}

func config(mode emulated.Mode) devicetest.Config {
	return devicetest.Config{
		Open: func() (device.Space, error) {
			return emulated.New(emulated.Schedule(mode), emulated.Seed(1), emulated.Capacity(64<<20))
		},
		Image:  emulated.Image("box"),
		Faults: true,
	}
}

func TestConformance(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) { devicetest.Run(t, config(mode)) })
	}
}

// On a lazy device, each planted bug is noticed by the check of what it breaks,
// every time.
func TestSuiteNoticesPlantedBugs(t *testing.T) {
	devicetest.RunPlanted(t, config(emulated.Lazy), 20)
}
