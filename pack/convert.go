package pack

import "math/bits"

// The conversions between float32 and float64 are integer arithmetic on the
// bits. The hardware's would lose what a restart must keep: it turns a
// signalling NaN into a quiet one, and a solver built for speed may have told
// its threads to flush subnormal numbers to zero.

const (
	exponentShift = (1023 - 127) << 52 // difference of the two exponent biases
	lowBits       = 1<<29 - 1          // fraction bits that a float32 lacks
)

// isNormal32 reports whether the float32 with the bits b is normal: exponents
// 1 to 254, in one comparison.
func isNormal32(b uint32) bool {
	return b&0x7fffffff-0x00800000 < 0x7f000000
}

// widenNormal is widen for normal numbers.
func widenNormal(b uint32) uint64 {
	return uint64(b>>31)<<63 | (uint64(b&0x7fffffff)<<29 + exponentShift)
}

// widen returns the float64 bits of the number with the float32 bits b. It is
// exact for every b; the payload of a NaN and its quiet bit are kept.
func widen(b uint32) uint64 {
	sign := uint64(b>>31) << 63
	rest := uint64(b & 0x7fffffff)
	switch {
	case isNormal32(b):
		return widenNormal(b)
	case rest == 0:
		return sign
	case rest >= 0x7f800000: // infinity, NaN
		return sign | 0x7ff<<52 | (rest&0x007fffff)<<29
	}
	// Subnormal, rest * 2^-149: the highest bit becomes the implicit one.
	top := bits.Len64(rest) - 1
	return sign | uint64(top+1023-149)<<52 | rest<<(52-top)&(1<<52-1)
}

// isNormal64 reports whether the float64 with the bits u has the exponent of a
// normal float32, in one comparison.
func isNormal64(u uint64) bool {
	return u&(1<<63-1)-(exponentShift+(1<<52)) < 254<<52
}

// narrowNormal is narrow where isNormal64 and all of lowBits are 0.
func narrowNormal(u uint64) uint32 {
	return uint32(u>>63)<<31 | uint32((u&(1<<63-1)-exponentShift)>>29)
}

// narrow returns the float32 bits that widen turns into u, and whether there
// are any. If there are none, the result means nothing.
func narrow(u uint64) (uint32, bool) {
	sign := uint32(u>>63) << 31
	rest := u & (1<<63 - 1)
	exponent := int(rest >> 52)
	switch {
	case isNormal64(u):
		return narrowNormal(u), u&lowBits == 0
	case rest == 0:
		return sign, true
	case exponent == 0x7ff: // infinity, NaN
		return sign | 0x7f800000 | uint32(rest>>29)&0x007fffff, u&lowBits == 0
	case exponent > 1023 || exponent < 1023-149:
		return 0, false
	}
	// A subnormal float32 keeps the bits of weight 2^-149 and more.
	fraction := rest&(1<<52-1) | 1<<52
	drop := 52 - (exponent - (1023 - 149))
	return sign | uint32(fraction>>drop), fraction&(1<<drop-1) == 0
}
