package runfile

import (
	"math"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// notKnown stands for a count of a [Summary] that isn't known.
const notKnown = -1

// counts are the counts of the summary, by their keys in files.
func (s *Summary) counts() []struct {
	key string
	n   *int64
} {
	return []struct {
		key string
		n   *int64
	}{
		{"attempted", &s.Attempted}, {"accepted", &s.Accepted},
		{"nonlinear_iterations", &s.NonlinearIterations}, {"linear_iterations", &s.LinearIterations},
	}
}

// record is the summary as files have it: without what isn't known.
func (s *Summary) record() (record.Record, error) {
	b := record.NewBuilder()
	for _, c := range s.counts() {
		if *c.n >= 0 {
			b.Int(c.key, *c.n)
		}
	}
	if !(s.WallTime < 0) {
		b.Float("wall_time", s.WallTime)
	}
	return b.Build()
}

// add counts what a step adds. What isn't known stays so.
func (s *Summary) add(step Summary) {
	more := step.counts()
	for i, c := range s.counts() {
		if *c.n >= 0 {
			*c.n += *more[i].n
		}
	}
	if s.WallTime >= 0 {
		s.WallTime += step.WallTime
	}
}

// readSummaryUntil counts what a run had done by the time of a saved state of an output
// file: what the file's statistics say, if they are from the beginning of the run on.
// Of a later segment the attempts alone are known, if it says how many were before it.
func readSummaryUntil(f *h5.File, sums *storedSums, seg segment, time float64) (Summary, error) {
	unknown := Summary{notKnown, notKnown, notKnown, notKnown, notKnown}
	stats, err := readStatistics(f, nil, sums)
	if err != nil {
		return unknown, err
	}
	n := stats.untilAccepted(time)
	switch {
	case n > 0:
	case seg.start != nil && time <= *seg.start && !seg.joined:
	default:
		return unknown, nil // the steps to the state are not there
	}
	before := seg.attemptsBefore
	if seg.joined && seg.savedBefore != nil && *seg.savedBefore == 0 {
		before = new(int64) // it has the run from its beginning on
	}
	if before == nil {
		return unknown, nil
	}
	if *before > 0 {
		unknown.Attempted = *before + int64(n)
		return unknown, nil
	}
	var s Summary
	for i := range n {
		s.Attempted++
		s.Accepted += boolFlag(stats.Accepted[i])
		s.NonlinearIterations += stats.NonlinearIterations[i]
		s.LinearIterations += stats.LinearIterations[i]
		s.WallTime += stats.WallTime[i]
	}
	for name, to := range map[string]*int64{"nonlinear_iterations": &s.NonlinearIterations, "linear_iterations": &s.LinearIterations} {
		if has, err := f.Exists(h5.Join(statisticsGroup, name)); err != nil {
			return unknown, err
		} else if !has && n > 0 {
			*to = notKnown
		}
	}
	if math.IsNaN(s.WallTime) {
		s.WallTime = notKnown
	}
	return s, nil
}

// untilAccepted is how many attempts there are up to the one that was accepted last at a
// time or before it. 0: none was.
func (s *Statistics) untilAccepted(time float64) int {
	for i, t := range slices.Backward(s.Time) {
		if i < len(s.Accepted) && s.Accepted[i] && t <= time {
			return i + 1
		}
	}
	return 0
}
