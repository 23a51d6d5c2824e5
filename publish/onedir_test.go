package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir/onedirtest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// nodeCall is a collective call on files, of a solver that is at increment 1.
type nodeCall struct {
	name  string
	reads bool   // what is in the directory
	text  string // of the error where a node sees another one, which DIR stands for
	call  func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error
}

var nodeCalls = []nodeCall{
	{"SaveBundle", false, "the staging directory", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		return SaveBundle(context.Background(), c, dir+"/b", s.state(), opts...)
	}},
	{"Directory", false, "the staging directory", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		meta, _, err := s.state().metadata()
		if err != nil {
			return err
		}
		return Directory(context.Background(), c, dir+"/b", meta, func(context.Context, string) error {
			return errors.New("a rank writes")
		}, opts...)
	}},
	{"NewService", false, "the directory DIR ", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		service, err := NewService(context.Background(), c, Config{Checkpoint: CheckpointConfig{Every: 10, Directory: dir}}, opts...)
		if err == nil {
			service.Close()
		}
		return err
	}},
	{"NewDumps", false, "the directory DIR ", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		d, err := NewDumps(context.Background(), c, dir+"/phi_%d.bin", s.named()[:1], opts...)
		if err == nil {
			d.Close()
		}
		return err
	}},
	{"LoadBundle", true, "the bundle DIR/step_10", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		_, err := LoadBundle(context.Background(), c, dir+"/step_10", Request{Fields: s.named()}, opts...)
		return err
	}},
	{"LoadBundle in place", true, "the bundle DIR/step_10", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		_, err := LoadBundle(context.Background(), c, dir+"/step_10", Request{Fields: s.named()}, append(opts, InPlace())...)
		return err
	}},
	{"Restore from a path", true, "the bundle DIR/step_10", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		return restoreOff(c, s, Config{RestartFrom: dir + "/step_10"}, opts...)
	}},
	{"Restore the latest", true, "the bundle DIR/step_10", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		return restoreOff(c, s, Config{RestartFrom: Latest, Checkpoint: CheckpointConfig{Directory: dir}}, opts...)
	}},
	{"Restore the latest in place", true, "the bundle DIR/step_10", func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
		return restoreOff(c, s, Config{RestartFrom: Latest, Checkpoint: CheckpointConfig{Directory: dir}}, append(opts, InPlace())...)
	}},
}

// restoreOff restores with a service that saves nothing.
func restoreOff(c *comm.Comm, s *testSolver, cfg Config, opts ...Option) error {
	service, err := NewService(context.Background(), c, cfg, opts...)
	if err != nil {
		return err
	}
	defer service.Close()
	_, err = service.Restore(context.Background(), s.solver())
	return err
}

// newNodeFS has a checkpoint directory with a bundle under the name of increment 10, of
// the state of any increment, with checksums or as another writer leaves it.
func newNodeFS(t *testing.T, increment int64, checksums bool) *vfs.Mem {
	t.Helper()
	fsys := newFS(t)
	if err := fsys.Mkdir("/data/ckpt", 0o777); err != nil {
		t.Fatal(err)
	}
	if increment == 0 {
		return fsys
	}
	if err := saveStep(t, fsys, 2, "/data", increment); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Rename(filepath.Join("/data", StepName(increment)), "/data/ckpt/step_10"); err != nil {
		t.Fatal(err)
	}
	if checksums {
		return fsys
	}
	m, _, err := readMetadata(fsys, "/data/ckpt/step_10")
	if err != nil {
		t.Fatal(err)
	}
	m.Writer, m.AcceptedIncrement, m.AcceptedTime, m.ResultCounter = nil, 10, testTime(10), 20
	text, err := EncodeMetadata(m)
	if err != nil {
		t.Fatal(err)
	}
	damage(t, fsys, "/data/ckpt/step_10/metadata.json", func([]byte) []byte { return text })
	damage(t, fsys, "/data/ckpt/step_10/checksums.txt", func([]byte) []byte { return nil })
	return fsys
}

// TestEveryCallFindsOutThatANodeSeesAnotherDirectory, before a field is read or written.
// What a node has at the path doesn't matter: nothing, or what an earlier job left, whose
// state would become one half of this one. Nothing changes, on disk and in the solver.
func TestEveryCallFindsOutThatANodeSeesAnotherDirectory(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, nodes := range [][]int{{0, 1}, {0, 1, 0, 1}} {
		for _, tc := range nodeCalls {
			for name, files := range map[string][2]*vfs.Mem{
				"a directory of its own":            {newNodeFS(t, 10, true), newNodeFS(t, 0, true)},
				"no directory":                      {newNodeFS(t, 10, true), newFS(t)},
				"an older state":                    {newNodeFS(t, 10, true), newNodeFS(t, 9, true)},
				"an older state, without checksums": {newNodeFS(t, 10, false), newNodeFS(t, 9, false)},
			} {
				t.Run(fmt.Sprint(tc.name, " ", nodes, " ", name), func(t *testing.T) {
					before := [2][]string{files[0].Dump(), files[1].Dump()}
					err := onRanks(t, len(nodes), func(c *comm.Comm) error {
						s, err := newTestSolver(c, 1, "phi", "T")
						if err == nil {
							err = s.advance(1)
						}
						if err := c.Agree(context.Background(), err); err != nil {
							return err
						}
						err = tc.call(c, s, "/data/ckpt", onNodes(nodes...), Filesystem(files[nodes[c.Rank()]]))
						if err := s.check(1); err != nil {
							t.Errorf("the solver has changed: %v", err)
						}
						return err
					})
					wantError(t, err, nil, "rank 1: ", "node "+host+" does not see "+strings.ReplaceAll(tc.text, "DIR", "/data/ckpt"), "local to a node")
					for i, fsys := range files {
						sameFiles(t, fsys, before[i])
					}
				})
			}
		}
	}
}

// TestANodeMayHaveTheSameBundle, as where it was copied to each of them before: it is
// only read.
func TestANodeMayHaveTheSameBundle(t *testing.T) {
	for _, checksums := range []bool{true, false} {
		files := [2]*vfs.Mem{newNodeFS(t, 10, checksums), newNodeFS(t, 10, checksums)}
		for _, file := range []string{"metadata.json", "checksums.txt"} { // but the time of the writing
			data, err := vfs.ReadFile(files[0], "/data/ckpt/step_10/"+file, 1<<20)
			if err == nil {
				damage(t, files[1], "/data/ckpt/step_10/"+file, func([]byte) []byte { return data })
			}
		}
		for _, tc := range nodeCalls {
			if !tc.reads {
				continue
			}
			err := onRanks(t, 2, func(c *comm.Comm) error {
				s, err := newTestSolver(c, 1, "phi", "T")
				if err := c.Agree(context.Background(), err); err != nil {
					return err
				}
				if err := tc.call(c, s, "/data/ckpt", onNodes(0, 1), Filesystem(files[c.Rank()])); err != nil {
					return err
				}
				s.clock, s.results = testClock{10, testTime(10)}, 20
				return c.Agree(context.Background(), s.check(10))
			})
			if err != nil {
				t.Errorf("%s, checksums %t: %v", tc.name, checksums, err)
			}
		}
	}
}

// TestANodesViewDoesNotSetABundleAside: rank 0's is good.
func TestANodesViewDoesNotSetABundleAside(t *testing.T) {
	ours, other := newFS(t), newFS(t)
	if err := withService(t, ours, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	if err := withService(t, other, 2, serviceConfig(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	// The directory itself is one: the nodes share all but the newest bundle.
	view := onedirtest.Moved(ours, "/data/ckpt/step_20", "/data/ckpt/step_10")
	before := ours.Dump()
	err := onRanks(t, 2, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi", "T")
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		fsys := onedirtest.Moved(ours, "/nowhere", "/nowhere")
		if c.Rank() == 1 {
			fsys = view
		}
		service, err := NewService(context.Background(), c, serviceConfig(Latest), onNodes(0, 1), Filesystem(fsys))
		if err != nil {
			return err
		}
		defer service.Close()
		_, err = service.Restore(context.Background(), s.solver())
		return err
	})
	wantError(t, err, nil, "rank 1: ", "does not see the bundle /data/ckpt/step_20")
	sameFiles(t, ours, before)
}

// TestTheCostOfABundleOnSeveralNodes is one agreement more for a save, and none for a
// load.
func TestTheCostOfABundleOnSeveralNodes(t *testing.T) {
	count := func(nodes ...int) (save, load int) {
		fsys := newFS(t)
		if err := onRanks(t, 2, func(c *comm.Comm) error {
			s, err := newTestSolver(c, 1, "phi", "T")
			if err == nil {
				err = s.advance(1)
			}
			if err := c.Agree(context.Background(), err); err != nil {
				return err
			}
			if _, _, err := c.Node(context.Background()); err != nil {
				return err
			}
			opts := []Option{onNodes(nodes...), Filesystem(fsys)}
			calls := []int{c.Collectives()}
			if err := SaveBundle(context.Background(), c, "/data/b", s.state(), opts...); err != nil {
				return err
			}
			calls = append(calls, c.Collectives())
			if _, err := LoadBundle(context.Background(), c, "/data/b", Request{Fields: s.named()}, opts...); err != nil {
				return err
			}
			calls = append(calls, c.Collectives())
			if c.Rank() == 0 {
				save, load = calls[1]-calls[0], calls[2]-calls[1]
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return save, load
	}
	save, load := count(0, 0)
	if s, l := count(0, 1); s != save+1 || l != load {
		t.Errorf("collective calls on two nodes: %d and %d, on one: %d and %d", s, l, save, load)
	}
}

// TestAChangeOfTheWorkingDirectoryChangesNothing for what was given a relative path
// before: in the new directory, another run has its files under the same names.
func TestAChangeOfTheWorkingDirectoryChangesNothing(t *testing.T) {
	ctx, c := context.Background(), comm.Self()
	solver := func(increment int64) *testSolver {
		s, err := newTestSolver(c, 1, "phi", "T")
		if err == nil {
			err = s.advance(increment)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	config := Config{Checkpoint: CheckpointConfig{Every: 10, Directory: "ckpt", Keep: 1}}
	here, there := t.TempDir(), t.TempDir()
	content := func(dir string) map[string]string {
		all := map[string]string{}
		must(filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				var b []byte
				b, err = os.ReadFile(path)
				all[strings.TrimPrefix(path, dir)] = string(b)
			}
			return err
		}))
		return all
	}
	for _, dir := range []string{there, here} {
		t.Chdir(dir)
		must(os.Mkdir("dumps", 0o777))
		increment := int64(30)
		if dir == there {
			increment = 20
		}
		must(SaveBundle(ctx, c, "first", solver(increment).state()))
	}

	service, err := NewService(ctx, c, config)
	must(err)
	defer service.Close()
	restarted := config
	restarted.RestartFrom, restarted.Checkpoint.Directory = "first", "other"
	restart, err := NewService(ctx, c, restarted)
	must(err)
	defer restart.Close()
	s := solver(10)
	dumps, err := NewDumps(ctx, c, "dumps/phi_%04d.bin", s.named()[:1])
	must(err)
	defer dumps.Close()
	bundle, err := OpenBundle("first")
	must(err)
	defer bundle.Close()

	t.Chdir(there)
	before := content(there)
	for _, increment := range []int64{10, 20} {
		must(s.advance(increment))
		if out, err := service.MaybeSave(ctx, s.solver()); err != nil || !out.Saved || out.Path != filepath.Join("ckpt", StepName(increment)) {
			t.Errorf("saved %+v, %v", out, err)
		}
		if paths, err := dumps.Write(ctx, increment, float64(increment)); err != nil || paths[0] != fmt.Sprintf("%s/dumps/phi_%04d.bin", here, increment) {
			t.Errorf("dumped %q, %v", paths, err)
		}
	}
	if loaded, err := restart.Restore(ctx, s.solver()); err != nil || loaded.Path != "first" {
		t.Errorf("restarted from %+v, %v", loaded, err)
	}
	if err := s.check(30); err != nil {
		t.Errorf("restarted: %v", err)
	}
	cells := make([]float64, testDomain.Cells())
	if err := bundle.ReadField("phi", cells); err != nil || cells[0] != cellValue("phi", 30, [3]int{}) || bundle.Path() != "first" {
		t.Errorf("the open bundle %s has %v first, %v", bundle.Path(), cells[0], err)
	}
	if err := bundle.Verify(ctx, nil); err != nil {
		t.Error(err)
	}
	if after := content(there); !slices.EqualFunc(keys(before), keys(after), func(a, b string) bool { return a == b && before[a] == after[b] }) {
		t.Errorf("the other directory had %q and has %q, or others have changed", keys(before), keys(after))
	}
	for _, name := range []string{"ckpt/step_20/metadata.json", "dumps/phi_0010.bin", "dumps/phi_0020.bin", "dumps/phi.xmf"} {
		if _, err := os.Stat(filepath.Join(here, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(here, "ckpt/step_10")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("what is not kept: %v", err)
	}
	if xmf, err := os.ReadFile(filepath.Join(here, "dumps/phi.xmf")); err != nil || !bytes.Contains(xmf, []byte("phi_0020.bin")) {
		t.Errorf("the series: %v\n%s", err, xmf)
	}
}

func keys(m map[string]string) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
