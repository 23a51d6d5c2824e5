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

// in is an error about an object of a file.
func in(file, object string, sentinel error, format string, args ...any) error {
	if object != "" {
		file += ": " + object
	}
	return fmt.Errorf("%s: %w: %s", file, sentinel, fmt.Sprintf(format, args...))
}
