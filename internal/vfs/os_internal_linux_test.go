package vfs

import (
	"bufio"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestNoReplaceError(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"d", "d/e", "x"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("d/e", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		err         error
		from, to    string
		unsupported bool
	}{
		{"success", nil, "d", "y", false},
		{"the target exists", syscall.EEXIST, "d", "x", false},
		{"the filesystem does not know the flag", syscall.EINVAL, "d", "y", true},
		{"nor for a move to another directory", syscall.EINVAL, "d", "x/y", true},
		{"nor for a file", syscall.EINVAL, "gone", "y", true},
		{"the kernel does not know the call", syscall.ENOSYS, "d", "y", true},
		{"a directory into itself", syscall.EINVAL, "d", "d/y", false},
		{"a directory far into itself", syscall.EINVAL, "d", "d/e/y", false},
		{"a directory into itself by a link", syscall.EINVAL, "d", "l/y", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := noReplaceError(filepath.Join(dir, test.from), filepath.Join(dir, test.to), test.err)
			if errors.Is(err, ErrUnsupported) != test.unsupported || !errors.Is(err, test.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLockError(t *testing.T) {
	tests := []struct {
		errno syscall.Errno
		want  error
	}{
		{syscall.EAGAIN, ErrLocked},
		{syscall.EACCES, ErrLocked},
		{syscall.ENOLCK, ErrNoLocks},
		{syscall.EINVAL, ErrNoLocks},
		{syscall.ENOSYS, ErrNoLocks},
		{syscall.EOPNOTSUPP, ErrNoLocks},
		{syscall.EIO, nil},
	}
	for _, test := range tests {
		t.Run(test.errno.Error(), func(t *testing.T) {
			err := lockError(test.errno)
			if !errors.Is(err, test.errno) {
				t.Errorf("%v lost the errno", err)
			}
			for _, sentinel := range []error{ErrLocked, ErrNoLocks} {
				if errors.Is(err, sentinel) != (sentinel == test.want) {
					t.Errorf("%v: is %v: %t", err, sentinel, errors.Is(err, sentinel))
				}
			}
		})
	}
	if err := lockError(nil); err != nil {
		t.Errorf("success became %v", err)
	}
}

// The fallback excludes as the first choice does.
func TestFlock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() lockFile {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return lockFile{File: f}
	}
	a, b := open(), open()
	const try = syscall.LOCK_EX | syscall.LOCK_NB
	if err := a.flock(try); err != nil {
		t.Fatal(err)
	}
	if err := lockError(b.flock(try)); !errors.Is(err, ErrLocked) {
		t.Errorf("second handle: %v, want %v", err, ErrLocked)
	}
	if err := a.flock(syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := b.flock(try); err != nil {
		t.Errorf("second handle after the unlock: %v", err)
	}
}

func TestInterruptedAllocationEnds(t *testing.T) {
	const size = 100<<20 + 5
	tests := []struct {
		name    string
		fits    int64 // larger calls are interrupted
		largest int64 // call that succeeds
	}{
		{"never interrupted", size, size},
		{"interrupted above 10 MiB", 10 << 20, 10 << 20},
		{"interrupted down to the smallest piece", smallestPiece, smallestPiece},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var covered, largest int64
			err := inPieces(size, func(off, n int64) error {
				if off != covered || n <= 0 {
					t.Fatalf("call for %d bytes at %d, after %d bytes", n, off, covered)
				}
				if n > test.fits {
					return syscall.EINTR
				}
				covered += n
				largest = max(largest, n)
				return nil
			})
			if err != nil || covered != size || largest > test.largest {
				t.Errorf("error %v, covered %d of %d, largest piece %d", err, covered, size, largest)
			}
		})
	}
	t.Run("small ones are repeated whole", func(t *testing.T) {
		var calls []int64
		err := inPieces(100, func(off, n int64) error {
			if calls = append(calls, n); len(calls) < 5 {
				return syscall.EINTR
			}
			return nil
		})
		if err != nil || !slices.Equal(calls, []int64{100, 100, 100, 100, 100}) {
			t.Errorf("error %v, calls %v", err, calls)
		}
	})
	t.Run("other errors end it", func(t *testing.T) {
		if err := inPieces(100, func(int64, int64) error { return syscall.ENOSPC }); err != syscall.ENOSPC {
			t.Errorf("error %v", err)
		}
	})
}

func TestFindMountType(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime - ext4 /dev/root rw
25 22 0:5 / /dev rw,nosuid shared:2 - devtmpfs devtmpfs rw
30 22 8:1 /a\040b /mnt/old rw shared:7 master:1 - ext3 /dev/sda1 rw,errors=continue
broken line
31 22 8:2 / /mnt/x rw -
`
	for device, want := range map[string]string{"254:0": "ext4", "8:1": "ext3", "8:2": "", "9:9": ""} {
		if got := findMountType(bufio.NewScanner(strings.NewReader(table)), device); got != want {
			t.Errorf("device %s: %q, want %q", device, got, want)
		}
	}
}

func TestBytesOf(t *testing.T) {
	tests := []struct {
		blocks, unit uint64
		want         int64
	}{
		{0, 4096, 0},
		{3, 4096, 12288},
		{7, 0, 0},
		{math.MaxUint64, 4096, math.MaxInt64},
		{math.MaxInt64, 1, math.MaxInt64},
		{1 << 62, 2, math.MaxInt64},
	}
	for _, test := range tests {
		if got := bytesOf(test.blocks, test.unit); got != test.want {
			t.Errorf("bytesOf(%d, %d) = %d, want %d", test.blocks, test.unit, got, test.want)
		}
	}
}
