package main

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
	"github.com/fieldstone-io/fieldstone/internal/samerun"
)

// infinitelyFar is the ULP distance of a NaN to everything but itself. No two
// numbers are that far apart.
const infinitelyFar = math.MaxUint64

// ulpDistance is the number of steps between neighbouring float64 values that
// lead from a to b: 0 for -0 and +0, and the infinities are the neighbours of
// the largest finite values. A NaN is infinitely far from all values of other
// bits.
func ulpDistance(a, b float64) uint64 {
	if math.Float64bits(a) == math.Float64bits(b) {
		return 0
	}
	if math.IsNaN(a) || math.IsNaN(b) {
		return infinitelyFar
	}
	i, j := ordinal(a), ordinal(b)
	if i < j {
		i, j = j, i
	}
	return uint64(i) - uint64(j)
}

// ordinal numbers the values that aren't NaN in their order; both zeros are 0.
func ordinal(v float64) int64 {
	i := int64(math.Float64bits(v))
	if i < 0 {
		i = math.MinInt64 - i
	}
	return i
}

// distance measures how far the cells of two fields are apart.
type distance struct {
	maxAbs, rms float64
	maxULP      uint64
}

// sumOfSquares is a sum in three parts, by the magnitude of the values, so that
// the square of neither a large nor a small one leaves the range of float64.
type sumOfSquares struct{ small, middle, large kahan }

const (
	smallest = 0x1p-500
	largest  = 0x1p500
	// rescale brings what isn't in between there.
	rescale = 0x1p600
)

func (s *sumOfSquares) add(v float64) {
	switch v = math.Abs(v); {
	case v >= smallest && v <= largest:
		s.middle.add(v * v)
	case v > largest:
		v /= rescale
		s.large.add(v * v)
	default:
		v *= rescale
		s.small.add(v * v)
	}
}

// rms is the root of the mean of n squares.
func (s *sumOfSquares) rms(n int64) float64 {
	count := float64(n)
	switch {
	case n == 0:
		return 0
	case s.large.sum > 0:
		return math.Sqrt((s.large.sum+s.middle.sum/rescale/rescale)/count) * rescale
	case s.middle.sum > 0:
		return math.Sqrt((s.middle.sum + s.small.sum/rescale/rescale) / count)
	}
	return math.Sqrt(s.small.sum/count) / rescale
}

// kahan is a sum that doesn't lose the low bits of its terms: a field has
// billions of cells.
type kahan struct{ sum, lost float64 }

func (k *kahan) add(v float64) {
	v -= k.lost
	t := k.sum + v
	k.lost = (t - k.sum) - v
	if math.IsNaN(k.lost) {
		k.lost = 0 // the sum is infinite, and stays so
	}
	k.sum = t
}

// comparison is what two fields of the same cells differ in.
type comparison struct {
	cells     int64
	differing int64 // cells of different bits
	nonFinite int64 // differing cells with a NaN or an infinity on at least one side
	// first is the index, x fastest, of the first cell that counts as differing, with
	// the values of both sides; -1 if there is none.
	first      int64
	valA, valB float64

	maxAbs  float64 // of the differing cells with two finite values
	maxULP  uint64  // likewise
	squares sumOfSquares

	farULP uint64 // largest distance of the cells that nonFinite counts

	// maxima are those by a tolerance, with the indices of cells. With one, first is the
	// first cell beyond it.
	maxima *samerun.Maxima[int64]
}

// newComparison compares within a tolerance, or all bits if it is nil.
func newComparison(t *samerun.Tolerance) *comparison {
	c := &comparison{first: -1}
	if t != nil {
		c.maxima = &samerun.Maxima[int64]{Tolerance: *t}
	}
	return c
}

// equal reports whether all cells so far have the same bits.
func (c *comparison) equal() bool { return c.differing == 0 }

// same reports whether no cell so far counts as a difference.
func (c *comparison) same() bool { return c.equal() || c.maxima != nil && c.maxima.Beyond == 0 }

// add compares the next cells. a and b are little-endian float64 of equal
// length.
func (c *comparison) add(a, b []byte) {
	const size = 8
	start := c.cells
	c.cells += int64(len(a) / size)
	if bytes.Equal(a, b) {
		return
	}
	for i := 0; i+size <= len(a); i += size {
		u, v := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
		if u == v {
			continue
		}
		x, y := math.Float64frombits(u), math.Float64frombits(v)
		at := start + int64(i/size)
		if within := c.maxima != nil && c.maxima.Add(x, y, at); !within && c.first < 0 {
			c.first, c.valA, c.valB = at, x, y
		}
		c.differing++
		ulp := ulpDistance(x, y)
		if !nonfinite.Finite(x) || !nonfinite.Finite(y) {
			c.nonFinite++
			c.farULP = max(c.farULP, ulp)
			continue
		}
		abs := math.Abs(x - y)
		c.maxAbs = max(c.maxAbs, abs)
		c.maxULP = max(c.maxULP, ulp)
		c.squares.add(abs)
	}
}

// finiteDistance leaves out the cells that nonFinite counts.
func (c *comparison) finiteDistance() distance {
	return distance{maxAbs: c.maxAbs, rms: c.squares.rms(c.cells - c.nonFinite), maxULP: c.maxULP}
}

// distance is that over all cells. A NaN or an infinity is infinitely far from
// all values of other bits, so that a difference that involves one is never
// within a tolerance; in ULPs only a NaN is.
func (c *comparison) distance() distance {
	if c.nonFinite == 0 {
		return c.finiteDistance()
	}
	return distance{maxAbs: math.Inf(1), rms: math.Inf(1), maxULP: max(c.maxULP, c.farULP)}
}
