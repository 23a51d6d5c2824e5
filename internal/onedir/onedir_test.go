package onedir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/onedir/onedirtest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

var silent = slog.New(slog.DiscardHandler)

// onRanks runs f on ranks and returns the outcome, which must be the same on all of them.
func onRanks(t *testing.T, ranks int, f func(c *comm.Comm) error) error {
	t.Helper()
	errs := make([]error, ranks)
	if err := comm.Run(ranks, func(c *comm.Comm) error {
		errs[c.Rank()] = f(c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for r, err := range errs {
		if fmt.Sprint(err) != fmt.Sprint(errs[0]) {
			t.Fatalf("rank 0 has %v, rank %d has %v", errs[0], r, err)
		}
	}
	return errs[0]
}

func wantError(t *testing.T, err error, is error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) || is != nil && !errors.Is(err, is) {
			t.Errorf("error is %v, want one of %v with %q", err, is, text)
		}
	}
}

func host(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return "node " + name + " does not see"
}

// TestPathsBecomeThoseOfRankZero: they cost a message only where they differ.
func TestPathsBecomeThoseOfRankZero(t *testing.T) {
	for name, own := range map[string]func(rank int) []string{
		"equal":                  func(int) []string { return []string{"/a", ""} },
		"one differs on a rank":  func(rank int) []string { return []string{"/a", fmt.Sprint("/b", rank/2)} },
		"all differ":             func(rank int) []string { return []string{fmt.Sprint("/a\xff", rank), fmt.Sprint(rank)} },
		"the same text, cut":     func(rank int) []string { return []string{"/ab"[:2+rank%2], "/ab"[2+rank%2:]} },
		"no paths":               func(int) []string { return nil },
		"many, the last differs": func(rank int) []string { return append(slices.Repeat([]string{"/x"}, 99), fmt.Sprint(rank)) },
	} {
		t.Run(name, func(t *testing.T) {
			err := onRanks(t, 4, func(c *comm.Comm) error {
				p := onedir.NewPaths(own(c.Rank())...)
				var v []int64
				for _, m := range p.Maxima() {
					v = append(v, *m)
				}
				if err := c.AgreeMax(t.Context(), nil, v); err != nil {
					return err
				}
				for i, m := range p.Maxima() {
					*m = v[i]
				}
				before := c.Collectives()
				if err := p.Settle(t.Context(), c); err != nil {
					return err
				}
				if n := c.Collectives() - before; n != map[bool]int{true: 0, false: 1}[name == "equal" || name == "no paths"] {
					t.Errorf("%d collective calls", n)
				}
				for i, want := range own(0) {
					if p.At(i) != want {
						t.Errorf("rank %d has %q, want %q", c.Rank(), p.At(i), want)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAbsChangesNothingElse(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "", "/a//b/../c/": "/a//b/../c/", "a/../b": wd + "/a/../b", ".": wd + "/.",
	} {
		if got, err := onedir.Abs(path); err != nil || got != want {
			t.Errorf("%q becomes %q, %v: want %q", path, got, err, want)
		}
	}
}

// views are the filesystems of the nodes: all of them see rank 0's, or another one.
type views map[int]vfs.FS

func newViews(t *testing.T) (views, *vfs.Mem, *vfs.Mem) {
	t.Helper()
	ours, other := vfs.NewMem(), vfs.NewMem()
	for _, m := range []*vfs.Mem{ours, other} {
		if err := m.Mkdir("/data", 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return views{0: ours, 1: ours, 2: other}, ours, other
}

func TestADirectoryIsSeenByAllNodes(t *testing.T) {
	for _, nodes := range [][]int{{0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {1, 0, 0}} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			fsys, ours, _ := newViews(t)
			look := onedirtest.Nodes(nodes...)
			err := onRanks(t, len(nodes), func(c *comm.Comm) error {
				several, looks, err := look.Nodes(t.Context(), c)
				if err != nil || !several {
					t.Errorf("several nodes: %v, %v", several, err)
				}
				if first := slices.Index(nodes, nodes[c.Rank()]); looks != (first == c.Rank() && first > 0) {
					t.Errorf("rank %d looks: %v", c.Rank(), looks)
				}
				return look.Directory(t.Context(), c, fsys[nodes[c.Rank()]], silent, func() (string, error) {
					if c.Rank() > 0 {
						t.Errorf("rank %d claims the directory", c.Rank())
					}
					return "/data", nil
				})
			})
			if err != nil {
				t.Error(err)
			}
			if left := ours.Dump(); len(left) != len(vfs.NewMem().Dump())+1 {
				t.Errorf("left are %q", left)
			}
		})
	}
}

func TestADirectoryThatANodeDoesNotSee(t *testing.T) {
	errOwn := errors.New("claimed by somebody else")
	for _, tc := range []struct {
		name  string
		put   func(other *vfs.Mem) error
		claim error
		want  []string
	}{
		{"another directory", func(*vfs.Mem) error { return nil }, nil, []string{"rank 2: ", "the directory /data", "local to a node"}},
		{"no directory", func(m *vfs.Mem) error { return m.Remove("/data") }, nil, []string{"rank 2: ", "the directory /data"}},
		{"not claimed", func(*vfs.Mem) error { return nil }, errOwn, []string{"rank 0: claimed by"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys, ours, other := newViews(t)
			if err := tc.put(other); err != nil {
				t.Fatal(err)
			}
			before, otherBefore := ours.Dump(), other.Dump()
			nodes := []int{0, 1, 2, 2}
			look := onedirtest.Nodes(nodes...)
			err := onRanks(t, len(nodes), func(c *comm.Comm) error {
				return look.Directory(t.Context(), c, fsys[nodes[c.Rank()]], silent, func() (string, error) { return "/data", tc.claim })
			})
			want, kind := tc.want, error(nil)
			if tc.claim == nil {
				want, kind = append(want, host(t)), onedir.ErrNotSeen
			}
			wantError(t, err, kind, want...)
			if !slices.Equal(before, ours.Dump()) || !slices.Equal(otherBefore, other.Dump()) {
				t.Errorf("left are %q and %q", ours.Dump(), other.Dump())
			}
		})
	}
	t.Run("a directory that isn't there", func(t *testing.T) {
		fsys := vfs.NewMem()
		look := onedirtest.Nodes(0, 1)
		err := onRanks(t, 2, func(c *comm.Comm) error {
			return look.Directory(t.Context(), c, fsys, silent, func() (string, error) { return "/none", nil })
		})
		wantError(t, err, fs.ErrNotExist, "rank 0: write to /none: ")
	})
}

// TestANodeLooksAgain: a network filesystem shows things late.
func TestANodeLooksAgain(t *testing.T) {
	for times, want := range map[int]error{1: nil, 5: syscall.ENOENT} {
		fsys, ours, _ := newViews(t)
		late := vfs.NewInject(ours)
		if err := late.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpLstat}, Err: syscall.ENOENT, Times: times}); err != nil {
			t.Fatal(err)
		}
		fsys[1] = late
		look := onedirtest.Nodes(0, 1)
		err := onRanks(t, 2, func(c *comm.Comm) error {
			return look.Directory(t.Context(), c, fsys[c.Rank()], silent, func() (string, error) { return "/data", nil })
		})
		if !errors.Is(err, want) {
			t.Errorf("late %d times: %v, want %v", times, err, want)
		}
	}
}

func TestACancelledContextEndsTheLook(t *testing.T) {
	look := onedirtest.Nodes(0, 1)
	look.Tries = 1 << 30
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := look.Await(ctx, "a thing", func() error {
		if tries++; tries == 3 {
			cancel()
		}
		return fs.ErrNotExist
	})
	if tries != 3 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// TestFilesThatANodeSeesOtherwise: what is only read is compared.
func TestFilesThatANodeSeesOtherwise(t *testing.T) {
	content := make([]byte, 100_000)
	errOwn := errors.New("an error of a rank")
	for _, tc := range []struct {
		name   string
		change func(other []byte) []byte // nil: the file isn't there
		part   onedir.Part
		own    int // a rank that has an error, if not 0
		want   []string
	}{
		{"the same", func(b []byte) []byte { return b }, onedir.Part{Length: -1}, 0, nil},
		{"no file", nil, onedir.Part{Length: -1}, 0, []string{"rank 1: ", "the thing as rank 0 does", "/data/f"}},
		{"another size", func(b []byte) []byte { return b[:99_999] }, onedir.Part{Length: 1000}, 0, []string{"rank 1: ", "other content"}},
		{"another beginning", func(b []byte) []byte { b[0]++; return b }, onedir.Part{Length: -1}, 0, []string{"rank 1: ", "other content"}},
		{"another middle", func(b []byte) []byte { b[50_000]++; return b }, onedir.Part{Length: -1}, 0, []string{"rank 1: "}},
		{"another end", func(b []byte) []byte { b[99_999]++; return b }, onedir.Part{Length: -1}, 0, []string{"rank 1: "}},
		{"another byte in the part", func(b []byte) []byte { b[777]++; return b }, onedir.Part{Offset: 777, Length: 8}, 0, []string{"rank 1: "}},
		{"another byte outside of it", func(b []byte) []byte { b[776]++; return b }, onedir.Part{Offset: 777, Length: 8}, 0, nil},
		{"an error of another rank", nil, onedir.Part{Length: -1}, 2, []string{"rank 2: an error of a rank"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys, ours, other := newViews(t)
			tc.part.Path = "/data/f"
			err := vfs.WriteFile(ours, "/data/f", content, 0o666, false)
			if err == nil && tc.change != nil {
				err = vfs.WriteFile(other, "/data/f", tc.change(slices.Clone(content)), 0o666, false)
			}
			if err != nil {
				t.Fatal(err)
			}
			nodes := []int{0, 2, 0}
			look := onedirtest.Nodes(nodes...)
			err = onRanks(t, len(nodes), func(c *comm.Comm) error {
				var own error
				if tc.own > 0 && c.Rank() == tc.own {
					own = errOwn
				}
				before := c.Collectives()
				err := look.Same(t.Context(), c, own, "the thing", func() (onedir.Digest, error) {
					return onedir.Sample(fsys[nodes[c.Rank()]], []onedir.Part{tc.part})
				})
				if n := c.Collectives() - before; tc.want == nil && n != 1 {
					t.Errorf("%d collective calls", n)
				}
				return err
			})
			if tc.want == nil && err != nil {
				t.Error(err)
			}
			wantError(t, err, nil, tc.want...)
		})
	}
}

// TestOneNodeCostsNothing but the agreement that a call makes anyway.
func TestOneNodeCostsNothing(t *testing.T) {
	err := onRanks(t, 3, func(c *comm.Comm) error {
		var look onedir.Look
		if _, _, err := c.Node(t.Context()); err != nil {
			return err
		}
		before := c.Collectives()
		several, err := look.EachNode(t.Context(), c, "a thing", func() error { return errors.New("looked for") })
		if err != nil || several || c.Collectives() != before {
			t.Errorf("several nodes: %v, %v, %d collective calls", several, err, c.Collectives()-before)
		}
		err = look.Same(t.Context(), c, nil, "a thing", func() (onedir.Digest, error) { panic("looked at") })
		if n := c.Collectives() - before; n != 1 {
			t.Errorf("%d collective calls", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSampleRefusesWhatIsNoFile(t *testing.T) {
	_, err := onedir.Sample(vfs.OS, []onedir.Part{{Path: t.TempDir(), Length: -1}})
	if !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("of a directory: %v", err)
	}
}
