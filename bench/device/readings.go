package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// chunk is what a publication takes at a time.
const chunk = 2 << 20

// readings compares the owned cells' way between device and host with one copy of as
// many bytes between the device and pinned memory.
func readings(ctx context.Context, s settings, space device.Space, r *report) error {
	return errors.Join(
		readingContest[float64](ctx, s, space, r, "float64"),
		readingContest[float32](ctx, s, space, r, "float32"),
	)
}

func readingContest[T pack.Number](ctx context.Context, s settings, space device.Space, r *report, kind string) (err error) {
	padded := int64(s.size+4) * int64(s.size+4) * int64(s.size+4)
	if ok, err := r.room(space, kind+" to the host and the device", 3*padded*8+128<<20); !ok {
		return err
	}
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	direct, err := newField[T](s, 1, field.In(space), field.Transfer(field.Direct), field.Logger(r.logger()))
	if err != nil {
		return err
	}
	undo.add(direct.Free)
	mirror, err := newField[T](s, 1, field.In(space), field.Transfer(field.Mirror), field.Logger(r.logger()))
	if err != nil {
		return err
	}
	undo.add(mirror.Free)
	host, err := newField[T](s, 1)
	if err != nil {
		return err
	}
	undo.add(host.Free)

	// A field of the host says what is right.
	bytes := direct.Layout().Cells() * int64(direct.Kind().DiskSize())
	want, err := sumOf(host, bytes)
	if err != nil {
		return err
	}
	for _, f := range []*field.Field[T]{direct, mirror} {
		if got, err := sumOf(f, bytes); err != nil {
			return err
		} else if got != want {
			return errors.New("the cells read from the device are wrong")
		}
	}

	stream, err := space.NewStream()
	if err != nil {
		return err
	}
	undo.add(stream.Close)
	memory, err := space.Allocate(bytes)
	if err != nil {
		return err
	}
	undo.add(memory.Free)
	pinned, err := space.AllocateHost(bytes)
	if err != nil {
		return err
	}
	undo.add(pinned.Free)
	toHost := way{name: "pinned copy", run: func() error {
		return errors.Join(stream.CopyToHost(pinned.Bytes(), memory.Ptr()), stream.Synchronize())
	}}
	toDevice := way{name: "pinned copy", run: func() error {
		return errors.Join(stream.CopyToDevice(memory.Ptr(), pinned.Bytes()), stream.Synchronize())
	}}
	if err := r.add(ctx, kind+" to the host", bytes, s.repeats, toHost, readWay("direct", direct), readWay("mirror", mirror)); err != nil {
		return err
	}

	cells, err := packed(host, bytes)
	if err != nil {
		return err
	}
	if err := r.add(ctx, kind+" to the device", bytes, s.repeats, toDevice, writeWay("direct", direct, cells), writeWay("mirror", mirror, cells)); err != nil {
		return err
	}
	for _, f := range []*field.Field[T]{direct, mirror} {
		if got, err := sumOf(f, bytes); err != nil {
			return err
		} else if got != want {
			return errors.New("the cells written to the device are wrong")
		}
	}
	return nil
}

// newField returns a field of known cells, on the device where it has one.
func newField[T pack.Number](s settings, seed int, opts ...field.Option) (*field.Field[T], error) {
	domain := cube(s.size)
	f, err := field.New[T](domain, domain.Box(), append(opts, field.Halo(2))...)
	if err != nil {
		return nil, err
	}
	cells, err := f.MutableView()
	if err != nil {
		return nil, errors.Join(err, f.Free())
	}
	fillCells(cells, seed)
	if err := forgetMirror(f); err != nil {
		return nil, errors.Join(err, f.Free())
	}
	return f, nil
}

// fillCells sets cells to numbers that float32 has too.
func fillCells[T pack.Number](cells []T, seed int) {
	switch cells := any(cells).(type) {
	case []float64:
		for i := range cells {
			cells[i] = number[float64](i * seed)
		}
	case []float32:
		for i := range cells {
			cells[i] = number[float32](i * seed)
		}
	}
}

// forgetMirror leaves the cells of a field on the device, and nowhere else.
func forgetMirror[T pack.Number](f *field.Field[T]) error {
	if f.Stream() == nil {
		return nil
	}
	if err := f.Upload(); err != nil {
		return err
	}
	cells, err := f.MutableView()
	clear(cells)
	return errors.Join(err, f.NoteDeviceWrite())
}

// readWay reads a field that kernels have changed, and does nothing with the cells.
func readWay[T pack.Number](name string, f *field.Field[T]) way {
	var staging [chunk]byte
	return way{name: name, prepare: func() error { return f.NoteDeviceWrite() }, run: func() error {
		return eachChunk(f, staging[:], func([]byte) error { return nil })
	}}
}

// writeWay writes cells to a field, as far as the device.
func writeWay[T pack.Number](name string, f *field.Field[T], cells []byte) way {
	return way{name: name, prepare: func() error { return spoil(f) }, run: func() error {
		sink, err := f.Sink()
		if err != nil {
			return err
		}
		size := f.Kind().DiskSize()
		for at := 0; at < len(cells); at += chunk {
			if err := sink.WriteCells(cells[at:min(at+chunk, len(cells))], int64(at/size)); err != nil {
				return err
			}
		}
		if sink, ok := sink.(pack.FlushSink); ok {
			if err := sink.Flush(); err != nil {
				return err
			}
		}
		return f.Upload()
	}}
}

// spoil overwrites all cells where the field has them.
func spoil[T pack.Number](f *field.Field[T]) error {
	if s := f.Stream(); s != nil {
		return errors.Join(s.Fill(f.DevicePtr(), 0x7f, f.Layout().PaddedCells()*elementSize[T]()), f.NoteDeviceWrite(), s.Synchronize())
	}
	cells, err := f.MutableView()
	clear(cells)
	return err
}

// eachChunk reads the owned cells of a field, in its own memory where it lends it.
func eachChunk(f field.Any, staging []byte, use func([]byte) error) error {
	src, err := f.Source()
	if err != nil {
		return err
	}
	lender, _ := src.(pack.LendSource)
	size := int64(f.Kind().DiskSize())
	for first, end := int64(0), f.Box().Cells(); first < end; {
		if lender != nil {
			cells, err := lender.LendCells(first, len(staging))
			if err != nil {
				return err
			}
			if len(cells) > 0 {
				err := use(cells)
				lender.ReturnCells(cells)
				if err != nil {
					return err
				}
				first += int64(len(cells)) / size
				continue
			}
		}
		cells := staging[:min(int64(len(staging)), (end-first)*size)]
		if err := src.ReadCells(cells, first); err != nil {
			return err
		}
		if err := use(cells); err != nil {
			return err
		}
		first += int64(len(cells)) / size
	}
	return nil
}

// sumOf is the checksum of a field's cells.
func sumOf(f field.Any, bytes int64) (uint64, error) {
	var sum uint64
	var seen int64
	err := eachChunk(f, make([]byte, chunk), func(cells []byte) error {
		sum = pack.Update(sum, cells)
		seen += int64(len(cells))
		return nil
	})
	if err == nil && seen != bytes {
		err = fmt.Errorf("%d bytes were read, want %d", seen, bytes)
	}
	return sum, err
}

// packed returns a field's cells.
func packed(f field.Any, bytes int64) ([]byte, error) {
	all := make([]byte, 0, bytes)
	err := eachChunk(f, make([]byte, chunk), func(cells []byte) error {
		all = append(all, cells...)
		return nil
	})
	return all, err
}

func cube(n int) grid.Domain {
	return grid.Domain{Size: [3]int{n, n, n}, Spacing: [3]float64{1, 1, 1}}
}
