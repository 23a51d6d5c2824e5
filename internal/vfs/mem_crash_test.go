//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// script carries out one step per word:
//
//	mkdir:d   put:f=data (create and write, no sync)   write:f@3=data
//	truncate:f=3   allocate:f=3   sync:f   syncdir:d   rename:a>b
//	remove:f   link:l>target   failsync:f   failsyncdir:d
func script(t *testing.T, fsys vfs.FS, steps ...string) {
	t.Helper()
	open := func(name string, do func(f vfs.File) error) error {
		f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return err
		}
		return errors.Join(do(f), f.Close())
	}
	for _, step := range steps {
		verb, arg, _ := strings.Cut(step, ":")
		left, data, _ := strings.Cut(arg, "=")
		name, at, _ := strings.Cut(left, "@")
		from, to, _ := strings.Cut(arg, ">")
		var number int64
		if at == "" && (verb == "truncate" || verb == "allocate") {
			at = data
		}
		if at != "" {
			if _, err := fmt.Sscan(at, &number); err != nil {
				t.Fatalf("step %q: %v", step, err)
			}
		}
		var err error
		switch verb {
		case "mkdir":
			err = fsys.Mkdir(arg, 0o777)
		case "put", "write":
			err = open(name, func(f vfs.File) error { _, err := f.WriteAt([]byte(data), number); return err })
		case "truncate":
			err = open(name, func(f vfs.File) error { return f.Truncate(number) })
		case "allocate":
			err = open(name, func(f vfs.File) error { return f.Allocate(number) })
		case "sync":
			err = open(arg, vfs.File.Sync)
		case "syncdir":
			err = fsys.SyncDir(arg)
		case "rename":
			err = fsys.Rename(from, to)
		case "remove":
			err = fsys.Remove(arg)
		case "link":
			err = fsys.(*vfs.Mem).Symlink(to, from)
		case "failsync", "failsyncdir":
			in := vfs.NewInject(fsys)
			must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync, vfs.OpSyncDir}, Err: syscall.EIO}))
			if verb == "failsync" {
				err = syncFile(in, arg, os.O_RDWR)
			} else {
				err = in.SyncDir(arg)
			}
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("step %q: %v, want EIO", step, err)
			}
			err = nil
		default:
			t.Fatalf("unknown step %q", step)
		}
		if err != nil {
			t.Fatalf("step %q: %v", step, err)
		}
	}
}

func syncFile(fsys vfs.FS, name string, flag int) error {
	f, err := fsys.OpenFile(name, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// state lists a whole Mem in one line.
func state(t *testing.T, m *vfs.Mem) string {
	t.Helper()
	return strings.Join(backend{FS: m, dir: "/", symlink: m.Symlink}.list(t), " ")
}

func TestCrash(t *testing.T) {
	tests := []struct {
		name  string
		steps []string
		none  string // what is left if nothing survives that need not
		all   string // and if everything does
	}{
		{"an unsynced file is lost",
			[]string{"put:f=abc"}, "", "f=abc"},
		{"a synced file without its entry is lost",
			[]string{"put:f=abc", "sync:f"}, "", "f=abc"},
		{"a synced entry does not cover the content",
			[]string{"put:f=abc", "syncdir:/"}, "f=", "f=abc"},
		{"content and entry synced, in either order",
			[]string{"put:f=abc", "put:g=de", "sync:f", "syncdir:/", "sync:g"}, "f=abc g=de", "f=abc g=de"},
		{"a directory's sync does not reach its parent's entry",
			[]string{"mkdir:d", "put:d/f=abc", "sync:d/f", "syncdir:d"}, "", "d/ d/f=abc"},
		{"a directory's sync does not reach its child's entries",
			[]string{"mkdir:d", "put:d/f=abc", "sync:d/f", "syncdir:/"}, "d/", "d/ d/f=abc"},
		{"all levels synced",
			[]string{"mkdir:d", "put:d/f=abc", "sync:d/f", "syncdir:d", "syncdir:/"}, "d/ d/f=abc", "d/ d/f=abc"},
		{"writes after the sync are lost",
			[]string{"put:f=abc", "sync:f", "syncdir:/", "write:f@1=XYZ"}, "f=abc", "f=aXYZ"},
		{"a truncation after the sync is lost",
			[]string{"put:f=abc", "sync:f", "syncdir:/", "truncate:f=1"}, "f=abc", "f=a"},
		{"an allocation after the sync is lost with its size",
			[]string{"put:f=abc", "sync:f", "syncdir:/", "allocate:f=4"}, "f=abc", "f=abc\x00"},
		{"an allocation is covered by a sync",
			[]string{"put:f=abc", "allocate:f=4", "sync:f", "syncdir:/"}, "f=abc\x00", "f=abc\x00"},
		{"a removal is undone with its content",
			[]string{"put:f=abc", "sync:f", "syncdir:/", "remove:f"}, "f=abc", ""},
		{"a synced removal stays",
			[]string{"put:f=abc", "sync:f", "syncdir:/", "remove:f", "syncdir:/"}, "", ""},
		{"a rename is undone",
			[]string{"put:f=abc", "sync:f", "syncdir:/", "rename:f>g"}, "f=abc", "g=abc"},
		{"a rename over a file keeps one of the two",
			[]string{"put:f=new", "put:g=old", "sync:f", "sync:g", "syncdir:/", "rename:f>g"}, "f=new g=old", "g=new"},
		{"a synced rename of unsynced content shows an empty file",
			[]string{"put:g=old", "sync:g", "syncdir:/", "put:f=new", "rename:f>g", "syncdir:/"}, "g=", "g=new"},
		{"a directory's rename is one step for all below it",
			[]string{"mkdir:s", "put:s/f=abc", "sync:s/f", "syncdir:s", "syncdir:/", "rename:s>d"}, "s/ s/f=abc", "d/ d/f=abc"},
		{"a rename between directories is undone in both",
			[]string{"mkdir:d", "mkdir:e", "put:d/f=abc", "sync:d/f", "syncdir:d", "syncdir:/", "rename:d/f>e/g"}, "d/ d/f=abc e/", "d/ e/ e/g=abc"},
		{"a rename between directories is covered by the sync of the old one",
			[]string{"mkdir:d", "mkdir:e", "put:d/f=abc", "sync:d/f", "syncdir:d", "syncdir:/", "rename:d/f>e/g", "syncdir:d"}, "d/ e/ e/g=abc", "d/ e/ e/g=abc"},
		{"a rename between directories is covered by the sync of the new one",
			[]string{"mkdir:d", "mkdir:e", "put:d/f=abc", "sync:d/f", "syncdir:d", "syncdir:/", "rename:d/f>e/g", "syncdir:e"}, "d/ e/ e/g=abc", "d/ e/ e/g=abc"},
		{"syncing a rename brings what came before it in the other directory",
			[]string{"mkdir:d", "mkdir:e", "syncdir:/", "put:d/f=abc", "sync:d/f", "put:e/x=x", "sync:e/x", "rename:d/f>e/g", "put:e/y=y", "sync:e/y", "syncdir:d"},
			"d/ e/ e/g=abc e/x=x", "d/ e/ e/g=abc e/x=x e/y=y"},
		{"a link's target comes with its entry",
			[]string{"link:l>target", "syncdir:/", "link:m>target"}, "l->", "l-> m->"},
		{"a name that is used again",
			[]string{"put:f=old", "sync:f", "syncdir:/", "remove:f", "put:f=new", "sync:f"}, "f=old", "f=new"},
		{"a failed sync covers nothing, and no later one does",
			[]string{"put:f=abc", "sync:f", "syncdir:/", "write:f@0=X", "failsync:f", "sync:f", "write:f@1=Y", "sync:f"}, "f=abc", "f=XYc"},
		{"a failed directory sync is not repaired by another",
			[]string{"put:f=abc", "sync:f", "failsyncdir:/", "syncdir:/"}, "", "f=abc"},
		{"a failed directory sync is forgotten once the directory changes",
			[]string{"put:f=abc", "sync:f", "failsyncdir:/", "put:g=de", "sync:g", "syncdir:/"}, "f=abc g=de", "f=abc g=de"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := vfs.NewMem()
			script(t, m, test.steps...)
			if got := state(t, m); got != test.all {
				t.Fatalf("before the crash %q, want %q", got, test.all)
			}
			if got := state(t, m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepNone})); got != test.none {
				t.Errorf("keep none: %q, want %q", got, test.none)
			}
			if got := state(t, m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepAll})); got != test.all {
				t.Errorf("keep all: %q, want %q", got, test.all)
			}
			killed := m.KillClone()
			if got := state(t, killed); got != test.all {
				t.Errorf("kill: %q, want %q", got, test.all)
			}
			if got := state(t, killed.CrashClone(vfs.CrashOptions{Keep: vfs.KeepNone})); got != test.none {
				t.Errorf("kill, then crash: %q, want %q", got, test.none)
			}
			if got := state(t, m); got != test.all {
				t.Errorf("the crash changed the original: %q, want %q", got, test.all)
			}
		})
	}
}

// Exactly the states that the crash model names are reached.
func TestCrashStates(t *testing.T) {
	tests := []struct {
		name  string
		torn  bool
		base  []string // all synced
		steps []string
		want  []string
	}{
		{"nothing to lose", false, nil, nil, []string{""}},
		{"entries of one directory keep their order", false, nil,
			[]string{"put:a", "put:b", "remove:a", "put:c"},
			[]string{"", "a=", "a= b=", "b=", "b= c="}},
		{"operations on one file keep their order", false, []string{"put:f"},
			[]string{"write:f@0=ab", "write:f@1=XY", "truncate:f=1"},
			[]string{"f=", "f=ab", "f=aXY", "f=a"}},
		{"files are independent of each other", false, []string{"put:f", "put:g"},
			[]string{"write:f@0=a", "write:g@0=b"},
			[]string{"f= g=", "f=a g=", "f= g=b", "f=a g=b"}},
		{"directories are independent of each other", false, []string{"mkdir:d", "mkdir:e"},
			[]string{"put:d/a", "put:e/b"},
			[]string{"d/ e/", "d/ d/a= e/", "d/ e/ e/b=", "d/ d/a= e/ e/b="}},
		{"an entry is independent of the content", false, nil,
			[]string{"put:f=a"},
			[]string{"", "f=", "f=a"}},
		{"a rename in one directory happens or not", false, []string{"put:f=a", "put:g=b"},
			[]string{"rename:f>g"},
			[]string{"f=a g=b", "g=a"}},
		{"a rename between directories happens or not", false, []string{"mkdir:d", "mkdir:e", "put:d/f"},
			[]string{"rename:d/f>e/f"},
			[]string{"d/ d/f= e/", "d/ e/ e/f="}},
		{"a rename between directories waits for both", false, []string{"mkdir:d", "mkdir:e", "put:d/f"},
			[]string{"put:d/a", "put:e/b", "rename:d/f>e/f", "put:d/c"},
			[]string{
				"d/ d/f= e/", "d/ d/a= d/f= e/", "d/ d/f= e/ e/b=", "d/ d/a= d/f= e/ e/b=",
				"d/ d/a= e/ e/b= e/f=", "d/ d/a= d/c= e/ e/b= e/f=",
			}},
		{"a torn write of less than a block", true, []string{"put:f"},
			[]string{"write:f@0=ab"},
			[]string{"f=", "f=\x00\x00", "f=ab"}},
		{"a torn write inside the file", true, []string{"put:f=abcd"},
			[]string{"write:f@1=XY"},
			[]string{"f=abcd", "f=aXYd"}},
		{"a write torn at the blocks of the file", true, []string{"put:f=" + strings.Repeat(".", 1100)},
			[]string{"write:f@510=" + strings.Repeat("x", 520)},
			[]string{
				"f=" + strings.Repeat(".", 1100),
				"f=" + strings.Repeat(".", 510) + strings.Repeat("x", 2) + strings.Repeat(".", 588),
				"f=" + strings.Repeat(".", 510) + strings.Repeat("x", 514) + strings.Repeat(".", 76),
				"f=" + strings.Repeat(".", 510) + strings.Repeat("x", 520) + strings.Repeat(".", 70),
			}},
		{"a torn write that ends with a block", true, []string{"put:f"},
			[]string{"write:f@0=" + strings.Repeat("x", 1024)},
			[]string{
				"f=",
				"f=" + strings.Repeat("\x00", 1024),
				"f=" + strings.Repeat("x", 512),
				"f=" + strings.Repeat("x", 512) + strings.Repeat("\x00", 512),
				"f=" + strings.Repeat("x", 1024),
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := vfs.NewMem()
			script(t, m, test.base...)
			m = m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepAll})
			script(t, m, test.steps...)
			seen := make(map[string]uint64)
			for seed := range uint64(300) {
				opts := vfs.CrashOptions{Keep: vfs.KeepRandom, Seed: seed, Torn: test.torn}
				got := state(t, m.CrashClone(opts))
				if !slices.Contains(test.want, got) {
					t.Fatalf("%v: %q is not allowed", opts, got)
				}
				seen[got] = seed
			}
			for _, want := range test.want {
				if _, ok := seen[want]; !ok {
					t.Errorf("%q was never left", want)
				}
			}
		})
	}
}

func TestCrashIsDecidedByTheSeed(t *testing.T) {
	build := func() *vfs.Mem {
		m := vfs.NewMem()
		for i := range 20 {
			script(t, m, fmt.Sprintf("mkdir:d%d", i), fmt.Sprintf("put:d%d/f=%02000d", i, i), fmt.Sprintf("put:f%d=%d", i, i))
		}
		return m
	}
	a, b := build(), build()
	different := false
	for seed := range uint64(10) {
		opts := vfs.CrashOptions{Keep: vfs.KeepRandom, Seed: seed, Torn: true}
		first := state(t, a.CrashClone(opts))
		if second := state(t, b.CrashClone(opts)); first != second {
			t.Errorf("%v: two states:\n%q\n%q", opts, first, second)
		}
		if first != state(t, a.CrashClone(vfs.CrashOptions{Keep: vfs.KeepRandom, Seed: seed + 1, Torn: true})) {
			different = true
		}
	}
	if !different {
		t.Error("all seeds give the same state")
	}
}

func TestCloneIsIndependent(t *testing.T) {
	for _, clone := range []struct {
		name string
		of   func(m *vfs.Mem) *vfs.Mem
	}{
		{"crash", func(m *vfs.Mem) *vfs.Mem { return m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepAll}) }},
		{"kill", (*vfs.Mem).KillClone},
	} {
		t.Run(clone.name, func(t *testing.T) {
			m := vfs.NewMem()
			script(t, m, "mkdir:d", "put:d/f=abc")
			open, err := m.OpenFile("d/f", os.O_RDWR, 0)
			must(t, err)
			l, err := m.Lock("d/lock")
			must(t, err)

			c := clone.of(m)
			script(t, c, "write:d/f@0=X", "put:d/c=c", "rename:d>e")
			script(t, m, "write:d/f@1=Y", "put:d/m=m")
			if got, want := state(t, c), "e/ e/c=c e/f=Xbc e/lock="; got != want {
				t.Errorf("the clone is %q, want %q", got, want)
			}
			if got, want := state(t, m), "d/ d/f=aYc d/lock= d/m=m"; got != want {
				t.Errorf("the original is %q, want %q", got, want)
			}

			// Handles and locks stay with the original.
			_, err = open.WriteAt([]byte("Z"), 2)
			must(t, err)
			if _, err := m.Lock("d/lock"); !errors.Is(err, vfs.ErrLocked) {
				t.Errorf("lock in the original: %v, want %v", err, vfs.ErrLocked)
			}
			cl, err := c.Lock("e/lock")
			if err != nil {
				t.Errorf("lock in the clone: %v", err)
			}
			must(t, cl.Release())
			must(t, l.Release())
			must(t, open.Close())
			if got, want := state(t, c), "e/ e/c=c e/f=Xbc"; got != want {
				t.Errorf("the clone is %q, want %q", got, want)
			}
			if got, want := state(t, m), "d/ d/f=aYZ d/m=m"; got != want {
				t.Errorf("the original is %q, want %q", got, want)
			}
		})
	}
}

// A small publishing protocol: with all its syncs no crash breaks it, and without
// any one of them some crash does, so the model is as sharp as it has to be.
func TestCrashFindsEachMissingSync(t *testing.T) {
	content := bytes.Repeat([]byte("fieldstone"), 300)
	publish := func(fsys vfs.FS, skip string) error {
		sync := func(name string) error {
			if name == skip {
				return nil
			}
			return fsys.SyncDir(name)
		}
		return errors.Join(
			fsys.Mkdir("/new", 0o777),
			fsys.Mkdir("/new/fields", 0o777),
			vfs.WriteFile(fsys, "/new/fields/psi", content, 0o666, skip != "psi"),
			sync("/new/fields"),
			vfs.WriteFile(fsys, "/new/meta", []byte("meta"), 0o666, skip != "meta"),
			sync("/new"),
			fsys.RenameNoReplace("/new", "/final"),
			sync("/"),
		)
	}
	// verify reports whether the bundle is there, and an error if it is broken.
	verify := func(fsys vfs.FS) (bool, error) {
		there, err := vfs.Exists(fsys, "/final")
		if err != nil || !there {
			return false, err
		}
		meta, err := vfs.ReadFile(fsys, "/final/meta", 100)
		if err == nil && string(meta) != "meta" {
			err = fmt.Errorf("meta is %q", meta)
		}
		if err != nil {
			return true, err
		}
		psi, err := vfs.ReadFile(fsys, "/final/fields/psi", 1<<20)
		if err == nil && !bytes.Equal(psi, content) {
			err = errors.New("psi differs")
		}
		return true, err
	}
	// run crashes after each operation in several ways.
	run := func(t *testing.T, skip string) (found error) {
		m := vfs.NewMem()
		in := vfs.NewInject(m)
		done := false
		crash := func(after string) {
			modes := []vfs.CrashOptions{{Keep: vfs.KeepNone}, {Keep: vfs.KeepAll}}
			for seed := range uint64(40) {
				modes = append(modes, vfs.CrashOptions{Keep: vfs.KeepRandom, Seed: seed, Torn: seed%2 == 0})
			}
			for _, opts := range modes {
				there, err := verify(m.CrashClone(opts))
				if err == nil && done && !there {
					err = errors.New("success was returned, but the bundle is lost")
				}
				if err != nil && found == nil {
					found = fmt.Errorf("crash after %q, %v: %w", after, opts, err)
				}
			}
		}
		in.After(func(op vfs.Op, err error) {
			if !op.Kind.Reads() {
				crash(op.String())
			}
		})
		must(t, publish(in, skip))
		done = true
		crash("success")
		return found
	}
	if err := run(t, ""); err != nil {
		t.Errorf("the whole protocol: %v", err)
	}
	for _, skip := range []string{"psi", "/new/fields", "meta", "/new", "/"} {
		if err := run(t, skip); err == nil {
			t.Errorf("no crash shows that the sync of %s is missing", skip)
		} else {
			t.Logf("without the sync of %s: %v", skip, err)
		}
	}
}

func TestMemCapacity(t *testing.T) {
	const capacity = 10 * 4096
	open := func(t *testing.T, m *vfs.Mem, name string) vfs.File {
		t.Helper()
		f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		must(t, err)
		return f
	}
	free := func(t *testing.T, m *vfs.Mem) int64 {
		t.Helper()
		u, err := m.Usage("/")
		must(t, err)
		if u.Total != capacity || u.Type != "mem" {
			t.Errorf("usage %+v", u)
		}
		return u.Free
	}
	wantFree := func(t *testing.T, m *vfs.Mem, want int64) {
		t.Helper()
		if got := free(t, m); got != want {
			t.Errorf("%d bytes free, want %d", got, want)
		}
	}
	t.Run("a write takes the pages that it touches", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(capacity))
		f := open(t, m, "f")
		_, err := f.WriteAt(make([]byte, 2), 4095)
		must(t, err)
		wantFree(t, m, capacity-2*4096)
		_, err = f.WriteAt(make([]byte, 4096), 0)
		must(t, err)
		wantFree(t, m, capacity-2*4096)
	})
	t.Run("a write that does not fit ends where the space does", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(capacity))
		f := open(t, m, "f")
		n, err := f.WriteAt(make([]byte, capacity), 100)
		if n != capacity-100 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write: %d, %v, want %d, ENOSPC", n, err, capacity-100)
		}
		n, err = f.WriteAt([]byte("x"), capacity)
		if n != 0 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write to the full filesystem: %d, %v", n, err)
		}
		_, err = f.WriteAt([]byte("x"), 5)
		if err != nil {
			t.Errorf("write in place: %v", err)
		}
		info, err := f.Stat()
		must(t, err)
		if info.Size() != capacity {
			t.Errorf("size %d, want %d", info.Size(), capacity)
		}
	})
	t.Run("an allocation is kept for its file", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(capacity))
		f, g := open(t, m, "f"), open(t, m, "g")
		must(t, f.Allocate(6*4096))
		wantFree(t, m, 4*4096)
		must(t, f.Allocate(6*4096))
		wantFree(t, m, 4*4096)
		if n, err := g.WriteAt(make([]byte, capacity), 0); n != 4*4096 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write of another file: %d, %v, want %d, ENOSPC", n, err, 4*4096)
		}
		_, err := f.WriteAt(make([]byte, 6*4096), 0)
		must(t, err)
	})
	t.Run("an allocation that does not fit takes nothing", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(capacity))
		f := open(t, m, "f")
		if err := f.Allocate(capacity + 1); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("allocate: %v, want ENOSPC", err)
		}
		wantFree(t, m, capacity)
	})
	t.Run("an allocation without promise takes nothing", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(capacity), vfs.NoAllocate())
		f := open(t, m, "f")
		must(t, f.Allocate(2*capacity))
		wantFree(t, m, capacity)
		info, err := f.Stat()
		must(t, err)
		if info.Size() != 2*capacity {
			t.Errorf("size %d, want %d", info.Size(), 2*capacity)
		}
		if n, err := f.WriteAt(make([]byte, 2*capacity), 0); n != capacity || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write: %d, %v, want %d, ENOSPC", n, err, capacity)
		}
	})
	t.Run("space comes back", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(capacity))
		f := open(t, m, "f")
		must(t, f.Allocate(capacity))
		must(t, f.Truncate(4097))
		wantFree(t, m, capacity-2*4096)
		must(t, m.Remove("f"))
		wantFree(t, m, capacity-2*4096) // still open
		must(t, f.Close())
		wantFree(t, m, capacity)

		script(t, m, "put:a=a", "put:b=b", "rename:a>b")
		wantFree(t, m, capacity-4096)
		f = open(t, m, "b")
		must(t, f.Close())
		f, err := m.OpenFile("b", os.O_WRONLY|os.O_TRUNC, 0)
		must(t, err)
		must(t, f.Close())
		wantFree(t, m, capacity)
	})
	t.Run("a crash is counted anew", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(capacity))
		script(t, m, "allocate:f=40000", "sync:f", "syncdir:/", "remove:f", "allocate:g=40000", "sync:g")
		wantFree(t, m, 0)
		wantFree(t, m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepNone}), 0) // f again
		c := m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepAll})
		must(t, c.Remove("g"))
		wantFree(t, c, capacity)
	})
}

func TestDump(t *testing.T) {
	m := vfs.NewMem()
	script(t, m, "mkdir:d", "put:d/f=abc", "link:l>d/f", "put:a")
	want := []string{"/a 0", "/d/", "/d/f 3", "/l -> d/f"}
	if got := m.Dump(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMemHasNoRootToRemoveOrMove(t *testing.T) {
	m := vfs.NewMem()
	script(t, m, "mkdir:d")
	for call, err := range map[string]error{
		"remove":      m.Remove("/"),
		"rename from": m.Rename("/", "/d/e"),
		"rename to":   m.Rename("/d", "/"),
	} {
		if !errors.Is(err, syscall.EBUSY) {
			t.Errorf("%s: %v, want EBUSY", call, err)
		}
	}
	if err := m.Symlink("x", "d"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("symlink over a directory: %v, want %v", err, fs.ErrExist)
	}
	if got := state(t, m); got != "d/" {
		t.Errorf("left %q", got)
	}
}

func TestDirectoryHandleSyncsItsEntries(t *testing.T) {
	m := vfs.NewMem()
	script(t, m, "put:f=abc", "sync:f")
	in := vfs.NewInject(m)
	if err := syncFile(in, "/", os.O_RDONLY); err != nil {
		t.Error(err)
	}
	if got := state(t, m.CrashClone(vfs.CrashOptions{})); got != "f=abc" {
		t.Errorf("after the sync: %q", got)
	}
	script(t, m, "put:g=d", "sync:g")
	in.FailAt(in.Count()+2, syscall.EIO)
	if err := syncFile(in, "/", os.O_RDONLY); !errors.Is(err, syscall.EIO) {
		t.Errorf("failed sync: %v, want EIO", err)
	}
	must(t, syncFile(in, "/", os.O_RDONLY))
	if got := state(t, m.CrashClone(vfs.CrashOptions{})); got != "f=abc" {
		t.Errorf("after the failed sync and another: %q", got)
	}
}

func TestModTimeMovesWithChanges(t *testing.T) {
	m := vfs.NewMem()
	script(t, m, "mkdir:d", "put:f=a")
	mtime := func(name string) time.Time {
		t.Helper()
		info, err := m.Lstat(name)
		must(t, err)
		return info.ModTime()
	}
	f, d := mtime("f"), mtime("d")
	script(t, m, "sync:f", "sync:d/../f", "syncdir:d")
	if !mtime("f").Equal(f) || !mtime("d").Equal(d) {
		t.Error("a sync moved the time")
	}
	for !time.Now().After(f) || !time.Now().After(d) {
		continue // the clock may be coarse
	}
	script(t, m, "write:f@0=b", "put:d/g")
	if !mtime("f").After(f) || !mtime("d").After(d) {
		t.Error("a change did not move the time")
	}
}

func TestCrashOptionsPrintWhatATestNeedsToRepeatThem(t *testing.T) {
	for _, test := range []struct {
		opts vfs.CrashOptions
		want string
	}{
		{vfs.CrashOptions{}, "keep none, seed 0, torn false"},
		{vfs.CrashOptions{Keep: vfs.KeepRandom, Seed: 7, Torn: true}, "keep random, seed 7, torn true"},
		{vfs.CrashOptions{Keep: vfs.KeepAll}, "keep all, seed 0, torn false"},
		{vfs.CrashOptions{Keep: 9}, "keep Keep(9), seed 0, torn false"},
	} {
		if got := test.opts.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
