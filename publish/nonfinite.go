package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/brick"
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
	own := nonFinitePolicies{rest: p, fields: maps.Clone(fields), key: "NonFinite"}
	return func(o *options) {
		if err := own.validate("NonFinite"); err != nil {
			o.err = err
			return
		}
		o.nonFinite = own
	}
}

// The keys of configurations.
const (
	keyNonFinitePolicy = "checkpoint.non_finite"
	keyNonFiniteFields = "checkpoint.non_finite_fields"
)

// nonFinitePolicies are the policies for all fields. The zero value warns.
type nonFinitePolicies struct {
	rest   NonFinitePolicy
	fields map[string]NonFinitePolicy
	key    string // that gave those of the fields, for errors
}

func (p nonFinitePolicies) of(id string) NonFinitePolicy {
	policy, ok := p.fields[id]
	if !ok {
		policy = p.rest
	}
	if policy == "" {
		return WarnNonFinite
	}
	return policy
}

// validate looks for policies that there aren't. rest is the key of the one for all
// fields.
func (p nonFinitePolicies) validate(rest string) error {
	if !p.rest.known() && p.rest != "" {
		return p.rest.unknown(rest)
	}
	for _, id := range slices.Sorted(maps.Keys(p.fields)) {
		if err := CheckID(id); err != nil {
			return fmt.Errorf("%s: %w", p.key, err)
		}
		if policy := p.fields[id]; !policy.known() {
			return policy.unknown(join(p.key, id))
		}
	}
	return nil
}

func (p NonFinitePolicy) known() bool {
	return p == WarnNonFinite || p == RefuseNonFinite || p == IgnoreNonFinite
}

func (p NonFinitePolicy) unknown(key string) error {
	return fmt.Errorf("%s: %q: want %q, %q or %q", key, shorten(string(p)), WarnNonFinite, RefuseNonFinite, IgnoreNonFinite)
}

// check looks for policies of fields that a state doesn't have.
func (p nonFinitePolicies) check(ids []string) error {
	for _, id := range slices.Sorted(maps.Keys(p.fields)) {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("%s: field %q is not one of %q", p.key, id, ids)
		}
	}
	return nil
}

// String is what the ranks must have alike.
func (p nonFinitePolicies) String() string {
	text := []string{string(p.of(""))}
	for _, id := range slices.Sorted(maps.Keys(p.fields)) {
		text = append(text, fmt.Sprintf("%q %s", id, p.of(id)))
	}
	return strings.Join(text, ", ")
}

// describe names the fields of a state that have cells that aren't finite and one of the
// given policies, with their counts: `12 cells of field "phi", 1 cell of field "T"`.
func (p nonFinitePolicies) describe(ids []string, counts map[string]int64, policies ...NonFinitePolicy) string {
	var list []string
	for _, id := range ids {
		if n := counts[id]; n > 0 && slices.Contains(policies, p.of(id)) {
			cells := "cells"
			if n == 1 {
				cells = "cell"
			}
			list = append(list, fmt.Sprintf("%d %s of field %q", n, cells, id))
		}
	}
	return strings.Join(list, ", ")
}

// notFinite describes why a bundle counts as one that is not finite, "" if it is
// finite or that isn't known. Fields that are to be ignored don't count.
func (p nonFinitePolicies) notFinite(m Metadata) string {
	if m.Writer == nil {
		return ""
	}
	return p.describe(m.Fields, m.Writer.NonFinite, WarnNonFinite, RefuseNonFinite)
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
	p.nonFinite = nonFiniteCounts(p.meta.Fields, p.sums)
	if bad := p.o.nonFinite.describe(p.meta.Fields, p.nonFinite, RefuseNonFinite); bad != "" {
		return fmt.Errorf("%w: %s", ErrNonFinite, bad)
	}
	if p.o.counted != nil {
		p.o.counted(p.nonFinite)
		return nil
	}
	if bad := p.o.nonFinite.describe(p.meta.Fields, p.nonFinite, WarnNonFinite); bad != "" && p.c.Rank() == 0 {
		p.o.log.Warn("the state is not finite", "bundle", p.dir, "non_finite", bad)
	}
	return nil
}

// policies makes those of the configuration the service's, over those of the options.
func (s *Service) policies() {
	k := s.cfg.Checkpoint
	p := s.o.nonFinite
	if k.NonFinite != "" {
		p.rest = k.NonFinite
	}
	if len(k.NonFiniteFields) > 0 {
		p.key = keyNonFiniteFields
		fields := maps.Clone(k.NonFiniteFields)
		for id, policy := range p.fields {
			if _, ok := fields[id]; !ok {
				fields[id] = policy
			}
		}
		p.fields = fields
	}
	s.o.nonFinite = p
	s.opts = append(slices.Clip(s.opts), func(o *options) {
		o.nonFinite = p
		o.counted = func(counts map[string]int64) { s.counted = counts }
	})
}

// agreePolicies refuses policies of fields that the solver doesn't have, on all ranks.
func (s *Service) agreePolicies(ctx context.Context, v Solver) error {
	if len(s.o.nonFinite.fields) == 0 {
		return nil
	}
	return s.c.Agree(ctx, inputError(s.o.nonFinite.check(v.ids())))
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
	risen := map[string]int64{}
	for id, n := range s.counted {
		if n > s.before[id] {
			risen[id] = n
		}
	}
	s.before = s.counted
	if bad := s.o.nonFinite.describe(v.ids(), risen, WarnNonFinite); bad != "" && s.c.Rank() == 0 {
		s.o.log.Warn("the saved state is not finite", "bundle", path, "non_finite", bad)
	}
}

// noteRestored is for the bundle that the solver starts from.
func (s *Service) noteRestored(loaded *Loaded) {
	if w := loaded.Metadata.Writer; w != nil {
		s.before = w.NonFinite
	}
	if bad := s.o.nonFinite.notFinite(loaded.Metadata); bad != "" && s.c.Rank() == 0 {
		s.o.log.Warn("restarting from a state that is not finite", "bundle", loaded.Path, "non_finite", bad)
	}
}

// notFinite describes why a bundle of the directory is to be passed over, "" if it
// isn't. One that is damaged is for the load to judge.
func (d checkpoints) notFinite(increment int64) string {
	m, _, err := readMetadata(d.o.fs, d.path(increment))
	if err != nil || d.o.nonFinite.notFinite(m) == "" {
		return ""
	}
	b, err := readStructure(d.o.fs, d.path(increment))
	if err != nil {
		return ""
	}
	return d.o.nonFinite.notFinite(b.info.Metadata)
}
