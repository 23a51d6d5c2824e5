package record

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// orderKey is the name of the dataset that lists the names of a list of records
// in a run file, so no key and no name may be it.
const orderKey = "order"

// MaxPath is the largest number of bytes of a key, and of the path of an entry in the
// records around it. A run file names objects by paths of up to 64 KiB, a part of which
// is the place of the record in it.
const MaxPath = 64<<10 - 256

// CheckKey tells whether a record may have the key, or an entry of a list of
// records the name: it is non-empty UTF-8 of at most [MaxPath] bytes without '/' and
// NUL, not ".", not "order" and not all ASCII digits. The error matches [ErrKey].
//
// A run file names objects by keys, which explains the rules: '/' separates
// names, NUL ends them, "." is the group itself; "order" lists the names of a list
// of records, and the members of a list of arrays are named by numbers.
func CheckKey(key string) error {
	if reason := keyFault(key, false); reason != "" {
		return &BuildError{Path: shorten(key), Reason: reason, Err: ErrKey}
	}
	return nil
}

// keyFault says what is wrong with a key; empty if nothing is.
func keyFault(key string, anyKey bool) string {
	switch {
	case key == "":
		return "it is empty"
	case len(key) > MaxPath:
		return tooLong(len(key))
	case !utf8.ValidString(key):
		return "it is not UTF-8"
	case strings.ContainsRune(key, '/'):
		return "it contains '/'"
	case strings.ContainsRune(key, 0):
		return "it contains NUL"
	case key == ".":
		return `"." is the group itself`
	case !anyKey && reserved(key):
		return strconv.Quote(key) + " is reserved for lists"
	}
	return ""
}

func tooLong(n int) string {
	return fmt.Sprintf("it has %d bytes, the limit is %d", n, MaxPath)
}

// shortenPath shortens the keys of a path that is too long for a message.
func shortenPath(path string) string {
	if len(path) <= 1<<10 {
		return path
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = shorten(part)
	}
	return strings.Join(parts, "/")
}

// reserved tells whether a run file uses the name within lists.
func reserved(key string) bool {
	return key == orderKey || strings.Trim(key, "0123456789") == ""
}
