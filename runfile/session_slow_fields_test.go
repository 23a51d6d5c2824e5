//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Either rank takes longer for each call of the system than the other waits for it to
// come to a call of the session, while fields are written, published and read.
func TestASlowDiskIsWaitedForWithFields(t *testing.T) {
	const ranks = 2
	for slow := range ranks {
		for n := range 4 {
			fails, several := n%2 == 1, n > 1
			t.Run(fmt.Sprintf("rank %d, a write fails: %v, several nodes: %v", slow, fails, several), func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					var logs [ranks]journal
					err := comm.Run(ranks, func(c *comm.Comm) error {
						fsys := vfs.NewInject(vfs.OS)
						if c.Rank() == slow {
							fsys.Delay(func(vfs.Op) { time.Sleep(tooLong) })
						}
						ctx := t.Context()
						if several {
							ctx = onedir.With(ctx, onedir.Look{Node: func(*comm.Comm, context.Context) (rank, size int, err error) { return 0, 1, nil }})
						}
						return slowFields(ctx, t, c, dir, fsys, fails, logs[c.Rank()].logger())
					})
					if err != nil {
						t.Error(err)
					}
					for rank := range ranks {
						text := logs[rank].String()
						// In which call is chance: the other rank may write and read for the slow one.
						if said := strings.Contains(text, `msg="slow step"`); said != (rank == slow) {
							t.Errorf("rank %d warns about slow steps of its own: %v\n%s", rank, said, text)
						}
						if said := strings.Contains(text, `msg="waiting for other ranks"`); said != (rank == 0 && slow == 1) {
							t.Errorf("rank %d warns about a wait for others: %v\n%s", rank, said, text)
						}
					}
				})
			})
		}
	}
}

// slowFields is a run of several segments. With a write that fails, the session is
// given up and another one goes on.
func slowFields(ctx context.Context, t *testing.T, c *comm.Comm, dir string, fsys *vfs.Inject, fails bool, log *slog.Logger) error {
	s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
	cfg := s.config(dir)
	cfg.Logger, cfg.Checkpoint.Steps, cfg.Stop.Steps = log, 1, 2
	for segment := 1; ; segment++ {
		run, err := open(ctx, c, cfg, smallDisk(cfg, fsys), time.Now)
		if err != nil {
			return err
		}
		if run.Start().Resumed {
			s.check(t, "a resumed segment", run.Start().Time)
		} else {
			s.set(t, run.time)
		}
		var out Outcome
		if err = run.SaveState(ctx, []float64{run.time}); err != nil {
			return err
		}
		for !out.Done && !out.Stop && err == nil {
			if segment == 2 && fails && c.Rank() == 0 {
				fsys.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync}, Times: 1, Err: syscall.EIO})
			}
			if err = s.step(ctx, t, run); err == nil {
				out, err = run.Checkpoint(ctx, []float64{run.time}, nil)
			}
		}
		if failed := err != nil; failed != (segment == 2 && fails) || failed && !errors.Is(err, syscall.EIO) {
			return fmt.Errorf("segment %d: %w", segment, err)
		}
		if err = run.Close(ctx); err != nil && errors.Is(err, comm.ErrDead) {
			return err
		}
		if err := c.Meet(ctx); err != nil { // none is left at work
			return err
		}
		if out.Done {
			return nil
		}
	}
}
