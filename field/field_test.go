package field_test

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

func TestNewRejects(t *testing.T) {
	whole := domain(10, 6, 7)
	ok := box(2, 5, 0, 6, 3, 7)
	dev := openDevice(t)
	stream := get(dev.NewStream())(t)
	other := openDevice(t, emulated.Ordinal(1))
	again := openDevice(t)
	tests := []struct {
		name   string
		domain grid.Domain
		box    grid.Box
		opts   []field.Option
		want   []string
	}{
		{"nothing that is right", whole, ok, []field.Option{field.Halo(2), field.IterationHalo(2)}, nil},
		{"a halo wider than the box is right", whole, ok, []field.Option{field.Halo(20)}, nil},
		{"an invalid domain", domain(0, 6, 7), ok, nil, []string{"new field", "size along x is 0"}},
		{"a box that reaches outside", whole, box(2, 5, 0, 7, 3, 7), nil, []string{"box [2:5, 0:7, 3:7]", "not within the domain [0:10, 0:6, 0:7]"}},
		{"a box below 0", whole, box(-1, 5, 0, 6, 3, 7), nil, []string{"box [-1:5, 0:6, 3:7]", "not within"}},
		{"a box of negative size", whole, box(5, 2, 0, 6, 3, 7), nil, []string{"size along x is -3"}},
		{"a negative halo", whole, ok, []field.Option{field.HaloXYZ(1, -1, 0)}, []string{"halo along y is -1"}},
		{"a negative iteration halo", whole, ok, []field.Option{field.Halo(1), field.IterationHaloXYZ(0, 0, -2)}, []string{"iteration halo along z is -2"}},
		{"an iteration halo wider than the storage's", whole, ok, []field.Option{field.HaloXYZ(2, 2, 1), field.IterationHalo(2)}, []string{"iteration halo 2 along z is wider than the storage's halo 1"}},
		{"the order of the options doesn't matter", whole, ok, []field.Option{field.IterationHalo(2), field.Halo(1)}, []string{"iteration halo 2 along x"}},
		{"a storage that no memory holds", whole, ok, []field.Option{field.Halo(math.MaxInt / 4)}, []string{"padded cells"}},
		{"no space", whole, ok, []field.Option{field.In(nil)}, []string{"space is nil"}},
		{"no stream", whole, ok, []field.Option{field.OnStream(nil)}, []string{"stream is nil"}},
		{"an unknown path", whole, ok, []field.Option{field.Transfer(field.Mirror + 1)}, []string{"Path(3) is not known"}},
		{"no logger", whole, ok, []field.Option{field.Logger(nil)}, []string{"logger is nil"}},
		{"a space that can't be compared", whole, ok, []field.Option{field.In(struct {
			device.Space
			_ []int
		}{Space: dev})}, []string{"space emulated:0 is a struct", "comparable"}},
		{"a stream of another space", whole, ok, []field.Option{field.In(other), field.OnStream(stream)}, []string{"stream belongs to emulated:0, not to emulated:1"}},
		{"a stream of another space of the same name", whole, ok, []field.Option{field.In(again), field.OnStream(stream)}, []string{"stream belongs to another space of emulated:0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := field.New[float64](tt.domain, tt.box, tt.opts...)
			checkText(t, err, tt.want...)
			if (f != nil) != (err == nil) {
				t.Errorf("field %v, error %v", f, err)
			}
			_, err = field.WrapHost[float64](tt.domain, tt.box, nil, tt.opts...)
			if tt.want != nil {
				if err == nil {
					t.Error("WrapHost takes it")
				}
			} else if _, ok := errors.AsType[*field.LengthError](err); !ok {
				t.Errorf("WrapHost of nothing: error %v", err)
			}
		})
	}
	free(t, stream.Close, dev.Close, other.Close, again.Close)
}

func TestOutsideErrorIsTyped(t *testing.T) {
	_, err := field.New[float32](domain(4, 4, 4), box(0, 5, 0, 4, 0, 4))
	e, ok := errors.AsType[*field.OutsideError](err)
	if !ok || e.Box != box(0, 5, 0, 4, 0, 4) || e.Domain != box(0, 4, 0, 4, 0, 4) {
		t.Errorf("error %v", err)
	}
}

func TestNewFieldIsZero(t *testing.T) {
	dev := openDevice(t)
	t.Run("float64", func(t *testing.T) { testZero[float64](t, field.Float64, dev) })
	t.Run("float32", func(t *testing.T) { testZero[float32](t, field.Float32, dev) })
	t.Run("complex128", func(t *testing.T) { testZero[complex128](t, field.Complex128, dev) })
	must(t, dev.Close())
}

func testZero[T pack.Number](t *testing.T, kind field.Kind, dev *emulated.Device) {
	for _, opts := range [][]field.Option{nil, {field.In(dev)}} {
		b := box(2, 5, 0, 6, 3, 7)
		f := get(field.New[T](domain(10, 6, 7), b, append(opts, field.HaloXYZ(1, 2, 3))...))(t)
		if f.Kind() != kind || f.Domain() != domain(10, 6, 7) || f.Box() != b || f.Halo() != [3]int{1, 2, 3} || f.Residency() != field.InSync {
			t.Errorf("kind %v, domain %v, box %v, halo %v, %v", f.Kind(), f.Domain(), f.Box(), f.Halo(), f.Residency())
		}
		check := func(when string) {
			data := get(f.View())(t)
			if len(data) != 5*10*10 {
				t.Errorf("%s: %d cells, want 500", when, len(data))
			}
			for i, v := range data {
				if v != 0 {
					t.Fatalf("%s: cell %d is %v", when, i, v)
				}
			}
		}
		check("at first")
		must(t, f.NoteDeviceWrite())
		check("from the device")
		must(t, f.Free())
	}
}

func TestEmptyBoxHasNoStorage(t *testing.T) {
	dev := openDevice(t)
	stream := get(dev.NewStream())(t)
	before := dev.Transfers()
	for name, b := range map[string]grid.Box{"no planes": box(0, 10, 0, 6, 7, 7), "zero box": {}, "an empty box far outside": box(99, 99, 0, 1, 0, 1)} {
		for where, build := range map[string]func() (*field.Field[float64], error){
			"host": func() (*field.Field[float64], error) { return field.New[float64](domain(10, 6, 7), b, field.Halo(2)) },
			"device": func() (*field.Field[float64], error) {
				return field.New[float64](domain(10, 6, 7), b, field.Halo(2), field.In(dev))
			},
			"wrapped host": func() (*field.Field[float64], error) {
				return field.WrapHost[float64](domain(10, 6, 7), b, nil, field.Halo(2))
			},
			"wrapped device": func() (*field.Field[float64], error) {
				return field.WrapDevice[float64](domain(10, 6, 7), b, 0, stream, nil, field.Halo(2))
			},
			"wrapped memory of any length": func() (*field.Field[float64], error) {
				return field.WrapHost(domain(10, 6, 7), b, []float64{1, 2}, field.Halo(2))
			},
		} {
			t.Run(name+", "+where, func(t *testing.T) {
				f := get(build())(t)
				if got := get(f.MutableView())(t); len(got) != 0 || f.Layout().PaddedCells() != 0 {
					t.Errorf("%d cells, layout %+v", len(got), f.Layout())
				}
				for range f.Padded().Cells() {
					t.Error("there is a cell")
				}
				for range f.Padded().Rows() {
					t.Error("there is a row")
				}
				must(t, f.NoteDeviceWrite())
				src, sink := get(f.Source())(t), get(f.Sink())(t)
				must(t, src.ReadCells(nil, 0))
				must(t, sink.CheckCells(nil, 0))
				must(t, sink.WriteCells(nil, 0))
				if err := sink.WriteCells(make([]byte, 8), 0); err == nil {
					t.Error("a cell was written")
				}
				must(t, f.Upload())
				if f.Residency() != field.InSync || f.Transfers() != (field.Transfers{}) || f.DevicePtr() != 0 {
					t.Errorf("%v, %+v, pointer %#x", f.Residency(), f.Transfers(), uintptr(f.DevicePtr()))
				}
				state := get(field.Capture(field.Named{ID: "psi", Field: f}))(t)
				must(t, state.Restore(field.Named{ID: "psi", Field: f}))
				must(t, f.Free())
			})
		}
	}
	if dev.Transfers() != before {
		t.Errorf("something was copied: %+v", dev.Transfers())
	}
	free(t, stream.Close, dev.Close)
}

func TestWrapHostUsesTheCallersMemory(t *testing.T) {
	data := make([]float64, 5*6)
	f := get(field.WrapHost(domain(3, 4, 1), box(0, 3, 0, 4, 0, 1), data, field.HaloXYZ(1, 1, 0)))(t)
	setOwned(t, f, 0)
	if want := number([3]int{2, 1, 0}); data[f.Index(2, 1, 0)] != want {
		t.Errorf("the caller's cell is %v, want %v", data[f.Index(2, 1, 0)], want)
	}
	must(t, f.Free())
	if data[f.Index(2, 1, 0)] == 0 {
		t.Error("Free changed the caller's memory")
	}
}

func TestWrapRejectsLengths(t *testing.T) {
	dev := openDevice(t)
	stream := get(dev.NewStream())(t)
	mem := get(dev.Allocate(6 * 6 * 8))(t)
	d, b := domain(4, 4, 1), box(0, 4, 0, 4, 0, 1)
	halo := field.HaloXYZ(1, 1, 0)
	for _, n := range []int{0, 16, 35, 37} {
		check := func(what string, err error) {
			t.Helper()
			e, ok := errors.AsType[*field.LengthError](err)
			if !ok || *e != (field.LengthError{What: what, Got: int64(n), Want: 36, Padded: [3]int{6, 6, 1}}) {
				t.Errorf("%d cells: error %v", n, err)
				return
			}
			checkText(t, err, what+" has ", " want 36 (padded size 6 x 6 x 1)")
		}
		_, err := field.WrapHost(d, b, make([]float64, n), halo)
		check("data", err)
		_, err = field.WrapDevice(d, b, mem.Ptr(), stream, make([]float64, n), halo)
		check("mirror", err)
	}

	for _, tt := range []struct {
		name   string
		ptr    device.Ptr
		stream device.Stream
		want   error
		text   string
	}{
		{"too little device memory", mem.Ptr().Add(8), stream, device.ErrAddress, "past the end"},
		{"a host address", device.Ptr(unsafe.Pointer(&d)), stream, device.ErrAddress, "not allocated"},
		{"no address", 0, stream, device.ErrAddress, "not allocated"},
		{"no stream", mem.Ptr(), nil, nil, "stream is nil"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := field.WrapDevice[float64](d, b, tt.ptr, tt.stream, nil, halo)
			checkText(t, err, "wrap device memory", tt.text)
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %v isn't %q", err, tt.want)
			}
		})
	}
	_, err := field.WrapHost(d, b, make([]float64, 36), halo, field.In(dev))
	checkText(t, err, "use WrapDevice")
	free(t, stream.Close, mem.Free, dev.Close)
}

func TestUseAfterFree(t *testing.T) {
	dev := openDevice(t)
	for name, opts := range map[string][]field.Option{"host": nil, "device": {field.In(dev)}} {
		t.Run(name, func(t *testing.T) {
			f := get(field.New[float64](domain(4, 4, 4), domain(4, 4, 4).Box(), opts...))(t)
			src, sink := get(f.Source())(t), get(f.Sink())(t)
			must(t, f.Free())
			_, viewErr := f.View()
			_, mutableErr := f.MutableView()
			_, sourceErr := f.Source()
			_, sinkErr := f.Sink()
			_, captureErr := field.Capture(field.Named{ID: "psi", Field: f})
			for what, err := range map[string]error{
				"view": viewErr, "mutable view": mutableErr, "source": sourceErr, "sink": sinkErr, "capture": captureErr,
				"note device write": f.NoteDeviceWrite(), "upload": f.Upload(), "second free": f.Free(),
				"read": src.ReadCells(make([]byte, 8), 0), "check": sink.CheckCells(make([]byte, 8), 0), "write": sink.WriteCells(make([]byte, 8), 0),
			} {
				if !errors.Is(err, field.ErrFreed) {
					t.Errorf("%s: error %v, want that it is freed", what, err)
				}
			}
			if f.DevicePtr() != 0 || f.Stream() != nil || f.Residency() != field.InSync || f.Transfers() != (field.Transfers{}) {
				t.Error("a freed field is still on the device")
			}
		})
	}
	must(t, dev.Close())
}

func TestKind(t *testing.T) {
	for _, tt := range []struct {
		kind field.Kind
		text string
		disk int
	}{{field.Float64, "float64", 8}, {field.Float32, "float32", 8}, {field.Complex128, "complex128", 16}, {0, "Kind(0)", 8}} {
		if tt.kind.String() != tt.text || tt.kind.DiskSize() != tt.disk {
			t.Errorf("%s has %d bytes on disk, want %s and %d", tt.kind, tt.kind.DiskSize(), tt.text, tt.disk)
		}
	}
}

func TestResidencyString(t *testing.T) {
	for r, want := range map[field.Residency]string{field.InSync: "in sync", field.HostNewer: "host newer", field.DeviceNewer: "device newer", 9: "Residency(9)"} {
		if r.String() != want {
			t.Errorf("%q, want %q", r.String(), want)
		}
	}
}
