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
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// childEnv names the child program that the test binary runs as.
const childEnv = "FIELDSTONE_VFS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(strangerEnv) != "" {
		if err := becomeStranger(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "hold":
		os.Exit(childHold(os.Args[1]))
	case "compete":
		os.Exit(childCompete(os.Args[1], os.Args[2]))
	case "leave":
		os.Exit(childLeave(os.Args[1], os.Args[2], os.Args[3]))
	}
	os.Exit(2)
}

func child(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, args...)
	// The race detector waits a second at the end of a process otherwise.
	cmd.Env = append(os.Environ(), childEnv+"="+program, "GORACE=atexit_sleep_ms=0")
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

// stranger is who may not write what the test's user made: as root another user,
// otherwise this one, of whom modes keep things.
const stranger = 54321

func becomeStranger() error {
	if os.Getuid() != 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(stranger), syscall.Setuid(stranger))
}

// asStranger returns a child that becomes the stranger. The test binary may lie where
// only this user finds it: the child becomes one when it has begun.
func asStranger(t *testing.T, program string, args ...string) *exec.Cmd {
	cmd := child(t, program, args...)
	cmd.Env = append(cmd.Env, strangerEnv+"=1")
	return cmd
}

const strangerEnv = "FIELDSTONE_VFS_TEST_STRANGER"

// openDir returns a directory that all may write and remove in.
func openDir(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lock")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, mode))
	return dir
}

// childLeave takes a lock again and again, and leaves it as a killed process of a user
// does whose umask lets nobody else write: readable and no more. A marker that only
// the holder may create shows a second holder.
func childLeave(lock, marker, times string) int {
	n, err := strconv.Atoi(times)
	killed := vfs.NewInject(vfs.OS)
	if err == nil {
		err = killed.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpUnlock}})
	}
	for err == nil && n > 0 {
		var l vfs.Lock
		if l, err = killed.Lock(lock); errors.Is(err, vfs.ErrLocked) {
			err = nil
			runtime.Gosched()
			continue
		}
		if err != nil {
			break
		}
		if err = vfs.WriteFile(vfs.OS, marker, nil, 0o666, false); err != nil {
			err = fmt.Errorf("two holders: %w", err)
			break
		}
		runtime.Gosched()
		if current, cerr := l.Current(); cerr != nil || !current {
			err = fmt.Errorf("the lock file went from under its holder: %w", errors.Join(cerr, fs.ErrInvalid))
			break
		}
		chmod := os.Chmod(lock, 0o444)
		if errors.Is(chmod, fs.ErrPermission) { // it is another user's, opened before that one did this
			chmod = nil
		}
		if err = errors.Join(os.Remove(marker), chmod); err == nil {
			_ = l.Release() // the file stays
			n--
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Who can only read the lock file that a killed process left removes it. Two of them
// must not both think that they have the lock then.
func TestLocksThatKilledUsersLeaveNeverHaveTwoHolders(t *testing.T) {
	dir := openDir(t, 0o777)
	var children []*exec.Cmd
	for range 3 {
		cmd := asStranger(t, "leave", filepath.Join(dir, "lock"), filepath.Join(dir, "marker"), "100")
		must(t, cmd.Start())
		children = append(children, cmd)
	}
	// One that can write every lock file, as root.
	cmd := child(t, "leave", filepath.Join(dir, "lock"), filepath.Join(dir, "marker"), "100")
	must(t, cmd.Start())
	for _, cmd := range append(children, cmd) {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// hold starts a child that holds the lock, and returns what ends it.
func hold(t *testing.T, cmd *exec.Cmd) (end func()) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != "locked\n" || err != nil {
		t.Fatalf("child says %q, %v", line, err)
	}
	return func() {
		must(t, stdin.Close())
		must(t, cmd.Wait())
	}
}

// What a dead process of another user left is no obstacle; while the process lives, it
// is one.
func TestALockFileOfAnotherUserStopsNobodyWhoMayWriteTheDirectory(t *testing.T) {
	for name, tc := range map[string]struct {
		dir, file fs.FileMode
		stays     bool // the file can't be removed, and is the lock as it is
	}{
		"a directory of all":    {0o777, 0o444, false},
		"a sticky directory":    {0o777 | fs.ModeSticky, 0o444, os.Getuid() == 0},
		"a file that all write": {0o777, 0o666, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := openDir(t, tc.dir)
			lock := filepath.Join(dir, "lock")
			must(t, os.WriteFile(lock, []byte("long dead"), 0o600))
			must(t, os.Chmod(lock, tc.file))
			end := hold(t, asStranger(t, "hold", lock))
			// This process can write any file as root; otherwise it is the stranger.
			if _, err := vfs.OS.Lock(lock); !errors.Is(err, vfs.ErrLocked) {
				t.Errorf("while the other one holds it: %v, want %v", err, vfs.ErrLocked)
			}
			second := asStranger(t, "hold", lock)
			second.Stderr = nil
			if out, err := second.Output(); err == nil {
				t.Errorf("a second one of the same user has it: %s", out)
			}
			end()
			text, err := os.ReadFile(lock)
			if stayed := string(text) == "long dead"; err != nil || stayed != (tc.stays || tc.file == 0o666) {
				t.Errorf("the file has %q, %v", text, err)
			}
			l, err := vfs.OS.Lock(lock)
			if err != nil {
				t.Fatalf("after the other one's end: %v", err)
			}
			must(t, l.Release())
		})
	}
}

// The umask is for what a run computes. The lock is for all who may write where it is.
func TestALockFileCanBeWrittenByWhoMayWriteItsDirectory(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for dirMode, want := range map[fs.FileMode]fs.FileMode{0o700: 0o600, 0o755: 0o600, 0o775: 0o660, 0o777: 0o666} {
		lock := filepath.Join(openDir(t, dirMode), "lock")
		l, err := vfs.OS.Lock(lock)
		must(t, err)
		info, err := os.Stat(lock)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("in a directory of mode %v the file has %v, want %v", dirMode, got, want)
		}
		must(t, l.Release())
	}
	if os.Getuid() != 0 {
		return // who is of one group can't make a directory of another
	}
	dir := openDir(t, 0o770)
	must(t, os.Chown(dir, -1, stranger))
	l, err := vfs.OS.Lock(filepath.Join(dir, "lock"))
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, "lock"))
	must(t, err)
	if gid := info.Sys().(*syscall.Stat_t).Gid; gid != stranger || info.Mode().Perm() != 0o660 {
		t.Errorf("the file is of group %d, mode %v, want that of the directory", gid, info.Mode())
	}
	must(t, l.Release())
}

func TestALockFileThatCanNotBeReadIsAnErrorThatSaysSo(t *testing.T) {
	lock := filepath.Join(openDir(t, 0o777), "lock")
	must(t, os.WriteFile(lock, nil, 0))
	cmd := asStranger(t, "hold", lock)
	cmd.Stderr = nil
	_, err := cmd.Output()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || !strings.Contains(string(exit.Stderr), "permission denied (it is another user's") {
		t.Errorf("the lock returns %v", err)
	}
}

func TestALockSaysWhoHasIt(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		name := b.path("lock")
		must(t, vfs.WriteFile(b, name, []byte("one that is dead, with a long story"), 0o666, false))
		l, err := b.Lock(name)
		must(t, err)
		for _, text := range []string{"this one", "me"} {
			must(t, l.Describe(text))
			if got, err := vfs.ReadFile(b, name, 100); string(got) != text || err != nil {
				t.Errorf("the file has %q, %v, want %q", got, err, text)
			}
		}
		must(t, l.Release())
		if err := l.Describe("nobody"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after the release: %v", err)
		}
	})
}

func TestALockNoticesThatItsFileIsGone(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		name := b.path("lock")
		l, err := b.Lock(name)
		must(t, err)
		current := func(want bool) {
			t.Helper()
			if got, err := l.Current(); got != want || err != nil {
				t.Errorf("current: %v, %v, want %v", got, err, want)
			}
		}
		current(true)
		must(t, b.Remove(name))
		current(false)
		other, err := b.Lock(name)
		must(t, err)
		current(false)
		must(t, errors.Join(other.Release(), l.Release()))
		if _, err := l.Current(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after the release: %v", err)
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
