//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package vfs

const (
	openNoFollow = 0

	// NoWait is 0: there are no FIFOs.
	NoWait = 0
)

func (lockFile) tryLock() error { return ErrNoLocks }

func (lockFile) unlock() error { return nil }
