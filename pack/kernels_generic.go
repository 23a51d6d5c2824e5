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

// nonFiniteGeneric takes the same time whatever the numbers are. An exponent of all
// ones, to which one is added, carries into the place of the sign.
func nonFiniteGeneric(b []byte) int {
	const sign, one = 1 << 63, 1 << 52
	var n, m uint64
	for ; len(b) >= 32; b = b[32:] {
		u0, u1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		u2, u3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		n += (u0&^sign + one) >> 63
		m += (u1&^sign + one) >> 63
		n += (u2&^sign + one) >> 63
		m += (u3&^sign + one) >> 63
	}
	for ; len(b) >= 8; b = b[8:] {
		n += (binary.LittleEndian.Uint64(b)&^sign + one) >> 63
	}
	return int(n + m)
}
