//go:build !linux

package vfs

import (
	"errors"
	"io/fs"
	"os"
)

const openDirectory = 0

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

// rename is as close to rename(2) as package os has it: it refuses to replace an
// empty directory.
func rename(oldname, newname string) error {
	err := os.Rename(oldname, newname)
	if le := (*os.LinkError)(nil); errors.As(err, &le) {
		return le.Err
	}
	return err
}

func renameNoReplace(_, _ string) error { return ErrUnsupported }

func allocate(*os.File, int64) error { return ErrUnsupported }

func startWriteBack(*os.File, int64, int64) {}

func usage(string) (Usage, error) { return Usage{}, ErrUnsupported }
