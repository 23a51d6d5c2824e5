package publish

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fieldstone-io/fieldstone/internal/excerpt"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// maxNameBytes is the longest name that Linux filesystems take.
const maxNameBytes = 255

// CheckID reports whether id can name a field of a bundle. An id becomes the
// file name fields/<id>.bin and a line of checksums.txt, so it must be
// non-empty UTF-8, must not be "." or "..", must not contain a slash, NUL or
// another control character, and with its suffix must not be longer than 255
// bytes. Everything else is allowed: spaces, a leading dot, a backslash (on the
// filesystems that bundles are written to it is a character like any other).
// Windows refuses more: a backslash, a colon, and the names of its devices.
// The error names the id.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New(`field id "": must not be empty`)
	case id == "." || id == "..":
		return fmt.Errorf("field id %q: is the name of a directory", id)
	case len(id)+len(fieldSuffix) > maxNameBytes:
		return fmt.Errorf("field id %q: %d bytes, at most %d fit into a file name", shorten(id), len(id), maxNameBytes-len(fieldSuffix))
	case !utf8.ValidString(id):
		return fmt.Errorf("field id %q: must be valid UTF-8", id)
	case strings.Contains(id, "/"):
		return fmt.Errorf("field id %q: must not contain a slash", id)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("field id %q: must not contain control characters", id)
	case !vfs.IsFileName(id + fieldSuffix):
		return fmt.Errorf("field id %q: this system has no file of that name", id)
	}
	return nil
}

// CheckIDs applies [CheckID] to each id, and refuses an id that is there twice.
func CheckIDs(ids []string) error {
	i, err := checkIDs(ids)
	if err != nil {
		return fmt.Errorf("field %d: %w", i, err)
	}
	return nil
}

// checkIDs also returns the index of the id that the error is about.
func checkIDs(ids []string) (int, error) {
	seen := make(map[string]int, len(ids))
	for i, id := range ids {
		if err := CheckID(id); err != nil {
			return i, err
		}
		if first, ok := seen[id]; ok {
			return i, fmt.Errorf("field id %q: given twice, as field %d and %d", id, first, i)
		}
		seen[id] = i
	}
	return 0, nil
}

// fieldPath returns the path of a field's file relative to the bundle, as
// checksums.txt has it.
func fieldPath(id string) string {
	return fieldsDir + "/" + id + fieldSuffix
}

// shorten keeps a hostile string from filling the log.
func shorten(s string) string { return excerpt.Of(s, 64, "...") }
