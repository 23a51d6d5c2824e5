package runfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/record"
)

// ErrChecksum says that values of a file are not those that were written: their checksum
// is another one than the file has of them.
var ErrChecksum = errors.New("the checksum does not match")

// The group of checksums, which is beside the records and groups that other readers know.
// docs/run-file-format.md says what is in it.
const (
	sumsGroup          = "checksums"
	algorithmAttribute = "algorithm"
	sumsAlgorithm      = "CRC-64/NVME"

	stateSumsPath      = sumsGroup + "/states"
	stateNamesPath     = sumsGroup + "/state_datasets"
	fieldSumsGroup     = sumsGroup + "/fields"
	statisticSumsPath  = sumsGroup + "/statistics"
	statisticRowsPath  = sumsGroup + "/statistics_rows"
	statisticNamesPath = sumsGroup + "/statistics_datasets"
	recordSumsPath     = sumsGroup + "/records"
	recordNamesPath    = sumsGroup + "/record_paths"
)

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// sumFloats continues a checksum with numbers as files have them.
func sumFloats(crc uint64, v []float64) uint64 {
	if littleEndian {
		return pack.Update(crc, pack.Bytes(v))
	}
	var b []byte
	for part := range slices.Chunk(v, 512) {
		b, _ = binary.Append(b[:0], binary.LittleEndian, part) // floats always have a size
		crc = pack.Update(crc, b)
	}
	return crc
}

// sumNumbers is the checksum of numbers or booleans as files have them.
func sumNumbers[T h5.Element](v []T) uint64 {
	if floats, ok := any(v).([]float64); ok {
		return sumFloats(0, floats)
	}
	b, _ := binary.Append(nil, binary.LittleEndian, v) // all elements have a size
	return pack.Sum(b)
}

// sumTexts is the checksum of texts, each with a NUL behind it.
func sumTexts(list []string) (crc uint64) {
	for _, s := range list {
		crc = pack.Update(crc, append([]byte(s), 0))
	}
	return crc
}

// sumWriter takes a checksum of what is written to it.
type sumWriter struct{ crc uint64 }

func (w *sumWriter) Write(b []byte) (int, error) {
	w.crc = pack.Update(w.crc, b)
	return len(b), nil
}

// sumRecord is the checksum of a record: that of its canonical encoding.
func sumRecord(r record.Record) uint64 {
	var w sumWriter
	_ = r.WriteCanonical(&w) // it takes everything
	return w.crc
}

// beginSums makes the group of checksums.
func beginSums(f *h5.File) error {
	if err := f.CreateGroup(sumsGroup); err != nil {
		return err
	}
	return f.SetAttributeString(sumsGroup, algorithmAttribute, sumsAlgorithm)
}

// appendSums puts rows behind those that a table of checksums has; without any, it makes
// the table.
func appendSums(f *h5.File, path string, rows []uint64, width, have int, o *options) error {
	n := len(rows) / width
	o.count(len(rows) * 8)
	if !o.extendible {
		return h5.Write(f, path, rows, n, width)
	}
	if have > 0 {
		return h5.Append(f, path, rows, have, width)
	}
	if err := need[uint64](f, path, 0, n, []int{width}, o); err != nil {
		return err
	}
	return h5.WriteSlab(f, path, rows, []int{0, 0}, []int{n, width})
}

// A summedDataset is a dataset with a row for each saved state.
type summedDataset struct {
	path string
	row  func(state int) []float64
}

// summedDatasets are those of a solution's times, states and interval updates.
func (s *Solution) summedDatasets() []summedDataset {
	list := []summedDataset{{"time", func(k int) []float64 { return s.Times[k : k+1] }}}
	from := 0
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		if u.Kind == Field {
			continue
		}
		for _, d := range s.Layout.datasets(u, from) {
			list = append(list, summedDataset{d.path, func(k int) []float64 { return s.States[k][d.from:d.to] }})
		}
		from += s.Layout.length(u)
	}
	for _, u := range s.Updates {
		list = append(list, summedDataset{h5.Join(updatesGroup, u.Name), func(k int) []float64 { return u.States[k] }})
	}
	return list
}

// writeStateSums writes the checksums of what writeStates and writeUpdates write.
func writeStateSums(f *h5.File, s *Solution, have int, o *options) error {
	if len(s.Times) == 0 {
		return nil
	}
	list := s.summedDatasets()
	if have == 0 {
		names := make([]string, len(list))
		for j, d := range list {
			names[j] = d.path
		}
		if err := f.WriteStrings(stateNamesPath, names, h5.Fixed); err != nil {
			return err
		}
	}
	rows := make([]uint64, 0, len(s.Times)*len(list))
	for k := range s.Times {
		for _, d := range list {
			rows = append(rows, sumFloats(0, d.row(k)))
		}
	}
	return appendSums(f, stateSumsPath, rows, len(list), have, o)
}

// writeFieldSums writes the checksums of the chunks of a field, in the order of z, at
// each of some states.
func writeFieldSums(f *h5.File, name string, states [][]uint64, have int, o *options) error {
	if len(states) == 0 {
		return nil
	}
	return appendSums(f, h5.Join(fieldSumsGroup, name), slices.Concat(states...), len(states[0]), have, o)
}

// writeStatisticSums writes the checksums of what writeStatistics writes, as one
// publication more than the file has. attempts and iterations are how many it had before.
func writeStatisticSums(f *h5.File, s *Statistics, have, attempts, iterations int, o *options) error {
	if !s.hasEntries() {
		return nil
	}
	if have == 0 {
		var names []string
		for _, field := range statistics {
			names = append(names, field.name)
		}
		for _, other := range s.others {
			names = append(names, other.name)
		}
		if err := f.WriteStrings(statisticNamesPath, names, h5.Fixed); err != nil {
			return err
		}
	}
	row := make([]uint64, len(statistics))
	for j, field := range statistics {
		row[j] = field.sum(s, 0, field.length(s))
	}
	for _, other := range s.others {
		row = append(row, other.column.sum(0, other.column.length()))
	}
	ends := []uint64{uint64(attempts + s.Attempts()), uint64(iterations + len(s.IterationAttempt))}
	if err := appendSums(f, statisticRowsPath, ends, len(ends), have, o); err != nil {
		return err
	}
	return appendSums(f, statisticSumsPath, row, len(row), have, o)
}

// A summedRecord is a record in a file, with its checksum.
type summedRecord struct {
	path string
	crc  uint64
}

// summedSections are the sections of a record that are records, and the record without
// them.
func summedSections(path string, of record.Record) ([]summedRecord, error) {
	var list []summedRecord
	rest := record.NewBuilder(record.AnyKeys())
	for key, v := range of.All() {
		if section, ok := v.Any().(record.Record); ok {
			list = append(list, summedRecord{h5.Join(path, key), sumRecord(section)})
			continue
		}
		rest.Set(key, v)
	}
	r, err := rest.Build()
	return append(list, summedRecord{path, sumRecord(r)}), err
}

// summedRoot are the records that output files and checkpoints have.
func summedRoot(settings record.Record, l *Layout) ([]summedRecord, error) {
	list, err := summedSections("settings", settings)
	if err != nil {
		return nil, err
	}
	r, err := l.fileRecord()
	return append(list, summedRecord{"layout", sumRecord(r)}), err
}

// summedRecords are those of a checkpoint's file.
func (k *Checkpoint) summedRecords() ([]summedRecord, error) {
	list, err := summedRoot(k.Settings, &k.Layout)
	if err != nil {
		return nil, err
	}
	own, err := k.summedOwn()
	return append(list, own...), err
}

// summedOwn are the records that only checkpoints have.
func (k *Checkpoint) summedOwn() ([]summedRecord, error) {
	head, err := record.Of("time", k.Time, "segment", k.Segment, "saved_count", k.SavedCount)
	if err != nil {
		return nil, err
	}
	summary, err := k.Summary.record()
	if err != nil {
		return nil, err
	}
	list := []summedRecord{{"checkpoint", sumRecord(head)}, {"checkpoint/summary", sumRecord(summary)}}
	if k.HasStepper {
		list = append(list, summedRecord{"checkpoint/stepper", sumRecord(k.Stepper)})
	}
	updates := record.NewBuilder(record.AnyKeys())
	for _, u := range k.Updates {
		updates.Floats(u.Name, u.State)
	}
	bundles := record.NewBuilder(record.AnyKeys())
	for name, path := range k.Bundles {
		bundles.Text(name, path)
	}
	counts := record.NewBuilder(record.AnyKeys())
	for name, n := range k.NonFinite {
		if n > 0 {
			counts.Int(name, n)
		}
	}
	for _, group := range []struct {
		path  string
		there bool
		b     *record.Builder
	}{
		{"checkpoint/update_states", true, updates},
		{"checkpoint/bundles", len(k.Bundles) > 0, bundles},
		{nonFiniteGroup, k.NonFinite != nil, counts},
	} {
		r, err := group.b.Build()
		if err != nil {
			return nil, err
		}
		if group.there {
			list = append(list, summedRecord{group.path, sumRecord(r)})
		}
	}
	return list, nil
}

// writeCheckpointSums writes the checksums of a checkpoint, except those of fields that HDF5
// has written. Where the file is a clone, known are those of the records that the cloned
// one has: the settings, except the segment's, and the layout are the same. It returns
// those that the file has now.
func writeCheckpointSums(f *h5.File, k *Checkpoint, known []summedRecord, o *options) ([]summedRecord, error) {
	own := *o
	own.extendible = false
	for _, name := range slices.Sorted(maps.Keys(k.fieldSums)) {
		if err := storeSums(f, h5.Join(fieldSumsGroup, name), k.fieldSums[name], 1, len(k.fieldSums[name])); err != nil {
			return nil, err
		}
	}
	if known == nil {
		if err := writeStateSums(f, k.solution(), 0, &own); err != nil {
			return nil, err
		}
		list, err := k.summedRecords()
		if err != nil {
			return nil, err
		}
		return list, writeRecordSums(f, list)
	}
	var row []uint64
	for _, d := range k.solution().summedDatasets() {
		row = append(row, sumFloats(0, d.row(0)))
	}
	if err := storeSums(f, stateSumsPath, row, 1, len(row)); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(known), func(r summedRecord) bool {
		return parentName(r.path) == "checkpoint" || r.path == "checkpoint" || r.path == nonFiniteGroup
	})
	for i, r := range list {
		if baseName(r.path) != segmentSection || parentName(r.path) != "settings" {
			continue
		}
		segment, err := k.Settings.Record(segmentSection)
		if err != nil {
			return nil, err
		}
		list[i].crc = sumRecord(segment)
	}
	more, err := k.summedOwn()
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	same := func(a, b summedRecord) bool { return a.path == b.path }
	if !slices.EqualFunc(list, known, same) {
		for _, path := range []string{recordNamesPath, recordSumsPath} {
			if err := f.Unlink(path); err != nil {
				return nil, err
			}
		}
		return list, writeRecordSums(f, list)
	}
	sums := make([]uint64, len(list))
	for i, r := range list {
		sums[i] = r.crc
	}
	return list, storeSums(f, recordSumsPath, sums, len(sums))
}

// storeSums writes checksums in the place of those that the file has, if there are any.
func storeSums(f *h5.File, path string, sums []uint64, shape ...int) error {
	has, err := f.Exists(path)
	if err != nil {
		return err
	}
	if has {
		if fits, err := h5.Overwrite(f, path, sums, shape...); err != nil || fits {
			return err
		}
		if err := f.Unlink(path); err != nil {
			return err
		}
	}
	return h5.Write(f, path, sums, shape...)
}

func writeRecordSums(f *h5.File, list []summedRecord) error {
	names, sums := make([]string, len(list)), make([]uint64, len(list))
	for i, r := range list {
		names[i], sums[i] = r.path, r.crc
	}
	if err := f.WriteStrings(recordNamesPath, names, h5.Fixed); err != nil {
		return err
	}
	return h5.Write(f, recordSumsPath, sums, len(sums))
}

// updateRecordSum replaces the checksum of a record.
func updateRecordSum(f *h5.File, path string, r record.Record) error {
	names, err := f.ReadStrings(recordNamesPath)
	if err != nil {
		return err
	}
	i := slices.Index(names, path)
	if i < 0 {
		return in(f.Name(), recordNamesPath, ErrMismatch, "it doesn't name %s", path)
	}
	return h5.WriteSlab(f, recordSumsPath, []uint64{sumRecord(r)}, []int{i}, []int{1})
}

// A chunkSum makes the checksums of the chunks of a field from its planes, which come in
// the order of z, some at a time.
type chunkSum struct {
	planes, depth int // of a chunk, and of the field
	z             int // of the next plane
	crc           uint64
}

// chunks is how many chunks a field has.
func (c *chunkSum) chunks() int { return (c.depth + c.planes - 1) / c.planes }

// add takes the next n planes, and calls done for each chunk that they complete.
func (c *chunkSum) add(cells []float64, n int, done func(chunk int, crc uint64) error) error {
	plane := len(cells) / max(n, 1)
	for n > 0 {
		chunk := c.z / c.planes
		end := min((chunk+1)*c.planes, c.depth)
		m := min(n, end-c.z)
		c.crc = sumFloats(c.crc, cells[:m*plane])
		cells, n, c.z = cells[m*plane:], n-m, c.z+m
		if c.z < end {
			continue
		}
		crc := c.crc
		c.crc = 0
		if err := done(chunk, crc); err != nil {
			return err
		}
	}
	return nil
}

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

// state checks the row of a dataset at a saved state.
func (s *storedSums) state(path string, k int, row []float64) error {
	if s == nil {
		return nil
	}
	if err := s.load(); err != nil {
		return err
	}
	j, ok := s.columns[path]
	if !ok {
		s.lacks(path)
		return nil
	}
	if k >= s.rows {
		return in(s.f.Name(), path, ErrChecksum, "saved state %d has none, there are %d", k, s.rows)
	}
	stored, is := s.states[k*len(s.columns)+j], sumFloats(0, row)
	if stored != is {
		return s.differ(path, fmt.Sprintf("saved state %d", k), stored, is)
	}
	s.verified[path] = max(s.verified[path], k+1)
	return nil
}

// times checks the saved times, and that no states have gone that have checksums.
func (s *storedSums) times(times []float64) error {
	if s == nil {
		return nil
	}
	for k := range times {
		if err := s.state("time", k, times[k:k+1]); err != nil {
			return err
		}
	}
	if err := s.load(); err != nil {
		return err
	}
	if _, ok := s.columns["time"]; ok && s.rows != len(times) {
		return in(s.f.Name(), "time", ErrChecksum, "%d saved states, there are checksums of %d", len(times), s.rows)
	}
	return nil
}

// record checks a record.
func (s *storedSums) record(path string, r record.Record) error {
	if s == nil {
		return nil
	}
	if err := s.load(); err != nil {
		return err
	}
	return s.sum(summedRecord{path, sumRecord(r)})
}

func (s *storedSums) sum(r summedRecord) error {
	stored, ok := s.records[r.path]
	switch {
	case !ok:
		s.lacks(r.path)
	case stored != r.crc:
		s.wrong[r.path] = s.differ(r.path, "", stored, r.crc)
		return s.wrong[r.path]
	default:
		s.verified[r.path] = 1
	}
	return nil
}

// settings checks settings, and that no section is missing.
func (s *storedSums) settings(settings record.Record) error {
	if s == nil {
		return nil
	}
	if err := s.load(); err != nil {
		return err
	}
	if !s.known {
		s.lacks("settings")
		return nil
	}
	list, err := summedSections("settings", settings)
	if err != nil {
		return err
	}
	var first error
	for _, r := range list {
		if err := s.sum(r); err != nil && first == nil {
			first = err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.records)) {
		if parentName(path) == "settings" && !settings.Has(baseName(path)) {
			s.wrong[path] = in(s.f.Name(), path, ErrChecksum, "there is a checksum of it, and it is missing")
			if first == nil {
				first = s.wrong[path]
			}
		}
	}
	return first
}

// recordAt checks the group at a path that has a checksum as the record that it is.
func (s *storedSums) recordAt(path string) error {
	has, err := s.f.Exists(path)
	if err != nil {
		return err
	}
	if !has {
		return in(s.f.Name(), path, ErrChecksum, "there is a checksum of it, and it is missing")
	}
	r, err := readRecord(s.f, path)
	if err != nil {
		return err
	}
	return s.record(path, r)
}

// readNumbersOf reads the datasets of a group as a record, without the groups in it.
func readNumbersOf(f *h5.File, path string) (record.Record, error) {
	r := recordReader{file: f, left: maxRecordBytes}
	entries, err := f.List(path)
	if err != nil {
		return record.Record{}, err
	}
	b := record.NewBuilder(record.AnyKeys())
	for _, e := range entries {
		if e.Kind != h5.Dataset {
			continue
		}
		v, err := r.dataset(h5.Join(path, e.Name))
		if err != nil {
			return record.Record{}, err
		}
		b.Set(e.Name, v)
	}
	return r.build(path, b)
}

// checkpoint checks what is in the group of a checkpoint, but its summary, and the counts
// beside it.
func (s *storedSums) checkpoint(k *Checkpoint) error {
	if s == nil {
		return nil
	}
	if err := s.load(); err != nil {
		return err
	}
	if !s.known {
		s.lacks("checkpoint")
		return nil
	}
	head, err := readNumbersOf(s.f, "checkpoint")
	if err != nil {
		return err
	}
	first := s.record("checkpoint", head)
	own, err := k.summedOwn()
	if err != nil {
		return err
	}
	there := map[string]bool{"checkpoint": true, "checkpoint/summary": true}
	for _, r := range own {
		if there[r.path] {
			continue
		}
		there[r.path] = true
		if err := s.sum(r); err != nil && first == nil {
			first = err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.records)) {
		if (path == nonFiniteGroup || parentName(path) == "checkpoint") && !there[path] {
			if err := s.recordAt(path); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// A summedColumn is a dataset of the solver's statistics.
type summedColumn struct {
	name      string
	length    int
	iteration bool
	sum       func(from, to int) uint64
}

// columnsOf are the statistics, and those of other writers that the file has.
func (s *storedSums) columnsOf(of *Statistics) ([]summedColumn, error) {
	var list []summedColumn
	for _, field := range statistics {
		list = append(list, summedColumn{field.name, field.length(of), field.iteration,
			func(from, to int) uint64 { return field.sum(of, from, to) }})
	}
	entries, err := members(s.f, statisticsGroup)
	if err != nil {
		return nil, err
	}
	r := recordReader{file: s.f, left: maxRecordBytes}
	for _, e := range entries {
		path := h5.Join(statisticsGroup, e.Name)
		_, summed := s.statisticColumns[e.Name]
		switch {
		case isStatistic(e.Name):
		case !summed:
			s.lacks(path)
		default:
			c, err := r.column(path)
			if err != nil {
				return nil, err
			}
			iteration := strings.HasPrefix(e.Name, "iteration_") && c.length() == len(of.IterationAttempt)
			list = append(list, summedColumn{e.Name, c.length(), iteration, c.sum})
		}
	}
	return list, nil
}

// ofStatistics checks statistics as they were read, without what isn't there.
func (s *storedSums) ofStatistics(of *Statistics) error {
	if s == nil {
		return nil
	}
	if err := s.load(); err != nil {
		return err
	}
	publications := len(s.statisticRows) / 2
	columns, err := s.columnsOf(of)
	if err != nil {
		return err
	}
	for _, c := range columns {
		path := h5.Join(statisticsGroup, c.name)
		j, ok := s.statisticColumns[c.name]
		if !ok {
			if c.length > 0 {
				s.lacks(path)
			}
			continue
		}
		from, side := 0, 0
		if c.iteration {
			side = 1
		}
		for p := range publications {
			stored, part := s.statistics[p*len(s.statisticColumns)+j], fmt.Sprintf("publication %d", p)
			if c.length == 0 { // a dataset that was never written
				if stored != 0 {
					return in(s.f.Name(), path, ErrChecksum, "%s: it is missing", part)
				}
				continue
			}
			end := s.statisticRows[2*p+side]
			if end > uint64(c.length) {
				return in(s.f.Name(), path, ErrChecksum, "%s ends with row %d, and there are %d", part, end, c.length)
			}
			if is := c.sum(from, int(end)); stored != is {
				return s.differ(path, fmt.Sprintf("%s, rows %d to %d", part, from, end), stored, is)
			}
			from = int(end)
		}
		if from < c.length {
			return in(s.f.Name(), path, ErrChecksum, "%d rows, there are checksums of %d", c.length, from)
		}
		if c.length > 0 {
			s.verified[path] = publications
		}
	}
	if publications > 0 {
		ends := s.statisticRows[2*publications-2:]
		attempts, iterations := uint64(of.Attempts()), uint64(max(len(of.IterationAttempt), len(of.IterationResidual), len(of.IterationLinear)))
		if ends[0] != attempts || ends[1] != iterations {
			return in(s.f.Name(), statisticsGroup, ErrChecksum, "%d attempts and %d iterations, there are checksums of %d and %d", attempts, iterations, ends[0], ends[1])
		}
	}
	return nil
}

// chunksOf returns the checksums of a field's chunks at a saved state and how many planes
// a chunk has, nil where the file has no checksums of the field.
func (s *storedSums) chunksOf(u *Unknown, k int) (sums []uint64, planes int, err error) {
	if s == nil {
		return nil, 0, nil
	}
	if err := s.ask(); err != nil || !s.known {
		return nil, 0, err
	}
	own := h5.Join(fieldSumsGroup, u.Name)
	shape, err := s.shape(own)
	if err != nil || shape == nil {
		return nil, 0, err
	}
	path := h5.Join("unknowns", u.Name)
	size := u.Domain.Size
	if len(shape) != 2 || shape[1] < 1 {
		return nil, 0, s.bad(own, "shape %v, not states and chunks", shape)
	}
	// The chunks that were summed up are of equally many planes, also where somebody has
	// stored the field in others since.
	planes = (size[2] + shape[1] - 1) / shape[1]
	if n := (&chunkSum{planes: planes, depth: size[2]}).chunks(); n != shape[1] {
		return nil, 0, s.bad(own, "shape %v, a state has %d planes", shape, size[2])
	}
	if k >= shape[0] {
		return nil, 0, in(s.f.Name(), path, ErrChecksum, "saved state %d has none, there are %d", k, shape[0])
	}
	sums = make([]uint64, shape[1])
	if err := h5.ReadSlab(s.f, own, sums, []int{k, 0}, []int{1, len(sums)}); err != nil {
		return nil, 0, sumsUnreadable(err)
	}
	return sums, planes, nil
}

// chunk compares the checksum of a chunk.
func (s *storedSums) chunk(u *Unknown, k, chunk, chunks int, stored, is uint64) error {
	path := h5.Join("unknowns", u.Name)
	if stored != is {
		return s.differ(path, partOfField(k, chunk), stored, is)
	}
	s.verified[path] = max(s.verified[path], k*chunks+chunk+1)
	return nil
}

// A fieldReading follows how the fields of a file are read: parts of a chunk that come
// one after the other make up the chunk.
type fieldReading struct {
	mu sync.Mutex
	at map[[2]string]*partlyRead // by the file and the name of the field
}

// partlyRead is how far a field was read at a saved state.
type partlyRead struct {
	state int
	sum   chunkSum
}

func newFieldReading() *fieldReading { return &fieldReading{at: map[[2]string]*partlyRead{}} }

// check compares the chunks that are complete with a box that was read.
func (r *fieldReading) check(sums *storedSums, u *Unknown, k int, box grid.Box, cells []float64) error {
	size := u.Domain.Size
	if box.Empty() || box.Size[0] != size[0] || box.Size[1] != size[1] {
		return nil
	}
	stored, planes, err := sums.chunksOf(u, k)
	if err != nil || stored == nil {
		return err
	}
	if r == nil {
		r = newFieldReading()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	low, high := box.Low[2], box.High()[2]
	name := [2]string{sums.f.Name(), u.Name}
	p := r.at[name]
	if p == nil || p.state != k || p.sum.z != low || p.sum.planes != planes {
		low = (low + planes - 1) / planes * planes // where the next chunk begins
		p = &partlyRead{k, chunkSum{planes: planes, depth: size[2], z: low}}
		r.at[name] = p
	}
	if low >= high {
		return nil
	}
	return p.sum.add(cells[(low-box.Low[2])*size[0]*size[1]:], high-low, func(chunk int, crc uint64) error {
		return sums.chunk(u, k, chunk, len(stored), stored[chunk], crc)
	})
}

// partOfField names a chunk of a field in errors.
func partOfField(k, chunk int) string { return fmt.Sprintf("saved state %d, chunk %d", k, chunk) }
