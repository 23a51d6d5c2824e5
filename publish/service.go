package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Clock is the solver's clock of accepted steps.
type Clock interface {
	// Accepted returns the increment and the time of the last accepted step.
	Accepted() (increment int64, time float64)
	// Restore sets both, the time to exactly these bits.
	Restore(increment int64, time float64) error
}

// DerivedClock is a clock that computes its time from the increment. A bundle
// whose time differs from TimeAt by more than 1e-9 · max(1, |time|) is rejected.
type DerivedClock interface {
	Clock
	TimeAt(increment int64) float64
}

// Solver is what the service saves and restores: the live objects of a solver.
type Solver struct {
	Fields     []field.Named
	Clock      Clock
	Results    *int64 // result counter; nil: none
	Method     string // identity of the integrator
	Boundaries []Boundary
	Sidecar    func() (any, error) // content of sidecar.json, the same on all ranks; nil: none
}

// Service saves bundles of a solver as its configuration says, and restarts it
// from them. Its methods are collective, but for Close.
type Service struct {
	c     *comm.Comm
	cfg   Config
	o     options
	opts  []Option
	own   *Plans // nil: the plans are the caller's
	dir   checkpoints
	ready bool  // the directory stands
	last  int64 // increment that is on disk already: saved or restored; -1: none
	since time.Time
	inbox chan os.Signal
	now   func() time.Time
}

// NewService makes the service. It is collective; all ranks give the same
// configuration and options. When it has returned on one rank, all of them listen to
// the signals of the configuration. Unless the configuration is off, rank 0 makes the
// checkpoint directory and clears away what publications and removals of dead jobs
// left in it.
func NewService(ctx context.Context, c *comm.Comm, cfg Config, opts ...Option) (*Service, error) {
	s := &Service{c: c, cfg: cfg, opts: opts, last: -1, now: time.Now}
	var err error
	s.o, err = newOptions(opts)
	if s.o.plans == nil {
		s.own = NewPlans()
		s.opts = append(slices.Clip(opts), Reuse(s.own))
	}
	err = cmp.Or(err, cfg.Validate())
	if cfg.Checkpoint.Keep > 0 && s.o.durability != Full {
		err = cmp.Or(err, errors.New("checkpoint.keep: without durability no bundle may replace an older one"))
	}
	if cfg.Checkpoint.Directory != "" {
		dir, aerr := filepath.Abs(cfg.Checkpoint.Directory)
		err = cmp.Or(err, aerr)
		s.dir = checkpoints{o: &s.o, dir: dir}
	}
	text, jerr := json.Marshal(cfg)
	err = cmp.Or(err, jerr)
	if err := agreeInputs(ctx, c, err, []entry{
		{pathEntry, fmt.Sprintf("%q", cfg.Checkpoint.Directory)},
		{"the configuration of checkpoints", string(text)},
		{"the checkpoint directory", fmt.Sprintf("%q", s.dir.dir)},
		{"the durability", strconv.Itoa(int(s.o.durability))},
		{"loading in place", strconv.FormatBool(s.o.inPlace)},
	}); err != nil {
		return nil, named("checkpoint service", "in "+cfg.Checkpoint.Directory, err)
	}
	if !cfg.Checkpoint.off() {
		s.listen() // before the last agreement: a rank that has its service knows that all listen
		work, end := s.o.atWork(ctx, c, "checkpoint service in", cfg.Checkpoint.Directory)
		err := s.prepare(work)
		end()
		if err != nil {
			s.Close()
			return nil, named("checkpoint service", "in "+cfg.Checkpoint.Directory, err)
		}
	}
	s.since = s.now()
	return s, nil
}

// listen makes the signals of the configuration wait for the next MaybeSave.
func (s *Service) listen() {
	if len(s.cfg.Checkpoint.OnSignal) == 0 {
		return
	}
	s.inbox = make(chan os.Signal, 1)
	for _, name := range s.cfg.Checkpoint.OnSignal {
		signal.Notify(s.inbox, signals[name])
	}
}

// Close stops listening to signals and frees the memory that is kept between saves,
// but for what [Reuse] gave it. It is not collective, and may be called several
// times.
func (s *Service) Close() {
	if s.own != nil {
		s.own.Close()
	}
	if s.inbox != nil {
		signal.Stop(s.inbox)
	}
}

// prepare makes the directory and clears leftovers away.
func (s *Service) prepare(ctx context.Context) error {
	err := s.c.OnRoot(ctx, nil, waiting.Step(ctx, "make and clear", "the checkpoint directory", func() error {
		if err := s.dir.makeDir(s.dir.dir); err != nil {
			return err
		}
		return s.dir.clean()
	}))
	s.ready = err == nil
	return err
}

// Outcome is what MaybeSave did.
type Outcome struct {
	Saved bool
	Path  string // of the bundle, when Saved

	// Stop tells the solver to end now; Reason says why. Its state is on disk,
	// unless its increment is 0.
	Stop   bool
	Reason string
}

// Reasons of a save, as bits of the message that the ranks exchange.
const (
	dueBySeconds = 1 << iota
	dueBySignal  // and above it, one bit per signal of the configuration
)

// MaybeSave is called after every accepted step. It saves when the increment or
// the wall time says so, or when any rank got a signal. It sends one small
// message, and none at all when only Every is configured.
func (s *Service) MaybeSave(ctx context.Context, v Solver) (Outcome, error) {
	var out Outcome
	k := s.cfg.Checkpoint
	if k.off() {
		return out, nil
	}
	var increment int64
	if err := comm.Protect(func() error { increment, _ = v.Clock.Accepted(); return nil }); err != nil {
		return out, fmt.Errorf("checkpoint: clock: %w", err)
	}
	due := k.Every > 0 && increment%k.Every == 0
	if k.EverySeconds > 0 || len(k.OnSignal) > 0 {
		flags := []int64{s.flags()}
		if err := s.c.AllReduceInt64(ctx, comm.BitOr, flags); err != nil {
			return out, fmt.Errorf("checkpoint: %w", err)
		}
		due = due || flags[0] != 0
		if flags[0]>>1 != 0 {
			out.Stop, out.Reason = true, s.reason(flags[0])
		}
	}
	if !due || increment == s.last || increment == 0 {
		return out, nil
	}
	path, err := s.Save(ctx, v)
	if err != nil {
		return out, err
	}
	out.Saved, out.Path = true, path
	return out, nil
}

func (s *Service) flags() int64 {
	var f int64
	if s.c.Rank() == 0 && s.cfg.Checkpoint.EverySeconds > 0 &&
		s.now().Sub(s.since).Seconds() >= s.cfg.Checkpoint.EverySeconds {
		f |= dueBySeconds
	}
	if s.inbox == nil {
		return f
	}
	select {
	case got := <-s.inbox:
		for i, name := range s.cfg.Checkpoint.OnSignal {
			if signals[name] == got {
				f |= dueBySignal << i
			}
		}
	default:
	}
	return f
}

func (s *Service) reason(flags int64) string {
	var names []string
	for i, name := range s.cfg.Checkpoint.OnSignal {
		if flags&(dueBySignal<<i) != 0 {
			names = append(names, name)
		}
	}
	return "signal " + strings.Join(names, ", ")
}

// Save publishes the state now, as step_<increment> of the checkpoint directory,
// and returns the bundle's path. The state of increment 0 isn't saved; the path
// is empty then. When the bundle is durable, the oldest ones beyond Keep are
// removed; that this fails is a warning, not an error.
func (s *Service) Save(ctx context.Context, v Solver) (string, error) {
	if s.cfg.Checkpoint.Directory == "" {
		return "", fmt.Errorf("checkpoint: %w: no checkpoint.directory is configured", ErrInput)
	}
	state, err := v.state()
	if err := agreeInputs(ctx, s.c, err, []entry{
		{pathEntry, strconv.Quote(s.cfg.Checkpoint.Directory)},
		{"the accepted increment", strconv.FormatInt(state.Increment, 10)},
	}); err != nil {
		return "", named("checkpoint", "in "+s.cfg.Checkpoint.Directory, err)
	}
	increment := state.Increment
	if increment == 0 {
		return "", nil
	}
	if !s.ready {
		work, end := s.o.atWork(ctx, s.c, "checkpoint in", s.cfg.Checkpoint.Directory)
		err := s.prepare(work)
		end()
		if err != nil {
			return "", named("checkpoint", "in "+s.cfg.Checkpoint.Directory, err)
		}
	}
	path := s.dir.path(increment)
	shown := filepath.Join(s.cfg.Checkpoint.Directory, StepName(increment))
	// Old bundles go before the other ranks return: they would wait for rank 0 elsewhere,
	// and not know that it is at work.
	prune := afterwards(func(ctx context.Context) { s.tidy(ctx, increment) })
	if err := SaveBundle(ctx, s.c, path, state, append(slices.Clip(s.opts), prune)...); err != nil {
		return "", err
	}
	s.last, s.since = increment, s.now()
	return shown, nil
}

// tidy removes old bundles when that of an increment is durable, on rank 0.
func (s *Service) tidy(ctx context.Context, increment int64) {
	err := comm.Protect(waiting.Step(ctx, "remove", "old bundles", func() error {
		return s.dir.prune(increment, s.cfg.Checkpoint.Keep)
	}))
	if err != nil {
		s.o.log.Warn("old bundles stay", "directory", s.dir.dir, "error", err)
	}
	defer waiting.Doing(ctx, "look at", "the space that is left").End()
	s.warnSpace(s.dir.path(increment))
}

// state asks the solver's callbacks for what is to be saved.
func (v Solver) state() (state State, err error) {
	err = comm.Protect(func() (err error) {
		state = State{Fields: v.Fields, Method: v.Method, Boundaries: v.Boundaries}
		state.Increment, state.Time = v.Clock.Accepted()
		if v.Results != nil {
			state.ResultCounter = *v.Results
		}
		if v.Sidecar != nil {
			if state.Sidecar, err = v.Sidecar(); err != nil {
				return fmt.Errorf("sidecar: %w", err)
			}
		}
		return nil
	})
	return state, err
}

// warnSpace warns when the next bundle wouldn't fit.
func (s *Service) warnSpace(path string) {
	info, err := readStructure(s.o.fs, path)
	if err != nil {
		return
	}
	usage, err := s.o.fs.Usage(s.dir.dir)
	if err == nil && usage.Free < info.info.Bytes {
		s.o.log.Warn("the next bundle will not fit", "directory", s.dir.dir, "free", usage.Free, "needed", info.info.Bytes)
	}
}

// Load restores the solver from the bundle at path: fields, clock, result counter
// and boundary conditions. A rejection leaves all of them as they were.
func (s *Service) Load(ctx context.Context, path string, v Solver) (*Loaded, error) {
	loaded, err := LoadBundle(ctx, s.c, path, Request{
		Fields:     v.Fields,
		Method:     v.Method,
		Boundaries: v.Boundaries,
		Accept:     func(m Metadata) error { return acceptClock(v.Clock, m) },
	}, s.opts...)
	if err != nil {
		return nil, err
	}
	m := loaded.Metadata
	err = comm.Protect(func() error { return v.Clock.Restore(m.AcceptedIncrement, m.AcceptedTime) })
	if err := s.c.Agree(context.WithoutCancel(ctx), err); err != nil {
		return nil, fmt.Errorf("load %s: clock: %w: %w", path, ErrFieldsUndefined, err)
	}
	if v.Results != nil {
		*v.Results = m.ResultCounter
	}
	return loaded, nil
}

func acceptClock(c Clock, m Metadata) error {
	d, ok := c.(DerivedClock)
	if !ok {
		return nil
	}
	derived := d.TimeAt(m.AcceptedIncrement)
	if diff := math.Abs(derived - m.AcceptedTime); !(diff <= 1e-9*math.Max(1, math.Abs(m.AcceptedTime))) {
		return fmt.Errorf("%w: accepted_time is %v, but the clock has %v at increment %d",
			ErrMismatch, m.AcceptedTime, derived, m.AcceptedIncrement)
	}
	return nil
}
