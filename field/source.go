package field

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/pack"
)

// Source returns the owned cells for reading, as a [pack.RowSource], a
// [pack.SumSource], a [pack.StreamSource] and, on a device, a [pack.LendSource]; see
// [Any]. It stays usable until Free, and gives what the field holds when cells are
// read: a device write in between, that was noted, doesn't escape it. Cells come past
// the mirror as [Path] says, or from it, and then a stale one is brought up to date,
// here already.
//
// Past the mirror, reading in ascending order has the next cells under way; those
// that are read out of order cost a wait each. Whoever begins anew at the first cell has
// the cells as they are on the device then, whether a write was noted or not.
func (f *Field[T]) Source() (pack.Source, error) {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		return nil, fmt.Errorf("read field: %w", ErrFreed)
	}
	if !f.dev.past() {
		if err := f.hostReady(); err != nil {
			return nil, fmt.Errorf("read field: %w", err)
		}
	}
	if f.dev == nil {
		return source[T]{f}, nil
	}
	return &deviceSource[T]{source: source[T]{f}, ring: f.dev.ring, log: f.dev.log}, nil
}

type source[T pack.Number] struct{ f *Field[T] }

func (s source[T]) ReadCells(dst []byte, first int64) error {
	return s.read(func(f *Field[T]) error {
		switch host := any(f.host).(type) {
		case []float32:
			return pack.WidenBytes(dst, host, f.layout, first)
		default:
			return pack.PackBytes(dst, f.host, f.layout, first)
		}
	})
}

func (s source[T]) ReadSum(dst []byte, first int64, sum *pack.Checksum, offset int64) error {
	return s.read(func(f *Field[T]) error {
		switch host := any(f.host).(type) {
		case []float32:
			return pack.WidenSum(dst, host, f.layout, first, sum, offset)
		default:
			return pack.PackSum(dst, f.host, f.layout, first, sum, offset)
		}
	})
}

func (s source[T]) ReadRows(dst []byte, first int64, n, rows, dstRow int) error {
	return s.read(func(f *Field[T]) error {
		switch host := any(f.host).(type) {
		case []float32:
			return pack.WidenRows(dst, host, f.layout, first, n, rows, dstRow)
		default:
			return pack.PackRows(dst, f.host, f.layout, first, n, rows, dstRow)
		}
	})
}

// ReadStream keeps the lock while several goroutines pack, one part each.
func (s source[T]) ReadStream(dst []byte, first int64) error {
	return s.read(func(f *Field[T]) error {
		fill := pack.PackStream[T]
		if len(dst) < streamFrom {
			fill = pack.PackBytes[T]
		}
		size := int64(f.Kind().DiskSize())
		parts := max(1, len(dst)/partBytes)
		step := (len(dst)/parts + 4095) &^ 4095 // whole pages
		return atOnce(parts, func(i int) error {
			from := min(i*step, len(dst))
			part, cell := dst[from:min(from+step, len(dst))], first+int64(from)/size
			switch host := any(f.host).(type) {
			case []float32:
				return pack.WidenBytes(part, host, f.layout, cell)
			default:
				return fill(part, f.host, f.layout, cell)
			}
		})
	})
}

// streamFrom is the number of bytes from which on a copy is better kept out of
// the caches (BenchmarkStreamAgainstPlain of package pack).
const streamFrom = 2 << 20

// partBytes is how many bytes another goroutine is worth, at least.
const partBytes = 4 << 20

// read packs cells of a mirror that is up to date.
func (s source[T]) read(pack func(f *Field[T]) error) error {
	defer s.f.dev.say()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	err := s.f.hostReady()
	if err == nil {
		err = pack(s.f)
	}
	if err != nil {
		return fmt.Errorf("read field: %w", err)
	}
	return nil
}

// Sink returns the owned cells for writing, as a [pack.RowSink], a
// [pack.SumSink] and a [pack.FlushSink]; see [Any]. Cells that can't be
// stored, such as float64 values that no float32 equals, are a [*CellError]
// with the global indices of the first one; nothing has changed then. It stays
// usable until Free.
//
// Past the mirror, see [Path], cells may still be on their way to the device when a
// call returns. What fails there is reported by a later call, by Flush or
// [Field.Upload] at the latest; the device's cells are undefined then.
func (f *Field[T]) Sink() (pack.Sink, error) {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		return nil, wrapWrite(ErrFreed)
	}
	var err error
	if f.dev.past() {
		err = f.dev.prepare()
	} else {
		err = f.hostReady()
	}
	if err != nil {
		return nil, wrapWrite(err)
	}
	return sink[T]{f}, nil
}

type sink[T pack.Number] struct{ f *Field[T] }

// CheckCells needs no mirror, so it never copies.
func (s sink[T]) CheckCells(src []byte, first int64) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.f.freed {
		return wrapWrite(ErrFreed)
	}
	return wrapWrite(s.check(src, first))
}

func (s sink[T]) WriteCells(src []byte, first int64) error {
	return s.write(len(src) > 0, func(f *Field[T]) error {
		if err := f.inRange("write", src, first); err != nil {
			return err
		}
		switch host := any(f.host).(type) {
		case []float32:
			return pack.NarrowBytes(host, src, f.layout, first)
		default:
			return pack.UnpackBytes(f.host, src, f.layout, first)
		}
	}, func(r *residence) error { return s.send(r, src, first) })
}

func (s sink[T]) WriteSum(src []byte, first int64, sum *pack.Checksum, offset int64) error {
	return s.write(len(src) > 0, func(f *Field[T]) error {
		if err := f.inRange("write", src, first); err != nil {
			return err
		}
		switch host := any(f.host).(type) {
		case []float32:
			return pack.NarrowSum(host, src, f.layout, first, sum, offset)
		default:
			return pack.UnpackSum(f.host, src, f.layout, first, sum, offset)
		}
	}, func(r *residence) error {
		err := s.send(r, src, first)
		if err == nil {
			sum.Add(offset, src)
		}
		return err
	})
}

func (s sink[T]) WriteRows(src []byte, first int64, n, rows, srcRow int) error {
	return s.write(n > 0 && rows > 0, func(f *Field[T]) error {
		switch host := any(f.host).(type) {
		case []float32:
			return pack.NarrowRows(host, src, f.layout, first, n, rows, srcRow)
		default:
			return pack.UnpackRows(f.host, src, f.layout, first, n, rows, srcRow)
		}
	}, func(r *residence) error { return s.sendRows(r, src, first, n, rows, srcRow) })
}

// send gives cells to the device.
func (s sink[T]) send(r *residence, src []byte, first int64) error {
	if err := s.check(src, first); err != nil {
		return err
	}
	size := r.bytes()
	return r.write(first, int64(len(src))/size, func(chunk []byte, cell int64) error {
		copy(chunk, src[(cell-first)*size:])
		return nil
	})
}

// sendRows gives cells to the device that lie in rows.
func (s sink[T]) sendRows(r *residence, src []byte, first int64, n, rows, srcRow int) error {
	size := int(r.bytes())
	if err := pack.CheckRows("unpack", s.f.layout, first, n, rows, srcRow, len(src), size); err != nil || n == 0 || rows == 0 {
		return err
	}
	if s.f.Kind() == Float32 {
		for i := range rows {
			if err := s.locate(pack.CheckNarrowBytes(src[i*srcRow:][:8*n], first+int64(i)*int64(n))); err != nil {
				return err
			}
		}
	}
	return r.write(first, int64(n)*int64(rows), func(chunk []byte, cell int64) error {
		return gather(chunk, src, int(cell-first), n, srcRow, size)
	})
}

// gather fills dst with cells, of which the first is number at, from rows of n cells
// that lie row bytes apart.
func gather(dst, src []byte, at, n, row, size int) error {
	for len(dst) > 0 {
		i, x := at/n, at%n
		cells := min(n-x, len(dst)/size)
		rows := 1
		if x == 0 {
			rows = max(1, len(dst)/size/n)
		}
		to, err := pack.View[float64](dst[:cells*rows*size])
		if err != nil {
			return err
		}
		if err := pack.UnpackRows(to, src[i*row+x*size:], flat(len(to)), 0, cells*(size/8), rows, row); err != nil {
			return err
		}
		dst, at = dst[cells*rows*size:], at+cells*rows
	}
	return nil
}

// Flush waits for cells that went past the mirror.
func (s sink[T]) Flush() error {
	defer s.f.dev.say()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.f.freed {
		return wrapWrite(ErrFreed)
	}
	return wrapWrite(s.f.dev.flush())
}

// write changes a mirror that is up to date, and the device is stale if cells were
// written; or it changes the device.
func (s sink[T]) write(cells bool, unpack func(f *Field[T]) error, past func(r *residence) error) error {
	defer s.f.dev.say()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.f.freed {
		return wrapWrite(ErrFreed)
	}
	if s.f.dev.past() {
		return wrapWrite(past(s.f.dev))
	}
	err := s.f.hostReady()
	if err == nil {
		err = s.locate(unpack(s.f))
	}
	if err == nil && cells {
		s.f.dev.markDeviceStale()
	}
	return wrapWrite(err)
}

func wrapWrite(err error) error {
	if err != nil {
		return fmt.Errorf("write field: %w", err)
	}
	return nil
}

func (s sink[T]) check(src []byte, first int64) error {
	if err := s.f.inRange("write", src, first); err != nil {
		return err
	}
	if s.f.Kind() == Float32 {
		return s.locate(pack.CheckNarrowBytes(src, first))
	}
	return nil
}

// inRange reports the errors that moving packed cells would have for their
// number alone.
func (f *Field[T]) inRange(op string, cells []byte, first int64) error {
	size := f.Kind().DiskSize()
	if len(cells)%size != 0 {
		return &pack.PartialCellError{Op: op, Bytes: int64(len(cells)), CellSize: size}
	}
	count, owned := int64(len(cells)/size), f.layout.Cells()
	if first < 0 || count > owned || first > owned-count {
		return &pack.RangeError{Op: op, First: first, Count: count, Cells: owned}
	}
	return nil
}

// locate adds the global indices to an error about a cell.
func (s sink[T]) locate(err error) error {
	n, ok := errors.AsType[*pack.NotFloat32Error](err)
	if !ok {
		return err
	}
	low, size := s.f.box.Low, s.f.box.Size
	x, rest := n.Cell%int64(size[0]), n.Cell/int64(size[0])
	y, z := rest%int64(size[1]), rest/int64(size[1])
	return &CellError{Cell: [3]int{low[0] + int(x), low[1] + int(y), low[2] + int(z)}, Err: err}
}
