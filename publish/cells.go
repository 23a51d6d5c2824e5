package publish

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
	"syscall"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/shm"
	"github.com/fieldstone-io/fieldstone/pack"
)

// fieldSource opens the field's source at the first use, so that a device that
// fails is an error of this field at the moment it is written.
type fieldSource struct {
	f      field.Named
	step   func(Step, string)
	source pack.Source
}

func (s *fieldSource) open() error {
	if s.source != nil {
		return nil
	}
	s.step(StepField, s.f.ID)
	source, err := s.f.Field.Source()
	s.source = source
	return err
}

func (s *fieldSource) ReadCells(dst []byte, first int64) error {
	if err := s.open(); err != nil {
		return err
	}
	return s.source.ReadCells(dst, first)
}

// ReadSum makes it a [pack.SumSource], whatever the field's own source is.
func (s *fieldSource) ReadSum(dst []byte, first int64, sum *pack.Checksum, offset int64) error {
	if err := s.open(); err != nil {
		return err
	}
	if r, ok := s.source.(pack.SumSource); ok {
		return r.ReadSum(dst, first, sum, offset)
	}
	err := s.source.ReadCells(dst, first)
	if err == nil {
		sum.Add(offset, dst)
	}
	return err
}

// ReadRows makes it a [pack.RowSource] likewise.
func (s *fieldSource) ReadRows(dst []byte, first int64, n, rows, dstRow int) error {
	if err := s.open(); err != nil {
		return err
	}
	if r, ok := s.source.(pack.RowSource); ok {
		return r.ReadRows(dst, first, n, rows, dstRow)
	}
	size := s.f.Field.Kind().DiskSize()
	for i := range rows {
		if err := s.source.ReadCells(dst[i*dstRow:i*dstRow+n*size], first+int64(i*n)); err != nil {
			return err
		}
	}
	return nil
}

// LendCells makes it a [pack.LendSource], with nothing to lend if the field's own
// source isn't one.
func (s *fieldSource) LendCells(first int64, most int) ([]byte, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	if l, ok := s.source.(pack.LendSource); ok {
		return l.LendCells(first, most)
	}
	return nil, nil
}

// ReturnCells is for what the field's own source has lent.
func (s *fieldSource) ReturnCells(cells []byte) { s.source.(pack.LendSource).ReturnCells(cells) }

// copies hold the owned cells of fields, float64 and packed, until all that was
// read is known to be good.
type copies struct {
	memory *shm.Memory
	sinks  []*copySink
	stream bool // the cells don't fit a cache, neither here nor in the fields
}

// streamFrom is the size of cells that no cache holds. Stores that pass by the
// caches then take two thirds of the time of others.
const streamFrom = 32 << 20

// newCopies makes room for fields that all own box.
func newCopies(fields []field.Named, box grid.Box) (*copies, error) {
	bytes := box.Cells() * 8
	if len(fields) > 0 && bytes > math.MaxInt/int64(len(fields)) {
		return nil, fmt.Errorf("%d fields of %d bytes are more than this system can address: %w", len(fields), bytes, syscall.ENOMEM)
	}
	size := int(bytes)
	memory, err := shm.Alloc(size * len(fields))
	if err != nil {
		return nil, err
	}
	c := &copies{memory: memory, sinks: make([]*copySink, len(fields)), stream: len(memory.Bytes) >= streamFrom}
	for i, f := range fields {
		cells := memory.Bytes[i*size : (i+1)*size : (i+1)*size]
		c.sinks[i] = &copySink{f: f, cells: cells}
	}
	return c, nil
}

// free gives the memory back.
func (c *copies) free() error {
	if c == nil {
		return nil
	}
	return c.memory.Free()
}

// checked is the first error of a field that can't take what was read for it.
func (c *copies) checked() error {
	for _, s := range c.sinks {
		err := s.err
		if s.sink == nil && err == nil { // no cell came: this rank has none
			s.check(s.cells, 0)
			err = s.err
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", s.f.ID, err)
		}
	}
	return nil
}

// commit puts the cells into the fields, several at the same time. The error is
// that of the first field that has one.
func (c *copies) commit() error {
	errs := make([]error, len(c.sinks))
	next := make(chan int, len(errs))
	for i := range errs {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(errs)) {
		workers.Go(func() {
			for i := range next {
				s := c.sinks[i]
				errs[i] = comm.Protect(func() error { return s.store(c.stream) })
			}
		})
	}
	workers.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("field %q: %w", c.sinks[i].f.ID, err)
		}
	}
	return nil
}

// copySink takes what is read for a field. Whether the field can take it is looked
// at while it passes by; what is wrong with it matters only if the file is good, and
// waits in err.
type copySink struct {
	f     field.Named
	cells []byte
	sink  pack.Sink // of the field, from the first cells on
	err   error
}

func (s *copySink) WriteCells(src []byte, first int64) error {
	n := copy(s.cells[8*first:], src)
	s.check(s.cells[8*first:][:n], first)
	return nil
}

// WriteSum is WriteCells of what also goes into a checksum.
func (s *copySink) WriteSum(src []byte, first int64, sum *pack.Checksum, offset int64) error {
	cells := s.cells[8*first:][:len(src)]
	numbers, err := pack.View[float64](cells)
	if err != nil || !littleEndian { // numbers would not be as in the file
		sum.Add(offset, src)
		copy(cells, src)
	} else if err := pack.UnpackSum(numbers, src, pack.Layout{Size: [3]int{len(numbers), 1, 1}}, 0, sum, offset); err != nil {
		return err
	}
	s.check(cells, first)
	return nil
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// WriteRows is WriteCells of rows that lie apart.
func (s *copySink) WriteRows(src []byte, first int64, n, rows, srcRow int) error {
	cells := s.cells[8*first:][:8*n*rows]
	for i := range rows {
		copy(cells[8*n*i:8*n*(i+1)], src[i*srcRow:])
	}
	s.check(cells, first)
	return nil
}

// store puts the cells into the field.
func (s *copySink) store(stream bool) error {
	f, ok := s.f.Field.(*field.Field[float64])
	if !ok || !stream || f.Stream() != nil { // a device's sink knows a shorter way than its mirror
		return s.sink.WriteCells(s.cells, 0)
	}
	data, err := f.MutableView()
	if err != nil {
		return err
	}
	return pack.UnpackStream(data, s.cells, f.Layout(), 0)
}

func (s *copySink) check(cells []byte, first int64) {
	if s.err != nil {
		return
	}
	s.err = comm.Protect(func() (err error) {
		if s.sink == nil {
			if s.sink, err = s.f.Field.Sink(); err != nil {
				return err
			}
		}
		return s.sink.CheckCells(cells, first)
	})
}
