package runfile

import (
	"maps"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

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
