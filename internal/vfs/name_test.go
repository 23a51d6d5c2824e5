package vfs_test

import (
	"runtime"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestUnder(t *testing.T) {
	type row struct{ path, want string }
	dir, rows := "/data/dir", []row{{"", ""}, {"a", "/data/dir/a"}, {"../a//b/", "/data/dir/../a//b/"}, {".", "/data/dir/."}, {"/a/../b", "/a/../b"}}
	if runtime.GOOS == "windows" {
		dir, rows = `C:\data`, []row{{"", ""}, {"a/b", `C:\data\a/b`}, {`\a`, `C:\a`}, {"/a", "C:/a"}, {`D:\a`, `D:\a`}}
	}
	for _, r := range rows {
		if got := vfs.Under(dir, r.path); got != r.want {
			t.Errorf("%q becomes %q, want %q", r.path, got, r.want)
		}
	}
}

func TestIsFileName(t *testing.T) {
	windows := runtime.GOOS == "windows"
	for name, want := range map[string]bool{
		"psi.bin": true, ".hidden": true, "a b": true, "µ.bin": true, "..bin": true, "\xff": true,
		"": false, ".": false, "..": false, "a/b": false, "/": false, "a/": false,
		`a\b`: !windows, "a:b": !windows, `\`: !windows, "NUL": !windows, "com1.bin": !windows,
	} {
		if got := vfs.IsFileName(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}
