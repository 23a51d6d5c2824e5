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
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
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

	// Sidecar is published as sidecar.json when it isn't nil, as package json writes it.
	// The numbers that JSON doesn't have become the strings "NaN", "Infinity" and
	// "-Infinity"; [DecodeSidecar] makes numbers of them.
	Sidecar any
}

// SaveBundle publishes a state as the bundle dir. It is collective.
//
// Only owned cells are written; those of a field on a device come past its host
// mirror or from it, as [field.Path] says, and nothing becomes stale. float32 fields
// are widened; complex fields are refused, since a bundle holds what can't be
// recomputed. The errors are those of [Directory]. The plan and its memory are made
// for this call, unless [Reuse] says otherwise.
func SaveBundle(ctx context.Context, c *comm.Comm, dir string, s State, opts ...Option) error {
	ctx = waiting.Named(ctx, "SaveBundle")
	return named("publish", dir, saveBundle(ctx, c, dir, s, opts))
}

func saveBundle(ctx context.Context, c *comm.Comm, dir string, s State, opts []Option) (err error) {
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
	plan := o.planning(c, meta.Domain.Size, box, brick.Float64)
	defer func() { plan.done(err) }()
	conditions := newExtent(lengthOrNil(s.Boundaries))
	maxima := append(plan.maxima(), &conditions[0], &conditions[1])
	// The hooks of boundary conditions may be collective, so they run when every
	// rank is known to be here, with the same domain and fields.
	if err := p.agree(ctx, inputs, cmp.Or(err, perr, serr, jerr), maxima...); err != nil {
		return err
	}
	if err := conditions.check(wantedBoundaries); err != nil {
		return err
	}
	if p.meta.BoundaryConditions, err = saveBoundaries(ctx, c, s.Boundaries); err != nil {
		return err
	}
	// The records are the same on all ranks, and so is what is wrong with them.
	if s.Boundaries != nil {
		if _, err := EncodeMetadata(p.meta); err != nil {
			return inputError(err)
		}
	}
	ctx, end := o.atWork(ctx, c, "publish", dir)
	defer end()
	bricks, err := plan.plan(ctx)
	if errors.Is(err, brick.ErrLayout) || errors.Is(err, brick.ErrDisagree) {
		err = inputError(err)
	}
	if err != nil {
		return err
	}
	p.meta.Decomposition = &Decomposition{MPISize: c.Size(), LocalSize: box.Size, LocalOffset: box.Low}
	return p.run(ctx, func(ctx context.Context, dir string) ([]brick.Sum, error) {
		jobs := make([]brick.WriteJob, len(s.Fields))
		for i, f := range s.Fields {
			jobs[i] = brick.WriteJob{
				Name:   "field " + strconv.Quote(f.ID),
				Path:   filepath.Join(dir, f.ID+fieldSuffix),
				Source: &fieldSource{f: f, step: p.o.step},
			}
		}
		sums, err := bricks.Write(onedir.Checked(ctx), jobs)
		if errors.Is(err, vfs.ErrOneFile) {
			err = inputError(err)
		}
		return sums, err
	})
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
	box, domain, err := sharedLayout(fields)
	for _, f := range fields {
		if f.Field == nil {
			break
		}
		if kind := f.Field.Kind(); kind != field.Float64 && kind != field.Float32 {
			return box, domain, fmt.Errorf("field %q is %s: a bundle holds real fields, a complex one is work space that is computed again", f.ID, kind)
		}
	}
	return box, domain, err
}

// sharedLayout checks that the fields, of which there is at least one, have one
// domain and one box.
func sharedLayout(fields []field.Named) (grid.Box, grid.Domain, error) {
	for _, f := range fields {
		if f.Field == nil {
			return grid.Box{}, grid.Domain{}, fmt.Errorf("field %q is nil", f.ID)
		}
	}
	first := fields[0]
	box, domain := first.Field.Box(), first.Field.Domain()
	for _, f := range fields {
		switch {
		case f.Field.Domain() != domain:
			return box, domain, fmt.Errorf("field %q has another domain than field %q: %+v, %+v", f.ID, first.ID, f.Field.Domain(), domain)
		case f.Field.Box() != box:
			return box, domain, fmt.Errorf("field %q has another box than field %q: %v, %v", f.ID, first.ID, f.Field.Box(), box)
		}
	}
	return box, domain, nil
}
