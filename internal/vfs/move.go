package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Move is Rename whose error is to be trusted. A network filesystem may carry a rename out
// and then report a failure, of a request that it repeated or of an answer that got lost.
// So after an error Move looks where the thing is:
//
//   - at its new name: the rename was carried out, and Move returns nil. Like after any
//     rename, only SyncDir makes it durable.
//   - at its old name: nothing has happened, and Move returns the error. Nor has it where
//     Move can't look beforehand.
//   - anything else: the error wraps ErrUnclear too, and neither name should be touched.
func Move(fsys FS, oldname, newname string) error {
	return settle(fsys, oldname, newname, fsys.Rename)
}

// MoveNoReplace is RenameNoReplace where the filesystem has it. Elsewhere it looks
// first and then renames, which is only safe where nobody else makes newname: the
// caller holds a lock that says so. Its error is to be trusted as that of Move.
func MoveNoReplace(fsys FS, oldname, newname string) error {
	return settle(fsys, oldname, newname, func(oldname, newname string) error {
		err := fsys.RenameNoReplace(oldname, newname)
		if !errors.Is(err, ErrUnsupported) {
			return err
		}
		exists, err := Exists(fsys, newname)
		if err != nil {
			return err
		}
		if exists {
			return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: fs.ErrExist}
		}
		return fsys.Rename(oldname, newname)
	})
}

func settle(fsys FS, oldname, newname string, rename func(oldname, newname string) error) error {
	moved, err := fsys.Lstat(oldname)
	if errors.Is(err, fs.ErrNotExist) {
		return rename(oldname, newname)
	}
	if err != nil {
		return err
	}
	if err = rename(oldname, newname); err == nil {
		return nil
	}
	if old, lerr := fsys.Lstat(oldname); lerr == nil && alike(moved, old) {
		return err
	}
	if there, lerr := fsys.Lstat(newname); lerr == nil && alike(moved, there) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnclear, err)
}

// alike reports whether two looks at names saw one thing. A filesystem without lasting
// inode numbers has times at least.
func alike(a, b fs.FileInfo) bool {
	return SameFile(a, b) || a.Mode() == b.Mode() && a.Size() == b.Size() &&
		a.ModTime().Equal(b.ModTime()) && !a.ModTime().IsZero()
}

// SameFile is os.SameFile for what any FS returns.
func SameFile(a, b fs.FileInfo) bool {
	if os.SameFile(a, b) {
		return true
	}
	x, ok := a.Sys().(*inode)
	y, both := b.Sys().(*inode)
	return ok && both && x == y
}
