package vfs_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

var renames = []vfs.Kind{vfs.OpRename, vfs.OpRenameNoReplace}

// moves are Move and MoveNoReplace.
var moves = map[string]func(fsys vfs.FS, oldname, newname string) error{"Move": vfs.Move, "MoveNoReplace": vfs.MoveNoReplace}

// A rename that was carried out and then denied is none that failed, whatever the answer
// says; one that wasn't is the error that it is.
func TestMoveLooksWhetherTheRenameWasCarriedOut(t *testing.T) {
	for name, move := range moves {
		for _, late := range []bool{true, false} {
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOENT, syscall.EEXIST, syscall.ETIMEDOUT} {
				for what, supported := range map[string]bool{"f": true, "d": false} {
					m := vfs.NewMem()
					must(t, vfs.WriteFile(m, "/f", []byte("f"), 0o666, true))
					must(t, m.Mkdir("/d", 0o777))
					in := vfs.NewInject(m)
					if !supported {
						must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRenameNoReplace}, Err: vfs.ErrUnsupported}))
					}
					must(t, in.Fail(vfs.Rule{Kinds: renames, Err: errno, Late: late}))
					err := move(in, "/"+what, "/new")
					switch {
					case late && err != nil:
						t.Errorf("%s of %s, carried out and denied with %v: %v", name, what, errno, err)
					case !late && (!errors.Is(err, errno) || errors.Is(err, vfs.ErrUnclear)):
						t.Errorf("%s of %s that fails with %v: %v", name, what, errno, err)
					}
					for path, want := range map[string]bool{"/" + what: !late, "/new": late} {
						if there, err := vfs.Exists(m, path); there != want || err != nil {
							t.Errorf("%s of %s, late=%t: %s exists: %t, %v", name, what, late, path, there, err)
						}
					}
				}
			}
		}
	}
}

// What is at the new name counts only if it is what was to be moved there.
func TestMoveIsNotTakenInByAnotherThingAtTheNewName(t *testing.T) {
	m := vfs.NewMem()
	must(t, vfs.WriteFile(m, "/a", []byte("a"), 0o666, true))
	must(t, vfs.WriteFile(m, "/b", []byte("of another size"), 0o666, true))
	if err := vfs.MoveNoReplace(m, "/a", "/b"); !errors.Is(err, fs.ErrExist) || errors.Is(err, vfs.ErrUnclear) {
		t.Errorf("onto another file: %v", err)
	}
	if err := vfs.Move(m, "/none", "/b"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrUnclear) {
		t.Errorf("of nothing: %v", err)
	}
	// Somebody takes the old name away in the middle.
	in := vfs.NewInject(m)
	in.Before(func(op vfs.Op) {
		if op.Kind == vfs.OpRename {
			must(t, m.Remove("/a"))
		}
	})
	if err := vfs.Move(in, "/a", "/b"); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, vfs.ErrUnclear) {
		t.Errorf("of what is taken away: %v", err)
	}
}

// Where neither name can be looked at, the error says so, and keeps the errno.
func TestMoveThatCantLookIsUnclear(t *testing.T) {
	for name, move := range moves {
		for _, late := range []bool{true, false} {
			m := vfs.NewMem()
			must(t, m.Mkdir("/a", 0o777))
			in := vfs.NewInject(m)
			must(t, in.Fail(vfs.Rule{Kinds: renames, Err: syscall.ETIMEDOUT, Late: late}))
			must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpLstat}, From: 2}))
			if err := move(in, "/a", "/b"); !errors.Is(err, vfs.ErrUnclear) || !errors.Is(err, syscall.ETIMEDOUT) {
				t.Errorf("%s, late=%t: %v", name, late, err)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
