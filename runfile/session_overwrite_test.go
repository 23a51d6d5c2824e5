//go:build hdf5

package runfile

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A job that overwrites a run and is killed, before whichever call that changes a file,
// leaves the old run whole or the new one: the next job resumes one of the two, and its
// output is that of an uninterrupted one.
func TestKilledWhileOverwriting(t *testing.T) {
	ctx := t.Context()
	old := func(dir string) Config { return diskConfig(dir) }
	fresh := func(dir string) Config {
		cfg := diskConfig(dir)
		cfg.Initial, cfg.Resume, cfg.Overwrite = []float64{3, 1, 4}, false, true
		return cfg
	}
	whole := func(config func(string) Config) *Solution {
		dir := t.TempDir()
		if _, err := runOnDisk(ctx, comm.Self(), config(dir)); err != nil {
			t.Fatal(err)
		}
		return joinedOnDisk(t, dir)
	}
	wants := []*Solution{whole(old), whole(fresh)}
	from := t.TempDir()
	cfg := old(from)
	cfg.Stop.Steps = 20
	if _, err := runOnDisk(ctx, comm.Self(), cfg); err != nil {
		t.Fatal(err)
	}

	// What names stand for changes by these, and by nothing else.
	kinds := []vfs.Kind{vfs.OpRename, vfs.OpRenameNoReplace, vfs.OpRemove, vfs.OpSyncDir}
	var ops []vfs.Op
	saw := [2]int{}
	for call := -1; call < len(ops); call++ {
		if call >= 0 && !slices.Contains(kinds, ops[call].Kind) {
			continue
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		in := vfs.NewInject(vfs.OS)
		if call >= 0 {
			in.FailFrom(call, errKilled)
		}
		cfg := fresh(dir)
		cfg.Stop.Steps = 3
		run, err := open(ctx, comm.Self(), cfg, diskWith(cfg, in), time.Now)
		opened := err == nil
		if opened {
			_, err = advance(ctx, run)
			if call >= 0 {
				run.stopListening()
				run.fields.close()
				run.unlock() // fails as everything does
			} else {
				err = errors.Join(err, run.Close(ctx))
			}
		}
		trace := strings.Join(in.Trace(), "\n")
		if call < 0 {
			if ops = in.Ops(); err != nil {
				t.Fatal(err)
			}
		}
		next := fresh(dir)
		next.Resume, next.Overwrite, next.Checkpoint.Steps = true, false, 30
		k, err := ReadCheckpoint(ctx, dir, "run", Warn(func(string) {}))
		if err != nil {
			t.Fatal(err)
		}
		which := 1
		if _, err := runOnDisk(ctx, comm.Self(), next); err != nil {
			t.Fatalf("after a kill at call %d, with the checkpoint %v: %v\n%s", call, k, err, trace)
		}
		got := joinedOnDisk(t, dir)
		if got.States[0][0] == 1 {
			which = 0
		}
		saw[which]++
		if opened && which == 0 {
			t.Errorf("after a kill at call %d the overwritten run goes on\n%s", call, trace)
		}
		sameOutput(t, got, wants[which])
		for _, file := range []string{CheckpointFile(dir, "run"), PreviousFile(dir, "run")} {
			if _, err := Verify(ctx, file); err != nil {
				t.Errorf("after a kill at call %d: %v\n%s", call, err, trace)
			}
		}
		if t.Failed() {
			return
		}
	}
	if saw[0] < 3 || saw[1] < 8 {
		t.Errorf("killed at %d calls before the new run begins, at %d later", saw[0], saw[1])
	}
}
