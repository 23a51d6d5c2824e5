//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// syncs records the directories that are synced.
type syncs struct {
	vfs.FS
	dirs []string
}

func (s *syncs) SyncDir(dir string) error {
	s.dirs = append(s.dirs, dir)
	return s.FS.SyncDir(dir)
}

func TestMakeDirSyncsEachNewEntry(t *testing.T) {
	s := &syncs{FS: vfs.NewMem()}
	var there []string
	if err := vfs.MakeDir(s, "/a/b/c", func(dir string) { there = append(there, dir) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/", "/a", "/a/b"}; !slices.Equal(s.dirs, want) || !slices.Equal(there, []string{"/"}) {
		t.Errorf("synced %q, there were %q", s.dirs, there)
	}
	s.dirs, there = nil, nil
	if err := vfs.MakeDir(s, "/a/b/c", func(dir string) { there = append(there, dir) }); err != nil {
		t.Fatal(err)
	}
	if err := vfs.MakeDir(s, "/a/b", nil); err != nil {
		t.Fatal(err)
	}
	if len(s.dirs) != 0 || !slices.Equal(there, []string{"/a/b/c"}) {
		t.Errorf("synced %q, there were %q", s.dirs, there)
	}
}

func TestMakeDirRefusesFilesAndDanglingLinks(t *testing.T) {
	fsys := vfs.NewMem()
	if err := errors.Join(vfs.WriteFile(fsys, "/f", nil, 0o666, true), fsys.Symlink("gone", "/l")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"/f": "/f is not a directory", "/f/a": "", "/l": "/l is a link to nothing"} {
		if err := vfs.MakeDir(fsys, dir, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
}

func TestReadFull(t *testing.T) {
	p := make([]byte, 3)
	if err := vfs.ReadFull(strings.NewReader("abcd"), p, 1); err != nil || string(p) != "bcd" {
		t.Errorf("%q, %v", p, err)
	}
	err := vfs.ReadFull(strings.NewReader("abcd"), p, 2)
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "the file ends at byte 4: unexpected EOF" {
		t.Error(err)
	}
	if err := vfs.ReadFull(denied{}, p, 0); !errors.Is(err, fs.ErrPermission) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

type denied struct{}

func (denied) ReadAt([]byte, int64) (int, error) { return 0, fs.ErrPermission }
