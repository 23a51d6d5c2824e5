package field_test

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/pack"
)

func named(id string, f field.Any) field.Named { return field.Named{ID: id, Field: f} }

// Every kind of field, on host and device, gets its owned cells back, and
// ghost cells keep what they have now.
func TestRestoreGivesOwnedCellsBack(t *testing.T) {
	const cells = 4 * 5 * 2
	for path, moved := range map[field.Path]field.Transfers{
		field.Mirror: {Refreshes: 1},
		field.Direct: {ReadCells: cells, ReadBytes: 8 * cells},
	} {
		t.Run(path.String(), func(t *testing.T) { testRestore(t, path, moved) })
	}
}

func testRestore(t *testing.T, path field.Path, moved field.Transfers) {
	dev := openDevice(t)
	d, b := domain(6, 5, 4), box(1, 5, 0, 5, 2, 4)
	psi := get(field.New[float64](d, b, field.Halo(2)))(t)
	phi := get(field.New[float32](d, b, field.Halo(1)))(t)
	hat := get(field.New[complex128](d, b))(t)
	gpu := get(field.New[float64](d, b, field.Halo(1), field.In(dev), field.Transfer(path)))(t)
	all := []field.Named{named("psi", psi), named("phi", phi), named("hat", hat), named("gpu", gpu)}
	set := func(shift float64) {
		setOwned(t, psi, shift)
		setOwned(t, phi, shift)
		setOwned(t, hat, shift)
		setOwned(t, gpu, shift)
		must(t, gpu.Upload())
	}
	set(0)
	must(t, gpu.NoteDeviceWrite())
	before := gpu.Transfers()
	state := get(field.Capture(all...))(t)
	moved.Uploads = before.Uploads
	if got := gpu.Transfers(); got != moved {
		t.Errorf("capture: %+v, want %+v", got, moved)
	}
	if want := map[field.Path]field.Residency{field.Mirror: field.InSync, field.Direct: field.DeviceNewer}[path]; gpu.Residency() != want {
		t.Errorf("capture: %v, want %v", gpu.Residency(), want)
	}

	set(64)
	get(psi.MutableView())(t)[0] = 77
	ghost := ghosts(t, psi)
	// The order of the fields is free.
	slices.Reverse(all)
	must(t, state.Restore(all...))
	checkOwned(t, psi, 0)
	checkOwned(t, phi, 0)
	checkOwned(t, hat, 0)
	checkOwned(t, gpu, 0)
	if !bytes.Equal(ghosts(t, psi), ghost) {
		t.Error("ghost cells have changed")
	}
	if want := map[field.Path]field.Residency{field.Mirror: field.HostNewer, field.Direct: field.InSync}[path]; gpu.Residency() != want {
		t.Errorf("%v after restore and a view, want %v", gpu.Residency(), want)
	}
	must(t, gpu.Upload())
	must(t, gpu.NoteDeviceWrite())
	checkOwned(t, gpu, 0)

	// A state is a copy: it can be restored again.
	set(128)
	must(t, state.Restore(all...))
	checkOwned(t, psi, 0)
	checkOwned(t, gpu, 0)
	free(t, gpu.Free, dev.Close)
}

// Another field of the same layout takes the cells, whatever its halo.
func TestRestoreToAnotherField(t *testing.T) {
	d, b := domain(6, 5, 4), box(1, 5, 0, 5, 2, 4)
	from := get(field.New[float64](d, b, field.Halo(2)))(t)
	to := get(field.New[float64](d, b, field.HaloXYZ(0, 1, 3)))(t)
	setOwned(t, from, 0)
	setOwned(t, to, 64)
	must(t, get(field.Capture(named("psi", from)))(t).Restore(named("psi", to)))
	checkOwned(t, to, 0)
}

// Large fields are read by several goroutines.
func TestCaptureOfLargeFieldsIsExact(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	d := domain(129, 121, 90)
	b := box(1, 128, 0, 120, 2, 74)
	psi := get(field.New[float64](d, b, field.Halo(1)))(t)
	phi := get(field.New[float32](d, b, field.HaloXYZ(0, 0, 2)))(t)
	hat := get(field.New[complex128](d, box(0, 20, 0, 20, 0, 20), field.Halo(2)))(t)
	small := get(field.New[float64](d, box(3, 9, 3, 9, 3, 9), field.Halo(1)))(t)
	fields := []field.Named{named("psi", psi), named("phi", phi), named("hat", hat), named("small", small)}
	state := get(field.Capture(fields...))(t)
	setOwned(t, psi, 64)
	setOwned(t, phi, 64)
	setOwned(t, hat, 64)
	setOwned(t, small, 64)
	must(t, state.Recapture(fields...))
	for i, want := range [][]byte{onDisk(psi, 64), onDisk(phi, 64), onDisk(hat, 64), onDisk(small, 64)} {
		if !bytes.Equal(state.Fields[i].Cells, want) {
			t.Errorf("%s: other cells", fields[i].ID)
		}
	}
}

// faultyField has a source that does what it is told to.
type faultyField struct {
	field.Any
	read func() error
}

func (f faultyField) Source() (pack.Source, error) { return f, nil }

func (f faultyField) ReadCells(dst []byte, first int64) error { return f.read() }

func TestCaptureReportsTheFirstFieldThatFails(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for name, size := range map[string]int{"small": 2, "large": 128} {
		t.Run(name, func(t *testing.T) {
			d := domain(size, size, size)
			f := get(field.New[float64](d, d.Box()))(t)
			good := func(id string) field.Named { return named(id, f) }
			bad := func(id string, read func() error) field.Named { return named(id, faultyField{f, read}) }
			other := errors.New("another one")
			_, err := field.Capture(good("a"), bad("b", func() error { return errFault }), good("c"), bad("d", func() error { return other }))
			if !errors.Is(err, errFault) || errors.Is(err, other) {
				t.Errorf("error %v", err)
			}
			checkText(t, err, `capture field "b": `)
		})
	}
	t.Run("a panic among others", func(t *testing.T) {
		d := domain(128, 128, 128)
		f := get(field.New[float64](d, d.Box()))(t)
		_, err := field.Capture(named("a", f), named("b", faultyField{f, func() error { panic("out of order") }}))
		checkText(t, err, `capture field "b": panic: out of order`)
	})
}

func TestRecaptureUsesItsMemoryAgain(t *testing.T) {
	d := domain(6, 5, 4)
	f := get(field.New[float64](d, d.Box()))(t)
	g := get(field.New[float64](d, box(0, 6, 0, 5, 0, 8/2)))(t)
	setOwned(t, f, 0)
	setOwned(t, g, 0)
	state := get(field.Capture(named("f", f), named("g", g)))(t)
	old := &state.Fields[0].Cells[0]
	setOwned(t, f, 64)
	must(t, state.Recapture(named("f", f)))
	if len(state.Fields) != 1 || &state.Fields[0].Cells[0] != old {
		t.Error("the memory isn't used again")
	}
	setOwned(t, f, 128)
	must(t, state.Restore(named("f", f)))
	checkOwned(t, f, 64)
}

func TestRestoreRejectsBeforeAnythingChanges(t *testing.T) {
	d, b := domain(6, 5, 4), box(1, 5, 0, 5, 2, 4)
	other := d
	other.Periodic[0] = true
	shifted := b
	shifted.Low[2] = 1
	make64 := func() *field.Field[float64] { return get(field.New[float64](d, b, field.Halo(1)))(t) }
	psi, phi := make64(), make64()
	small := get(field.New[float32](d, b))(t)
	elsewhere := get(field.New[float64](d, shifted))(t)
	ring := get(field.New[float64](other, b))(t)

	tests := []struct {
		name   string
		fields []field.Named
		change func(s *field.State)
		want   any // the error, compared by its text and type
		text   []string
	}{
		{"a missing field", []field.Named{named("psi", psi)}, nil, &field.NameError{}, []string{`not given: ["phi"]`}},
		{"no fields", nil, nil, &field.NameError{}, []string{`not given: ["psi" "phi"]`}},
		{"a field that wasn't captured", []field.Named{named("psi", psi), named("phi", phi), named("chi", phi)}, nil, &field.NameError{}, []string{`not captured: ["chi"]`}},
		{"another name", []field.Named{named("psi", psi), named("chi", phi)}, nil, &field.NameError{}, []string{`not given: ["phi"]; not captured: ["chi"]`}},
		{"a name twice", []field.Named{named("psi", psi), named("phi", phi), named("psi", phi)}, nil, &field.NameError{}, []string{`given twice: ["psi"]`}},
		{"no field", []field.Named{named("psi", psi), named("phi", nil)}, nil, nil, []string{`field "phi"`, "nil"}},
		{"another kind", []field.Named{named("psi", psi), named("phi", small)}, nil, &field.LayoutError{}, []string{`field "phi": kind is float32, captured was float64`}},
		{"another box of the same size", []field.Named{named("psi", psi), named("phi", elsewhere)}, nil, &field.LayoutError{}, []string{`field "phi": box is [1:5, 0:5, 1:3], captured was [1:5, 0:5, 2:4]`}},
		{"another domain", []field.Named{named("psi", psi), named("phi", ring)}, nil, &field.LayoutError{}, []string{`field "phi": domain is`}},
		{"a truncated capture", []field.Named{named("psi", psi), named("phi", phi)}, func(s *field.State) {
			s.Fields[1].Cells = s.Fields[1].Cells[:100]
		}, &field.TruncatedError{}, []string{`field "phi": capture is truncated: it has 100 bytes, want 320`}},
		{"an empty capture", []field.Named{named("psi", psi), named("phi", phi)}, func(s *field.State) {
			s.Fields[1].Cells = nil
		}, &field.TruncatedError{}, []string{`it has 0 bytes, want 320`}},
		{"too long a capture", []field.Named{named("psi", psi), named("phi", phi)}, func(s *field.State) {
			s.Fields[1].Cells = append(s.Fields[1].Cells, 0)
		}, &field.TruncatedError{}, []string{`it has 321 bytes, want 320`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			setOwned(t, psi, 0)
			setOwned(t, phi, 0)
			state := get(field.Capture(named("psi", psi), named("phi", phi)))(t)
			if tt.change != nil {
				tt.change(state)
			}
			setOwned(t, psi, 64)
			setOwned(t, phi, 64)
			err := state.Restore(tt.fields...)
			checkText(t, err, append(tt.text, "restore: ")...)
			ok := true
			switch tt.want.(type) {
			case *field.NameError:
				_, ok = errors.AsType[*field.NameError](err)
			case *field.LayoutError:
				_, ok = errors.AsType[*field.LayoutError](err)
			case *field.TruncatedError:
				_, ok = errors.AsType[*field.TruncatedError](err)
			}
			if !ok {
				t.Errorf("error of another type: %v", err)
			}
			checkOwned(t, psi, 64)
			checkOwned(t, phi, 64)
		})
	}

	t.Run("a freed field", func(t *testing.T) {
		gone := make64()
		setOwned(t, psi, 0)
		state := get(field.Capture(named("psi", psi), named("gone", gone)))(t)
		setOwned(t, psi, 64)
		must(t, gone.Free())
		if err := state.Restore(named("psi", psi), named("gone", gone)); !errors.Is(err, field.ErrFreed) {
			t.Errorf("error %v", err)
		}
		checkOwned(t, psi, 64)
	})
	t.Run("cells that the field can't hold", func(t *testing.T) {
		setOwned(t, psi, 0)
		setOwned(t, small, 0)
		state := get(field.Capture(named("psi", psi), named("small", small)))(t)
		copy(state.Fields[1].Cells[8*5:], pack.Bytes([]float64{0.1}))
		setOwned(t, psi, 64)
		err := state.Restore(named("psi", psi), named("small", small))
		if _, ok := errors.AsType[*pack.NotFloat32Error](err); !ok {
			t.Errorf("error %v", err)
		}
		checkText(t, err, `restore: field "small"`)
		checkOwned(t, psi, 64)
	})
	t.Run("a capture with a name twice", func(t *testing.T) {
		_, err := field.Capture(named("psi", psi), named("psi", phi))
		if _, ok := errors.AsType[*field.NameError](err); !ok {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a capture that failed", func(t *testing.T) {
		gone := make64()
		state := get(field.Capture(named("psi", psi)))(t)
		must(t, gone.Free())
		err := state.Recapture(named("psi", psi), named("gone", gone))
		if !errors.Is(err, field.ErrFreed) {
			t.Errorf("error %v", err)
		}
		checkText(t, err, `capture field "gone"`)
		if err := state.Restore(named("psi", psi)); err == nil {
			t.Error("half a capture was restored")
		}
	})
}
