package vfs_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestMayBeOne(t *testing.T) {
	for _, tc := range []struct {
		paths []string
		want  bool
	}{
		{nil, false},
		{[]string{"/d/é.bin"}, false},
		{[]string{"/d/phi.bin", "/d/psi.bin"}, false},
		{[]string{"/d/phi.bin", "/d/Phi.bin"}, true},
		{[]string{"/d/a/phi.bin", "/d/A/phi.bin"}, true},
		{[]string{"/d/a/phi.bin", "/d/B/phi.bin"}, false},
		{[]string{"/d/caf\u00e9.bin", "/d/cafe\u0301.bin"}, true},
		{[]string{"/d/k.bin", "/d/\u212a.bin"}, true},
		{[]string{"/D\u00fcse/phi.bin", "/D\u00fcse/psi.bin"}, false},
		{[]string{"/D/phi.bin", "/D/phi_1.bin", "/D/phi"}, false},
		{[]string{"a", "A"}, true},
	} {
		if got := vfs.MayBeOne(tc.paths); got != tc.want {
			t.Errorf("%q: %t", tc.paths, got)
		}
	}
}

func TestDistinctOnAFilesystemThatDoesNotTellCaseApart(t *testing.T) {
	m := vfs.NewMem()
	for _, fsys := range []vfs.FS{m, vfs.Folding(m, strings.ToLower)} {
		for _, name := range []string{"/psi", "/phi", "/Phi"} {
			f, err := fsys.OpenFile(name, 0o101, 0o666)
			must(t, err)
			must(t, f.Close())
		}
		err := vfs.Distinct(fsys, []string{"/psi", "/phi", "/Phi"})
		if fsys == m {
			must(t, err)
			must(t, m.Remove("/Phi"))
			continue
		}
		if !errors.Is(err, vfs.ErrOneFile) || !strings.Contains(err.Error(), `"/phi" and "/Phi"`) {
			t.Errorf("error is %v", err)
		}
		if err := vfs.Distinct(fsys, []string{"/psi", "/chi"}); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("error is %v", err)
		}
	}
}
