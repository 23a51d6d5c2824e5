package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Cloned says how a file was cloned, and so what it cost.
type Cloned string

const (
	// Shared means that both files share their blocks until one is written to: the
	// cost does not grow with the size.
	Shared Cloned = "reflink"
	// CopiedInKernel means that the filesystem or the kernel copied.
	CopiedInKernel Cloned = "copy in the kernel"
	// Copied means that the bytes went through this process.
	Copied Cloned = "copy"
)

// Clone makes newname, which must not exist, a file with the content of oldname, by
// the cheapest way that the filesystem has. It does not sync. After a failure there is
// no newname.
func Clone(fsys FS, oldname, newname string, perm fs.FileMode) (how Cloned, err error) {
	from, err := fsys.OpenFile(oldname, os.O_RDONLY|NoWait, 0)
	if err != nil {
		return "", err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "clone", Path: oldname, Err: ErrNotRegular}
	}
	to, err := fsys.OpenFile(newname, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, to.Close())
		if err != nil {
			err = errors.Join(fmt.Errorf("clone %s to %s: %w", oldname, newname, err), fsys.Remove(newname))
		}
	}()
	return cloneContent(to, from, info.Size())
}

// copyContent is what is left where the kernel can't help.
func copyContent(to io.Writer, from io.Reader, size int64) (Cloned, error) {
	n, err := io.Copy(to, from)
	if err == nil && n != size {
		err = fmt.Errorf("%d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
	}
	return Copied, err
}
