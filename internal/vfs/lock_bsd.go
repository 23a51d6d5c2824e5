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
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	if err := conn.Control(func(fd uintptr) {
		for {
			if callErr = syscall.Flock(int(fd), how); callErr != syscall.EINTR {
				return
			}
		}
	}); err != nil {
		return err
	}
	return callErr
}
