package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Request is what a solver wants from a bundle.
type Request struct {
	Fields     []field.Named // the destinations; a bundle may have more fields
	Method     string        // identity of the integrator; empty accepts any
	Boundaries []Boundary    // in the order of their application

	// Accept, when set, is called on every rank that has found nothing else wrong
	// with grid, method and fields, before the boundary conditions are looked at
	// and any field is read. Its error rejects the load on all ranks. It must not
	// be collective: a rank that has found something wrong doesn't call it.
	Accept func(Metadata) error
}

// Loaded is what a load found beside the fields.
type Loaded struct {
	Path     string // of the bundle
	Metadata Metadata
	Sidecar  json.RawMessage // nil: none

	// Verified is false when the bundle has no checksums (format version 1, or
	// another writer) and only the sizes could be checked.
	Verified bool
}

// LoadBundle reads the bundle dir into the fields of want. It is collective; rank
// count and decomposition are free, and need not be those that wrote it.
//
// It changes owned cells only, and uploads device fields; the caller exchanges
// halos before the next stencil. Grid, periodicity, method, boundary conditions
// and the sizes of all files are checked on all ranks before any field is read,
// and every field's checksum before any cell changes. Then the states of the
// boundary conditions are put in place, and the cells last; [InPlace] changes the
// cells as they are read, and the states last.
//
// The error is the same on all ranks. Without [ErrFieldsUndefined] in its chain
// the fields are as they were on all ranks, and so are the boundary conditions,
// with the exceptions of [RestoreBoundaries]. With it cells may have changed:
// InPlace may return it from the first read on; otherwise it means that the cells
// could not be stored, as when the upload to a device failed, after everything
// had been read and verified and the states were in place.
//
// The error matches [ErrInput] when the ranks disagree about what they want or a
// destination isn't possible, [ErrMismatch] when the bundle isn't what is wanted,
// [brick.ErrLayout] when the destinations' boxes have a gap, overlap or leave the
// domain, [ErrBoundary] when a boundary condition can't be restored, and those of
// [Inspect] and [ErrChecksum] when the bundle is damaged or none.
func LoadBundle(ctx context.Context, c *comm.Comm, dir string, want Request, opts ...Option) (*Loaded, error) {
	o, err := newOptions(opts)
	l := &load{c: c, o: o, dir: dir, want: want}
	loaded, err := l.run(ctx, err)
	if err != nil {
		return nil, named("load", dir, err)
	}
	return loaded, nil
}

type load struct {
	c    *comm.Comm
	o    options
	dir  string
	want Request
	head head
	meta Metadata

	// apply puts the saved states into the boundary conditions, on all ranks or
	// on none.
	apply func(context.Context) error
}

// head is what rank 0 reads and gives to the others.
type head struct {
	Metadata []byte
	Fields   []string
	Sidecar  []byte
	Sums     map[string]uint64 // nil: the bundle has no checksums
}

func (l *load) run(ctx context.Context, invalid error) (*Loaded, error) {
	if err := l.agree(ctx, invalid); err != nil {
		return nil, err
	}
	if err := l.readHead(ctx); err != nil {
		return nil, err
	}
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	plan, err := brick.NewPlan(ctx, l.c, l.meta.Domain.Size, l.want.Fields[0].Field.Box(), brick.Float64, l.o.bricks()...)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	if l.o.inPlace {
		err = l.readInPlace(ctx, plan)
	} else {
		err = l.readThenCommit(ctx, plan)
	}
	if err != nil {
		return nil, err
	}
	if l.head.Sums == nil {
		l.o.log.Warn("the bundle has no checksums: only sizes were checked", "bundle", l.dir)
	}
	return &Loaded{Path: l.dir, Metadata: l.meta, Sidecar: l.head.Sidecar, Verified: l.head.Sums != nil}, nil
}

func (l *load) agree(ctx context.Context, err error) error {
	path, perr := filepath.Abs(l.dir)
	err = cmp.Or(err, perr)
	inputs := []entry{{pathEntry, strconv.Quote(l.dir)}, {"the absolute path", strconv.Quote(path)}, {"loading in place", strconv.FormatBool(l.o.inPlace)}}
	if len(l.want.Fields) == 0 {
		err = cmp.Or(err, errors.New("no field is wanted"))
	} else {
		ids := make([]string, len(l.want.Fields))
		for i, f := range l.want.Fields {
			ids[i] = f.ID
			inputs = append(inputs, entry{"field " + strconv.Itoa(i), strconv.Quote(f.ID)})
		}
		lerr := comm.Protect(func() error {
			_, _, err := commonLayout(l.want.Fields)
			return err
		})
		err = cmp.Or(err, CheckIDs(ids), lerr)
	}
	return agreeInputs(ctx, l.c, err, inputs)
}

// readHead reads metadata, sidecar and checksums on rank 0 and checks the sizes
// of all wanted fields there.
func (l *load) readHead(ctx context.Context) error {
	var text []byte
	err := l.c.OnRoot(ctx, nil, func() error {
		h, err := l.inspect()
		if err != nil {
			return err
		}
		text, err = json.Marshal(h)
		return err
	})
	if err != nil {
		return err
	}
	if text, err = l.c.Broadcast(ctx, 0, text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &l.head); err != nil {
		return err
	}
	l.meta, err = ParseMetadata(l.head.Metadata)
	l.meta.Fields = l.head.Fields
	return l.c.Agree(ctx, err)
}

// inspect checks the structure of the bundle, and reads what is small.
func (l *load) inspect() (head, error) {
	s, err := readStructure(l.o.fs, l.dir)
	if err != nil {
		return head{}, err
	}
	h := head{Metadata: s.text, Fields: s.info.Metadata.Fields, Sums: s.byPath()}
	if s.info.Sidecar {
		h.Sidecar, err = readSidecar(l.o.fs, l.dir, h.Sums)
	}
	return h, err
}

// check compares the bundle with what this rank wants, agrees on it, and
// prepares the boundary conditions. Nothing is changed before apply is called.
func (l *load) check(ctx context.Context) (err error) {
	if err := l.c.Agree(ctx, comm.Protect(l.matches)); err != nil {
		return err
	}
	l.apply, err = prepareBoundaries(ctx, l.c, l.meta.BoundaryConditions, l.want.Boundaries)
	return err
}

func (l *load) matches() error {
	_, domain, err := commonLayout(l.want.Fields)
	if err != nil {
		return err
	}
	if err := l.meta.Domain.SameGrid(domain); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	if err := l.meta.Domain.SamePeriodicity(domain); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	if l.want.Method != "" && l.want.Method != l.meta.MethodIdentity {
		return fmt.Errorf("%w: method identity is %q, want %q", ErrMismatch, l.meta.MethodIdentity, l.want.Method)
	}
	saved := make(map[string]bool, len(l.meta.Fields))
	for _, id := range l.meta.Fields {
		saved[id] = true
	}
	for _, f := range l.want.Fields {
		if !saved[f.ID] {
			return fmt.Errorf("%w: %w: %q is not among %q", ErrMismatch, ErrNoField, f.ID, l.meta.Fields)
		}
	}
	if l.want.Accept != nil {
		return l.want.Accept(l.meta)
	}
	return nil
}

func (l *load) jobs(sink func(i int, src []byte, first int64) error) []brick.ReadJob {
	jobs := make([]brick.ReadJob, len(l.want.Fields))
	for i, f := range l.want.Fields {
		jobs[i] = brick.ReadJob{
			Name: fmt.Sprintf("field %q", f.ID),
			Path: filepath.Join(l.dir, filepath.FromSlash(fieldPath(f.ID))),
			Sink: brick.SinkFunc(func(src []byte, first int64) error { return sink(i, src, first) }),
		}
	}
	return jobs
}

// verify compares the checksums of what was read with the recorded ones. Every
// rank has the same numbers, so every rank comes to the same verdict.
func (l *load) verify(crcs []uint64) error {
	if l.head.Sums == nil {
		return nil
	}
	for i, f := range l.want.Fields {
		path := fieldPath(f.ID)
		if err := checkSum(l.dir, path, crcs[i], l.head.Sums[path]); err != nil {
			return err
		}
	}
	return nil
}

// readThenCommit reads all fields into one copy of the owned cells, and changes
// the fields when all ranks have everything and it is what was written.
func (l *load) readThenCommit(ctx context.Context, plan *brick.Plan) error {
	size := plan.Box().Cells() * 8
	copies := make([][]byte, len(l.want.Fields))
	sinks := make([]pack.Sink, len(l.want.Fields))
	crcs, err := plan.Read(ctx, l.jobs(func(i int, src []byte, first int64) error {
		if copies[i] == nil {
			copies[i] = make([]byte, size)
		}
		copy(copies[i][first*8:], src)
		return nil
	}))
	if err != nil {
		return err
	}
	if err := l.verify(crcs); err != nil {
		return err
	}
	err = comm.Protect(func() error {
		for i, f := range l.want.Fields {
			sink, err := f.Field.Sink()
			if err == nil {
				err = sink.CheckCells(copies[i], 0)
			}
			if err != nil {
				return fmt.Errorf("field %q: %w", f.ID, err)
			}
			sinks[i] = sink
		}
		return nil
	})
	if err := l.c.Agree(ctx, err); err != nil {
		return err
	}
	if err := l.apply(ctx); err != nil {
		return err
	}
	err = comm.Protect(func() error {
		for i, f := range l.want.Fields {
			if err := sinks[i].WriteCells(copies[i], 0); err != nil {
				return fmt.Errorf("field %q: %w", f.ID, err)
			}
			copies[i] = nil
		}
		return l.upload()
	})
	return l.undefined(ctx, err)
}

func (l *load) readInPlace(ctx context.Context, plan *brick.Plan) error {
	sinks := make([]pack.Sink, len(l.want.Fields))
	err := comm.Protect(func() error {
		for i, f := range l.want.Fields {
			sink, err := f.Field.Sink()
			if err != nil {
				return fmt.Errorf("field %q: %w", f.ID, err)
			}
			sinks[i] = sink
		}
		return nil
	})
	if err := l.c.Agree(ctx, err); err != nil {
		return err
	}
	crcs, err := plan.Read(ctx, l.jobs(func(i int, src []byte, first int64) error {
		if err := sinks[i].CheckCells(src, first); err != nil {
			return err
		}
		return sinks[i].WriteCells(src, first)
	}))
	if err == nil {
		err = l.verify(crcs)
	}
	if err == nil {
		err = comm.Protect(l.upload)
	}
	if err := l.undefined(ctx, err); err != nil {
		return err
	}
	if err := l.apply(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrFieldsUndefined, err)
	}
	return nil
}

func (l *load) upload() error {
	for _, f := range l.want.Fields {
		if err := f.Field.Upload(); err != nil {
			return fmt.Errorf("field %q: upload: %w", f.ID, err)
		}
	}
	return nil
}

// undefined is the last agreement of a load, after which cells have changed.
func (l *load) undefined(ctx context.Context, err error) error {
	if err := l.c.Agree(context.WithoutCancel(ctx), err); err != nil {
		return fmt.Errorf("%w: %w", ErrFieldsUndefined, err)
	}
	return nil
}
