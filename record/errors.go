package record

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

// What a caller may want to tell apart, with errors.Is.
var (
	// ErrMissing: a record has nothing at a path.
	ErrMissing = errors.New("missing")
	// ErrType: what is at a path is of another type than the one asked for.
	ErrType = errors.New("wrong type")

	// ErrKey: a key, or the name of an entry of a list of records, is not one
	// that a record may have. See [CheckKey].
	ErrKey = errors.New("invalid key")
	// ErrDuplicate: a record would have a key twice, or a list of records a name.
	ErrDuplicate = errors.New("duplicate")
	// ErrValue: a value is not one that a record can hold.
	ErrValue = errors.New("invalid value")
	// ErrJSON: a text is not the JSON view of a record.
	ErrJSON = errors.New("not the JSON view of a record")
)

func init() {
	sentinel.RegisterAll("record", map[string]error{
		"ErrMissing":   ErrMissing,
		"ErrType":      ErrType,
		"ErrKey":       ErrKey,
		"ErrDuplicate": ErrDuplicate,
		"ErrValue":     ErrValue,
		"ErrJSON":      ErrJSON,
	})
}

// A PathError says that a record doesn't have what was asked of it. It matches
// [ErrMissing] or [ErrType].
type PathError struct {
	Path string // what was asked for
	At   string // the part of Path that is missing or of the wrong type
	Want string // what was wanted, "a float"; empty if nothing is there
	Have string // what is there, `the text "tight"`; empty if nothing is
	Err  error  // ErrMissing or ErrType
}

func (e *PathError) Error() string {
	at := ""
	if e.At != e.Path {
		at = " (at " + quoteKey(e.At) + ")"
	}
	if errors.Is(e.Err, ErrMissing) {
		return fmt.Sprintf("record entry %s%s: missing", quoteKey(e.Path), at)
	}
	return fmt.Sprintf("record entry %s%s: is %s, not %s", quoteKey(e.Path), at, e.Have, e.Want)
}

func (e *PathError) Unwrap() error { return e.Err }

// A BuildError says why an entry can't be part of a record. It matches
// [ErrKey], [ErrDuplicate] or [ErrValue].
type BuildError struct {
	Path   string // of the entry, from the record that was being built
	Value  string // the refused value, shortened; empty where it plays no part
	Reason string
	Err    error // ErrKey, ErrDuplicate or ErrValue
}

func (e *BuildError) Error() string {
	value := ""
	if e.Value != "" {
		value = " = " + e.Value
	}
	return fmt.Sprintf("build record: entry %s%s: %v: %s", quoteKey(e.Path), value, e.Err, e.Reason)
}

func (e *BuildError) Unwrap() error { return e.Err }

// A fault says why a value is none of a record, without the path that only a
// builder knows.
type fault struct {
	value, reason string
	err           error
}

func faultf(err error, format string, args ...any) error {
	return &fault{reason: fmt.Sprintf(format, args...), err: err}
}

func (f *fault) Error() string {
	value := ""
	if f.value != "" {
		value = f.value + ": "
	}
	return fmt.Sprintf("%v: %s%s", f.err, value, f.reason)
}

func (f *fault) Unwrap() error { return f.err }

// quoteKey returns a key or path for a message: as it is, unless it is empty or
// holds something that a reader couldn't see or that a terminal would obey.
func quoteKey(key string) string {
	if key == "" {
		return `""`
	}
	for _, r := range key {
		if r == '"' || r == '\\' || r == ':' || r == ' ' || !strconv.IsPrint(r) {
			return strconv.Quote(key)
		}
	}
	return key
}
