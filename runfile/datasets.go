package runfile

import (
	"context"
	"slices"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/h5"
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

// perRadius reports whether a kinetic unknown has a dataset for each radius.
func (u *Unknown) perRadius() bool { return u.Kind == Kinetic && len(u.Grids) > 1 }

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

// datasetsIn returns the datasets of an unknown as the file has them: where there is one
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

// simple reports whether a file has all numbers of a dataset as they are in memory.
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
