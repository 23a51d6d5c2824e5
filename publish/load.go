package publish

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Request is what a solver wants from a bundle.
type Request struct {
	Fields     []field.Named // the destinations; more fields of a bundle are a warning
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

	// Sidecar is the content of sidecar.json, nil where there is none. [DecodeSidecar]
	// reads it, with the numbers that JSON doesn't have.
	Sidecar json.RawMessage

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
// The path is the same on all ranks, and a relative one is relative to the working
// directory of rank 0. A node on which there is another bundle than rank 0 sees, or none,
// is an error that names it, before any field is read. Nothing is written.
//
// The error matches [ErrInput] when the ranks disagree about what they want or a
// destination isn't possible, [ErrMismatch] when the bundle isn't what is wanted,
// [brick.ErrLayout] when the destinations' boxes have a gap, overlap or leave the
// domain, [ErrBoundary] when a boundary condition can't be restored, and those of
// [Inspect] and [ErrChecksum] when the bundle is damaged or none.
func LoadBundle(ctx context.Context, c *comm.Comm, dir string, want Request, opts ...Option) (*Loaded, error) {
	ctx = waiting.Named(ctx, "LoadBundle")
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
	dir  string // as the caller gave it
	path string // absolute, rank 0's on all ranks
	want Request
	head head
	meta Metadata

	unlisted []string // on rank 0: files of fields that the metadata don't list
	accepts  int64    // some rank has an Accept

	copies *copies // nil when loading in place

	// apply puts the saved states into the boundary conditions, on all ranks or
	// on none.
	apply func(context.Context) error
}

func (l *load) run(ctx context.Context, invalid error) (loaded *Loaded, err error) {
	plan, err := l.agree(ctx, invalid)
	defer func() {
		plan.done(err)
		if err := l.copies.free(); err != nil {
			l.o.log.Warn("memory of a load stays", "bundle", l.dir, "error", err)
		}
	}()
	if err != nil {
		return nil, err
	}
	work, end := l.o.atWork(ctx, l.c, "load", l.dir)
	defer end()
	if err := l.readHead(work); err != nil {
		return nil, err
	}
	l.apply, err = prepareBoundaries(ctx, l.c, l.meta.BoundaryConditions, l.want.Boundaries)
	if err != nil {
		return nil, err
	}
	bricks, err := plan.plan(work)
	if err != nil {
		return nil, err
	}
	if l.o.inPlace {
		err = l.readInPlace(work, bricks)
	} else {
		err = l.readThenCommit(work, bricks)
	}
	if err != nil {
		return nil, err
	}
	if l.o.summed != nil {
		l.o.summed(l.sums())
	}
	if !l.head.verifiable {
		l.o.log.Warn("the bundle has no checksums: only sizes were checked", "bundle", l.dir)
	}
	if len(l.unlisted) > 0 {
		l.o.log.Warn("the bundle has files of fields that its metadata don't list: they were not read", "bundle", l.dir, "files", l.unlisted)
	}
	l.warnUnwanted()
	return &Loaded{Path: l.dir, Metadata: l.meta, Sidecar: l.head.sidecar, Verified: l.head.verifiable}, nil
}

// agree also looks whether a kept plan fits.
func (l *load) agree(ctx context.Context, err error) (*planning, error) {
	path, perr := filepath.Abs(l.dir)
	err = cmp.Or(err, perr)
	paths := onedir.NewPaths(path)
	inputs := []entry{{pathEntry, strconv.Quote(l.dir)}, {"loading in place", strconv.FormatBool(l.o.inPlace)}}
	var box grid.Box
	var domain grid.Domain
	if len(l.want.Fields) == 0 {
		err = cmp.Or(err, errors.New("no field is wanted"))
	} else {
		ids := make([]string, len(l.want.Fields))
		for i, f := range l.want.Fields {
			ids[i] = f.ID
			inputs = append(inputs, entry{"field " + strconv.Itoa(i), strconv.Quote(f.ID)})
		}
		lerr := comm.Protect(func() (err error) {
			box, domain, err = commonLayout(l.want.Fields)
			return err
		})
		err = cmp.Or(err, CheckIDs(ids), lerr)
	}
	plan := l.o.planning(l.c, domain.Size, box, brick.Float64)
	conditions := newExtent(lengthOrNil(l.want.Boundaries))
	if l.want.Accept != nil {
		l.accepts = 1
	}
	maxima := append(plan.maxima(), &conditions[0], &conditions[1], &l.accepts)
	err = agreeInputs(ctx, l.c, err, inputs, append(paths.Maxima(), maxima...)...)
	if err == nil {
		err = paths.Settle(ctx, l.c)
	}
	l.path = paths.At(0)
	return plan, cmp.Or(err, conditions.check(wantedBoundaries))
}

// readHead reads what is small on rank 0, checks the sizes of all wanted fields
// there, compares the bundle on all ranks with what they want, and makes room for
// it. The outcome is agreed on.
func (l *load) readHead(ctx context.Context) error {
	var text []byte
	var err error
	if l.c.Rank() == 0 {
		err = comm.Protect(waiting.Step(ctx, "read", "the metadata", func() (err error) {
			text, err = l.inspect()
			return err
		}))
	}
	text, lost := l.c.Broadcast(ctx, 0, text)
	if lost != nil {
		return lost
	}
	if err == nil && len(text) > 0 { // otherwise rank 0 has an error
		err = comm.Protect(func() (err error) {
			l.head = decodeHead(text)
			if l.meta, err = ParseMetadata(l.head.metadata); err != nil {
				return err
			}
			if l.meta.Fields == nil {
				l.meta.Fields = l.head.fields
			}
			if err := l.matches(); err != nil || l.o.inPlace {
				return err
			}
			l.copies, err = newCopies(l.want.Fields, l.want.Fields[0].Field.Box())
			return err
		})
	}
	if l.accepts != 0 {
		// Who hangs in the caller's Accept doesn't come; what nodes see of the bundle is
		// another matter.
		watched := l.c.Watched(ctx)
		several, _, lost := l.o.look.Nodes(watched, l.c)
		if lost != nil {
			return lost
		}
		if err := l.c.Agree(watched, err); err != nil || !several {
			return err
		}
	}
	return l.o.sameBundle(ctx, l.c, err, l.path, l.want.Fields)
}

// sameBundle is the agreement that no rank has an error and that all nodes see the
// bundle that rank 0 sees.
func (o *options) sameBundle(ctx context.Context, c *comm.Comm, own error, dir string, fields []field.Named) error {
	return o.look.Same(ctx, c, own, "the bundle "+dir, func() (onedir.Digest, error) { return identity(o.fs, dir, fields) })
}

// identity tells a bundle from others. What is written in checksums.txt tells the
// fields apart, and without that some of the content of those that are wanted. Its
// errors are those of the system: another node's view says nothing about the bundle of
// rank 0.
func identity(fsys vfs.FS, dir string, fields []field.Named) (onedir.Digest, error) {
	metadata, err := vfs.ReadFile(fsys, filepath.Join(dir, metadataFile), maxMetadataBytes)
	if err != nil {
		return onedir.Digest{}, err
	}
	sums, err := vfs.ReadFile(fsys, filepath.Join(dir, checksumsFile), maxChecksumsBytes)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return onedir.DigestOf(metadata, sums), err
	}
	var parts []onedir.Part
	for _, f := range fields {
		parts = append(parts, onedir.Part{Path: fieldFile(dir, f.ID), Length: -1})
	}
	cells, err := onedir.Sample(fsys, parts)
	return onedir.DigestOf(metadata, cells[:]), err
}

func fieldFile(dir, id string) string {
	return filepath.Join(dir, filepath.FromSlash(fieldPath(id)))
}

// inspect checks the structure of the bundle, and encodes what is small and what
// the others need to know of the rest.
func (l *load) inspect() ([]byte, error) {
	s, err := readStructure(l.o.fs, l.path)
	if err != nil {
		return nil, err
	}
	l.unlisted = s.info.Unlisted
	h := head{metadata: s.text, fields: s.info.Metadata.Fields, verifiable: s.info.Checksums}
	sums := s.byPath()
	if s.info.Sidecar {
		if h.sidecar, err = readSidecar(l.o.fs, l.path, sums); err != nil {
			return nil, err
		}
	}
	for _, f := range l.want.Fields {
		h.sums = append(h.sums, sums[fieldPath(f.ID)])
	}
	return h.encode(), nil
}

// head is what rank 0 reads and gives to the others.
type head struct {
	metadata   []byte
	fields     []string // ids in the bundle
	sidecar    []byte   // nil: none
	verifiable bool     // the bundle has checksums
	sums       []uint64 // of the wanted fields, then
}

func (h head) encode() []byte {
	var b []byte
	for _, n := range []int{len(h.metadata), len(h.fields), len(h.sidecar), len(h.sums)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = append(append(b, h.metadata...), h.sidecar...)
	for _, id := range h.fields {
		b = append(binary.AppendUvarint(b, uint64(len(id))), id...)
	}
	for _, sum := range h.sums {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	if h.verifiable {
		return append(b, 1)
	}
	return append(b, 0)
}

// decodeHead decodes what encode made.
func decodeHead(b []byte) head {
	number := func() int {
		n, width := binary.Uvarint(b)
		b = b[width:]
		return int(n)
	}
	next := func(n int) []byte {
		piece := b[:n]
		b = b[n:]
		return piece
	}
	metadata, fields, sidecar, sums := number(), number(), number(), number()
	h := head{metadata: next(metadata)}
	if sidecar > 0 { // JSON is never empty
		h.sidecar = next(sidecar)
	}
	for range fields {
		h.fields = append(h.fields, string(next(number())))
	}
	for range sums {
		h.sums = append(h.sums, binary.LittleEndian.Uint64(next(8)))
	}
	h.verifiable = b[0] == 1
	return h
}

// sums are the checksums of the wanted fields, nil if the bundle has none.
func (l *load) sums() map[string]uint64 {
	if !l.head.verifiable {
		return nil
	}
	sums := make(map[string]uint64, len(l.want.Fields))
	for i, f := range l.want.Fields {
		sums[f.ID] = l.head.sums[i]
	}
	return sums
}

func (l *load) matches() error {
	_, domain, err := commonLayout(l.want.Fields)
	if err != nil {
		return err
	}
	if err := cmp.Or(l.meta.Domain.SameGrid(domain), l.meta.Domain.SamePeriodicity(domain)); err != nil {
		return gridMismatch(err)
	}
	if l.want.Method != "" && l.want.Method != l.meta.MethodIdentity {
		return fmt.Errorf("%w: the method of the bundle is %q, the solver's %q", ErrMismatch, l.meta.MethodIdentity, l.want.Method)
	}
	saved := make(map[string]bool, len(l.meta.Fields))
	for _, id := range l.meta.Fields {
		saved[id] = true
	}
	for _, f := range l.want.Fields {
		if !saved[f.ID] {
			return fmt.Errorf("%w: %w: the solver wants %q, the bundle has %q", ErrMismatch, ErrNoField, f.ID, l.meta.Fields)
		}
	}
	if l.want.Accept != nil {
		return l.want.Accept(l.meta)
	}
	return nil
}

// gridMismatch makes an error of a difference that says which value is whose.
func gridMismatch(err error) error {
	if m, ok := errors.AsType[*grid.MismatchError](err); ok {
		return fmt.Errorf("%w: %s", ErrMismatch, m.Between("the bundle", "the solver"))
	}
	return fmt.Errorf("%w: %w", ErrMismatch, err)
}

// warnUnwanted names on rank 0 the fields that the bundle has and nobody wants: the
// solver may have forgotten one.
func (l *load) warnUnwanted() {
	if l.c.Rank() != 0 {
		return
	}
	wanted := make(map[string]bool, len(l.want.Fields))
	for _, f := range l.want.Fields {
		wanted[f.ID] = true
	}
	var unwanted []string
	for _, id := range l.meta.Fields {
		if !wanted[id] {
			unwanted = append(unwanted, id)
		}
	}
	if len(unwanted) > 0 {
		l.o.log.Warn("the bundle has fields that are not loaded", "bundle", l.dir, "fields", unwanted)
	}
}

func (l *load) jobs(sink func(i int) brick.Sink) []brick.ReadJob {
	jobs := make([]brick.ReadJob, len(l.want.Fields))
	for i, f := range l.want.Fields {
		jobs[i] = brick.ReadJob{
			Name: "field " + strconv.Quote(f.ID),
			Path: fieldFile(l.path, f.ID),
			Sink: sink(i),
		}
	}
	return jobs
}

// verify compares the checksums of what was read with the recorded ones. Every
// rank has the same numbers, so every rank comes to the same verdict.
func (l *load) verify(crcs []uint64) error {
	if !l.head.verifiable {
		return nil
	}
	for i, f := range l.want.Fields {
		if err := checkSum(l.path, fieldPath(f.ID), crcs[i], l.head.sums[i]); err != nil {
			return err
		}
	}
	return nil
}

// readThenCommit reads all fields into one copy of the owned cells, and changes
// the fields when all ranks have everything and it is what was written.
func (l *load) readThenCommit(ctx context.Context, plan *brick.Plan) (err error) {
	crcs, err := plan.Read(onedir.Checked(ctx), l.jobs(func(i int) brick.Sink { return l.copies.sinks[i] }))
	if err != nil {
		return err
	}
	if err := l.verify(crcs); err != nil {
		return err
	}
	if err := l.c.Agree(ctx, l.copies.checked()); err != nil {
		return err
	}
	if err := l.apply(l.c.Watched(ctx)); err != nil {
		return err
	}
	err = l.copies.commit()
	if err == nil {
		err = comm.Protect(l.upload)
	}
	return l.undefined(ctx, err)
}

// readInPlace lets the fields take what is read at once. They check by themselves
// that they can, before they change anything.
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
	crcs, err := plan.Read(onedir.Checked(ctx), l.jobs(func(i int) brick.Sink { return sinks[i] }))
	if err == nil {
		err = l.verify(crcs)
	}
	if err == nil {
		err = comm.Protect(l.upload)
	}
	if err := l.undefined(ctx, err); err != nil {
		return err
	}
	if err := l.apply(l.c.Watched(ctx)); err != nil {
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
