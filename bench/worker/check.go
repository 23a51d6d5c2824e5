package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/fieldstone-io/fieldstone/pack"
)

// An output is a range of a file that must hold cells of a field.
type output struct {
	path      string
	offset    int64 // of the first cell
	field     int
	first     int64 // cell
	cells     int64
	bigEndian bool
	size      int64 // of the file; 0: other things may be in it
}

// check compares an output with index arithmetic, byte for byte.
func check(o output) error {
	f, err := os.Open(o.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if o.size != 0 {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() != o.size {
			return fmt.Errorf("%s has %d bytes, not %d", o.path, info.Size(), o.size)
		}
	}
	cells := make([]float64, min(o.cells, 1<<16))
	for done := int64(0); done < o.cells; {
		part := cells[:min(o.cells-done, int64(len(cells)))]
		raw := pack.Bytes(part)
		if _, err := f.ReadAt(raw, o.offset+8*done); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%s: %w", o.path, err)
		}
		if o.bigEndian != hostIsBig {
			for i := range part {
				part[i] = math.Float64frombits(binary.NativeEndian.Uint64(swapped(raw[8*i : 8*i+8])))
			}
		}
		if i := firstWrong(part, o.field, o.first+done); i >= 0 {
			cell := o.first + done + int64(i)
			return fmt.Errorf("%s: field %d, cell %d is %v (%#x), not %v", o.path, o.field, cell, part[i], math.Float64bits(part[i]), value(o.field, cell))
		}
		done += int64(len(part))
	}
	return nil
}

var hostIsBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

func swapped(b []byte) []byte {
	slices.Reverse(b)
	return b
}

// checkFields compares the fields in memory: owned cells with index arithmetic, and
// the ghost cells, that nothing may touch, with what they were.
func (s *state) checkFields() error {
	for f, data := range s.padded {
		var wrong error
		before := 0
		ghosts := func(to int) {
			for i := before; i < to && wrong == nil; i++ {
				if math.Float64bits(data[i]) != math.Float64bits(ghost) {
					wrong = fmt.Errorf("field %d: the ghost cell at %d of the storage is %v", f, i, data[i])
				}
			}
		}
		s.rows(func(at int, cell int64) {
			ghosts(at)
			row := data[at : at+s.box.Size[0]]
			if i := firstWrong(row, f, cell); i >= 0 && wrong == nil {
				wrong = fmt.Errorf("field %d: cell %d is %v, not %v", f, cell+int64(i), row[i], value(f, cell+int64(i)))
			}
			before = at + len(row)
		})
		ghosts(len(data))
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

// checkPacked compares the shares that were read into the packed buffers.
func (s *state) checkPacked() error {
	for f := range s.Fields {
		// Of fields that share a buffer the last one is in it.
		if f+s.packedFields < s.Fields {
			continue
		}
		if i := firstWrong(s.packed[f], f, s.first); i >= 0 {
			return fmt.Errorf("packed field %d: cell %d is %v", f, s.first+int64(i), s.packed[f][i])
		}
	}
	return nil
}
