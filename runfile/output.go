package runfile

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/record"
)

const (
	// transferBytes is how much is moved at once between memory and a dataset. What is
	// directBytes long in one piece needs no buffer.
	transferBytes = 8 << 20
	directBytes   = 1 << 20
	// chunkBytes bounds the chunks of datasets, unless one plane of a field is larger.
	chunkBytes = 1 << 30
	// largestChunk is what HDF5 allows less than.
	largestChunk = 1 << 32
	// growBytes is about the size of the chunks of datasets that grow: a chunk is the
	// least that is written when a row is added.
	growBytes = 4 << 10
)

// WriteOutput writes a solution to a file of any name: in place, or with [Atomic] so
// that a failure leaves the path as it was. When it returns, the file is on the disk.
//
// The files, version, origins and stored units of a solution that was read play no
// part, except that it has the values of its fields unless [Fields] has them. What only
// other writers have in their settings and statistics is written as it was read, and their
// hashes are marked as theirs.
func WriteOutput(ctx context.Context, path string, s *Solution, opts ...Option) error {
	o, err := newOptions(opts)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("write output %s: %w", path, err)
	}
	if o.fields == nil && len(s.origins) == len(s.Times) {
		o.fields = s.ReadField
	}
	write := func(f *h5.File) error { return writeOutput(ctx, f, s, o) }
	if o.atomic {
		err = writeAtomically(o, path, write)
	} else {
		err = writeFile(path, write)
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// check tells whether a solution can be written.
func (s *Solution) check() error {
	if err := s.Layout.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	if err := s.carried.check(s.Settings); err != nil {
		return fmt.Errorf("%w: settings: %w", ErrInput, err)
	}
	if err := checkTimes(s.Times); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	if len(s.States) != len(s.Times) {
		return fmt.Errorf("%w: %d states at %d times", ErrInput, len(s.States), len(s.Times))
	}
	size := s.Layout.Size()
	for i, state := range s.States {
		if len(state) != size {
			return fmt.Errorf("%w: state %d has %d numbers, the layout has %d", ErrInput, i, len(state), size)
		}
	}
	seen := map[string]bool{}
	for _, u := range s.Updates {
		if err := checkUpdateName(u.Name, seen); err != nil {
			return err
		}
		if len(u.States) != len(s.Times) {
			return fmt.Errorf("%w: interval update %q has %d states at %d times", ErrInput, u.Name, len(u.States), len(s.Times))
		}
		for i, state := range u.States {
			if len(state) != len(u.States[0]) {
				return fmt.Errorf("%w: state %d of interval update %q has %d numbers, the first has %d", ErrInput, i, u.Name, len(state), len(u.States[0]))
			}
		}
	}
	if err := s.Statistics.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

func checkUpdateName(name string, seen map[string]bool) error {
	if err := record.CheckKey(name); err != nil {
		return fmt.Errorf("%w: interval update: %w", ErrInput, err)
	}
	if seen[name] {
		return fmt.Errorf("%w: interval update %q is there twice", ErrInput, name)
	}
	seen[name] = true
	return nil
}

func writeOutput(ctx context.Context, f *h5.File, s *Solution, o *options) error {
	if err := writeRoot(ctx, f, s, o, nil); err != nil {
		return err
	}
	if err := f.CreateGroup(statisticsGroup); err != nil {
		return err
	}
	if err := writeStatistics(f, &s.Statistics, 0, 0, o); err != nil {
		return err
	}
	if err := f.CreateGroup(updatesGroup); err != nil {
		return err
	}
	if err := writeUpdates(ctx, f, s.Updates, 0, o); err != nil {
		return err
	}
	if err := writeStateSums(f, s, 0, o); err != nil {
		return err
	}
	if err := writeStatisticSums(f, &s.Statistics, 0, 0, 0, o); err != nil {
		return err
	}
	records, err := summedRoot(s.Settings, &s.Layout)
	if err != nil {
		return err
	}
	return writeRecordSums(f, records)
}

// The groups that output files alone have.
const (
	statisticsGroup = "solver_statistics"
	updatesGroup    = "update_states"
)

// writeUpdates writes states of interval updates behind those that the file has.
func writeUpdates(ctx context.Context, f *h5.File, updates []UpdateStates, have int, o *options) error {
	for _, u := range updates {
		if len(u.States) == 0 {
			continue
		}
		p := dataset{path: h5.Join(updatesGroup, u.Name), to: len(u.States[0]), dims: []int{len(u.States[0])}}
		if err := p.write(ctx, f, u.States, have, o); err != nil {
			return err
		}
	}
	return nil
}

// writeRoot writes what output files and checkpoints have in common. Fields that are
// elsewhere are left out. Of the checksums it writes those of fields whose values it has.
func writeRoot(ctx context.Context, f *h5.File, s *Solution, o *options, elsewhere map[string]string) error {
	if err := writeRootAttributes(f); err != nil {
		return err
	}
	if err := beginSums(f); err != nil {
		return err
	}
	if err := s.carried.writeSettings(f, s.Settings); err != nil {
		return err
	}
	if err := writeLayout(f, &s.Layout); err != nil {
		return err
	}
	if len(s.Times) == 0 {
		return nil
	}
	if err := writeStates(ctx, f, s, 0, o); err != nil {
		return err
	}
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		if _, ok := elsewhere[u.Name]; ok || u.Kind != Field {
			continue
		}
		if o.reserved != nil {
			if err := o.reserved.reserve(f, u, 0, o); err != nil {
				return err
			}
			continue
		}
		if err := writeField(ctx, f, u, len(s.Times), o); err != nil {
			return err
		}
	}
	return writeScales(ctx, f, &s.Layout, elsewhere, o)
}

// writeStates writes times and states, but no fields, behind those that the file has.
func writeStates(ctx context.Context, f *h5.File, s *Solution, have int, o *options) error {
	if err := writeGrowing(f, "time", s.Times, have, o); err != nil {
		return err
	}
	if have == 0 {
		if err := f.SetAttributeString("time", unitAttribute, "s"); err != nil {
			return err
		}
		if err := needGroup(f, "unknowns"); err != nil {
			return err
		}
	}
	from := 0
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		if u.Kind == Field {
			continue
		}
		if err := writeUnknown(ctx, f, &s.Layout, u, from, s.States, have, o); err != nil {
			return err
		}
		from += s.Layout.length(u)
	}
	return nil
}

// needGroup makes a group unless it is there.
func needGroup(f *h5.File, path string) error {
	there, err := f.Exists(path)
	if err != nil || there {
		return err
	}
	return f.CreateGroup(path)
}

// A dataset holds some numbers of the state vector at each saved time.
type dataset struct {
	path     string
	from, to int   // in the state vector
	dims     []int // without the time
}

// datasets returns those of an unknown that is no field. Its values lie in the state vector
// from a number on, which is [Layout.Range]'s: whoever goes through all unknowns counts
// himself, since that looks through all that come before.
func (l *Layout) datasets(u *Unknown, from int) []dataset {
	path := h5.Join("unknowns", u.Name)
	to := from + l.length(u)
	switch {
	case u.Kind == Scalar:
		return []dataset{{path, from, to, nil}}
	case u.Kind == Radial:
		return []dataset{{path, from, to, []int{cells(l.R), u.Components}}}
	case !u.perRadius():
		g := l.momentum(u, 0)
		return []dataset{{path, from, to, []int{cells(l.R), cells(g.Xi), cells(g.P)}}}
	}
	var list []dataset
	for r := range cells(l.R) {
		g, n := l.momentum(u, r), l.atRadius(u, r)
		list = append(list, dataset{h5.Join(path, "radius_"+strconv.Itoa(r+1)), from, from + n, []int{cells(g.Xi), cells(g.P)}})
		from += n
	}
	return list
}

// perRadius tells whether a kinetic unknown has a dataset for each radius.
func (u *Unknown) perRadius() bool { return u.Kind == Kinetic && len(u.Grids) > 1 }

func writeUnknown(ctx context.Context, f *h5.File, l *Layout, u *Unknown, from int, states [][]float64, have int, o *options) error {
	if u.perRadius() && have == 0 {
		path := h5.Join("unknowns", u.Name)
		if err := f.CreateGroup(path); err != nil {
			return err
		}
		if err := f.SetAttributeString(path, unitAttribute, u.Unit); err != nil {
			return err
		}
	}
	for _, d := range l.datasets(u, from) {
		if err := d.write(ctx, f, states, have, o); err != nil {
			return err
		}
		if have > 0 {
			continue
		}
		if err := f.SetAttributeString(d.path, unitAttribute, u.Unit); err != nil {
			return err
		}
	}
	return nil
}

// growing is how a dataset is stored, whose rows along the first axis have the dims
// that follow.
func growing(rows int, dims []int, o *options) h5.Layout {
	l := h5.Layout{Shape: slices.Concat([]int{rows}, dims)}
	if !o.extendible {
		return l
	}
	l.Extendible = true
	l.Chunk = slices.Clone(l.Shape)
	l.Chunk[0] = 1
	size := 8
	for _, n := range dims {
		size *= n
	}
	for axis := 1; axis < len(l.Chunk) && size > o.chunkBytes; axis++ {
		size /= l.Chunk[axis]
		l.Chunk[axis] = max(1, min(l.Chunk[axis], o.chunkBytes/max(size, 1)))
		size *= l.Chunk[axis]
	}
	if size > 0 {
		l.Chunk[0] = max(1, growBytes/size)
	}
	return l
}

func (d dataset) size() int { return d.to - d.from }

// write writes what the dataset has of each state behind the rows that the file has of
// it. Without any, it makes the dataset.
func (d dataset) write(ctx context.Context, f *h5.File, states [][]float64, have int, o *options) error {
	if d.size() == 0 { // such a dataset can't grow
		if have > 0 {
			if err := f.Unlink(d.path); err != nil {
				return err
			}
		}
		return h5.Write(f, d.path, []float64(nil), have+len(states), 0)
	}
	rows := d.rows(len(states))
	if have > 0 && rows >= len(states) {
		if err := ctx.Err(); err != nil {
			return err
		}
		o.count(len(states) * d.size() * 8)
		return h5.Append(f, d.path, d.together(states), have, d.dims...)
	}
	if err := need[float64](f, d.path, have, len(states), d.dims, o); err != nil {
		return err
	}
	var buffer []float64
	for first := 0; first < len(states); first += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		last := min(first+rows, len(states))
		from := states[first][d.from:d.to]
		if rows > 1 {
			buffer = buffer[:0]
			for _, state := range states[first:last] {
				buffer = append(buffer, state[d.from:d.to]...)
			}
			from = buffer
		}
		if err := h5.WriteSlab(f, d.path, from, d.start(have+first), d.count(last-first)); err != nil {
			return err
		}
		o.count(len(from) * 8)
	}
	return nil
}

// rows is how many of some rows are moved at once, by way of a buffer unless it is one.
func (d dataset) rows(of int) int {
	if d.size()*8 >= directBytes {
		return 1
	}
	return max(1, min(of, transferBytes/8/max(d.size(), 1)))
}

// together is what the dataset has of some states, one after the other.
func (d dataset) together(states [][]float64) []float64 {
	if len(states) == 1 {
		return states[0][d.from:d.to]
	}
	all := make([]float64, 0, len(states)*d.size())
	for _, state := range states {
		all = append(all, state[d.from:d.to]...)
	}
	return all
}

// need makes room for more rows of a dataset behind those that the file has; without
// any, the dataset.
func need[T h5.Element](f *h5.File, path string, have, more int, dims []int, o *options) error {
	if have == 0 {
		return h5.CreateDataset[T](f, path, growing(more, dims, o))
	}
	return f.Extend(path, have+more)
}

// start is where row first of the dataset begins.
func (d dataset) start(first int) []int {
	s := make([]int, 1+len(d.dims))
	s[0] = first
	return s
}

func (d dataset) count(rows int) []int { return slices.Concat([]int{rows}, d.dims) }

// writeGrowing writes numbers behind those that a dataset with one axis has; without
// any, it makes the dataset.
func writeGrowing[T h5.Element](f *h5.File, path string, v []T, have int, o *options) error {
	o.count(len(v) * 8)
	if !o.extendible {
		return h5.Write(f, path, v, len(v))
	}
	if have > 0 {
		return h5.Append(f, path, v, have)
	}
	if err := need[T](f, path, 0, len(v), nil, o); err != nil {
		return err
	}
	return h5.WriteSlab(f, path, v, []int{0}, []int{len(v)})
}

// writeTexts is writeGrowing for strings. What grows has strings of one length, for those of
// any length take 4 KiB for each time that the file is opened. A longer one makes all of them
// be written anew.
func writeTexts(f *h5.File, path string, v []string, have int, o *options) error {
	o.count(len(v) * 8)
	if !o.extendible {
		return f.WriteStrings(path, v, h5.Fixed)
	}
	if have == 0 {
		return createTexts(f, path, v)
	}
	info, err := f.Stat(path)
	if err != nil {
		return err
	}
	if info.Variable {
		return f.AppendStrings(path, v)
	}
	if longest(v) <= info.Length {
		return f.AppendFixedStrings(path, v)
	}
	there, err := f.ReadStrings(path)
	if err != nil {
		return err
	}
	if err := f.Unlink(path); err != nil {
		return err
	}
	return createTexts(f, path, slices.Concat(there, v))
}

const (
	// leastTextBytes is the length of strings in a list that grows. It doubles until the
	// longest fits, so that few writings anew are enough.
	leastTextBytes = 16
	// mostTextBytes is up to which length strings have one length: a list with a longer one
	// has strings of any length, for every entry would take as much.
	mostTextBytes = 256
)

func createTexts(f *h5.File, path string, v []string) error {
	length := leastTextBytes
	for length < longest(v) && length <= mostTextBytes {
		length *= 2
	}
	if length > mostTextBytes {
		return f.CreateStrings(path, v)
	}
	return f.CreateFixedStrings(path, v, length)
}

func longest(v []string) int {
	n := 0
	for _, s := range v {
		n = max(n, len(s))
	}
	return n
}

// shape of a field in C order, without the time.
func fieldShape(d grid.Domain) []int { return []int{d.Size[2], d.Size[1], d.Size[0]} }

// planes is how many z planes of a field a chunk has: as many as fit, in chunks of
// about the same size.
func planes(d grid.Domain, chunkBytes int) (int, error) {
	plane := int64(d.Size[0]) * int64(d.Size[1]) * 8
	if plane > int64(chunkBytes) {
		if plane >= largestChunk {
			return 0, fmt.Errorf("%w: a plane of %d x %d cells is as large as %d bytes, which a chunk of HDF5 must not be", ErrInput, d.Size[0], d.Size[1], int64(largestChunk))
		}
		return 1, nil
	}
	most := chunkBytes / int(plane)
	chunks := (d.Size[2] + most - 1) / most
	return (d.Size[2] + chunks - 1) / chunks, nil
}

// fieldLayout is how a field is stored: the chunks have their places in the file from
// the start, so that others than HDF5 can write them.
func fieldLayout(d grid.Domain, states int, o *options) (h5.Layout, error) {
	n, err := planes(d, o.chunkBytes)
	if err != nil {
		return h5.Layout{}, err
	}
	return h5.Layout{
		Shape:      slices.Concat([]int{states}, fieldShape(d)),
		Chunk:      []int{1, n, d.Size[1], d.Size[0]},
		Extendible: true,
		Early:      true,
	}, nil
}

// createField makes the dataset of a field with room for some states.
func createField(f *h5.File, u *Unknown, states int, o *options) (h5.Layout, error) {
	path := h5.Join("unknowns", u.Name)
	layout, err := fieldLayout(u.Domain, states, o)
	if err != nil {
		return layout, fmt.Errorf("field %q: %w", u.Name, err)
	}
	if err := h5.CreateDataset[float64](f, path, layout); err != nil {
		return layout, err
	}
	return layout, f.SetAttributeString(path, unitAttribute, u.Unit)
}

func writeField(ctx context.Context, f *h5.File, u *Unknown, states int, o *options) error {
	path := h5.Join("unknowns", u.Name)
	if o.fields == nil {
		return in(f.Name(), path, ErrInput, "nothing gives the values of the field")
	}
	layout, err := createField(f, u, states, o)
	if err != nil {
		return err
	}
	size := u.Domain.Size
	plane := size[0] * size[1]
	// No transfer crosses the end of a chunk.
	step := max(1, min(layout.Chunk[1], transferBytes/8/plane))
	buffer := make([]float64, step*plane)
	sums := make([][]uint64, states)
	for i := range states {
		sum := chunkSum{planes: layout.Chunk[1], depth: size[2]}
		for z := 0; z < size[2]; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(step, size[2]-z, layout.Chunk[1]-z%layout.Chunk[1])
			part := buffer[:n*plane]
			box := grid.Box{Low: [3]int{0, 0, z}, Size: [3]int{size[0], size[1], n}}
			if err := o.fields(ctx, u.Name, i, box, part); err != nil {
				return fmt.Errorf("field %q, saved state %d: %w", u.Name, i, err)
			}
			if err := h5.WriteSlab(f, path, part, []int{i, z, 0, 0}, []int{1, n, size[1], size[0]}); err != nil {
				return err
			}
			_ = sum.add(part, n, func(_ int, crc uint64) error {
				sums[i] = append(sums[i], crc)
				return nil
			})
			z += n
		}
	}
	return writeFieldSums(f, u.Name, sums, 0, o)
}

// ReadOutput returns the solution of an output file, or of the segments of one run in
// the order given, joined. It refuses checkpoints. The states of all files are in
// memory at once; fields stay in the files, for [Solution.ReadField].
//
// Segments that don't continue each other are an error that matches [ErrNotOneRun] and
// names the files. What is odd about them besides, such as states that are missing in
// between, is a warning, and so is a statistic of another writer that can't be part of the
// solution.
func ReadOutput(ctx context.Context, files []string, opts ...Option) (*Solution, error) {
	o, err := newOptions(opts)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%w: no file is named", ErrInput)
	}
	if err != nil {
		return nil, fmt.Errorf("read output: %w", err)
	}
	parts := make([]*Solution, len(files))
	for i, path := range files {
		if parts[i], err = readPart(ctx, path, o); err != nil {
			return nil, fmt.Errorf("read output: %w", err)
		}
	}
	s, err := join(parts, o.warn)
	if err != nil {
		return nil, fmt.Errorf("read output: %w", err)
	}
	return s, nil
}

// ReadRun returns the solution of the segments of a run that exist, joined; see
// [ReadOutput]. The error matches [fs.ErrNotExist] if there is none.
func ReadRun(ctx context.Context, dir, name string, opts ...Option) (*Solution, error) {
	o, err := newOptions(opts)
	var segments []Segment
	if err == nil {
		segments, err = segmentFiles(o.fsys, dir, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read output of run %q: %w", name, err)
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("read output of run %q: no segment in %s: %w", name, dir, fs.ErrNotExist)
	}
	files := make([]string, len(segments))
	for i, s := range segments {
		files[i] = s.File
	}
	return ReadOutput(ctx, files, opts...)
}

// readPart reads one output file.
func readPart(ctx context.Context, path string, o *options) (s *Solution, err error) {
	err = withFile(ctx, path, func(f *h5.File, r root) (err error) {
		if r.checkpoint {
			return in(path, "", ErrNotOutput, "it is a checkpoint")
		}
		s, err = readOutput(ctx, f, r, o)
		return err
	})
	return s, err
}

func readOutput(ctx context.Context, f *h5.File, r root, o *options) (*Solution, error) {
	s, err := readCommon(ctx, f, r, o)
	if err != nil {
		return nil, err
	}
	if err := s.readStates(ctx, f, r.sums, 0, len(s.Times), nil); err != nil {
		return nil, err
	}
	if s.Statistics, err = readStatistics(f, o.warn, r.sums); err != nil {
		return nil, err
	}
	if s.Updates, err = readUpdates(f, len(s.Times), r.sums); err != nil {
		return nil, err
	}
	return s, tellLeftOut(f, r, &s.Layout, o.warn)
}

// readCommon reads what output files and checkpoints have in common, but no state.
func readCommon(ctx context.Context, f *h5.File, r root, o *options) (*Solution, error) {
	s := &Solution{Files: []string{f.Name()}, Version: r.version}
	var err error
	if s.carried, err = readSettingsAndMore(f, r); err != nil {
		return nil, err
	}
	s.Settings = s.carried.settings
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, units, err := readLayout(f, o.warn, r.sums)
	if err != nil {
		return nil, err
	}
	s.Layout, s.units = *l, units
	has, err := f.Exists("time")
	if err != nil || !has {
		return s, err
	}
	if s.Times, err = readVector[float64](f, "time"); err != nil {
		return nil, err
	}
	if err := checkTimes(s.Times); err != nil {
		return nil, in(f.Name(), "time", ErrMismatch, "%v", err)
	}
	if err := r.sums.times(s.Times); err != nil {
		return nil, err
	}
	path, err := onedir.Abs(f.Name())
	if err != nil {
		return nil, err
	}
	s.reading = newFieldReading()
	for i := range s.Times {
		s.origins = append(s.origins, origin{f.Name(), i, path})
	}
	return s, nil
}

// readStates reads the states from number first on into the solution. Its fields are
// looked at, except those that are elsewhere.
func (s *Solution) readStates(ctx context.Context, f *h5.File, sums *storedSums, first, n int, elsewhere map[string]string) error {
	if len(s.Times) == 0 {
		return nil
	}
	var list []dataset
	from := 0
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		if u.Kind == Field {
			if _, ok := elsewhere[u.Name]; ok {
				continue
			}
			d := dataset{path: h5.Join("unknowns", u.Name), dims: fieldShape(u.Domain)}
			if _, err := d.stat(f, len(s.Times)); err != nil {
				return err
			}
			continue
		}
		own, err := datasetsIn(f, &s.Layout, u, from)
		if err != nil {
			return err
		}
		list = append(list, own...)
		from += s.Layout.length(u)
	}
	// What the file doesn't simply have is read first: memory for a state is reserved
	// when it is known that its numbers are there.
	size, err := f.Size()
	if err != nil {
		return err
	}
	left := size
	rows := make([][]float64, len(list))
	for i, d := range list {
		info, err := d.stat(f, len(s.Times))
		if err != nil {
			return err
		}
		if left -= info.Storage; left < 0 {
			return in(f.Name(), d.path, h5.ErrTooLarge, "the states take more than the %d bytes of the file", size)
		}
		if simple(info) {
			continue
		}
		all, _, err := h5.ReadAs[float64](f, d.path)
		if err != nil {
			return err
		}
		rows[i] = all[first*d.size() : (first+n)*d.size()]
	}
	s.States = make([][]float64, n)
	for k := range n {
		s.States[k] = make([]float64, s.Layout.Size())
	}
	for i, d := range list {
		if err := d.read(ctx, f, rows[i], first, s.States); err != nil {
			return err
		}
		for k, state := range s.States {
			if err := sums.state(d.path, first+k, state[d.from:d.to]); err != nil {
				return err
			}
		}
	}
	return nil
}

// datasetsIn gives the datasets of an unknown as the file has them: where there is one
// radius, one momentum grid may have been meant for all radii or for each.
func datasetsIn(f *h5.File, l *Layout, u *Unknown, from int) ([]dataset, error) {
	list := l.datasets(u, from)
	if u.Kind != Kinetic || len(list) != 1 || cells(l.R) != 1 {
		return list, nil
	}
	info, err := f.Stat(list[0].path)
	if err != nil {
		return nil, err
	}
	if info.Kind == h5.Group {
		list[0].path = h5.Join(list[0].path, "radius_1")
		list[0].dims = list[0].dims[1:]
	}
	return list, nil
}

// stat checks the shape of a dataset with a row for each of some times.
func (d dataset) stat(f *h5.File, times int) (h5.Info, error) {
	info, err := f.Stat(d.path)
	if err != nil {
		return info, err
	}
	if info.Kind != h5.Dataset {
		return info, in(f.Name(), d.path, h5.ErrKind, "a %v, not a dataset", info.Kind)
	}
	if want := d.count(times); !slices.Equal(info.Shape, want) {
		return info, in(f.Name(), d.path, ErrMismatch, "its shape is %v, that of the layout and the times %v", info.Shape, want)
	}
	return info, nil
}

// simple tells whether a file has all numbers of a dataset as they are in memory.
func simple(info h5.Info) bool {
	return info.Type == h5.Float64 && info.Filters == 0 && info.Storage/8 >= int64(info.Elements())
}

// read puts rows of the dataset, from number first on, into the states. They are read
// from the file unless they are given.
func (d dataset) read(ctx context.Context, f *h5.File, rows []float64, first int, states [][]float64) error {
	n := d.size()
	if rows != nil {
		for k, state := range states {
			copy(state[d.from:d.to], rows[k*n:])
		}
		return nil
	}
	step := d.rows(len(states))
	var buffer []float64
	if step > 1 {
		buffer = make([]float64, step*n)
	}
	for k := 0; k < len(states); k += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(step, len(states)-k)
		to := states[k][d.from:d.to]
		if step > 1 {
			to = buffer[:count*n]
		}
		if err := h5.ReadSlab(f, d.path, to, d.start(first+k), d.count(count)); err != nil {
			return err
		}
		if step > 1 {
			for i, state := range states[k : k+count] {
				copy(state[d.from:d.to], buffer[i*n:])
			}
		}
	}
	return nil
}

// ReadField reads the values of a field in a box of its domain at saved state number
// state, from 0: the cells in C order, x fastest. They are in the file, which must
// still be there; a file that doesn't have the state any more is an error that matches
// [ErrMismatch].
//
// Where the file has checksums, chunks of the field of which a call, or several calls that
// read whole planes in the order of z, read everything are compared with them: others
// than were written are an error that matches [ErrChecksum], and dst has them. A part of a
// chunk can't be compared.
func (s *Solution) ReadField(ctx context.Context, name string, state int, box grid.Box, dst []float64) error {
	if state < 0 || state >= len(s.origins) {
		return fmt.Errorf("read field %q: %w: number %d of %d", name, ErrNoState, state, len(s.origins))
	}
	return readField(ctx, &s.Layout, s.origins[state], s.reading, s.Times[state], name, box, dst)
}

func readField(ctx context.Context, l *Layout, at origin, reading *fieldReading, time float64, name string, box grid.Box, dst []float64) error {
	u := l.Unknown(name)
	if u == nil || u.Kind != Field {
		return fmt.Errorf("read field %q: %w: no field of that name", name, ErrInput)
	}
	if !u.Domain.Box().Contains(box) {
		return fmt.Errorf("read field %q: %w: the box %v is not within %v", name, ErrInput, box, u.Domain.Box())
	}
	if int64(len(dst)) != box.Cells() {
		return fmt.Errorf("read field %q: %w: room for %d values of %d", name, ErrInput, len(dst), box.Cells())
	}
	if !h5.Enabled {
		return fmt.Errorf("read field %q: %w", name, ErrNoHDF5)
	}
	err := withFile(ctx, at.path, func(f *h5.File, r root) error {
		if err := checkTime(f, at.index, time); err != nil {
			return err
		}
		err := h5.ReadSlab(f, h5.Join("unknowns", name), dst,
			[]int{at.index, box.Low[2], box.Low[1], box.Low[0]}, []int{1, box.Size[2], box.Size[1], box.Size[0]})
		if err != nil {
			return err
		}
		return reading.check(r.sums, u, at.index, box, dst)
	})
	if err != nil {
		return fmt.Errorf("read field: %w", err)
	}
	return nil
}

// checkTime makes sure that a file has the state that it had.
func checkTime(f *h5.File, index int, time float64) error {
	there := make([]float64, 1)
	if err := h5.ReadSlab(f, "time", there, []int{index}, []int{1}); err != nil {
		return err
	}
	if there[0] != time {
		return in(f.Name(), "time", ErrMismatch, "state %d was of %v s and is of %v s: the file has changed", index, time, there[0])
	}
	return nil
}

// readUpdates reads the states of the interval updates, of which there is one for each
// saved time.
func readUpdates(f *h5.File, times int, sums *storedSums) ([]UpdateStates, error) {
	entries, err := members(f, updatesGroup)
	if err != nil {
		return nil, err
	}
	var list []UpdateStates
	for _, e := range entries {
		path := h5.Join(updatesGroup, e.Name)
		data, shape, err := h5.ReadAs[float64](f, path)
		if err != nil {
			return nil, err
		}
		if len(shape) != 2 || shape[0] != times {
			return nil, in(f.Name(), path, ErrMismatch, "its shape is %v, must be (%d, n) for %d saved times", shape, times, times)
		}
		u := UpdateStates{Name: e.Name, States: make([][]float64, times)}
		for i := range u.States {
			u.States[i] = data[i*shape[1] : (i+1)*shape[1] : (i+1)*shape[1]]
			if err := sums.state(path, i, u.States[i]); err != nil {
				return nil, err
			}
		}
		list = append(list, u)
	}
	return list, nil
}

// members lists a group that need not be there.
func members(f *h5.File, path string) ([]h5.Entry, error) {
	has, err := f.Exists(path)
	if err != nil || !has {
		return nil, err
	}
	return f.List(path)
}

// statistic is a dataset of the solver's statistics.
type statistic struct {
	name      string
	length    func(s *Statistics) int
	write     func(f *h5.File, path string, s *Statistics, have int, o *options) error
	read      func(f *h5.File, path string, s *Statistics) error
	sum       func(s *Statistics, from, to int) uint64 // of rows
	iteration bool                                     // it has an entry for each iteration
}

func numbers[T h5.Element](name string, iteration bool, field func(s *Statistics) *[]T) statistic {
	return statistic{
		name:      name,
		iteration: iteration,
		length:    func(s *Statistics) int { return len(*field(s)) },
		write: func(f *h5.File, path string, s *Statistics, have int, o *options) error {
			return writeGrowing(f, path, *field(s), have, o)
		},
		read: func(f *h5.File, path string, s *Statistics) (err error) {
			*field(s), err = readVector[T](f, path)
			return err
		},
		sum: func(s *Statistics, from, to int) uint64 { return sumNumbers((*field(s))[from:to]) },
	}
}

var statistics = []statistic{
	numbers("time", false, func(s *Statistics) *[]float64 { return &s.Time }),
	numbers("step_length", false, func(s *Statistics) *[]float64 { return &s.StepLength }),
	numbers("accepted", false, func(s *Statistics) *[]bool { return &s.Accepted }),
	numbers("error_estimate", false, func(s *Statistics) *[]float64 { return &s.ErrorEstimate }),
	numbers("nonlinear_iterations", false, func(s *Statistics) *[]int64 { return &s.NonlinearIterations }),
	numbers("linear_iterations", false, func(s *Statistics) *[]int64 { return &s.LinearIterations }),
	numbers("wall_time", false, func(s *Statistics) *[]float64 { return &s.WallTime }),
	{
		name:   "outcome",
		length: func(s *Statistics) int { return len(s.Outcome) },
		write: func(f *h5.File, path string, s *Statistics, have int, o *options) error {
			return writeTexts(f, path, s.Outcome, have, o)
		},
		read: func(f *h5.File, path string, s *Statistics) (err error) {
			s.Outcome, err = f.ReadStrings(path)
			return err
		},
		sum: func(s *Statistics, from, to int) uint64 { return sumTexts(s.Outcome[from:to]) },
	},
	numbers("iteration_attempt", true, func(s *Statistics) *[]int64 { return &s.IterationAttempt }),
	numbers("iteration_residual", true, func(s *Statistics) *[]float64 { return &s.IterationResidual }),
	numbers("iteration_linear", true, func(s *Statistics) *[]int64 { return &s.IterationLinear }),
}

// check tells whether the fields that are there have the same number of entries.
func (s *Statistics) check() error {
	attempts, iterations := s.Attempts(), len(s.IterationAttempt)
	for _, field := range statistics {
		want, of := attempts, "attempts"
		if field.iteration {
			want, of = iterations, "iterations"
		}
		if n := field.length(s); n != 0 && n != want {
			return fmt.Errorf("statistics: %s has %d entries for %d %s", field.name, n, want, of)
		}
	}
	for i, a := range s.IterationAttempt {
		if a < 1 || a > int64(attempts) {
			return fmt.Errorf("statistics: iteration_attempt %d is %d, not one of 1 to %d", i, a, attempts)
		}
	}
	for i, text := range s.Outcome {
		if _, err := record.ValueOf(text); err != nil {
			return fmt.Errorf("statistics: outcome %d: %w", i, err)
		}
	}
	return nil
}

// writeStatistics writes entries behind those of the attempts and the iterations that
// the file has.
func writeStatistics(f *h5.File, s *Statistics, attempts, iterations int, o *options) error {
	for _, field := range statistics {
		if field.length(s) == 0 {
			continue
		}
		have := attempts
		if field.iteration {
			have = iterations
		}
		if err := field.write(f, h5.Join(statisticsGroup, field.name), s, have, o); err != nil {
			return err
		}
	}
	return writeOthers(f, s, attempts, iterations, o)
}

// readStatistics reads what there is, and fills in the rest. With an error it returns no
// statistics at all: what was read so far may have other lengths than the rest. Those that
// the format doesn't have are read too, if warn is told of what can't be.
func readStatistics(f *h5.File, warn func(string), sums *storedSums) (Statistics, error) {
	const group = statisticsGroup
	var s Statistics
	entries, err := members(f, group)
	if err != nil {
		return Statistics{}, err
	}
	for _, field := range statistics {
		if !slices.ContainsFunc(entries, func(e h5.Entry) bool { return e.Name == field.name }) {
			continue
		}
		if err := field.read(f, h5.Join(group, field.name), &s); err != nil {
			return Statistics{}, err
		}
	}
	if err := sums.ofStatistics(&s); err != nil {
		return Statistics{}, err
	}
	if err := s.check(); err != nil {
		return Statistics{}, in(f.Name(), group, ErrMismatch, "%v", err)
	}
	if warn != nil {
		if err := readOthers(f, entries, &s, warn); err != nil {
			return Statistics{}, err
		}
	}
	return s.filled(), nil
}

// ReadState returns one saved state of an output file, the last unless [State] names
// another, or that of a checkpoint. A state of an output file has no stepper record, so
// a run can resume from it only at one of its time points. Of a state in the output of
// joined segments the segment is known, and not 0, only if it is the last one.
func ReadState(ctx context.Context, path string, opts ...Option) (*Checkpoint, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, fmt.Errorf("read state of %s: %w", path, err)
	}
	var k *Checkpoint
	err = withFile(ctx, path, func(f *h5.File, r root) (err error) {
		if r.checkpoint {
			k, err = readCheckpoint(ctx, f, r, o)
			if err == nil && o.state != 0 && o.state != -1 {
				err = o.noState(f, "a checkpoint")
			}
			return err
		}
		k, err = readSaved(ctx, f, r, o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return k, nil
}

// noState is the error of a state that a file doesn't have, with its number as the caller
// counts.
func (o *options) noState(f *h5.File, of string) error {
	if o.state < 0 {
		return in(f.Name(), "", ErrNoState, "number %d from the end, of %s", -o.state, of)
	}
	return in(f.Name(), "", ErrNoState, "number %d of %s, counted from %d", o.state+o.stateBase, of, o.stateBase)
}

// readSaved reads one of the saved states of an output file.
func readSaved(ctx context.Context, f *h5.File, r root, o *options) (*Checkpoint, error) {
	s, err := readCommon(ctx, f, r, o)
	if err != nil {
		return nil, err
	}
	number := o.state
	if number < 0 {
		number += len(s.Times)
	}
	if number < 0 || number >= len(s.Times) {
		return nil, o.noState(f, fmt.Sprintf("%d", len(s.Times)))
	}
	if err := s.readStates(ctx, f, r.sums, number, 1, nil); err != nil {
		return nil, err
	}
	k := s.stored(number)
	k.output = true
	updates, err := readUpdates(f, len(s.Times), r.sums)
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		k.Updates = append(k.Updates, UpdateState{u.Name, u.States[number]})
	}
	seg, err := segmentOfPart(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	k.SavedCount = number + 1
	if seg.savedBefore != nil {
		k.SavedCount += int(*seg.savedBefore)
	}
	if k.Summary, err = readSummaryUntil(f, r.sums, seg, k.Time); err != nil {
		return nil, err
	}
	// Of joined segments only the last one is known.
	if seg.index != nil && !(seg.joined && k.Time <= *seg.start) {
		k.Segment = int(*seg.index)
	}
	return k, nil
}

// stored makes what there is to resume from of the one state that was read of a file.
func (s *Solution) stored(number int) *Checkpoint {
	return &Checkpoint{
		File: s.Files[0], Version: s.Version, Settings: s.Settings, Layout: s.Layout,
		Time: s.Times[number], State: s.States[0],
		origin: s.origins[number], reading: s.reading, units: s.units, carried: s.carried,
	}
}

// Units gives the units that the file stores, by unknown: none before format 0.0.5.
func (k *Checkpoint) Units() map[string]string { return k.units }

// ReadField is [Solution.ReadField] for the state of a checkpoint. A field that is in a
// bundle is an error that matches [ErrNoState] and names the bundle.
func (k *Checkpoint) ReadField(ctx context.Context, name string, box grid.Box, dst []float64) error {
	if bundle, ok := k.Bundles[name]; ok {
		return fmt.Errorf("read field %q: %w: it is in the bundle %s", name, ErrNoState, bundle)
	}
	if k.origin.file == "" {
		return fmt.Errorf("read field %q: %w: the checkpoint was not read from a file", name, ErrNoState)
	}
	return readField(ctx, &k.Layout, k.origin, k.reading, k.Time, name, box, dst)
}
