package publish

import (
	"context"
	"encoding/binary"
	"math"
)

// Stats are simple numbers about a field. Min, Max and Mean are those of the
// cells that aren't NaN, and NaN if there are none.
type Stats struct {
	Cells, NaNs    int64
	Min, Max, Mean float64
}

// Stats reads a field in a stream, x fastest, and returns its extremes and its
// mean. The result depends on the cells only. The mean is that of a compensated
// sum: it is accurate to a few units in the last place of the largest
// magnitude, and it doesn't overflow.
//
// progress, if not nil, is called after each piece with the number of bytes that
// are done and to be done.
func (b *Bundle) Stats(ctx context.Context, id string, progress func(done, total int64)) (Stats, error) {
	f, err := b.open(id)
	if err != nil {
		return Stats{}, err
	}
	a, done := newAccumulator(), int64(0)
	err = b.stream(ctx, f, fieldPath(id), b.fieldBytes(), b.buffer(), func(piece []byte) {
		for i := 0; i < len(piece); i += 8 {
			a.add(math.Float64frombits(binary.LittleEndian.Uint64(piece[i:])))
		}
		done += int64(len(piece))
		if progress != nil {
			progress(done, b.fieldBytes())
		}
	})
	if err != nil {
		return Stats{}, err
	}
	return a.stats(), nil
}

// accumulator keeps values near the largest float64 apart and scaled down, so
// that their sum doesn't overflow; scaling all of them would cost the small ones
// their last bits.
type accumulator struct {
	cells, nans int64
	min, max    float64
	small, huge neumaier
	up, down    bool // +Inf, -Inf seen
}

const (
	hugeLimit = 0x1p900
	hugeScale = 0x1p-100
)

func newAccumulator() *accumulator {
	return &accumulator{min: math.Inf(1), max: math.Inf(-1)}
}

func (a *accumulator) add(v float64) {
	a.cells++
	if math.IsNaN(v) {
		a.nans++
		return
	}
	a.min = min(a.min, v)
	a.max = max(a.max, v)
	switch m := math.Abs(v); {
	case m < hugeLimit:
		a.small.add(v)
	case math.IsInf(v, 1):
		a.up = true
	case math.IsInf(v, -1):
		a.down = true
	default:
		a.huge.add(v * hugeScale)
	}
}

func (a *accumulator) stats() Stats {
	s := Stats{Cells: a.cells, NaNs: a.nans, Min: a.min, Max: a.max}
	n := float64(a.cells - a.nans)
	switch {
	case n == 0, a.up && a.down:
		s.Mean = math.NaN()
	case a.up:
		s.Mean = math.Inf(1)
	case a.down:
		s.Mean = math.Inf(-1)
	case a.huge == (neumaier{}):
		s.Mean = a.small.value() / n
	default:
		s.Mean = (a.huge.value()/n + a.small.value()/n*hugeScale) / hugeScale
	}
	if n == 0 {
		s.Min, s.Max = math.NaN(), math.NaN()
	}
	return s
}

// neumaier is a sum with the rounding errors of its additions beside it
// (A. Neumaier, ZAMM 54 (1974) 39).
type neumaier struct{ sum, lost float64 }

func (s *neumaier) add(v float64) {
	t := s.sum + v
	if math.Abs(s.sum) >= math.Abs(v) {
		s.lost += (s.sum - t) + v
	} else {
		s.lost += (v - t) + s.sum
	}
	s.sum = t
}

func (s neumaier) value() float64 { return s.sum + s.lost }
