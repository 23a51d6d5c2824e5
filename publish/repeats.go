package publish

import (
	"fmt"
	"slices"
)

// repeats finds fields that no longer change from one bundle of a run to the next. All
// ranks know the same.
type repeats struct {
	path      string            // of the bundle before
	increment int64             // its
	sums      map[string]uint64 // of its fields; nil: there is no bundle, or nobody knows
	moved     map[string]bool   // fields that have changed between two bundles
	said      map[string]bool   // fields that were named
}

// begin is for a bundle that the solver starts from.
func (r *repeats) begin(path string, increment int64, sums map[string]uint64) {
	r.path, r.increment, r.sums = path, increment, sums
}

// saved is for the next bundle. It returns the fields, in the order of ids, that equal
// those of the bundle before, though they have changed earlier in this run: each of them
// once. A state that is saved a second time is no other one.
func (r *repeats) saved(path string, increment int64, ids []string, sums map[string]uint64) (equal []string) {
	if r.moved == nil {
		r.moved, r.said = map[string]bool{}, map[string]bool{}
	}
	for _, id := range ids {
		was, known := r.sums[id]
		switch {
		case !known || increment == r.increment:
		case was != sums[id]:
			r.moved[id] = true
		case r.moved[id] && !r.said[id]:
			r.said[id] = true
			equal = append(equal, id)
		}
	}
	r.begin(path, increment, sums)
	return equal
}

// noteRepeats warns of fields that have stopped changing: of a device write that nobody
// noted, or of two buffers of which the wrong one is saved, bundles show nothing else.
func (s *Service) noteRepeats(path string, increment int64, v Solver) {
	before := s.repeats.path
	equal := s.repeats.saved(path, increment, v.ids(), s.summed)
	equal = slices.DeleteFunc(equal, func(id string) bool { return slices.Contains(s.cfg.Checkpoint.ConstantFields, id) })
	if len(equal) > 0 && s.c.Rank() == 0 {
		s.o.log.Warn("fields equal those of the bundle before: is a device write not noted, or another buffer the right one? "+
			"checkpoint.constant_fields is for those that are to stay as they are",
			"fields", equal, "bundle", path, "before", before)
	}
}

// constantFields refuses ids that no field can have, or that two entries have.
func (c CheckpointConfig) constantFields() error {
	if len(c.ConstantFields) == 0 {
		return nil
	}
	if err := CheckIDs(c.ConstantFields); err != nil {
		return fmt.Errorf("checkpoint.constant_fields: %w", err)
	}
	return nil
}

// checkConstant looks for fields that the solver doesn't have.
func (c CheckpointConfig) checkConstant(v Solver) error {
	ids := v.ids()
	for _, id := range c.ConstantFields {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("checkpoint.constant_fields: field %q is not one of %q", id, ids)
		}
	}
	return nil
}
