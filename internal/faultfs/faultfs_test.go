//go:build linux

package faultfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/faultfs"
)

// Each action does what it says to the call that it is for, once, and to no other.
func TestActions(t *testing.T) {
	base, mount := t.TempDir(), t.TempDir()
	faultfs.Mount(t, base, mount)
	control := faultfs.Control(mount)
	path := func(name string) string { return filepath.Join(mount, name) }
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(base, name))
		return err == nil
	}
	write := func(name, text string) error { return os.WriteFile(path(name), []byte(text), 0o666) }
	self := os.Getpid()
	for _, tc := range []struct {
		name  string
		rule  faultfs.Rule
		do    func() error
		err   error
		fired int
		left  func() bool
	}{
		{
			"a call fails", faultfs.Rule{Op: "mkdir", Action: faultfs.Err, Argument: int(syscall.ENOSPC), Times: 1},
			func() error { return os.Mkdir(path("d"), 0o777) }, syscall.ENOSPC, 1, func() bool { return !there("d") },
		},
		{
			"a call is denied", faultfs.Rule{Op: "rename", Action: faultfs.After, Argument: int(syscall.EIO), Times: 1, Process: self},
			func() error { return errors.Join(write("a", "x"), os.Rename(path("a"), path("b"))) }, syscall.EIO, 1,
			func() bool { return there("b") && !there("a") },
		},
		{
			"the second call", faultfs.Rule{Op: "create", Action: faultfs.Err, Argument: int(syscall.EIO), Skip: 1, Times: 1},
			func() error { return errors.Join(write("first", ""), write("second", ""), write("third", "")) }, syscall.EIO, 1,
			func() bool { return there("first") && !there("second") && there("third") },
		},
		{
			"a short write", faultfs.Rule{Op: "write", Action: faultfs.Short, Times: 1},
			func() error {
				f, err := os.Create(path("short"))
				if err != nil {
					return err
				}
				n, err := syscall.Write(int(f.Fd()), []byte("12345678"))
				if n != 4 {
					t.Errorf("written are %d bytes", n)
				}
				return errors.Join(err, f.Close())
			}, nil, 1, func() bool { return true },
		},
		{
			"a late call", faultfs.Rule{Op: "unlink", Action: faultfs.Delay, Argument: 30, Times: 1},
			func() error {
				began := time.Now()
				err := errors.Join(write("late", ""), os.Remove(path("late")))
				if time.Since(began) < 30*time.Millisecond {
					t.Error("it isn't late")
				}
				return err
			}, nil, 1, func() bool { return !there("late") },
		},
		{
			"another process", faultfs.Rule{Op: "mkdir", Action: faultfs.Err, Argument: int(syscall.EIO), Times: 1, Process: 1},
			func() error { return os.Mkdir(path("own"), 0o777) }, nil, 0, func() bool { return there("own") },
		},
		{
			"another path", faultfs.Rule{Op: "mkdir", Action: faultfs.Err, Argument: int(syscall.EIO), Times: 1, Part: "that"},
			func() error { return errors.Join(os.Mkdir(path("this"), 0o777), os.Mkdir(path("that"), 0o777)) }, syscall.EIO, 1,
			func() bool { return there("this") && !there("that") },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := control.Fail(tc.rule); err != nil {
				t.Fatal(err)
			}
			err := tc.do()
			fired, _, serr := control.Seen()
			if serr != nil || fired != tc.fired {
				t.Errorf("acted on %d calls, %v: want %d", fired, serr, tc.fired)
			}
			if (err == nil) != (tc.err == nil) || !errors.Is(err, tc.err) || !tc.left() {
				t.Errorf("the error is %v, want %v; left is what is wanted: %t", err, tc.err, tc.left())
			}
		})
	}
	if err := errors.Join(control.Off(), os.Mkdir(path("d"), 0o777)); err != nil {
		t.Errorf("without a rule: %v", err)
	}
	if err := control.Fail(faultfs.Rule{Op: "mkdir", Action: "explode", Times: 1}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("an unknown action: %v", err)
	}
}

func TestCallsAreCounted(t *testing.T) {
	base, mount := t.TempDir(), t.TempDir()
	faultfs.Mount(t, base, mount)
	control, self := faultfs.Control(mount), os.Getpid()
	if err := control.Count(1, self); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mount, "a"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, n, err := control.Seen()
	if err != nil || len(n) != 1 || n[self]["create"] != 1 || n[self]["write"] != 1 || n[self]["fsync"] != 0 {
		t.Errorf("counted are %v, %v", n, err)
	}
}
