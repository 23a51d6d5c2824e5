package pack

import (
	"encoding/binary"
	"math"
)

// generic is plain Go: the reference that every other set is compared with.
var generic = kernelSet{
	name:       "generic",
	copyRows:   copyRowsGeneric,
	streamRows: copyRowsGeneric,
	fence:      func() {},
	widenRows:  widenRowsGeneric,
	narrowRows: narrowRowsGeneric,
	inexact:    inexactGeneric,
	remainder:  remainderGeneric,
	nonFinite:  nonFiniteGeneric,
}

func copyRowsGeneric(dst, src []byte, n, dstRow, srcRow, rows int) {
	for d, s := 0, 0; rows > 0; rows-- {
		copy(dst[d:d+n], src[s:s+n])
		d += dstRow
		s += srcRow
	}
}

func widenRowsGeneric(dst []byte, src []float32, n, dstRow, srcRow, rows int) {
	for d, s := 0, 0; rows > 0; rows-- {
		to := dst[8*d : 8*(d+n)]
		for _, v := range src[s : s+n] {
			b := math.Float32bits(v)
			var u uint64
			if isNormal32(b) {
				u = widenNormal(b)
			} else {
				u = widen(b)
			}
			binary.NativeEndian.PutUint64(to, u)
			to = to[8:]
		}
		d += dstRow
		s += srcRow
	}
}

func narrowRowsGeneric(dst []float32, src []byte, n, dstRow, srcRow, rows int) {
	for d, s := 0, 0; rows > 0; rows-- {
		to := dst[d : d+n]
		from := src[8*s : 8*(s+n)]
		for i := range to {
			u := binary.NativeEndian.Uint64(from)
			var b uint32
			if isNormal64(u) {
				b = narrowNormal(u)
			} else {
				b, _ = narrow(u)
			}
			to[i] = math.Float32frombits(b)
			from = from[8:]
		}
		d += dstRow
		s += srcRow
	}
}

func inexactGeneric(src []byte) int {
	for i := 0; len(src) >= 8; i++ {
		u := binary.NativeEndian.Uint64(src)
		if !isNormal64(u) || u&lowBits != 0 {
			if _, ok := narrow(u); !ok {
				return i
			}
		}
		src = src[8:]
	}
	return -1
}

// nonFiniteGeneric takes the same time whatever the numbers are. It needs the highest
// 16 bits of each, sign and exponent and some of the fraction, and looks at four
// numbers at once, in four lanes of a word: an exponent of all ones, to which one is
// added, carries into the place of the sign.
func nonFiniteGeneric(b []byte) int {
	const (
		lanes = 0x0001_0001_0001_0001
		sign  = 0x8000 * lanes
		one   = 0x0010 * lanes
		most  = 0xffff // additions that a lane takes
	)
	n := 0
	for len(b) >= 32 {
		part := b[:min(len(b), 32*most)&^31]
		b = b[len(part):]
		var count uint64
		for ; len(part) >= 32; part = part[32:] {
			p := (*[32]byte)(part)
			x := uint64(binary.LittleEndian.Uint16(p[6:])) | uint64(binary.LittleEndian.Uint16(p[14:]))<<16 |
				uint64(binary.LittleEndian.Uint16(p[22:]))<<32 | uint64(binary.LittleEndian.Uint16(p[30:]))<<48
			count += (x&^sign + one) >> 15 & lanes
		}
		for ; count > 0; count >>= 16 {
			n += int(count & most)
		}
	}
	for ; len(b) >= 8; b = b[8:] {
		n += int((uint64(binary.LittleEndian.Uint16(b[6:]))&^(1<<15) + 1<<4) >> 15)
	}
	return n
}
