//go:build linux

package faultfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/faultfs"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A page that the kernel keeps of a network filesystem's file stays old as long as size and
// time of the file do; after Forget the filesystem is asked.
func TestForgetLetsGoOfOldPages(t *testing.T) {
	base, mount := t.TempDir(), t.TempDir()
	faultfs.Mount(t, base, mount, faultfs.Cached)
	below := filepath.Join(base, "a")
	if err := os.WriteFile(below, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS.OpenFile(filepath.Join(mount, "a"), os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read := func(want string) {
		t.Helper()
		p := make([]byte, 3)
		if _, err := f.ReadAt(p, 0); err != nil || string(p) != want {
			t.Fatalf("read is %q, %v: want %q", p, err, want)
		}
	}
	read("old")
	info, err := os.Stat(below)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(below, []byte("new"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(below, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	read("old")
	vfs.Forget(f)
	read("new")
}
