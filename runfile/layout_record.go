package runfile

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// LayoutVersion is the version of layout records that this package writes. It reads
// the earlier ones too.
const LayoutVersion = 2

// maxState is the largest number of values of a state vector.
const maxState = min(1<<44, math.MaxInt/8)

// Units of the datasets of faces.
var faceUnits = map[string]string{"r_faces": "m", "p_faces": "m_e c", "xi_faces": "1"}

// fileRecord returns the layout as a file has it: by itself, with units and grids.
func (l *Layout) fileRecord() (record.Record, error) {
	b := record.NewBuilder()
	b.Int("layout_version", LayoutVersion)
	list := make([]record.Record, len(l.Grids))
	for i, g := range l.Grids {
		var err error
		if list[i], err = record.Of("name", g.Name, "p_faces", g.P, "xi_faces", g.Xi); err != nil {
			return record.Record{}, err
		}
	}
	b.Records("grids", list)
	if l.R != nil {
		b.Floats("r_faces", l.R)
	}
	if len(l.Unknowns) == 0 {
		b.Records("unknowns", nil)
	}
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		b.Entry("unknowns", u.Name, func(b *record.Builder) {
			u.describe(b)
			b.Text("unit", u.Unit)
		})
	}
	return b.Build()
}

// describe adds what a record of the unknown holds, but for its unit.
func (u *Unknown) describe(b *record.Builder) {
	scale := u.Scale
	if scale == 0 {
		scale = 1
	}
	b.Text("kind", string(u.Kind)).Float("scale", scale)
	if u.Lower != nil {
		b.Float("lower_limit_tolerance", u.Lower.Tolerance)
		if u.Lower.Value != 0 {
			b.Float("lower_limit_value", u.Lower.Value)
		}
		if u.Lower.Reference != "" {
			b.Text("lower_limit_reference", u.Lower.Reference)
		}
	}
	switch u.Kind {
	case Radial:
		b.Int("components", int64(u.Components))
		if u.Groups != nil {
			starts := make([]int64, len(u.Groups))
			for i, g := range u.Groups {
				starts[i] = int64(g) + 1 // files count from 1
			}
			b.Ints("group_starts", starts)
		}
	case Kinetic:
		b.Texts("grids", u.Grids)
	case Field:
		b.Set("cells", u.Domain.Size[:]).Floats("origin", u.Domain.Origin[:]).Floats("spacing", u.Domain.Spacing[:])
		periodic := make([]uint8, 3)
		for i, p := range u.Domain.Periodic {
			if p {
				periodic[i] = 1
			}
		}
		record.PutArray(b, "periodic", periodic)
	}
}

// writeLayout writes the group of a file.
func writeLayout(f *h5.File, l *Layout) error {
	r, err := l.fileRecord()
	if err != nil {
		return err
	}
	if err := writeRecord(f, "layout", r); err != nil {
		return err
	}
	var faces []string
	if l.R != nil {
		faces = append(faces, "layout/r_faces")
	}
	for _, g := range l.Grids {
		p := h5.Join("layout/grids", g.Name)
		faces = append(faces, h5.Join(p, "p_faces"), h5.Join(p, "xi_faces"))
	}
	for _, path := range faces {
		if err := f.SetAttributeString(path, "unit", faceUnits[baseName(path)]); err != nil {
			return err
		}
	}
	return nil
}

// readLayout reads the group of a file, and the units that it stores.
func readLayout(f *h5.File, warn func(string), sums *storedSums) (*Layout, map[string]string, error) {
	r := recordReader{file: f, left: maxRecordBytes}
	r.drop = func(path string, v record.Value, err error) bool {
		name, ok := unknownOfUnit(path)
		if !ok {
			return false
		}
		text, isText := v.Any().(string)
		if list, ok := v.Any().([]string); ok && len(list) == 1 {
			text, isText = list[0], true
		}
		switch {
		case err != nil && !errors.Is(err, record.ErrValue) && !errors.Is(err, h5.ErrKind) && !errors.Is(err, h5.ErrType) && !errors.Is(err, h5.ErrShape):
			return false
		case err == nil && isText && checkUnit(text) == nil:
			return false
		}
		warn(fmt.Sprintf("%s: %s: the unit of unknown %q is not an ASCII string without control characters: it takes its default unit", f.Name(), path, name))
		return true
	}
	rec, err := r.read("layout")
	if err == nil {
		err = sums.record("layout", rec)
	}
	if err != nil {
		return nil, nil, err
	}
	l, units, err := layoutOf(rec)
	if err != nil {
		return nil, nil, ofFile(f.Name(), "layout", err)
	}
	return l, units, nil
}

// unknownOfUnit tells whose unit is at a path.
func unknownOfUnit(path string) (name string, ok bool) {
	dir, last := parentName(path), baseName(path)
	if last != "unit" || parentName(dir) != "layout/unknowns" {
		return "", false
	}
	return baseName(dir), true
}

// layoutOf rebuilds a layout from its record, with nothing but what it holds.
func layoutOf(r record.Record) (*Layout, map[string]string, error) {
	version, err := orElse(intAt, r, "layout_version", LayoutVersion)
	if err != nil {
		return nil, nil, err
	}
	if version < 1 || version > LayoutVersion {
		return nil, nil, fmt.Errorf("%w: layout_version is %d, known are 1 to %d", ErrVersion, version, LayoutVersion)
	}
	l := &Layout{}
	if r.Has("r_faces") {
		if l.R, err = floatsAt(r, "r_faces"); err != nil {
			return nil, nil, err
		}
	}
	err = eachEntry(r, "grids", func(name string, r record.Record) error {
		g := MomentumGrid{Name: name}
		var err error
		if g.P, err = floatsAt(r, "p_faces"); err != nil {
			return err
		}
		if g.Xi, err = floatsAt(r, "xi_faces"); err != nil {
			return err
		}
		l.Grids = append(l.Grids, g)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	units := map[string]string{}
	err = eachEntry(r, "unknowns", func(name string, r record.Record) error {
		u, err := unknownOf(name, r)
		if err != nil {
			return err
		}
		if r.Has("unit") {
			units[name] = u.Unit
		}
		l.Unknowns = append(l.Unknowns, u)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if err := l.check(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	return l, units, nil
}

// eachEntry calls visit for the records of a list, which files of others give as a
// record of records.
func eachEntry(r record.Record, path string, visit func(name string, r record.Record) error) error {
	v, err := r.Get(path)
	switch {
	case errors.Is(err, record.ErrMissing):
		return nil
	case err != nil:
		return err
	}
	switch v := v.Any().(type) {
	case []record.Record:
		for _, e := range v {
			name, err := e.Text("name")
			if err == nil {
				err = visit(name, e)
			}
			if err != nil {
				return fmt.Errorf("%s/%s: %w", path, name, err)
			}
		}
		return nil
	case record.Record:
		for name, e := range v.All() {
			entry, ok := e.Any().(record.Record)
			if !ok {
				return fmt.Errorf("%s/%s: %w: a %v, not a record", path, name, record.ErrType, e.Kind())
			}
			if err := visit(name, entry); err != nil {
				return fmt.Errorf("%s/%s: %w", path, name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%s: %w: a %v, not records", path, record.ErrType, v.Kind())
}

func unknownOf(name string, r record.Record) (u Unknown, err error) {
	u.Name = name
	kind, err := textAt(r, "kind")
	if err != nil {
		return u, err
	}
	u.Kind = Kind(kind)
	if u.Scale, err = orElse(floatAt, r, "scale", 1); err != nil {
		return u, err
	}
	if u.Unit, err = orElse(textAt, r, "unit", ""); err != nil {
		return u, err
	}
	if r.Has("lower_limit_tolerance") {
		u.Lower = &LowerLimit{}
		if u.Lower.Tolerance, err = floatAt(r, "lower_limit_tolerance"); err != nil {
			return u, err
		}
		if u.Lower.Value, err = orElse(floatAt, r, "lower_limit_value", 0); err != nil {
			return u, err
		}
		if u.Lower.Reference, err = orElse(textAt, r, "lower_limit_reference", ""); err != nil {
			return u, err
		}
	}
	switch u.Kind {
	case Radial:
		return u, u.readComponents(r)
	case Kinetic:
		u.Grids, err = textsAt(r, "grids")
	case Field:
		u.Domain, err = domainOf(r)
	}
	return u, err
}

func (u *Unknown) readComponents(r record.Record) error {
	n, err := intAt(r, "components")
	if err != nil {
		return err
	}
	if n < 1 || n > maxState {
		return fmt.Errorf("%w: %d components", ErrMismatch, n)
	}
	u.Components = int(n)
	if !r.Has("group_starts") {
		return nil
	}
	starts, err := intsAt(r, "group_starts")
	if err != nil {
		return err
	}
	u.Groups = make([]int, len(starts))
	for i, s := range starts {
		if s < 1 || s > n {
			return fmt.Errorf("%w: group_starts are %v of %d components", ErrMismatch, starts, n)
		}
		u.Groups[i] = int(s) - 1
	}
	return nil
}

func domainOf(r record.Record) (d grid.Domain, err error) {
	size, err := intsAt(r, "cells")
	if err != nil {
		return d, err
	}
	origin, err := floatsAt(r, "origin")
	if err != nil {
		return d, err
	}
	spacing, err := floatsAt(r, "spacing")
	if err != nil {
		return d, err
	}
	array, err := r.Array("periodic")
	if err != nil {
		return d, err
	}
	periodic, err := array.Float64s()
	if err != nil {
		return d, err
	}
	if len(size) != 3 || len(origin) != 3 || len(spacing) != 3 || len(periodic) != 3 {
		return d, fmt.Errorf("%w: cells, origin, spacing and periodic have %d, %d, %d and %d numbers, must have 3 each",
			ErrMismatch, len(size), len(origin), len(spacing), len(periodic))
	}
	for i := range 3 {
		if size[i] < 1 || size[i] > maxState {
			return d, fmt.Errorf("%w: cells are %v", ErrMismatch, size)
		}
		d.Size[i], d.Origin[i], d.Spacing[i], d.Periodic[i] = int(size[i]), origin[i], spacing[i], periodic[i] != 0
	}
	return d, nil
}

// check validates a layout and that a state of it has a size.
func (l *Layout) check() error {
	if err := l.Validate(); err != nil {
		return err
	}
	total := uint64(0)
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		// A grid for each radius costs memory of its own for each, so only the
		// products can be out of bounds.
		hi, n := uint64(0), uint64(1)
		switch u.Kind {
		case Radial:
			hi, n = bits.Mul64(uint64(cells(l.R)), uint64(u.Components))
		case Kinetic:
			n = 0
			for _, name := range u.Grids {
				g := l.Grid(name)
				h, m := bits.Mul64(uint64(cells(g.P)), uint64(cells(g.Xi)))
				hi, n = hi|h, n+m
			}
			if len(u.Grids) == 1 {
				var h uint64
				h, n = bits.Mul64(n, uint64(cells(l.R)))
				hi |= h
			}
		case Field:
			n = 0
		}
		if total += n; hi != 0 || n > maxState || total > maxState {
			return fmt.Errorf("unknown %q: the state has more than %d numbers", u.Name, int64(maxState))
		}
	}
	return nil
}
