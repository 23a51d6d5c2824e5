package brick

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

var (
	// ErrLayout is in the chain of every error that says that the ranks' boxes
	// and sizes don't make up one array. The cause is a *[grid.GapError],
	// *[grid.OverlapError] or *[grid.OutsideError], or a text that names the
	// rank that disagrees.
	ErrLayout = errors.New("the ranks' boxes do not make up the array")

	// ErrDisagree is in the chain of errors that say that the ranks gave
	// different options to a plan or different files to a call.
	ErrDisagree = errors.New("the ranks disagree")

	// ErrClosed is in the chain of errors of a plan that was closed.
	ErrClosed = errors.New("the plan is closed")

	// ErrSize is in the chain of errors about a file of the wrong size.
	ErrSize = errors.New("wrong file size")

	// ErrReadBack is in the chain of the error that says that a file doesn't
	// hold what was written to it.
	ErrReadBack = errors.New("what was read back is not what was written")
)

func init() {
	comm.Register("brick.ErrLayout", ErrLayout)
	comm.Register("brick.ErrDisagree", ErrDisagree)
	comm.Register("brick.ErrClosed", ErrClosed)
	comm.Register("brick.ErrSize", ErrSize)
	comm.Register("brick.ErrReadBack", ErrReadBack)
}

// SizeError says that a file has not the size of the array, or that it is too short
// for the part that is to be read.
type SizeError struct {
	Path      string
	Got, Want int64
	Longer    bool // the file may be longer than Want
}

func (e *SizeError) Error() string {
	least := ""
	if e.Longer {
		least = "at least "
	}
	return fmt.Sprintf("%s has %d bytes: want %s%d", e.Path, e.Got, least, e.Want)
}

// Is makes errors.Is(err, ErrSize) hold, on every rank.
func (e *SizeError) Is(target error) bool { return target == ErrSize }

// layoutError names the ranks that a tiling error is about: its box numbers are
// ranks here.
func layoutError(err error) error {
	switch e := err.(type) {
	case *grid.OverlapError:
		return fmt.Errorf("%w: ranks %d and %d: %w", ErrLayout, e.A, e.B, err)
	case *grid.OutsideError:
		return fmt.Errorf("%w: rank %d: %w", ErrLayout, e.Index, err)
	}
	return fmt.Errorf("%w: %w", ErrLayout, err)
}

// job is one file, or a part of one, as the ranks agree on it.
type job struct {
	Name, Path string
	Within     bool
	Offset     int64 // of the array in the file, 0 unless Within
}

// place is where the job's array is, in errors.
func (j job) place() string {
	if j.Within {
		return fmt.Sprintf("byte %d of %q", j.Offset, j.Path)
	}
	return strconv.Quote(j.Path)
}

// called is the job's name in a log.
func (j job) called() string {
	if j.Name == "" {
		return j.Path
	}
	return j.Name
}

// named is the job's name with its file, for a call that nobody can look into.
func (j job) named() string {
	if j.Name == "" {
		return j.Path
	}
	return j.Name + " in " + j.Path
}

// label is the job's name in errors.
func (j job) label() string {
	if j.Name == "" {
		return strconv.Quote(j.Path)
	}
	return j.Name
}

// fail says what failed with which file: `write field "psi": open: permission
// denied`. The path is left out where the cause is about the job's own file (a part
// doesn't have one), and the system call where it is what the operation consists of.
func (j job) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*fs.PathError); ok && e.Path == j.Path && !j.Within {
		err = e.Err
		if e.Op != op {
			err = fmt.Errorf("%s: %w", e.Op, err)
		}
	}
	return fmt.Errorf("%s %s: %w", op, j.label(), err)
}

// also adds what failed after err, mostly a close, in one line.
func also(err, then error) error {
	switch {
	case then == nil:
		return err
	case err == nil:
		return then
	}
	return fmt.Errorf("%w (then %w)", err, then)
}

func cancelled(ctx context.Context) error { return waiting.Cancelled(ctx) }
