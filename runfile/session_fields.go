package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A place tells where in a file the cells of fields are at one time.
type place struct {
	Path   string
	Fields []fieldPlace
}

// A fieldPlace is where one field is. Without runs only HDF5 knows.
type fieldPlace struct {
	Name   string
	Runs   []planeRun
	Planes int      // of a chunk, which has a checksum; 0 where that isn't known
	Sums   []uint64 // of the chunks, if the file has them
}

// A planeRun is z planes of a field, from Low up to, not including, High, that lie one
// after the other in the file.
type planeRun struct {
	Low, High int
	Offset    int64
}

// reserve makes room for a field's cells at one more time than the dataset has, and
// notes where it is.
func (p *place) reserve(f *h5.File, u *Unknown, have int, o *options) error {
	path := h5.Join("unknowns", u.Name)
	var err error
	if have == 0 {
		_, err = createField(f, u, 1, o)
	} else {
		err = f.Extend(path, have+1)
	}
	if err != nil {
		return err
	}
	return p.locate(f, u, have)
}

// locate notes where the file has a field's cells at one time.
func (p *place) locate(f *h5.File, u *Unknown, state int) error {
	path := h5.Join("unknowns", u.Name)
	pieces, err := f.Pieces(path, state, 1)
	if err != nil {
		return err
	}
	runs := planeRuns(pieces, u.Domain)
	if runs == nil {
		return in(f.Name(), path, ErrMismatch, "its chunks are not planes of the field")
	}
	p.Fields = append(p.Fields, fieldPlace{Name: u.Name, Runs: runs, Planes: pieces[0].Count[1]})
	return nil
}

// planeRuns puts the pieces of one time that adjoin in the file together. It gives nil
// where they are no whole planes.
func planeRuns(pieces []h5.Piece, d grid.Domain) []planeRun {
	plane := int64(d.Size[0]) * int64(d.Size[1]) * 8
	var runs []planeRun
	z := 0
	for _, p := range pieces {
		if p.Start[1] != z || p.Count[2] != d.Size[1] || p.Count[3] != d.Size[0] {
			return nil
		}
		if n := len(runs); n > 0 && runs[n-1].Offset+int64(z-runs[n-1].Low)*plane == p.Offset {
			runs[n-1].High += p.Count[1]
		} else {
			runs = append(runs, planeRun{z, z + p.Count[1], p.Offset})
		}
		z += p.Count[1]
	}
	if z != d.Size[2] {
		return nil
	}
	return runs
}

// needsField tells whether files of the run hold a field.
func (c *Config) needsField(u *Unknown) bool {
	return u.Kind == Field && (len(c.saveTimes()) > 0 || c.Bundle == nil && !c.Checkpoint.Off)
}

// field is the caller's field of an unknown, if its cells can be those of the unknown.
func (c *Config) field(u *Unknown) (field.Any, error) {
	i := slices.IndexFunc(c.Fields, func(f field.Named) bool { return f.ID == u.Name })
	if i < 0 {
		return nil, fmt.Errorf("%w: field %q is not in Fields", ErrInput, u.Name)
	}
	f := c.Fields[i].Field
	if f == nil {
		return nil, fmt.Errorf("%w: field %q is nil", ErrInput, u.Name)
	}
	if m, ok := errors.AsType[*grid.MismatchError](f.Domain().SameGrid(u.Domain)); ok {
		return nil, fmt.Errorf("%w: field %q: %s", ErrInput, u.Name, m.Between("the field", "the layout"))
	}
	if f.Kind() == field.Complex128 {
		return nil, fmt.Errorf("%w: field %q: %w: it is %v, files of runs hold real numbers", ErrInput, u.Name, errors.ErrUnsupported, f.Kind())
	}
	return f, nil
}

// fieldBricks moves the cells of the caller's fields to and from files, on all ranks
// together.
type fieldBricks struct {
	c     *comm.Comm
	cfg   *Config
	fsys  vfs.FS
	known map[string]*knownField
	boxes [][]grid.Box // of all ranks, for each way in which fields are cut
	plans map[planKey]*brick.Plan
}

// A knownField is a field of the caller that all ranks have looked at.
type knownField struct {
	field  field.Any
	domain grid.Domain
	kind   field.Kind
	cut    int  // number of the way in which it is cut
	narrow bool // some rank has it as float32
}

// A planKey is what the plans of bricks depend on: how the field is cut, the planes, and
// how many of them have a checksum.
type planKey struct{ cut, low, high, planes int }

// mostPlans bounds the memory of plans: there are many where chunks lie apart.
const mostPlans = 8

func newFieldBricks(c *comm.Comm, cfg *Config, fsys vfs.FS) *fieldBricks {
	return &fieldBricks{c: c, cfg: cfg, fsys: fsys, known: map[string]*knownField{}, plans: map[planKey]*brick.Plan{}}
}

// know makes sure of fields that are wanted: on every rank the caller has them, and
// their boxes make up the domain. It is collective.
func (b *fieldBricks) know(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return b.known[name] != nil })
	if len(names) == 0 {
		return nil
	}
	type part struct {
		Box    grid.Box
		Narrow bool
	}
	var own []part
	var fields []field.Any
	err := comm.Protect(func() error {
		for _, name := range names {
			f, err := b.cfg.field(b.cfg.Layout.Unknown(name))
			if err != nil {
				return err
			}
			fields = append(fields, f)
			own = append(own, part{f.Box(), f.Kind() == field.Float32})
		}
		return nil
	})
	text, jerr := json.Marshal(own)
	if err == nil {
		err = jerr
	}
	if err := b.c.Agree(ctx, err); err != nil {
		return err
	}
	texts, err := b.c.AllGather(ctx, text)
	if err != nil {
		return err
	}
	all := make([][]part, len(texts))
	for r, text := range texts {
		err := json.Unmarshal(text, &all[r])
		if err == nil && len(all[r]) != len(names) {
			err = fmt.Errorf("%w: rank %d is asked for others", ErrOutOfStep, r)
		}
		if err != nil {
			return fmt.Errorf("fields of rank %d: %w", r, err)
		}
	}
	// All ranks judge the same parts.
	for i, name := range names {
		k := &knownField{field: fields[i], domain: b.cfg.Layout.Unknown(name).Domain, kind: fields[i].Kind()}
		boxes := make([]grid.Box, len(all))
		for r := range all {
			boxes[r] = all[r][i].Box
			k.narrow = k.narrow || all[r][i].Narrow
		}
		if err := grid.Tile(k.domain.Box(), boxes); err != nil {
			return fmt.Errorf("%w: the ranks' parts of field %q: %w", ErrInput, name, err)
		}
		k.cut = slices.IndexFunc(b.boxes, func(cut []grid.Box) bool { return slices.Equal(cut, boxes) })
		if k.cut < 0 {
			k.cut = len(b.boxes)
			b.boxes = append(b.boxes, boxes)
		}
		b.known[name] = k
	}
	return nil
}

// set puts other fields of the caller in the place of those that it has, or none of them.
func (b *fieldBricks) set(fields []field.Named) error {
	for i, f := range fields {
		isIt := func(other field.Named) bool { return other.ID == f.ID }
		switch {
		case !slices.ContainsFunc(b.cfg.Fields, isIt):
			return fmt.Errorf("field %q is not in Fields of the configuration", f.ID)
		case slices.ContainsFunc(fields[:i], isIt):
			return fmt.Errorf("field %q is there twice", f.ID)
		case f.Field == nil:
			return fmt.Errorf("field %q is nil", f.ID)
		}
		k := b.known[f.ID]
		if k == nil {
			continue // no file holds it
		}
		if err := f.Field.Domain().SameGrid(k.domain); err != nil {
			return fmt.Errorf("field %q: %w", f.ID, err)
		}
		if got, want := f.Field.Box(), b.boxes[k.cut][b.c.Rank()]; got != want {
			return fmt.Errorf("field %q has the cells %v, had %v at Open", f.ID, got, want)
		}
		if got := f.Field.Kind(); got != k.kind {
			return fmt.Errorf("field %q is %v, was %v at Open", f.ID, got, k.kind)
		}
	}
	for _, f := range fields {
		if k := b.known[f.ID]; k != nil {
			k.field = f.Field
		}
	}
	return nil
}

// A stretch is a run of planes of a field: what one job moves.
type stretch struct {
	name  string
	known *knownField
	first int64 // number of the first of this rank's cells in the planes
	place *fieldPlace
	planeRun
}

// each calls move with the plan for each kind of stretches that a place has.
func (b *fieldBricks) each(ctx context.Context, p *place, move func(plan *brick.Plan, list []stretch) error) error {
	var order []planKey
	lists := map[planKey][]stretch{}
	for i := range p.Fields {
		f := &p.Fields[i]
		k := b.known[f.Name]
		for _, run := range f.Runs {
			key := planKey{k.cut, run.Low, run.High, f.Planes}
			if lists[key] == nil {
				order = append(order, key)
			}
			_, first := b.part(k.cut, run)
			lists[key] = append(lists[key], stretch{f.Name, k, first, f, run})
		}
	}
	for _, key := range order {
		plan, err := b.plan(ctx, key, lists[key][0])
		if err != nil {
			return err
		}
		if err := move(plan, lists[key]); err != nil {
			return err
		}
	}
	return nil
}

// part is this rank's box of some planes, in an array that these planes are, and the
// number of its first cell in the rank's box of the field.
func (b *fieldBricks) part(cut int, run planeRun) (grid.Box, int64) {
	box := b.boxes[cut][b.c.Rank()]
	low, high := max(box.Low[2], run.Low), min(box.High()[2], run.High)
	if box.Empty() || low >= high {
		return grid.Box{}, 0
	}
	first := int64(low-box.Low[2]) * int64(box.Size[0]) * int64(box.Size[1])
	box.Low[2], box.Size[2] = low-run.Low, high-low
	return box, first
}

func (b *fieldBricks) plan(ctx context.Context, key planKey, s stretch) (*brick.Plan, error) {
	if p := b.plans[key]; p != nil {
		return p, nil
	}
	if len(b.plans) == mostPlans {
		b.close()
	}
	box, _ := b.part(key.cut, s.planeRun)
	size := s.known.domain.Size
	size[2] = key.high - key.low
	opts := []brick.Option{brick.Filesystem(b.fsys)}
	if key.planes > 0 {
		opts = append(opts, brick.Sections(key.planes))
	}
	p, err := brick.NewPlan(ctx, b.c, size, box, brick.Float64, opts...)
	if err == nil {
		b.plans[key] = p
	}
	return p, err
}

// write moves the cells of fields to the place that rank 0 has, as they are now, and
// counts those that are NaN or infinite. It also returns the checksums of the chunks of
// each field.
func (b *fieldBricks) write(ctx context.Context, from *place) (counts map[string]int64, sums map[string][]uint64, err error) {
	var p place
	if err := b.share(ctx, from, &p); err != nil {
		return nil, nil, err
	}
	sources := map[string]pack.Source{}
	err = comm.Protect(func() error {
		for _, f := range p.Fields {
			var err error
			if sources[f.Name], err = b.known[f.Name].field.Source(); err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
		}
		return nil
	})
	if err := b.c.Agree(ctx, err); err != nil {
		return nil, nil, err
	}
	counts, sums = map[string]int64{}, map[string][]uint64{}
	err = b.each(ctx, &p, func(plan *brick.Plan, list []stretch) error {
		var jobs []brick.WriteJob
		for _, s := range list {
			source := sources[s.name]
			if s.first != 0 {
				source = laterSource{source, s.first}
			}
			jobs = append(jobs, brick.WriteJob{Name: fmt.Sprintf("field %q", s.name), Path: p.Path, Source: source, Within: true, Offset: s.Offset})
		}
		found, err := plan.Write(onedir.Checked(ctx), jobs)
		if err != nil {
			return err
		}
		sections := plan.Sections()
		for i, s := range list {
			counts[s.name] += found[i].NonFinite
			if sums[s.name] == nil {
				all := chunkSum{planes: s.place.Planes, depth: s.known.domain.Size[2]}
				sums[s.name] = make([]uint64, all.chunks())
			}
			copy(sums[s.name][s.Low/s.place.Planes:], sections[i])
		}
		return nil
	})
	return counts, sums, err
}

// share gives what rank 0 has to all ranks.
func (b *fieldBricks) share(ctx context.Context, from, to any) error {
	var text []byte
	var err error
	if b.c.Rank() == 0 {
		if text, err = json.Marshal(from); err != nil {
			text = nil
		}
	}
	if err := b.c.Agree(ctx, err); err != nil {
		return err
	}
	if text, err = b.c.Broadcast(ctx, 0, text); err != nil {
		return err
	}
	return b.c.Agree(ctx, json.Unmarshal(text, to))
}

// sync puts what the ranks wrote to the place that rank 0 has on the disk.
func (b *fieldBricks) sync(ctx context.Context, from *place) error {
	var p place
	if err := b.share(ctx, from, &p); err != nil {
		return err
	}
	return brick.Durable(onedir.Checked(ctx), b.c, b.fsys, []string{p.Path})
}

// close frees what the ranks moved cells with.
func (b *fieldBricks) close() {
	for _, p := range b.plans {
		p.Close()
	}
	clear(b.plans)
}

// laterSource is a source from one of its cells on.
type laterSource struct {
	pack.Source
	first int64
}

func (s laterSource) ReadCells(dst []byte, first int64) error {
	return s.Source.ReadCells(dst, s.first+first)
}

// laterSink is a sink from one of its cells on.
type laterSink struct {
	pack.Sink
	first int64
}

func (s laterSink) WriteCells(src []byte, first int64) error {
	return s.Sink.WriteCells(src, s.first+first)
}

func (s laterSink) CheckCells(src []byte, first int64) error {
	return s.Sink.CheckCells(src, s.first+first)
}

func (s laterSink) Flush() error {
	if f, ok := s.Sink.(pack.FlushSink); ok {
		return f.Flush()
	}
	return nil
}

// storedFields tells where a resumed run finds the cells of its fields: those of one
// saved state of a file.
type storedFields struct {
	Place place
	Index int
	Time  float64
	// Damaged says why the checksums of the cells can't be compared, empty where they can.
	Damaged string

	file fs.FileInfo // of which that was found out, on rank 0
}

// locateFields looks where a state has the cells of fields that no bundle holds.
func locateFields(ctx context.Context, l *Layout, from *Checkpoint) (*storedFields, error) {
	s := &storedFields{Place: place{Path: from.origin.path}, Index: from.origin.index, Time: from.Time}
	for i := range l.Unknowns {
		if u := &l.Unknowns[i]; u.Kind == Field && from.Bundles[u.Name] == "" {
			s.Place.Fields = append(s.Place.Fields, fieldPlace{Name: u.Name})
		}
	}
	if s.Place.Fields == nil {
		return s, nil
	}
	var err error
	if s.file, err = os.Stat(s.Place.Path); err != nil {
		return nil, err
	}
	return s, withFile(ctx, s.Place.Path, func(f *h5.File, r root) error {
		if err := checkTime(f, s.Index, s.Time); err != nil {
			return err
		}
		if !r.ours {
			return nil
		}
		for i := range s.Place.Fields {
			p := &s.Place.Fields[i]
			path := h5.Join("unknowns", p.Name)
			info, err := f.Stat(path)
			if err != nil {
				return err
			}
			// Others may have given the field another form, such as another order of
			// bytes: what is not as our writer makes it is left to HDF5.
			if !simple(info) || !info.AsMemory || info.Chunk == nil || len(info.Shape) != 4 || info.Max[0] != h5.Unlimited || info.Chunk[0] != 1 {
				continue
			}
			pieces, err := f.Pieces(path, s.Index, 1)
			if err != nil {
				return err
			}
			u := l.Unknown(p.Name)
			if p.Runs = planeRuns(pieces, u.Domain); p.Runs == nil {
				continue
			}
			p.Planes = pieces[0].Count[1]
			sums, planes, err := r.sums.chunksOf(u, s.Index)
			if errors.Is(err, ErrChecksum) {
				s.Damaged = err.Error() // for all ranks
				return nil
			}
			if err != nil {
				return err
			}
			if planes == p.Planes {
				p.Sums = sums
			}
		}
		return nil
	})
}

// unchanged makes sure that the file is the one that was looked at.
func (s *storedFields) unchanged() error {
	now, err := os.Stat(s.Place.Path)
	if err != nil {
		return err
	}
	if !os.SameFile(now, s.file) || now.Size() != s.file.Size() || !now.ModTime().Equal(s.file.ModTime()) {
		return in(s.Place.Path, "", ErrMismatch, "the file has changed while fields were read")
	}
	return nil
}

// read gives the caller's fields the cells that rank 0 has located. Nothing changes
// unless all of them fit.
func (b *fieldBricks) read(ctx context.Context, from *storedFields) error {
	var s storedFields
	if err := b.share(ctx, from, &s); err != nil {
		return err
	}
	if len(s.Place.Fields) == 0 {
		return nil
	}
	if s.Damaged != "" {
		return fmt.Errorf("%w: %s", ErrChecksum, s.Damaged)
	}
	var names []string
	narrow := false
	for _, f := range s.Place.Fields {
		names = append(names, f.Name)
	}
	if err := b.know(ctx, names); err != nil {
		return err
	}
	sinks := map[string]pack.Sink{}
	err := comm.Protect(func() error {
		for _, name := range names {
			var err error
			if sinks[name], err = b.known[name].field.Sink(); err != nil {
				return fmt.Errorf("field %q: %w", name, err)
			}
		}
		return nil
	})
	// The file may be in any directory.
	err = onedir.From(ctx).Same(ctx, b.c, err, "the file "+s.Place.Path, func() (onedir.Digest, error) { return b.identity(ctx, &s) })
	if err != nil {
		return err
	}
	for _, name := range names {
		narrow = narrow || b.known[name].narrow
	}
	if narrow { // only numbers that become narrower may not fit
		checks := map[string]pack.Sink{}
		for name, sink := range sinks {
			checks[name] = checkSink{sink}
		}
		if err := b.readInto(ctx, &s, checks); err != nil {
			return err
		}
	}
	// Before anything changes it is known that all of it is the state that was asked for.
	if err := b.c.OnRoot(ctx, nil, waiting.Step(ctx, "look at", s.Place.Path, func() error { return from.unchanged() })); err != nil {
		return err
	}
	if err := b.readInto(ctx, &s, sinks); err != nil {
		return err
	}
	return b.c.OnRoot(ctx, comm.Protect(func() error {
		for _, name := range names {
			if err := b.known[name].field.Upload(); err != nil {
				return fmt.Errorf("field %q: %w", name, err)
			}
		}
		return nil
	}), waiting.Step(ctx, "look at", s.Place.Path, func() error { return from.unchanged() }))
}

// identity tells the file of stored fields from others: its session, if it is of one,
// saved one state for each time, and beside that its size and some of its content count.
func (b *fieldBricks) identity(ctx context.Context, s *storedFields) (d onedir.Digest, err error) {
	if d, err = onedir.Sample(b.fsys, []onedir.Part{{Path: s.Place.Path, Length: -1}}); err != nil {
		return d, err
	}
	return d, withFile(ctx, s.Place.Path, func(f *h5.File, _ root) error {
		time := make([]float64, 1)
		if err := h5.ReadSlab(f, "time", time, []int{s.Index}, []int{1}); err != nil {
			return err
		}
		session, err := readSession(f)
		d = onedir.DigestOf(d[:], pack.Bytes(time), []byte(session))
		return err
	})
}

// checkSink only checks cells.
type checkSink struct{ pack.Sink }

func (s checkSink) WriteCells(src []byte, first int64) error { return s.CheckCells(src, first) }

// readInto reads all fields of a place.
func (b *fieldBricks) readInto(ctx context.Context, s *storedFields, sinks map[string]pack.Sink) error {
	err := b.each(ctx, &s.Place, func(plan *brick.Plan, list []stretch) error {
		var jobs []brick.ReadJob
		for _, t := range list {
			sink := sinks[t.name]
			if t.first != 0 {
				sink = laterSink{sink, t.first}
			}
			jobs = append(jobs, brick.ReadJob{Name: fmt.Sprintf("field %q", t.name), Path: s.Place.Path, Sink: sink, Within: true, Offset: t.Offset})
		}
		if _, err := plan.Read(onedir.Checked(ctx), jobs); err != nil {
			return err
		}
		// All ranks have the same.
		for i, sections := range plan.Sections() {
			t := list[i]
			for n, is := range sections {
				chunk := t.Low/t.place.Planes + n
				if t.place.Sums != nil && t.place.Sums[chunk] != is {
					return sumsDiffer(s.Place.Path, h5.Join("unknowns", t.name), partOfField(s.Index, chunk), t.place.Sums[chunk], is)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.Place.Fields, func(f fieldPlace) bool { return f.Runs == nil }) {
		return nil
	}
	return b.c.Agree(ctx, comm.Protect(func() error {
		for _, f := range s.Place.Fields {
			if f.Runs != nil {
				continue
			}
			read := func() error { return b.readByHDF5(ctx, s, f.Name, sinks[f.Name]) }
			if err := waiting.Step(ctx, "read field", f.Name, read)(); err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
		}
		return nil
	}))
}

// readByHDF5 reads this rank's box of a field, some planes at a time.
func (b *fieldBricks) readByHDF5(ctx context.Context, s *storedFields, name string, sink pack.Sink) error {
	k := b.known[name]
	box := b.boxes[k.cut][b.c.Rank()]
	if box.Empty() {
		return nil
	}
	plane := box.Size[0] * box.Size[1]
	step := max(1, min(box.Size[2], transferBytes/8/plane))
	buffer := make([]float64, step*plane)
	reading := newFieldReading()
	for z := 0; z < box.Size[2]; z += step {
		part := box
		part.Low[2], part.Size[2] = box.Low[2]+z, min(step, box.Size[2]-z)
		cells := buffer[:part.Size[2]*plane]
		if err := readField(ctx, &b.cfg.Layout, origin{index: s.Index, path: s.Place.Path}, reading, s.Time, name, part, cells); err != nil {
			return err
		}
		if err := sink.WriteCells(pack.Bytes(cells), int64(z)*int64(plane)); err != nil {
			return err
		}
	}
	if f, ok := sink.(pack.FlushSink); ok {
		return f.Flush()
	}
	return nil
}
