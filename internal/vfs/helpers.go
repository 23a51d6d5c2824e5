package vfs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RemoveAll removes name and everything below it. A link is removed, never
// followed. A name that does not exist is no error, and neither is an entry
// that someone else removes meanwhile. It goes on after a failure, removes what
// it can, and returns the first error.
//
// The walk is by path: it is meant for trees that the caller owns, not for ones
// in which an adversary swaps directories for links during the walk.
func RemoveAll(fsys FS, name string) error {
	info, err := fsys.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var first error
	if info.IsDir() {
		entries, err := fsys.ReadDir(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			first = err
		}
		for _, e := range entries {
			// Not filepath.Join: it would resolve ".." without the links.
			if err := RemoveAll(fsys, name+string(filepath.Separator)+e.Name()); err != nil && first == nil {
				first = err
			}
		}
	}
	err = fsys.Remove(name)
	if first != nil {
		return first
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadFile returns the content of a regular file of at most limit bytes. The
// error wraps ErrTooLarge for a longer one, whatever size it claims to have, and
// ErrNotRegular for anything else, which is not waited for.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	// A FIFO would block in open without NoWait.
	f, err := fsys.OpenFile(name, os.O_RDONLY|NoWait, 0)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f, name, limit)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return data, nil
}

func readAll(f File, name string, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	size := info.Size()
	if size <= limit {
		// One byte beyond the claimed size finds the end without growing.
		data := make([]byte, 0, min(size, limit)+1)
		for {
			n, err := f.Read(data[len(data):cap(data)])
			data = data[:len(data)+n]
			if int64(len(data)) > limit {
				break
			}
			if err == io.EOF {
				return data, nil
			}
			if err != nil {
				return nil, err
			}
			if len(data) == cap(data) {
				data = append(data, 0)[:len(data)]
			}
		}
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
}

// WriteFile creates name, which must not exist in any form, with the given
// content, and syncs it if sync is set. Nothing is removed after a failure: a
// file with part of the content may be there.
func WriteFile(fsys FS, name string, data []byte, perm fs.FileMode, sync bool) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// IsFileName reports whether name can be that of an entry of a directory, as far as the
// system's rules for paths go. On Windows it can't with a backslash or a colon, which
// lead elsewhere, nor as the name of a device; a filesystem may refuse more.
func IsFileName(name string) bool {
	separator := func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }
	return name != "." && filepath.IsLocal(name) && !strings.ContainsFunc(name, separator)
}

// Under returns a path that isn't absolute as it is below a directory, which is, and
// changes nothing else of it: where ".." leads after a link, only the system knows. An
// empty path stays empty. On Windows, one that begins at the root of a drive or names a
// drive doesn't lie below the directory.
func Under(dir, path string) string {
	switch {
	case path == "" || filepath.IsAbs(path):
		return path
	case filepath.VolumeName(path) != "": // "C:a": the drive has a directory of its own
		if absolute, err := filepath.Abs(path); err == nil {
			return absolute
		}
		return path
	case os.IsPathSeparator(path[0]):
		return filepath.VolumeName(dir) + path
	}
	return dir + string(filepath.Separator) + path
}

// Exists reports whether name exists in any form: a dangling link does.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// MissingDir is the highest directory above name that doesn't exist, "" if all do.
func MissingDir(fsys FS, name string) (missing string) {
	for dir := filepath.Dir(filepath.Clean(name)); dir != missing; dir = filepath.Dir(dir) {
		if _, err := fsys.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = dir
	}
	return missing
}

// NoDir is an error of making name: err, or one that wraps it and names the directory
// whose absence is the reason, or the link to nothing in its place.
func NoDir(fsys FS, name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	missing := MissingDir(fsys, name)
	if link := CheckLink(fsys, filepath.Dir(cmp.Or(missing, filepath.Clean(name)))); link != nil {
		return link
	}
	if missing != "" {
		return &noDir{missing, err}
	}
	return err
}

type noDir struct {
	dir string
	err error
}

func (e *noDir) Error() string { return "there is no directory " + e.dir }
func (e *noDir) Unwrap() error { return e.err }

// CheckLink returns a [DeadLink] if name is a link to nothing. It wraps fs.ErrNotExist, and
// says how that may have come about and be mended.
func CheckLink(fsys FS, name string) error {
	info, err := fsys.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	if _, err := fsys.Stat(name); errors.Is(err, fs.ErrNotExist) {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // the name is said
		}
		return &DeadLink{name, err}
	}
	return nil
}

// ReadFull fills p from an offset of a file on. The end of the file is an error, which wraps
// io.ErrUnexpectedEOF.
func ReadFull(f io.ReaderAt, p []byte, offset int64) error {
	n, err := f.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("the file ends at byte %d: %w", offset+int64(n), io.ErrUnexpectedEOF)
	}
	return err
}

// MakeDir makes a directory with its parents, each synced into its own parent. For the last
// one on the way that exists it calls exists, unless that is nil.
func MakeDir(fsys FS, dir string, exists func(dir string)) error {
	info, err := fsys.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case err == nil:
		if exists != nil {
			exists(dir)
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeDir(fsys, parent, exists); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := CheckLink(fsys, dir); err != nil {
		return err
	}
	return fsys.SyncDir(parent)
}

// A DeadLink is the error of a link to nothing.
type DeadLink struct {
	Name string
	Err  error
}

// Error returns the name and the reason.
func (e *DeadLink) Error() string { return e.Name + " " + e.Reason() }

// Reason says what is wrong with the name, which the caller puts before it.
func (e *DeadLink) Reason() string {
	return fmt.Sprintf("is a link to nothing: its target may have been purged, or be on a filesystem that isn't mounted; bring it back, or remove the link (%v)", e.Err)
}

// Unwrap returns the error of the system.
func (e *DeadLink) Unwrap() error { return e.Err }
