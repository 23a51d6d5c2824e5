package field

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/pack"
)

// Source returns the owned cells for reading, as a [pack.RowSource] and a
// [pack.SumSource]; see [Any]. It stays usable until
// Free: a mirror that becomes stale later is brought up to date when cells are
// read.
func (f *Field[T]) Source() (pack.Source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.hostReady(); err != nil {
		return nil, fmt.Errorf("read field: %w", err)
	}
	return source[T]{f}, nil
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

// Sink returns the owned cells for writing, as a [pack.RowSink] and a
// [pack.SumSink]; see [Any]. Cells that can't be
// stored, such as float64 values that no float32 equals, are a [*CellError]
// with the global indices of the first one; nothing has changed then. It stays
// usable until Free.
func (f *Field[T]) Sink() (pack.Sink, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.hostReady(); err != nil {
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
		if err := s.inRange(src, first); err != nil {
			return err
		}
		switch host := any(f.host).(type) {
		case []float32:
			return pack.NarrowBytes(host, src, f.layout, first)
		default:
			return pack.UnpackBytes(f.host, src, f.layout, first)
		}
	})
}

func (s sink[T]) WriteSum(src []byte, first int64, sum *pack.Checksum, offset int64) error {
	return s.write(len(src) > 0, func(f *Field[T]) error {
		if err := s.inRange(src, first); err != nil {
			return err
		}
		switch host := any(f.host).(type) {
		case []float32:
			return pack.NarrowSum(host, src, f.layout, first, sum, offset)
		default:
			return pack.UnpackSum(f.host, src, f.layout, first, sum, offset)
		}
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
	})
}

// write changes a mirror that is up to date; the device is stale if cells were
// written.
func (s sink[T]) write(cells bool, unpack func(f *Field[T]) error) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
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
	if err := s.inRange(src, first); err != nil {
		return err
	}
	if s.f.Kind() == Float32 {
		return s.locate(pack.CheckNarrowBytes(src, first))
	}
	return nil
}

// inRange reports the errors that storing the cells would have for their
// number alone.
func (s sink[T]) inRange(src []byte, first int64) error {
	size := s.f.Kind().DiskSize()
	if len(src)%size != 0 {
		return &pack.PartialCellError{Op: "write", Bytes: int64(len(src)), CellSize: size}
	}
	count, cells := int64(len(src)/size), s.f.layout.Cells()
	if first < 0 || count > cells || first > cells-count {
		return &pack.RangeError{Op: "write", First: first, Count: count, Cells: cells}
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
