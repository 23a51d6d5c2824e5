package stats

import (
	"math"
	"testing"
)

func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"one value is every quantile", []float64{7}, 0.25, 7},
		{"the median of an odd number is the middle one", []float64{9, 1, 5}, 0.5, 5},
		{"the median of an even number is between the middle ones", []float64{4, 1, 3, 2}, 0.5, 2.5},
		{"quartiles are interpolated", []float64{1, 2, 3, 4}, 0.25, 1.75},
		{"the ends are the extremes", []float64{3, 1, 2}, 1, 3},
		{"nothing has no quantile", nil, 0.5, math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Quantile(c.values, c.q)
			if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	values := []float64{3, 1, 2}
	Median(values)
	if values[0] != 3 {
		t.Error("the values were sorted in place")
	}
}

func TestSpreadIsTheQuartileDistanceOverTheMedian(t *testing.T) {
	if got := Spread([]float64{10, 20, 30, 40, 50}); got != 20.0/30 {
		t.Errorf("got %v", got)
	}
	if got := Spread([]float64{5, 5, 5}); got != 0 {
		t.Errorf("equal values have a spread of %v", got)
	}
}

func TestRatioIsThatOfRates(t *testing.T) {
	ratio, spread := Ratio([]float64{1, 1, 1}, []float64{2, 2, 2})
	if ratio != 2 || spread != 0 {
		t.Errorf("half the time is a ratio of %v, spread %v", ratio, spread)
	}
	// A machine that slows down for both changes the times, not the ratios.
	ratio, spread = Ratio([]float64{1, 2, 4}, []float64{1.5, 3, 6})
	if ratio != 1.5 || spread != 0 {
		t.Errorf("ratio %v, spread %v", ratio, spread)
	}
	ratio, spread = Ratio([]float64{1, 1, 1, 9}, []float64{1, 1, 1})
	if ratio != 1 || spread != 0 {
		t.Errorf("of unequal numbers: ratio %v, spread %v", ratio, spread)
	}
}

func TestExponent(t *testing.T) {
	x := []float64{1, 2, 4, 8, 16}
	for _, p := range []float64{0, 0.5, 1, 2} {
		var y []float64
		for _, v := range x {
			y = append(y, 3*math.Pow(v, p))
		}
		if got := Exponent(x, y); math.Abs(got-p) > 1e-12 {
			t.Errorf("the exponent of x^%v is %v", p, got)
		}
	}
	// Symmetric errors cancel.
	if got := Exponent([]float64{1, 1, 10, 10}, []float64{2, 0.5, 20, 5}); math.Abs(got-1) > 1e-12 {
		t.Errorf("got %v", got)
	}
	for _, x := range [][]float64{nil, {2}, {3, 3, 3}} {
		if got := Exponent(x, make([]float64, len(x))); !math.IsNaN(got) {
			t.Errorf("points at %v give %v", x, got)
		}
	}
}
