//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"errors"
	"fmt"
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

// everything uses each call once, or as far as it gets.
func everything(fsys vfs.FS) error {
	if err := fsys.Mkdir("/d", 0o777); err != nil {
		return err
	}
	l, err := fsys.Lock("/lock")
	if err != nil {
		return err
	}
	_, usageErr := fsys.Usage("/")
	f, err := fsys.OpenFile("/d/f", os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return errors.Join(usageErr, err, l.Release())
	}
	_, writeErr := f.Write([]byte("abc"))
	_, writeAtErr := f.WriteAt([]byte("defg"), 10)
	_, readErr := f.Read(make([]byte, 1))
	_, readAtErr := f.ReadAt(make([]byte, 2), 3)
	_, fstatErr := f.Stat()
	err = errors.Join(usageErr, writeErr, writeAtErr, readErr, readAtErr, fstatErr,
		f.Truncate(20), f.Allocate(30), f.Sync(), f.Close(), fsys.SyncDir("/d"),
		fsys.Rename("/d/f", "/d/g"), fsys.RenameNoReplace("/d", "/e"))
	_, statErr := fsys.Stat("/e")
	_, lstatErr := fsys.Lstat("/e")
	_, readDirErr := fsys.ReadDir("/e")
	f, openErr := fsys.OpenFile("/e/g", os.O_RDONLY, 0)
	if openErr == nil {
		openErr = f.Close()
	}
	return errors.Join(err, statErr, lstatErr, readDirErr, openErr, fsys.Remove("/e/g"), l.Release())
}

var everythingTrace = []string{
	"1 mkdir /d",
	"2 lock /lock",
	"3 usage /",
	"4 create /d/f",
	"5 write /d/f 3 bytes",
	"6 writeat /d/f 4 bytes at 10",
	"7 read /d/f 1 bytes",
	"8 readat /d/f 2 bytes at 3",
	"9 fstat /d/f",
	"10 truncate /d/f to 20",
	"11 allocate /d/f to 30",
	"12 sync /d/f",
	"13 close /d/f",
	"14 syncdir /d",
	"15 rename /d/f -> /d/g",
	"16 rename_noreplace /d -> /e",
	"17 stat /e",
	"18 lstat /e",
	"19 readdir /e",
	"20 open /e/g",
	"21 close /e/g",
	"22 remove /e/g",
	"23 unlock /lock",
}

func TestTraceNamesEachCall(t *testing.T) {
	in := vfs.NewInject(vfs.NewMem())
	must(t, everything(in))
	if got := in.Trace(); !slices.Equal(got, everythingTrace) {
		t.Errorf("trace\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(everythingTrace, "\n"))
	}
	if got := in.Count(); got != len(everythingTrace) {
		t.Errorf("count %d, want %d", got, len(everythingTrace))
	}
}

func TestFailAtFailsEachCallOnce(t *testing.T) {
	for i := 1; ; i++ {
		m := vfs.NewMem()
		in := vfs.NewInject(m)
		in.FailAt(i, syscall.EDQUOT)
		err := everything(in)
		if i > len(everythingTrace) {
			must(t, err)
			break
		}
		if !errors.Is(err, syscall.EDQUOT) {
			t.Errorf("call %d: %v, want EDQUOT", i, err)
		}
		var pe *fs.PathError
		var le *os.LinkError
		if !errors.As(err, &pe) && !errors.As(err, &le) {
			t.Errorf("call %d: %#v names no path", i, err)
		}
		var failed []string
		for _, line := range in.Trace() {
			if strings.HasSuffix(line, ": "+syscall.EDQUOT.Error()) {
				failed = append(failed, line)
			}
		}
		if want := everythingTrace[i-1] + ": " + syscall.EDQUOT.Error(); len(failed) != 1 || failed[0] != want {
			t.Errorf("call %d: failed %q, want %q", i, failed, want)
		}
		// Whatever failed, the lock was given up.
		if _, err := m.Lock("/lock"); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestFailFromFailsTheRest(t *testing.T) {
	for i := 1; i <= len(everythingTrace); i++ {
		m := vfs.NewMem()
		in := vfs.NewInject(m)
		var before []string
		in.After(func(op vfs.Op, err error) {
			if op.Index < i {
				before = m.Dump()
			}
		})
		in.FailFrom(i, nil)
		if err := everything(in); !errors.Is(err, syscall.EIO) {
			t.Errorf("from call %d: %v, want EIO", i, err)
		}
		if after := m.Dump(); !slices.Equal(before, after) {
			t.Errorf("from call %d: changed from %q to %q", i, before, after)
		}
		for _, line := range in.Trace()[i-1:] {
			if !strings.HasSuffix(line, ": "+syscall.EIO.Error()) {
				t.Errorf("from call %d: %q did not fail", i, line)
			}
		}
	}
}

func TestRules(t *testing.T) {
	tests := []struct {
		name string
		rule vfs.Rule
		want []int // the calls of everything that fail
	}{
		{"by kind", vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync, vfs.OpSyncDir}}, []int{12, 14}},
		{"by kind, a number of times", vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync, vfs.OpSyncDir}, Times: 1}, []int{12}},
		{"by kind, from an index on", vfs.Rule{Kinds: []vfs.Kind{vfs.OpClose}, From: 14}, []int{21}},
		{"by the last part of the name", vfs.Rule{Pattern: "g"}, []int{15, 20, 21}},
		{"by a pattern", vfs.Rule{Pattern: "lo*"}, []int{2}},
		{"by the whole name", vfs.Rule{Pattern: "/d/*", Kinds: []vfs.Kind{vfs.OpWriteAt, vfs.OpMkdir}}, []int{6}},
		{"by both names of a rename", vfs.Rule{Pattern: "/e"}, []int{16, 17, 18, 19}},
		{"by a function", vfs.Rule{Match: func(op vfs.Op) bool { return op.Offset == 10 }}, []int{6}},
		{"by several conditions", vfs.Rule{Kinds: []vfs.Kind{vfs.OpClose}, At: 14}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := vfs.NewInject(vfs.NewMem())
			must(t, in.Fail(test.rule))
			var got []int
			in.After(func(op vfs.Op, err error) {
				if errors.Is(err, syscall.EIO) {
					got = append(got, op.Index)
				}
			})
			err := everything(in)
			if (err != nil) != (len(test.want) > 0) {
				t.Errorf("error %v", err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("failed %v, want %v", got, test.want)
			}
		})
	}
}

func TestMalformedPatternIsRefused(t *testing.T) {
	in := vfs.NewInject(vfs.NewMem())
	if err := in.Fail(vfs.Rule{Pattern: "["}); !errors.Is(err, path.ErrBadPattern) {
		t.Errorf("error %v, want %v", err, path.ErrBadPattern)
	}
	must(t, everything(in))
}

func TestFirstRuleCountsAndRulesCanBeCleared(t *testing.T) {
	in := vfs.NewInject(vfs.NewMem())
	in.FailAt(2, syscall.EDQUOT)
	in.FailFrom(1, syscall.EROFS)
	var got []error
	for range 3 {
		got = append(got, errno(in.Mkdir("/d", 0o777)))
	}
	in.ClearRules()
	got = append(got, errno(in.Mkdir("/d", 0o777)))
	if want := []error{syscall.EROFS, syscall.EDQUOT, syscall.EROFS, nil}; !slices.Equal(got, want) {
		t.Errorf("errors %v, want %v", got, want)
	}
}

func TestShortWrite(t *testing.T) {
	m := vfs.NewMem()
	in := vfs.NewInject(m)
	must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpWrite}, Short: 2, Err: syscall.ENOSPC}))
	must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Short: 1, Err: syscall.EDQUOT}))
	f, err := in.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o666)
	must(t, err)
	if n, err := f.Write([]byte("abc")); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %d, %v, want 2, ENOSPC", n, err)
	}
	if n, err := f.WriteAt([]byte("xyz"), 2); n != 1 || !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("write at: %d, %v, want 1, EDQUOT", n, err)
	}
	must(t, f.Close())
	if got := state(t, m); got != "f=abx" {
		t.Errorf("left %q", got)
	}
}

func TestLateFailureTookEffect(t *testing.T) {
	m := vfs.NewMem()
	in := vfs.NewInject(m)
	must(t, in.Fail(vfs.Rule{Late: true, Err: syscall.ETIMEDOUT}))
	for call, err := range map[string]error{
		"mkdir": in.Mkdir("d", 0o777),
		"create": func() error {
			f, err := in.OpenFile("f", os.O_WRONLY|os.O_CREATE, 0o666)
			if f != nil {
				t.Error("a file came with the error")
			}
			return err
		}(),
		"lock": func() error {
			l, err := in.Lock("l")
			if l != nil {
				t.Error("a lock came with the error")
			}
			return err
		}(),
	} {
		if !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("%s: %v, want ETIMEDOUT", call, err)
		}
	}
	if got := state(t, m); got != "d/ f= l=" {
		t.Errorf("left %q", got)
	}
	if _, err := m.Lock("l"); err != nil {
		t.Errorf("the lock whose success got lost is still held: %v", err)
	}
}

func TestFailedCloseAndReleaseLetGo(t *testing.T) {
	onAll(t, func(t *testing.T, b backend) {
		in := vfs.NewInject(b.FS)
		must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpClose, vfs.OpUnlock}, Err: syscall.EIO}))
		f, err := in.OpenFile(b.path("f"), os.O_RDWR|os.O_CREATE, 0o666)
		must(t, err)
		if err := f.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close: %v, want EIO", err)
		}
		if err := f.Sync(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("sync after the close: %v, want %v", err, fs.ErrClosed)
		}
		l, err := in.Lock(b.path("l"))
		must(t, err)
		if err := l.Release(); !errors.Is(err, syscall.EIO) {
			t.Errorf("release: %v, want EIO", err)
		}
		again, err := b.Lock(b.path("l"))
		if err != nil {
			t.Fatalf("lock after the release: %v", err)
		}
		must(t, again.Release())
	})
}

func TestHooksSeeOneGlobalOrder(t *testing.T) {
	in := vfs.NewInject(vfs.NewMem())
	var order []string
	in.Before(func(op vfs.Op) { order = append(order, "before "+op.String()) })
	in.After(func(op vfs.Op, err error) { order = append(order, "after "+op.String()) })
	const ranks, each = 4, 50
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			for i := range each {
				if err := in.Mkdir(fmt.Sprintf("/d%d.%d", r, i), 0o777); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ops := in.Ops()
	if len(ops) != ranks*each || len(order) != 2*len(ops) {
		t.Fatalf("%d operations, %d hook calls", len(ops), len(order))
	}
	for i, op := range ops {
		if op.Index != i+1 || order[2*i] != "before "+op.String() || order[2*i+1] != "after "+op.String() {
			t.Fatalf("operation %d is %v, with hooks %q, %q", i+1, op, order[2*i], order[2*i+1])
		}
	}
}
