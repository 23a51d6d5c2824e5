//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func mkfifo(name string) error { return syscall.Mkfifo(name, 0o666) }

func TestRemoveAll(t *testing.T) {
	tests := []struct {
		name   string
		tree   []string
		remove string
		after  []string
	}{
		{"nothing", []string{"f=1"}, "gone", []string{"f=1"}},
		{"a file", []string{"f=1", "g=2"}, "f", []string{"g=2"}},
		{"a tree", []string{"d/", "d/e/", "d/e/f=1", "d/g=2", "h=3"}, "d", []string{"h=3"}},
		{"a link to a tree, not the tree", []string{"d/", "d/f=1", "l->d"}, "l", []string{"d/", "d/f=1"}},
		{"links in a tree, not what they lead to", []string{"d/", "d/f=1", "e/", "e/l->../d", "e/m->../d/f", "e/n->gone"}, "e", []string{"d/", "d/f=1"}},
		{"a tree by the parent of a link's target", []string{"d/", "d/e/", "d/x/", "d/x/f=1", "l->d/e", "x/", "x/f=2"}, "l/../x", []string{"d/", "d/e/", "l->", "x/", "x/f=2"}},
		{"a tree by a linked parent", []string{"d/", "d/e/", "d/e/f=1", "d/g=2", "l->d"}, "l/e", []string{"d/", "d/g=2", "l->"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			onAll(t, func(t *testing.T, b backend) {
				b.plant(t, test.tree...)
				must(t, vfs.RemoveAll(b, b.path(test.remove)))
				if got := b.list(t); !slices.Equal(got, test.after) {
					t.Errorf("left %q, want %q", got, test.after)
				}
			})
		})
	}
}

func TestRemoveAllGoesOnAfterAFailure(t *testing.T) {
	m := vfs.NewMem()
	script(t, m, "mkdir:d", "put:d/a", "put:d/b", "put:d/c", "mkdir:d/e", "put:d/e/f")
	in := vfs.NewInject(m)
	must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRemove}, Pattern: "b", Err: syscall.EACCES}))
	err := vfs.RemoveAll(in, "d")
	var pe *fs.PathError
	if !errors.As(err, &pe) || pe.Err != syscall.EACCES || pe.Path != "d/b" {
		t.Errorf("error %v, want the one of d/b", err)
	}
	if got := state(t, m); got != "d/ d/b=" {
		t.Errorf("left %q", got)
	}
}

func TestRemoveAllReportsEachFailure(t *testing.T) {
	build := func() *vfs.Mem {
		m := vfs.NewMem()
		script(t, m, "mkdir:d", "put:d/a", "mkdir:d/e", "put:d/e/f")
		return m
	}
	for i := 1; ; i++ {
		in := vfs.NewInject(build())
		in.FailAt(i, syscall.EIO)
		err := vfs.RemoveAll(in, "d")
		if in.Count() < i {
			must(t, err)
			if i == 1 {
				t.Fatal("no operation at all")
			}
			break
		}
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("failed %q: error %v", in.Trace()[i-1], err)
		}
	}
}

func TestRemoveAllOfSeveralAtOnce(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "d/")
		for i := range 10 {
			b.plant(t, fmt.Sprintf("d/%d/", i), fmt.Sprintf("d/%d/f", i))
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				// ENOTEMPTY cannot come: nobody creates anything.
				if err := vfs.RemoveAll(b, b.path("d")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := b.list(t); len(got) != 0 {
			t.Errorf("left %q", got)
		}
	})
}

func TestReadFile(t *testing.T) {
	content := strings.Repeat("0123456789", 1000)
	tests := []struct {
		name  string
		size  int
		limit int64
		err   error
	}{
		{"an empty file", 0, 0, nil},
		{"a file below the limit", 5000, 6000, nil},
		{"a file of the limit", 5000, 5000, nil},
		{"a file above the limit", 5000, 4999, vfs.ErrTooLarge},
		{"no byte allowed", 1, 0, vfs.ErrTooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			onAll(t, func(t *testing.T, b backend) {
				b.plant(t, "f="+content[:test.size])
				data, err := vfs.ReadFile(b, b.path("f"), test.limit)
				if !errors.Is(err, test.err) {
					t.Errorf("error %v, want %v", err, test.err)
				}
				if err == nil && string(data) != content[:test.size] {
					t.Errorf("%d bytes differ", len(data))
				}
				if err != nil && data != nil {
					t.Errorf("%d bytes came with the error", len(data))
				}
			})
		})
	}
	t.Run("nothing", func(t *testing.T) {
		onAll(t, func(t *testing.T, b backend) {
			if _, err := vfs.ReadFile(b, b.path("f"), 10); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error %v, want %v", err, fs.ErrNotExist)
			}
		})
	})
	t.Run("a directory", func(t *testing.T) {
		onAll(t, func(t *testing.T, b backend) {
			if _, err := vfs.ReadFile(b, b.dir, 10); !errors.Is(err, vfs.ErrNotRegular) {
				t.Errorf("error %v, want %v", err, vfs.ErrNotRegular)
			}
		})
	})
	t.Run("a pipe does not block", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "fifo")
		must(t, mkfifo(name))
		if _, err := vfs.ReadFile(vfs.OS, name, 10); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("error %v, want %v", err, vfs.ErrNotRegular)
		}
	})
}

// lying is a filesystem whose files claim to be empty, like those of /proc, and
// to grow while they are read.
type lying struct{ vfs.FS }

type lyingFile struct{ vfs.File }

type lyingInfo struct{ fs.FileInfo }

func (l lying) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := l.FS.OpenFile(name, flag, perm)
	return lyingFile{f}, err
}

func (f lyingFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return lyingInfo{info}, err
}

func (lyingInfo) Size() int64 { return 0 }

func TestReadFileDoesNotTrustTheSize(t *testing.T) {
	m := vfs.NewMem()
	content := strings.Repeat("x", 10000)
	script(t, m, "put:f="+content)
	data, err := vfs.ReadFile(lying{m}, "f", 10000)
	if string(data) != content || err != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if _, err := vfs.ReadFile(lying{m}, "f", 9999); !errors.Is(err, vfs.ErrTooLarge) {
		t.Errorf("error %v, want %v", err, vfs.ErrTooLarge)
	}
}

func TestWriteFile(t *testing.T) {
	t.Run("writes a new file", func(t *testing.T) {
		onAll(t, func(t *testing.T, b backend) {
			must(t, vfs.WriteFile(b, b.path("f"), []byte("abc"), 0o666, true))
			must(t, vfs.WriteFile(b, b.path("g"), nil, 0o666, false))
			if got := b.list(t); !slices.Equal(got, []string{"f=abc", "g="}) {
				t.Errorf("left %q", got)
			}
		})
	})
	t.Run("replaces nothing", func(t *testing.T) {
		onAll(t, func(t *testing.T, b backend) {
			b.plant(t, "d/", "f=old", "l->gone")
			before := b.list(t)
			for _, name := range []string{"d", "f", "l"} {
				if err := vfs.WriteFile(b, b.path(name), []byte("new"), 0o666, true); !errors.Is(err, fs.ErrExist) {
					t.Errorf("%s: %v, want %v", name, err, fs.ErrExist)
				}
			}
			if got := b.list(t); !slices.Equal(got, before) {
				t.Errorf("left %q, want %q", got, before)
			}
		})
	})
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("survives a crash if synced: %t", sync), func(t *testing.T) {
			m := vfs.NewMem()
			must(t, vfs.WriteFile(m, "f", []byte("abc"), 0o666, sync))
			must(t, m.SyncDir("/"))
			want := "f="
			if sync {
				want = "f=abc"
			}
			if got := state(t, m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepNone})); got != want {
				t.Errorf("left %q, want %q", got, want)
			}
		})
	}
	t.Run("reports each failure", func(t *testing.T) {
		for i := 1; ; i++ {
			in := vfs.NewInject(vfs.NewMem())
			in.FailAt(i, syscall.EIO)
			err := vfs.WriteFile(in, "f", bytes.Repeat([]byte("x"), 100), 0o666, true)
			if in.Count() < i {
				must(t, err)
				if i < 4 {
					t.Errorf("only %d operations", i-1)
				}
				break
			}
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("failed %q: error %v", in.Trace()[i-1], err)
			}
			if last := in.Ops()[in.Count()-1].Kind; i > 1 && last != vfs.OpClose {
				t.Errorf("failed %q: the file was not closed: %q", in.Trace()[i-1], in.Trace())
			}
		}
	})
}

func TestExists(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		b.plant(t, "d/", "f", "l->gone", "m->d")
		for name, want := range map[string]bool{"d": true, "f": true, "l": true, "m": true, "x": false, "x/y": false} {
			if got, err := vfs.Exists(b, b.path(name)); got != want || err != nil {
				t.Errorf("%s: %t, %v, want %t", name, got, err, want)
			}
		}
		if got, err := vfs.Exists(b, b.path("f/x")); got || !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("below a file: %t, %v, want ENOTDIR", got, err)
		}
	})
	in := vfs.NewInject(vfs.NewMem())
	in.FailAt(1, syscall.EACCES)
	if got, err := vfs.Exists(in, "/"); got || !errors.Is(err, syscall.EACCES) {
		t.Errorf("unknown: %t, %v, want EACCES", got, err)
	}
}

func TestOSFileHasADescriptor(t *testing.T) {
	f, err := vfs.OS.OpenFile(t.TempDir(), os.O_RDONLY, 0)
	must(t, err)
	defer f.Close()
	if _, ok := f.(interface{ Fd() uintptr }); !ok {
		t.Errorf("%T has none", f)
	}
}

func TestMoveNoReplaceLooksFirstWhereItMust(t *testing.T) {
	for _, supported := range []bool{true, false} {
		m := vfs.NewMem()
		in := vfs.NewInject(m)
		if !supported {
			if err := in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRenameNoReplace}, Err: vfs.ErrUnsupported}); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{"/a", "/b", "/empty"} {
			if err := m.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Symlink("/nowhere", "/dangling"); err != nil {
			t.Fatal(err)
		}
		for _, taken := range []string{"/empty", "/dangling"} {
			if err := vfs.MoveNoReplace(in, "/a", taken); !errors.Is(err, fs.ErrExist) {
				t.Errorf("supported %t: to %s: %v, want ErrExist", supported, taken, err)
			}
		}
		if err := vfs.MoveNoReplace(in, "/a", "/c"); err != nil {
			t.Errorf("supported %t: %v", supported, err)
		}
		if ok, err := vfs.Exists(m, "/c"); !ok || err != nil {
			t.Errorf("supported %t: /c is not there: %v", supported, err)
		}
	}
}
