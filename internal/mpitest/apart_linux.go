package mpitest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// goApart mounts the directory that this process is to have of its own, if it is the
// rank, before MPI begins: it executes itself again in a mount namespace. Where that
// can't be had it goes on without.
func goApart() {
	rank, name, ok := strings.Cut(os.Getenv(envApart), " ")
	if n, err := strconv.Atoi(rank); !ok || err != nil || n != processRank() {
		return
	}
	runtime.LockOSThread() // the namespace is the thread's until the program is executed
	self, err := os.Executable()
	dir := filepath.Join(os.Getenv(envShared), name)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err == nil {
		err = unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
	}
	if err == nil {
		err = errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"))
	}
	if err == nil {
		err = os.Setenv(envApart, apartDone)
	}
	if err == nil {
		err = syscall.Exec(self, os.Args, os.Environ())
	}
	fmt.Fprintf(os.Stderr, "mpitest: no directory of its own for rank %s: %v\n", rank, err)
}
