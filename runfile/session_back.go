package runfile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// loadBundle lets the caller load the bundles that the start names. Where they can't be
// loaded, the start becomes that of the checkpoint before the last one.
func (s *Session) loadBundle(ctx context.Context) error {
	final, failed := s.callLoadBundle(ctx)
	if failed == nil || final {
		return failed
	}
	passed, forward := s.start, s.notFiniteLast != nil // of rank 0, which logs
	if err := s.settle(ctx, func() error { return s.planBefore(ctx, failed) }); err != nil {
		return err
	}
	what := "the last checkpoint is passed over for the one before, since its bundle can't be loaded"
	last, before := "last", "before"
	if forward {
		what, last, before = "the run goes on from the last checkpoint, though it is not finite, since the bundle of the one before can't be loaded", "before", "last"
	}
	s.log.Warn(what, last, passed.File, "time", passed.Time, "error", failed, before, s.start.File, "from", s.start.Time)
	if _, again := s.callLoadBundle(ctx); again != nil {
		return fmt.Errorf("%w; and %w%s", failed, again, startAnew(passed))
	}
	return nil
}

// startAnew is how to go on where no checkpoint is of use. The one that was passed over
// may have its fields in bundles.
func startAnew(passed Start) string {
	way := "start anew: overwrite, or choose another name"
	if len(passed.Bundles) > 0 {
		way = "bring a bundle back, or " + way
	}
	return " (" + way + ")"
}

// callLoadBundle has the bundles of the start loaded, if there are any. An error is
// final if an earlier checkpoint is no way out of it: all ranks see that alike, since
// they have agreed on it.
func (s *Session) callLoadBundle(ctx context.Context) (final bool, err error) {
	if s.cfg.LoadBundle == nil || len(s.start.Bundles) == 0 {
		return false, nil
	}
	ctx = s.c.Watched(ctx) // the caller's part
	err = comm.Protect(func() error { return s.cfg.LoadBundle(ctx, s.Start()) })
	if err = s.c.Agree(ctx, err); err == nil {
		return false, nil
	}
	for _, kind := range []error{ErrResume, comm.ErrDead, onedir.ErrNotSeen, vfs.ErrLocked, context.Canceled, context.DeadlineExceeded} {
		final = final || errors.Is(err, kind)
	}
	bundles := slices.Compact(slices.Sorted(maps.Values(s.start.Bundles)))
	return final, fmt.Errorf("%w from %s, whose fields are in %s: %w", ErrResume, s.start.File, strings.Join(bundles, ", "), err)
}

// planBefore decides, on rank 0, that the segment begins with the checkpoint before the
// last one. failed says why it can't begin with that.
func (s *Session) planBefore(ctx context.Context, failed error) error {
	passed := s.start
	if last := s.notFiniteLast; last != nil {
		// The finite one was preferred, and is of no use: the last one is there.
		s.restorePlan(*last)
		s.notFiniteLast, s.inTheWay = nil, nil
		return nil
	}
	if !s.ownLast {
		return failed
	}
	from, err := s.store.previous(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w; and the checkpoint before can't be read: %w%s", failed, err, startAnew(passed))
	case from == nil:
		return fmt.Errorf("%w; and there is no checkpoint before it%s", failed, startAnew(passed))
	case from.Time > passed.Time || from.Segment > passed.FromSegment:
		return fmt.Errorf("%w; and %s, of segment %d at %v s, is not from before it", failed, from.File, from.Segment, from.Time)
	}
	number := from.Segment + 1
	if want := s.cfg.Segment; want != 0 && want != number {
		return fmt.Errorf("%w; and %s is of segment %d, where this is to be segment %d", failed, from.File, from.Segment, want)
	}
	segments, err := s.store.segments()
	if err == nil {
		err = s.misfit(ctx, from, segments)
	}
	if err == nil {
		err = s.checkChain(ctx, segments, from)
	}
	if err == nil {
		s.start, s.origin, s.located = Start{Segment: number}, segmentOrigin{}, nil
		err = s.resume(ctx, from)
	}
	if err != nil {
		return fmt.Errorf("%w; and the checkpoint before is of no use: %w", failed, err)
	}
	s.supersede(segments, number, passed.File)
	s.ownLast = false // there is none before that
	return nil
}

// supersede has what the passed-over checkpoint and its segments have computed again. Until
// they are out of the way, whoever begins anew finds that checkpoint, and passes it over
// again: so it goes last.
func (s *Session) supersede(segments []Segment, number int, passed string) {
	for _, g := range slices.Backward(segments) {
		if g.Number >= number {
			s.inTheWay = append(s.inTheWay, g.File)
		}
	}
	s.inTheWay = append(s.inTheWay, passed)
}

// loadFields reads the cells that the start has in a file into the caller's fields. Where they
// are not those that were written, the start becomes that of the checkpoint before the
// last one.
func (s *Session) loadFields(ctx context.Context) error {
	err := s.readFields(ctx)
	if !errors.Is(err, ErrChecksum) { // which all ranks find alike
		return err
	}
	passed := s.start
	if err := s.settle(ctx, func() error { return s.planBefore(ctx, err) }); err != nil {
		return err
	}
	s.log.Warn("the last checkpoint is passed over for another one, since its fields are damaged",
		"last", passed.File, "time", passed.Time, "error", err, "other", s.start.File, "from", s.start.Time)
	_, again := s.callLoadBundle(ctx)
	if again == nil {
		again = s.readFields(ctx)
	}
	if again != nil {
		return fmt.Errorf("%w; and %w%s", err, again, startAnew(passed))
	}
	return nil
}

func (s *Session) readFields(ctx context.Context) error {
	if !s.start.Resumed {
		return nil
	}
	if err := s.fields.read(ctx, s.located); err != nil {
		return fmt.Errorf("%w from %s: %w%s", ErrResume, s.start.File, err, s.wayBack())
	}
	return nil
}

// clearTheWay sets the files aside, on rank 0, that the segment comes to replace.
func (s *Session) clearTheWay() error {
	for len(s.inTheWay) > 0 {
		file := s.inTheWay[0]
		to, err := s.store.setAside(file)
		if err != nil {
			return fmt.Errorf("set aside %s: %w", file, err)
		}
		s.inTheWay = s.inTheWay[1:]
		if to != "" {
			s.log.Warn("set aside: the run has gone on from a checkpoint before it", "file", file, "now", to)
		}
	}
	return nil
}

// wayBack says how to go on when a run can't read what its last checkpoint has.
func (s *Session) wayBack() string {
	if last := CheckpointFile(s.cfg.Directory, s.cfg.Name); s.cfg.Resume && filepath.Base(s.start.File) == filepath.Base(last) {
		return fmt.Sprintf(" (a run that finds %s moved away goes on from the checkpoint before, if there is one)", s.start.File)
	}
	return ""
}
