package runfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// An otherStatistic is a dataset of the solver's statistics that this package knows nothing
// of, as other writers have them. It has an entry for each attempt or for each iteration,
// and goes where these go.
type otherStatistic struct {
	name      string
	iteration bool
	column    column
}

// A column is a list of entries of one type and shape.
type column interface {
	length() int
	// of describes an entry: columns can be joined if they have the same description.
	of() string
	rows(keep []int) column
	then(b column) column
	unknown(n int) column // n entries of the same type and shape that aren't known
	write(f *h5.File, path string, have int, o *options) error
	value() any              // for a record
	sum(from, to int) uint64 // the checksum of entries
}

type numberColumn[T h5.Element] struct {
	values []T
	dims   []int // of an entry
	count  int
}

func (c numberColumn[T]) length() int { return c.count }

func (c numberColumn[T]) of() string {
	var zero T
	if len(c.dims) == 0 {
		return fmt.Sprintf("%T", zero)
	}
	return fmt.Sprintf("%T of shape %v", zero, c.dims)
}

// size is how many numbers an entry has.
func (c numberColumn[T]) size() int {
	n := 1
	for _, d := range c.dims {
		n *= d
	}
	return n
}

func (c numberColumn[T]) rows(keep []int) column {
	kept := numberColumn[T]{dims: c.dims, count: len(keep)}
	for _, i := range keep {
		kept.values = append(kept.values, c.values[i*c.size():(i+1)*c.size()]...)
	}
	return kept
}

func (c numberColumn[T]) then(b column) column {
	other := b.(numberColumn[T])
	return numberColumn[T]{slices.Concat(c.values, other.values), c.dims, c.count + other.count}
}

func (c numberColumn[T]) unknown(n int) column {
	var otherwise T
	switch p := any(&otherwise).(type) {
	case *float64:
		*p = math.NaN()
	case *float32:
		*p = float32(math.NaN())
	}
	return numberColumn[T]{slices.Repeat([]T{otherwise}, n*c.size()), c.dims, n}
}

func (c numberColumn[T]) write(f *h5.File, path string, have int, o *options) error {
	shape := slices.Concat([]int{c.count}, c.dims)
	o.count(len(c.values) * 8)
	if !o.extendible || c.size() == 0 {
		return h5.Write(f, path, c.values, shape...)
	}
	if err := need[T](f, path, have, c.count, c.dims, o); err != nil {
		return err
	}
	start := make([]int, len(shape))
	start[0] = have
	return h5.WriteSlab(f, path, c.values, start, shape)
}

func (c numberColumn[T]) value() any {
	dims := slices.Concat([]int{c.count}, c.dims)
	switch v := any(c.values).(type) {
	case []bool:
		return arrayOf(bytesOf(v), dims)
	case []int8:
		return arrayOf(v, dims)
	case []int16:
		return arrayOf(v, dims)
	case []int32:
		return arrayOf(v, dims)
	case []int64:
		return arrayOf(v, dims)
	case []uint8:
		return arrayOf(v, dims)
	case []uint16:
		return arrayOf(v, dims)
	case []uint32:
		return arrayOf(v, dims)
	case []uint64:
		return arrayOf(v, dims)
	case []float32:
		return arrayOf(v, dims)
	case []float64:
		return arrayOf(v, dims)
	}
	return nil
}

func arrayOf[T record.Element](v []T, dims []int) record.Array {
	a, _ := record.NewArray(v, dims...) // the values fill the dimensions
	return a
}

func (c numberColumn[T]) sum(from, to int) uint64 {
	return sumNumbers(c.values[from*c.size() : to*c.size()])
}

type textColumn []string

func (c textColumn) length() int { return len(c) }
func (c textColumn) of() string  { return "string" }

func (c textColumn) rows(keep []int) column {
	kept := textColumn{}
	for _, i := range keep {
		kept = append(kept, c[i])
	}
	return kept
}

func (c textColumn) then(b column) column { return slices.Concat(c, b.(textColumn)) }

func (c textColumn) unknown(n int) column { return slices.Repeat(textColumn{unknownOutcome}, n) }

func (c textColumn) write(f *h5.File, path string, have int, o *options) error {
	return writeTexts(f, path, c, have, o)
}

func (c textColumn) value() any { return []string(c) }

func (c textColumn) sum(from, to int) uint64 { return sumTexts(c[from:to]) }

// Others returns the statistics that other writers have beside those of the format, by
// their names: arrays, or lists of strings, with an entry for each attempt, or for each
// iteration where the name begins with "iteration_". They are read from files, cut and
// joined as the rest, and written. Booleans are bytes in it.
func (s *Statistics) Others() record.Record {
	b := record.NewBuilder(record.AnyKeys())
	for _, other := range s.others {
		b.Set(other.name, other.column.value())
	}
	r, _ := b.Build() // the names are those of a group, and the values were read
	return r
}

// rowsOf returns the others with some of the entries of attempts, or of iterations.
func rowsOf(others []otherStatistic, iteration bool, keep []int) []otherStatistic {
	kept := slices.Clone(others)
	for i, other := range kept {
		if other.iteration == iteration {
			kept[i].column = other.column.rows(keep)
		}
	}
	return kept
}

// span returns the numbers from first on, before last.
func span(first, last int) []int {
	list := make([]int, 0, last-first)
	for i := first; i < last; i++ {
		list = append(list, i)
	}
	return list
}

// thenOthers appends those of a later part. What one part lacks is not known there.
func (s *Statistics) thenOthers(b *Statistics) []otherStatistic {
	entries := func(s *Statistics, like otherStatistic) column {
		if i := slices.IndexFunc(s.others, func(o otherStatistic) bool { return o.name == like.name }); i >= 0 {
			return s.others[i].column
		}
		if like.iteration {
			return like.column.unknown(len(s.IterationAttempt))
		}
		return like.column.unknown(len(s.Time))
	}
	var list []otherStatistic
	for _, other := range slices.Concat(s.others, b.others) {
		if slices.ContainsFunc(list, func(o otherStatistic) bool { return o.name == other.name }) {
			continue
		}
		list = append(list, otherStatistic{other.name, other.iteration, entries(s, other).then(entries(b, other))})
	}
	return list
}

// withoutClashes returns the parts without those statistics of other writers that have
// other types or shapes in other parts.
func withoutClashes(parts []*Solution, warn func(string)) []*Solution {
	type first struct {
		otherStatistic
		file string
	}
	firsts, clashes := map[string]first{}, map[string]bool{}
	for _, p := range parts {
		for _, other := range p.Statistics.others {
			f, ok := firsts[other.name]
			if !ok {
				firsts[other.name] = first{other, p.Files[0]}
				continue
			}
			if f.column.of() == other.column.of() && f.iteration == other.iteration || clashes[other.name] {
				continue
			}
			clashes[other.name] = true
			warn(fmt.Sprintf("statistic %q is left out: its entries are %s in %s and %s in %s",
				other.name, f.column.of(), f.file, other.column.of(), p.Files[0]))
		}
	}
	if len(clashes) == 0 {
		return parts
	}
	kept := make([]*Solution, len(parts))
	for i, p := range parts {
		own := *p
		own.Statistics.others = slices.DeleteFunc(slices.Clone(p.Statistics.others), func(o otherStatistic) bool { return clashes[o.name] })
		kept[i] = &own
	}
	return kept
}

// writeOthers writes the others behind the entries that the file has.
func writeOthers(f *h5.File, s *Statistics, attempts, iterations int, o *options) error {
	for _, other := range s.others {
		if other.column.length() == 0 {
			continue
		}
		have := attempts
		if other.iteration {
			have = iterations
		}
		if err := other.column.write(f, h5.Join(statisticsGroup, other.name), have, o); err != nil {
			return err
		}
	}
	return nil
}

// readOthers reads the statistics that this package doesn't know. What can't go with the
// attempts or the iterations is a warning.
func readOthers(f *h5.File, entries []h5.Entry, s *Statistics, warn func(string)) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	// Datasets may have many names.
	r := recordReader{file: f, left: 16<<20 + 8*size}
	attempts, iterations := s.Attempts(), len(s.IterationAttempt)
	for _, e := range entries {
		if isStatistic(e.Name) {
			continue
		}
		path := h5.Join(statisticsGroup, e.Name)
		c, err := r.column(path)
		n := 0
		if err == nil {
			n = c.length()
		}
		iteration := strings.HasPrefix(e.Name, "iteration_") && n == iterations
		switch {
		case err != nil && cannotJudge(err):
			return err
		case err != nil:
			warn(fmt.Sprintf("statistic %q is left out: %v", e.Name, err))
		case n == 0:
		case !iteration && n != attempts:
			warn(fmt.Sprintf("%s: statistic %q is left out: it has %d entries for %d attempts and %d iterations",
				f.Name(), e.Name, n, attempts, iterations))
		default:
			s.others = append(s.others, otherStatistic{e.Name, iteration, c})
		}
	}
	return nil
}

func isStatistic(name string) bool {
	return slices.ContainsFunc(statistics, func(s statistic) bool { return s.name == name })
}

// column reads a dataset whose first axis is that of its entries.
func (r *recordReader) column(path string) (column, error) {
	info, err := r.file.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Kind != h5.Dataset {
		return nil, in(r.file.Name(), path, h5.ErrKind, "a %v, not a dataset", info.Kind)
	}
	if info.Type == h5.String {
		list, err := r.texts(path)
		if err == nil {
			_, err = r.valueOf(path, list)
		}
		return textColumn(list), err
	}
	if err := r.take(path, info, 8); err != nil {
		return nil, err
	}
	switch info.Type {
	case h5.Bool:
		return readColumn[bool](r.file, path)
	case h5.Int8:
		return readColumn[int8](r.file, path)
	case h5.Int16:
		return readColumn[int16](r.file, path)
	case h5.Int32:
		return readColumn[int32](r.file, path)
	case h5.Int64:
		return readColumn[int64](r.file, path)
	case h5.Uint8:
		return readColumn[uint8](r.file, path)
	case h5.Uint16:
		return readColumn[uint16](r.file, path)
	case h5.Uint32:
		return readColumn[uint32](r.file, path)
	case h5.Uint64:
		return readColumn[uint64](r.file, path)
	case h5.Float32:
		return readColumn[float32](r.file, path)
	case h5.Float64:
		return readColumn[float64](r.file, path)
	}
	return nil, unreadable(r.file, path, info)
}

func readColumn[T h5.Element](f *h5.File, path string) (column, error) {
	data, shape, err := h5.Read[T](f, path)
	if err != nil {
		return nil, err
	}
	if len(shape) == 0 {
		return nil, in(f.Name(), path, ErrMismatch, "one value, not a list")
	}
	return numberColumn[T]{data, shape[1:], shape[0]}, nil
}
