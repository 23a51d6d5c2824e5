package device

import (
	"encoding/binary"
	"iter"
	"math"
)

// Args packs the arguments of a kernel in the way that compilers lay out the
// parameters of a C function for a device: in the order of the calls, each one
// aligned to its own size, in little-endian order. The zero value is empty and
// ready for use; the methods return their receiver, so that calls chain.
type Args struct {
	buf   []byte
	sizes []uint8 // of each argument, in bytes
}

// Ptr appends a device address, 8 bytes.
func (a *Args) Ptr(p Ptr) *Args { return a.Uint64(uint64(p)) }

// Int64 appends a 64-bit integer.
func (a *Args) Int64(v int64) *Args { return a.Uint64(uint64(v)) }

// Int32 appends a 32-bit integer.
func (a *Args) Int32(v int32) *Args { return a.Uint32(uint32(v)) }

// Float64 appends a double.
func (a *Args) Float64(v float64) *Args { return a.Uint64(math.Float64bits(v)) }

// Float32 appends a float.
func (a *Args) Float32(v float32) *Args { return a.Uint32(math.Float32bits(v)) }

// Uint64 appends an unsigned 64-bit integer.
func (a *Args) Uint64(v uint64) *Args {
	a.begin(8)
	a.buf = binary.LittleEndian.AppendUint64(a.buf, v)
	return a
}

// Uint32 appends an unsigned 32-bit integer.
func (a *Args) Uint32(v uint32) *Args {
	a.begin(4)
	a.buf = binary.LittleEndian.AppendUint32(a.buf, v)
	return a
}

// Bytes returns the packed arguments. They are valid until the next call that
// changes a. A nil Args has none.
func (a *Args) Bytes() []byte {
	if a == nil {
		return nil
	}
	return a.buf
}

// Values yields the bytes of each argument, without padding: what drivers need
// that want a pointer to each one. They are valid until the next call that
// changes a. A nil Args has none.
func (a *Args) Values() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if a == nil {
			return
		}
		at := 0
		for _, size := range a.sizes {
			n := int(size)
			at = aligned(at, n)
			if !yield(a.buf[at : at+n]) {
				return
			}
			at += n
		}
	}
}

// Reset removes all arguments and keeps the memory.
func (a *Args) Reset() *Args {
	a.buf, a.sizes = a.buf[:0], a.sizes[:0]
	return a
}

// begin makes a place for an argument of n bytes.
func (a *Args) begin(n int) {
	for end := aligned(len(a.buf), n); len(a.buf) < end; {
		a.buf = append(a.buf, 0)
	}
	a.sizes = append(a.sizes, uint8(n))
}

// aligned returns the first place from at on that is a multiple of n, a power
// of two.
func aligned(at, n int) int { return (at + n - 1) &^ (n - 1) }
