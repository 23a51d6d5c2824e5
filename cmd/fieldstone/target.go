package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A target is a file that a command makes. It has its name only when it is whole.
type target struct {
	path      string
	overwrite bool
	tmp       string // what it is called before
}

// newTarget refuses a path at which no file can be made: where there is one already
// that may not be replaced, or that is one of the inputs.
func newTarget(path string, overwrite bool, inputs []string) (*target, error) {
	t := &target{path: path, overwrite: overwrite, tmp: fmt.Sprintf("%s.%016x.tmp", path, rand.Uint64())}
	if missing := vfs.MissingDir(vfs.OS, path); missing != "" {
		return nil, fmt.Errorf("there is no directory %s", missing)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("directory %s: %w", filepath.Dir(path), plainError(err))
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", filepath.Dir(path))
	}
	there, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		return nil, plainError(err)
	case !there.Mode().IsRegular():
		return nil, errors.New("exists, and is no regular file")
	}
	for _, input := range inputs {
		if info, err := os.Stat(input); err == nil && os.SameFile(info, there) {
			return nil, fmt.Errorf("is one of the files that are read (%s)", input)
		}
	}
	if !overwrite {
		return nil, errors.New("exists (--overwrite replaces it)")
	}
	return t, nil
}

// plainError leaves out the path, which the caller names.
func plainError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// publish gives the file its name, durably. Its content is on the disk already.
func (t *target) publish() error {
	var err error
	if t.overwrite {
		err = vfs.Move(vfs.OS, t.tmp, t.path)
	} else {
		err = vfs.MoveNoReplace(vfs.OS, t.tmp, t.path)
	}
	if err != nil {
		return err
	}
	return vfs.OS.SyncDir(filepath.Dir(t.path))
}

// discard removes what was begun, after a failure.
func (t *target) discard(failure error) error {
	if err := os.Remove(t.tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(failure, err)
	}
	return failure
}
