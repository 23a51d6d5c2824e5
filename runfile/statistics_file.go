package runfile

import (
	"fmt"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// statistic is a dataset of the solver's statistics.
type statistic struct {
	name      string
	length    func(s *Statistics) int
	write     func(f *h5.File, path string, s *Statistics, have int, o *options) error
	read      func(f *h5.File, path string, s *Statistics) error
	sum       func(s *Statistics, from, to int) uint64 // of rows
	iteration bool                                     // it has an entry for each iteration
}

func numbers[T h5.Element](name string, iteration bool, field func(s *Statistics) *[]T) statistic {
	return statistic{
		name:      name,
		iteration: iteration,
		length:    func(s *Statistics) int { return len(*field(s)) },
		write: func(f *h5.File, path string, s *Statistics, have int, o *options) error {
			return writeGrowing(f, path, *field(s), have, o)
		},
		read: func(f *h5.File, path string, s *Statistics) (err error) {
			*field(s), err = readVector[T](f, path)
			return err
		},
		sum: func(s *Statistics, from, to int) uint64 { return sumNumbers((*field(s))[from:to]) },
	}
}

var statistics = []statistic{
	numbers("time", false, func(s *Statistics) *[]float64 { return &s.Time }),
	numbers("step_length", false, func(s *Statistics) *[]float64 { return &s.StepLength }),
	numbers("accepted", false, func(s *Statistics) *[]bool { return &s.Accepted }),
	numbers("error_estimate", false, func(s *Statistics) *[]float64 { return &s.ErrorEstimate }),
	numbers("nonlinear_iterations", false, func(s *Statistics) *[]int64 { return &s.NonlinearIterations }),
	numbers("linear_iterations", false, func(s *Statistics) *[]int64 { return &s.LinearIterations }),
	numbers("wall_time", false, func(s *Statistics) *[]float64 { return &s.WallTime }),
	{
		name:   "outcome",
		length: func(s *Statistics) int { return len(s.Outcome) },
		write: func(f *h5.File, path string, s *Statistics, have int, o *options) error {
			return writeTexts(f, path, s.Outcome, have, o)
		},
		read: func(f *h5.File, path string, s *Statistics) (err error) {
			s.Outcome, err = f.ReadStrings(path)
			return err
		},
		sum: func(s *Statistics, from, to int) uint64 { return sumTexts(s.Outcome[from:to]) },
	},
	numbers("iteration_attempt", true, func(s *Statistics) *[]int64 { return &s.IterationAttempt }),
	numbers("iteration_residual", true, func(s *Statistics) *[]float64 { return &s.IterationResidual }),
	numbers("iteration_linear", true, func(s *Statistics) *[]int64 { return &s.IterationLinear }),
}

// check checks that the fields that are there have the same number of entries.
func (s *Statistics) check() error {
	attempts, iterations := s.Attempts(), len(s.IterationAttempt)
	for _, field := range statistics {
		want, of := attempts, "attempts"
		if field.iteration {
			want, of = iterations, "iterations"
		}
		if n := field.length(s); n != 0 && n != want {
			return fmt.Errorf("statistics: %s has %d entries for %d %s", field.name, n, want, of)
		}
	}
	for i, a := range s.IterationAttempt {
		if a < 1 || a > int64(attempts) {
			return fmt.Errorf("statistics: iteration_attempt %d is %d, not one of 1 to %d", i, a, attempts)
		}
	}
	for i, text := range s.Outcome {
		if _, err := record.ValueOf(text); err != nil {
			return fmt.Errorf("statistics: outcome %d: %w", i, err)
		}
	}
	return nil
}

// writeStatistics writes entries behind those of the attempts and the iterations that
// the file has.
func writeStatistics(f *h5.File, s *Statistics, attempts, iterations int, o *options) error {
	for _, field := range statistics {
		if field.length(s) == 0 {
			continue
		}
		have := attempts
		if field.iteration {
			have = iterations
		}
		if err := field.write(f, h5.Join(statisticsGroup, field.name), s, have, o); err != nil {
			return err
		}
	}
	return writeOthers(f, s, attempts, iterations, o)
}

// readStatistics reads what there is, and fills in the rest. With an error it returns no
// statistics at all: what was read so far may have other lengths than the rest. Those that
// the format doesn't have are read too, if warn is told of what can't be.
func readStatistics(f *h5.File, warn func(string), sums *storedSums) (Statistics, error) {
	const group = statisticsGroup
	var s Statistics
	entries, err := members(f, group)
	if err != nil {
		return Statistics{}, err
	}
	for _, field := range statistics {
		if !slices.ContainsFunc(entries, func(e h5.Entry) bool { return e.Name == field.name }) {
			continue
		}
		if err := field.read(f, h5.Join(group, field.name), &s); err != nil {
			return Statistics{}, err
		}
	}
	if err := sums.ofStatistics(&s); err != nil {
		return Statistics{}, err
	}
	if err := s.check(); err != nil {
		return Statistics{}, in(f.Name(), group, ErrMismatch, "%v", err)
	}
	if warn != nil {
		if err := readOthers(f, entries, &s, warn); err != nil {
			return Statistics{}, err
		}
	}
	return s.filled(), nil
}
