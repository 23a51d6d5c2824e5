//go:build hdf5

package runfile

import (
	"context"
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
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/onedir/onedirtest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// onNodes runs f on ranks that are on nodes. On node 1 the directory from is another one,
// to. It returns the outcome, which is the same on all ranks.
func onNodes(t *testing.T, nodes []int, from, to string, f func(ctx context.Context, c *comm.Comm, fsys vfs.FS) error) error {
	t.Helper()
	errs := make([]error, len(nodes))
	err := comm.Run(len(nodes), func(c *comm.Comm) error {
		ctx := onedir.With(t.Context(), onedirtest.Nodes(nodes...))
		fsys := onedirtest.Moved(vfs.OS, "/nowhere", "/nowhere")
		if nodes[c.Rank()] == 1 {
			fsys = onedirtest.Moved(vfs.OS, from, to)
		}
		errs[c.Rank()] = f(ctx, c, fsys)
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

// contents are the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	return files
}

// cellsOn runs the job of a solver with fields, of at most so many steps, in a directory.
// change alters its configuration.
func cellsOn(ctx context.Context, t *testing.T, c *comm.Comm, fsys vfs.FS, dir string, steps int64, change func(cfg *Config)) (start Start, err error) {
	s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 1, false)
	cfg := s.config(dir)
	cfg.Stop.Steps = steps
	if change != nil {
		change(&cfg)
	}
	run, err := open(ctx, c, cfg, smallDisk(cfg, fsys), time.Now)
	if err != nil {
		return start, err
	}
	start = run.Start()
	if start.Resumed {
		s.check(t, "resumed", start.Time)
	}
	s.advance(ctx, t, run)
	s.free(t)
	return start, nil
}

// TestANodeWithADirectoryOfItsOwnIsRefused: on node 1 the directory of the run is another
// one, in which an earlier job left its files: a working file, which would swallow the
// cells of a rank, and a checkpoint, from which it would go on. Nothing changes there, nor
// in rank 0's.
func TestANodeWithADirectoryOfItsOwnIsRefused(t *testing.T) {
	closed(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	alone := func(dir string, steps int64) {
		if _, err := cellsOn(t.Context(), t, comm.Self(), vfs.OS, dir, steps, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, prepare := range map[string]func(dir, other string){
		"a working file is left": func(dir, other string) {
			// All that a killed job has written of its first states.
			alone(other, 2)
			for from, to := range map[string]string{
				SegmentFile(other, "run", 1): temporary(SegmentFile(other, "run", 1)), CheckpointFile(other, "run"): temporary(CheckpointFile(other, "run")),
			} {
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a run of its own": func(dir, other string) { alone(dir, 3); alone(other, 1) },
		"nothing":          func(dir, other string) {},
		"no directory": func(dir, other string) {
			if err := os.Remove(other); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, nodes := range [][]int{{0, 1}, {0, 0, 1, 1}} {
			t.Run(fmt.Sprint(name, " ", nodes), func(t *testing.T) {
				dir, other := t.TempDir(), t.TempDir()
				prepare(dir, other)
				ours := contents(t, dir)
				_, lost := os.Stat(other)
				var theirs map[string]string
				if lost == nil {
					theirs = contents(t, other)
				}
				err := onNodes(t, nodes, dir, other, func(ctx context.Context, c *comm.Comm, fsys vfs.FS) error {
					_, err := cellsOn(ctx, t, c, fsys, dir, 2, nil)
					return err
				})
				for _, text := range []string{
					fmt.Sprintf("open run run: rank %d: node %s does not see the directory %s ", slices.Index(nodes, 1), host, dir), "local to a node",
				} {
					if err == nil || !strings.Contains(err.Error(), text) {
						t.Errorf("error is %v, want one with %q", err, text)
					}
				}
				if now := contents(t, dir); !sameContents(now, ours) {
					t.Errorf("rank 0's node has %q", names(t, dir))
				}
				if lost == nil && !sameContents(contents(t, other), theirs) {
					t.Errorf("the other node has %q", names(t, other))
				}
			})
		}
	}
}

func sameContents(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if there, ok := b[name]; !ok || there != text {
			return false
		}
	}
	return true
}

// TestARunWithoutFieldsIsRankZeros: no other rank comes to its files.
func TestARunWithoutFieldsIsRankZeros(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	err := onNodes(t, []int{0, 1}, dir, other, func(ctx context.Context, c *comm.Comm, fsys vfs.FS) error {
		cfg := diskConfig(dir)
		_, err := runSegment(ctx, c, cfg, diskWith(cfg, fsys))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if there := names(t, other); len(there) > 0 {
		t.Errorf("the other node has %q", there)
	}
}

// TestAStateFromAFileThatANodeSeesOtherwise is refused before a cell has changed: the
// file is in another directory than the run.
func TestAStateFromAFileThatANodeSeesOtherwise(t *testing.T) {
	closed(t)
	dir, from, other := t.TempDir(), t.TempDir(), t.TempDir()
	for at, first := range map[string]float64{from: 0, other: 0.5} {
		_, err := cellsOn(t.Context(), t, comm.Self(), vfs.OS, at, 0, func(cfg *Config) { cfg.TimePoints[0] = first })
		if err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, other)
	for name, file := range map[string]string{"output": SegmentFile(from, "run", 1), "checkpoint": CheckpointFile(from, "run")} {
		start := func(view string) error {
			return onNodes(t, []int{0, 1}, from, view, func(ctx context.Context, c *comm.Comm, fsys vfs.FS) error {
				s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 1, false)
				defer s.free(t)
				s.set(t, -1)
				cfg := s.config(dir)
				cfg.Name, cfg.From = "other", file
				run, err := open(ctx, c, cfg, smallDisk(cfg, fsys), time.Now)
				if err != nil {
					s.check(t, name, -1)
					return err
				}
				s.check(t, name, 5)
				return run.Close(ctx)
			})
		}
		if err := start(from); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err := start(other)
		if !errors.Is(err, ErrResume) || !strings.Contains(err.Error(), "rank 1: node ") || !strings.Contains(err.Error(), "does not see the file "+file+" as rank 0 does") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if !sameContents(contents(t, other), before) {
		t.Error("the other node's files have changed")
	}
}

// remembering is a node that remembers what a name led to when it first came to it, as
// a client of a network filesystem may, for a while. What it makes itself it knows.
type remembering struct {
	vfs.FS
	off   bool
	mu    *sync.Mutex
	known map[string]*os.File
	opens *[]string
}

func newRemembering(fsys vfs.FS, off bool) remembering {
	return remembering{fsys, off, &sync.Mutex{}, map[string]*os.File{}, new([]string)}
}

func (r remembering) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if r.off {
		return r.FS.OpenFile(name, flag, perm)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.known[name]; f != nil && flag&os.O_CREATE == 0 {
		name = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	} else if f, err := os.Open(name); err == nil {
		r.known[name] = f
		*r.opens = append(*r.opens, name)
	}
	return r.FS.OpenFile(name, flag&^syscall.O_NONBLOCK, perm)
}

func (r remembering) forget() {
	for _, f := range r.known {
		f.Close()
	}
}

// TestNoNodeTakesAWorkingFileForTheOneBefore: the working file of one checkpoint becomes
// the published file, and a node that remembers its name would write the cells of the
// next one into that.
func TestNoNodeTakesAWorkingFileForTheOneBefore(t *testing.T) {
	closed(t)
	for _, nodes := range [][]int{{0, 1}, {0, 1, 0, 1}} {
		dir := t.TempDir()
		for job, steps := range []int64{2, 1, 0} {
			var mu sync.Mutex
			opened := map[string]bool{}
			err := onNodes(t, nodes, "/nowhere", "/nowhere", func(ctx context.Context, c *comm.Comm, fsys vfs.FS) error {
				view := newRemembering(fsys, nodes[c.Rank()] == 0)
				defer view.forget()
				start, err := cellsOn(ctx, t, c, view, dir, steps, func(cfg *Config) { cfg.Checkpoint.Steps = 1 })
				if start.Resumed != (job > 0) {
					t.Errorf("job %d resumes: %v", job, start.Resumed)
				}
				mu.Lock()
				defer mu.Unlock()
				if c.Rank() == slices.Index(nodes, 1) {
					for _, name := range *view.opens {
						opened[name] = true
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(opened) < 2 {
				t.Errorf("node 1 opened %v", opened)
			}
		}
		checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
		if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
			t.Errorf("%q is left", left)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
			t.Errorf("%q is left", left)
		}
	}
}

// TestAChangeOfTheWorkingDirectoryDuringARun changes nothing: in the new directory another
// run of the name has its files, of which none is replaced, read or removed.
func TestAChangeOfTheWorkingDirectoryDuringARun(t *testing.T) {
	closed(t)
	here, there := t.TempDir(), t.TempDir()
	for _, dir := range []string{there, here} {
		t.Chdir(dir)
		if _, err := cellsOn(t.Context(), t, comm.Self(), vfs.OS, "other", 2, nil); err != nil {
			t.Fatal(err)
		}
		if dir == here {
			continue
		}
		if _, err := cellsOn(t.Context(), t, comm.Self(), vfs.OS, "out", 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("stop", nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before, other := contents(t, filepath.Join(there, "out")), contents(t, filepath.Join(there, "other"))

	s := newCellSolver(t, seriesDomain.Box(), 1, false)
	defer s.free(t)
	cfg := s.config("out")
	cfg.From, cfg.Checkpoint.Steps, cfg.Stop.File = filepath.Join("other", "run.checkpoint.h5"), 1, "stop"
	clock := newClock()
	clock.step = time.Minute
	run, err := open(t.Context(), comm.Self(), cfg, nil, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	if start := run.Start(); start.File != cfg.From || start.Time != 2 {
		t.Errorf("it starts with %+v", start)
	}
	t.Chdir(there)
	if out := s.advance(t.Context(), t, run); !out.Done {
		t.Errorf("the stop file of another run has stopped it: %+v", out)
	}
	t.Chdir(here)
	checkCellsIn(t, filepath.Join(here, "out"), 2, 3, 4, 5)
	if _, err := os.Stat(filepath.Join(here, "out", "run.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock: %v", err)
	}
	if !sameContents(contents(t, filepath.Join(there, "out")), before) || !sameContents(contents(t, filepath.Join(there, "other")), other) {
		t.Error("files of another run have changed")
	}
}

// TestWhatWasReadIsReadInItsPlace: the fields of a solution are read later.
func TestWhatWasReadIsReadInItsPlace(t *testing.T) {
	closed(t)
	here, there := t.TempDir(), t.TempDir()
	t.Chdir(here)
	if _, err := cellsOn(t.Context(), t, comm.Self(), vfs.OS, "out", 0, nil); err != nil {
		t.Fatal(err)
	}
	out, err := ReadOutput(t.Context(), []string{"out/run.segment0001.h5"})
	if err != nil {
		t.Fatal(err)
	}
	last, err := ReadCheckpoint(t.Context(), "out", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(there)
	cells := make([]float64, seriesDomain.Cells())
	if err := out.ReadField(t.Context(), "phi", 3, seriesDomain.Box(), cells); err != nil || cells[0] != phiAt(3, 0, 0, 0) {
		t.Errorf("a state has %v first, %v", cells[0], err)
	}
	if err := last.ReadField(t.Context(), "phi", seriesDomain.Box(), cells); err != nil || cells[0] != phiAt(5, 0, 0, 0) {
		t.Errorf("the checkpoint has %v first, %v", cells[0], err)
	}
	if file, _ := out.Origin(3); file != "out/run.segment0001.h5" || last.File != "out/run.checkpoint.h5" {
		t.Errorf("they are of %s and %s", file, last.File)
	}
}

// TestAWorkingDirectoryThatIsGone matters to relative paths alone.
func TestAWorkingDirectoryThatIsGone(t *testing.T) {
	closed(t)
	dir, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := cellsOn(t.Context(), t, comm.Self(), vfs.OS, dir, 2, nil); err != nil {
		t.Error(err)
	}
	checkCellsIn(t, dir, 0, 1, 2)
	if _, err := cellsOn(t.Context(), t, comm.Self(), vfs.OS, "out", 2, nil); err == nil || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("a relative directory: %v", err)
	}
}
