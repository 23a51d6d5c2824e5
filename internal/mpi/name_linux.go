//go:build mpi

package mpi

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxName leaves room for a suffix in the 256 bytes that OMPIO has for a name.
const maxName = 200

// libraryName gives a file a name that every library can open, and a function to
// be called when the file is closed. ROMIO takes whatever stands before a colon
// for the type of a filesystem, and OMPIO before version 5.0.10 ends the process
// when a path is longer than about 236 bytes. A file with such a path is opened by
// way of a descriptor of its directory, or, if the name itself is to blame, of its
// own. Where that can't be had the library gets the path and says what it likes.
func libraryName(path string) (name string, release func()) {
	release = func() {}
	if plain(path) {
		return path, release
	}
	via, rest := filepath.Dir(path), "/"+filepath.Base(path)
	if !plain(rest) {
		via, rest = path, ""
	}
	// O_PATH: whether the file may be read or written is for the library to ask.
	fd, err := unix.Open(via, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return path, release
	}
	// OMPIO names a semaphore after the last element and removes that of rank 0: a
	// high number is likely to be free, and so the same, on all ranks.
	if high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 512); err == nil {
		unix.Close(fd)
		fd = high
	}
	return fmt.Sprintf("/proc/self/fd/%d%s", fd, rest), func() { unix.Close(fd) }
}

func plain(path string) bool { return len(path) <= maxName && !strings.Contains(path, ":") }
