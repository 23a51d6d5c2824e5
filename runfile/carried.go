package runfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// hashesByAttribute of the group settings says whose the hashes in it are, if they are not
// this package's: these are never computed again, whatever file they come to be in.
const hashesByAttribute = "hashes_by"

const (
	// unknownWriter is the one of a file that doesn't say by whom it is.
	unknownWriter = "unknown"
	longestWriter = 256
)

// carried is what a file has beside the records that were read of it, and what goes with
// them into the next file.
type carried struct {
	settings record.Record
	hashesBy string          // whose the hashes of the settings are, empty for ours
	lists    map[string]bool // paths of lists of records that have no kind
	anyKeys  bool            // some key is one that no record of ours has
}

// hashWriter returns whose the hashes of the settings in a file are, empty for ours.
func hashWriter(f *h5.File, r root) (string, error) {
	path, name := "settings", hashesByAttribute
	if !r.ours {
		path, name = "/", writerAttribute
	}
	has, err := f.HasAttribute(path, name)
	if err != nil {
		return "", err
	}
	if !has && r.ours {
		return "", nil
	}
	by := ""
	if has {
		by, err = f.AttributeString(path, name)
		if err != nil && !errors.Is(err, h5.ErrType) && !errors.Is(err, h5.ErrShape) {
			return "", err
		}
	}
	if _, err := record.ValueOf(by); err != nil || by == "" || len(by) > longestWriter {
		by = unknownWriter
	}
	return by, nil
}

// readCarried reads a record, and notes what the next file needs to have it as it is.
func (c *carried) read(f *h5.File, path string) (record.Record, error) {
	r := recordReader{file: f, left: maxRecordBytes, lists: c.lists}
	rec, err := r.read(path)
	c.lists = r.lists
	c.anyKeys = c.anyKeys || rec.Writable() != nil
	return rec, err
}

// readSettingsAndMore reads the record of a run, and what goes with it.
func readSettingsAndMore(f *h5.File, r root) (*carried, error) {
	c := &carried{}
	var err error
	if c.settings, err = c.read(f, "settings"); err != nil {
		return nil, err
	}
	if err := r.sums.settings(c.settings); err != nil {
		return nil, err
	}
	c.hashesBy, err = hashWriter(f, r)
	return c, err
}

// check reports whether a record can be written. Keys that no record of ours has are
// written if they were read.
func (c *carried) check(r record.Record) error {
	if c != nil && c.anyKeys {
		return nil
	}
	return r.Writable()
}

// write writes a record, with nil as writeRecord does.
func (c *carried) write(f *h5.File, path string, r record.Record) error {
	if c == nil {
		return writeRecord(f, path, r)
	}
	return writeRecordAs(f, path, r, c.lists)
}

// writeSettings writes the record of a run, and whose its hashes are if they were read
// and are not ours.
func (c *carried) writeSettings(f *h5.File, settings record.Record) error {
	if err := c.write(f, "settings", settings); err != nil {
		return err
	}
	if c == nil || c.hashesBy == "" || !sameEntries(settings, c.settings, "hashes", "setup_hash") {
		return nil
	}
	return f.SetAttributeString("settings", hashesByAttribute, c.hashesBy)
}

// sameEntries reports whether two records have the same values of keys, or both none.
func sameEntries(a, b record.Record, keys ...string) bool {
	for _, key := range keys {
		va, errA := a.Get(key)
		vb, errB := b.Get(key)
		if (errA == nil) != (errB == nil) || errA == nil && !va.Equal(vb) {
			return false
		}
	}
	return true
}

// rootObjects are those that a file of the format has in its root, dimension scales apart.
var rootObjects = []string{"settings", "layout", "time", "unknowns", statisticsGroup, updatesGroup, nonFiniteGroup, "checksums"}

// tellLeftOut warns of what an output of another writer has and a solution has no place
// for: objects in the root, and unknowns that the layout doesn't have.
func tellLeftOut(f *h5.File, r root, l *Layout, warn func(string)) error {
	if r.ours {
		return nil
	}
	entries, err := f.List("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(rootObjects, e.Name) {
			continue
		}
		if e.Kind == h5.Dataset {
			// A dimension scale is made anew where the file needs it.
			if scale, err := f.HasAttribute(e.Name, "CLASS"); err != nil || scale {
				continue
			}
		}
		warn(fmt.Sprintf("%s: %q is left out: the format has no such object", f.Name(), e.Name))
	}
	if entries, err = members(f, "unknowns"); err != nil {
		return err
	}
	for _, e := range entries {
		if l.Unknown(e.Name) == nil {
			warn(fmt.Sprintf("%s: unknown %q is left out: the layout has none of that name", f.Name(), e.Name))
		}
	}
	return nil
}
