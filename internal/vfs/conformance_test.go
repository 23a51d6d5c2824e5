//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// backend is a filesystem with a directory that a test may use as it likes.
type backend struct {
	vfs.FS
	dir     string
	symlink func(target, name string) error
}

func (b backend) path(name string) string {
	if name == "" {
		return b.dir
	}
	return b.dir + "/" + name
}

// backends returns a fresh one of each kind: they must not differ.
func backends(t *testing.T) map[string]backend {
	mem, wrapped := vfs.NewMem(), vfs.NewMem()
	must(t, mem.Mkdir("/d", 0o777))
	must(t, wrapped.Mkdir("/d", 0o777))
	return map[string]backend{
		"os":             {vfs.OS, t.TempDir(), os.Symlink},
		"mem":            {mem, "/d", mem.Symlink},
		"inject over os": {vfs.NewInject(vfs.OS), t.TempDir(), os.Symlink},
		"inject":         {vfs.NewInject(wrapped), "/d", wrapped.Symlink},
	}
}

func onAll(t *testing.T, test func(t *testing.T, b backend)) {
	t.Helper()
	for name, b := range backends(t) {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

// plant creates a tree: "dir/", "file=content", "link->target".
func (b backend) plant(t *testing.T, tree ...string) {
	t.Helper()
	for _, entry := range tree {
		if link, target, ok := strings.Cut(entry, "->"); ok {
			must(t, b.symlink(target, b.path(link)))
		} else if dir, ok := strings.CutSuffix(entry, "/"); ok {
			must(t, b.Mkdir(b.path(dir), 0o777))
		} else {
			name, data, _ := strings.Cut(entry, "=")
			must(t, vfs.WriteFile(b, b.path(name), []byte(data), 0o666, false))
		}
	}
}

// list is the inverse of plant, sorted; links show as "link->".
func (b backend) list(t *testing.T) []string {
	t.Helper()
	var lines []string
	var walk func(rel string)
	walk = func(rel string) {
		entries, err := b.ReadDir(b.path(rel))
		must(t, err)
		for _, e := range entries {
			name := path.Join(rel, e.Name())
			switch {
			case e.IsDir():
				lines = append(lines, name+"/")
				walk(name)
			case e.Type().IsRegular():
				data, err := vfs.ReadFile(b, b.path(name), 1<<20)
				must(t, err)
				lines = append(lines, name+"="+string(data))
			default:
				lines = append(lines, name+"->")
			}
		}
	}
	walk("")
	return lines
}

// errno of an error, or nil.
func errno(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return err
}

func TestPathOperations(t *testing.T) {
	open := func(flag int, name string) func(b backend) error {
		return func(b backend) error {
			f, err := b.OpenFile(b.path(name), flag, 0o666)
			if err != nil {
				return err
			}
			return f.Close()
		}
	}
	mkdir := func(name string) func(b backend) error {
		return func(b backend) error { return b.Mkdir(b.path(name), 0o777) }
	}
	rename := func(from, to string) func(b backend) error {
		return func(b backend) error { return b.Rename(b.path(from), b.path(to)) }
	}
	noReplace := func(from, to string) func(b backend) error {
		return func(b backend) error { return b.RenameNoReplace(b.path(from), b.path(to)) }
	}
	remove := func(name string) func(b backend) error {
		return func(b backend) error { return b.Remove(b.path(name)) }
	}
	stat := func(name string) func(b backend) error {
		return func(b backend) error { _, err := b.Stat(b.path(name)); return err }
	}
	lstat := func(name string) func(b backend) error {
		return func(b backend) error { _, err := b.Lstat(b.path(name)); return err }
	}
	readDir := func(name string) func(b backend) error {
		return func(b backend) error { _, err := b.ReadDir(b.path(name)); return err }
	}
	syncDir := func(name string) func(b backend) error {
		return func(b backend) error { return b.SyncDir(b.path(name)) }
	}
	lock := func(name string) func(b backend) error {
		return func(b backend) error { _, err := b.Lock(b.path(name)); return err }
	}
	usage := func(name string) func(b backend) error {
		return func(b backend) error { _, err := b.Usage(b.path(name)); return err }
	}
	const create, exclusive = os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL

	tests := []struct {
		name  string
		tree  []string
		op    func(b backend) error
		errno error    // nil: success
		after []string // unless it failed, when nothing may change
	}{
		{"open of nothing", nil, open(os.O_RDONLY, "f"), syscall.ENOENT, nil},
		{"open below nothing", nil, open(create, "d/f"), syscall.ENOENT, nil},
		{"open below a file", []string{"f"}, open(create, "f/g"), syscall.ENOTDIR, nil},
		{"create makes an empty file", nil, open(create, "f"), nil, []string{"f="}},
		{"create keeps a file", []string{"f=old"}, open(create, "f"), nil, []string{"f=old"}},
		{"truncate empties a file", []string{"f=old"}, open(create|os.O_TRUNC, "f"), nil, []string{"f="}},
		{"exclusive create of a new file", nil, open(exclusive, "f"), nil, []string{"f="}},
		{"exclusive create refuses a file", []string{"f=old"}, open(exclusive, "f"), syscall.EEXIST, nil},
		{"exclusive create refuses a directory", []string{"d/"}, open(exclusive, "d"), syscall.EEXIST, nil},
		{"exclusive create refuses a dangling link", []string{"l->gone"}, open(exclusive, "l"), syscall.EEXIST, nil},
		{"create goes through a dangling link", []string{"l->f"}, open(create, "l"), nil, []string{"f=", "l->"}},
		{"create with a slash at the end", nil, open(create, "f/"), syscall.EISDIR, nil},
		{"open of a file with a slash at the end", []string{"f"}, open(os.O_RDONLY, "f/"), syscall.ENOTDIR, nil},
		{"create by a link that ends in a slash", []string{"l->f/"}, open(create, "l"), syscall.EISDIR, nil},
		{"create of a link with a slash at the end", []string{"d/", "l->d"}, open(create, "l/"), syscall.EISDIR, nil},
		{"open of a directory to read", []string{"d/"}, open(os.O_RDONLY, "d"), nil, []string{"d/"}},
		{"open of a directory to write", []string{"d/"}, open(os.O_RDWR, "d"), syscall.EISDIR, nil},
		{"create of a directory", []string{"d/"}, open(os.O_RDONLY|os.O_CREATE, "d"), syscall.EISDIR, nil},
		{"open as a directory refuses a file", []string{"f"}, open(os.O_RDONLY|syscall.O_DIRECTORY, "f"), syscall.ENOTDIR, nil},
		{"open follows a link", []string{"f", "l->f"}, open(os.O_RDONLY, "l"), nil, []string{"f=", "l->"}},
		{"open without following refuses a link", []string{"f", "l->f"}, open(os.O_RDONLY|syscall.O_NOFOLLOW, "l"), syscall.ELOOP, nil},
		{"links in a circle", []string{"a->b", "b->a"}, open(os.O_RDONLY, "a"), syscall.ELOOP, nil},
		{"open through a linked parent", []string{"d/", "l->d"}, open(create, "l/f"), nil, []string{"d/", "d/f=", "l->"}},
		{"dots in a path", []string{"d/", "d/e/"}, open(create, "./d//e/../f"), nil, []string{"d/", "d/e/", "d/f="}},
		{"parent of a link's target", []string{"d/", "d/e/", "l->d/e"}, open(create, "l/../f"), nil, []string{"d/", "d/e/", "d/f=", "l->"}},
		{"dots below a file", []string{"f"}, stat("f/.."), syscall.ENOTDIR, nil},
		{"name too long", nil, open(create, strings.Repeat("x", 256)), syscall.ENAMETOOLONG, nil},
		{"zero byte in a name", nil, open(create, "a\x00b"), syscall.EINVAL, nil},

		{"mkdir", nil, mkdir("d"), nil, []string{"d/"}},
		{"mkdir with a slash at the end", nil, mkdir("d/"), nil, []string{"d/"}},
		{"mkdir over a file", []string{"d"}, mkdir("d"), syscall.EEXIST, nil},
		{"mkdir over a directory", []string{"d/"}, mkdir("d"), syscall.EEXIST, nil},
		{"mkdir over a dangling link", []string{"d->gone"}, mkdir("d"), syscall.EEXIST, nil},
		{"mkdir below nothing", nil, mkdir("d/e"), syscall.ENOENT, nil},
		{"mkdir below a file", []string{"f"}, mkdir("f/d"), syscall.ENOTDIR, nil},
		{"mkdir of the root of the test", nil, mkdir("."), syscall.EEXIST, nil},

		{"stat of nothing", nil, stat("f"), syscall.ENOENT, nil},
		{"stat follows a link", []string{"l->gone"}, stat("l"), syscall.ENOENT, nil},
		{"lstat sees a dangling link", []string{"l->gone"}, lstat("l"), nil, []string{"l->"}},
		{"lstat of nothing", nil, lstat("f"), syscall.ENOENT, nil},

		{"lstat with a slash follows a link", []string{"d/", "l->d"}, lstat("l/"), nil, []string{"d/", "l->"}},
		{"lstat of a file with a slash", []string{"f"}, lstat("f/"), syscall.ENOTDIR, nil},
		{"readdir of nothing", nil, readDir("d"), syscall.ENOENT, nil},
		{"readdir of a file", []string{"f"}, readDir("f"), syscall.ENOTDIR, nil},
		{"readdir through a link", []string{"d/", "l->d"}, readDir("l"), nil, []string{"d/", "l->"}},

		{"rename of a file", []string{"f=1"}, rename("f", "g"), nil, []string{"g=1"}},
		{"rename replaces a file", []string{"f=1", "g=2"}, rename("f", "g"), nil, []string{"g=1"}},
		{"rename of a directory with its content", []string{"d/", "d/f=1"}, rename("d", "e"), nil, []string{"e/", "e/f=1"}},
		{"rename of a directory with slashes", []string{"d/", "d/f=1"}, rename("d/", "e/"), nil, []string{"e/", "e/f=1"}},
		{"rename of a file with a slash", []string{"f=1"}, rename("f", "g/"), syscall.ENOTDIR, nil},
		{"rename into another directory", []string{"d/", "e/", "d/f=1"}, rename("d/f", "e/g"), nil, []string{"d/", "e/", "e/g=1"}},
		{"rename replaces an empty directory", []string{"d/", "d/f=1", "e/"}, rename("d", "e"), nil, []string{"e/", "e/f=1"}},
		{"rename refuses a filled directory", []string{"d/", "e/", "e/f"}, rename("d", "e"), syscall.ENOTEMPTY, nil},
		{"rename of a file over a directory", []string{"f", "d/"}, rename("f", "d"), syscall.EISDIR, nil},
		{"rename of a directory over a file", []string{"d/", "f"}, rename("d", "f"), syscall.ENOTDIR, nil},
		{"rename of nothing", []string{"g=2"}, rename("f", "g"), syscall.ENOENT, nil},
		{"rename to below nothing", []string{"f"}, rename("f", "d/f"), syscall.ENOENT, nil},
		{"rename to below a file", []string{"f", "g"}, rename("f", "g/f"), syscall.ENOTDIR, nil},
		{"rename to itself", []string{"f=1"}, rename("f", "f"), nil, []string{"f=1"}},
		{"rename of a directory to itself", []string{"d/", "d/f"}, rename("d", "d"), nil, []string{"d/", "d/f="}},
		{"rename into itself", []string{"d/"}, rename("d", "d/e"), syscall.EINVAL, nil},
		{"rename far into itself", []string{"d/", "d/e/"}, rename("d", "d/e/f"), syscall.EINVAL, nil},
		{"rename over its parent", []string{"d/", "d/e/"}, rename("d/e", "d"), syscall.ENOTEMPTY, nil},
		{"rename of a link with a slash", []string{"d/", "l->d"}, rename("l/", "m"), syscall.ENOTDIR, nil},
		{"rename to a link with a slash", []string{"d/", "e/", "l->e"}, rename("d", "l/"), syscall.ENOTDIR, nil},
		{"rename of a dot", []string{"d/"}, rename("d/.", "e"), syscall.EBUSY, nil},
		{"rename to a dot", []string{"d/", "e/"}, rename("d", "e/."), syscall.EBUSY, nil},
		{"rename moves the link", []string{"l->gone"}, rename("l", "m"), nil, []string{"m->"}},
		{"rename replaces the link", []string{"f=1", "g=2", "l->g"}, rename("f", "l"), nil, []string{"g=2", "l=1"}},
		{"rename of a directory over a link to one", []string{"d/", "e/", "l->e"}, rename("d", "l"), syscall.ENOTDIR, nil},

		{"no-replace rename of a directory", []string{"d/", "d/f=1"}, noReplace("d", "e"), nil, []string{"e/", "e/f=1"}},
		{"no-replace rename of a file", []string{"f=1"}, noReplace("f", "g"), nil, []string{"g=1"}},
		{"no-replace rename refuses a file", []string{"d/", "f"}, noReplace("d", "f"), syscall.EEXIST, nil},
		{"no-replace rename refuses an empty directory", []string{"d/", "e/"}, noReplace("d", "e"), syscall.EEXIST, nil},
		{"no-replace rename refuses a filled directory", []string{"d/", "e/", "e/f"}, noReplace("d", "e"), syscall.EEXIST, nil},
		{"no-replace rename refuses a dangling link", []string{"d/", "l->gone"}, noReplace("d", "l"), syscall.EEXIST, nil},
		{"no-replace rename to itself", []string{"d/"}, noReplace("d", "d"), syscall.EEXIST, nil},
		{"no-replace rename to a dot", []string{"d/", "e/"}, noReplace("d", "e/."), syscall.EEXIST, nil},
		{"no-replace rename of nothing", nil, noReplace("d", "e"), syscall.ENOENT, nil},
		{"no-replace rename of nothing to something", []string{"e/"}, noReplace("d", "e"), syscall.ENOENT, nil},
		{"no-replace rename to below nothing", []string{"d/"}, noReplace("d", "e/f"), syscall.ENOENT, nil},
		{"no-replace rename into itself", []string{"d/"}, noReplace("d", "d/e"), syscall.EINVAL, nil},
		{"no-replace rename into itself by a link", []string{"d/", "d/e/", "l->d/e"}, noReplace("d", "l/f"), syscall.EINVAL, nil},

		{"remove of a file", []string{"f"}, remove("f"), nil, nil},
		{"remove of an empty directory", []string{"d/"}, remove("d"), nil, nil},
		{"remove of a filled directory", []string{"d/", "d/f"}, remove("d"), syscall.ENOTEMPTY, nil},
		{"remove of nothing", nil, remove("f"), syscall.ENOENT, nil},
		{"remove takes the link", []string{"f", "l->f"}, remove("l"), nil, []string{"f="}},
		{"remove below a file", []string{"f"}, remove("f/g"), syscall.ENOTDIR, nil},
		{"remove of a link with a slash", []string{"d/", "l->d"}, remove("l/"), syscall.ENOTDIR, nil},
		{"remove of a file with a slash", []string{"f"}, remove("f/"), syscall.ENOTDIR, nil},
		{"remove of a directory with a slash", []string{"d/"}, remove("d/"), nil, nil},
		{"remove of a dot", []string{"d/"}, remove("d/."), syscall.EINVAL, nil},

		{"syncdir", []string{"d/"}, syncDir("d"), nil, []string{"d/"}},
		{"syncdir of nothing", nil, syncDir("d"), syscall.ENOENT, nil},
		{"syncdir of a file", []string{"f"}, syncDir("f"), syscall.ENOTDIR, nil},

		{"lock creates the file", nil, lock("l"), nil, []string{"l="}},
		{"lock takes a file that was left", []string{"l=x"}, lock("l"), nil, []string{"l=x"}},
		{"lock below nothing", nil, lock("d/l"), syscall.ENOENT, nil},
		{"lock of a directory", []string{"d/"}, lock("d"), syscall.EISDIR, nil},
		{"lock with a slash at the end", nil, lock("l/"), syscall.EISDIR, nil},
		{"lock does not follow a link", []string{"f", "l->f"}, lock("l"), syscall.ELOOP, nil},

		{"usage of nothing", nil, usage("d"), syscall.ENOENT, nil},
		{"usage of the directory", nil, usage(""), nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			onAll(t, func(t *testing.T, b backend) {
				b.plant(t, test.tree...)
				before := b.list(t)
				if got := errno(test.op(b)); got != test.errno {
					t.Errorf("error %v, want %v", got, test.errno)
				}
				want := test.after
				if test.errno != nil {
					want = before
				}
				if got := b.list(t); !slices.Equal(got, want) {
					t.Errorf("left %q, want %q", got, want)
				}
			})
		})
	}
}

func TestErrorsMatchTheKindsOfFS(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "d/", "e/")
		err := b.RenameNoReplace(b.path("d"), b.path("e"))
		if !errors.Is(err, fs.ErrExist) || !errors.Is(err, syscall.EEXIST) {
			t.Errorf("no-replace rename: %v is not fs.ErrExist and EEXIST", err)
		}
		var le *os.LinkError
		if !errors.As(err, &le) || le.Old != b.path("d") || le.New != b.path("e") {
			t.Errorf("no-replace rename: %#v does not name both paths", err)
		}
		_, err = b.OpenFile(b.path("f"), os.O_RDONLY, 0)
		var pe *fs.PathError
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &pe) || pe.Path != b.path("f") {
			t.Errorf("open: %#v is not an fs.PathError of the path that is fs.ErrNotExist", err)
		}
	})
}

func TestFileReadsBackWhatWasWritten(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		f, err := b.OpenFile(b.path("f"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		must(t, err)
		defer f.Close()
		if f.Name() != b.path("f") {
			t.Errorf("name %q, want %q", f.Name(), b.path("f"))
		}
		model := make([]byte, 0, 32<<10)
		write := func(off int64, data []byte) {
			t.Helper()
			n, err := f.WriteAt(data, off)
			if n != len(data) || err != nil {
				t.Fatalf("WriteAt: %d, %v", n, err)
			}
			for int64(len(model)) < off+int64(len(data)) {
				model = append(model, 0)
			}
			copy(model[off:], data)
		}
		resize := func(size int) {
			t.Helper()
			must(t, f.Truncate(int64(size)))
			for len(model) < size {
				model = append(model, 0)
			}
			model = model[:size]
		}
		same := func() {
			t.Helper()
			info, err := f.Stat()
			must(t, err)
			got := make([]byte, info.Size())
			if n, err := f.ReadAt(got, 0); n != len(got) || err != nil {
				t.Fatalf("ReadAt: %d, %v", n, err)
			}
			if !bytes.Equal(got, model) {
				t.Fatalf("content differs; sizes %d and %d", len(got), len(model))
			}
		}
		pattern := func(n, seed int) []byte {
			p := make([]byte, n)
			for i := range p {
				p[i] = byte(i*7 + seed)
			}
			return p
		}
		write(0, pattern(100, 1))
		same()
		write(9000, pattern(5000, 2)) // leaves a hole
		same()
		write(4090, pattern(12, 3)) // over a page boundary
		same()
		resize(4093)
		same()
		resize(20000) // what was cut off is zero now
		same()
		must(t, f.Sync())
		write(4000, pattern(200, 4)) // after a sync
		same()
		must(t, f.Allocate(25000))
		resize(25000)
		same()
		must(t, f.Allocate(10)) // never shrinks
		must(t, f.Allocate(0))
		same()

		tail := make([]byte, 10)
		if n, err := f.ReadAt(tail, int64(len(model))-4); n != 4 || err != io.EOF {
			t.Errorf("ReadAt over the end: %d, %v, want 4, EOF", n, err)
		}
		if n, err := f.ReadAt(tail, 1<<30); n != 0 || err != io.EOF {
			t.Errorf("ReadAt beyond the end: %d, %v, want 0, EOF", n, err)
		}
	})
}

func TestPositionOfReadAndWrite(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		write := func(flag int, pieces ...string) {
			t.Helper()
			f, err := b.OpenFile(b.path("f"), flag, 0o666)
			must(t, err)
			for _, p := range pieces {
				n, err := io.WriteString(f, p)
				if n != len(p) || err != nil {
					t.Fatalf("write: %d, %v", n, err)
				}
			}
			must(t, f.Close())
		}
		write(os.O_WRONLY|os.O_CREATE, "abc", "", "def")
		write(os.O_WRONLY|os.O_APPEND, "gh", "i")
		write(os.O_WRONLY, "AB")
		f, err := b.OpenFile(b.path("f"), os.O_RDONLY, 0)
		must(t, err)
		two := make([]byte, 2)
		if _, err := f.Read(two); string(two) != "AB" || err != nil {
			t.Errorf("first read: %q, %v", two, err)
		}
		rest, err := io.ReadAll(f)
		if string(rest) != "cdefghi" || err != nil {
			t.Errorf("the rest: %q, %v", rest, err)
		}
		if n, err := f.Read(two); n != 0 || err != io.EOF {
			t.Errorf("read at the end: %d, %v", n, err)
		}
		must(t, f.Close())
	})
}

func TestHandleChecksItsMode(t *testing.T) {
	tests := []struct {
		name string
		flag int
		call func(f vfs.File) error
		want error
	}{
		{"read of a write-only file", os.O_WRONLY, func(f vfs.File) error { _, err := f.Read(make([]byte, 1)); return err }, syscall.EBADF},
		{"read at of a write-only file", os.O_WRONLY, func(f vfs.File) error { _, err := f.ReadAt(make([]byte, 1), 0); return err }, syscall.EBADF},
		{"write of a read-only file", os.O_RDONLY, func(f vfs.File) error { _, err := f.Write([]byte("x")); return err }, syscall.EBADF},
		{"write at of a read-only file", os.O_RDONLY, func(f vfs.File) error { _, err := f.WriteAt([]byte("x"), 0); return err }, syscall.EBADF},
		{"truncate of a read-only file", os.O_RDONLY, func(f vfs.File) error { return f.Truncate(0) }, syscall.EINVAL},
		{"truncate to a negative size", os.O_RDWR, func(f vfs.File) error { return f.Truncate(-1) }, syscall.EINVAL},
		{"allocate of a read-only file", os.O_RDONLY, func(f vfs.File) error { return f.Allocate(1) }, syscall.EBADF},
		{"allocate of a negative size", os.O_RDWR, func(f vfs.File) error { return f.Allocate(-1) }, syscall.EINVAL},
		{"sync of a read-only file", os.O_RDONLY, func(f vfs.File) error { return f.Sync() }, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			onAll(t, func(t *testing.T, b backend) {
				b.plant(t, "f=abc")
				f, err := b.OpenFile(b.path("f"), test.flag, 0)
				must(t, err)
				defer f.Close()
				if got := errno(test.call(f)); got != test.want {
					t.Errorf("error %v, want %v", got, test.want)
				}
				if got := b.list(t); !slices.Equal(got, []string{"f=abc"}) {
					t.Errorf("left %q", got)
				}
			})
		})
	}
}

func TestNegativeOffsetAndAppendAreRefused(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "f=abc")
		f, err := b.OpenFile(b.path("f"), os.O_RDWR, 0)
		must(t, err)
		if _, err := f.WriteAt([]byte("x"), -1); err == nil {
			t.Error("write at a negative offset succeeded")
		}
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
			t.Errorf("read at a negative offset: %v", err)
		}
		must(t, f.Close())
		f, err = b.OpenFile(b.path("f"), os.O_RDWR|os.O_APPEND, 0)
		must(t, err)
		if _, err := f.WriteAt([]byte("x"), 0); err == nil {
			t.Error("WriteAt of a file opened for appending succeeded")
		}
		must(t, f.Close())
		if got := b.list(t); !slices.Equal(got, []string{"f=abc"}) {
			t.Errorf("left %q", got)
		}
	})
}

func TestClosedFileIsRefused(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "f=abc")
		f, err := b.OpenFile(b.path("f"), os.O_RDWR, 0)
		must(t, err)
		must(t, f.Close())
		_, statErr := f.Stat()
		_, readErr := f.ReadAt(make([]byte, 1), 0)
		_, writeErr := f.WriteAt([]byte("x"), 0)
		for call, err := range map[string]error{
			"close": f.Close(), "sync": f.Sync(), "stat": statErr, "read": readErr,
			"write": writeErr, "truncate": f.Truncate(0), "allocate": f.Allocate(9),
		} {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("%s of a closed file: %v, want %v", call, err, fs.ErrClosed)
			}
		}
	})
}

func TestHandleOutlivesRenameAndRemoval(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "d/", "d/f=abc", "g=g")
		f, err := b.OpenFile(b.path("d/f"), os.O_RDWR, 0)
		must(t, err)
		must(t, b.Rename(b.path("d"), b.path("e")))
		_, err = f.WriteAt([]byte("X"), 1)
		must(t, err)
		must(t, f.Sync())
		if got := b.list(t); !slices.Equal(got, []string{"e/", "e/f=aXc", "g=g"}) {
			t.Errorf("after the rename of the directory: %q", got)
		}
		must(t, b.Rename(b.path("g"), b.path("e/f")))
		_, err = f.WriteAt([]byte("Y"), 2)
		must(t, err)
		data := make([]byte, 3)
		if _, err := f.ReadAt(data, 0); string(data) != "aXY" || err != nil {
			t.Errorf("the replaced file reads %q, %v", data, err)
		}
		must(t, f.Close())
		if got := b.list(t); !slices.Equal(got, []string{"e/", "e/f=g"}) {
			t.Errorf("after the replacement: %q", got)
		}
	})
}

func TestStatTellsKindSizeAndName(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "d/", "f=abc", "l->f")
		describe := func(info fs.FileInfo, err error) string {
			must(t, err)
			size := ""
			if info.Mode().IsRegular() {
				size = fmt.Sprint(info.Size())
			}
			return info.Name() + " " + info.Mode().Type().String() + " " + size
		}
		for _, test := range []struct{ got, want string }{
			{describe(b.Lstat(b.path("d"))), "d d--------- "},
			{describe(b.Lstat(b.path("f"))), "f ---------- 3"},
			{describe(b.Lstat(b.path("l"))), "l L--------- "},
			{describe(b.Stat(b.path("l"))), "l ---------- 3"},
		} {
			if test.got != test.want {
				t.Errorf("got %q, want %q", test.got, test.want)
			}
		}
		entries, err := b.ReadDir(b.dir)
		must(t, err)
		var got []string
		for _, e := range entries {
			info, err := e.Info()
			must(t, err)
			if e.Type() != info.Mode().Type() || e.Name() != info.Name() {
				t.Errorf("entry %v does not agree with its info %v", e, info)
			}
			got = append(got, e.Name()+" "+e.Type().String())
		}
		if want := []string{"d d---------", "f ----------", "l L---------"}; !slices.Equal(got, want) {
			t.Errorf("entries %q, want %q", got, want)
		}
	})
}

func TestReadDirIsSorted(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		names := []string{"b", "a", "c.x", "c", "B", "10", "9"}
		for _, n := range names {
			b.plant(t, n)
		}
		entries, err := b.ReadDir(b.dir)
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Errorf("entries %q, want %q", got, names)
		}
	})
}

// Whoever renames with RenameNoReplace first wins, and only they.
func TestNoReplaceRenameHasOneWinner(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		const rivals, rounds = 4, 50
		for round := range rounds {
			target := fmt.Sprintf("final%d", round)
			var wg sync.WaitGroup
			errs := make([]error, rivals)
			for i := range rivals {
				b.plant(t, fmt.Sprintf("s%d.%d/", round, i))
				wg.Go(func() {
					errs[i] = b.RenameNoReplace(b.path(fmt.Sprintf("s%d.%d", round, i)), b.path(target))
				})
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
			}
			if won != 1 {
				t.Fatalf("round %d: %d winners", round, won)
			}
		}
	})
}

func TestConcurrentWritersOfOneFile(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		const writers, chunk, chunks = 4, 1000, 20
		f, err := b.OpenFile(b.path("f"), os.O_RDWR|os.O_CREATE, 0o666)
		must(t, err)
		defer f.Close()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				data := bytes.Repeat([]byte{byte('a' + w)}, chunk)
				for c := range chunks {
					if _, err := f.WriteAt(data, int64((c*writers+w)*chunk)); err != nil {
						t.Error(err)
					}
					if _, err := f.Stat(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		data, err := vfs.ReadFile(b, b.path("f"), writers*chunk*chunks)
		must(t, err)
		for i, c := range data {
			if want := byte('a' + i/chunk%writers); c != want {
				t.Fatalf("byte %d is %q, want %q", i, c, want)
			}
		}
		if len(data) != writers*chunk*chunks {
			t.Errorf("%d bytes", len(data))
		}
	})
}

func TestSameFile(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "a=x", "b=x")
		look := func(name string) fs.FileInfo {
			info, err := b.Lstat(b.path(name))
			must(t, err)
			return info
		}
		before := look("a")
		if vfs.SameFile(before, look("b")) || !vfs.SameFile(before, look("a")) {
			t.Error("two files are one, or one is two")
		}
		must(t, b.Rename(b.path("a"), b.path("c")))
		if !vfs.SameFile(before, look("c")) {
			t.Error("a file is another one when it has another name")
		}
	})
	other, err := os.Lstat(t.TempDir())
	must(t, err)
	m := vfs.NewMem()
	info, err := m.Lstat("/")
	must(t, err)
	if vfs.SameFile(info, other) || vfs.SameFile(other, info) {
		t.Error("directories of two filesystems are one")
	}
}
