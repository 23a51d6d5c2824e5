package pack

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/minio/crc64nvme"
)

// CRC-64/NVME is the remainder of the bits of a file, as a polynomial over
// GF(2), modulo
//
//	P = x^64 + the terms of 0xad93d23594c93659,
//
// least significant bit of each byte first, with the register set to ones
// before and inverted after. In a register the highest bit is the coefficient
// of x^0, so P without x^64 reads as its bits in reverse order:
const polynomial = 0x9a6c9329ac4bc9b5

// The assembly of crc64nvme works on 16-byte aligned blocks of this many bytes
// and feeds the rest byte by byte. Given whole blocks only, it overtakes the
// tables here from one block on (BenchmarkSum).
const crcBlock = 128

// byteTables[i][b] is the contribution of byte b with i more bytes behind it.
var byteTables = makeByteTables()

func makeByteTables() *[16][256]uint64 {
	t := new([16][256]uint64)
	for b := range t[0] {
		r := uint64(b)
		for range 8 {
			r = timesX(r)
		}
		t[0][b] = r
	}
	for i := 1; i < len(t); i++ {
		for b, r := range t[i-1] {
			t[i][b] = t[0][byte(r)] ^ r>>8
		}
	}
	return t
}

// Sum returns the CRC-64/NVME of b.
func Sum(b []byte) uint64 {
	return Update(0, b)
}

// Update returns the CRC-64/NVME of what crc is the checksum of, followed by
// b.
func Update(crc uint64, b []byte) uint64 {
	return ^remainder(^crc, b)
}

// Combine returns the checksum of a followed by b, of which crcA and crcB are
// the checksums and lenB is the length of b in bytes. A negative lenB is
// taken as 0.
func Combine(crcA, crcB uint64, lenB int64) uint64 {
	return shift(crcA, lenB) ^ crcB
}

// remainder feeds b to the register r. Without the inversions of the standard
// it is linear: remainder(r^s, b^c) = remainder(r, b) ^ remainder(s, c).
func remainder(r uint64, b []byte) uint64 {
	return kernels.remainder(r, b, nil)
}

func remainderGeneric(r uint64, b []byte, _ *byte) uint64 {
	head := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 15)
	if blocks := (len(b) - head) &^ (crcBlock - 1); blocks > 0 {
		r = remainderTables(r, b[:head])
		r = ^crc64nvme.Update(^r, b[head:head+blocks])
		b = b[head+blocks:]
	}
	return remainderTables(r, b)
}

// remainderTables is remainder in plain Go, 16 bytes at a time.
func remainderTables(r uint64, b []byte) uint64 {
	t := byteTables
	for ; len(b) >= 16; b = b[16:] {
		r ^= binary.LittleEndian.Uint64(b)
		s := binary.LittleEndian.Uint64(b[8:])
		r = t[15][byte(r)] ^ t[14][byte(r>>8)] ^ t[13][byte(r>>16)] ^ t[12][byte(r>>24)] ^
			t[11][byte(r>>32)] ^ t[10][byte(r>>40)] ^ t[9][byte(r>>48)] ^ t[8][r>>56] ^
			t[7][byte(s)] ^ t[6][byte(s>>8)] ^ t[5][byte(s>>16)] ^ t[4][byte(s>>24)] ^
			t[3][byte(s>>32)] ^ t[2][byte(s>>40)] ^ t[1][byte(s>>48)] ^ t[0][s>>56]
	}
	if len(b) >= 8 {
		r ^= binary.LittleEndian.Uint64(b)
		r = t[7][byte(r)] ^ t[6][byte(r>>8)] ^ t[5][byte(r>>16)] ^ t[4][byte(r>>24)] ^
			t[3][byte(r>>32)] ^ t[2][byte(r>>40)] ^ t[1][byte(r>>48)] ^ t[0][r>>56]
		b = b[8:]
	}
	for _, v := range b {
		r = t[0][byte(r)^v] ^ r>>8
	}
	return r
}

// timesX multiplies by x modulo P.
func timesX(r uint64) uint64 {
	return r>>1 ^ -(r&1)&polynomial
}

// overX divides by x modulo P.
func overX(r uint64) uint64 {
	top := r >> 63
	return (r^-top&polynomial)<<1 | top
}

// times multiplies modulo P, four coefficients of b at a time.
func times(a, b uint64) uint64 {
	var multiple [16]uint64 // of a, by the 4-bit polynomial that indexes it
	multiple[8] = a
	for i := 4; i > 0; i >>= 1 {
		multiple[i] = timesX(multiple[2*i])
	}
	for i := 2; i < 16; i <<= 1 {
		for j := 1; j < i; j++ {
			multiple[i+j] = multiple[i] ^ multiple[j]
		}
	}
	var r uint64
	for range 16 {
		r = r>>4 ^ reduce4[r&15] ^ multiple[b&15]
		b >>= 4
	}
	return r
}

// reduce4[v] is v times x^4 modulo P, for the lowest 4 bits of a register.
var reduce4 = func() (t [16]uint64) {
	for v := range t {
		r := uint64(v)
		for range 4 {
			r = timesX(r)
		}
		t[v] = r
	}
	return t
}()

// one is the polynomial 1.
const one = 1 << 63

// powers[i] is x to the power of 8*2^i modulo P: the factor that 2^i zero
// bytes are.
var powers = func() (t [63]uint64) {
	t[0] = one >> 8
	for i := 1; i < len(t); i++ {
		t[i] = times(t[i-1], t[i-1])
	}
	return t
}()

// shift feeds n zero bytes to the register r, in time logarithmic in n.
func shift(r uint64, n int64) uint64 {
	if r == 0 {
		return 0
	}
	for n > 0 {
		i := bits.TrailingZeros64(uint64(n))
		r = times(r, powers[i])
		n &= n - 1
	}
	return r
}
