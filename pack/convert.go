package pack

import "math/bits"

// The conversions between float32 and float64 are integer arithmetic on the
// bits. The hardware's would lose what a restart must keep: it turns a
// signalling NaN into a quiet one, and a solver built for speed may have told
// its threads to flush subnormal numbers to zero.

const (
	exponentShift = 1023 - 127 // difference of the two exponent biases
	lowBits       = 1<<29 - 1  // fraction bits that a float32 lacks
)

// widen returns the float64 bits of the number with the float32 bits b. It is
// exact for every b; the payload of a NaN and its quiet bit are kept.
func widen(b uint32) uint64 {
	sign := uint64(b>>31) << 63
	rest := uint64(b & 0x7fffffff)
	// Exponents 1 to 254, in one comparison.
	if rest-0x00800000 < 0x7f000000 {
		return sign | (rest<<29 + exponentShift<<52)
	}
	return sign | widenRare(rest)
}

// widenRare is widen for zero, subnormal numbers, infinities and NaNs.
func widenRare(rest uint64) uint64 {
	switch {
	case rest == 0:
		return 0
	case rest >= 0x7f800000:
		return 0x7ff<<52 | (rest&0x007fffff)<<29
	}
	// rest * 2^-149: the highest bit becomes the implicit one.
	top := bits.Len64(rest) - 1
	return uint64(top+1023-149)<<52 | rest<<(52-top)&(1<<52-1)
}

// narrow returns the float32 bits that widen turns into u, and whether there
// are any. If there are none, the result means nothing.
func narrow(u uint64) (uint32, bool) {
	sign := uint32(u>>63) << 31
	rest := u & (1<<63 - 1)
	// Exponents of normal float32 numbers, in one comparison.
	if rest-(exponentShift+1)<<52 < 254<<52 {
		return sign | uint32((rest-exponentShift<<52)>>29), rest&lowBits == 0
	}
	v, ok := narrowRare(rest)
	return sign | v, ok
}

// narrowRare is narrow for whatever is not a normal float32.
func narrowRare(rest uint64) (uint32, bool) {
	exponent := int(rest >> 52)
	switch {
	case rest == 0:
		return 0, true
	case exponent == 0x7ff:
		return 0x7f800000 | uint32(rest>>29)&0x007fffff, rest&lowBits == 0
	case exponent > exponentShift || exponent < 1023-149:
		return 0, false
	}
	// A subnormal float32 keeps the bits of weight 2^-149 and more.
	fraction := rest&(1<<52-1) | 1<<52
	drop := 52 - (exponent - (1023 - 149))
	return uint32(fraction >> drop), fraction&(1<<drop-1) == 0
}
