package runfile

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// policies are those for numbers that are NaN or infinite.
func (c *Config) policies() unknownPolicies {
	return newUnknownPolicies(c.Checkpoint.NonFinite, c.Checkpoint.NonFiniteUnknowns)
}

func (c *Config) checkPolicies() error {
	p := c.policies()
	if err := p.Validate(); err != nil {
		return err
	}
	return p.Check(c.Layout.names())
}

// refuse is an error if numbers are NaN or infinite that are to be refused.
func (s *Session) refuse(counts map[string]int64) error {
	bad := s.cfg.policies().Describe(s.cfg.Layout.names(), counts, RefuseNonFinite)
	if bad == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNonFinite, bad)
}

// refuseFields looks through the fields whose cells are to be refused, before anything is
// written. Those in bundles are judged when there is one.
func (s *Session) refuseFields(ctx context.Context) error {
	var names []string
	for i := range s.cfg.Layout.Unknowns {
		u := &s.cfg.Layout.Unknowns[i]
		if s.cfg.Bundle == nil && s.cfg.needsField(u) && s.cfg.policies().Of(u.Name) == RefuseNonFinite {
			names = append(names, u.Name)
		}
	}
	if names == nil {
		return nil
	}
	counts, err := s.fields.nonFinite(ctx, names)
	if err != nil {
		return err
	}
	return s.refuse(counts) // all ranks have the same
}

// nonFinite counts the cells of fields that are NaN or infinite, on all ranks together.
func (b *fieldBricks) nonFinite(ctx context.Context, names []string) (map[string]int64, error) {
	found := make([]int64, len(names))
	err := comm.Protect(func() error {
		for i, name := range names {
			var err error
			if found[i], err = nonFiniteCells(b.known[name].field); err != nil {
				return fmt.Errorf("field %q: %w", name, err)
			}
		}
		return nil
	})
	if err := b.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	if err := b.c.AllReduceInt64(ctx, comm.Sum, found); err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for i, name := range names {
		counts[name] = found[i]
	}
	return counts, nil
}

// nonFiniteCells looks through the cells that this rank owns.
func nonFiniteCells(f field.Any) (int64, error) {
	source, err := f.Source()
	if err != nil {
		return 0, err
	}
	const bytes = 8
	cells := f.Box().Cells()
	sum := pack.NewChecksum(cells * bytes)
	sum.CountNonFinite()
	buffer := make([]byte, min(cells*bytes, transferBytes))
	for first := int64(0); first < cells; {
		part := buffer[:min(int64(len(buffer)), (cells-first)*bytes)]
		if err := source.ReadCells(part, first); err != nil {
			return 0, err
		}
		sum.Add(first*bytes, part)
		first += int64(len(part)) / bytes
	}
	return sum.NonFinite(), sum.Err()
}

// noteWritten warns, on rank 0, of unknowns with more numbers that are NaN or infinite
// than at the checkpoint before.
func (s *Session) noteWritten(counts map[string]int64) {
	risen := nonfinite.Risen(s.before, counts)
	s.before = counts
	if bad := s.cfg.policies().Describe(s.cfg.Layout.names(), risen, WarnNonFinite); bad != "" {
		s.log.Warn("the state of the checkpoint is not finite", "run", s.cfg.Name, "time", s.time, "non_finite", bad)
	}
}

// inBundles returns what the metadata of bundles say of fields, as far as they can be read.
// A relative path is one from the directory of the run.
func inBundles(fsys vfs.FS, dir, work string, bundles map[string]string) map[string]int64 {
	known := map[string]map[string]int64{} // by path
	counts := map[string]int64{}
	for name, path := range bundles {
		of, ok := known[path]
		if !ok {
			if m, err := readBundle(fsys, dir, work, path, false); err == nil && m.Fieldstone != nil {
				of = m.Fieldstone.NonFinite
			}
			known[path] = of
		}
		if n := of[name]; n > 0 {
			counts[name] = n
		}
	}
	return counts
}

// preferFinite makes the start, on rank 0, that of the checkpoint before the last one, if
// the last one is not finite and that one is.
func (s *Session) preferFinite(ctx context.Context) error {
	bad := s.notFinite(s.before)
	if bad == "" {
		return nil
	}
	last := plannedStart{s.start, s.origin, s.located, s.before}
	start := s.start
	if s.ownLast {
		previous, err := s.store.previous(ctx)
		if err == nil && previous != nil && s.notFinite(previous.NonFinite) == "" {
			err = s.planBefore(ctx, errors.New("the last checkpoint is not finite"))
			if err == nil {
				s.ownLast = false // there is none before that
				s.notFiniteLast = &last
				s.log.Warn("the last checkpoint is passed over for the one before, since it is not finite",
					"last", start.File, "time", start.Time, "non_finite", bad, "before", s.start.File, "from", s.start.Time)
				return nil
			}
			s.restorePlan(last)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.log.Warn("the checkpoint before is of no use", "error", err)
		}
	}
	s.log.Warn("the run goes on from a state that is not finite", "file", s.start.File, "time", s.start.Time, "non_finite", bad)
	return nil
}

// plannedStart is what a segment may begin with, on rank 0.
type plannedStart struct {
	start   Start
	origin  segmentOrigin
	located *storedFields
	before  map[string]int64
}

func (s *Session) restorePlan(p plannedStart) {
	s.start, s.origin, s.located, s.before = p.start, p.origin, p.located, p.before
}

func (s *Session) notFinite(counts map[string]int64) string {
	return s.cfg.policies().NotFinite(s.cfg.Layout.names(), counts)
}

// worthKeeping reports whether the last checkpoint is to become the previous one: one that
// can't be read is not, nor one that is not finite where the previous one is.
func worthKeeping(ctx context.Context, last, previous string, p unknownPolicies, o *options) (bool, error) {
	worth, err := isCheckpoint(ctx, last)
	if err != nil || !worth || finite(ctx, last, p) {
		return worth, err
	}
	there, err := vfs.Exists(o.fsys, previous)
	if err != nil || !there {
		return worth, err
	}
	good, err := isCheckpoint(ctx, previous)
	return !good || !finite(ctx, previous, p), err
}

// finite reports whether a checkpoint counts as finite, as one does of which that isn't
// known.
func finite(ctx context.Context, path string, p unknownPolicies) bool {
	var counts map[string]int64
	err := withFile(context.WithoutCancel(ctx), path, func(f *h5.File, r root) (err error) {
		counts, err = readNonFinite(f, r)
		return err
	})
	var names []string
	for name := range maps.Keys(counts) {
		names = append(names, name)
	}
	return err != nil || p.NotFinite(names, counts) == ""
}
