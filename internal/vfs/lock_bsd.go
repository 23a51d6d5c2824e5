//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package vfs

import "syscall"

const (
	openNoFollow = syscall.O_NOFOLLOW
	syncsDirs    = true
)

func (f lockFile) tryLock() error {
	return lockError(f.flock(syscall.LOCK_EX | syscall.LOCK_NB))
}

func (f lockFile) unlock() error { return f.flock(syscall.LOCK_UN) }

func (f lockFile) flock(how int) error {
	return control(f.File, func(fd uintptr) error {
		return retry(func() error { return syscall.Flock(int(fd), how) })
	})
}
