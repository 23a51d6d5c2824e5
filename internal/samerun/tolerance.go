package samerun

import (
	"fmt"
	"math"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
)

// A Tolerance is how far two numbers may be apart. Both parts are finite and at least 0.
type Tolerance struct{ Absolute, Relative float64 }

// Check returns an error that names the part which is no tolerance.
func (t Tolerance) Check() error {
	for _, part := range []struct {
		name  string
		value float64
	}{{"absolute", t.Absolute}, {"relative", t.Relative}} {
		if !(part.value >= 0) || math.IsInf(part.value, 1) {
			return fmt.Errorf("the %s tolerance is %v, want a finite number of at least 0", part.name, part.value)
		}
	}
	return nil
}

// String is the condition that two numbers must meet.
func (t Tolerance) String() string {
	const difference = "|a - b| <= "
	relative := text(t.Relative) + " max(|a|, |b|)"
	switch {
	case t.Relative == 0:
		return difference + text(t.Absolute)
	case t.Absolute == 0:
		return difference + relative
	}
	return difference + text(t.Absolute) + " + " + relative
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Within reports whether |a - b| <= Absolute + Relative max(|a|, |b|), so that the order
// of a and b plays no part. NaNs are within any tolerance of each other, and so are
// infinities of one sign. From everything else they are infinitely far.
func (t Tolerance) Within(a, b float64) bool {
	switch {
	case a == b || math.IsNaN(a) && math.IsNaN(b):
		return true
	case !nonfinite.Finite(a) || !nonfinite.Finite(b):
		return false
	}
	d, m := math.Abs(a-b), max(math.Abs(a), math.Abs(b))
	if math.IsInf(d, 1) {
		// The difference of two numbers of this size is at most twice the larger one.
		return math.Abs(a/4-b/4) <= t.Absolute/4+t.Relative*(m/4)
	}
	return d <= t.Absolute+t.Relative*m
}

// relative is |a - b| / max(|a|, |b|) of finite numbers, from 0 to 2.
func relative(a, b float64) float64 {
	m := max(math.Abs(a), math.Abs(b))
	switch d := math.Abs(a - b); {
	case d == 0:
		return 0
	case math.IsInf(d, 1):
		return math.Abs(a/4-b/4) / (m / 4)
	default:
		return d / m
	}
}

// Maxima are what some pairs of numbers are apart at most, with the places P of these.
type Maxima[P any] struct {
	Tolerance Tolerance
	Beyond    int64 // pairs that are not within the tolerance
	NonFinite int64 // of them, those with a NaN or an infinity, which Abs and Rel leave out

	Abs, Rel     float64 // largest absolute and relative difference
	AbsAt, RelAt P       // the first pairs with them, where they aren't 0
}

// Add takes a pair at some place, and reports whether it is within the tolerance.
func (m *Maxima[P]) Add(a, b float64, at P) bool {
	within := m.Tolerance.Within(a, b)
	if !within {
		m.Beyond++
	}
	if !nonfinite.Finite(a) || !nonfinite.Finite(b) {
		if !within {
			m.NonFinite++
		}
		return within
	}
	if d := math.Abs(a - b); d > m.Abs {
		m.Abs, m.AbsAt = d, at
	}
	if r := relative(a, b); r > m.Rel {
		m.Rel, m.RelAt = r, at
	}
	return within
}
