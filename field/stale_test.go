package field_test

import (
	"bytes"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A solver forgets to report what its kernels have written. What is read for a save is on
// the device all the same, unless the host's side is newer, or the mirror was asked for.
func TestCellsAreThoseOfTheDeviceThoughNobodyNotedAWrite(t *testing.T) {
	const device, mirror = 2, 1 // the seeds of what is there
	nothing := func(*testing.T, *field.Field[float64]) {}
	view := func(t *testing.T, f *field.Field[float64]) { get(f.View())(t) }
	save := func(t *testing.T, f *field.Field[float64]) {
		must(t, get(f.Source())(t).ReadCells(make([]byte, 8*f.Box().Cells()), 0))
	}
	rows := []struct {
		name   string
		path   field.Path
		before func(t *testing.T, f *field.Field[float64]) // between the two writes
		noted  bool                                        // the second
		want   float64
	}{
		{"no look at it", field.Automatic, nothing, false, device},
		{"a look, and the write is noted", field.Automatic, view, true, device},
		{"a look", field.Automatic, view, false, device},
		{"a look, directly", field.Direct, view, false, device},
		{"a look, and the mirror is asked for", field.Mirror, view, false, mirror},
		{"a look, the mirror is asked for, and the write is noted", field.Mirror, view, true, device},
		{"a save before", field.Automatic, save, false, device},
		{"a save before, and the mirror is asked for", field.Mirror, save, false, mirror},
		{"an upload before", field.Automatic, func(t *testing.T, f *field.Field[float64]) {
			get(f.MutableView())(t)
			must(t, f.Upload())
		}, false, device},
		{"a load before", field.Automatic, func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, 1), 0))
			must(t, f.Upload())
			get(f.View())(t)
		}, false, device},
		{"the host's side is newer", field.Automatic, func(t *testing.T, f *field.Field[float64]) { get(f.MutableView())(t) }, false, mirror},
		{"the host's side is newer, directly", field.Direct, func(t *testing.T, f *field.Field[float64]) { get(f.MutableView())(t) }, false, mirror},
	}
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		for _, tt := range rows {
			for where, make := range storages {
				t.Run(tt.name+", "+where, func(t *testing.T) {
					f, end := make(t, space, field.Halo(1), field.Transfer(tt.path))
					put(t, f, mirror)
					tt.before(t, f)
					state := f.Residency()
					kernel(t, f, device)
					if tt.noted {
						must(t, f.NoteDeviceWrite())
						state = field.DeviceNewer
					}
					for what, read := range passes {
						if got := read(t, f); !bytes.Equal(got, onDisk(f, tt.want)) {
							t.Errorf("%s takes other cells", what)
						}
					}
					if tt.path != field.Mirror && f.Residency() != state {
						t.Errorf("%v afterwards, %v before", f.Residency(), state)
					}
					must(t, end())
				})
			}
		}
		must(t, space.Close())
	})
}

// storages are a field's own, and one of the solver.
var storages = map[string]func(t *testing.T, space device.Space, opts ...field.Option) (*field.Field[float64], func() error){
	"its own": func(t *testing.T, space device.Space, opts ...field.Option) (*field.Field[float64], func() error) {
		f := get(field.New[float64](domain(7, 6, 5), domain(7, 6, 5).Box(), append(opts, field.In(space))...))(t)
		return f, f.Free
	},
	"the solver's": func(t *testing.T, space device.Space, opts ...field.Option) (*field.Field[float64], func() error) {
		stream, mem := get(space.NewStream())(t), get(space.Allocate(8*9*8*7))(t)
		f := get(field.WrapDevice[float64](domain(7, 6, 5), domain(7, 6, 5).Box(), mem.Ptr(), stream, nil, opts...))(t)
		return f, func() error {
			free(t, f.Free, mem.Free, stream.Close)
			return nil
		}
	},
}

// passes are what reads all cells of a field.
var passes = map[string]func(t *testing.T, f *field.Field[float64]) []byte{
	"a source": func(t *testing.T, f *field.Field[float64]) []byte {
		b := make([]byte, 8*f.Box().Cells())
		must(t, get(f.Source())(t).ReadCells(b, 0))
		return b
	},
	"a source in rows": func(t *testing.T, f *field.Field[float64]) []byte {
		b := make([]byte, 8*f.Box().Cells())
		n := f.Box().Size[0]
		must(t, get(f.Source())(t).(pack.RowSource).ReadRows(b, 0, n, len(b)/8/n, 8*n))
		return b
	},
	"a loan": func(t *testing.T, f *field.Field[float64]) []byte {
		s := get(f.Source())(t).(pack.LendSource)
		b := get(s.LendCells(0, 8*int(f.Box().Cells())))(t)
		if b == nil { // by way of the mirror
			b = make([]byte, 8*f.Box().Cells())
			must(t, s.ReadCells(b, 0))
			return b
		}
		defer s.ReturnCells(b)
		return bytes.Clone(b)
	},
	"a capture": func(t *testing.T, f *field.Field[float64]) []byte {
		return get(field.Capture(field.Named{ID: "f", Field: f}))(t).Fields[0].Cells
	},
}

// kernel writes the numbers of a seed to the owned cells on the device, and reports nothing.
func kernel(t *testing.T, f *field.Field[float64], seed uint64) {
	t.Helper()
	must(t, f.Stream().CopyToDevice(f.DevicePtr(), withOwned(t, f, onDevicePadded(t, f), seed)))
	must(t, f.Stream().Synchronize())
}

// A source that stays between saves doesn't hand out what it had packed ahead for the one
// before, whatever that one has left.
func TestAPassThatBeginsAnewPacksAnew(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		f := get(field.New[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), field.Halo(1), field.In(space)))(t)
		put(t, f, 1)
		s := get(f.Source())(t)
		b := make([]byte, 8*1200)
		seed := uint64(1)
		for name, first := range map[string][2]int64{
			"from the first cell on":           {0, 0},
			"at a cell that was packed before": {700, 650},
		} {
			for _, n := range []int64{1, 100, 600} { // less than a chunk, and more
				must(t, s.ReadCells(b[:8*n], first[0]))
				seed++
				kernel(t, f, seed)
				must(t, s.ReadCells(b, first[1]))
				if want := onDisk(f, float64(seed))[8*first[1]:]; !bytes.Equal(b, want[:len(b)]) {
					t.Errorf("%s, %d cells before: cells from before the kernel", name, n)
				}
			}
		}
		free(t, f.Free, space.Close)
	})
}
