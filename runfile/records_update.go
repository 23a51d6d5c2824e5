package runfile

import (
	"slices"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// updateRecord makes a group that is a record another one. Values of the same type and
// shape, and texts that take no more bytes than are stored, are written in the place of the
// old ones, so that the file doesn't grow.
func updateRecord(f *h5.File, path string, r record.Record) error {
	keys := r.Keys()
	return updateMembers(f, path, keys, func(i int, kind h5.Kind) (bool, error) {
		v, err := r.Get(keys[i])
		if err != nil {
			return false, err
		}
		return updateValue(f, h5.Join(path, keys[i]), kind, v)
	}, func(i int) error {
		v, err := r.Get(keys[i])
		if err != nil {
			return err
		}
		return writeValue(f, h5.Join(path, keys[i]), v)
	})
}

// updateMembers makes a group have members of some names, in this order. update is called
// for those that the group has, and reports whether the member could become what it is to
// be; it may have changed it otherwise. From the first other one on all are removed, and
// write makes them anew, so that they keep their order.
func updateMembers(f *h5.File, group string, names []string, update func(i int, kind h5.Kind) (fits bool, err error), write func(i int) error) error {
	entries, err := f.List(group)
	if err != nil {
		return err
	}
	same := 0
	for ; same < min(len(entries), len(names)) && entries[same].Name == names[same]; same++ {
		fits, err := update(same, entries[same].Kind)
		if err != nil {
			return err
		}
		if !fits {
			break
		}
	}
	for _, e := range entries[same:] {
		if err := f.Unlink(h5.Join(group, e.Name)); err != nil {
			return err
		}
	}
	for i := same; i < len(names); i++ {
		if err := write(i); err != nil {
			return err
		}
	}
	return nil
}

// updateValue makes an object of a kind another value. It reports false where the object
// can't be that; some of it may have changed then.
func updateValue(f *h5.File, path string, kind h5.Kind, value record.Value) (fits bool, err error) {
	reader := recordReader{file: f}
	is := func(want string) (bool, error) {
		if kind != h5.Group {
			return false, nil
		}
		is, err := reader.kind(path)
		return is == want, err
	}
	switch v := value.Any().(type) {
	case record.Record:
		if ok, err := is(kindRecord); err != nil || !ok {
			return false, err
		}
		return true, updateRecord(f, path, v)
	case []record.Record:
		if ok, err := is(kindRecords); err != nil || !ok {
			return false, err
		}
		return updateRecords(f, path, v)
	case []record.Array:
		if ok, err := is(kindArrays); err != nil || !ok {
			return false, err
		}
		entries, err := f.List(path)
		if err != nil || len(entries) != len(v) {
			return false, err
		}
		for i, a := range v {
			if name := strconv.Itoa(i + 1); entries[i].Name != name || entries[i].Kind != h5.Dataset {
				return false, nil
			}
			if fits, err := storeArray(f, h5.Join(path, entries[i].Name), a, true); err != nil || !fits {
				return false, err
			}
		}
		return true, nil
	}
	if kind != h5.Dataset {
		return false, nil
	}
	return storePlain(f, path, value, true)
}

// updateRecords is updateValue for a list of records, which keeps their number and names.
func updateRecords(f *h5.File, path string, list []record.Record) (fits bool, err error) {
	entries, err := f.List(path)
	if err != nil || len(entries) != len(list)+1 || entries[len(list)].Name != orderName {
		return false, err
	}
	for i, r := range list {
		name, err := r.Text("name")
		if err != nil {
			return false, err
		}
		if entries[i].Name != name || entries[i].Kind != h5.Group {
			return false, nil
		}
	}
	for i, r := range list {
		if err := updateRecord(f, h5.Join(path, entries[i].Name), r); err != nil {
			return false, err
		}
	}
	return true, nil
}

// sameButSegment reports whether two records of settings are the same, with their keys in
// the same order, except the record of the segment.
func sameButSegment(a, b record.Record) bool {
	if !slices.Equal(a.Keys(), b.Keys()) {
		return false
	}
	for key, v := range a.All() {
		if key == segmentSection {
			continue
		}
		if w, err := b.Get(key); err != nil || !v.Equal(w) {
			return false
		}
	}
	return true
}

// segmentSection is the section of the settings that changes while a session goes on.
const segmentSection = "segment"
