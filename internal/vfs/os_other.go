//go:build !linux

package vfs

import (
	"io/fs"
	"os"
)

const openDirectory = 0

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

func allocate(*os.File, int64) error { return ErrUnsupported }

func startWriteBack(*os.File, int64, int64) {}

func forget(*os.File) {}
