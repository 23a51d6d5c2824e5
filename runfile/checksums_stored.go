package runfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// storedSums are the checksums that a file has. They are read when the first is wanted;
// the file must be open then. Where there are none, everything is right; so it is with a
// nil one, with which nothing is compared.
type storedSums struct {
	f            *h5.File
	asked, read  bool  // for the algorithm, and for everything
	unasked, err error // what came of it

	algorithm string // as the file names it, "" where it has no group
	known     bool   // it is ours

	columns map[string]int // in states, by the path of the dataset
	rows    int
	states  []uint64
	records map[string]uint64

	statisticColumns map[string]int
	statisticRows    []uint64 // two for each publication
	statistics       []uint64

	// What was found right, and what has no checksum: by object.
	verified map[string]int
	wrong    map[string]error // records
	lacking  []string
}

func newStoredSums(f *h5.File) *storedSums {
	return &storedSums{f: f, verified: map[string]int{}, wrong: map[string]error{}}
}

// load reads all but those of fields. Whatever is wrong with the checksums themselves is
// an error that matches ErrChecksum.
func (s *storedSums) load() error {
	if !s.read {
		s.read = true
		if s.err = s.ask(); s.err == nil && s.known {
			s.err = s.all()
		}
	}
	return s.err
}

// ask looks for the algorithm.
func (s *storedSums) ask() error {
	if !s.asked {
		s.asked = true
		has, err := s.f.Exists(sumsGroup)
		if err == nil && has {
			s.algorithm, err = s.named()
		}
		s.known, s.unasked = err == nil && s.algorithm == sumsAlgorithm, err
	}
	return s.unasked
}

func (s *storedSums) all() (err error) {
	if s.columns, s.states, s.rows, err = s.table(stateNamesPath, stateSumsPath); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.columns)) {
		if !isSummedDataset(name) {
			return s.bad(stateNamesPath, "%q is no dataset with a row for each saved state", name)
		}
	}
	var n, m int
	if s.statisticColumns, s.statistics, n, err = s.table(statisticNamesPath, statisticSumsPath); err != nil {
		return err
	}
	if s.statisticRows, m, err = s.numbers(statisticRowsPath, 2); err != nil {
		return err
	}
	if n != m {
		return s.bad(statisticRowsPath, "%d rows for %d", m, n)
	}
	for p := range 2 * (n - 1) {
		if s.statisticRows[p+2] < s.statisticRows[p] {
			return s.bad(statisticRowsPath, "row %d is less than the one before", p/2+1)
		}
	}
	names, err := s.texts(recordNamesPath)
	if err != nil || names == nil {
		return err
	}
	sums, n, err := s.numbers(recordSumsPath, 1)
	if err != nil {
		return err
	}
	if n != len(names) {
		return s.bad(recordSumsPath, "%d for %d records", n, len(names))
	}
	s.records = map[string]uint64{}
	for i, name := range names {
		if !isSummedRecord(name) {
			return s.bad(recordNamesPath, "%q is no record that has a checksum", name)
		}
		s.records[name] = sums[i]
	}
	return nil
}

// isSummedDataset reports whether a path can be that of a dataset with a row for each
// saved state.
func isSummedDataset(path string) bool {
	group, rest, below := strings.Cut(path, "/")
	switch {
	case !below:
		return path == "time"
	case group == "unknowns":
		name, radius, perRadius := strings.Cut(rest, "/")
		return isName(name) && (!perRadius || isName(radius))
	}
	return group == updatesGroup && isName(rest)
}

// isSummedRecord reports whether a path can be that of a record with a checksum.
func isSummedRecord(path string) bool {
	group, section, below := strings.Cut(path, "/")
	if !below {
		return slices.Contains([]string{"layout", "settings", "checkpoint", nonFiniteGroup}, path)
	}
	return (group == "settings" || group == "checkpoint") && isName(section)
}

// isName reports whether a name is that of one object, and not a path.
func isName(name string) bool { return name != "" && name != "." && !strings.Contains(name, "/") }

// named is the algorithm that the file names. What is no group of checksums at all, or
// doesn't name one, has an unknown one.
func (s *storedSums) named() (string, error) {
	const unknown = "unknown"
	has, err := s.f.HasAttribute(sumsGroup, algorithmAttribute)
	if err != nil || !has {
		return unknown, err
	}
	name, err := s.f.AttributeString(sumsGroup, algorithmAttribute)
	if errors.Is(err, h5.ErrType) || errors.Is(err, h5.ErrShape) || err == nil && name == "" {
		return unknown, nil
	}
	return name, err
}

// bad is the error of checksums that can't be those of the file.
func (s *storedSums) bad(path, format string, args ...any) error {
	return in(s.f.Name(), path, ErrChecksum, "the checksums are damaged: "+format, args...)
}

// sumsUnreadable is that of checksums that can't be read.
func sumsUnreadable(err error) error {
	return fmt.Errorf("%w: the checksums can't be read: %w", ErrChecksum, err)
}

// texts reads a list of names, which need not be there. Each is there once.
func (s *storedSums) texts(path string) ([]string, error) {
	has, err := s.f.Exists(path)
	if err != nil || !has {
		return nil, err
	}
	list, err := s.f.ReadStrings(path)
	if err != nil {
		return nil, sumsUnreadable(err)
	}
	seen := map[string]bool{}
	for _, name := range list {
		if seen[name] {
			return nil, s.bad(path, "%q is there twice", name)
		}
		seen[name] = true
	}
	return list, nil
}

// shape is that of a list or a table of checksums, nil where there is none. The file has
// all of them, so that there is memory for them.
func (s *storedSums) shape(path string) ([]int, error) {
	has, err := s.f.Exists(path)
	if err != nil || !has {
		return nil, err
	}
	info, err := s.f.Stat(path)
	if err != nil {
		return nil, sumsUnreadable(err)
	}
	switch {
	case info.Kind != h5.Dataset || info.Type != h5.Uint64 || len(info.Shape) == 0:
		return nil, s.bad(path, "a %v of %v of shape %v, not a list of uint64", info.Kind, info.Type, info.Shape)
	case info.Filters > 0 || info.Storage/8 < int64(info.Elements()):
		return nil, s.bad(path, "shape %v, with %d bytes in the file and %d filters", info.Shape, info.Storage, info.Filters)
	}
	return slices.Clone(info.Shape), nil
}

// numbers reads a table of so many columns, which need not be there: one without an axis
// of columns for one.
func (s *storedSums) numbers(path string, columns int) (sums []uint64, rows int, err error) {
	shape, err := s.shape(path)
	if err != nil || shape == nil {
		return nil, 0, err
	}
	if columns == 1 && len(shape) == 1 {
		shape = append(shape, 1)
	}
	if len(shape) != 2 || shape[1] != columns {
		return nil, 0, s.bad(path, "shape %v, not %d columns", shape, columns)
	}
	if sums, _, err = h5.Read[uint64](s.f, path); err != nil {
		return nil, 0, sumsUnreadable(err)
	}
	return sums, shape[0], nil
}

// table reads a table with a column for each of some names.
func (s *storedSums) table(namesPath, path string) (columns map[string]int, sums []uint64, rows int, err error) {
	names, err := s.texts(namesPath)
	if err != nil {
		return nil, nil, 0, err
	}
	if names == nil {
		return nil, nil, 0, nil
	}
	if sums, rows, err = s.numbers(path, len(names)); err != nil {
		return nil, nil, 0, err
	}
	columns = map[string]int{}
	for j, name := range names {
		columns[name] = j
	}
	return columns, sums, rows, nil
}

// differ is the error of an object, or of a part of it, whose checksum is another one.
func (s *storedSums) differ(object, part string, stored, is uint64) error {
	return sumsDiffer(s.f.Name(), object, part, stored, is)
}

func sumsDiffer(file, object, part string, stored, is uint64) error {
	if part != "" {
		part += ": "
	}
	return in(file, object, ErrChecksum, "%sstored is %016x, it is %016x", part, stored, is)
}

// lacks notes that an object has no checksum.
func (s *storedSums) lacks(object string) {
	if s != nil && !slices.Contains(s.lacking, object) {
		s.lacking = append(s.lacking, object)
	}
}

// count is how many checksums were found right.
func (s *storedSums) count() (n int) {
	for _, m := range s.verified {
		n += m
	}
	return n
}
