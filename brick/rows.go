package brick

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/pack"
)

// rowsMemory is what rows pass through on their way to or from sources and sinks
// that know none.
const rowsMemory = 64 << 10

// rowSink is a [Sink] that takes rows that lie apart.
type rowSink interface {
	WriteRows(src []byte, first int64, n, rows, srcRow int) error
}

// readCells packs cells from a source; a panic in it is this rank's error.
func readCells(s pack.Source, dst []byte, first int64) error {
	return comm.Protect(func() error { return s.ReadCells(dst, first) })
}

// readSum is readCells for bytes that also go into a checksum.
func readSum(s pack.Source, dst []byte, first int64, sum *pack.Checksum, offset int64) error {
	if f, ok := s.(pack.SumSource); ok {
		return comm.Protect(func() error { return f.ReadSum(dst, first, sum, offset) })
	}
	err := readCells(s, dst, first)
	if err == nil {
		sum.Add(offset, dst)
	}
	return err
}

// lendCells asks a source that lends for cells of elem bytes. If it has none there is
// no lender.
func lendCells(s pack.Source, first int64, most, elem int) (b []byte, lender pack.LendSource, err error) {
	l, ok := s.(pack.LendSource)
	if !ok {
		return nil, nil, nil
	}
	err = comm.Protect(func() (err error) {
		b, err = l.LendCells(first, most)
		return err
	})
	switch {
	case err != nil || len(b) == 0:
		return nil, nil, err
	case len(b) > most || len(b)%elem != 0:
		err = fmt.Errorf("the source lends %d bytes, asked for %d of cells of %d", len(b), most, elem)
		return nil, nil, also(err, returnCells(l, b))
	}
	return b, l, nil
}

func returnCells(l pack.LendSource, cells []byte) error {
	return comm.Protect(func() error {
		l.ReturnCells(cells)
		return nil
	})
}

// flushSink is a [Sink] that may return before cells are where they belong.
type flushSink interface{ Flush() error }

// flush waits for the cells of all jobs.
func flush(jobs []ReadJob) error {
	for _, j := range jobs {
		if f, ok := j.Sink.(flushSink); ok {
			if err := comm.Protect(f.Flush); err != nil {
				return j.id().fail("read", err)
			}
		}
	}
	return nil
}

// sumSink is a [Sink] that can add what it takes to a checksum.
type sumSink interface {
	WriteSum(src []byte, first int64, sum *pack.Checksum, offset int64) error
}

// sinkSum is sinkCells for bytes that also go into a checksum.
func sinkSum(s Sink, src []byte, first int64, sum *pack.Checksum, offset int64) error {
	if f, ok := s.(sumSink); ok {
		return comm.Protect(func() error { return f.WriteSum(src, first, sum, offset) })
	}
	sum.Add(offset, src)
	return sinkCells(s, src, first)
}

func sinkCells(s Sink, src []byte, first int64) error {
	return comm.Protect(func() error { return s.WriteCells(src, first) })
}

// readRows fills the rows of a piece in dst, step bytes apart.
func (p *Plan) readRows(s pack.Source, dst []byte, q piece, step int) error {
	if r, ok := s.(pack.RowSource); ok {
		return comm.Protect(func() error { return r.ReadRows(dst, q.first, int(q.n), int(q.rows), step) })
	}
	return p.batches(q, func(b []byte, row, rows, n int) error {
		if b == nil {
			return readCells(s, dst[row*step:row*step+n], q.first+int64(row)*q.n)
		}
		if err := readCells(s, b, q.first+int64(row)*q.n); err != nil {
			return err
		}
		for k := range rows {
			copy(dst[(row+k)*step:], b[k*n:(k+1)*n])
		}
		return nil
	})
}

// sinkRows is the reverse of readRows.
func (p *Plan) sinkRows(s Sink, src []byte, q piece, step int) error {
	if r, ok := s.(rowSink); ok && q.rows > 1 {
		return comm.Protect(func() error { return r.WriteRows(src, q.first, int(q.n), int(q.rows), step) })
	}
	return p.batches(q, func(b []byte, row, rows, n int) error {
		if b == nil {
			return sinkCells(s, src[row*step:row*step+n], q.first+int64(row)*q.n)
		}
		for k := range rows {
			copy(b[k*n:(k+1)*n], src[(row+k)*step:])
		}
		return sinkCells(s, b, q.first+int64(row)*q.n)
	})
}

// batches cuts the rows of a piece, n bytes each, into as many as go through the
// memory for rows at once; where that is not several, it is one row and no memory.
func (p *Plan) batches(q piece, f func(b []byte, row, rows, n int) error) error {
	n, all := int(q.n)*p.elem.Size(), int(q.rows)
	per := min(rowsMemory/n, all)
	if per < 2 {
		for row := range all {
			if err := f(nil, row, 1, n); err != nil {
				return err
			}
		}
		return nil
	}
	if p.rows == nil {
		p.rows = make([]byte, rowsMemory)
	}
	for row := 0; row < all; row += per {
		rows := min(per, all-row)
		if err := f(p.rows[:rows*n], row, rows, n); err != nil {
			return err
		}
	}
	return nil
}
