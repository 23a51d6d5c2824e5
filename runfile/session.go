package runfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/repeats"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/record"
)

// A Session is one segment of a run, as the time loop of a solver sees it: it keeps
// what the solver hands over and writes output and checkpoints.
//
//	s, err := runfile.Open(ctx, c, cfg)
//	...
//	start := s.Start() // where to begin, and with what
//	err = s.SaveState(ctx, state)
//	// A run that is resumed at its end is done already.
//	for out := (runfile.Outcome{Done: s.Done()}); err == nil && !out.Done && !out.Stop; {
//		next := s.NextStep(h)
//		... attempt a step from t to next
//		s.Attempt(runfile.Attempt{Time: next, StepLength: next - t, Accepted: ok})
//		if !ok {
//			continue
//		}
//		t = next
//		if err = s.SaveState(ctx, state); err == nil {
//			out, err = s.Checkpoint(ctx, state, stepper)
//		}
//	}
//	err = errors.Join(err, s.Close(ctx))
//
// All ranks make all calls, in the same order, with the same times: every rank has
// its own session. What only rank 0's counts of is said with each call. Open, SaveState
// at a save time, Checkpoint and Close are collective, and give the same error on all
// ranks, unless that wraps [comm.ErrDead]. A session belongs to one goroutine.
type Session struct {
	c       *comm.Comm
	cfg     Config
	store   store
	now     func() time.Time
	log     *slog.Logger
	release func() error // of the lock, on rank 0 while it is held
	inbox   chan os.Signal

	settings      record.Record // without the section segment
	origin        segmentOrigin // what the section says that doesn't change any more
	start         Start
	located       *storedFields // of the start, on rank 0
	notFiniteLast *plannedStart // the last checkpoint, where the one before is preferred; rank 0
	ownLast       bool          // the start is the run's last checkpoint, which rank 0 alone knows
	inTheWay      []string      // files of rank 0's that the segment comes to replace, in order
	replaced      []string      // checkpoints of the run that this one overwrites; rank 0
	fields        *fieldBricks

	opened time.Time // when Open began
	broken error     // the first wrong call, which every later collective call returns
	apart  error     // set when the ranks are not in the same call
	lost   error     // states of fields are lost: no later call can do better
	ended  bool      // stopped or closed: nothing more is taken
	closed bool

	time     float64 // accepted
	accepted int64   // steps of this segment
	attempts int64   // of this segment
	swaps    int64   // calls of SetFields
	nextSave int     // index in the save times of the one that comes next
	updates  []UpdateState

	// What rank 0 has for the segment's file, and what it keeps until that is written.
	file        segmentFile
	times       []float64
	states      [][]float64
	updateSaves []UpdateStates
	stats       Statistics
	fieldSums   []map[string][]uint64 // of the states in the working file

	saved     int     // states of this segment
	length    float64 // of the last attempt
	summary   Summary // of the run, this segment included
	hasFields bool
	allWrite  bool  // files of the run hold fields
	reserved  int   // states of fields that are in the working file alone
	working   place // that file, on rank 0

	seen     stopFlags        // reasons that this rank saw
	stop     stopFlags        // those that are known on all ranks
	fileSeen time.Time        // when rank 0 last looked for the stop file
	looking  <-chan fileLook  // the outcome of that where it takes long, nil otherwise
	before   map[string]int64 // numbers that aren't finite, of that checkpoint, on rank 0
	repeats  repeats.Tracker  // of checkpoints with fields in them, on rank 0
	last     struct {         // checkpoint of this segment, or what it began with
		accepted int64
		time     float64
		wall     time.Time
	}
	written  bool // a checkpoint of this segment
	dirty    bool // there is what the segment's file lacks
	attempt  time.Time
	progress struct {
		accepted, attempts int64
		wall               time.Time
	}
	logged struct { // on rank 0
		cells int64 // bytes of the cells of fields that were written
		bytes int64 // written until the last checkpoint
	}
}

// Start is what a segment begins with, the same on all ranks.
type Start struct {
	// Segment is the number of the segment.
	Segment int
	Time    float64 // accepted, in seconds
	// State is the state at the time: a copy of Config.Initial in a new run, nil
	// without one. Unknowns are arranged as in the session's layout.
	State []float64

	// Resumed says that the state is a stored one, of the file and the segment
	// there, 0 where that isn't known.
	Resumed     bool
	File        string
	FromSegment int
	// Stepper is what the stepper carried; there is none with a state of an output
	// file.
	Stepper    record.Record
	HasStepper bool
	Updates    []UpdateState
	// Bundles names, for each field, the bundle that holds it.
	Bundles map[string]string
	// Saved is the number of states that the run saved before, Summary what it did, in
	// another directory too; see Config.Segment.
	Saved   int
	Summary Summary

	stateSaved bool // the state is among those that the run saved before
	replaces   bool // files of an earlier run, which it overwrites
}

// An Attempt is a step that was attempted.
type Attempt struct {
	Time                float64 // that it aimed at, in seconds
	StepLength          float64 // in seconds
	Accepted            bool
	ErrorEstimate       float64
	NonlinearIterations int64   // 0 stands for the number of Iterations
	LinearIterations    int64   // 0 stands for the sum over Iterations
	WallTime            float64 // in seconds; 0 stands for the time since the attempt before
	Outcome             string  // such as "converged"; empty for "accepted" or "rejected"
	Iterations          []Iteration
}

// An Iteration is one nonlinear iteration of an attempt.
type Iteration struct {
	Residual float64
	Linear   int64 // linear iterations
}

// Outcome is what Checkpoint did, and what the caller is to do.
type Outcome struct {
	Written bool // there is a checkpoint of the state
	Done    bool // the run has reached its end
	// Stop tells to end now; Reason says why.
	Stop   bool
	Reason string
}

// Start returns what the segment begins with.
func (s *Session) Start() Start {
	start := s.start
	start.State = slices.Clone(start.State)
	return start
}

// Done reports whether the run has reached its end: a resumed one may have before its
// first step.
func (s *Session) Done() bool { return s.time >= s.cfg.end() }

// NextTime returns the first time point after the accepted time: the next step must
// not go beyond it. It is the accepted time at the end of the run.
func (s *Session) NextTime() float64 {
	i, found := slices.BinarySearch(s.cfg.TimePoints, s.time)
	if found {
		i++
	}
	if i == len(s.cfg.TimePoints) {
		return s.time
	}
	return s.cfg.TimePoints[i]
}

// NextStep returns the time of the next step, which is to be h seconds long: h after the
// accepted time, or the next time point where that is no farther. It is never beyond that
// point, and at the end of the run it is the accepted time.
//
// So that no step is of rounding noise, a time point within h(1+1e-9), or within h and
// four units in the last place of the times, is reached at once, by a step that is so much
// longer. And steps of one length end at multiples of it from the time point before: their
// rounding doesn't add up. A step that h doesn't move ends at the next greater number.
//
// It is not collective. An h that is not greater than 0 is the error of the next call
// that is; the result is the next time point then.
func (s *Session) NextStep(h float64) float64 {
	next, point := s.time+h, s.NextTime()
	if !(h > 0) {
		s.fail("a step from %v s is to be %v s long", s.time, h)
		return point
	}
	noise := max(1e-9*h, 4*unitInLastPlace(max(math.Abs(s.time), math.Abs(point))))
	if point-s.time <= h+noise {
		return point
	}
	i, found := slices.BinarySearch(s.cfg.TimePoints, s.time)
	if !found {
		i--
	}
	before := s.cfg.TimePoints[i]
	// The products are rounded before they are added, on all machines.
	n := math.Round((s.time - before) / h)
	if math.Abs(before+float64(n*h)-s.time) <= noise {
		next = before + float64((n+1)*h)
	}
	return min(max(next, math.Nextafter(s.time, math.Inf(1))), point)
}

// unitInLastPlace is the distance of a number to the next greater one.
func unitInLastPlace(x float64) float64 { return math.Nextafter(x, math.Inf(1)) - x }

// fail keeps the first wrong call for the next collective one.
func (s *Session) fail(format string, args ...any) {
	if s.broken == nil {
		s.broken = fmt.Errorf("%w: %s", ErrInput, fmt.Sprintf(format, args...))
	}
}

// Attempt records a step that was attempted, accepted or not. An accepted one makes
// its time the accepted time. It is not collective; what is wrong with the attempt is
// the error of the next call that is. The statistics are rank 0's.
func (s *Session) Attempt(a Attempt) {
	now := s.now()
	wall := a.WallTime
	if wall == 0 {
		wall = now.Sub(s.attempt).Seconds()
	}
	s.attempt = now
	if s.broken != nil {
		return
	}
	switch {
	case s.ended:
		s.fail("an attempt after the end of the session")
		return
	case math.IsNaN(a.Time) || math.IsInf(a.Time, 0):
		s.fail("an attempt aims at the time %v", a.Time)
		return
	case a.Accepted && a.Time <= s.time:
		s.fail("a step to %v s is accepted at the accepted time %v s", a.Time, s.time)
		return
	case a.Accepted && a.Time > s.NextTime():
		s.fail("a step from %v s to %v s is accepted across the time point %v s", s.time, a.Time, s.NextTime())
		return
	case a.Accepted && s.saveIsDue():
		s.fail("a step is accepted before the state at the save time %v s is saved", s.time)
		return
	}
	if _, err := record.ValueOf(a.Outcome); err != nil {
		s.fail("the outcome of an attempt: %v", err)
		return
	}
	s.attempts++
	s.dirty = true
	if s.c.Rank() == 0 {
		s.count(a, wall)
	}
	if a.Accepted {
		s.accepted++
		s.time = a.Time
	}
}

// count adds an attempt to the statistics.
func (s *Session) count(a Attempt, wall float64) {
	nonlinear, linear := a.NonlinearIterations, a.LinearIterations
	if nonlinear == 0 {
		nonlinear = int64(len(a.Iterations))
	}
	if linear == 0 {
		for _, i := range a.Iterations {
			linear += i.Linear
		}
	}
	outcome := a.Outcome
	if outcome == "" {
		outcome = map[bool]string{true: "accepted", false: "rejected"}[a.Accepted]
	}
	t := &s.stats
	s.length = a.StepLength
	t.Time, t.StepLength = append(t.Time, a.Time), append(t.StepLength, a.StepLength)
	t.Accepted, t.ErrorEstimate = append(t.Accepted, a.Accepted), append(t.ErrorEstimate, a.ErrorEstimate)
	t.NonlinearIterations = append(t.NonlinearIterations, nonlinear)
	t.LinearIterations = append(t.LinearIterations, linear)
	t.WallTime, t.Outcome = append(t.WallTime, wall), append(t.Outcome, outcome)
	for _, i := range a.Iterations {
		t.IterationAttempt = append(t.IterationAttempt, s.attempts)
		t.IterationResidual = append(t.IterationResidual, i.Residual)
		t.IterationLinear = append(t.IterationLinear, i.Linear)
	}
	s.summary.add(Summary{1, boolFlag(a.Accepted), nonlinear, linear, wall})
}

// SetUpdate puts the state of an interval update in force. It is copied. It is not
// collective; what is wrong is the error of the next call that is.
func (s *Session) SetUpdate(name string, state []float64) {
	i := slices.Index(s.cfg.Updates, name)
	if i < 0 {
		s.fail("interval update %q is not one of %q", name, s.cfg.Updates)
		return
	}
	if before := s.updates[i].State; before != nil && len(state) != len(before) {
		s.fail("interval update %q has %d numbers, had %d before", name, len(state), len(before))
		return
	}
	s.updates[i].State = append(make([]float64, 0, len(state)), state...)
}

// SetFields makes fields those of the present state, from now on: a solver that has two
// buffers and swaps them says after each swap which of them has the state. Those of
// Config.Fields that aren't named stay as they are. A field has the grid, the box and the
// kind of the one in whose place it comes; it may be in another memory space. Its cells
// are read when SaveState and Checkpoint are called, and not kept.
//
// It is not collective, but all ranks call it alike; what is wrong is the error of the next
// call that is, and no field is replaced then.
func (s *Session) SetFields(fields []field.Named) {
	s.swaps++
	if err := comm.Protect(func() error { return s.fields.set(fields) }); err != nil && s.broken == nil {
		s.broken = fmt.Errorf("%w: %w", ErrInput, err)
	}
}

// saveIsDue reports whether the accepted time is a save time, or beyond one, whose
// state isn't saved.
func (s *Session) saveIsDue() bool {
	times := s.cfg.saveTimes()
	return s.nextSave < len(times) && s.time >= times[s.nextSave]
}

// SaveState saves the state at the accepted time if that is a save time, and does
// nothing otherwise. A new run calls it before its first step too, and every run after
// each accepted step. It is collective at a save time. The state is copied; it is
// rank 0's that counts, other ranks may give nil. Every interval update must be in
// force.
//
// The cells of fields go to a working file beside the segment, from all ranks, and
// belong to the segment from the next checkpoint on. If that fails, nothing is saved and
// the next call tries again, unless there are states of fields that no checkpoint has
// published. These are lost then: the session returns the error from every later call,
// the files are as the last checkpoint left them, and the run can be resumed from it. A
// cancelled context loses no state.
func (s *Session) SaveState(ctx context.Context, state []float64) error {
	ctx = waiting.Named(ctx, "a call of a Session")
	if !s.saveIsDue() && s.broken == nil && s.lost == nil && !s.ended {
		return nil
	}
	err := s.together(ctx, callSave, s.usable(state), nil)
	if err == nil && s.hasFields {
		work, end := s.atWork(ctx, "save state of")
		err = s.saveFields(work)
		end()
	}
	if err != nil {
		return fmt.Errorf("save state of run %s: %w", s.cfg.Name, err)
	}
	s.nextSave++
	s.saved++
	s.dirty = true
	if s.c.Rank() != 0 {
		return nil
	}
	s.times = append(s.times, s.time)
	s.states = append(s.states, slices.Clone(state))
	for i, u := range s.updates {
		s.updateSaves[i].States = append(s.updateSaves[i].States, u.State)
	}
	return nil
}

// saveFields writes the cells of all fields to the working file of the segment.
func (s *Session) saveFields(ctx context.Context) error {
	if s.reserved > 0 { // it is too late for a context to end it: states would be lost
		ctx = context.WithoutCancel(ctx)
	}
	var p place
	err := s.c.OnRoot(ctx, nil, waiting.Step(ctx, "make room in", "the working file", func() error {
		settings, err := s.withSegment()
		if err != nil {
			return err
		}
		p, err = s.file.reserve(ctx, &Solution{Settings: settings, Layout: s.cfg.Layout})
		return err
	}))
	var sums map[string][]uint64
	if err == nil {
		_, sums, err = s.fields.write(ctx, &p)
	}
	if err != nil {
		return s.discard(ctx, err)
	}
	s.working = p
	s.reserved++
	s.noteCells(&p)
	s.fieldSums = append(s.fieldSums, sums)
	return nil
}

// discard gives the working file of the segment up, after an error on all ranks. The
// cells of states that it alone has are lost.
func (s *Session) discard(ctx context.Context, err error) error {
	if s.reserved > 0 {
		s.lost = fmt.Errorf("saved states of fields are lost: %w", err)
		err = s.lost
	}
	s.reserved, s.fieldSums = 0, nil
	s.cleanUp(ctx, err, "the working file of the segment", func() error { return s.file.discard() })
	return err
}

// usable tells whether the session takes a state.
func (s *Session) usable(state []float64) error {
	switch {
	case s.lost != nil:
		return s.lost
	case s.ended:
		return ErrStopped
	case s.broken != nil:
		return s.broken
	}
	for _, u := range s.updates {
		if u.State == nil {
			return fmt.Errorf("%w: interval update %q has no state at %v s", ErrInput, u.Name, s.time)
		}
	}
	if n := s.cfg.Layout.Size(); s.c.Rank() == 0 && len(state) != n {
		return fmt.Errorf("%w: the state has %d numbers, the layout %d", ErrInput, len(state), n)
	}
	return nil
}

// Checkpoint is called after each accepted step, after SaveState. It decides whether a
// checkpoint is due, and whether the caller is to stop: then there is a checkpoint,
// and the segment's record holds the reason. It is collective, with one small message
// where nothing is due. The state is rank 0's that counts, other ranks may give nil.
//
// stepper gives the record of what the stepper carries; it is called, on all ranks,
// only when a checkpoint is written, and rank 0's record counts. State is read after it,
// so it may fill state too. A nil stepper carries nothing.
//
// A state with numbers that are NaN or infinite is a warning, when an unknown has more of
// them than at the checkpoint before; or, if they are to be refused, the error
// [ErrNonFinite]. Nothing has been written then, unless a bundle has them. A field in the
// checkpoint's file that equals that of the checkpoint before is a warning, once in a
// session, if it has changed between earlier ones and isn't one of ConstantFields.
//
// An error of writing leaves the session as it was: the next call tries again. What
// becomes of saved states of fields then is said at SaveState.
func (s *Session) Checkpoint(ctx context.Context, state []float64, stepper func() (record.Record, error)) (Outcome, error) {
	ctx = waiting.Named(ctx, "a call of a Session")
	out, err := s.checkpoint(ctx, state, stepper)
	if err != nil {
		err = fmt.Errorf("checkpoint of run %s: %w", s.cfg.Name, err)
	}
	return out, err
}

func (s *Session) checkpoint(ctx context.Context, state []float64, stepper func() (record.Record, error)) (out Outcome, err error) {
	err = s.usable(state)
	if err == nil && s.saveIsDue() {
		err = fmt.Errorf("%w: the state at the save time %v s is not saved yet", ErrInput, s.time)
	}
	var stop stopFlags
	if err == nil {
		stop = s.stopFlags()
	}
	flags := []int64{boolFlag(err == nil && s.due()), int64(stop)}
	if err := s.together(ctx, callCheckpoint, err, flags); err != nil {
		return out, err
	}
	s.stop = stopFlags(flags[1]) // each rank says again what it has seen
	out.Done = s.Done()
	if s.stop != 0 && !out.Done {
		out.Stop, out.Reason = true, s.stop.reason(&s.cfg)
	}
	s.logProgress(out)
	if out.Stop && s.cfg.Checkpoint.Off {
		s.ended = true
		s.logStop(out.Reason, s.now())
	}
	if s.cfg.Checkpoint.Off || !(flags[0] != 0 || out.Stop || out.Done && s.accepted > s.last.accepted) {
		return out, nil
	}
	if err := s.write(ctx, state, stepper); err != nil {
		return out, err
	}
	out.Written = true
	s.ended = out.Stop
	if out.Stop {
		s.logStop(out.Reason, s.last.wall)
	}
	return out, nil
}

// due is rank 0's decision whether it is time for a checkpoint.
func (s *Session) due() bool {
	k := s.cfg.Checkpoint
	if s.c.Rank() != 0 || k.Off || s.accepted == s.last.accepted {
		return false
	}
	return k.Steps > 0 && s.accepted-s.last.accepted >= k.Steps ||
		k.Interval > 0 && s.intervals(s.time) > s.intervals(s.last.time) ||
		k.WallTime > 0 && s.now().Sub(s.last.wall) >= k.WallTime
}

// intervals is how many intervals between checkpoints have gone by at a time, since the
// run began. One that is over except for the rounding of times that were added up is over.
func (s *Session) intervals(time float64) float64 {
	first, span := s.cfg.TimePoints[0], s.cfg.Checkpoint.Interval
	noise := min(1e-6, 1e-9*max(math.Abs(time), math.Abs(first))/span)
	return math.Floor((time-first)/span + noise)
}

// write writes the segment and then the checkpoint, so that a checkpoint never names
// states that its segment lacks.
func (s *Session) write(ctx context.Context, state []float64, stepper func() (record.Record, error)) error {
	began := s.now()
	k := Checkpoint{Layout: s.cfg.Layout, Time: s.time, State: state, Segment: s.start.Segment, HasStepper: true}
	err := comm.Protect(func() (err error) {
		if stepper != nil {
			k.Stepper, err = stepper()
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("record of the stepper: %w", err)
	} else if s.c.Rank() == 0 {
		k.policies = s.cfg.policies()
		k.NonFinite = s.cfg.Layout.nonFinite(state)
		err = s.refuse(k.NonFinite)
	}
	if err := s.c.Agree(ctx, err); err != nil {
		return err
	}
	work, end := s.atWork(ctx, "checkpoint of")
	defer end()
	if err := s.refuseFields(work); err != nil {
		return err
	}
	if err := s.writeSegment(work); err != nil {
		return err
	}
	if k.Bundles, err = s.bundles(ctx); err != nil {
		return err
	}
	if err := s.writeCheckpoint(work, &k); err != nil {
		return err
	}
	s.noteWritten(k.NonFinite)
	s.noteRepeats(&k)
	s.written, s.dirty = true, true // the segment's record tells of the checkpoint
	s.last.accepted, s.last.time, s.last.wall = s.accepted, s.time, s.now()
	s.logCheckpoint(s.last.wall.Sub(began))
	return nil
}

// writeCheckpoint writes a checkpoint with the fields that no bundle holds.
func (s *Session) writeCheckpoint(ctx context.Context, k *Checkpoint) error {
	inFile := s.hasFields && k.Bundles == nil
	var p place
	err := s.c.OnRoot(ctx, nil, waiting.Step(ctx, "write", "the checkpoint", func() (err error) {
		if k.Settings, err = s.withSegment(); err != nil {
			return err
		}
		k.SavedCount = s.start.Saved + s.saved
		k.Summary = s.summary
		k.Updates = slices.Clone(s.updates)
		maps.Copy(k.NonFinite, inBundles(s.store.filesystem(), s.store.directory(), s.store.workingDirectory(), k.Bundles))
		if err = s.refuse(k.NonFinite); err != nil {
			return err
		}
		if inFile {
			p, err = s.store.reserveCheckpoint(ctx, k)
			return err
		}
		return s.store.writeCheckpoint(ctx, k)
	}))
	if err != nil || !inFile {
		return err
	}
	counts, sums, err := s.fields.write(ctx, &p)
	if err == nil {
		s.noteCells(&p)
		err = s.fields.sync(ctx, &p)
	}
	err = s.c.OnRoot(ctx, err, waiting.Step(ctx, "complete", "the checkpoint", func() error {
		maps.Copy(k.NonFinite, counts)
		k.fieldSums = sums
		return s.store.completeCheckpoint(ctx, k, counts)
	}))
	if err != nil {
		s.cleanUp(ctx, err, "the working file of the checkpoint", s.store.discardCheckpoint)
	}
	return err
}

// bundles publishes the fields and names where they are.
func (s *Session) bundles(ctx context.Context) (map[string]string, error) {
	var fields []string
	for _, u := range s.cfg.Layout.Unknowns {
		if u.Kind == Field {
			fields = append(fields, u.Name)
		}
	}
	if fields == nil || s.cfg.Bundle == nil {
		return nil, nil
	}
	var path string
	err := comm.Protect(func() (err error) {
		path, err = s.cfg.Bundle(ctx)
		if err == nil && path == "" {
			err = errors.New("the bundle has no path")
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("bundle of the fields: %w", err)
	}
	if err := s.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	named := make(map[string]string, len(fields))
	for _, name := range fields {
		named[name] = path
	}
	return named, nil
}

// writeSegment makes the segment's file have what the segment has so far. Once it has
// begun, a cancelled context doesn't end it.
func (s *Session) writeSegment(ctx context.Context) error {
	// Whether the file has what is new must be the same to all ranks, so it can't hang on
	// another rank's context.
	whole := context.WithoutCancel(ctx)
	var err error
	if s.reserved > 0 {
		err = s.fields.sync(whole, &s.working)
	}
	err = s.c.OnRoot(whole, err, waiting.Step(whole, "write", "the segment", func() error {
		settings, err := s.withSegment()
		if err == nil {
			err = s.clearTheWay()
		}
		if err != nil {
			return err
		}
		return s.file.publish(whole, &Solution{
			Settings: settings, Layout: s.cfg.Layout,
			Times: s.times, States: s.states, Statistics: s.stats, Updates: s.updateSaves, fieldSums: s.fieldSums,
		})
	}))
	if err != nil && !errors.Is(err, errUnsynced) {
		return s.discard(ctx, err)
	}
	s.reserved, s.fieldSums = 0, nil
	s.times, s.states, s.stats = nil, nil, Statistics{}
	for i := range s.updateSaves {
		s.updateSaves[i].States = nil
	}
	return err
}

// Close writes the segment with what it has since its last checkpoint, ends it and
// lets other runs of the name begin. A segment in which nothing happened has no file, unless
// it overwrites another one.
// It is collective; closing again does nothing. A cancelled context does not keep it
// from its work. After a wrong call it writes what the segment has had before, and
// returns the error of that call.
func (s *Session) Close(ctx context.Context) error {
	ctx = waiting.Named(ctx, "a call of a Session")
	if s.closed {
		return nil
	}
	s.closed = true
	s.stopListening()
	defer s.fields.close()
	ctx = context.WithoutCancel(ctx)
	wrong := []int64{boolFlag(s.broken != nil), 0}
	err := s.together(ctx, callClose, s.lost, wrong)
	s.ended = true
	ctx, end := s.atWork(ctx, "close")
	defer end()
	if err == nil {
		if s.dirty {
			err = s.writeSegment(ctx)
		}
		if wrong[0] != 0 {
			err = errors.Join(s.c.Agree(ctx, s.broken), err)
		}
		err = s.c.OnRoot(ctx, err, waiting.Step(ctx, "remove", "the lock", s.unlock))
	} else if s.reserved > 0 {
		err = s.discard(ctx, err)
	}
	if err != nil {
		s.cleanUp(ctx, err, "the lock", s.unlock)
		return fmt.Errorf("close run %s: %w", s.cfg.Name, err)
	}
	return nil
}

// unlock gives the lock up if it is held.
func (s *Session) unlock() error {
	release := s.release
	s.release = nil
	if release == nil {
		return nil
	}
	return release()
}

// Status of a segment in its record.
const (
	statusRunning     = "running"
	statusCompleted   = "completed"   // the run reached its end
	statusStopped     = "stopped"     // a stop condition ended the segment
	statusInterrupted = "interrupted" // the caller closed it before
)

// segmentOrigin is what the record of a segment says of how it began.
type segmentOrigin struct {
	resumed         bool
	attemptsBefore  *int64
	from            string
	fromSegment     *int64
	previousCommit  string
	commitChanged   *bool // nil where a commit isn't known
	previousHash    string
	settingsChanged bool
	changed         []string // sections of the setup
}

// withSegment returns the settings with the record of the segment as it is now.
func (s *Session) withSegment() (record.Record, error) {
	status := statusRunning
	switch {
	case s.Done():
		status = statusCompleted
	case s.stop != 0:
		status = statusStopped
	case s.closed:
		status = statusInterrupted
	}
	b := record.NewBuilder()
	b.Int("index", int64(s.start.Segment)).Float("start_time", s.start.Time)
	b.Int("saved_before", int64(s.start.Saved)).Bool("resumed", s.origin.resumed)
	b.Text("status", status).Float("end_time", s.time).Int("steps", s.accepted)
	if status == statusStopped {
		b.Text("stop_reason", s.stop.reason(&s.cfg))
	}
	b.Bool("checkpoint_written", s.written)
	if s.origin.attemptsBefore != nil {
		b.Int("attempts_before", *s.origin.attemptsBefore)
	}
	b.Bool("deterministic", s.cfg.Setup.Deterministic)
	if s.origin.resumed {
		s.origin.describe(b)
	}
	segment, err := b.Build()
	if err != nil {
		return record.Record{}, err
	}
	return s.settings.With("segment", segment)
}

func (o *segmentOrigin) describe(b *record.Builder) {
	b.Text("resumed_from", o.from)
	if o.fromSegment != nil {
		b.Int("resumed_from_segment", *o.fromSegment)
	}
	b.Text("previous_commit", o.previousCommit)
	if o.commitChanged != nil {
		b.Bool("commit_changed", *o.commitChanged)
	}
	b.Text("previous_setup_hash", o.previousHash).Bool("settings_changed", o.settingsChanged)
	if len(o.changed) > 0 {
		b.Texts("changed_sections", o.changed)
	}
}
