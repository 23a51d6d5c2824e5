package runfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// passedOver is a last checkpoint that is not taken, and why.
type passedOver struct {
	file string
	err  error
}

// misfit compares a checkpoint with the segment that it names.
func (s *Session) misfit(ctx context.Context, k *Checkpoint, segments []Segment) error {
	return k.misfit(k.File, segments, func(g Segment) (*Info, []error, error) { return s.store.look(ctx, g) })
}

// fitting returns the checkpoint that a run resumes from, on rank 0: the last one, or the one
// before where that is good and the last one's segment or bundle is gone. One that doesn't
// fit its segment is refused: someone has mixed the files of runs, and knows which to keep.
// But if a run was overwritten by one that had no checkpoint yet, there is none to go on from.
func (s *Session) fitting(ctx context.Context, last *Checkpoint, segments []Segment) (*Checkpoint, error) {
	wrong := s.misfit(ctx, last, segments)
	lost := s.lostBundle(last)
	if wrong == nil && lost == nil {
		return last, nil
	}
	_, gone := errors.AsType[segmentGone](wrong)
	if wrong != nil && !gone && !errors.Is(wrong, errOverwritten) {
		return nil, cmp.Or(s.outOfNumbers(last.Segment+1), s.outOfTime(last), s.mixedUp(last, wrong))
	}
	var before *Checkpoint
	var unread, wrongBefore error
	if !last.Previous {
		before, unread = s.store.previous(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if before != nil {
		wrongBefore = s.misfit(ctx, before, segments)
	}
	good := before != nil && wrongBefore == nil
	if wrong == nil && !(good && before.Bundles != nil && s.lostBundle(before) == nil) {
		// Nobody loads the bundles here: it may be that the solver alone can find them.
		s.log.Warn("the checkpoint names a bundle that is not there", "file", last.File, "error", lost)
		return last, nil
	}
	if good {
		before.passed = &passedOver{last.File, cmp.Or(wrong, lost)}
		return before, nil
	}
	passed := []string{last.File}
	switch {
	case gone:
		return nil, cmp.Or(s.outOfNumbers(last.Segment+1), s.outOfTime(last), s.mixedUp(last, wrong))
	case unread != nil:
		return nil, fmt.Errorf("%w: %w; and the checkpoint before is of no use: %w", ErrResume, wrong, unread)
	case wrongBefore != nil && !errors.Is(wrongBefore, errOverwritten):
		return nil, s.mixedUp(before, wrongBefore)
	case wrongBefore != nil:
		passed = append(passed, before.File)
	}
	s.log.Warn("the run begins anew: the one that it has checkpoints of was overwritten", "files", passed, "error", wrong)
	s.inTheWay = passed
	return nil, nil
}

// mixedUp is the error of a checkpoint that doesn't fit its segment.
func (s *Session) mixedUp(k *Checkpoint, wrong error) error {
	if k.passed != nil {
		return fmt.Errorf("%w: %w; and %w", ErrResume, k.passed.err, wrong)
	}
	way := ""
	if !k.Previous {
		way = fmt.Sprintf(" (a run that finds %s moved away goes on from the checkpoint before, if there is one)", k.File)
	}
	return fmt.Errorf("%w: %w%s", ErrResume, wrong, way)
}

// outOfNumbers is an error if a segment can't have a number.
func (s *Session) outOfNumbers(n int) error {
	if n <= maxSegment {
		return nil
	}
	return fmt.Errorf("%w: segment %d would have a number of more than four digits", ErrResume, n)
}

// outOfTime is an error if the run doesn't compute the time of a state.
func (s *Session) outOfTime(k *Checkpoint) error {
	first, end := s.cfg.TimePoints[0], s.cfg.end()
	if k.Time >= first && k.Time <= end {
		return nil
	}
	return fmt.Errorf("%w from %s: its time %v s is not within the time points, %v s to %v s", ErrResume, k.File, k.Time, first, end)
}

// lostBundle returns the first thing that is wrong with the bundles of a checkpoint, where
// nobody loads them in Open.
func (s *Session) lostBundle(k *Checkpoint) error {
	if s.cfg.LoadBundle != nil {
		return nil
	}
	lost := k.lostBundles(s.store.filesystem(), filepath.Dir(k.File), s.store.workingDirectory())
	if len(lost) == 0 {
		return nil
	}
	return lost[0]
}

// goBack makes the run go on from the checkpoint before the last one, and returns the
// segments that stay.
func (s *Session) goBack(segments []Segment, number int, from *Checkpoint) []Segment {
	s.log.Warn("the last checkpoint is passed over for the one before, since it is bad",
		"last", from.passed.file, "error", from.passed.err, "before", from.File, "from", from.Time)
	s.supersede(segments, number, from.passed.file)
	return slices.DeleteFunc(slices.Clone(segments), func(g Segment) bool { return g.Number >= number })
}

// overwrite makes the files be those of this run, where it replaces those of another. The
// segment comes first, with nothing in it yet: from then on the checkpoints that are there
// are of another session, by which whoever resumes knows that they were overwritten.
func (s *Session) overwrite(ctx context.Context) error {
	if !s.start.replaces {
		return nil
	}
	s.dirty = true // the record has the end of the segment when it is closed
	return s.c.OnRoot(ctx, nil, waiting.Step(ctx, "write", "the segment in place of the one before", func() error {
		settings, err := s.withSegment()
		if err != nil {
			return err
		}
		if err := s.file.publish(context.WithoutCancel(ctx), &Solution{Settings: settings, Layout: s.cfg.Layout}); err != nil {
			return err
		}
		for _, file := range s.replaced {
			to, err := s.store.setAside(file)
			if err != nil {
				return fmt.Errorf("set aside %s: %w", file, err)
			}
			s.log.Info("set aside: the run was overwritten", "file", file, "now", to)
		}
		return nil
	}))
}
