package field_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/pack"
	"pgregory.net/rapid"
)

// onDisk returns the bytes of the owned cells, by plain arithmetic.
func onDisk[T pack.Number](f *field.Field[T], shift float64) []byte {
	var b []byte
	for c := range f.Owned().Cells() {
		v := number(f.Global(c[0], c[1], c[2])) + shift
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		if f.Kind() == field.Complex128 {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(-v))
		}
	}
	return b
}

// ghosts returns the bits of all cells that aren't owned.
func ghosts[T pack.Number](t tb, f *field.Field[T]) []byte {
	data := bytes.Clone(pack.Bytes(get(f.View())(t)))
	size := len(data) / max(1, int(f.Layout().PaddedCells()))
	for c := range f.Owned().Cells() {
		at := f.Index(c[0], c[1], c[2]) * size
		clear(data[at : at+size])
	}
	return data
}

var paths = []field.Path{field.Automatic, field.Direct, field.Mirror}

// For random shapes, on host and device: the source gives the owned cells in
// any pieces, the sink takes them in any pieces, and ghost cells keep their
// bits.
func TestSourceAndSink(t *testing.T) {
	dev := openDevice(t)
	t.Run("float64", func(t *testing.T) { testSourceAndSink[float64](t, dev) })
	t.Run("float32", func(t *testing.T) { testSourceAndSink[float32](t, dev) })
	t.Run("complex128", func(t *testing.T) { testSourceAndSink[complex128](t, dev) })
	must(t, dev.Close())
}

func testSourceAndSink[T pack.Number](t *testing.T, dev *emulated.Device) {
	rapid.Check(t, func(t *rapid.T) {
		s := genShape().Draw(t, "shape")
		opts := s.options()
		if rapid.Bool().Draw(t, "on the device") {
			opts = append(opts, field.In(dev), field.Transfer(rapid.SampledFrom(paths).Draw(t, "path")))
		}
		f := get(field.New[T](s.domain, s.box, opts...))(t)
		t.Cleanup(func() { must(t, f.Free()) }) // also of runs that end early
		setOwned(t, f, 0)
		must(t, f.Upload())
		must(t, f.NoteDeviceWrite())

		size, cells := f.Kind().DiskSize(), int(s.box.Cells())
		pieces := func(do func(first, last int)) {
			for first := 0; first < cells; {
				last := rapid.IntRange(first+1, cells).Draw(t, "piece")
				do(first, last)
				first = last
			}
		}
		got := make([]byte, cells*size)
		src := get(f.Source())(t)
		pieces(func(first, last int) {
			must(t, src.ReadCells(got[first*size:last*size], int64(first)))
		})
		if !bytes.Equal(got, onDisk(f, 0)) {
			t.Fatal("source gives other cells")
		}

		sum := pack.NewChecksum(int64(len(got) + 3))
		pieces(func(first, last int) {
			must(t, src.(pack.SumSource).ReadSum(got[first*size:last*size], int64(first), sum, int64(first*size+3)))
		})
		if !bytes.Equal(got, onDisk(f, 0)) {
			t.Fatal("source gives other cells while it sums up")
		}
		checkSum(t, sum, got)

		before := ghosts(t, f)
		// The sink has to bring the mirror up to date.
		must(t, f.NoteDeviceWrite())
		want := onDisk(f, 64)
		sink := get(f.Sink())(t)
		pieces(func(first, last int) {
			must(t, sink.CheckCells(want[first*size:last*size], int64(first)))
		})
		checkOwned(t, f, 0)
		pieces(func(first, last int) {
			must(t, sink.WriteCells(want[first*size:last*size], int64(first)))
		})
		checkOwned(t, f, 64)
		if !bytes.Equal(ghosts(t, f), before) {
			t.Fatal("ghost cells have changed")
		}
		must(t, f.Upload())
		must(t, f.NoteDeviceWrite())
		checkOwned(t, f, 64)
		if !bytes.Equal(ghosts(t, f), before) {
			t.Fatal("ghost cells on the device have changed")
		}

		must(t, f.NoteDeviceWrite())
		sum.Reset(int64(len(got) + 3))
		pieces(func(first, last int) {
			must(t, sink.(pack.SumSink).WriteSum(got[first*size:last*size], int64(first), sum, int64(first*size+3)))
		})
		checkSum(t, sum, got)
		checkOwned(t, f, 0)
		if !bytes.Equal(ghosts(t, f), before) {
			t.Fatal("ghost cells have changed while the sink summed up")
		}
		must(t, f.Upload())
		must(t, f.NoteDeviceWrite())
		setOwned(t, f, 64)
		must(t, f.Upload())

		if cells == 0 {
			return
		}
		// The brick's rows, as a window of the file has them.
		n, rows := s.box.Size[0], cells/s.box.Size[0]
		row := size * (n + rapid.IntRange(0, 3).Draw(t, "gap"))
		window := make([]byte, rows*row)
		apart := bytes.Clone(window)
		for i, want := 0, onDisk(f, 64); i < rows; i++ {
			copy(apart[i*row:], want[i*n*size:][:n*size])
		}
		must(t, src.(pack.RowSource).ReadRows(window, 0, n, rows, row))
		if !bytes.Equal(window, apart) {
			t.Fatal("source gives other rows")
		}
		for i, want := 0, onDisk(f, 0); i < rows; i++ {
			copy(apart[i*row:], want[i*n*size:][:n*size])
		}
		must(t, f.NoteDeviceWrite())
		must(t, sink.(pack.RowSink).WriteRows(apart, 0, n, rows, row))
		checkOwned(t, f, 0)
		if !bytes.Equal(ghosts(t, f), before) {
			t.Fatal("ghost cells have changed with the rows")
		}
		must(t, f.Upload())
		must(t, f.NoteDeviceWrite())
		checkOwned(t, f, 0)
	})
}

// checkSum checks the sum of three zero bytes and the given ones.
func checkSum(t tb, sum *pack.Checksum, b []byte) {
	t.Helper()
	file := append(make([]byte, 3), b...)
	if got := pack.Finish(sum.Part(), int64(len(file))); got != pack.Sum(file) || sum.Err() != nil {
		t.Fatalf("checksum %016x, want %016x, error %v", got, pack.Sum(file), sum.Err())
	}
}

// Moving cells costs no memory, and wrong rows are refused.
func TestRowsOfSourceAndSink(t *testing.T) {
	t.Run("float64", testRowsOfSourceAndSink[float64])
	t.Run("float32", testRowsOfSourceAndSink[float32])
	t.Run("complex128", testRowsOfSourceAndSink[complex128])
}

func testRowsOfSourceAndSink[T pack.Number](t *testing.T) {
	f := get(field.New[T](domain(4, 3, 2), domain(4, 3, 2).Box(), field.Halo(1)))(t)
	setOwned(t, f, 0)
	src, sink := get(f.Source())(t).(pack.RowSource), get(f.Sink())(t).(pack.RowSink)
	size := f.Kind().DiskSize()
	b, sum := make([]byte, 6*6*size), pack.NewChecksum(int64(24*size))
	for what, move := range map[string]func() error{
		"read":       func() error { return src.ReadCells(b[:24*size], 0) },
		"read rows":  func() error { return src.ReadRows(b, 0, 4, 6, 6*size) },
		"write":      func() error { return sink.WriteCells(b[:24*size], 0) },
		"write rows": func() error { return sink.WriteRows(b, 0, 4, 6, 6*size) },
		"read sum":   func() error { return src.(pack.SumSource).ReadSum(b[:24*size], 0, sum, 0) },
		"write sum":  func() error { return sink.(pack.SumSink).WriteSum(b[:24*size], 0, sum, 0) },
		"check":      func() error { return sink.CheckCells(b[:24*size], 0) },
	} {
		must(t, move())
		if n := testing.AllocsPerRun(20, func() { move() }); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	setOwned(t, f, 0)
	clear(b)
	for name, rows := range map[string]struct{ n, rows, row int }{
		"a row too many": {4, 7, 4 * size}, "overlapping rows": {4, 6, 3 * size}, "a part of a cell": {4, 6, 4*size + 4}, "far apart": {4, 6, 8 * size},
	} {
		for what, err := range map[string]error{
			"read field: pack":    src.ReadRows(b, 0, rows.n, rows.rows, rows.row),
			"write field: unpack": sink.WriteRows(b, 0, rows.n, rows.rows, rows.row),
		} {
			if f.Kind() == field.Float32 {
				what = map[string]string{"read field: pack": "read field: widen", "write field: unpack": "write field: narrow"}[what]
			}
			if err == nil {
				t.Errorf("%s: %s: no error", name, what)
				continue
			}
			checkText(t, err, what+" cells: ")
		}
	}
	checkOwned(t, f, 0)
	must(t, f.Free())
	for what, err := range map[string]error{
		"read": src.ReadRows(b, 0, 4, 6, 6*size), "write": sink.WriteRows(b, 0, 4, 6, 6*size),
		"read sum": src.(pack.SumSource).ReadSum(b[:24*size], 0, sum, 0), "write sum": sink.(pack.SumSink).WriteSum(b[:24*size], 0, sum, 0),
	} {
		if !errors.Is(err, field.ErrFreed) {
			t.Errorf("%s: error %v, want that it is freed", what, err)
		}
	}
}

func TestNoRowsLeaveTheDeviceInSync(t *testing.T) {
	dev := openDevice(t)
	for path, want := range map[field.Path]field.Residency{field.Direct: field.DeviceNewer, field.Mirror: field.HostNewer} {
		f := get(field.New[float64](domain(4, 4, 4), domain(4, 4, 4).Box(), field.In(dev), field.Transfer(path)))(t)
		sink := get(f.Sink())(t).(pack.RowSink)
		must(t, sink.WriteRows(nil, 64, 0, 3, 8))
		must(t, sink.WriteRows(nil, 0, 3, 0, 8))
		if f.Residency() != field.InSync {
			t.Errorf("%v: %v after nothing was written", path, f.Residency())
		}
		must(t, sink.WriteRows(make([]byte, 8), 63, 1, 1, 0))
		if f.Residency() != want {
			t.Errorf("%v: %v after a cell was written", path, f.Residency())
		}
		must(t, f.Free())
	}
	must(t, dev.Close())
}

// The device's ghost cells, which the mirror doesn't have yet, survive a load.
func TestSinkKeepsGhostCellsOfTheDevice(t *testing.T) {
	dev := openDevice(t)
	f := get(field.New[float64](domain(4, 4, 4), box(1, 3, 1, 3, 1, 3), field.Halo(1), field.In(dev)))(t)
	add := newAdder(t, dev)
	add.launch(t, f.Stream(), f, 42)
	must(t, f.NoteDeviceWrite())
	sink := get(f.Sink())(t)
	must(t, sink.WriteCells(onDisk(f, 0), 0))
	must(t, f.Upload())
	add.launch(t, f.Stream(), f, 1)
	must(t, f.NoteDeviceWrite())
	checkOwned(t, f, 1)
	if got := get(f.View())(t)[f.Index(-1, -1, -1)]; got != 43 {
		t.Errorf("ghost cell is %v, want 43", got)
	}
	free(t, f.Free, add.module.Close, dev.Close)
}

// A source and a sink that were made before a device write see it.
func TestSourceAndSinkNoticeLaterDeviceWrites(t *testing.T) {
	dev := openDevice(t)
	f := get(field.New[float64](domain(4, 4, 4), box(1, 3, 1, 3, 1, 3), field.Halo(1), field.In(dev)))(t)
	add := newAdder(t, dev)
	src, sink := get(f.Source())(t), get(f.Sink())(t)
	add.launch(t, f.Stream(), f, 42)
	must(t, f.NoteDeviceWrite())
	got := make([]byte, 8)
	must(t, src.ReadCells(got, 5))
	if v := math.Float64frombits(binary.LittleEndian.Uint64(got)); v != 42 {
		t.Errorf("source gives %v, want 42", v)
	}
	add.launch(t, f.Stream(), f, 1)
	must(t, f.NoteDeviceWrite())
	must(t, sink.WriteCells(make([]byte, 8), 5))
	data := get(f.View())(t)
	if data[f.Index(0, 0, 0)] != 43 || data[f.Index(1, 0, 1)] != 0 {
		t.Errorf("cells are %v and %v, want 43 and 0", data[f.Index(0, 0, 0)], data[f.Index(1, 0, 1)])
	}
	free(t, f.Free, add.module.Close, dev.Close)
}

func TestSourceAndSinkReject(t *testing.T) {
	f := get(field.New[float64](domain(4, 4, 4), domain(4, 4, 4).Box(), field.Halo(1)))(t)
	setOwned(t, f, 0)
	src, sink := get(f.Source())(t), get(f.Sink())(t)
	for _, tt := range []struct {
		name  string
		bytes int
		first int64
	}{
		{"half a cell", 12, 0},
		{"more cells than there are", 65 * 8, 0},
		{"a range that reaches past the end", 16, 63},
		{"a first cell past the end", 8, 64},
		{"nothing past the end", 0, 65},
		{"a negative first cell", 8, -1},
		{"the smallest first cell", 8, math.MinInt64},
		{"the largest first cell", 8, math.MaxInt64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := make([]byte, tt.bytes)
			for what, err := range map[string]error{
				"read": src.ReadCells(b, tt.first), "check": sink.CheckCells(b, tt.first), "write": sink.WriteCells(b, tt.first),
			} {
				_, isRange := errors.AsType[*pack.RangeError](err)
				_, isPartial := errors.AsType[*pack.PartialCellError](err)
				if !isRange && !isPartial {
					t.Errorf("%s: error %v", what, err)
				}
			}
		})
	}
	checkOwned(t, f, 0)
}

func TestFloat32RefusesOtherNumbers(t *testing.T) {
	f := get(field.New[float32](domain(9, 9, 9), box(2, 5, 1, 5, 6, 8), field.Halo(1)))(t)
	setOwned(t, f, 0)
	sink := get(f.Sink())(t)
	tests := []struct {
		name string
		bad  float64
		cell int // number in the box of 3 x 4 x 2
		want [3]int
	}{
		{"a fraction", 0.1, 0, [3]int{2, 1, 6}},
		{"too large a number", 1e300, 4, [3]int{3, 2, 6}},
		{"too small a number", 1e-300, 11, [3]int{4, 4, 6}},
		{"one bit too much", 1 + 1.0/(1<<24), 23, [3]int{4, 4, 7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := onDisk(f, 64)
			binary.LittleEndian.PutUint64(b[8*tt.cell:], math.Float64bits(tt.bad))
			// A piece of the cells that begins in the midst of a row.
			first := min(tt.cell, 4)
			for _, err := range []error{sink.CheckCells(b[8*first:], int64(first)), sink.WriteCells(b[8*first:], int64(first))} {
				c, ok := errors.AsType[*field.CellError](err)
				n, isNumber := errors.AsType[*pack.NotFloat32Error](err)
				if !ok || !isNumber || c.Cell != tt.want || n.Value != tt.bad || n.Cell != int64(tt.cell) {
					t.Fatalf("error %v, want one for cell %v", err, tt.want)
				}
				checkText(t, err, "write field: cell (", fmt.Sprintf("(%d, %d, %d): %v is not exactly a float32", tt.want[0], tt.want[1], tt.want[2], tt.bad))
			}
			checkOwned(t, f, 0)
		})
	}
	t.Run("another cause keeps its text", func(t *testing.T) {
		err := &field.CellError{Cell: [3]int{1, 2, 3}, Err: errFault}
		checkText(t, err, "cell (1, 2, 3): injected")
	})
}
