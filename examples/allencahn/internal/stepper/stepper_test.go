package stepper_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/stepper"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
)

func openEmulated(t *testing.T, opts ...emulated.Option) *emulated.Device {
	t.Helper()
	dev, err := emulated.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// A world is a domain cut into boxes, each with its stepper.
type world struct {
	t     *testing.T
	cut   grid.Decomposition
	parts []stepper.Stepper
}

func newWorld(t *testing.T, where memory, cut grid.Decomposition, m phasefield.Model, shape phasefield.Shape) *world {
	t.Helper()
	w := &world{t: t, cut: cut}
	for rank := range cut.Ranks() {
		s, err := stepper.New(where.open(t), m, cut.Domain(), cut.Box(rank), sides(cut, rank))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		phi, err := s.Phi().MutableView()
		if err != nil {
			t.Fatal(err)
		}
		phasefield.Fill(phi, s.Phi().Layout(), cut.Box(rank), shape)
		w.parts = append(w.parts, s)
	}
	return w
}

func sides(cut grid.Decomposition, rank int) (s phasefield.Sides) {
	for axis := range s {
		for side := range s[axis] {
			switch other, ok := cut.Neighbor(rank, axis, 2*side-1); {
			case !ok:
				s[axis][side] = phasefield.Wall
			case other == rank:
				s[axis][side] = phasefield.Wrap
			default:
				s[axis][side] = phasefield.Ghost
			}
		}
	}
	return s
}

// exchange does what the ranks of a solver do by messages.
func (w *world) exchange() {
	w.t.Helper()
	for _, s := range w.parts {
		w.must(s.Gather())
	}
	for rank, s := range w.parts {
		for axis, faces := range s.Faces() {
			for side, face := range faces {
				if face.In == nil {
					continue
				}
				other, _ := w.cut.Neighbor(rank, axis, 2*side-1)
				from := w.parts[other].Faces()[axis][1-side].Out
				if copy(face.In, from) != len(face.In) || len(from) != len(face.In) {
					w.t.Fatalf("rank %d, axis %d, side %d: a face of %d cells comes to one of %d", rank, axis, side, len(from), len(face.In))
				}
			}
		}
	}
	for _, s := range w.parts {
		w.must(s.Scatter())
	}
}

func (w *world) run(steps int) {
	w.t.Helper()
	for range steps {
		w.exchange()
		for _, s := range w.parts {
			w.must(s.Step())
		}
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// cells returns the owned cells of the whole domain.
func (w *world) cells() []float64 {
	w.t.Helper()
	n := w.cut.Domain().Size
	all := make([]float64, w.cut.Domain().Cells())
	for rank, s := range w.parts {
		phi, err := s.Phi().View()
		w.must(err)
		for row := range s.Phi().Owned().Rows() {
			c := s.Phi().Global(row.I, row.J, row.K)
			if got := w.cut.Box(rank); got != s.Phi().Box() {
				w.t.Fatalf("rank %d has the box %v, want %v", rank, s.Phi().Box(), got)
			}
			copy(all[(c[2]*n[1]+c[1])*n[0]+c[0]:], phi[row.Start:row.End])
		}
	}
	return all
}

func mustHaveSameBits(t *testing.T, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("cell %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func decompose(t *testing.T, size [3]int, periodic [3]bool, processes [3]int) grid.Decomposition {
	t.Helper()
	d := grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}, Periodic: periodic}
	cut, err := grid.Decompose(d, processes[0]*processes[1]*processes[2], grid.ProcessGrid(processes[0], processes[1], processes[2]))
	if err != nil {
		t.Fatal(err)
	}
	return cut
}

func TestSameBitsInAnyMemoryAndCut(t *testing.T) {
	const steps = 4
	for _, tc := range []struct {
		name      string
		size      [3]int
		periodic  [3]bool
		processes [3]int
	}{
		{"one box with walls", [3]int{35, 11, 19}, [3]bool{}, [3]int{1, 1, 1}},
		{"one periodic box", [3]int{40, 16, 17}, [3]bool{true, true, true}, [3]int{1, 1, 1}},
		{"a line of cells", [3]int{1, 1, 40}, [3]bool{true, false, true}, [3]int{1, 1, 1}},
		{"cut along x", [3]int{21, 6, 5}, [3]bool{false, true, false}, [3]int{2, 1, 1}},
		{"cut along y, periodic", [3]int{10, 9, 4}, [3]bool{false, true, true}, [3]int{1, 3, 1}},
		{"cut along z", [3]int{10, 4, 18}, [3]bool{true, false, false}, [3]int{1, 1, 2}},
		{"cut along all axes, periodic", [3]int{9, 7, 5}, [3]bool{true, true, true}, [3]int{2, 2, 2}},
		{"more boxes than planes", [3]int{5, 4, 2}, [3]bool{true, true, true}, [3]int{1, 1, 3}},
		{"more boxes than planes, one plane", [3]int{5, 4, 1}, [3]bool{true, true, true}, [3]int{1, 1, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := phasefield.Standard()
			cut := decompose(t, tc.size, tc.periodic, tc.processes)
			shape := phasefield.Random(cut.Domain(), 42)
			whole := newWorld(t, onHost, decompose(t, tc.size, tc.periodic, [3]int{1, 1, 1}), m, shape)
			start := whole.cells()
			whole.run(steps)
			want := whole.cells()
			if fmt.Sprint(start) == fmt.Sprint(want) {
				t.Fatal("nothing happens")
			}
			inEachMemory(t, func(t *testing.T, where memory) {
				w := newWorld(t, where, cut, m, shape)
				mustHaveSameBits(t, w.cells(), start)
				w.run(steps)
				mustHaveSameBits(t, w.cells(), want)
			})
		})
	}
}

// What happens between steps must not matter: that somebody looks at the field,
// so that mirror and device are in sync, or writes to it on the host.
func TestViewsAndWritesBetweenSteps(t *testing.T) {
	m := phasefield.Standard()
	cut := decompose(t, [3]int{8, 7, 6}, [3]bool{true, false, true}, [3]int{2, 1, 2})
	shape := phasefield.Random(cut.Domain(), 1)
	story := func(t *testing.T, where memory) []float64 {
		w := newWorld(t, where, cut, m, shape)
		w.run(2)
		for _, s := range w.parts {
			_, err := s.Phi().View()
			w.must(err)
		}
		// In the middle of a step: nothing but ghost cells is newer on the
		// device than what was looked at.
		w.exchange()
		for _, s := range w.parts {
			phi, err := s.Phi().MutableView()
			w.must(err)
			phi[s.Phi().Index(0, 1, 1)] = -0.75
		}
		for _, s := range w.parts {
			w.must(s.Step())
		}
		w.run(2)
		return w.cells()
	}
	want := story(t, onHost)
	inEachMemory(t, func(t *testing.T, where memory) { mustHaveSameBits(t, story(t, where), want) })
}

func TestOnlyFacesTravel(t *testing.T) {
	const steps = 5
	for _, tc := range []struct {
		name      string
		processes [3]int
		faces     int64 // cells that a rank sends in one step, all faces
	}{
		{"one periodic box", [3]int{1, 1, 1}, 0},
		{"cut along x", [3]int{2, 1, 1}, 2 * 6 * 5},
		{"cut along y", [3]int{1, 2, 1}, 2 * 8 * 5},
		{"cut along z", [3]int{1, 1, 2}, 2 * 8 * 6},
		{"cut along all axes", [3]int{2, 2, 2}, 2 * (6*5 + 8*5 + 8*6)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			size := [3]int{8 * tc.processes[0], 6 * tc.processes[1], 5 * tc.processes[2]}
			cut := decompose(t, size, [3]bool{true, true, true}, tc.processes)
			var devices []*emulated.Device
			where := memory{open: func(t *testing.T) device.Space {
				dev := openEmulated(t)
				devices = append(devices, dev)
				return dev
			}}
			w := newWorld(t, where, cut, phasefield.Standard(), phasefield.Random(cut.Domain(), 3))
			w.run(1) // uploads the start
			before := make([]emulated.Transfers, len(devices))
			for i, dev := range devices {
				before[i] = dev.Transfers()
			}
			w.run(steps)
			for i, dev := range devices {
				now := dev.Transfers()
				toHost, toDevice := now.ToHost.Bytes-before[i].ToHost.Bytes, now.ToDevice.Bytes-before[i].ToDevice.Bytes
				if want := 8 * steps * tc.faces; toHost != want || toDevice != want {
					t.Errorf("device %d: %d bytes to the host, %d to the device in %d steps, want %d", i, toHost, toDevice, steps, want)
				}
				if now.Pageable != 0 {
					t.Errorf("device %d: %d copies of memory that isn't pinned", i, now.Pageable)
				}
				if got := w.parts[i].Phi().Residency(); got != field.DeviceNewer {
					t.Errorf("device %d: the field is %v", i, got)
				}
			}
		})
	}
}

// A device without kernels that pack, or with a driver that refuses them.
func TestWithoutBoxKernels(t *testing.T) {
	for _, tc := range []struct {
		name string
		wrap func(device.Space) device.Space
	}{
		{"the space has none", func(s device.Space) device.Space { return struct{ device.Space }{s} }},
		{"the driver refuses them", func(s device.Space) device.Space { return refusing{s} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cut := decompose(t, [3]int{9, 4, 3}, [3]bool{true, false, false}, [3]int{3, 1, 1})
			shape := phasefield.Random(cut.Domain(), 5)
			want := newWorld(t, onHost, cut, phasefield.Standard(), shape)
			want.run(3)
			w := newWorld(t, memory{open: func(t *testing.T) device.Space { return tc.wrap(openEmulated(t)) }}, cut, phasefield.Standard(), shape)
			w.run(3)
			mustHaveSameBits(t, w.cells(), want.cells())
		})
	}
}

type refusing struct{ device.Space }

func (refusing) BoxModule() (device.Module, error) { return nil, device.ErrUnsupported }

// Whatever call fails, the error names it, or there is another way to the right
// cells; everything is given back, and nothing else fails because of it.
func TestEveryFailureOfADeviceIsAnErrorOrAFallback(t *testing.T) {
	cut := decompose(t, [3]int{6, 4, 4}, [3]bool{}, [3]int{2, 1, 2})
	m := phasefield.Standard()
	attempt := func(space device.Space) (cells []float64, err error) {
		s, err := stepper.New(space, m, cut.Domain(), cut.Box(0), sides(cut, 0))
		if err != nil {
			return nil, err
		}
		defer func() {
			if cerr := s.Close(); err == nil {
				err = cerr
			}
		}()
		phi, err := s.Phi().MutableView()
		if err != nil {
			return nil, err
		}
		phasefield.Fill(phi, s.Phi().Layout(), cut.Box(0), phasefield.Random(cut.Domain(), 9))
		for range 2 {
			if err := s.Gather(); err != nil {
				return nil, err
			}
			for _, faces := range s.Faces() {
				for _, face := range faces { // as if the neighbour were the same
					copy(face.In, face.Out)
				}
			}
			if err := s.Scatter(); err != nil {
				return nil, err
			}
			if err := s.Step(); err != nil {
				return nil, err
			}
		}
		if phi, err = s.Phi().View(); err != nil {
			return nil, err
		}
		for row := range s.Phi().Owned().Rows() {
			cells = append(cells, phi[row.Start:row.End]...)
		}
		return cells, nil
	}
	want, err := attempt(nil)
	if err != nil {
		t.Fatal(err)
	}
	planted := errors.New("planted")
	failures := 0
	for n := 1; ; n++ {
		dev, err := emulated.New()
		if err != nil {
			t.Fatal(err)
		}
		dev.Inject(emulated.Fault{Nth: n, Err: planted})
		cells, err := attempt(dev)
		calls := dev.Calls()
		if err == nil {
			mustHaveSameBits(t, cells, want)
		} else if failures++; !errors.Is(err, planted) {
			t.Errorf("call %d fails: error is %v", n, err)
		}
		if live := dev.Live(); live != (emulated.Live{}) {
			// Only where the call that failed was to give something back.
			if err == nil || !strings.Contains(err.Error(), "free") && !strings.Contains(err.Error(), "close") && !strings.Contains(err.Error(), "unregister") {
				t.Errorf("call %d fails: %+v is left, error %v", n, live, err)
			}
		}
		_ = dev.Close() // says again what is left
		if int64(n) > calls {
			break
		}
	}
	if failures == 0 {
		t.Error("no call was made to fail")
	}
}

func TestKernelThatFaultsLosesTheDevice(t *testing.T) {
	cut := decompose(t, [3]int{6, 4, 4}, [3]bool{}, [3]int{1, 1, 1})
	dev, err := emulated.New()
	if err != nil {
		t.Fatal(err)
	}
	s, err := stepper.New(dev, phasefield.Standard(), cut.Domain(), cut.Box(0), sides(cut, 0))
	if err != nil {
		t.Fatal(err)
	}
	planted := errors.New("planted")
	dev.Inject(emulated.Fault{Call: emulated.CallLaunch, Err: planted, Late: true})
	if err := s.Step(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Phi().View(); !errors.Is(err, device.ErrLost) || !errors.Is(err, planted) {
		t.Errorf("error is %v", err)
	}
	_ = s.Close() // says it again
	if live := dev.Live(); live != (emulated.Live{}) {
		t.Errorf("%+v is left", live)
	}
	_ = dev.Close()
}

func TestDevicesWithoutAKernel(t *testing.T) {
	cut := decompose(t, [3]int{4, 4, 4}, [3]bool{}, [3]int{1, 1, 1})
	for _, tc := range []struct {
		properties device.Properties
		want       string
	}{
		{device.Properties{Kind: "hip", Arch: "gfx803:xnack-"}, "no kernel for gfx803:xnack-"},
		{device.Properties{Kind: "abacus"}, "no kernel for devices of the kind abacus"},
	} {
		t.Run(tc.properties.Kind, func(t *testing.T) {
			_, err := stepper.New(posing{openEmulated(t), tc.properties}, phasefield.Standard(), cut.Domain(), cut.Box(0), sides(cut, 0))
			if !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

type posing struct {
	device.Space
	properties device.Properties
}

func (p posing) Properties() device.Properties { return p.properties }
