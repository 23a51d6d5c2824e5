package runfile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/record"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }

// memory is a store that outlives its sessions, as a disk does.
type memory struct {
	mu     sync.Mutex
	locked bool

	files      map[int]*Solution
	last, prev *Checkpoint
	unreadable error                  // what reading checkpoints gives
	outputs    map[string]*Checkpoint // states of other files
	there      map[string]bool        // other files that exist
	looks      int                    // for other files
	bytes      int64                  // of times and states that were written

	trace []string
	// fail is asked before and after each write, numbered from 0; an error ends it.
	writes int
	fail   func(write int, after bool) error
}

func newMemory() *memory {
	return &memory{files: map[int]*Solution{}, outputs: map[string]*Checkpoint{}, there: map[string]bool{}}
}

func memoryFile(n int) string { return fmt.Sprintf("run.segment%04d.h5", n) }

func (m *memory) lock() (func() error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, fmt.Errorf("%w: run.lock", ErrInUse)
	}
	m.locked = true
	return func() error { m.crash(); return nil }, nil
}

// crash is the end of the process that holds the lock.
func (m *memory) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locked = false
}

func (m *memory) segments() (list []Segment, err error) {
	for n := range m.files {
		list = append(list, Segment{n, memoryFile(n)})
	}
	slices.SortFunc(list, func(a, b Segment) int { return a.Number - b.Number })
	return list, nil
}

func (m *memory) owns(file string) bool {
	for n := range m.files {
		if file == memoryFile(n) {
			return true
		}
	}
	return file == "last"
}

func (m *memory) look(_ context.Context, g Segment) (*Info, []error, error) {
	if s, ok := m.files[g.Number]; ok {
		return &Info{File: g.File, Settings: s.Settings, Times: s.Times, Statistics: s.Statistics}, nil, nil
	}
	return &Info{}, nil, os.ErrNotExist
}

func (m *memory) places(int) error { return nil }

func (m *memory) checkpointsFrom(_ context.Context, number int) (list []string, err error) {
	for name, k := range map[string]*Checkpoint{"last": m.last, "prev": m.prev} {
		if k != nil && k.Segment >= number {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

func (m *memory) checkpoint(context.Context) (*Checkpoint, error) { return m.last, m.unreadable }

func (m *memory) previous(context.Context) (*Checkpoint, error) { return m.prev, nil }

func (m *memory) setAside(file string) (string, error) {
	to := file + ".superseded"
	err := m.write("aside "+file, func() {
		switch file {
		case "last":
			m.last = nil
		case "prev":
			m.prev = nil
		}
		for n := range m.files {
			if file == memoryFile(n) {
				delete(m.files, n)
			}
		}
	})
	return to, err
}

func (m *memory) state(_ context.Context, file string, number int) (*Checkpoint, error) {
	if k, ok := m.outputs[fmt.Sprint(file, " ", number)]; ok {
		return k, nil
	}
	return nil, fmt.Errorf("%s: state %d: %w", file, number, os.ErrNotExist)
}

func (m *memory) exists(file string) (bool, error) {
	m.looks++
	return m.there[file], nil
}

func (m *memory) write(what string, do func()) error {
	n := m.writes
	m.writes++
	if m.fail != nil {
		if err := m.fail(n, false); err != nil {
			return err
		}
	}
	do()
	m.trace = append(m.trace, what)
	if m.fail != nil {
		return m.fail(n, true)
	}
	return nil
}

func (m *memory) filesystem() vfs.FS { return vfs.OS }

func (m *memory) directory() string { return "" }

func (m *memory) workingDirectory() string { return "" }

func (m *memory) onNodes() {}

func (m *memory) written() int64 { return m.bytes }

func (m *memory) segment(number int) (segmentFile, error) {
	return &memorySegment{m: m, number: number}, nil
}

func (m *memory) reserveCheckpoint(context.Context, *Checkpoint) (place, error) {
	return place{}, errors.ErrUnsupported
}
func (m *memory) completeCheckpoint(context.Context, *Checkpoint, map[string]int64) error {
	return errors.ErrUnsupported
}
func (m *memory) discardCheckpoint() error { return errors.ErrUnsupported }

// memorySegment holds the output of a segment.
type memorySegment struct {
	m      *memory
	number int
	parts  Solution
}

func (w *memorySegment) publish(_ context.Context, add *Solution) error {
	took := false
	err := w.m.write(fmt.Sprint("segment ", w.number), func() {
		took = true
		p := &w.parts
		p.Times, p.States = append(p.Times, add.Times...), append(p.States, add.States...)
		iterations := slices.Concat(p.Statistics.IterationAttempt, add.Statistics.IterationAttempt)
		p.Statistics = p.Statistics.then(add.Statistics)
		p.Statistics.IterationAttempt = iterations // those of a session are numbered from its beginning
		for i, u := range add.Updates {
			if len(p.Updates) == i {
				p.Updates = append(p.Updates, UpdateStates{Name: u.Name})
			}
			p.Updates[i].States = append(p.Updates[i].States, u.States...)
		}
		w.m.bytes += int64(8 * len(add.Times) * (1 + add.Layout.Size()))
		c := *p
		c.Settings, c.Layout = add.Settings, add.Layout
		c.Files, c.Version = []string{memoryFile(w.number)}, "0.0.5"
		c.Updates = slices.Clone(p.Updates)
		w.m.files[w.number] = &c
	})
	if err != nil && took {
		err = fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return err
}

func (w *memorySegment) reserve(context.Context, *Solution) (place, error) {
	return place{}, errors.ErrUnsupported
}
func (w *memorySegment) discard() error { return nil }

func (m *memory) writeCheckpoint(_ context.Context, k *Checkpoint) error {
	return m.write(fmt.Sprint("checkpoint ", k.Segment), func() {
		c := *k
		m.bytes += int64(8 * (1 + len(k.State)))
		c.File, c.Version = "last", "0.0.5"
		c.State = slices.Clone(k.State)
		c.units = map[string]string{}
		for _, u := range k.Layout.Unknowns {
			c.units[u.Name] = u.Unit
		}
		bad := func(k *Checkpoint) bool { return k.policies.NotFinite(k.Layout.names(), k.NonFinite) != "" }
		if m.last != nil && !(bad(m.last) && m.prev != nil && !bad(m.prev)) {
			m.prev = m.last
		}
		m.last = &c
	})
}

// joined is the output of all segments.
func (m *memory) joined(t testing.TB) *Solution {
	t.Helper()
	list, _ := m.segments()
	var parts []*Solution
	for _, g := range list {
		parts = append(parts, m.files[g.Number])
	}
	s, err := join(parts, func(text string) { t.Errorf("warning: %s", text) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// clock is a clock that goes on by a step at each look.
type clock struct {
	at   time.Time
	step time.Duration
}

func newClock() *clock {
	return &clock{at: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), step: time.Millisecond}
}

func (c *clock) now() time.Time {
	c.at = c.at.Add(c.step)
	return c.at
}

// decay is a solver with an adaptive step length, the choice of which depends on
// earlier steps, rejected ones included.
type decay struct {
	time, length, before float64
	rejected             int64
	state                []float64
}

func decayLayout() Layout {
	return Layout{
		R: []float64{0, 0.5, 1},
		Unknowns: []Unknown{
			{Name: "n", Kind: Scalar, Unit: "m^-3"},
			{Name: "T", Kind: Radial, Components: 1, Unit: "eV"},
		},
	}
}

func newDecay(s *Session) (*decay, error) {
	start := s.Start()
	d := &decay{time: start.Time, length: 0.2, before: 1, state: start.State}
	if !start.HasStepper {
		return d, nil
	}
	var err error
	d.length, err = start.Stepper.Float("length")
	if err != nil {
		return nil, err
	}
	if d.before, err = start.Stepper.Float("before"); err != nil {
		return nil, err
	}
	d.rejected, err = start.Stepper.Int("rejected")
	return d, err
}

func (d *decay) record() (record.Record, error) {
	return record.Of("length", d.length, "before", d.before, "rejected", d.rejected)
}

// rate is the derivative of the state.
func (d *decay) rate(t float64, y []float64) []float64 {
	return []float64{-y[0] + math.Sin(9*t), -20 * (y[1] - y[0]), -3 * (y[2] - y[1]) * (1 + math.Cos(5*t))}
}

// attempt tries a step that does not go beyond a time.
func (d *decay) attempt(limit float64) Attempt {
	t := d.time + d.length
	if t >= limit || limit-t < 1e-9 {
		t = limit
	}
	h := t - d.time
	k1 := d.rate(d.time, d.state)
	euler, heun := slices.Clone(d.state), slices.Clone(d.state)
	for i := range euler {
		euler[i] += h * k1[i]
	}
	k2 := d.rate(t, euler)
	e := 1e-12
	for i := range heun {
		heun[i] += h / 2 * (k1[i] + k2[i])
		e = max(e, math.Abs(heun[i]-euler[i])/1e-2)
	}
	a := Attempt{
		Time: t, StepLength: h, Accepted: e <= 1, ErrorEstimate: e,
		Iterations: []Iteration{{e, 3}, {e / 7, d.rejected % 5}},
	}
	d.length = min(0.5, h*0.9*math.Pow(e, -0.35)*math.Pow(d.before, 0.2))
	if a.Accepted {
		d.time, d.state, d.before = t, heun, e
	} else {
		d.rejected++
		a.Outcome = "error too large"
	}
	return a
}

// decayConfig is a run of the solver over three save times.
func decayConfig() Config {
	stepper, _ := record.Of("type", "heun", "tolerance", 1e-3)
	return Config{
		Directory: "somewhere", Name: "run",
		Layout: decayLayout(), Setup: Setup{Stepper: stepper, Deterministic: true},
		Initial:    []float64{1, 0, 2},
		TimePoints: []float64{0, 0.25, 0.5, 0.75, 1},
		SaveTimes:  []float64{0, 0.5, 1},
		Updates:    []string{"mean"},
		Checkpoint: CheckpointConfig{Steps: 3},
		Wait:       -1,
	}
}

// advance is the time loop of a solver. Ranks other than 0 give no state.
func advance(ctx context.Context, s *Session) (out Outcome, err error) {
	return advanceWith(ctx, s, func() {})
}

// advanceWith calls stepped after each accepted step.
func advanceWith(ctx context.Context, s *Session, stepped func()) (out Outcome, err error) {
	d, err := newDecay(s)
	if err != nil {
		return out, err
	}
	given := func() []float64 {
		if s.c.Rank() != 0 {
			return nil
		}
		return d.state
	}
	if !s.Start().Resumed {
		s.SetUpdate("mean", []float64{d.state[0], 0})
	}
	if err := s.SaveState(ctx, given()); err != nil {
		return out, err
	}
	for !s.Done() && !out.Stop {
		at := slices.Contains(s.cfg.TimePoints, s.time)
		a := d.attempt(s.NextTime())
		s.Attempt(a)
		if !a.Accepted {
			continue
		}
		stepped()
		if at { // the update is renewed in the first step of each interval
			s.SetUpdate("mean", []float64{(d.state[0] + d.state[1]) / 2, d.time})
		}
		if err := s.SaveState(ctx, given()); err != nil {
			return out, err
		}
		if out, err = s.Checkpoint(ctx, given(), d.record); err != nil {
			return out, err
		}
	}
	return out, nil
}

// runSegment opens a session, advances it to its end and closes it.
func runSegment(ctx context.Context, c *comm.Comm, cfg Config, m store) (Outcome, error) {
	s, err := open(ctx, c, cfg, m, newClock().now)
	if err != nil {
		return Outcome{}, err
	}
	out, err := advance(ctx, s)
	return out, errors.Join(err, s.Close(ctx))
}

// uninterrupted is the output of the run in one piece.
func uninterrupted(t testing.TB) *Solution {
	t.Helper()
	m := newMemory()
	if _, err := runSegment(context.Background(), comm.Self(), decayConfig(), m); err != nil {
		t.Fatal(err)
	}
	return m.joined(t)
}

// sameOutput compares two outputs bit for bit, less wall times.
func sameOutput(t testing.TB, got, want *Solution) {
	t.Helper()
	opts := cmp.Options{
		cmpopts.IgnoreFields(Statistics{}, "WallTime", "others"),
		cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
	}
	for _, part := range []struct {
		name string
		a, b any
	}{
		{"times", got.Times, want.Times},
		{"states", got.States, want.States},
		{"update states", got.Updates, want.Updates},
		{"statistics", got.Statistics, want.Statistics},
	} {
		if diff := cmp.Diff(part.b, part.a, opts); diff != "" {
			t.Errorf("%s differ (-want +got):\n%s", part.name, diff)
		}
	}
}
