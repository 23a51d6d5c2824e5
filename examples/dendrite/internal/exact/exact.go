// Package exact adds float64s without rounding, so that a sum does not depend on the
// order of its terms, nor on which rank has which of them.
//
// A [Sum] is a fixed-point number that is wide enough for every float64. It is
// rounded once, when all terms are in it.
package exact

import (
	"context"
	"math"
	"math/big"

	"github.com/fieldstone-io/fieldstone/comm"
)

const (
	digitBits = 32
	mantissa  = 52        // bits of it that a float64 stores
	exponents = 0x7ff     // the exponent of infinities and NaN
	lowest    = 1022 + 52 // the last bit of the smallest float64 is 2^-lowest
	// The largest one ends below 2^2098 of these. The rest is for sums.
	digits = 2098/digitBits + 3
	// Terms from one carry to the next: digits stay below 2^63.
	between = 1 << 30
)

// A Sum adds numbers exactly. The zero Sum is empty.
type Sum struct {
	// Digit k counts 2^(32k - lowest). Between carries a digit may be larger than
	// 32 bits, or negative.
	digit [digits]int64
	terms int // since the last carry

	nan, above, below int64 // terms that are NaN, +Inf, -Inf
}

// Add adds a term.
func (s *Sum) Add(x float64) {
	bits := math.Float64bits(x)
	exponent := bits >> mantissa & exponents
	m := bits & (1<<mantissa - 1)
	switch exponent {
	case 0: // a denormal number has the exponent of the smallest normal ones
		exponent = 1
	case exponents:
		s.addSpecial(x)
		return
	default:
		m |= 1 << mantissa
	}
	at := exponent - 1
	k, shift := at/digitBits, at%digitBits
	// 53 bits, shifted by up to 31, lie in three digits.
	low, high := m<<shift, m>>(64-shift) // a shift by 64 gives 0
	d0, d1, d2 := int64(low&math.MaxUint32), int64(low>>digitBits), int64(high)
	if bits>>63 != 0 {
		d0, d1, d2 = -d0, -d1, -d2
	}
	s.digit[k] += d0
	s.digit[k+1] += d1
	s.digit[k+2] += d2
	if s.terms++; s.terms == between {
		s.carry()
	}
}

func (s *Sum) addSpecial(x float64) {
	switch {
	case math.IsNaN(x):
		s.nan++
	case x > 0:
		s.above++
	default:
		s.below++
	}
}

// carry brings all digits but the first one to 0 up to 2^32 - 1.
func (s *Sum) carry() {
	s.terms = 1 // what is there counts as a term: each digit is one's at most
	for k := range digits - 1 {
		over := s.digit[k] >> digitBits // rounds down
		s.digit[k] -= over << digitBits
		s.digit[k+1] += over
	}
}

// Float64 returns the sum rounded to the nearest float64, to the even one of two; an
// infinity if it is too large. The sum of no terms, and any other that is zero, is +0.
// With infinite terms the sum is infinite, and NaN if they are of both signs or one
// term is NaN.
func (s *Sum) Float64() float64 {
	switch {
	case s.nan > 0 || s.above > 0 && s.below > 0:
		return math.NaN()
	case s.above > 0:
		return math.Inf(1)
	case s.below > 0:
		return math.Inf(-1)
	}
	total, term := new(big.Int), new(big.Int)
	for k := digits - 1; k >= 0; k-- {
		total.Lsh(total, digitBits)
		total.Add(total, term.SetInt64(s.digit[k]))
	}
	// The precision is that of the integer, so that only Float64 rounds.
	f := new(big.Float).SetInt(total)
	f.SetMantExp(f, -lowest)
	x, _ := f.Float64()
	return x
}

// words are the numbers of a sum that the ranks add.
const words = digits + 3

// Reduce adds the sums of all ranks: each rank's sums[i] becomes the sum over the
// ranks, the same on all of them. All ranks pass the same number. It is collective.
func Reduce(ctx context.Context, c *comm.Comm, sums []Sum) error {
	all := make([]int64, 0, len(sums)*words)
	for i := range sums {
		s := &sums[i]
		s.carry() // so that digits of 2^31 ranks can be added
		all = append(append(all, s.digit[:]...), s.nan, s.above, s.below)
	}
	if err := c.AllReduceInt64(ctx, comm.Sum, all); err != nil {
		return err
	}
	for i := range sums {
		s := &sums[i]
		all = all[copy(s.digit[:], all):]
		s.nan, s.above, s.below = all[0], all[1], all[2]
		all = all[3:]
		s.carry()
	}
	return nil
}
