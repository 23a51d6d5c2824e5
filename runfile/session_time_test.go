package runfile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/record"
)

// slowStore takes its time to give the lock and to read the checkpoint.
type slowStore struct {
	*memory
	clock *clock
}

func (s slowStore) lock() (func() error, error) {
	s.clock.at = s.clock.at.Add(20 * time.Second)
	return s.memory.lock()
}

func (s slowStore) checkpoint(ctx context.Context) (*Checkpoint, error) {
	s.clock.at = s.clock.at.Add(15 * time.Second)
	return s.memory.checkpoint(ctx)
}

// The wall time of a segment counts from the beginning of Open: what Open waits for
// and reads is part of it. It is rank 0's clock that counts.
func TestWallTimeCountsFromTheBeginningOfOpen(t *testing.T) {
	mpitest.Run(t, []int{1, 2}, func(t *mpitest.T, c *comm.Comm) {
		for _, tc := range []struct {
			limit time.Duration
			stops bool
		}{{30 * time.Second, true}, {35 * time.Second, true}, {40 * time.Second, false}} {
			m, clock := newMemory(), newClock()
			if c.Rank() > 0 { // a clock of no use
				clock.at, clock.step = clock.at.Add(-1000*time.Hour), 0
			}
			cfg := decayConfig()
			cfg.Updates, cfg.Checkpoint = nil, CheckpointConfig{}
			cfg.Stop.WallTime = tc.limit
			s, err := open(t.Context(), c, cfg, slowStore{m, clock}, clock.now)
			if err != nil {
				t.Fatal(err)
			}
			err = s.SaveState(t.Context(), cfg.Initial)
			s.Attempt(Attempt{Time: 0.1, StepLength: 0.1, Accepted: true})
			out, cerr := s.Checkpoint(t.Context(), cfg.Initial, nil)
			if err = errors.Join(err, cerr, s.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			if out.Stop != tc.stops {
				t.Errorf("Open takes 35 s, the limit is %v: %+v", tc.limit, out)
			}
			// The first step took what came after Open alone.
			if c.Rank() == 0 && m.files[1].Statistics.WallTime[0] > 1 {
				t.Errorf("the first step took %v s", m.files[1].Statistics.WallTime[0])
			}
		}
	})
}

// stepper steps through a run by NextStep alone, and returns the times of its steps.
func stepper(t *testing.T, s *Session, length func(step int) float64) (times []float64) {
	t.Helper()
	for step := 0; !s.Done(); step++ {
		next := s.NextStep(length(step))
		s.Attempt(Attempt{Time: next, StepLength: next - s.time, Accepted: true})
		if err := s.SaveState(t.Context(), []float64{0}); err != nil {
			t.Fatal(err)
		}
		if s.time != next {
			t.Fatalf("step %d is not accepted: %v", step, s.broken)
		}
		times = append(times, next)
	}
	return times
}

// steady is a session of one number at time points, whose first state is saved.
func steady(t *testing.T, points []float64, k CheckpointConfig) *Session {
	t.Helper()
	s, err := open(t.Context(), comm.Self(), Config{
		Directory: "somewhere", Name: "run", Initial: []float64{0}, TimePoints: points,
		Layout:     Layout{Unknowns: []Unknown{{Name: "n", Kind: Scalar}}},
		SaveTimes:  []float64{},
		Checkpoint: k,
	}, newMemory(), newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// Steps of one length reach a time point that is a whole number of them away in as many
// steps, wherever rounding takes their sum.
func TestStepsOfOneLengthLeaveNoSliver(t *testing.T) {
	for _, tc := range []struct {
		begin, h float64
		steps    []int // from each time point to the next
	}{
		{0, 0.1, []int{100}},
		{0, 0.1, []int{10000}},
		{0, 0.1, []int{3, 7, 1, 13, 100, 1}},
		{0, 1e-3, []int{100000}},
		{0, 0.7e-9, []int{12345, 1, 54321}},
		{5e5, 1e-3, []int{20000, 3}},
		{-3.3, 0.3, []int{11, 7, 11}},
		{1e9, 1e-4, []int{1000}},
		{0, 1.0 / 3, []int{3, 30000}},
	} {
		points := []float64{tc.begin}
		total := 0
		for _, n := range tc.steps {
			total += n
			points = append(points, tc.begin+float64(total)*tc.h)
		}
		s := steady(t, points, CheckpointConfig{Off: true})
		times := stepper(t, s, func(int) float64 { return tc.h })
		if len(times) != total {
			t.Errorf("from %v by %v: %d steps, want %d", tc.begin, tc.h, len(times), total)
		}
		before := tc.begin
		for i, now := range times {
			if length := now - before; length < 0.99*tc.h || length > 1.01*tc.h {
				t.Errorf("from %v by %v: step %d is from %v to %v", tc.begin, tc.h, i, before, now)
				break
			}
			before = now
		}
	}
}

// A step is never longer than was asked for, except for rounding, never goes beyond a time
// point, and always goes on.
func TestNextStep(t *testing.T) {
	up := func(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
	for name, tc := range map[string]struct {
		at, h, want float64
	}{
		"in the middle":                           {0, 0.25, 0.25},
		"a time point that is far":                {0, 3, 3},
		"a time point at the step's end":          {0, 4, 4},
		"a time point before the step's end":      {0, 4.5, 4},
		"a time point just beyond the step's end": {0, 4 - 1e-9, 4},
		"a short rest is one":                     {0, 4 - 1e-3, 4 - 1e-3},
		"an endless step":                         {0, math.Inf(1), 4},
		"a rest shorter than the step":            {3.75, 1, 4},
		"a rest of rounding noise":                {4 - 1e-15, 1, 4},
		"steps of another length before":          {0.3, 0.25, 0.55},
		"steps of this length before":             {0.1 + 0.1 + 0.1, 0.1, 4 * 0.1},
		"a step that vanishes":                    {3, 1e-300, up(3)},
		"the smallest step":                       {0, math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64},
		"at a time point":                         {4, 0.25, 4.25},
		"at the end":                              {8, 0.25, 8},
	} {
		s := steady(t, []float64{0, 4, 8}, CheckpointConfig{Off: true})
		s.time = tc.at
		if got := s.NextStep(tc.h); got != tc.want {
			t.Errorf("%s: from %v by %v to %v, want %v", name, tc.at, tc.h, got, tc.want)
		}
		if s.broken != nil {
			t.Errorf("%s: %v", name, s.broken)
		}
	}
}

// Whatever the lengths, a step goes on, and stays within the time point.
func TestNextStepOfAnyLength(t *testing.T) {
	points := []float64{-1, 0, 1e-3, 1, math.Nextafter(1, 2), 1e6, 1e6 + 1}
	for _, at := range []float64{-1, -1e-17, 0, 1e-17, 0.5e-3, 0.999999999, 1, 2, 1e6 - 1e-9, 1e6, 1e6 + 0.5} {
		for e := -320.0; e < 309; e += 0.7 {
			s := &Session{cfg: Config{TimePoints: points}, time: at}
			h := math.Pow(10, e)
			next, point := s.NextStep(h), s.NextTime()
			if !(next > at) || next > point {
				t.Fatalf("from %v by %v to %v, the time point is %v", at, h, next, point)
			}
			noise := max(1e-9*h, 8*(math.Nextafter(max(math.Abs(at), math.Abs(point)), math.Inf(1))-max(math.Abs(at), math.Abs(point))))
			if next-at > h+noise {
				t.Fatalf("from %v by %v to %v", at, h, next)
			}
		}
	}
}

// A length that is none is the error of the next collective call.
func TestNextStepOfNoLength(t *testing.T) {
	for _, h := range []float64{0, -0.1, math.NaN(), math.Inf(-1)} {
		s := steady(t, []float64{0, 4}, CheckpointConfig{})
		if got := s.NextStep(h); got != 4 {
			t.Errorf("by %v to %v, want the time point", h, got)
		}
		if _, err := s.Checkpoint(t.Context(), []float64{0}, nil); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), fmt.Sprint(h)) {
			t.Errorf("by %v: the checkpoint returns %v", h, err)
		}
	}
}

// writtenAt are the times of the steps after which there is a checkpoint, in a run whose
// solver adds up its time, and which is resumed after each of some numbers of steps.
func writtenAt(t *testing.T, begin, h float64, steps int, interval float64, resumeAfter ...int64) (list []float64) {
	t.Helper()
	m := newMemory()
	for i := 0; ; i++ {
		cfg := Config{
			Directory: "somewhere", Name: "run", Resume: true, Initial: []float64{0},
			TimePoints: []float64{begin, begin + 2*float64(steps)*h}, SaveTimes: []float64{},
			Layout:     Layout{Unknowns: []Unknown{{Name: "n", Kind: Scalar}}},
			Checkpoint: CheckpointConfig{Interval: interval},
		}
		if i < len(resumeAfter) {
			cfg.Stop.Steps = resumeAfter[i]
		}
		s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
		if err != nil {
			t.Fatal(err)
		}
		stop := false
		for now := s.time; steps > 0 && !stop; steps-- {
			now += h
			s.Attempt(Attempt{Time: now, StepLength: h, Accepted: true})
			out, err := s.Checkpoint(t.Context(), []float64{0}, func() (record.Record, error) { return record.Record{}, nil })
			if err != nil {
				t.Fatal(err)
			}
			if stop = out.Stop; out.Written && !stop {
				list = append(list, now)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !stop {
			return list
		}
	}
}

// Checkpoints by an interval are due at its multiples from the beginning of the run:
// neither rounding nor a job that ends moves them.
func TestIntervalsDoNotDrift(t *testing.T) {
	for _, tc := range []struct {
		name               string
		begin, h, interval float64
		steps, want        int
	}{
		{"an interval of a step", 0, 0.1, 0.1, 100, 100},
		{"an interval of a step, for long", 0, 0.1, 0.1, 2000, 2000},
		{"an interval of some steps", 0, 0.1, 0.7, 700, 100},
		{"an interval that is no number of steps", 0, 0.4, 1, 1000, 400},
		{"an interval shorter than a step", 0, 0.5, 0.01, 50, 50},
		{"a run that begins late", 1e4, 1e-3, 1e-2, 1000, 100},
		{"a run that begins before 0", -7, 0.1, 0.1, 100, 100},
		{"a run that is short", 3e-10, 1e-12, 1e-12, 100, 100},
	} {
		got := writtenAt(t, tc.begin, tc.h, tc.steps, tc.interval)
		if len(got) != tc.want {
			t.Errorf("%s: %d checkpoints, want %d", tc.name, len(got), tc.want)
		}
		for i, at := range got {
			if due := tc.begin + float64(i+1)*tc.interval; tc.interval >= tc.h && (at < due-0.01*tc.h || at > due+0.99*tc.h) {
				t.Errorf("%s: checkpoint %d is at %v, due at %v", tc.name, i+1, at, due)
				break
			}
		}
	}
	whole := writtenAt(t, 0, 0.1, 100, 0.5)
	parts := writtenAt(t, 0, 0.1, 100, 0.5, 3, 11, 13)
	if fmt.Sprint(whole) != fmt.Sprint(parts) || len(whole) != 20 {
		t.Errorf("the run in one piece has checkpoints at %v, in jobs at %v", whole, parts)
	}
}

// A checkpoint for another reason doesn't move those of the interval.
func TestIntervalsBesideSteps(t *testing.T) {
	s := steady(t, []float64{0, 10}, CheckpointConfig{Steps: 3, Interval: 1})
	var got []float64
	for !s.Done() && s.time < 4 {
		s.Attempt(Attempt{Time: s.NextStep(0.25), Accepted: true})
		out, err := s.Checkpoint(t.Context(), []float64{0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if out.Written {
			got = append(got, s.time)
		}
	}
	if want := "[0.75 1 1.75 2 2.75 3 3.75 4]"; fmt.Sprint(got) != want {
		t.Errorf("checkpoints at %v, want %v", got, want)
	}
}
