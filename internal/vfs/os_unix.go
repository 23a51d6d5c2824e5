//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

// control runs call on the descriptor of f, which stays open meanwhile.
func control(f *os.File, call func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	if err := conn.Control(func(fd uintptr) { callErr = call(fd) }); err != nil {
		return fs.ErrClosed // the only reason there is
	}
	return callErr
}

// lockError says what the failure of a lock call means. EWOULDBLOCK is EAGAIN.
func lockError(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EINVAL), errors.Is(err, ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrNoLocks, err)
	}
	return err
}

// share makes a new lock file one that all who may write its directory can lock,
// whatever the umask, for it may outlive its process. A failure only means that they
// have to replace it.
func share(f *os.File) {
	dir, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	const write, readWrite = 0o2, 0o6
	mode := info.Mode().Perm()
	if dir.Mode().Perm()&(write<<3) != 0 {
		mode |= readWrite << 3
		parent, ok := dir.Sys().(*syscall.Stat_t)
		own, known := info.Sys().(*syscall.Stat_t)
		if ok && known && parent.Gid != own.Gid && f.Chown(-1, int(parent.Gid)) != nil {
			mode |= readWrite // those of the directory's group are others to this file
		}
	}
	if dir.Mode().Perm()&write != 0 {
		mode |= readWrite
	}
	if mode != info.Mode().Perm() {
		_ = f.Chmod(mode)
	}
}
