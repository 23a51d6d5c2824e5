package main

import (
	"bytes"
	"encoding/binary"
	"math"
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
	maxAbs  float64
	maxULP  uint64
	squares sumOfSquares
}

func (d *distance) add(abs float64, ulp uint64) {
	d.maxAbs = max(d.maxAbs, abs)
	d.maxULP = max(d.maxULP, ulp)
	d.squares.add(abs)
}

// rms is the root of the mean square over a number of cells.
func (d *distance) rms(cells int64) float64 {
	if cells == 0 {
		return 0
	}
	return d.squares.root(cells)
}

// sumOfSquares is scale² · sum, so that the square of neither a large nor a
// small value leaves the range of float64.
type sumOfSquares struct {
	scale, sum float64
	lost       float64 // what rounding took from sum
}

func (s *sumOfSquares) add(v float64) {
	switch {
	case v == 0:
	case math.IsInf(v, 0) || math.IsInf(s.scale, 0):
		s.scale = math.Inf(1)
	case v > s.scale:
		r := s.scale / v
		s.scale, s.sum, s.lost = v, s.sum*r*r, s.lost*r*r
		s.accumulate(1)
	default:
		r := v / s.scale
		s.accumulate(r * r)
	}
}

// accumulate is Kahan's summation: a field has billions of cells.
func (s *sumOfSquares) accumulate(v float64) {
	v -= s.lost
	t := s.sum + v
	s.lost = (t - s.sum) - v
	s.sum = t
}

func (s *sumOfSquares) root(n int64) float64 {
	if s.scale == 0 || math.IsInf(s.scale, 0) {
		return s.scale
	}
	return s.scale * math.Sqrt(s.sum/float64(n))
}

// comparison is what two fields of the same cells differ in.
type comparison struct {
	cells     int64
	differing int64 // cells of different bits
	nonFinite int64 // differing cells with a NaN or an infinity on at least one side
	// first is the index, x fastest, of the first differing cell, with the values
	// of both sides; -1 if there is none.
	first      int64
	valA, valB float64
	// all is the distance over all cells. A NaN is infinitely far from all values
	// of other bits, so that a difference that involves one is never within a
	// tolerance. finite leaves out the cells that nonFinite counts.
	all, finite distance
}

func newComparison() *comparison { return &comparison{first: -1} }

// equal reports whether all cells so far have the same bits.
func (c *comparison) equal() bool { return c.differing == 0 }

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
		if c.first < 0 {
			c.first, c.valA, c.valB = start+int64(i/size), x, y
		}
		c.differing++
		abs, ulp := math.Abs(x-y), ulpDistance(x, y)
		if math.IsNaN(abs) {
			abs = math.Inf(1)
		}
		c.all.add(abs, ulp)
		if finite(x) && finite(y) {
			c.finite.add(abs, ulp)
		} else {
			c.nonFinite++
		}
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
