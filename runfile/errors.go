package runfile

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// Errors that a caller may want to tell apart, with errors.Is.
var (
	// ErrNoHDF5: the program was built without HDF5, so files of runs can neither be
	// written nor read.
	ErrNoHDF5 = h5.ErrUnsupported

	// ErrVersion: the file is of a format version that this package doesn't know.
	// The file may be perfectly good.
	ErrVersion = errors.New("format version not supported")

	// ErrTorn: the file lacks the mark that is written last, so its writer didn't
	// finish it.
	ErrTorn = errors.New("the file was not finished")

	// ErrNotRunFile: the file is an HDF5 file, but not one of a run.
	ErrNotRunFile = errors.New("not a file of a run")

	// ErrNotOutput: the file is a checkpoint, where an output file is wanted.
	ErrNotOutput = errors.New("not an output file")

	// ErrNotCheckpoint: the file is an output file, where a checkpoint is wanted.
	ErrNotCheckpoint = errors.New("not a checkpoint")

	// ErrMismatch: parts of the file, or of what was to be written, contradict each
	// other.
	ErrMismatch = errors.New("does not match")

	// ErrNoState: the file holds no saved state, or not the one that was asked for.
	ErrNoState = errors.New("no such saved state")

	// ErrInput: what the caller gave can't be written. Nothing was changed.
	ErrInput = errors.New("invalid input")
)

// A FileError is an error about a file of a run. The functions of this package that read,
// write and judge such files return it, within others that say what was being done, where
// the content of a file or a call of the HDF5 library is the reason: find it with
// [errors.As]. On ranks other than the one that met it, a [Session] has the text, the
// errno and the errors of this package that it wraps.
type FileError struct {
	File string
	// Object is the path of an object in the file, such as "unknowns/phi", and empty where
	// the error is about the file as a whole, or an attribute of its root.
	Object string
	// Err is the reason, without the file and the object. It wraps one of the errors of
	// this package, if one of them fits, or the system's.
	Err error
}

// Error returns the file, the object and the reason.
func (e *FileError) Error() string {
	if e.Object == "" {
		return e.File + ": " + e.Err.Error()
	}
	return e.File + ": " + e.Object + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }

// ofFile is an error about an object of a file.
func ofFile(file, object string, err error) error { return &FileError{file, object, err} }

// in is an error about an object of a file.
func in(file, object string, sentinel error, format string, args ...any) error {
	return ofFile(file, object, fmt.Errorf("%w: %s", sentinel, fmt.Sprintf(format, args...)))
}

// located makes sure that a [FileError] is found in an error: that of a call of the library
// names the file and the object in its own way. The text stays.
func located(err error) error {
	var e *h5.Error
	if err == nil || errors.As(err, new(*FileError)) || !errors.As(err, &e) {
		return err
	}
	object, cause := e.Object, e.Err
	if e.Attribute != "" {
		cause = fmt.Errorf("attribute %q: %w", e.Attribute, cause)
	}
	if object == "/" {
		object, cause = "", fmt.Errorf("/: %w", cause)
	}
	return &libraryError{err, &FileError{e.File, object, cause}}
}

// A libraryError is an error of the library as this package returns it.
type libraryError struct {
	error
	at *FileError
}

// Unwrap returns the error as it was.
func (e *libraryError) Unwrap() error { return e.error }

// As finds the FileError.
func (e *libraryError) As(target any) bool {
	to, ok := target.(**FileError)
	if ok {
		*to = e.at
	}
	return ok
}
