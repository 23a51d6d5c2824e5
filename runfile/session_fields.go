package runfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// fieldCells are all cells of fields at one time, x fastest, by the unknown's name.
type fieldCells map[string][]float64

// checkFields tells whether the session can write what the layout has of fields.
func (c *Config) checkFields(ranks int) error {
	for i := range c.Layout.Unknowns {
		u := &c.Layout.Unknowns[i]
		if u.Kind != Field {
			continue
		}
		series, inFile := len(c.saveTimes()) > 0, c.Bundle == nil && !c.Checkpoint.Off
		if ranks > 1 && series {
			return fmt.Errorf("field %q: %w: only a run of one rank can save a series of a field: give no save times, and a bundle", u.Name, errors.ErrUnsupported)
		}
		if ranks > 1 && inFile {
			return fmt.Errorf("field %q: %w: the checkpoints of a run of %d ranks need Bundle for it", u.Name, errors.ErrUnsupported, ranks)
		}
		if !series && !inFile {
			continue
		}
		f := c.field(u.Name)
		if f == nil {
			return fmt.Errorf("field %q is not in Fields", u.Name)
		}
		if err := f.Domain().SameGrid(u.Domain); err != nil {
			return fmt.Errorf("field %q: %w", u.Name, err)
		}
		if f.Box() != u.Domain.Box() || f.Kind() == field.Complex128 {
			return fmt.Errorf("field %q has %v cells in %v, must be real ones in %v", u.Name, f.Kind(), f.Box(), u.Domain.Box())
		}
	}
	return nil
}

// field is the caller's field of a name, nil if there is none.
func (c *Config) field(name string) field.Any {
	for _, f := range c.Fields {
		if f.ID == name {
			return f.Field
		}
	}
	return nil
}

// copyFields copies the cells of the fields that the file is to hold: all of the
// layout, or those that no bundle holds.
func (s *Session) copyFields(bundles map[string]string) (fieldCells, error) {
	all := fieldCells{}
	for _, u := range s.cfg.Layout.Unknowns {
		if u.Kind != Field || bundles[u.Name] != "" {
			continue
		}
		f := s.cfg.field(u.Name)
		err := comm.Protect(func() error {
			src, err := f.Source()
			if err != nil {
				return err
			}
			cells := make([]float64, u.Domain.Cells())
			all[u.Name] = cells
			return src.ReadCells(pack.Bytes(cells), 0)
		})
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", u.Name, err)
		}
	}
	return all, nil
}

// reader gives the cells of fields at successive saved states.
func (s *Session) reader(states []fieldCells) FieldReader {
	return func(_ context.Context, name string, state int, box grid.Box, dst []float64) error {
		u := s.cfg.Layout.Unknown(name)
		if u == nil || state < 0 || state >= len(states) || !u.Domain.Box().Contains(box) {
			return fmt.Errorf("field %q: %w: state %d in %v", name, ErrNoState, state, box)
		}
		cells, size := states[state][name], u.Domain.Size
		for z := range box.Size[2] {
			for y := range box.Size[1] {
				at := ((box.Low[2]+z)*size[1]+box.Low[1]+y)*size[0] + box.Low[0]
				dst = dst[copy(dst, cells[at:at+box.Size[0]]):]
			}
		}
		return nil
	}
}

// restoreFields gives the caller's fields the cells that a file holds. Nothing changes
// unless all of them fit.
func (s *Session) restoreFields(ctx context.Context, from *Checkpoint) error {
	var apply []func() error
	for _, u := range s.cfg.Layout.Unknowns {
		if u.Kind != Field || from.Bundles[u.Name] != "" {
			continue
		}
		f := s.cfg.field(u.Name)
		if f == nil {
			return fmt.Errorf("field %q is in the file, and not in Fields", u.Name)
		}
		cells := make([]float64, u.Domain.Cells())
		if err := from.ReadField(ctx, u.Name, u.Domain.Box(), cells); err != nil {
			return err
		}
		sink, err := f.Sink()
		if err == nil {
			err = sink.CheckCells(pack.Bytes(cells), 0)
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", u.Name, err)
		}
		apply = append(apply, func() error {
			return errors.Join(sink.WriteCells(pack.Bytes(cells), 0), f.Upload())
		})
	}
	for _, do := range apply {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
