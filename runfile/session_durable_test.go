//go:build hdf5

package runfile

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// changes are the operations that change something on the disk, or put it there.
func changes(ops []vfs.Op) []vfs.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op vfs.Op) bool { return op.Kind.Reads() })
}

func traceOf(ops []vfs.Op) string {
	var b strings.Builder
	for _, op := range ops {
		b.WriteString(op.String() + "\n")
	}
	return b.String()
}

// checkPublished looks how a working file came to its path: it was synced so many times
// after the last of it was written (placed: by others than HDF5), then renamed, and then the directory was synced
// before anything else but old files was changed.
func checkPublished(t *testing.T, ops []vfs.Op, path string, placed bool, syncs int) {
	t.Helper()
	ops = changes(ops)
	tmp := temporary(path)
	at := slices.IndexFunc(ops, func(op vfs.Op) bool {
		return (op.Kind == vfs.OpRename || op.Kind == vfs.OpRenameNoReplace) && op.Name == tmp && op.To == path
	})
	if at < 0 {
		t.Fatalf("%s is not renamed:\n%s", tmp, traceOf(ops))
	}
	synced, written := 0, false
	for _, op := range ops[:at] {
		switch {
		case op.Name != tmp:
		case op.Kind == vfs.OpSync:
			synced++
		case op.Kind == vfs.OpWriteAt:
			synced, written = 0, true
		case op.Kind == vfs.OpWrite, op.Kind == vfs.OpTruncate, op.Kind == vfs.OpAllocate, op.Kind == vfs.OpCreate:
			synced = 0
		}
	}
	if synced < syncs {
		t.Errorf("%s is synced %d times between the last write and the rename, want %d:\n%s", tmp, synced, syncs, traceOf(ops[:at+1]))
	}
	if written != placed {
		t.Errorf("something is written to its place: %v, want %v:\n%s", written, placed, traceOf(ops[:at+1]))
	}
	after := slices.DeleteFunc(ops[at+1:], func(op vfs.Op) bool { return op.Kind == vfs.OpRemove })
	if len(after) == 0 || after[0].Kind != vfs.OpSyncDir || after[0].Name != filepath.Dir(path) {
		t.Errorf("after the rename to %s its directory is not synced:\n%s", path, traceOf(after))
	}
}

// The content of a file is on the disk before it has its name, and its name before
// anything is published that counts on it.
func TestFilesOfARunAreDurable(t *testing.T) {
	for name, fields := range map[string]bool{"with fields": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			dir := t.TempDir()
			in := vfs.NewInject(vfs.OS)
			var cfg Config
			cells := newCellSolver(t, seriesDomain.Box(), 1, false)
			if fields {
				cfg = cells.config(dir)
			} else {
				cfg = series(dir, 5, 3)
			}
			cfg.Checkpoint.Steps = 1
			s, err := open(t.Context(), comm.Self(), cfg, smallDisk(cfg, in), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			state := make([]float64, cfg.Layout.Size())
			save := func() {
				t.Helper()
				for _, name := range cfg.Updates {
					s.SetUpdate(name, nil)
				}
				cells.set(t, s.time)
				if err := s.SaveState(t.Context(), state); err != nil {
					t.Fatal(err)
				}
			}
			// The ranks that wrote cells sync them where they did, and then the one that
			// publishes the file all of it.
			syncs := 1
			if fields {
				syncs = 2
			}
			save()
			for i := range 3 { // the first makes the files, the others replace them
				begin := len(in.Ops())
				s.Attempt(Attempt{Time: s.NextTime(), StepLength: 1, Accepted: true})
				save()
				if out, err := s.Checkpoint(t.Context(), state, nil); err != nil || !out.Written {
					t.Fatal(out, err)
				}
				ops := in.Ops()[begin:]
				checkPublished(t, ops, SegmentFile(dir, "run", 1), fields, syncs)
				// The state of a checkpoint is written to its place from the second one on.
				checkPublished(t, ops, CheckpointFile(dir, "run"), fields || i > 0, syncs)
			}
			begin := len(in.Ops())
			s.Attempt(Attempt{Time: s.NextTime(), StepLength: 1, Accepted: true})
			save()
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkPublished(t, in.Ops()[begin:], SegmentFile(dir, "run", 1), fields, syncs)
		})
	}
}

func TestAtomicOutputIsDurable(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	for range 2 {
		in := vfs.NewInject(vfs.OS)
		if err := WriteOutput(t.Context(), path, everything(t, 1), Atomic(), Fields(fieldValues), withFS(in)); err != nil {
			t.Fatal(err)
		}
		checkPublished(t, in.Ops(), path, false, 1)
	}
}

// A directory that a run makes is on the disk before what is in it.
func TestDirectoriesOfARunAreDurable(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	in := vfs.NewInject(vfs.OS)
	cfg := series(filepath.Join(dir, "a", "b"), 1, 1)
	s, err := open(t.Context(), comm.Self(), cfg, diskWith(cfg, in), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, op := range changes(in.Ops()) {
		if op.Kind == vfs.OpLock {
			break
		}
		if filepath.Dir(op.Name) == cfg.Directory {
			continue // the look whether it can be written
		}
		got = append(got, string(op.Kind)+" "+op.Name)
	}
	want := []string{"mkdir " + filepath.Join(dir, "a"), "syncdir " + dir, "mkdir " + cfg.Directory, "syncdir " + filepath.Join(dir, "a")}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Where locks don't work a run goes on, with a warning.
func TestNoLocksAreAWarning(t *testing.T) {
	closed(t)
	cfg := series(t.TempDir(), 3, 1)
	in := vfs.NewInject(vfs.OS)
	if err := in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpLock}, Err: vfs.ErrNoLocks}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	d := diskWith(cfg, in)
	d.log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := open(t.Context(), comm.Self(), cfg, d, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "second run") || !strings.Contains(text, cfg.Directory) {
		t.Errorf("the log is %q", text)
	}
	advanceSeries(t, s, 3)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkSeries(t, cfg.Directory, 3)
}
