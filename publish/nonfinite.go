package publish

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
)

// NonFinitePolicy says what becomes of a state whose fields have cells that are NaN or
// infinite. The cells are counted while they are written, and the counts are in the
// bundle's metadata whatever the policy is.
type NonFinitePolicy string

// The policies, as configurations have them.
const (
	// WarnNonFinite publishes the state, with a warning. It is the default.
	WarnNonFinite NonFinitePolicy = "warn"
	// RefuseNonFinite publishes nothing; the error matches [ErrNonFinite].
	RefuseNonFinite NonFinitePolicy = "refuse"
	// IgnoreNonFinite takes such cells for values like any other, as those of a mask are.
	IgnoreNonFinite NonFinitePolicy = "ignore"
)

// NonFinite sets the policy for fields with cells that are NaN or infinite, and others
// for some fields by their ids. An id that isn't one of the state's is an error that
// matches [ErrInput].
func NonFinite(p NonFinitePolicy, fields map[string]NonFinitePolicy) Option {
	own := fieldPolicies(p, fields, nonfinite.Keys{Rest: "NonFinite", ByName: "NonFinite"})
	return func(o *options) {
		if err := own.Validate(); err != nil {
			o.err = err
			return
		}
		o.nonFinite = own
	}
}

// nonFinitePolicies are the policies for all fields.
type nonFinitePolicies = nonfinite.Policies[NonFinitePolicy]

func fieldPolicies(rest NonFinitePolicy, fields map[string]NonFinitePolicy, keys nonfinite.Keys) nonFinitePolicies {
	return nonFinitePolicies{Rest: rest, ByName: maps.Clone(fields), What: "field", Numbers: "cell", Keys: keys}
}

// nonFinite are the policies of a configuration.
func (c CheckpointConfig) nonFinite() (nonFinitePolicies, error) {
	const fields = "checkpoint.non_finite_fields"
	for _, id := range slices.Sorted(maps.Keys(c.NonFiniteFields)) {
		if err := CheckID(id); err != nil {
			return nonFinitePolicies{}, fmt.Errorf("%s: %w", fields, err)
		}
	}
	p := fieldPolicies(c.NonFinite, c.NonFiniteFields, nonfinite.Keys{Rest: "checkpoint.non_finite", ByName: fields})
	return p, p.Validate()
}

// notFinite describes why a bundle counts as one that is not finite, "" if it is
// finite or that isn't known. Fields that are to be ignored don't count.
func (o *options) notFinite(m Metadata) string {
	if m.Writer == nil {
		return ""
	}
	return o.nonFinite.NotFinite(m.Fields, m.Writer.NonFinite)
}

// nonFiniteCounts are what metadata say of a state: the fields that have any.
func nonFiniteCounts(ids []string, sums []brick.Sum) map[string]int64 {
	counts := map[string]int64{}
	for i, id := range ids {
		if n := sums[i].NonFinite; n > 0 {
			counts[id] = n
		}
	}
	return counts
}

// finite applies the policies to the fields as they were written. All ranks have the
// same counts, so they come to the same result.
func (p *publication) finite() error {
	if p.o.summed != nil {
		sums := make(map[string]uint64, len(p.sums))
		for i, id := range p.meta.Fields {
			sums[id] = p.sums[i].CRC
		}
		p.o.summed(sums)
	}
	p.nonFinite = nonFiniteCounts(p.meta.Fields, p.sums)
	if bad := p.o.nonFinite.Describe(p.meta.Fields, p.nonFinite, RefuseNonFinite); bad != "" {
		return fmt.Errorf("%w: %s", ErrNonFinite, bad)
	}
	if p.o.counted != nil {
		p.o.counted(p.nonFinite)
		return nil
	}
	if bad := p.o.nonFinite.Describe(p.meta.Fields, p.nonFinite, WarnNonFinite); bad != "" && p.c.Rank() == 0 {
		p.o.log.Warn("the state is not finite", "bundle", p.dir, "non_finite", bad)
	}
	return nil
}

// policies makes those of the configuration the service's, over those of the options.
func (s *Service) policies() error {
	p, err := s.cfg.Checkpoint.nonFinite()
	given := s.o.nonFinite
	if p.Rest == "" {
		p.Rest = given.Rest
	}
	if p.ByName == nil {
		p.ByName, p.Keys.ByName = given.ByName, given.Keys.ByName
	} else {
		for id, policy := range given.ByName {
			if _, ok := p.ByName[id]; !ok {
				p.ByName[id] = policy
			}
		}
	}
	s.o.nonFinite = p
	s.opts = append(slices.Clip(s.opts), func(o *options) {
		o.nonFinite = p
		o.counted = func(counts map[string]int64) { s.counted = counts }
		o.summed = func(sums map[string]uint64) { s.summed = sums }
	})
	return err
}

// agreePolicies refuses policies of fields that the solver doesn't have, on all ranks.
// It is the first agreement of a restart: rank 0 has looked at nothing yet.
func (s *Service) agreePolicies(ctx context.Context, v Solver) error {
	return s.c.Agree(ctx, inputError(cmp.Or(s.o.nonFinite.Check(v.ids()), s.cfg.Checkpoint.checkConstant(v))))
}

func (v Solver) ids() []string {
	ids := make([]string, len(v.Fields))
	for i, f := range v.Fields {
		ids[i] = f.ID
	}
	return ids
}

// noteSaved warns of fields that have more cells that aren't finite than when they were
// saved, or restored, before.
func (s *Service) noteSaved(path string, v Solver) {
	risen := nonfinite.Risen(s.before, s.counted)
	s.before = s.counted
	if bad := s.o.nonFinite.Describe(v.ids(), risen, WarnNonFinite); bad != "" && s.c.Rank() == 0 {
		s.o.log.Warn("the saved state is not finite", "bundle", path, "non_finite", bad)
	}
}

// noteRestored is for the bundle that the solver starts from.
func (s *Service) noteRestored(loaded *Loaded) {
	if w := loaded.Metadata.Writer; w != nil {
		s.before = w.NonFinite
	}
	s.repeats.Begin(loaded.Path, loaded.Metadata.AcceptedIncrement, s.summed)
	if bad := s.o.notFinite(loaded.Metadata); bad != "" && s.c.Rank() == 0 {
		s.o.log.Warn("restarting from a state that is not finite", "bundle", loaded.Path, "non_finite", bad)
	}
}

// notFinite describes why a bundle of the directory is to be passed over, "" if it
// isn't. One that is damaged is for the load to judge.
func (d checkpoints) notFinite(increment int64) string {
	m, _, err := readMetadata(d.o.fs, d.path(increment))
	if err != nil || d.o.notFinite(m) == "" {
		return ""
	}
	b, err := readStructure(d.o.fs, d.path(increment))
	if err != nil {
		return ""
	}
	return d.o.notFinite(b.info.Metadata)
}
