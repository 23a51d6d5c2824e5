package runfile

import (
	"math"
	"slices"
)

// Attempts returns the number of attempted steps.
func (s *Statistics) Attempts() int {
	return max(len(s.Time), len(s.StepLength), len(s.Accepted), len(s.ErrorEstimate),
		len(s.NonlinearIterations), len(s.LinearIterations), len(s.WallTime), len(s.Outcome))
}

// hasEntries reports whether there is any.
func (s *Statistics) hasEntries() bool { return s.Attempts() > 0 || len(s.IterationAttempt) > 0 }

// unknownOutcome is the outcome of attempts whose file doesn't tell.
const unknownOutcome = "unknown"

// filled returns the statistics with the defaults of the fields that are empty.
func (s *Statistics) filled() Statistics {
	n := s.Attempts()
	f := *s
	f.Time = orDefault(s.Time, n, math.NaN())
	f.StepLength = orDefault(s.StepLength, n, math.NaN())
	f.Accepted = orDefault(s.Accepted, n, false)
	f.ErrorEstimate = orDefault(s.ErrorEstimate, n, math.NaN())
	f.NonlinearIterations = orDefault(s.NonlinearIterations, n, 0)
	f.LinearIterations = orDefault(s.LinearIterations, n, 0)
	f.WallTime = orDefault(s.WallTime, n, math.NaN())
	f.Outcome = orDefault(s.Outcome, n, unknownOutcome)
	return f
}

func orDefault[T any](v []T, n int, otherwise T) []T {
	if len(v) > 0 {
		return v
	}
	return slices.Repeat([]T{otherwise}, n)
}

// first returns the statistics of the first n attempts, of which s has as many at
// least. All fields of attempts are filled.
func (s *Statistics) first(n int) Statistics {
	f := *s
	f.Time, f.StepLength, f.Accepted = s.Time[:n], s.StepLength[:n], s.Accepted[:n]
	f.ErrorEstimate, f.NonlinearIterations = s.ErrorEstimate[:n], s.NonlinearIterations[:n]
	f.LinearIterations, f.WallTime, f.Outcome = s.LinearIterations[:n], s.WallTime[:n], s.Outcome[:n]
	f.others = rowsOf(s.others, false, span(0, n))
	return f.keepIterations(func(attempt int64) bool { return attempt <= int64(n) })
}

// from returns the statistics of the attempts after the first n, renumbered. All
// fields of attempts are filled.
func (s *Statistics) from(n int) Statistics {
	f := *s
	f.Time, f.StepLength, f.Accepted = s.Time[n:], s.StepLength[n:], s.Accepted[n:]
	f.ErrorEstimate, f.NonlinearIterations = s.ErrorEstimate[n:], s.NonlinearIterations[n:]
	f.LinearIterations, f.WallTime, f.Outcome = s.LinearIterations[n:], s.WallTime[n:], s.Outcome[n:]
	f.others = rowsOf(s.others, false, span(n, len(s.Time)))
	f = f.keepIterations(func(attempt int64) bool { return attempt > int64(n) })
	for i := range f.IterationAttempt {
		f.IterationAttempt[i] -= int64(n)
	}
	return f
}

// until returns the statistics of the attempts that aimed at a time or an earlier
// one. All fields of attempts are filled.
func (s *Statistics) until(time float64) Statistics {
	var f Statistics
	number := make([]int64, len(s.Time)+1) // new numbers of the attempts that stay
	var stay []int
	for i, t := range s.Time {
		if t > time {
			continue
		}
		f.Time, f.StepLength, f.Accepted = append(f.Time, t), append(f.StepLength, s.StepLength[i]), append(f.Accepted, s.Accepted[i])
		f.ErrorEstimate = append(f.ErrorEstimate, s.ErrorEstimate[i])
		f.NonlinearIterations = append(f.NonlinearIterations, s.NonlinearIterations[i])
		f.LinearIterations = append(f.LinearIterations, s.LinearIterations[i])
		f.WallTime, f.Outcome = append(f.WallTime, s.WallTime[i]), append(f.Outcome, s.Outcome[i])
		number[i+1] = int64(len(f.Time))
		stay = append(stay, i)
	}
	f.others = rowsOf(s.others, false, stay)
	f.IterationAttempt, f.IterationResidual, f.IterationLinear = s.IterationAttempt, s.IterationResidual, s.IterationLinear
	f = f.keepIterations(func(attempt int64) bool {
		return attempt >= 1 && attempt < int64(len(number)) && number[attempt] > 0
	})
	for i, attempt := range f.IterationAttempt {
		f.IterationAttempt[i] = number[attempt]
	}
	return f
}

// keepIterations returns a copy with the iterations of some attempts.
func (s Statistics) keepIterations(keep func(attempt int64) bool) Statistics {
	f := s
	f.IterationAttempt, f.IterationResidual, f.IterationLinear = nil, nil, nil
	var stay []int
	for i, attempt := range s.IterationAttempt {
		if !keep(attempt) {
			continue
		}
		stay = append(stay, i)
		f.IterationAttempt = append(f.IterationAttempt, attempt)
		if s.IterationResidual != nil {
			f.IterationResidual = append(f.IterationResidual, s.IterationResidual[i])
		}
		if s.IterationLinear != nil {
			f.IterationLinear = append(f.IterationLinear, s.IterationLinear[i])
		}
	}
	f.others = rowsOf(s.others, true, stay)
	return f
}

// then appends the statistics of a later part. All fields of attempts are filled.
func (s Statistics) then(b Statistics) Statistics {
	before := int64(len(s.Time))
	c := Statistics{
		Time:                slices.Concat(s.Time, b.Time),
		StepLength:          slices.Concat(s.StepLength, b.StepLength),
		Accepted:            slices.Concat(s.Accepted, b.Accepted),
		ErrorEstimate:       slices.Concat(s.ErrorEstimate, b.ErrorEstimate),
		NonlinearIterations: slices.Concat(s.NonlinearIterations, b.NonlinearIterations),
		LinearIterations:    slices.Concat(s.LinearIterations, b.LinearIterations),
		WallTime:            slices.Concat(s.WallTime, b.WallTime),
		Outcome:             slices.Concat(s.Outcome, b.Outcome),
		IterationAttempt:    slices.Concat(s.IterationAttempt, b.IterationAttempt),
		IterationResidual:   slices.Concat(iterations(s, s.IterationResidual, math.NaN()), iterations(b, b.IterationResidual, math.NaN())),
		IterationLinear:     slices.Concat(iterations(s, s.IterationLinear, 0), iterations(b, b.IterationLinear, 0)),
	}
	for i := len(s.IterationAttempt); i < len(c.IterationAttempt); i++ {
		c.IterationAttempt[i] += before
	}
	c.others = s.thenOthers(&b)
	return c
}

func iterations[T any](s Statistics, v []T, otherwise T) []T {
	return orDefault(v, len(s.IterationAttempt), otherwise)
}
