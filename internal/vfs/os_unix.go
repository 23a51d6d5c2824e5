//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
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
