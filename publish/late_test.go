package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A filesystem that carries a call out and then denies it, whichever one, loses nothing: a
// save that returns an error has published nothing, unless it says so; and none fails
// because of a rename.
func TestACallThatIsCarriedOutAndDeniedLosesNothing(t *testing.T) {
	errnos := []syscall.Errno{syscall.EIO, syscall.ENOENT, syscall.EEXIST}
	if raceDetector {
		errnos = errnos[:1]
	}
	start := vfs.NewMem()
	if err := start.Mkdir("/results", 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := runSolver(t, start, 2, 2); err != nil {
		t.Fatal(err)
	}
	before, err := highestStep(start)
	if err != nil {
		t.Fatal(err)
	}
	for _, errno := range errnos {
		t.Run(errno.Error(), func(t *testing.T) {
			renamed := 0
			for i := 1; ; i++ {
				base := start.KillClone()
				inject := vfs.NewInject(base)
				if err := inject.Fail(vfs.Rule{At: i, Err: errno, Late: true, Match: func(op vfs.Op) bool { return !op.Kind.Reads() }}); err != nil {
					t.Fatal(err)
				}
				isRename := false // of something
				inject.Before(func(op vfs.Op) {
					if op.Index == i && (op.Kind == vfs.OpRename || op.Kind == vfs.OpRenameNoReplace) {
						isRename, _ = vfs.Exists(base, op.Name)
					}
				})
				result, err := runSolver(t, inject, 2, 2)
				ops := inject.Ops()
				if len(ops) < i {
					break
				}
				if ops[i-1].Kind.Reads() {
					continue // nothing was denied
				}
				saved := max(before, result.saved)
				if at := saved + 1; err != nil && !errors.Is(err, ErrDurabilityUnknown) {
					if there, lerr := vfs.Exists(base, fmt.Sprintf("%s/step_%d", crashDir, at)); there || lerr != nil {
						t.Fatalf("%v: %v, but step %d is there (%v)\n%s", ops[i-1], err, at, lerr, strings.Join(inject.Trace(), "\n"))
					}
				}
				if isRename {
					renamed++
					if err != nil {
						t.Fatalf("%v: %v\n%s", ops[i-1], err, strings.Join(inject.Trace(), "\n"))
					}
				}
				if err := checkInvariants(t, base.KillClone(), 2, saved, before+2); err != nil {
					t.Fatalf("%v: %v\n%s", ops[i-1], err, strings.Join(inject.Trace(), "\n"))
				}
			}
			if renamed < 8 {
				t.Errorf("only %d renames were denied", renamed)
			}
		})
	}
}

// Where nobody can look any more, the error says that the bundle may be published, on all
// ranks, and it isn't touched.
func TestABundleThatMayBePublishedIsNotTouched(t *testing.T) {
	for _, late := range []bool{true, false} {
		base := newFS(t)
		inject := vfs.NewInject(base)
		down := false
		inject.After(func(op vfs.Op, _ error) { down = down || op.Kind == vfs.OpRenameNoReplace })
		for _, rule := range []vfs.Rule{
			{Kinds: []vfs.Kind{vfs.OpRenameNoReplace}, Err: syscall.ETIMEDOUT, Late: late},
			{Match: func(vfs.Op) bool { return down }},
		} {
			if err := inject.Fail(rule); err != nil {
				t.Fatal(err)
			}
		}
		err := saveStep(t, inject, 3, "/data", 1)
		wantError(t, err, ErrMaybePublished, "/data/step_1", "isn't known")
		wantError(t, err, syscall.ETIMEDOUT)
		if errors.Is(err, ErrDurabilityUnknown) {
			t.Errorf("%v says that it is published", err)
		}
		if lerr := loadStep(t, base, 2, "/data/step_1", 1); late && lerr != nil || !late && !errors.Is(lerr, fs.ErrNotExist) {
			t.Errorf("late=%t: the bundle: %v", late, lerr)
		}
		// The next job clears what is left.
		if err := saveStep(t, base, 1, "/data", 1); late != errors.Is(err, ErrExists) || !late && err != nil {
			t.Errorf("late=%t: the next save: %v", late, err)
		}
	}
}

// A client that shows the old name, from memory, after the server has carried the rename
// out: what is removed by that name would be the bundle.
func TestAnOldNameInAClientsMemoryHarmsNoBundle(t *testing.T) {
	base := newFS(t)
	client := &forgetful{FS: base}
	err := saveStep(t, client, 2, "/data", 1)
	wantError(t, err, ErrMaybePublished, "/data/step_1")
	if err := loadStep(t, base, 2, "/data/step_1", 1); err != nil {
		t.Errorf("the bundle: %v", err)
	}
	if client.denied == "" {
		t.Error("no rename was denied")
	}
}

// forgetful carries the first rename without replacing out, denies it, and goes on to find
// by the old name what has the new one, until a rename by the old name fails.
type forgetful struct {
	vfs.FS
	denied, to string
	knows      bool
}

func (f *forgetful) at(name string) string {
	if rest, ok := strings.CutPrefix(name, f.denied); f.denied != "" && !f.knows && ok && (rest == "" || rest[0] == '/') {
		return f.to + rest
	}
	return name
}

func (f *forgetful) RenameNoReplace(oldname, newname string) error {
	if f.denied != "" {
		return f.FS.RenameNoReplace(oldname, newname)
	}
	if err := f.FS.RenameNoReplace(oldname, newname); err != nil {
		return err
	}
	f.denied, f.to = oldname, newname
	return syscall.ETIMEDOUT
}

func (f *forgetful) Rename(oldname, newname string) error {
	f.knows = f.knows || oldname == f.denied && f.denied != ""
	return f.FS.Rename(oldname, newname)
}

func (f *forgetful) Lstat(name string) (fs.FileInfo, error) {
	if f.denied != "" && !f.knows && name == f.to {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: syscall.ENOENT}
	}
	return f.FS.Lstat(f.at(name))
}

func (f *forgetful) Remove(name string) error                   { return f.FS.Remove(f.at(name)) }
func (f *forgetful) ReadDir(name string) ([]fs.DirEntry, error) { return f.FS.ReadDir(f.at(name)) }
