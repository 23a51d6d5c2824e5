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
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/repeats"
	"github.com/fieldstone-io/fieldstone/internal/signals"
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
// whose time differs from TimeAt by more than 1e-9 · max(|time|, |step|) is rejected;
// the step is from the time at the increment before to that at the increment, or for
// increment 0 to the time at the next one.
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
	Sidecar    func() (any, error) // State.Sidecar, the same on all ranks; nil: none
}

// Service saves bundles of a solver as its configuration says, and restarts it
// from them. Its methods are collective, but for Close.
type Service struct {
	c    *comm.Comm
	cfg  Config
	o    options
	opts []Option
	own  *Plans // nil: the plans are the caller's
	dir  checkpoints
	from string // the path of restart_from, if it is one: absolute, rank 0's on all ranks
	holding
	last savedState // on disk already
	// passed are bundles that the service passed over while it was off.
	passed  []bundleState
	since   time.Time
	counted map[string]int64  // cells that aren't finite, of the save that is going on
	before  map[string]int64  // of the last bundle that was saved or restored
	summed  map[string]uint64 // checksums of the fields of the save that is going on, or of the last load
	repeats repeats.Tracker
	inbox   chan os.Signal
	now     func() time.Time
}

// savedState is a state that this service saved or restored.
type savedState struct {
	increment int64 // -1: there is none
	time      float64
	method    string
	here      bool // it is in the checkpoint directory, under its name
}

// is reports whether a state is the saved one, as far as can be told without its cells.
func (l savedState) is(s State) bool {
	return l.increment == s.Increment && math.Float64bits(l.time) == math.Float64bits(s.Time) && l.method == s.Method
}

// NewService makes the service. It is collective; all ranks give the same
// configuration and options. When it has returned on one rank, all of them listen to
// the signals of the configuration.
//
// Unless the configuration is off, rank 0 makes the checkpoint directory, sees that it
// can be written, and clears away the leftovers of dead jobs' publications and removals in
// it; a node that doesn't see that directory is an error that names it. The service
// holds the directory until Close, and until the end of the process at the latest:
// another service that saves, of this process or of another one, is refused with
// [ErrInUse] and the name of the job that has it, after CheckpointConfig.WaitSeconds.
// Where the filesystem has no working locks that is a warning.
//
// Relative paths of the configuration are relative to the working directory of rank 0 at
// this call: a later change of it changes nothing.
func NewService(ctx context.Context, c *comm.Comm, cfg Config, opts ...Option) (*Service, error) {
	ctx = waiting.Named(ctx, "NewService")
	s := &Service{c: c, cfg: cfg, opts: opts, last: savedState{increment: -1}, now: time.Now}
	var err error
	s.o, err = newOptions(opts)
	if s.o.plans == nil {
		s.own = NewPlans()
		s.opts = append(slices.Clip(opts), Reuse(s.own))
	}
	err = cmp.Or(err, cfg.Validate(), s.policies())
	if cfg.Checkpoint.Keep > 0 && s.o.durability != Full {
		err = cmp.Or(err, errors.New("checkpoint.keep: without durability no bundle may replace an older one"))
	}
	paths, perr := cfg.paths()
	err = cmp.Or(err, perr)
	text, jerr := json.Marshal(cfg)
	err = cmp.Or(err, jerr)
	if err := agreeInputs(ctx, c, err, []entry{
		{pathEntry, fmt.Sprintf("%q", cfg.Checkpoint.Directory)},
		{"the configuration of checkpoints", string(text)},
		{"the durability", strconv.Itoa(int(s.o.durability))},
		{"the policy for cells that aren't finite", s.o.nonFinite.String()},
		{"loading in place", strconv.FormatBool(s.o.inPlace)},
	}, paths.Maxima()...); err != nil {
		return nil, named("checkpoint service", "in "+cfg.Checkpoint.Directory, err)
	}
	if err := paths.Settle(ctx, c); err != nil {
		return nil, named("checkpoint service", "in "+cfg.Checkpoint.Directory, err)
	}
	s.dir, s.from = checkpoints{o: &s.o, dir: paths.At(0), stuck: make(map[int64]bool), judged: make(map[int64]verdict)}, paths.At(1)
	s.warnConfig()
	if !cfg.Checkpoint.off() {
		work, end := s.o.atWork(ctx, c, "checkpoint service in", cfg.Checkpoint.Directory)
		err := s.hold(work)
		if err == nil {
			s.listen() // before the last agreement: a rank that has its service knows that all listen
			err = s.clean(work)
		}
		end()
		if err != nil {
			s.Close()
			return nil, named("checkpoint service", "in "+cfg.Checkpoint.Directory, err)
		}
	}
	s.since = s.now()
	return s, nil
}

// paths are those of the configuration, absolute: a solver may change its working
// directory later.
func (c Config) paths() (*onedir.Paths, error) {
	var dir, from string
	var err, ferr error
	if c.Checkpoint.Directory != "" {
		dir, err = filepath.Abs(c.Checkpoint.Directory)
	}
	if c.RestartFrom != "" && c.RestartFrom != Latest {
		from, ferr = filepath.Abs(c.RestartFrom)
	}
	return onedir.NewPaths(dir, from), cmp.Or(err, ferr)
}

// listen makes the signals of the configuration wait for the next MaybeSave.
func (s *Service) listen() {
	if len(s.cfg.Checkpoint.OnSignal) == 0 {
		return
	}
	s.inbox = make(chan os.Signal, 1)
	for _, name := range s.cfg.Checkpoint.OnSignal {
		if sig, err := signals.Lookup(name); err == nil { // Validate has asked
			signal.Notify(s.inbox, sig)
		}
	}
}

// Close stops listening to signals, releases the checkpoint directory, and frees the
// memory that is kept between saves, except that of [Reuse]. It is not collective,
// and may be called several times. A Save after it takes the directory again, until the
// next Close.
func (s *Service) Close() {
	if s.own != nil {
		s.own.Close()
	}
	if s.inbox != nil {
		signal.Stop(s.inbox)
	}
	s.letGoSoon()
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
	ctx = waiting.Named(ctx, "Service.MaybeSave")
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
	if !due || increment == s.last.increment || increment == 0 {
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
			if signals.Is(got, name) {
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
// removed, before Save returns on any rank; where they are many, each save removes some of
// them. That this fails is a warning, not an error. So are cells that are NaN or
// infinite, if a field has more of them than at the save before, unless the
// configuration says otherwise; and a field that equals that of the bundle before, once in
// a run, if it has changed between earlier bundles of the run and isn't declared constant.
// The bundle that the run starts from is its first.
//
// The state that this service has saved or restored last, of the same increment, time and
// method, isn't saved again when its bundle is in the directory: the path is that of the
// bundle. Any other state of that increment is refused with [ErrExists], as is everything
// else that is in the way.
//
// A service that is off holds its directory from its first Save on: that one waits for
// the directory and may be refused, as NewService does and is for others.
func (s *Service) Save(ctx context.Context, v Solver) (string, error) {
	ctx = waiting.Named(ctx, "Service.Save")
	if s.cfg.Checkpoint.Directory == "" {
		return "", fmt.Errorf("checkpoint: %w: no checkpoint.directory is configured", ErrInput)
	}
	state, err := v.state()
	entries := []entry{
		{pathEntry, strconv.Quote(s.cfg.Checkpoint.Directory)},
		{"the accepted increment", strconv.FormatInt(state.Increment, 10)},
	}
	err = cmp.Or(err, inputError(s.cfg.Checkpoint.checkConstant(v)))
	path := s.dir.path(state.Increment)
	again := s.last.here && s.last.increment == state.Increment // on all ranks or on none
	if again {
		entries = append(entries,
			entry{"the accepted time", strconv.FormatFloat(state.Time, 'g', -1, 64)},
			entry{"the method", strconv.Quote(state.Method)})
	}
	if err := agreeInputs(ctx, s.c, err, entries); err != nil {
		return "", named("checkpoint", "in "+s.cfg.Checkpoint.Directory, err)
	}
	increment := state.Increment
	if increment == 0 {
		return "", nil
	}
	work, end := s.o.atWork(ctx, s.c, "checkpoint in", s.cfg.Checkpoint.Directory)
	there, err := s.see(work, again, path)
	end()
	if err != nil {
		return "", named("checkpoint", "in "+s.cfg.Checkpoint.Directory, err)
	}
	shown := filepath.Join(s.cfg.Checkpoint.Directory, StepName(increment))
	if there && s.last.is(state) {
		return shown, nil
	}
	// Old bundles go before the other ranks return: they would wait for rank 0 elsewhere,
	// and not know that it is at work.
	prune := afterwards(func(ctx context.Context) { s.tidy(ctx, increment) })
	if err := SaveBundle(ctx, s.c, path, state, append(slices.Clip(s.opts), prune)...); err != nil {
		return "", s.explainExists(increment, err)
	}
	s.last = savedState{increment, state.Time, state.Method, true}
	s.since = s.now()
	s.noteSaved(shown, v)
	s.noteRepeats(shown, increment, v)
	return shown, nil
}

// see makes sure that the service still holds its directory, and reports whether the
// bundle of a state that was saved or restored is there.
func (s *Service) see(ctx context.Context, again bool, path string) (there bool, err error) {
	const unheld, missing = 0, 1
	seen := make([]int64, 2)
	if s.c.Rank() == 0 {
		err = comm.Protect(waiting.Step(ctx, "look at", "the checkpoint directory", func() error {
			if !s.ready || s.lost() {
				seen[unheld] = 1
			}
			if again {
				if _, err := readStructure(s.o.fs, path); err != nil {
					seen[missing] = 1 // the save says what is in its way
				}
			}
			return nil
		}))
	}
	if err := s.c.AgreeMax(ctx, err, seen); err != nil {
		return false, err
	}
	there = again && seen[missing] == 0
	if there || seen[unheld] == 0 {
		return there, nil
	}
	return false, s.begin(ctx)
}

// begin takes hold of the directory in the middle of a run: of a service that was off,
// or whose lock somebody removed.
func (s *Service) begin(ctx context.Context) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	if err := s.clean(ctx); err != nil {
		return err
	}
	return s.setAsidePassed(ctx)
}

// clean clears away the leftovers of dead jobs.
func (s *Service) clean(ctx context.Context) error {
	return s.c.OnRoot(ctx, nil, waiting.Step(ctx, "clear", "the checkpoint directory", s.dir.clean))
}

// explainExists adds the state of a bundle that is in the way, if it is the service's own.
func (s *Service) explainExists(increment int64, err error) error {
	if l := s.last; l.increment == increment && l.here && errors.Is(err, ErrExists) {
		return fmt.Errorf("%w (this service saved or restored it at time %v, with method %q)", err, l.time, l.method)
	}
	return err
}

// tidy removes old bundles when that of an increment is durable, on rank 0.
func (s *Service) tidy(ctx context.Context, increment int64) {
	err := comm.Protect(waiting.Step(ctx, "remove", "old bundles", func() error {
		return s.dir.prune(increment, s.cfg.Checkpoint.Keep, s.now)
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
	ctx = waiting.Named(ctx, "Service.Load")
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
	n, t := m.AcceptedIncrement, m.AcceptedTime
	derived, neighbour := d.TimeAt(n), n-1
	if n == 0 {
		neighbour = 1
	}
	scale := math.Abs(t)
	if step := math.Abs(derived - d.TimeAt(neighbour)); !math.IsInf(step, 0) && step > scale {
		scale = step
	}
	if diff := math.Abs(derived - t); !(diff <= 1e-9*scale) {
		return fmt.Errorf("%w: accepted_time of the bundle is %v, but the solver's clock has %v at increment %d",
			ErrMismatch, t, derived, n)
	}
	return nil
}
