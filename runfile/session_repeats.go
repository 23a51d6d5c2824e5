package runfile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/fieldstone-io/fieldstone/pack"
)

// noteRepeats warns, on rank 0, of fields that have stopped changing from checkpoint to
// checkpoint: of a device write that nobody noted, or of two buffers of which the wrong one
// is saved, the files show nothing else.
func (s *Session) noteRepeats(k *Checkpoint) {
	if k.fieldSums == nil { // there are none, or bundles have them; it is rank 0 that knows
		return
	}
	var names []string
	sums := make(map[string]uint64, len(k.fieldSums))
	for _, u := range s.cfg.Layout.Unknowns {
		if u.Kind != Field {
			continue
		}
		chunks, there := k.fieldSums[u.Name]
		if !there {
			continue
		}
		var b []byte
		for _, chunk := range chunks {
			b = binary.LittleEndian.AppendUint64(b, chunk)
		}
		names, sums[u.Name] = append(names, u.Name), pack.Sum(b)
	}
	before := s.repeats.Name
	equal := s.repeats.Next(fmt.Sprintf("%v s", k.Time), s.accepted, names, sums)
	equal = slices.DeleteFunc(equal, func(name string) bool { return slices.Contains(s.cfg.Checkpoint.ConstantFields, name) })
	if len(equal) > 0 {
		s.log.Warn("fields of the checkpoint equal those of the one before: is a device write not noted, or another buffer the right one? "+
			"Checkpoint.ConstantFields is for those that are to stay as they are",
			"run", s.cfg.Name, "fields", equal, "time", fmt.Sprintf("%v s", k.Time), "before", before)
	}
}

// checkConstantFields looks for names that no field of the layout has.
func (c *Config) checkConstantFields() error {
	for i, name := range c.Checkpoint.ConstantFields {
		if !slices.ContainsFunc(c.Layout.Unknowns, func(u Unknown) bool { return u.Name == name && u.Kind == Field }) {
			return fmt.Errorf("Checkpoint.ConstantFields: the layout has no field %q", name)
		}
		if slices.Contains(c.Checkpoint.ConstantFields[:i], name) {
			return fmt.Errorf("Checkpoint.ConstantFields: %q is there twice", name)
		}
	}
	return nil
}
