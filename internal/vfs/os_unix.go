//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// NoWait is a flag of [FS.OpenFile] with which the call doesn't wait for the other end
// of a FIFO. It is 0 on systems that have none.
const NoWait = syscall.O_NONBLOCK

func openLock(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

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

// bytesOf is a product that saturates: some network filesystems report absurd
// numbers of blocks.
func bytesOf(blocks, unit uint64) int64 {
	if unit != 0 && blocks > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return int64(blocks * unit)
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
