package samerun

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
)

func TestWithin(t *testing.T) {
	nan, inf, most, least := math.NaN(), math.Inf(1), math.MaxFloat64, math.SmallestNonzeroFloat64
	for _, c := range []struct {
		name string
		t    Tolerance
		a, b float64
		want bool
	}{
		{"nothing is within 0 but the same", Tolerance{}, 1, math.Nextafter(1, 2), false},
		{"the same", Tolerance{}, 1, 1, true},
		{"both zeros", Tolerance{}, 0, math.Copysign(0, -1), true},
		{"at the absolute limit", Tolerance{Absolute: 0.25}, 1, 1.25, true},
		{"beyond the absolute limit", Tolerance{Absolute: 0.25}, 1, math.Nextafter(1.25, 2), false},
		{"at the relative limit, of the larger one", Tolerance{Relative: 0.5}, 1, 2, true},
		{"the same the other way round", Tolerance{Relative: 0.5}, 2, 1, true},
		{"beyond the relative limit", Tolerance{Relative: 0.5}, 0.99, 2, false},
		{"both parts add up", Tolerance{0.5, 0.25}, 1, 2, true},
		{"of other signs", Tolerance{Relative: 1}, -1, 1, false},
		{"of other signs, twice", Tolerance{Relative: 2}, -1, 1, true},
		{"a relative tolerance is none from 0", Tolerance{Relative: 0.5}, 0, least, false},
		{"subnormal numbers", Tolerance{Absolute: least}, 0, least, true},
		{"NaN and NaN", Tolerance{}, nan, math.Float64frombits(0xfff8000000000001), true},
		{"NaN and a number", Tolerance{most, most}, nan, 1, false},
		{"a number and NaN", Tolerance{most, most}, 1, nan, false},
		{"NaN and an infinity", Tolerance{most, most}, nan, inf, false},
		{"infinities", Tolerance{}, -inf, -inf, true},
		{"infinities of other signs", Tolerance{most, most}, -inf, inf, false},
		{"an infinity and a number", Tolerance{most, most}, inf, most, false},
		{"a difference beyond the numbers there are", Tolerance{Relative: 1.9}, most, -most, false},
		{"the same, within", Tolerance{Relative: 2}, most, -most, true},
		{"a difference beyond the numbers, absolutely", Tolerance{Absolute: most}, most, -most, false},
		{"half of it", Tolerance{Absolute: most}, most / 2, -most / 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.t.Within(c.a, c.b); got != c.want {
				t.Errorf("%v of %v and %v: %t", c.t, c.a, c.b, got)
			}
		})
	}
}

func TestWithinIsSymmetric(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, -math.MaxFloat64}))
	positive := rapid.Float64Range(0, math.MaxFloat64)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		small := Tolerance{positive.Draw(t, "absolute"), positive.Draw(t, "relative")}
		if small.Within(a, b) != small.Within(b, a) || small.Within(a, b) != small.Within(-a, -b) {
			t.Errorf("%v of %v and %v", small, a, b)
		}
		if large := (Tolerance{small.Absolute, math.MaxFloat64}); small.Within(a, b) && !large.Within(a, b) {
			t.Errorf("%v and %v are within %v, not within %v", a, b, small, large)
		}
		if r := relative(a, b); nonfinite.Finite(a) && nonfinite.Finite(b) && !(r >= 0 && r <= 2) {
			t.Errorf("%v and %v are %v apart", a, b, r)
		}
	})
}

func TestMaxima(t *testing.T) {
	m := Maxima[string]{Tolerance: Tolerance{Absolute: 0.5}}
	for _, c := range []struct {
		a, b   float64
		at     string
		within bool
	}{
		{1, 1.25, "first", true},
		{1000, 1001, "largest", false},
		{2000, 2001, "as large", false},
		{0, 1e-9, "relatively largest", true},
		{0, math.NaN(), "not finite", false},
		{math.Inf(1), math.Inf(-1), "not finite", false},
		{math.NaN(), math.NaN(), "equal", true},
		{-math.MaxFloat64, -math.MaxFloat64, "equal", true},
	} {
		if got := m.Add(c.a, c.b, c.at); got != c.within {
			t.Errorf("%v and %v: %t", c.a, c.b, got)
		}
	}
	want := Maxima[string]{m.Tolerance, 4, 2, 1, 1, "largest", "relatively largest"}
	if m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
}

func TestTolerancesThatAreNone(t *testing.T) {
	for _, bad := range []float64{-1, math.Inf(1), math.Inf(-1), math.NaN(), -math.SmallestNonzeroFloat64} {
		if (Tolerance{Absolute: bad}).Check() == nil || (Tolerance{Relative: bad}).Check() == nil {
			t.Errorf("%v", bad)
		}
	}
	if err := (Tolerance{0, math.MaxFloat64}).Check(); err != nil {
		t.Error(err)
	}
}
