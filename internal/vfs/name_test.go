package vfs_test

import (
	"runtime"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

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
