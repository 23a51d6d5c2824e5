package vfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestClonesAreEqualAndApart(t *testing.T) {
	for name, c := range map[string]struct {
		fsys vfs.FS
		dir  string
	}{
		"disk": {vfs.OS, t.TempDir()}, "memory": {vfs.NewMem(), "/"},
	} {
		for _, size := range []int{0, 1, 3<<20 + 5} {
			content := bytes.Repeat([]byte{1, 2, 3}, size/3+1)[:size]
			from, to := filepath.Join(c.dir, "from"), filepath.Join(c.dir, "to")
			if err := vfs.WriteFile(c.fsys, from, content, 0o666, false); err != nil {
				t.Fatal(err)
			}
			how, err := vfs.Clone(c.fsys, from, to, 0o666)
			if err != nil {
				t.Fatal(name, size, err)
			}
			t.Logf("%s, %d bytes: %s", name, size, how)
			f, err := c.fsys.OpenFile(to, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{9}, int64(size)); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			for file, want := range map[string][]byte{from: content, to: append(bytes.Clone(content), 9)} {
				got, err := vfs.ReadFile(c.fsys, file, 1<<30)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %d bytes: %s has %d bytes, %v", name, size, file, len(got), err)
				}
			}
			if _, err := vfs.Clone(c.fsys, from, to, 0o666); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: an existing file: %v", name, err)
			}
			if err := errors.Join(c.fsys.Remove(from), c.fsys.Remove(to)); err != nil {
				t.Fatal(err)
			}
			if _, err := vfs.Clone(c.fsys, from, to, 0o666); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: no file: %v", name, err)
			}
		}
	}
	if _, err := vfs.Clone(vfs.OS, t.TempDir(), filepath.Join(t.TempDir(), "to"), 0o666); err == nil {
		t.Error("a directory was cloned")
	}
}

func TestFailedClonesLeaveNothing(t *testing.T) {
	for i := 0; ; i++ {
		mem := vfs.NewMem()
		if err := vfs.WriteFile(mem, "/from", []byte("content"), 0o666, false); err != nil {
			t.Fatal(err)
		}
		inject := vfs.NewInject(mem)
		inject.FailAt(i, syscall.EIO)
		_, err := vfs.Clone(inject, "/from", "/to", 0o666)
		there, e := vfs.Exists(mem, "/to")
		if e != nil {
			t.Fatal(e)
		}
		if err == nil {
			if !there || i == 0 {
				t.Errorf("operation %d: success without a file", i)
			}
			return
		}
		if there || !errors.Is(err, syscall.EIO) {
			t.Errorf("operation %d: there: %v, %v", i, there, err)
		}
	}
}
