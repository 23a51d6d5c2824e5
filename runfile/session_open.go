package runfile

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/owner"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/record"
)

// Open begins a segment of a run: a new one, or one that goes on from a stored state.
// It is collective. No file of the run changes yet, except that one which overwrites puts its
// segment, still empty, in the place of the old one at the end of Open, and renames the
// checkpoints that are there to <file>.superseded. From then on the run that was overwritten
// isn't resumed any more, and before it is whole.
//
// It refuses, and deletes nothing, when
//   - another run of the name is going on in the directory, still after Config.Wait:
//     [ErrInUse], with the process, machine and job that it is;
//   - segments with higher numbers exist: [ErrFilesExist];
//   - the segment of its number exists, or a checkpoint of it or of a later one,
//     unless it overwrites: [ErrFilesExist]. A run that resumes replaces a segment that
//     no checkpoint names, which a killed job left, but not one that had a checkpoint
//     where there is none any more;
//   - something that is no regular file is in the place of a file that it comes to write:
//     [ErrFilesExist];
//   - checkpoints exist and none is good: [ErrUnreadable]. Only a run that
//     overwrites may begin then;
//   - the last checkpoint doesn't fit the segment that it names, or that segment is bad:
//     [ErrResume];
//   - the stored state is not of the layout's grids, lacks an unknown, lies
//     outside the time points, or has no stepper's record and is at none of them, or
//     the file of Config.From is bad: [ErrResume];
//   - the stop file is there already: [ErrStopFile];
//   - ranks are to write fields, or to read them, on a node that doesn't see what rank 0
//     sees, as where the directory is local to each node: the error names the node and the
//     path. It is found out before anything but the lock is looked at.
//
// What is bad is what [Faults] calls so, with the same text. A last checkpoint that is bad by
// itself is passed over, with a warning, for the one before, and so is one whose segment is
// gone. One whose bundle Config.LoadBundle can't load is likewise passed over, and refused
// where the one before is no better; without LoadBundle one whose bundle isn't there,
// if that of the one before is. What was written after the
// earlier one is computed again; its files are renamed to <file>.superseded before the
// segment replaces them.
//
// So is a checkpoint of which a value is not the one that was written, by the checksums
// that its file has: [ErrChecksum], where no checkpoint is left.
//
// A checkpoint that is not finite is likewise passed over if the one before is, and
// otherwise taken, with a warning; see [CheckpointConfig].
//
// The stored cells of fields are given to Config.Fields last, when everything else is
// known to be right and all cells fit. If the file can't be read then, they are
// undefined.
//
// The lock against other runs is given up by Close, and by the end of the process in
// any case. Where the filesystem has no working locks that is a warning.
func Open(ctx context.Context, c *comm.Comm, cfg Config) (*Session, error) {
	ctx = waiting.Named(ctx, "runfile.Open")
	return open(ctx, c, cfg, nil, time.Now)
}

// open is Open with another store, unless that is nil, and another clock.
func open(ctx context.Context, c *comm.Comm, cfg Config, files store, now func() time.Time) (*Session, error) {
	s := &Session{c: c, cfg: cfg, store: files, now: now, log: cfg.Logger, opened: now()}
	// What the caller makes of its lists later is not for the session.
	for _, list := range []*[]float64{&s.cfg.Initial, &s.cfg.TimePoints, &s.cfg.SaveTimes} {
		*list = slices.Clone(*list)
	}
	s.cfg.Updates, s.cfg.Fields = slices.Clone(cfg.Updates), slices.Clone(cfg.Fields)
	if s.log == nil || c.Rank() != 0 {
		s.log = silent
	}
	if files == nil {
		s.store = newDisk(cfg.Directory, cfg.Name, s.log)
	}
	if err := s.agree(ctx); err != nil {
		return nil, fmt.Errorf("open run: %w", err) // whose name may differ on the ranks
	}
	work, end := s.atWork(ctx, "open")
	defer end()
	err := s.hold(work)
	if err == nil {
		// Before the ranks agree for the last time: when one has its session, all listen.
		s.listen()
		err = s.open(work)
	}
	if err != nil {
		s.stopListening()
		s.fields.close()
		s.cleanUp(work, err, "the lock", s.unlock)
		return nil, fmt.Errorf("open run %s: %w", cfg.Name, err)
	}
	return s, nil
}

var silent = slog.New(slog.DiscardHandler)

// agree checks the configuration, which must be the same on all ranks.
func (s *Session) agree(ctx context.Context) error {
	err := comm.Protect(s.cfg.validate)
	if err == nil {
		s.settings, err = s.cfg.settings(s.c.Size())
	}
	if err == nil {
		s.settings, err = named(s.settings)
	}
	if err := agreeInputs(ctx, s.c, err, s.cfg.inputs(s.settings)); err != nil {
		return err
	}
	s.fields = newFieldBricks(s.c, &s.cfg, s.store.filesystem())
	var names []string
	for i := range s.cfg.Layout.Unknowns {
		if u := &s.cfg.Layout.Unknowns[i]; s.cfg.needsField(u) {
			names = append(names, u.Name)
		}
	}
	s.allWrite = len(names) > 0
	s.hasFields = slices.ContainsFunc(s.cfg.Layout.Unknowns, func(u Unknown) bool { return u.Kind == Field })
	return s.fields.know(ctx, names)
}

// hold keeps other runs of the name away, once they have ended.
func (s *Session) hold(ctx context.Context) error {
	take := waiting.Step(ctx, "take", "the lock", func() (err error) {
		s.release, err = s.store.lock()
		return err
	})
	return owner.Wait(ctx, s.c, s.cfg.wait(), ErrInUse, take, func(err error) {
		s.log.Warn("waiting for another run of the name to end", "run", s.cfg.Name, "at most", s.cfg.wait(), "because", err)
	})
}

func (s *Session) open(ctx context.Context) error {
	if err := s.oneDirectory(ctx); err != nil {
		return err
	}
	err := s.settle(ctx, func() error {
		if err := s.plan(ctx); err != nil {
			return err
		}
		return s.preferFinite(ctx)
	})
	if err != nil {
		return err
	}
	if err := s.loadBundle(ctx); err != nil {
		return err
	}
	// The cells come last: nothing is refused once they have changed.
	if err := s.loadFields(ctx); err != nil {
		return err
	}
	s.begin()
	if err := s.overwrite(ctx); err != nil {
		return err
	}
	s.logResume()
	return nil
}

// settle lets rank 0 decide what the segment begins with, and all ranks know it.
func (s *Session) settle(ctx context.Context, plan func() error) error {
	var text []byte
	err := s.c.OnRoot(ctx, nil, waiting.Step(ctx, "read", "the files of the run", func() (err error) {
		if err = plan(); err != nil {
			return err
		}
		if s.file, err = s.store.segment(s.start.Segment); err != nil {
			return err
		}
		text, err = encodeStart(&s.start)
		return err
	}))
	if err != nil {
		return err
	}
	if text, err = s.c.Broadcast(ctx, 0, text); err != nil {
		return err
	}
	return s.c.Agree(ctx, decodeStart(text, &s.start))
}

// oneDirectory makes sure, where ranks on several nodes are to write fields, that all of
// them see the directory that rank 0 has locked. Nothing in it has been looked at before.
// Without fields rank 0 is alone with the files.
func (s *Session) oneDirectory(ctx context.Context) error {
	if !s.allWrite {
		return nil
	}
	look := onedir.From(ctx)
	several, _, err := look.Nodes(ctx, s.c)
	if err != nil || !several {
		return err
	}
	s.store.onNodes()
	return look.Directory(ctx, s.c, s.store.filesystem(), s.log, func() (string, error) {
		return s.store.directory(), nil
	})
}

// inputs are what all ranks must give alike.
func (c *Config) inputs(settings record.Record) []input {
	list := []input{
		{"the directory", strconv.Quote(c.Directory)},
		{"the name", strconv.Quote(c.Name)},
		{"Segment", strconv.Itoa(c.Segment)},
		{"Wait", c.Wait.String()},
		{"Resume and Overwrite", fmt.Sprint(c.Resume, c.Overwrite)},
		{"From", fmt.Sprintf("%q, state %d", c.From, c.FromState)},
		{"the updates", fmt.Sprintf("%q", c.Updates)},
		{"whether it is deterministic", strconv.FormatBool(c.Setup.Deterministic)},
		{"whether there is a bundle", strconv.FormatBool(c.Bundle != nil)},
		{"the policy for numbers that aren't finite", c.policies().String()},
		{"whether bundles are loaded", strconv.FormatBool(c.LoadBundle != nil)},
	}
	for _, u := range c.Layout.Unknowns {
		list = append(list, input{"the unit of " + u.Name, strconv.Quote(u.Unit)})
	}
	for _, section := range append(slices.Clone(setupSections), "checkpoint", "stop", "log") {
		if r, err := settings.Record(section); err == nil {
			list = append(list, input{"the settings' section " + section, "one of hash " + r.Hash()})
		}
	}
	return list
}

// begin sets the counters to the start.
func (s *Session) begin() {
	now := s.now()
	s.attempt, s.progress.wall = now, now
	s.fileSeen = now
	s.time = s.start.Time
	s.summary = s.start.Summary
	s.last.time, s.last.wall = s.time, now
	times := s.cfg.saveTimes()
	var saved bool
	s.nextSave, saved = slices.BinarySearch(times, s.time)
	if saved && s.start.stateSaved {
		s.nextSave++
	}
	for _, name := range s.cfg.Updates {
		u := UpdateState{Name: name}
		for _, stored := range s.start.Updates {
			if stored.Name == name {
				u.State = append(make([]float64, 0, len(stored.State)), stored.State...)
			}
		}
		s.updates = append(s.updates, u)
		s.updateSaves = append(s.updateSaves, UpdateStates{Name: name})
	}
}

// plan decides, on rank 0, what the segment begins with, by the rules of Open.
func (s *Session) plan(ctx context.Context) error {
	cfg := &s.cfg
	if cfg.Stop.File != "" {
		there, err := s.store.exists(cfg.Stop.File)
		if err == nil && there {
			err = fmt.Errorf("%w: %s (remove it to go on)", ErrStopFile, cfg.Stop.File)
		}
		if err != nil {
			return err
		}
	}
	if err := s.store.places(0); err != nil {
		return err
	}
	last, err := s.store.checkpoint(ctx)
	if ctx.Err() != nil {
		return err
	}
	if err != nil && !cfg.Overwrite {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	segments, err := s.store.segments()
	if err != nil {
		return err
	}
	if cfg.Resume && last != nil {
		if last, err = s.fitting(ctx, last, segments); err != nil {
			return err
		}
	}
	from := last
	if !cfg.Resume {
		from = nil
	}
	number, own := 1, from != nil
	if from == nil && cfg.From != "" {
		if from, err = s.store.state(ctx, cfg.From, cfg.FromState-1); err != nil {
			return fmt.Errorf("%w: %w", ErrResume, err)
		}
		own = s.store.owns(from.File)
	}
	if own {
		number = from.Segment + 1
	}
	if own && cfg.Segment != 0 && cfg.Segment != number {
		return fmt.Errorf("%w: this is to be segment %d, but %s is of segment %d", ErrResume, cfg.Segment, from.File, from.Segment)
	}
	if cfg.Segment != 0 {
		number = cfg.Segment
	}
	switch {
	case from == nil && number != 1:
		return fmt.Errorf("%w: segment %d has no state to begin with", ErrResume, number)
	case number > maxSegment:
		return s.outOfNumbers(number)
	case last != nil && !cfg.Resume && !cfg.Overwrite && last.Segment >= number:
		return fmt.Errorf("%w: %s is of segment %d, and this is to be segment %d (resume, overwrite, or choose another name)",
			ErrFilesExist, last.File, last.Segment, number)
	}
	if err := s.store.places(number); err != nil {
		return err
	}
	if from != nil && from == last && last.passed != nil {
		segments = s.goBack(segments, number, last)
	}
	if err := s.checkSegments(ctx, segments, number, last); err != nil {
		return err
	}
	s.start.Segment = number
	if cfg.Overwrite {
		if s.replaced, err = s.store.checkpointsFrom(ctx, number); err != nil {
			return err
		}
		s.start.replaces = len(s.replaced) > 0 || slices.ContainsFunc(segments, func(g Segment) bool { return g.Number == number })
	}
	s.ownLast = cfg.Resume && last != nil && !last.Previous
	if from == nil {
		s.start.Time = cfg.TimePoints[0]
		s.start.State = slices.Clone(cfg.Initial)
		zero := int64(0)
		s.origin.attemptsBefore = &zero
		return nil
	}
	return s.resume(ctx, from)
}

// checkSegments refuses to begin a segment beside files that it must not replace. last
// is the run's last checkpoint, nil if there is none.
func (s *Session) checkSegments(ctx context.Context, segments []Segment, number int, last *Checkpoint) error {
	if n := len(segments); n > 0 && segments[n-1].Number > number {
		return fmt.Errorf("%w: %s has a higher number than segment %d, with which it would be joined", ErrFilesExist, segments[n-1].File, number)
	}
	for _, g := range segments {
		switch {
		case g.Number < number || s.cfg.Overwrite:
		case !s.cfg.Resume:
			return fmt.Errorf("%w: %s (resume, overwrite, or choose another name)", ErrFilesExist, g.File)
		default:
			// A killed job leaves a segment that no checkpoint names. One that never
			// was to have a checkpoint is no such file.
			i, faults, err := s.store.look(ctx, g)
			if err != nil {
				return fmt.Errorf("%w: %s, which can't be judged: %w", ErrFilesExist, g.File, err)
			}
			settings := i.Settings
			if settings.Len() == 0 && len(faults) > 0 {
				s.log.Warn("replacing a segment whose settings can't be read", "file", g.File, "error", faults[0])
				continue
			}
			if kind, err := settings.Text("checkpoint/type"); err == nil && kind == none {
				return fmt.Errorf("%w: %s is of a run without checkpoints (overwrite, or choose another name)", ErrFilesExist, g.File)
			}
			if written, err := boolAt(settings, "segment/checkpoint_written"); err == nil && written && last == nil {
				return fmt.Errorf("%w: %s was written with checkpoints, and none is there: a resumed run would start over (bring one back, overwrite, or choose another name)",
					ErrFilesExist, g.File)
			}
		}
	}
	return s.checkChain(ctx, segments, last)
}

// checkChain makes sure that the segment that a run resumes after is good: without it the
// output can't be joined. Whether the checkpoint fits it is known by now.
func (s *Session) checkChain(ctx context.Context, segments []Segment, last *Checkpoint) error {
	if !s.cfg.Resume || last == nil {
		return nil
	}
	n := slices.IndexFunc(segments, func(g Segment) bool { return g.Number == last.Segment })
	if n < 0 {
		s.log.Warn("the segment before is not there: the output can't be joined without it", "segment", last.Segment)
		return nil
	}
	_, faults, err := s.store.look(ctx, segments[n])
	if err == nil && len(faults) > 0 {
		err = faults[0]
	}
	if err != nil {
		return fmt.Errorf("%w: %w (bring the segment back; without any segments, moved away, the run goes on, and the output can't be joined)", ErrResume, err)
	}
	return nil
}

// resume begins with a stored state.
func (s *Session) resume(ctx context.Context, from *Checkpoint) error {
	s.before = from.NonFinite
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w from %s: %s", ErrResume, from.File, fmt.Sprintf(format, args...))
	}
	if err := s.outOfTime(from); err != nil {
		return err
	}
	if _, found := slices.BinarySearch(s.cfg.TimePoints, from.Time); !found && !from.HasStepper {
		return refuse("its time %v s is not one of the time points, and it has no stepper's record", from.Time)
	}
	state, err := matchUnknowns(&s.cfg.Layout, from, s.cfg.Initial, s.log)
	if err != nil {
		return refuse("%v", err)
	}
	if s.located, err = locateFields(ctx, &s.cfg.Layout, from); err != nil {
		return fmt.Errorf("%w from %s: %w", ErrResume, from.File, err)
	}
	s.start = Start{
		Segment: s.start.Segment, Time: from.Time, State: state,
		Resumed: true, File: from.File, FromSegment: from.Segment,
		Stepper: from.Stepper, HasStepper: from.HasStepper,
		Updates: from.Updates, Bundles: from.Bundles,
	}
	if err := s.goOnCounting(from); err != nil {
		return fmt.Errorf("%w from %s: %w", ErrResume, from.File, err)
	}
	if s.start.Segment > 1 {
		var before []string
		for _, u := range from.Updates {
			before = append(before, u.Name)
		}
		if now := slices.Sorted(slices.Values(s.cfg.Updates)); !slices.Equal(slices.Sorted(slices.Values(before)), now) {
			s.log.Warn("the interval updates are others than before: the segments can't be joined", "file", from.File, "before", before, "now", s.cfg.Updates)
		}
	}
	return s.describeOrigin(from)
}

// goOnCounting makes the segment count on from the state that it begins with, if that is
// of the same run: of its files here, or of those of its name in another directory.
func (s *Session) goOnCounting(from *Checkpoint) error {
	if s.start.Segment == 1 && !isOfRun(from.File, s.cfg.Name) {
		return nil // the states and steps are another run's
	}
	saved, err := wasSaved(from)
	if err != nil {
		return err
	}
	s.start.Saved, s.start.Summary = from.SavedCount, from.Summary
	if s.start.Segment > 1 {
		s.start.stateSaved = saved
	} else if _, again := slices.BinarySearch(s.cfg.saveTimes(), from.Time); saved && again {
		s.start.Saved-- // a first segment has the state too
	}
	return nil
}

// wasSaved tells whether the segment before has saved the state: its save times may have
// been others than they are now.
func wasSaved(from *Checkpoint) (bool, error) {
	if !from.HasStepper {
		return true, nil // it is a saved one
	}
	times, err := optional(floatsAt(from.Settings, "time/save_times"))
	if err != nil || times == nil {
		return true, ofSettings(err)
	}
	return slices.Contains(*times, from.Time), nil
}

// describeOrigin compares the settings with those of what the segment begins with.
func (s *Session) describeOrigin(from *Checkpoint) error {
	o := segmentOrigin{resumed: true, from: from.File, previousCommit: unknownCommit, previousHash: unknownHash}
	for path, to := range map[string]*string{"code/commit": &o.previousCommit, "setup_hash": &o.previousHash} {
		text, err := optional(textAt(from.Settings, path))
		if err != nil {
			return fmt.Errorf("%w from %s: %w", ErrResume, from.File, ofSettings(err))
		}
		if text != nil {
			*to = *text
		}
	}
	commit, err := s.settings.Text("code/commit")
	hash, err2 := s.settings.Text("setup_hash")
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if o.previousCommit != unknownCommit && commit != unknownCommit {
		changed := o.previousCommit != commit
		o.commitChanged = &changed
	}
	o.settingsChanged = knownHash(&o.previousHash) && o.previousHash != hash
	if o.settingsChanged {
		o.changed = changedSections(from.Settings, s.settings)
		s.log.Warn("the setup is another one than before", "file", from.File, "sections", o.changed)
	}
	if from.Segment > 0 {
		n := int64(from.Segment)
		o.fromSegment = &n
	}
	if n := s.start.Summary.Attempted; n >= 0 && !from.output {
		o.attemptsBefore = &n
	}
	s.origin = o
	return nil
}

// wireStart is a Start in transit: gob carries every float, but no records.
type wireStart struct {
	Segment     int
	Time        float64
	State       []float64
	Resumed     bool
	File        string
	FromSegment int
	Stepper     []byte // as JSON
	HasStepper  bool
	Updates     []UpdateState
	Bundles     map[string]string
	Saved       int
	Summary     Summary
	StateSaved  bool
	Replaces    bool
}

func encodeStart(s *Start) ([]byte, error) {
	stepper, err := json.Marshal(s.Stepper)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(&wireStart{s.Segment, s.Time, s.State, s.Resumed, s.File, s.FromSegment,
		stepper, s.HasStepper, s.Updates, s.Bundles, s.Saved, s.Summary, s.stateSaved, s.replaces})
	return b.Bytes(), err
}

func decodeStart(text []byte, s *Start) error {
	var w wireStart
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&w); err != nil {
		return fmt.Errorf("what the segment begins with: %w", err)
	}
	var stepper record.Record
	if err := json.Unmarshal(w.Stepper, &stepper); err != nil {
		return fmt.Errorf("what the segment begins with: %w", err)
	}
	*s = Start{w.Segment, w.Time, w.State, w.Resumed, w.File, w.FromSegment,
		stepper, w.HasStepper, w.Updates, w.Bundles, w.Saved, w.Summary, w.StateSaved, w.Replaces}
	return nil
}
