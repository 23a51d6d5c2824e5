package vfs

import "golang.org/x/sys/unix"

// renameNoReplace fails with ENOTSUP, which is ErrUnsupported, where the filesystem does
// not know the flag.
func renameNoReplace(oldname, newname string) error {
	return retry(func() error { return unix.RenamexNp(oldname, newname, unix.RENAME_EXCL) })
}
