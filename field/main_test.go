package field_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	err := emulated.RegisterModule("field", map[string]emulated.KernelFunc{
		// add adds a number to n doubles.
		"add": func(l *emulated.Launch) error {
			p, n, v := l.Ptr(), l.Int64(), l.Float64()
			s, err := emulated.Slice[float64](l, p, n)
			for i := range s {
				s[i] += v
			}
			return err
		},
	})
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

type tb interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](v T, err error) func(t tb) T {
	return func(t tb) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// checkText wants an error with all parts in its text, or none without parts.
func checkText(t tb, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 {
		must(t, err)
		return
	}
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q doesn't have %q", err, p)
		}
	}
}

func openDevice(t testing.TB, opts ...emulated.Option) *emulated.Device {
	t.Helper()
	d, err := emulated.New(append([]emulated.Option{emulated.Capacity(16 << 20)}, opts...)...)
	must(t, err)
	return d
}

func domain(size ...int) grid.Domain {
	return grid.Domain{Size: [3]int(size), Origin: [3]float64{1, 2, 3}, Spacing: [3]float64{0.5, 0.25, 2}}
}

func box(x0, x1, y0, y1, z0, z1 int) grid.Box {
	return grid.Box{Low: [3]int{x0, y0, z0}, Size: [3]int{x1 - x0, y1 - y0, z1 - z0}}
}

// number is a value that a global cell has in tests; it is exact in float32.
func number(cell [3]int) float64 {
	return float64(cell[0]) + 100*float64(cell[1]) + 10000*float64(cell[2]) + 0.5
}

func convert[T pack.Number](v float64) T {
	switch any(T(0)).(type) {
	case complex128:
		return any(complex(v, -v)).(T)
	case float32:
		return any(float32(v)).(T)
	}
	return any(v).(T)
}

// setOwned gives every owned cell its number plus shift, and ghost cells NaN.
func setOwned[T pack.Number](t tb, f *field.Field[T], shift float64) {
	t.Helper()
	data := get(f.MutableView())(t)
	for i := range data {
		data[i] = convert[T](math.NaN())
	}
	for c := range f.Owned().Cells() {
		data[f.Index(c[0], c[1], c[2])] = convert[T](number(f.Global(c[0], c[1], c[2])) + shift)
	}
}

// checkOwned checks the view of every owned cell.
func checkOwned[T pack.Number](t tb, f *field.Field[T], shift float64) {
	t.Helper()
	data := get(f.View())(t)
	for c := range f.Owned().Cells() {
		got, want := data[f.Index(c[0], c[1], c[2])], convert[T](number(f.Global(c[0], c[1], c[2]))+shift)
		if got != want {
			t.Fatalf("cell %v is %v, want %v", c, got, want)
		}
	}
}

// add launches a kernel that adds v to every stored cell.
type adder struct {
	module device.Module
	kernel device.Kernel
}

func newAdder(t tb, d device.Space) adder {
	t.Helper()
	m := get(d.LoadModule(emulated.Image("field")))(t)
	return adder{m, get(m.Kernel("add"))(t)}
}

func (a adder) launch(t tb, s device.Stream, f *field.Field[float64], v float64) {
	t.Helper()
	args := new(device.Args).Ptr(f.DevicePtr()).Int64(f.Layout().PaddedCells()).Float64(v)
	must(t, s.Launch(a.kernel, device.LaunchConfig{Grid: [3]int{1}, Block: [3]int{256}}, args))
}

func free(t tb, things ...func() error) {
	t.Helper()
	var errs []error
	for _, f := range things {
		errs = append(errs, f())
	}
	must(t, errors.Join(errs...))
}
