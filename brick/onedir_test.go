package brick_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/onedir/onedirtest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// nodesJob is a call of ranks that are on nodes with filesystems of their own.
type nodesJob struct {
	ctx  context.Context
	c    *comm.Comm
	fsys vfs.FS
	plan *brick.Plan
}

// The arrays of the calls: a plane for each rank, and where they are in a file of parts.
const (
	nodesPlane = 64
	nodesPart  = 100
)

// onNodes runs f on ranks on nodes: node 0 sees the first filesystem, node 1 the second.
func onNodes(t *testing.T, nodes []int, views [2]vfs.FS, f func(j nodesJob) error) error {
	t.Helper()
	errs := make([]error, len(nodes))
	err := comm.Run(len(nodes), func(c *comm.Comm) error {
		j := nodesJob{onedir.With(t.Context(), onedirtest.Nodes(nodes...)), c, views[nodes[c.Rank()]], nil}
		box := grid.Box{Low: [3]int{0, 0, c.Rank()}, Size: [3]int{8, 1, 1}}
		var err error
		j.plan, err = brick.NewPlan(j.ctx, c, [3]int{8, 1, len(nodes)}, box, brick.Float64, brick.Filesystem(j.fsys), brick.Using(brick.POSIX))
		if err != nil {
			return err
		}
		defer j.plan.Close()
		errs[c.Rank()] = f(j)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range errs {
		if fmt.Sprint(err) != fmt.Sprint(errs[0]) {
			t.Fatalf("rank 0 has %v, rank %d has %v", errs[0], r, err)
		}
	}
	return errs[0]
}

// nodesCells are what a rank writes.
func nodesCells(rank int) cells {
	list := make(cells, nodesPlane/8)
	for i := range list {
		list[i] = float64(100*rank + i + 1)
	}
	return list
}

func (j nodesJob) write(within bool) error {
	jobs := []brick.WriteJob{
		{Name: `field "a"`, Path: "/data/a.bin", Source: nodesCells(j.c.Rank())},
		{Name: `field "b"`, Path: "/data/b.bin", Source: nodesCells(j.c.Rank())},
	}
	if within {
		jobs[0] = brick.WriteJob{Name: `field "a"`, Path: "/data/parts", Source: nodesCells(j.c.Rank()), Within: true, Offset: nodesPart}
		jobs[1] = brick.WriteJob{Name: `field "b"`, Path: "/data/parts", Source: nodesCells(j.c.Rank()), Within: true, Offset: 2*nodesPart + j.plan.FileSize()}
	}
	_, err := j.plan.Write(j.ctx, jobs)
	return err
}

func (j nodesJob) read() error {
	_, err := j.plan.Read(j.ctx, []brick.ReadJob{{Name: `field "a"`, Path: "/data/a.bin", Sink: brick.SinkFunc(func([]byte, int64) error { return nil })}})
	return err
}

func (j nodesJob) checksums() error {
	_, err := brick.Checksums(j.ctx, j.c, j.fsys, []string{"/data/a.bin"}, j.plan.FileSize())
	return err
}

func (j nodesJob) durable() error {
	return brick.Durable(j.ctx, j.c, j.fsys, []string{"/data/a.bin"})
}

// nodesCalls are all calls of the package that are about files.
var nodesCalls = []struct {
	name string
	path string
	call func(j nodesJob) error
}{
	{"write", "/data/a.bin", func(j nodesJob) error { return j.write(false) }},
	{"write parts", "/data/parts", func(j nodesJob) error { return j.write(true) }},
	{"read", "/data/a.bin", nodesJob.read},
	{"checksums", "/data/a.bin", nodesJob.checksums},
	{"durable", "/data/a.bin", nodesJob.durable},
}

// newNodesFS is a filesystem with the files of the calls, with cells of their own.
func newNodesFS(t *testing.T, ranks int, cell byte) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	err := m.Mkdir("/data", 0o777)
	for name, size := range map[string]int{"a.bin": ranks * nodesPlane, "b.bin": ranks * nodesPlane, "parts": 2*nodesPart + 2*ranks*nodesPlane} {
		if err == nil {
			err = vfs.WriteFile(m, "/data/"+name, slices.Repeat([]byte{cell}, size), 0o666, true)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOnSeveralNodesFilesAreThoseOfRankZero: a node that has files of its own at the
// paths, such as an earlier run left there, writes none of them and reads none of them.
func TestOnSeveralNodesFilesAreThoseOfRankZero(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, nodes := range [][]int{{0, 1}, {0, 0, 1, 1}, {1, 0, 1}} {
		for _, tc := range nodesCalls {
			for name, other := range map[string]func() *vfs.Mem{
				"leftovers":    func() *vfs.Mem { return newNodesFS(t, len(nodes), 'x') },
				"no files":     func() *vfs.Mem { m := vfs.NewMem(); m.Mkdir("/data", 0o777); return m },
				"no directory": func() *vfs.Mem { return vfs.NewMem() },
			} {
				t.Run(fmt.Sprint(tc.name, " ", nodes, " ", name), func(t *testing.T) {
					ours := newNodesFS(t, len(nodes), 'o')
					theirs := other()
					views := [2]vfs.FS{ours, theirs}
					if nodes[0] == 1 {
						views = [2]vfs.FS{theirs, ours}
					}
					before, rest := theirs.Dump(), ours.Dump()
					err := onNodes(t, nodes, views, tc.call)
					rank := slices.IndexFunc(nodes, func(n int) bool { return n != nodes[0] })
					want := fmt.Sprintf("rank %d: ", rank)
					text := "node " + host + " does not see "
					if tc.name == "durable" && name != "leftovers" {
						text = `sync "/data/a.bin"` // which fails by itself
					}
					if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
						t.Errorf("error is %v, want one with %q and %q", err, want, text)
					}
					if name != "leftovers" && !errors.Is(err, syscall.ENOENT) {
						t.Errorf("error is %v, want one of %v", err, syscall.ENOENT)
					}
					if now := theirs.Dump(); !slices.Equal(before, now) {
						t.Errorf("the other node had\n%q\nand has\n%q", before, now)
					}
					if now := ours.Dump(); !strings.HasPrefix(tc.name, "write") && !slices.Equal(rest, now) {
						t.Errorf("rank 0's node had\n%q\nand has\n%q", rest, now)
					}
				})
			}
		}
	}
}

// TestOnSeveralNodesThatSeeOneDirectory all calls do what they do on one node: of the
// nonce nothing is left.
func TestOnSeveralNodesThatSeeOneDirectory(t *testing.T) {
	for _, nodes := range [][]int{{0, 1}, {0, 0, 1, 1}, {1, 0, 1}} {
		m := newNodesFS(t, len(nodes), 'o')
		err := onNodes(t, nodes, [2]vfs.FS{m, m}, func(j nodesJob) error {
			var err error
			for _, tc := range nodesCalls {
				err = errors.Join(err, tc.call(j))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for r := range nodes {
			b := make([]byte, nodesPlane)
			if err := nodesCells(r).ReadCells(b, 0); err != nil {
				t.Fatal(err)
			}
			want = append(want, b...)
		}
		got, err := vfs.ReadFile(m, "/data/a.bin", 1<<20)
		if err != nil || string(got) != string(want) {
			t.Errorf("%v: the file is %x, %v: want %x", nodes, got, err, want)
		}
		parts, err := vfs.ReadFile(m, "/data/parts", 1<<20)
		around := slices.Repeat([]byte{'o'}, nodesPart)
		if whole := slices.Concat(around, want, around, want); err != nil || string(parts) != string(whole) {
			t.Errorf("%v: the file of parts is %x, %v: want %x", nodes, parts, err, whole)
		}
	}
}

// TestALateNodeWrites: a network filesystem shows files late.
func TestALateNodeWrites(t *testing.T) {
	m := newNodesFS(t, 2, 'o')
	late := vfs.NewInject(m)
	if err := late.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpOpen}, Err: syscall.ENOENT, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if err := onNodes(t, []int{0, 1}, [2]vfs.FS{vfs.NewInject(m), late}, func(j nodesJob) error { return j.write(false) }); err != nil {
		t.Error(err)
	}
}

// TestTheCostOfSeveralNodes is one agreement for a write, and none for the others but
// the checksums and the sync; nothing where the caller has made sure. What several nodes
// wrote may have to be read back, which takes one to find out, and two for parts.
func TestTheCostOfSeveralNodes(t *testing.T) {
	for _, tc := range nodesCalls {
		count := func(nodes []int, checked bool) (n int) {
			m := newNodesFS(t, 2, 'o')
			err := onNodes(t, nodes, [2]vfs.FS{m, m}, func(j nodesJob) error {
				if checked {
					j.ctx = onedir.Checked(j.ctx)
				}
				before := j.c.Collectives()
				err := tc.call(j)
				if j.c.Rank() == 0 {
					n = j.c.Collectives() - before
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		one := count([]int{0, 0}, false)
		back := map[string]int{"write": 1, "write parts": 2}[tc.name]
		more := back + map[string]int{"write": 1, "write parts": 1, "durable": 1}[tc.name]
		if got := count([]int{0, 1}, false); got != one+more {
			t.Errorf("%s: %d collective calls on two nodes, %d on one: want %d more", tc.name, got, one, more)
		}
		less := map[string]int{"durable": 1}[tc.name]
		if got := count([]int{0, 1}, true); got != one+back-less {
			t.Errorf("%s: %d collective calls where the caller has made sure, %d on one node", tc.name, got, one)
		}
	}
}

// TestAPartNeedsAFileThatIsLongEnough where others have made it so: a file that isn't is
// another one.
func TestAPartNeedsAFileThatIsLongEnough(t *testing.T) {
	ours, other := newNodesFS(t, 2, 'o'), newNodesFS(t, 2, 'x')
	f, err := other.OpenFile("/data/parts", os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(f.Truncate(nodesPart+nodesPlane), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	before := other.Dump()
	err = onNodes(t, []int{0, 1}, [2]vfs.FS{ours, other}, func(j nodesJob) error {
		j.ctx = onedir.Checked(j.ctx) // wrongly
		return j.write(true)
	})
	if !errors.Is(err, brick.ErrSize) || !strings.Contains(err.Error(), `rank 1: write field "`) {
		t.Errorf("error is %v", err)
	}
	if !slices.Equal(before, other.Dump()) {
		t.Errorf("the other file is %q, was %q", other.Dump(), before)
	}
}

// TestARelativePathIsThatOfTheCall: the working directory may be another one by the next.
func TestARelativePathIsThatOfTheCall(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Chdir(first)
	p, err := brick.NewPlan(t.Context(), comm.Self(), [3]int{2, 1, 1}, grid.Box{Size: [3]int{2, 1, 1}}, brick.Float64)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// The source is called when the call has begun.
	source := sourceFunc(func(dst []byte, first int64) error {
		t.Chdir(second)
		return cells{1, 2}.ReadCells(dst, first)
	})
	if _, err := p.Write(t.Context(), []brick.WriteJob{{Path: "a.bin", Source: source}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(first, "a.bin")); err != nil {
		t.Error(err)
	}
	if there, err := os.ReadDir(second); err != nil || len(there) > 0 {
		t.Errorf("there are %v, %v", there, err)
	}
}

type sourceFunc func(dst []byte, first int64) error

func (f sourceFunc) ReadCells(dst []byte, first int64) error { return f(dst, first) }
