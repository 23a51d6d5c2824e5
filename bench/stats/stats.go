// Package stats has the arithmetic of the report.
package stats

import (
	"math"
	"slices"
)

// Quantile is the q-quantile of the values, 0 to 1, interpolated; NaN if there are
// none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Clone(values)
	slices.Sort(s)
	at := q * float64(len(s)-1)
	i := min(int(at), len(s)-1)
	j := min(i+1, len(s)-1)
	return s[i] + (at-float64(i))*(s[j]-s[i])
}

// Median is the middle of the values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Spread is the distance of the quartiles over the median.
func Spread(values []float64) float64 {
	return (Quantile(values, 0.75) - Quantile(values, 0.25)) / Median(values)
}

// Ratio compares the times of two contestants that took turns: the ratio of their
// rates (1: ours is as fast as theirs, 2: twice as fast) by the medians, and the
// spread of the ratios within the repetitions.
func Ratio(ours, theirs []float64) (ratio, spread float64) {
	n := min(len(ours), len(theirs))
	pairs := make([]float64, n)
	for i := range pairs {
		pairs[i] = theirs[i] / ours[i]
	}
	return Median(theirs) / Median(ours), Spread(pairs)
}

// Exponent fits y = a·x^p through the points, by least squares of the logarithms,
// and returns p; NaN for fewer than two different x.
func Exponent(x, y []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range x {
		lx, ly := math.Log(x[i]), math.Log(y[i])
		n++
		sx += lx
		sy += ly
		sxx += lx * lx
		sxy += lx * ly
	}
	d := n*sxx - sx*sx
	if n < 2 || d <= 1e-12*n*sxx {
		return math.NaN()
	}
	return (n*sxy - sx*sy) / d
}
