//go:build mumax && linux

package mumax_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda/mumax"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/publish"
)

const halo = 2

var domain = grid.Domain{Size: [3]int{12, 9, 7}, Spacing: [3]float64{1, 1, 1}, Periodic: [3]bool{true, true, true}}

func layout() pack.Layout {
	return pack.Layout{Size: domain.Size, Halo: [3]int{halo, halo, halo}}
}

// solver is one that is written with cu: it has two buffers, and its step makes
// the next state in the other one.
type solver struct {
	now, next cu.DevicePtr
	stream    cu.Stream
	bytes     int64
}

func newSolver(cells []float64) *solver {
	s := &solver{bytes: int64(8 * len(cells))}
	s.now, s.next, s.stream = cu.MemAlloc(s.bytes), cu.MemAlloc(s.bytes), cu.StreamCreate()
	cu.MemcpyHtoD(s.now, unsafe.Pointer(&cells[0]), s.bytes)
	return s
}

// step moves all cells by one place in memory.
func (s *solver) step() {
	cu.MemcpyDtoDAsync(s.next+8, s.now, s.bytes-8, s.stream)
	cu.MemcpyDtoDAsync(s.next, s.now+cu.DevicePtr(s.bytes-8), 8, s.stream)
	s.now, s.next = s.next, s.now
}

// cells returns what the device has.
func (s *solver) cells() []float64 {
	cells := make([]float64, s.bytes/8)
	s.stream.Synchronize()
	cu.MemcpyDtoH(unsafe.Pointer(&cells[0]), s.now, s.bytes)
	return cells
}

func (s *solver) free() {
	s.stream.Destroy()
	s.now.Free()
	s.next.Free()
}

func someCells() []float64 {
	cells := make([]float64, layout().PaddedCells())
	for i := range cells {
		cells[i] = math.Sin(float64(i)) * math.Pow(10, float64(i%40-20))
	}
	return cells
}

func save(t *testing.T, dir string, f field.Any) []byte {
	t.Helper()
	c, err := comm.World()
	must(t, err)
	state := publish.State{Fields: []field.Named{{ID: "psi", Field: f}}, Time: 1, Increment: 3, Method: "shift"}
	must(t, publish.SaveBundle(context.Background(), c, dir, state))
	data, err := os.ReadFile(filepath.Join(dir, "fields", "psi.bin"))
	must(t, err)
	return data
}

// A field around a solver's buffer is saved with the bytes of a host field of the
// same cells, and loaded with its ghost cells kept.
func TestFieldOfASolverOnCu(t *testing.T) {
	for _, mode := range fakegpu.Modes {
		for _, path := range []field.Path{field.Automatic, field.Direct, field.Mirror} {
			t.Run(fmt.Sprintf("%v %v", mode, path), func(t *testing.T) {
				gpu := fake(t)
				gpu.Set(t, mode)
				solverTest(t, path)
				launches := [2]int64{gpu.Launches(string(device.PackFloat64)), gpu.Launches(string(device.UnpackFloat64))}
				if direct := path != field.Mirror; (launches[0] > 0) != direct || (launches[1] > 0) != direct {
					t.Errorf("%d launches to pack, %d to unpack", launches[0], launches[1])
				}
			})
		}
	}
}

func TestFieldOfASolverOnNamedDevice(t *testing.T) {
	onNamedDevice(t)
	for _, path := range []field.Path{field.Direct, field.Mirror} {
		t.Run(path.String(), func(t *testing.T) { solverTest(t, path) })
	}
}

func solverTest(t *testing.T, path field.Path) {
	space := adopt(t)
	s := newSolver(someCells())
	defer s.free()
	for range 3 {
		s.step()
	}
	stream := get[device.Stream](t)(mumax.WrapStream(space, s.stream))
	defer stream.Close()
	wrap := func() *field.Field[float64] {
		return get[*field.Field[float64]](t)(field.WrapDevice[float64](domain, domain.Box(), device.Ptr(s.now), stream, nil, field.Halo(halo), field.Transfer(path)))
	}
	psi := wrap()
	dir := t.TempDir()
	saved := save(t, filepath.Join(dir, "device"), psi)

	want := s.cells() // only now does the host wait
	host := get[*field.Field[float64]](t)(field.WrapHost(domain, domain.Box(), want, field.Halo(halo)))
	if !slices.Equal(saved, save(t, filepath.Join(dir, "host"), host)) {
		t.Error("the field on the device is saved with other bytes than the one of the host")
	}
	must(t, psi.Free())

	// The solver goes on, and is put back.
	for range 5 {
		s.step()
	}
	before := s.cells()
	psi = wrap()
	c, err := comm.World()
	must(t, err)
	_, err = publish.LoadBundle(context.Background(), c, filepath.Join(dir, "device"), publish.Request{
		Fields: []field.Named{{ID: "psi", Field: psi}}, Method: "shift"})
	must(t, err)
	must(t, psi.Free())
	got := s.cells()
	for c := range host.Owned().Cells() {
		i := host.Index(c[0], c[1], c[2])
		before[i] = want[i]
	}
	if !slices.Equal(got, before) {
		t.Error("loading changes other cells than the owned ones, or gives them other values")
	}
}
