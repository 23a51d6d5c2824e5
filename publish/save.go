package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// State is an accepted state of a solver: what a bundle is made of. All ranks
// give the same values, but for the cells that their fields own.
type State struct {
	Fields        []field.Named // float64 or float32, on one domain, in one decomposition
	Time          float64       // accepted time, finite
	Increment     int64         // accepted increment, not negative
	ResultCounter int64         // number of results written so far, not negative
	Method        string        // identity of the integrator
	Boundaries    []Boundary    // in the order of their application
	Sidecar       any           // published as sidecar.json when not nil
}

// SaveBundle publishes a state as the bundle dir. It is collective.
//
// Only owned cells are written; a field on a device is read through its host
// mirror, which is brought up to date and marks nothing stale. float32 fields
// are widened; complex fields are refused, since a bundle holds what can't be
// recomputed. The errors are those of [Directory].
func SaveBundle(ctx context.Context, c *comm.Comm, dir string, s State, opts ...Option) error {
	o, err := newOptions(opts)
	var meta Metadata
	var box grid.Box
	var inputs []entry
	serr := comm.Protect(func() (err error) { // a field may be any implementation, and broken
		if meta, box, err = s.metadata(); err != nil {
			return err
		}
		for _, f := range s.Fields {
			inputs = append(inputs, entry{"field " + strconv.Quote(f.ID), f.Field.Kind().String()})
		}
		return nil
	})
	if s.Sidecar == nil {
		s.Sidecar = o.sidecar
	}
	sidecar, jerr := encodeSidecar(s.Sidecar, maxSidecarBytes)
	p, perr := newPublication(c, dir, meta, o)
	p.sidecar = sidecar
	err = cmp.Or(err, perr, serr, jerr)
	// The hooks of boundary conditions may be collective, so they run when every
	// rank is known to be here, with the same domain and fields.
	if err := p.agree(ctx, inputs, err); err != nil {
		return named("publish", dir, err)
	}
	p.meta.BoundaryConditions, err = saveBoundaries(ctx, c, s.Boundaries)
	if err != nil {
		return named("publish", dir, err)
	}
	// The records are the same on all ranks, and so is what is wrong with them.
	if _, err := EncodeMetadata(p.meta); err != nil {
		return named("publish", dir, inputError(err))
	}
	plan, err := brick.NewPlan(ctx, c, meta.Domain.Size, box, brick.Float64, o.bricks()...)
	if errors.Is(err, brick.ErrLayout) || errors.Is(err, brick.ErrDisagree) {
		err = inputError(err)
	}
	if err != nil {
		return named("publish", dir, err)
	}
	defer plan.Close()
	p.meta.Decomposition = &Decomposition{MPISize: c.Size(), LocalSize: box.Size, LocalOffset: box.Low}
	return named("publish", dir, p.run(ctx, func(ctx context.Context, dir string) (map[string]uint64, error) {
		jobs := make([]brick.WriteJob, len(s.Fields))
		for i, f := range s.Fields {
			jobs[i] = brick.WriteJob{
				Name:   fmt.Sprintf("field %q", f.ID),
				Path:   filepath.Join(dir, f.ID+fieldSuffix),
				Source: &fieldSource{f: f, step: p.o.step},
			}
		}
		crcs, err := plan.Write(ctx, jobs)
		if err != nil {
			return nil, err
		}
		sums := make(map[string]uint64, len(crcs))
		for i, f := range s.Fields {
			sums[f.ID] = crcs[i]
		}
		return sums, nil
	}))
}

// metadata describes the state, and gives the box that all fields share.
func (s State) metadata() (Metadata, grid.Box, error) {
	m := Metadata{
		FormatVersion:     formatVersion,
		AcceptedTime:      s.Time,
		AcceptedIncrement: s.Increment,
		ResultCounter:     s.ResultCounter,
		MethodIdentity:    s.Method,
	}
	if len(s.Fields) == 0 {
		return m, grid.Box{}, errors.New("a bundle needs at least one field")
	}
	for _, f := range s.Fields {
		if f.Field == nil {
			return m, grid.Box{}, fmt.Errorf("field %q is nil", f.ID)
		}
		m.Fields = append(m.Fields, f.ID)
	}
	m.Domain = s.Fields[0].Field.Domain()
	if err := m.Validate(); err != nil {
		return m, grid.Box{}, err
	}
	box, _, err := commonLayout(s.Fields)
	return m, box, err
}

// commonLayout checks that the fields have one domain and one box, and kinds that
// a bundle can hold.
func commonLayout(fields []field.Named) (grid.Box, grid.Domain, error) {
	for _, f := range fields {
		if f.Field == nil {
			return grid.Box{}, grid.Domain{}, fmt.Errorf("field %q is nil", f.ID)
		}
	}
	first := fields[0]
	box, domain := first.Field.Box(), first.Field.Domain()
	for _, f := range fields {
		switch kind := f.Field.Kind(); {
		case kind != field.Float64 && kind != field.Float32:
			return box, domain, fmt.Errorf("field %q is %s: a bundle holds real fields, a complex one is work space that is computed again", f.ID, kind)
		case f.Field.Domain() != domain:
			return box, domain, fmt.Errorf("field %q has another domain than field %q: %+v, %+v", f.ID, first.ID, f.Field.Domain(), domain)
		case f.Field.Box() != box:
			return box, domain, fmt.Errorf("field %q has another box than field %q: %v, %v", f.ID, first.ID, f.Field.Box(), box)
		}
	}
	return box, domain, nil
}

// fieldSource opens the field's source at the first use, so that a device that
// fails is an error of this field at the moment it is written.
type fieldSource struct {
	f      field.Named
	step   func(Step, string)
	source pack.Source
}

func (s *fieldSource) ReadCells(dst []byte, first int64) error {
	if s.source == nil {
		s.step(StepField, s.f.ID)
		source, err := s.f.Field.Source()
		if err != nil {
			return err
		}
		s.source = source
	}
	return s.source.ReadCells(dst, first)
}
