package h5

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

var (
	// ErrUnsupported says that the program was built without the library.
	ErrUnsupported = fmt.Errorf("built without HDF5 (build with the tag hdf5): %w", errors.ErrUnsupported)

	// ErrFormat says that the file is no HDF5 file, or a damaged one.
	ErrFormat = errors.New("not a usable HDF5 file")

	// ErrKind says that the object is none of the kind that was asked for, such
	// as a group in place of a dataset.
	ErrKind = errors.New("wrong kind of object")

	// ErrType says that elements have another type than was asked for.
	ErrType = errors.New("wrong type")

	// ErrShape says that rank, extent or the number of elements do not fit.
	ErrShape = errors.New("wrong shape")

	// ErrLink says that a link leads to another file, to itself, or back up.
	ErrLink = errors.New("refused link")

	// ErrTooLarge says that something declares more data than the file can hold,
	// or than is read at once.
	ErrTooLarge = errors.New("declared too large")

	// ErrName says that a path or the name of an attribute is not allowed.
	ErrName = errors.New("bad name")

	// ErrText says that a string can't be stored: it has a NUL or is not UTF-8.
	ErrText = errors.New("bad text")

	// ErrShort says that a file on disk is shorter than what was written to it.
	ErrShort = errors.New("file is shorter than what was written")
)

func init() {
	sentinel.RegisterAll("h5", map[string]error{
		"ErrUnsupported": ErrUnsupported,
		"ErrFormat":      ErrFormat,
		"ErrKind":        ErrKind,
		"ErrType":        ErrType,
		"ErrShape":       ErrShape,
		"ErrLink":        ErrLink,
		"ErrTooLarge":    ErrTooLarge,
		"ErrName":        ErrName,
		"ErrText":        ErrText,
		"ErrShort":       ErrShort,
	})
}

// An Error is a call that failed.
type Error struct {
	Op        string // what was tried, such as "read"
	File      string
	Object    string // path in the file, "" where it is the file as a whole
	Attribute string // "" for the object itself
	Err       error
}

// Error gives the operation, the file, the object and the cause.
func (e *Error) Error() string {
	s := e.Op + " " + e.File
	if e.Object != "" {
		s += fmt.Sprintf(": %s", e.Object)
	}
	if e.Attribute != "" {
		s += fmt.Sprintf(": attribute %q", e.Attribute)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// A LibraryError is what the library said when one of its calls failed.
type LibraryError struct {
	Call  string        // such as H5Dread
	Text  string        // from the call inwards
	Errno syscall.Errno // the system's, 0 where it had no part
}

// Error gives the call and the library's words.
func (e *LibraryError) Error() string { return e.Call + ": " + e.Text }

// Unwrap gives the errno, if there is one.
func (e *LibraryError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}
