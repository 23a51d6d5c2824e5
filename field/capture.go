package field

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// State is a copy of the owned cells of some fields in host memory, for a
// stepper that may have to go back by a step. It holds no ghost cells and is
// no checkpoint.
type State struct {
	// Fields holds the captured fields in the order of the capture.
	Fields []Captured
}

// Captured is the copy of one field.
type Captured struct {
	ID     string
	Domain grid.Domain
	Box    grid.Box
	Kind   Kind
	// Cells holds the owned cells in the form of a [pack.Source].
	Cells []byte
}

// NameError says that the fields to capture or to restore don't have the right
// ids.
type NameError struct {
	// Twice are ids given more than once; Missing are captured but not given;
	// Unknown are given but not captured.
	Twice, Missing, Unknown []string
}

func (e *NameError) Error() string {
	var parts []string
	for _, p := range []struct {
		what string
		ids  []string
	}{{"given twice", e.Twice}, {"not given", e.Missing}, {"not captured", e.Unknown}} {
		if len(p.ids) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %q", p.what, p.ids))
		}
	}
	return "fields don't match: " + strings.Join(parts, "; ")
}

// LayoutError says that a field isn't of the shape that was captured.
type LayoutError struct {
	ID string
	// What is "kind", "box" or "domain".
	What string
	// Got is that of the field, Want that of the capture.
	Got, Want any
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("field %q: %s is %v, captured was %v", e.ID, e.What, e.Got, e.Want)
}

// TruncatedError says that a capture doesn't hold all cells of a field.
type TruncatedError struct {
	ID string
	// Got and Want are numbers of bytes.
	Got, Want int64
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("field %q: capture is truncated: it has %d bytes, want %d", e.ID, e.Got, e.Want)
}

// Capture copies the owned cells of the fields, large ones on several cores
// at the same time and past the caches: the copy is not expected to be read
// soon. They are those of the sources ([Field.Source]), which by the path [Mirror] bring
// stale mirrors up to date; nothing is marked stale. Ids given twice are a [*NameError].
func Capture(fields ...Named) (*State, error) {
	s := &State{}
	if err := s.Recapture(fields...); err != nil {
		return nil, err
	}
	return s, nil
}

// Recapture replaces the state by a new capture and uses its memory again
// where the sizes fit. On error the state must not be restored from.
func (s *State) Recapture(fields ...Named) error {
	if err := checkFields(fields); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	old := s.Fields
	s.Fields = nil
	captured := make([]Captured, len(fields))
	sources := make([]pack.Source, len(fields))
	var total int64
	for i, n := range fields {
		c := &captured[i]
		*c = Captured{ID: n.ID, Domain: n.Field.Domain(), Box: n.Field.Box(), Kind: n.Field.Kind()}
		var err error
		if sources[i], err = n.Field.Source(); err != nil {
			return fmt.Errorf("capture field %q: %w", n.ID, err)
		}
		if i < len(old) && int64(cap(old[i].Cells)) >= c.bytes() {
			c.Cells = old[i].Cells[:c.bytes()]
		} else {
			c.Cells = make([]byte, c.bytes())
		}
		total += c.bytes()
	}
	read := func(i int) error {
		err := protect(func() error { return readAll(sources[i], captured[i].Cells) })
		if err != nil {
			err = fmt.Errorf("capture field %q: %w", captured[i].ID, err)
		}
		return err
	}
	if total >= 2*partBytes {
		if err := atOnce(len(fields), read); err != nil {
			return err
		}
	} else {
		for i := range fields {
			if err := read(i); err != nil {
				return err
			}
		}
	}
	s.Fields = captured
	return nil
}

// readAll reads all cells, which are not needed soon.
func readAll(src pack.Source, cells []byte) error {
	if s, ok := src.(pack.StreamSource); ok {
		return s.ReadStream(cells, 0)
	}
	return src.ReadCells(cells, 0)
}

func (c *Captured) bytes() int64 { return c.Box.Cells() * int64(c.Kind.DiskSize()) }

// Restore writes the captured cells back to the fields. They are found by
// their ids, in any order, and must be exactly those that were captured, else
// it is a [*NameError]; with the same domain, box and kind, else a
// [*LayoutError]. A capture with too few or too many bytes is a
// [*TruncatedError]. All of that is checked before anything changes.
//
// Ghost cells keep their bits. On a device either the mirror is newer afterwards, so
// call Upload, or the cells went past it and are there.
func (s *State) Restore(fields ...Named) error {
	plan, err := s.plan(fields)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for _, p := range plan {
		if err := p.sink.WriteCells(p.cells, 0); err != nil {
			return fmt.Errorf("restore field %q: %w", p.id, err)
		}
	}
	// One after the other: all of them are on their way by now.
	for _, p := range plan {
		if s, ok := p.sink.(pack.FlushSink); ok {
			if err := s.Flush(); err != nil {
				return fmt.Errorf("restore field %q: %w", p.id, err)
			}
		}
	}
	return nil
}

type restoreStep struct {
	id    string
	sink  pack.Sink
	cells []byte
}

// plan checks everything and changes nothing.
func (s *State) plan(fields []Named) ([]restoreStep, error) {
	if err := checkFields(fields); err != nil {
		return nil, err
	}
	var wrong NameError
	plan := make([]restoreStep, 0, len(fields))
	for _, c := range s.Fields {
		if !slices.ContainsFunc(fields, func(n Named) bool { return n.ID == c.ID }) {
			wrong.Missing = append(wrong.Missing, c.ID)
		}
	}
	for _, n := range fields {
		if !slices.ContainsFunc(s.Fields, func(c Captured) bool { return c.ID == n.ID }) {
			wrong.Unknown = append(wrong.Unknown, n.ID)
		}
	}
	if wrong.Missing != nil || wrong.Unknown != nil {
		return nil, &wrong
	}
	for _, n := range fields {
		i := slices.IndexFunc(s.Fields, func(c Captured) bool { return c.ID == n.ID })
		if err := s.Fields[i].matches(n.Field); err != nil {
			return nil, err
		}
	}
	for _, n := range fields {
		i := slices.IndexFunc(s.Fields, func(c Captured) bool { return c.ID == n.ID })
		sink, err := n.Field.Sink()
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", n.ID, err)
		}
		cells := s.Fields[i].Cells
		if err := sink.CheckCells(cells, 0); err != nil {
			return nil, fmt.Errorf("field %q: %w", n.ID, err)
		}
		plan = append(plan, restoreStep{n.ID, sink, cells})
	}
	return plan, nil
}

// matches compares the capture with the field that it is to be restored to.
func (c *Captured) matches(f Any) error {
	switch {
	case f.Kind() != c.Kind:
		return &LayoutError{c.ID, "kind", f.Kind(), c.Kind}
	case f.Box() != c.Box:
		return &LayoutError{c.ID, "box", f.Box(), c.Box}
	case f.Domain() != c.Domain:
		return &LayoutError{c.ID, "domain", f.Domain(), c.Domain}
	case int64(len(c.Cells)) != c.bytes():
		return &TruncatedError{ID: c.ID, Got: int64(len(c.Cells)), Want: c.bytes()}
	}
	return nil
}

func checkFields(fields []Named) error {
	seen := make(map[string]bool, len(fields))
	var wrong NameError
	for _, n := range fields {
		if n.Field == nil {
			return fmt.Errorf("field %q: %w", n.ID, errors.New("is nil"))
		}
		if seen[n.ID] {
			wrong.Twice = append(wrong.Twice, n.ID)
		}
		seen[n.ID] = true
	}
	if wrong.Twice != nil {
		return &wrong
	}
	return nil
}
