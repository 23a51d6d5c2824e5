//go:build mpi && hdf5

package runfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// TestNodesWithDirectoriesOfTheirOwnUnderMPI: with MPICH each rank can be a node, and with
// a mount of its own it sees another directory, in which a working file is left that would
// swallow its cells. Open MPI knows no such nodes: there the tests in one process stand
// alone for that, and what is tested is what holds on one node.
func TestNodesWithDirectoriesOfTheirOwnUnderMPI(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		ctx, dir := t.Context(), t.TempDir()
		_, size, err := c.Node(ctx)
		if err := c.Agree(ctx, err); err != nil {
			t.Fatal(err)
		}
		apart := []int64{boolFlag(t.IsApart())}
		if err := c.AllReduceInt64(ctx, comm.Max, apart); err != nil {
			t.Fatal(err)
		}
		if size == c.Size() || apart[0] == 0 {
			t.Logf("ranks on the node: %d, with a directory of its own: %d; nothing to find out", size, apart[0])
		} else {
			local := filepath.Join(dir, "local")
			left := temporary(SegmentFile(local, "run", 1))
			content := strings.Repeat("left ", 100_000)
			if c.Rank() == 1 {
				err = os.WriteFile(left, []byte(content), 0o666)
			}
			if err := c.Agree(ctx, err); err != nil {
				t.Fatal(err)
			}
			s := newCellSolver(t, cuts["z"](2)[c.Rank()], 1, false)
			cfg := s.config(local)
			_, err = open(ctx, c, cfg, smallDisk(cfg, vfs.OS), time.Now)
			sameOnAllRanks(t, c, "open", err)
			for _, text := range []string{"open run run: rank 1: node ", "does not see the directory " + local} {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("error is %v, want one with %q", err, text)
				}
			}
			there := fmt.Sprint(mustNames(t, local))
			if c.Rank() == 0 && there != "[]" {
				t.Errorf("rank 0's node has %s", there)
			}
			if c.Rank() == 1 {
				if text, err := os.ReadFile(left); err != nil || string(text) != content || there != "[run.segment0001.h5.tmp]" {
					t.Errorf("the other node has %s; the working file has changed: %v, %v", there, string(text) != content, err)
				}
			}
			s.free(t)
		}

		// The directory of a run is relative to rank 0's working directory, on all ranks.
		own := filepath.Join(dir, fmt.Sprint("cwd", c.Rank()))
		if err := errors.Join(os.Mkdir(own, 0o777), os.Chdir(own)); err != nil {
			t.Fatal(err)
		}
		defer os.Chdir(dir)
		for job, steps := range []int64{2, 1, 0} {
			s := newCellSolver(t, cuts["z"](2)[c.Rank()], 1, false)
			cfg := s.config("results")
			cfg.Stop.Steps, cfg.Checkpoint.Steps = steps, 1
			run, err := Open(ctx, c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if start := run.Start(); start.Resumed != (job > 0) {
				t.Errorf("job %d starts with %+v", job, start)
			} else if job > 0 {
				s.check(t, "resumed", start.Time)
			}
			s.advance(ctx, t, run)
			s.free(t)
		}
		if c.Rank() == 0 {
			checkCellsIn(t, filepath.Join(own, "results"), 0, 1, 2, 3, 4, 5)
			for _, name := range mustNames(t, filepath.Join(own, "results")) {
				if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") {
					t.Errorf("%s is left", name)
				}
			}
		} else if there := mustNames(t, own); len(there) > 0 {
			t.Errorf("rank %d has %q", c.Rank(), there)
		}
	}, mpitest.Env("MPIR_CVAR_NOLOCAL=1"), mpitest.Apart(1, "local"))
}
