//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package vfs

import (
	"io/fs"
	"os"
)

const (
	openNoFollow = 0
	syncsDirs    = true

	// NoWait is 0: no FIFO is waited for here.
	NoWait = 0
)

func openLock(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

func (lockFile) tryLock() error { return ErrNoLocks }

func (lockFile) unlock() error { return nil }

func share(*os.File) {}
