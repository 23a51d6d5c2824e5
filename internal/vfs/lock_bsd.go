//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package vfs

import (
	"errors"
	"fmt"
	"syscall"
)

const openNoFollow = syscall.O_NOFOLLOW

func (f lockFile) tryLock() error {
	err := f.flock(syscall.LOCK_EX | syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EINVAL), errors.Is(err, ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrNoLocks, err)
	}
	return err
}

func (f lockFile) unlock() error { return f.flock(syscall.LOCK_UN) }

func (f lockFile) flock(how int) error {
	return control(f.File, func(fd uintptr) error {
		return retry(func() error { return syscall.Flock(int(fd), how) })
	})
}
