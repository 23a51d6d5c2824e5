package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestMissingDir(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("there", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("there/file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", "there/dangling"); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"x": "", "there/x": "", "./x": "", "a/x": "a", "a/b/c/x": "a", "there/b/c/x/": "there/b", here + "/b/c": here + "/b", "/": "", ".": "", "": "",
		"there/file/x": "", "there/dangling/x": "",
	} {
		if got := vfs.MissingDir(vfs.OS, path); filepath.ToSlash(got) != filepath.ToSlash(want) {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	// Where nothing is there at all, the walk up ends all the same.
	if got := vfs.MissingDir(nothing{vfs.NewMem()}, "a/b/c"); got != "." {
		t.Errorf("%q", got)
	}
}

// nothing is a filesystem without even a root.
type nothing struct{ vfs.FS }

func (nothing) Lstat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "lstat", Path: name, Err: syscall.ENOENT}
}

func TestNoDir(t *testing.T) {
	t.Chdir(t.TempDir())
	absent := &fs.PathError{Op: "open", Path: "a/b/x", Err: syscall.ENOENT}
	err := vfs.NoDir(vfs.OS, "a/b/x", absent)
	if err.Error() != "there is no directory a" || !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
	for name, other := range map[string]error{"x": absent, "a/b/x": syscall.EACCES, "a/x": nil} {
		if got := vfs.NoDir(vfs.OS, name, other); got != other {
			t.Errorf("%s: %v, want %v", name, got, other)
		}
	}
}
