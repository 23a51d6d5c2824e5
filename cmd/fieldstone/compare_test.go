package main

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestULPDistance(t *testing.T) {
	tiny := math.SmallestNonzeroFloat64
	for _, c := range []struct {
		name string
		a, b float64
		want uint64
	}{
		{"a value to itself", 1.5, 1.5, 0},
		{"neighbours", 1, math.Nextafter(1, 2), 1},
		{"neighbours across a power of two", 1, math.Nextafter(1, 0), 1},
		{"negative neighbours", -1, math.Nextafter(-1, -2), 1},
		{"both zeros", 0, math.Copysign(0, -1), 0},
		{"zero to the smallest subnormal", 0, tiny, 1},
		{"negative zero to the smallest subnormal", math.Copysign(0, -1), tiny, 1},
		{"across zero", -tiny, tiny, 2},
		{"the largest subnormal to the smallest normal", math.Nextafter(0x1p-1022, 0), 0x1p-1022, 1},
		{"through all subnormals", 0, 0x1p-1022, 1 << 52},
		{"an octave", 1, 2, 1 << 52},
		{"one to minus one", -1, 1, 2 * 1023 << 52},
		{"the largest value to infinity", math.MaxFloat64, math.Inf(1), 1},
		{"the smallest value to negative infinity", -math.MaxFloat64, math.Inf(-1), 1},
		{"infinity to negative infinity", math.Inf(1), math.Inf(-1), 2 * 2047 << 52},
		{"an infinity to itself", math.Inf(1), math.Inf(1), 0},
		{"a NaN to a number", math.NaN(), 1, infinitelyFar},
		{"a NaN to infinity", math.NaN(), math.Inf(1), infinitelyFar},
		{"a NaN to itself", math.NaN(), math.NaN(), 0},
		{"a NaN to one of other bits", math.NaN(), math.Float64frombits(0xfff8000000000001), infinitelyFar},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ulpDistance(c.a, c.b); got != c.want {
				t.Errorf("ulpDistance(%v, %v) = %d, want %d", c.a, c.b, got, c.want)
			}
			if got := ulpDistance(c.b, c.a); got != c.want {
				t.Errorf("ulpDistance(%v, %v) = %d, want %d", c.b, c.a, got, c.want)
			}
		})
	}
}

func TestULPDistanceCountsSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.OneOf(rapid.Float64(), rapid.SampledFrom(special)).
			Filter(func(v float64) bool { return !math.IsNaN(v) }).Draw(t, "from")
		steps := rapid.IntRange(0, 100).Draw(t, "steps")
		to, taken := from, uint64(0)
		for range steps {
			next := math.Nextafter(to, math.Inf(1))
			if next == to {
				break // at infinity
			}
			to = next
			taken++
		}
		if got := ulpDistance(from, to); got != taken {
			t.Errorf("ulpDistance(%v, %v) = %d, want %d", from, to, got, taken)
		}
	})
}

func TestULPDistanceAdds(t *testing.T) {
	value := rapid.Float64().Filter(func(v float64) bool { return !math.IsNaN(v) })
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := value.Draw(t, "a"), value.Draw(t, "b"), value.Draw(t, "c")
		lo, mid, hi := min(a, b, c), max(min(a, b), min(max(a, b), c)), max(a, b, c)
		if got, want := ulpDistance(lo, hi), ulpDistance(lo, mid)+ulpDistance(mid, hi); got != want {
			t.Errorf("from %v over %v to %v: %d, want %d", lo, mid, hi, got, want)
		}
	})
}

// cells draws a field.
func cells(n int) *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.OneOf(rapid.Float64(), rapid.Float64Range(-10, 10), rapid.SampledFrom(special)), n, n)
}

func encode(v []float64) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// naive compares two fields as the documentation says, in words as simple.
func naive(a, b []float64) (differing, nonFinite, first int64, all, finiteOnly distance) {
	sum, n, far := new(big.Float).SetPrec(4096), int64(len(a)), uint64(0)
	first = -1
	for i := range a {
		if math.Float64bits(a[i]) == math.Float64bits(b[i]) {
			continue
		}
		if first < 0 {
			first = int64(i)
		}
		differing++
		if math.IsNaN(a[i]) || math.IsNaN(b[i]) || math.IsInf(a[i], 0) || math.IsInf(b[i], 0) {
			nonFinite++
			far = max(far, ulpDistance(a[i], b[i]))
			continue
		}
		d := math.Abs(a[i] - b[i])
		finiteOnly.maxAbs = max(finiteOnly.maxAbs, d)
		finiteOnly.maxULP = max(finiteOnly.maxULP, ulpDistance(a[i], b[i]))
		x := new(big.Float).SetPrec(4096).SetFloat64(min(d, math.MaxFloat64))
		sum.Add(sum, x.Mul(x, x))
	}
	if n > nonFinite {
		sum.Quo(sum, new(big.Float).SetInt64(n-nonFinite))
		finiteOnly.rms, _ = sum.Sqrt(sum).Float64()
	}
	all = finiteOnly
	if nonFinite > 0 {
		all = distance{maxAbs: math.Inf(1), rms: math.Inf(1), maxULP: max(all.maxULP, far)}
	}
	return
}

func TestComparisonAgreesWithANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "cells")
		a := cells(n).Draw(t, "a")
		b := append([]float64(nil), a...)
		for i := range b {
			if rapid.Bool().Draw(t, "change") {
				b[i] = cells(1).Draw(t, "b")[0]
			}
		}
		c := newComparison(nil)
		for at := 0; at < n; {
			piece := rapid.IntRange(1, n-at).Draw(t, "piece")
			c.add(encode(a[at:at+piece]), encode(b[at:at+piece]))
			at += piece
		}
		differing, nonFinite, first, all, finiteOnly := naive(a, b)
		if c.cells != int64(n) || c.differing != differing || c.nonFinite != nonFinite || c.first != first {
			t.Errorf("cells %d, differing %d, not finite %d, first %d; want %d, %d, %d, %d",
				c.cells, c.differing, c.nonFinite, c.first, n, differing, nonFinite, first)
		}
		if c.equal() != (differing == 0) {
			t.Errorf("equal is %t with %d differing cells", c.equal(), differing)
		}
		if first >= 0 && (math.Float64bits(c.valA) != math.Float64bits(a[first]) || math.Float64bits(c.valB) != math.Float64bits(b[first])) {
			t.Errorf("first values %v and %v, want %v and %v", c.valA, c.valB, a[first], b[first])
		}
		if got := c.distance(); !near(got, all) {
			t.Errorf("distance %+v, want %+v", got, all)
		}
		if got := c.finiteDistance(); !near(got, finiteOnly) {
			t.Errorf("finite distance %+v, want %+v", got, finiteOnly)
		}
	})
}

// near allows for the rounding of the root mean square. A difference beyond the
// largest float64 is infinite, and so is then its root mean square.
func near(a, b distance) bool {
	if math.IsInf(a.maxAbs, 1) && math.IsInf(b.maxAbs, 1) {
		return math.IsInf(a.rms, 1) && a.maxULP == b.maxULP
	}
	return a.maxAbs == b.maxAbs && a.maxULP == b.maxULP &&
		math.Abs(a.rms-b.rms) <= 1e-13*b.rms+math.SmallestNonzeroFloat64
}

func TestRMSOfExtremeDifferences(t *testing.T) {
	for _, c := range []struct {
		name string
		d    []float64
		want float64
	}{
		{"squares beyond the largest float64", []float64{3e200, 4e200}, 3.5355339059327378e200},
		{"squares below the smallest float64", []float64{3e-200, 4e-200}, 3.5355339059327378e-200},
		{"subnormal differences", []float64{3e-320, 3e-320}, 3e-320},
		{"large beside small", []float64{2e200, 1e-200, 1, 0}, 1e200},
		{"the largest difference", []float64{math.MaxFloat64}, math.MaxFloat64},
		{"differences beyond the largest float64", []float64{math.Inf(1), 1, math.Inf(1)}, math.Inf(1)},
		{"none", []float64{0, 0}, 0},
		{"no cells", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sumOfSquares
			for _, v := range c.d {
				s.add(v)
			}
			if got := s.rms(int64(len(c.d))); got != c.want && !(math.Abs(got-c.want) <= 1e-14*c.want+math.SmallestNonzeroFloat64) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestSumsOfManyCellsKeepTheirPrecision(t *testing.T) {
	var s sumOfSquares
	const n = 1 << 20
	for range n {
		s.add(0.1)
	}
	if got := s.rms(n); math.Abs(got-0.1) > 2e-17 {
		t.Errorf("the rms of %d times 0.1 is %v", n, got)
	}
}

func BenchmarkComparison(b *testing.B) {
	const n = 1 << 17
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = float64(i), float64(i)+0.5
	}
	for _, c := range []struct {
		name string
		a, b []byte
	}{{"equal", encode(x), encode(x)}, {"different", encode(x), encode(y)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.a)))
			for b.Loop() {
				newComparison(nil).add(c.a, c.b)
			}
		})
	}
}
