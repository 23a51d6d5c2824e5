package runfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

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
