//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// childEnv names the child program that the test binary runs as.
const childEnv = "FIELDSTONE_VFS_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "hold":
		os.Exit(childHold(os.Args[1]))
	case "compete":
		os.Exit(childCompete(os.Args[1], os.Args[2]))
	}
	os.Exit(2)
}

func child(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+program)
	cmd.Stderr = os.Stderr
	return cmd
}

// childHold takes a lock, says so, and holds it until its input ends; then it
// exits without releasing it.
func childHold(name string) int {
	if _, err := vfs.OS.Lock(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("locked")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	return 0
}

func TestLockEndsWithItsProcess(t *testing.T) {
	for _, end := range []string{"exit", "kill"} {
		t.Run(end, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "lock")
			cmd := child(t, "hold", name)
			stdin, err := cmd.StdinPipe()
			must(t, err)
			stdout, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if line != "locked\n" || err != nil {
				t.Fatalf("child says %q, %v", line, err)
			}
			if _, err := vfs.OS.Lock(name); !errors.Is(err, vfs.ErrLocked) {
				t.Errorf("while the child holds it: %v, want %v", err, vfs.ErrLocked)
			}
			if end == "kill" {
				must(t, cmd.Process.Kill())
			} else {
				must(t, stdin.Close())
			}
			if err := cmd.Wait(); (err != nil) != (end == "kill") {
				t.Fatal(err)
			}
			if there, err := vfs.Exists(vfs.OS, name); !there || err != nil {
				t.Errorf("the lock file of the dead process is gone: %v", err)
			}
			l, err := vfs.OS.Lock(name)
			if err != nil {
				t.Fatalf("after the end of the child: %v", err)
			}
			must(t, l.Release())
			if there, err := vfs.Exists(vfs.OS, name); there || err != nil {
				t.Errorf("the released lock file is still there: %v", err)
			}
		})
	}
}

func TestLockExcludesWithinTheProcess(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		name := b.path("lock")
		l, err := b.Lock(name)
		must(t, err)
		if _, err := b.Lock(name); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("second lock: %v, want %v", err, vfs.ErrLocked)
		}
		// Another handle on the file must not end the lock when it is closed.
		f, err := b.OpenFile(name, os.O_RDWR, 0)
		must(t, err)
		must(t, f.Close())
		if _, err := b.Lock(name); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("lock after a close of the file: %v, want %v", err, vfs.ErrLocked)
		}
		other, err := b.Lock(b.path("other"))
		if err != nil {
			t.Errorf("lock of another file: %v", err)
		}
		must(t, other.Release())
		must(t, l.Release())
		if there, err := vfs.Exists(b, name); there || err != nil {
			t.Errorf("the released lock file is still there: %v", err)
		}
		again, err := b.Lock(name)
		if err != nil {
			t.Fatalf("lock after the release: %v", err)
		}
		if err := l.Release(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("second release: %v, want %v", err, fs.ErrClosed)
		}
		if _, err := b.Lock(name); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("the second release ended another's lock: %v", err)
		}
		must(t, again.Release())
	})
}

func TestReleaseRemovesOnlyItsOwnFile(t *testing.T) {
	t.Run("not another one at the name", func(t *testing.T) {
		onAll(t, func(t *testing.T, b backend) {
			l, err := b.Lock(b.path("lock"))
			must(t, err)
			must(t, b.Remove(b.path("lock")))
			other, err := b.Lock(b.path("lock"))
			must(t, err)
			must(t, l.Release())
			if there, err := vfs.Exists(b, b.path("lock")); !there || err != nil {
				t.Errorf("the file of the second lock is gone: %v", err)
			}
			must(t, other.Release())
		})
	})
	t.Run("not one that was moved away", func(t *testing.T) {
		onAll(t, func(t *testing.T, b backend) {
			b.plant(t, "d/")
			l, err := b.Lock(b.path("d/lock"))
			must(t, err)
			must(t, b.Rename(b.path("d"), b.path("e")))
			if _, err := b.Lock(b.path("e/lock")); !errors.Is(err, vfs.ErrLocked) {
				t.Errorf("lock by the new name: %v, want %v", err, vfs.ErrLocked)
			}
			must(t, l.Release())
			l, err = b.Lock(b.path("e/lock"))
			if err != nil {
				t.Fatalf("lock by the new name after the release: %v", err)
			}
			must(t, l.Release())
		})
	})
}

// compete takes and releases a lock until it had it often enough. A marker that
// only the holder may create shows a second holder.
func compete(fsys vfs.FS, lock, marker string, times int) error {
	for times > 0 {
		l, err := fsys.Lock(lock)
		if errors.Is(err, vfs.ErrLocked) {
			runtime.Gosched()
			continue
		}
		if err != nil {
			return err
		}
		if err := vfs.WriteFile(fsys, marker, nil, 0o666, false); err != nil {
			return fmt.Errorf("two holders: %w", err)
		}
		runtime.Gosched()
		if err := errors.Join(fsys.Remove(marker), l.Release()); err != nil {
			return err
		}
		times--
	}
	return nil
}

func competeAll(fsys vfs.FS, lock, marker string, times int) error {
	const goroutines = 2
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() { errs[i] = compete(fsys, lock, marker, times) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func childCompete(dir, times string) int {
	n, err := strconv.Atoi(times)
	if err == nil {
		err = competeAll(vfs.OS, filepath.Join(dir, "lock"), filepath.Join(dir, "marker"), n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The release removes the file that others are about to lock.
func TestLockNeverHasTwoHolders(t *testing.T) {
	t.Run("goroutines", func(t *testing.T) {
		onAll(t, func(t *testing.T, b backend) {
			if err := competeAll(b, b.path("lock"), b.path("marker"), 60); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("processes", func(t *testing.T) {
		dir := t.TempDir()
		var children []*exec.Cmd
		for range 3 {
			cmd := child(t, "compete", dir, "60")
			must(t, cmd.Start())
			children = append(children, cmd)
		}
		for _, cmd := range children {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
		if entries, err := vfs.OS.ReadDir(dir); len(entries) != 0 || err != nil {
			t.Errorf("left %v, %v", entries, err)
		}
	})
}

func TestLockOfSomethingElseIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	must(t, mkfifo(name))
	if _, err := vfs.OS.Lock(name); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("lock of a pipe: %v, want %v", err, vfs.ErrNotRegular)
	}
}
