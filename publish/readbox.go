package publish

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

const (
	// readBuffer is the most that is read in one piece.
	readBuffer = 1 << 20

	// readGap is how much of a file is rather read than skipped.
	readGap = 16 << 10
)

// ReadField reads a whole field into dst, which has exactly the domain's number
// of cells, x fastest. See [Bundle.ReadBox].
func (b *Bundle) ReadField(id string, dst []float64) error {
	return b.ReadBox(id, b.info.Metadata.Domain.Box(), dst)
}

// ReadBox reads the cells of box, in global indices and inside of the domain,
// from a field into dst, which has exactly box.Cells() elements, x fastest. Rows
// and planes that lie together in the file are read together.
//
// The field's checksum is not verified, as it is one of the whole file; see
// [Bundle.Verify] and [VerifyOnOpen]. After an error dst may have changed.
func (b *Bundle) ReadBox(id string, box grid.Box, dst []float64) error {
	domain := b.info.Metadata.Domain
	if !box.Empty() && !domain.Box().Contains(box) {
		return fmt.Errorf("read %s of field %q: outside of the domain %s", box, id, domain.Box())
	}
	if int64(len(dst)) != box.Cells() {
		return fmt.Errorf("read %s of field %q: dst has %d elements, the box %d cells", box, id, len(dst), box.Cells())
	}
	f, err := b.open(id)
	if err != nil {
		return err
	}
	r := newRuns(domain.Size, box)
	var buffer []byte
	for i := int64(0); i < r.count; {
		// Gather runs that are close together.
		n, start := int64(1), r.offset(i)
		end := start + r.length
		for i+n < r.count {
			next := r.offset(i + n)
			if (next-end)*8 > readGap || (next+r.length-start)*8 > readBuffer {
				break
			}
			end = next + r.length
			n++
		}
		cells := dst[i*r.length : (i+n)*r.length]
		if n == 1 {
			err = readCells(f, start, cells)
		} else {
			if buffer == nil {
				buffer = make([]byte, readBuffer)
			}
			span := buffer[:(end-start)*8]
			if err = vfs.ReadFull(f, span, start*8); err == nil {
				for j := range n {
					from := (r.offset(i+j) - start) * 8
					decodeCells(cells[j*r.length:(j+1)*r.length], span[from:])
				}
			}
		}
		if err != nil {
			return b.readFault(fieldPath(id), err)
		}
		i += n
	}
	return nil
}

// runs are the pieces of a box that are contiguous in the file: rows, planes or
// everything, in ascending order. All numbers are cells.
type runs struct {
	length int64 // of a run
	count  int64
	first  int64 // offset of the first run
	inner  int64 // runs in a plane
	row    int64 // offset from a run to the next one in its plane
	plane  int64 // and from plane to plane
}

func newRuns(size [3]int, box grid.Box) runs {
	if box.Empty() {
		return runs{}
	}
	nx, ny := int64(size[0]), int64(size[1])
	sx, sy, sz := int64(box.Size[0]), int64(box.Size[1]), int64(box.Size[2])
	r := runs{
		length: sx, count: sy * sz, inner: sy, row: nx, plane: nx * ny,
		first: int64(box.Low[0]) + nx*(int64(box.Low[1])+ny*int64(box.Low[2])),
	}
	switch {
	case sx == nx && sy == ny:
		r.length, r.count, r.inner = sx*sy*sz, 1, 1
	case sx == nx:
		r.length, r.count, r.inner = sx*sy, sz, 1
	}
	return r
}

func (r runs) offset(i int64) int64 { return r.first + i/r.inner*r.plane + i%r.inner*r.row }

// readCells reads consecutive cells from the given one on.
func readCells(f io.ReaderAt, first int64, dst []float64) error {
	for len(dst) > 0 {
		piece := dst[:min(len(dst), readBuffer/8)]
		raw := pack.Bytes(piece)
		if err := vfs.ReadFull(f, raw, first*8); err != nil {
			return err
		}
		decodeCells(piece, raw)
		first += int64(len(piece))
		dst = dst[len(piece):]
	}
	return nil
}

// decodeCells turns little-endian bytes into numbers. Both may be the same
// memory.
func decodeCells(dst []float64, raw []byte) {
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
}

// readFault tells damage from other errors of reading.
func (b *Bundle) readFault(file string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &DamageError{b.dir, file, "the file became shorter", err}
	case errors.Is(err, syscall.EIO):
		return &DamageError{b.dir, file, err.Error(), err}
	}
	return err
}
