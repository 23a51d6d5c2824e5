package publish

import (
	"fmt"
	"slices"
)

// noteRepeats warns of fields that have stopped changing: of a device write that nobody
// noted, or of two buffers of which the wrong one is saved, bundles show nothing else.
func (s *Service) noteRepeats(path string, increment int64, v Solver) {
	before := s.repeats.Name
	equal := s.repeats.Next(path, increment, v.ids(), s.summed)
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
