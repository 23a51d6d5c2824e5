package field_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// smallSlots makes chunks of the ring small, so that fields take many of them.
func smallSlots(t *testing.T) {
	old := field.SlotBytes(4096)
	t.Cleanup(func() { field.SlotBytes(old) })
}

// put gives all cells on the device bits of their own, ghost cells others than owned
// ones, by copies that the field doesn't see, as a kernel's stores are.
func put[T pack.Number](t tb, f *field.Field[T], seed uint64) (padded []byte) {
	t.Helper()
	data := make([]T, f.Layout().PaddedCells())
	for i := range data {
		data[i] = convert[T](-float64(i) - float64(seed))
	}
	for c := range f.Owned().Cells() {
		data[f.Index(c[0], c[1], c[2])] = convert[T](number(f.Global(c[0], c[1], c[2])) + float64(seed))
	}
	padded = bytes.Clone(pack.Bytes(data))
	must(t, f.Stream().CopyToDevice(f.DevicePtr(), padded))
	must(t, f.Stream().Synchronize())
	must(t, f.NoteDeviceWrite())
	return padded
}

// onDevicePadded returns all cells on the device.
func onDevicePadded[T pack.Number](t tb, f *field.Field[T]) []byte {
	t.Helper()
	var v T
	b := make([]byte, f.Layout().PaddedCells()*int64(binary.Size(v)))
	must(t, f.Stream().CopyToHost(b, f.DevicePtr()))
	must(t, f.Stream().Synchronize())
	return b
}

// withOwned returns padded storage whose owned cells have the numbers of another seed.
func withOwned[T pack.Number](t tb, f *field.Field[T], padded []byte, seed uint64) []byte {
	t.Helper()
	b := bytes.Clone(padded)
	data := get(pack.View[T](b))(t)
	for c := range f.Owned().Cells() {
		data[f.Index(c[0], c[1], c[2])] = convert[T](number(f.Global(c[0], c[1], c[2])) + float64(seed))
	}
	return b
}

// readers are the ways to read all cells of a source.
var readers = map[string]func(t tb, s pack.Source, row, size, cells int, r *rand.Rand) []byte{
	"cells": func(t tb, s pack.Source, row, size, cells int, r *rand.Rand) []byte {
		got := make([]byte, cells*size)
		must(t, s.ReadCells(got, 0))
		return got
	},
	"pieces": func(t tb, s pack.Source, row, size, cells int, r *rand.Rand) []byte {
		got := make([]byte, cells*size)
		for at := 0; at < cells; {
			n := min(1+r.IntN(cells), cells-at)
			must(t, s.ReadCells(got[at*size:(at+n)*size], int64(at)))
			at += n
		}
		return got
	},
	"sums": func(t tb, s pack.Source, row, size, cells int, r *rand.Rand) []byte {
		got := make([]byte, cells*size)
		sum := pack.NewChecksum(int64(len(got) + 3))
		for at := 0; at < cells; {
			n := min(1+r.IntN(cells), cells-at)
			must(t, s.(pack.SumSource).ReadSum(got[at*size:(at+n)*size], int64(at), sum, int64(at*size+3)))
			at += n
		}
		checkSum(t, sum, got)
		return got
	},
	"a stream": func(t tb, s pack.Source, row, size, cells int, r *rand.Rand) []byte {
		got := make([]byte, cells*size)
		must(t, s.(pack.StreamSource).ReadStream(got, 0))
		return got
	},
	"rows": func(t tb, s pack.Source, row, size, cells int, r *rand.Rand) []byte {
		apart := (row + r.IntN(3)) * size
		rows := cells / row
		window := bytes.Repeat([]byte{0xa5}, rows*apart)
		for at := 0; at < rows; {
			n := min(1+r.IntN(rows), rows-at)
			must(t, s.(pack.RowSource).ReadRows(window[at*apart:(at+n)*apart], int64(at*row), row, n, apart))
			at += n
		}
		got := make([]byte, 0, cells*size)
		for i := range rows {
			got = append(got, window[i*apart:][:row*size]...)
			if between := window[i*apart+row*size : (i+1)*apart]; !bytes.Equal(between, bytes.Repeat([]byte{0xa5}, len(between))) {
				t.Errorf("what is between the rows has changed")
			}
		}
		return got
	},
	"loans": func(t tb, s pack.Source, row, size, cells int, r *rand.Rand) []byte {
		got := make([]byte, 0, cells*size)
		for len(got) < cells*size {
			b := get(s.(pack.LendSource).LendCells(int64(len(got)/size), size*(1+r.IntN(cells))))(t)
			if len(b) == 0 || len(b)%size != 0 {
				t.Fatalf("%d bytes are lent", len(b))
			}
			got = append(got, b...)
			s.(pack.LendSource).ReturnCells(b)
		}
		return got
	},
}

// writers are the ways to write all cells to a sink.
var writers = map[string]func(t tb, s pack.Sink, cells []byte, row, size int, r *rand.Rand){
	"cells": func(t tb, s pack.Sink, cells []byte, row, size int, r *rand.Rand) { must(t, s.WriteCells(cells, 0)) },
	"pieces": func(t tb, s pack.Sink, cells []byte, row, size int, r *rand.Rand) {
		for at := 0; at < len(cells)/size; {
			n := min(1+r.IntN(len(cells)/size), len(cells)/size-at)
			piece := bytes.Clone(cells[at*size : (at+n)*size])
			must(t, s.WriteCells(piece, int64(at)))
			clear(piece) // the sink has its own
			at += n
		}
	},
	"sums": func(t tb, s pack.Sink, cells []byte, row, size int, r *rand.Rand) {
		sum := pack.NewChecksum(int64(len(cells) + 3))
		for at := 0; at < len(cells)/size; {
			n := min(1+r.IntN(len(cells)/size), len(cells)/size-at)
			must(t, s.(pack.SumSink).WriteSum(cells[at*size:(at+n)*size], int64(at), sum, int64(at*size+3)))
			at += n
		}
		checkSum(t, sum, cells)
	},
	"rows": func(t tb, s pack.Sink, cells []byte, row, size int, r *rand.Rand) {
		apart, rows := row*size+size*r.IntN(3), len(cells)/size/row
		window := make([]byte, rows*apart)
		for i := range rows {
			copy(window[i*apart:], cells[i*row*size:][:row*size])
		}
		for at := 0; at < rows; {
			n := min(1+r.IntN(rows), rows-at)
			must(t, s.(pack.RowSink).WriteRows(window[at*apart:(at+n)*apart], int64(at*row), row, n, apart))
			at += n
		}
	},
}

// Past the mirror, each pass over the cells moves exactly the owned ones, and leaves
// mirror and residency as they were; a load moves exactly these too, and leaves the
// device's ghost cells alone.
func TestPastTheMirror(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		t.Run("float64", func(t *testing.T) { testPastTheMirror[float64](t, space) })
		t.Run("float32", func(t *testing.T) { testPastTheMirror[float32](t, space) })
		t.Run("complex128", func(t *testing.T) { testPastTheMirror[complex128](t, space) })
		must(t, space.Close())
	})
}

func testPastTheMirror[T pack.Number](t *testing.T, space device.Space) {
	r := rand.New(rand.NewPCG(1, 2))
	d := domain(40, 30, 20)
	before := get(space.MemoryInfo())(t)
	for halo := range 5 {
		boxes := []grid.Box{box(3, 16, 2, 13, 4, 15), box(0, 1, 0, 17, 0, 1), box(0, 40, 5, 6, 0, 20), {}}
		for _, b := range []grid.Box{boxes[halo%4], boxes[(halo+1)%4]} {
			f := get(field.New[T](d, b, field.Halo(halo), field.In(space)))(t)
			if b.Empty() {
				s := get(f.Source())(t)
				must(t, s.ReadCells(nil, 0))
				must(t, get(f.Sink())(t).WriteCells(nil, 0))
				if moved := f.Transfers(); moved != (field.Transfers{}) {
					t.Errorf("%+v for a box without cells", moved)
				}
				must(t, f.Free())
				continue
			}
			padded := put(t, f, 1)
			cells, size := int(b.Cells()), f.Kind().DiskSize()
			want, moved := onDisk(f, 1), field.Transfers{}
			for name, read := range readers {
				if got := read(t, get(f.Source())(t), b.Size[0], size, cells, r); !bytes.Equal(got, want) {
					t.Fatalf("%v, halo %d: reading %s gives other cells", b, halo, name)
				}
				moved.ReadCells += int64(cells)
				moved.ReadBytes += int64(cells * size)
				if got := f.Transfers(); got != moved || f.Residency() != field.DeviceNewer {
					t.Fatalf("%v, halo %d: reading %s: %+v, %v, want %+v", b, halo, name, got, f.Residency(), moved)
				}
			}
			seed := uint64(2)
			for name, write := range writers {
				sink := get(f.Sink())(t)
				write(t, sink, onDisk(f, float64(seed)), b.Size[0], size, r)
				must(t, sink.(pack.FlushSink).Flush())
				moved.WrittenCells += int64(cells)
				moved.WrittenBytes += int64(cells * size)
				if got := f.Transfers(); got != moved || f.Residency() != field.DeviceNewer {
					t.Fatalf("%v, halo %d: writing %s: %+v, %v, want %+v", b, halo, name, got, f.Residency(), moved)
				}
				if !bytes.Equal(onDevicePadded(t, f), withOwned(t, f, padded, seed)) {
					t.Fatalf("%v, halo %d: writing %s stores other cells", b, halo, name)
				}
				seed++
			}
			// The mirror that comes into being now has ghost cells and all.
			if got := pack.Bytes(get(f.View())(t)); !bytes.Equal(got, withOwned(t, f, padded, seed-1)) {
				t.Fatalf("%v, halo %d: the view shows other cells", b, halo)
			}
			must(t, f.Free())
		}
	}
	if after := get(space.MemoryInfo())(t); devtest.Real() == "" && after != before {
		t.Errorf("%+v afterwards, %+v before", after, before)
	}
}

// The mirror path moves the padded array once; what is in sync moves nothing again.
func TestByWayOfTheMirror(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		f := get(field.New[float64](domain(8, 7, 6), box(1, 7, 1, 6, 1, 5), field.Halo(2), field.In(space), field.Transfer(field.Mirror)))(t)
		put(t, f, 1)
		for range 3 {
			got := make([]byte, 8*f.Box().Cells())
			must(t, get(f.Source())(t).ReadCells(got, 0))
			if !bytes.Equal(got, onDisk(f, 1)) {
				t.Error("other cells")
			}
			if b, err := get(f.Source())(t).(pack.LendSource).LendCells(0, 800); b != nil || err != nil {
				t.Errorf("%d bytes lent, %v", len(b), err)
			}
			if moved := f.Transfers(); moved != (field.Transfers{Refreshes: 1}) || f.Residency() != field.InSync {
				t.Errorf("%+v, %v", moved, f.Residency())
			}
		}
		free(t, f.Free, space.Close)
	})
}

// What a call does past the mirror, or not, when it may choose.
func TestTransitionsPastTheMirror(t *testing.T) {
	const cells = 5 * 4 * 3
	direct := field.Transfers{ReadCells: cells, ReadBytes: 8 * cells}
	written := field.Transfers{WrittenCells: cells, WrittenBytes: 8 * cells}
	for _, tt := range []struct {
		path   field.Path
		mirror bool // there is one before
		from   field.Residency
		read   field.Transfers
		readTo field.Residency
		write  field.Transfers
		wrote  field.Residency
	}{
		{field.Automatic, false, field.InSync, direct, field.InSync, written, field.DeviceNewer},
		{field.Automatic, true, field.InSync, direct, field.InSync, written, field.DeviceNewer},
		{field.Automatic, false, field.DeviceNewer, direct, field.DeviceNewer, written, field.DeviceNewer},
		{field.Automatic, true, field.DeviceNewer, direct, field.DeviceNewer, written, field.DeviceNewer},
		{field.Automatic, true, field.HostNewer, field.Transfers{}, field.HostNewer, field.Transfers{}, field.HostNewer},
		{field.Direct, false, field.InSync, direct, field.InSync, written, field.DeviceNewer},
		{field.Direct, true, field.InSync, direct, field.InSync, written, field.DeviceNewer},
		{field.Direct, true, field.DeviceNewer, direct, field.DeviceNewer, written, field.DeviceNewer},
		{field.Direct, true, field.HostNewer, field.Transfers{}, field.HostNewer, field.Transfers{}, field.HostNewer},
		{field.Mirror, false, field.InSync, field.Transfers{}, field.InSync, field.Transfers{}, field.HostNewer},
		{field.Mirror, true, field.DeviceNewer, field.Transfers{Refreshes: 1}, field.InSync, field.Transfers{Refreshes: 1}, field.HostNewer},
	} {
		t.Run(fmt.Sprintf("%v when %v, mirror %t", tt.path, tt.from, tt.mirror), func(t *testing.T) {
			for _, write := range []bool{false, true} {
				dev := openDevice(t)
				f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.Halo(1), field.In(dev), field.Transfer(tt.path)))(t)
				if tt.mirror {
					get(f.View())(t)
				}
				switch tt.from {
				case field.HostNewer:
					get(f.MutableView())(t)
				case field.DeviceNewer:
					must(t, f.NoteDeviceWrite())
				}
				b, want, to := make([]byte, 8*cells), tt.read, tt.readTo
				if write {
					want, to = tt.write, tt.wrote
					must(t, get(f.Sink())(t).WriteCells(b, 0))
				} else {
					must(t, get(f.Source())(t).ReadCells(b, 0))
				}
				if got := f.Transfers(); got != want || f.Residency() != to {
					t.Errorf("write %t: %+v, %v, want %+v, %v", write, got, f.Residency(), want, to)
				}
				free(t, f.Free, dev.Close)
			}
		})
	}
}

// A load while the mirror is newer goes there: its ghost cells are fresh, the device's
// are not.
func TestAStaleGhostIsNeverTakenForAFreshOne(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		for _, path := range paths {
			space := get(d.Open())(t)
			f := get(field.New[float64](domain(8, 7, 6), box(1, 7, 1, 6, 1, 5), field.Halo(1), field.In(space), field.Transfer(path)))(t)
			put(t, f, 1)
			get(f.MutableView())(t)[0] = 77 // a ghost cell
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, 2), 0))
			must(t, f.Upload())
			if got := get(pack.View[float64](onDevicePadded(t, f)))(t); got[0] != 77 || got[f.Index(0, 0, 0)] != number([3]int{1, 1, 1})+2 {
				t.Errorf("%v: the device has %v and %v", path, got[0], got[f.Index(0, 0, 0)])
			}
			// The other way round: cells that went to the device have its ghost cells.
			padded := put(t, f, 3)
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, 4), 0))
			if got := pack.Bytes(get(f.View())(t)); !bytes.Equal(got, withOwned(t, f, padded, 4)) {
				t.Errorf("%v: the view shows other cells", path)
			}
			free(t, f.Free, space.Close)
		}
	})
}

// What was packed ahead isn't taken for what a later write has left.
func TestWritesBetweenReadsAreSeen(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		f := get(field.New[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), field.Halo(1), field.In(space)))(t)
		s := get(f.Source())(t)
		b := make([]byte, 8*100)
		for round, change := range []func(seed uint64){
			func(seed uint64) { put(t, f, seed) },
			func(seed uint64) { must(t, get(f.Sink())(t).WriteCells(onDisk(f, float64(seed)), 0)) },
			func(seed uint64) {
				setOwned(t, f, float64(seed))
				must(t, f.Upload())
				must(t, f.NoteDeviceWrite())
			},
			func(seed uint64) { setOwned(t, f, float64(seed)) },
		} {
			for i := range 3 {
				change(uint64(10*round + i))
				must(t, s.ReadCells(b, int64(100*i)))
				if !bytes.Equal(b, onDisk(f, float64(10*round+i))[800*i:800*(i+1)]) {
					t.Errorf("change %d, read %d: other cells", round, i)
				}
			}
		}
		free(t, f.Free, space.Close)
	})
}

// Few chunks serve any number of fields that are read at the same time, whatever the
// pieces; each cell moves once.
func TestManyFieldsAtOnce(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		fields := make([]*field.Field[float64], 11)
		sources := make([]pack.Source, len(fields))
		got := make([][]byte, len(fields))
		for i := range fields {
			fields[i] = get(field.New[float64](domain(30, 9, 8), domain(30, 9, 8).Box(), field.Halo(i%3), field.In(space)))(t)
			put(t, fields[i], uint64(i))
			sources[i], got[i] = get(fields[i].Source())(t), make([]byte, 8*30*9*8)
		}
		check := func(times int64) {
			t.Helper()
			for i, f := range fields {
				if !bytes.Equal(got[i], onDisk(f, float64(i))) {
					t.Errorf("field %d: other cells", i)
				}
				if n := f.Transfers().ReadCells; n != times*30*9*8 {
					t.Errorf("field %d: %d cells moved, want %d times %d", i, n, times, 30*9*8)
				}
				clear(got[i])
			}
		}
		// In turns, as through a window.
		for row := 0; row < 9*8; row += 4 {
			for i, s := range sources {
				must(t, s.(pack.RowSource).ReadRows(got[i][row*240:], int64(row*30), 30, 4, 240))
			}
		}
		check(1)
		// On goroutines, by copies and loans.
		var all sync.WaitGroup
		errs := make([]error, len(fields))
		for i, s := range sources {
			all.Go(func() {
				for at := 0; at < len(got[i]) && errs[i] == nil; {
					n := min(700*8, len(got[i])-at)
					if i%2 == 0 {
						errs[i] = s.ReadCells(got[i][at:at+n], int64(at/8))
					} else {
						var b []byte
						b, errs[i] = s.(pack.LendSource).LendCells(int64(at/8), n)
						n = copy(got[i][at:], b)
						s.(pack.LendSource).ReturnCells(b)
					}
					at += n
				}
			})
		}
		all.Wait()
		must(t, errors.Join(errs...))
		check(2)
		for _, f := range fields {
			must(t, f.Free())
		}
		must(t, space.Close())
	})
}

// Goroutines share one field: each reads by a source of its own, others look at it.
func TestGoroutinesOnOneField(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		f := get(field.New[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), field.Halo(1), field.In(space)))(t)
		put(t, f, 5)
		want := onDisk(f, 5)
		var all sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			all.Go(func() {
				s, err := f.Source()
				if err != nil {
					errs[i] = err
					return
				}
				got := make([]byte, len(want))
				for at := 0; at < len(got) && err == nil; at += 2400 {
					err = s.ReadCells(got[at:at+2400], int64(at/8))
					if i == 0 && at > len(got)/2 {
						if _, verr := f.View(); verr != nil {
							err = verr
						}
					}
				}
				if err == nil && !bytes.Equal(got, want) {
					err = errors.New("other cells")
				}
				errs[i] = err
			})
		}
		all.Wait()
		must(t, errors.Join(errs...))
		free(t, f.Free, space.Close)
	})
}

// A field may be freed while it is read: the reader is told, and what it has on loan
// stays good until it is returned. Only then the last of the memory goes.
func TestFreeWhileCellsAreLent(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		before := get(space.MemoryInfo())(t)
		f := get(field.New[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), field.Halo(1), field.In(space)))(t)
		put(t, f, 5)
		want := onDisk(f, 5)
		s := get(f.Source())(t).(pack.LendSource)
		b := get(s.LendCells(0, 3000))(t)
		c := get(s.LendCells(int64(len(b)/8), 1<<20))(t)
		must(t, f.Free())
		for what, err := range map[string]error{
			"lend": func() error { _, err := s.LendCells(0, 3000); return err }(), "read": s.ReadCells(make([]byte, 8), 0),
		} {
			if !errors.Is(err, field.ErrFreed) {
				t.Errorf("%s: error %v", what, err)
			}
		}
		if got := slices.Concat(b, c); !bytes.Equal(got, want[:len(got)]) {
			t.Error("what is lent has changed")
		}
		// Meanwhile another field begins anew.
		g := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(space)))(t)
		put(t, g, 6)
		got := make([]byte, 8*60)
		must(t, get(g.Source())(t).ReadCells(got, 0))
		if !bytes.Equal(got, onDisk(g, 6)) {
			t.Error("other cells of the other field")
		}
		s.ReturnCells(b)
		s.ReturnCells(c)
		must(t, g.Free())
		if after := get(space.MemoryInfo())(t); devtest.Real() == "" && after != before {
			t.Errorf("%+v afterwards, %+v before", after, before)
		}
		must(t, space.Close())
	})
}

// A kernel that faults loses the device: the call that meets it says so, all others
// too, and giving things back works.
func TestALostDevice(t *testing.T) {
	smallSlots(t)
	devtest.OnFakes(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		for what, use := range map[string]func(f *field.Field[float64]) error{
			"reading": func(f *field.Field[float64]) error {
				s, err := f.Source()
				if err != nil {
					return err
				}
				return s.ReadCells(make([]byte, 8*f.Box().Cells()), 0)
			},
			"writing": func(f *field.Field[float64]) error {
				s, err := f.Sink()
				if err != nil {
					return err
				}
				return errors.Join(s.WriteCells(make([]byte, 8*f.Box().Cells()), 0), s.(pack.FlushSink).Flush())
			},
			"restoring": func(f *field.Field[float64]) error {
				c := &field.State{Fields: []field.Captured{{ID: "f", Domain: f.Domain(), Box: f.Box(), Kind: f.Kind(), Cells: make([]byte, 8*f.Box().Cells())}}}
				return c.Restore(field.Named{ID: "f", Field: f})
			},
		} {
			for nth := range 3 {
				space := get(d.Open())(t)
				f := get(field.New[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), field.Halo(1), field.In(space)))(t)
				g := get(field.New[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), field.Halo(1), field.In(space)))(t)
				put(t, f, 1)
				d.Break(space, 1+2*nth)
				err := use(f)
				if !errors.Is(err, device.ErrLost) {
					t.Errorf("%s, kernel %d: error %v", what, nth, err)
				}
				checkText(t, err, space.Name(), "fieldstone_")
				if err := use(g); !errors.Is(err, device.ErrLost) {
					t.Errorf("%s another field, kernel %d: error %v", what, nth, err)
				}
				free(t, f.Free, g.Free, space.Close)
			}
		}
	})
}
