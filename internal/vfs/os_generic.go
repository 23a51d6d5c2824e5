//go:build !(linux || darwin || freebsd || windows)

package vfs

import (
	"errors"
	"os"
)

// rename is as close to rename(2) as package os has it: it refuses to replace an
// empty directory.
func rename(oldname, newname string) error {
	err := os.Rename(oldname, newname)
	if le := (*os.LinkError)(nil); errors.As(err, &le) {
		return le.Err
	}
	return err
}

func usage(string) (Usage, error) { return Usage{}, ErrUnsupported }
