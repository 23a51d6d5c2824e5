package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// tooLong is for one rank more than the others wait for it to come to a call. The tests
// here run in the time of package synctest, which costs none.
const tooLong = 11 * time.Minute

// slowRank has the same filesystem for each rank, on one of them with so slow a disk that
// each operation takes too long, and collects what each rank logs.
type slowRank struct {
	rank, of int
	fsys     *vfs.Mem
	logs     []*logs
	slow     func(op vfs.Op) bool // which operations are slow; nil: all
	fault    *vfs.Rule            // of the slow rank; nil: none
	nodes    []int                // on which the ranks believe that they are; nil: on one
}

func newSlowRank(t testing.TB, rank, of int) *slowRank {
	r := &slowRank{rank: rank, of: of, fsys: newFS(t)}
	for range of {
		r.logs = append(r.logs, new(logs))
	}
	return r
}

// opts are those of a rank.
func (r *slowRank) opts(c *comm.Comm, more ...Option) []Option {
	fsys := vfs.NewInject(r.fsys)
	if c.Rank() == r.rank {
		fsys.Delay(func(op vfs.Op) {
			if r.slow == nil || r.slow(op) {
				time.Sleep(tooLong)
			}
		})
		if r.fault != nil {
			fsys.Fail(*r.fault)
		}
	}
	if r.nodes != nil {
		more = append(more, onNodes(r.nodes...))
	}
	return append([]Option{Filesystem(fsys), Logger(slog.New(slog.NewTextHandler(r.logs[c.Rank()], nil)))}, more...)
}

// All calls go through with a disk that is too slow on any one rank, which warns about
// what it does; and rank 0 warns about the others.
func TestASlowDiskIsWaitedFor(t *testing.T) {
	const ranks = 3
	for n := range 2 * ranks {
		slow, name := n%ranks, fmt.Sprintf("on rank %d", n%ranks)
		nodes := []int{0, 0, 0}
		if n >= ranks {
			nodes, name = []int{0, 1, 1}, name+", two nodes"
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newSlowRank(t, slow, ranks)
				r.nodes = nodes
				var took [ranks]time.Duration
				if err := onRanks(t, ranks, func(c *comm.Comm) error {
					start := time.Now()
					defer func() { took[c.Rank()] = time.Since(start) }()
					return everyCall(c, r)
				}); err != nil {
					t.Error(err)
				}
				if slices.Max(took[:]) < 2*tooLong {
					t.Errorf("the ranks took %v: what is to be slow is not", took)
				}
				for rank, log := range r.logs {
					if said := strings.Contains(log.String(), "slow step"); said != (rank == slow) {
						t.Errorf("rank %d warns about slow steps of its own: %v, want %v\n%s", rank, said, rank == slow, log)
					}
					if said := strings.Contains(log.String(), "waiting for other ranks"); said != (rank == 0 && slow != 0) {
						t.Errorf("rank %d warns about a wait for others: %v\n%s", rank, said, log)
					}
				}
				for _, want := range slowSteps(slow, n >= ranks) {
					if !strings.Contains(r.logs[slow].String(), want) {
						t.Errorf("rank %d doesn't tell of %s:\n%s", slow, want, r.logs[slow])
					}
				}
			})
		})
	}
}

// slowSteps are some that the log of a slow rank has. Others may write and read for it.
func slowSteps(rank int, several bool) []string {
	call := fmt.Sprintf(`call="publish /data/ckpt/step_2" rank=%d step=`, rank)
	switch {
	case rank == 1 && several:
		return []string{call + `"look for the staging directory that rank 0 made"`, call + `"sync field \"T\""`}
	case rank == 1:
		return []string{call + `"check the fields"`, call + `"sync field \"T\""`}
	case rank == 2 && several:
		return nil
	case rank == 2:
		return []string{call + `"check the fields"`}
	}
	return []string{
		`call="checkpoint service in /data/ckpt" rank=0 step="take the checkpoint directory" for=1m`,
		`call="checkpoint service in /data/ckpt" rank=0 step="clear the checkpoint directory" for=1m`,
		`call="restart from latest" rank=0 step="look at the bundles"`,
		`step="set aside bundles"`,
		`call="publish /data/ckpt/step_2" rank=0 step="make the staging directory"`,
		`step="write what describes the fields"`,
		`step="rename the bundle into place"`,
		`step="remove old bundles"`,
		`step="read the metadata"`,
		`call="dump /data/phi_0001.bin" rank=0 step="write the XDMF file"`,
		`step="check the fields"`,
	}
}

// everyCall makes every collective call that touches files: with success, and some that
// clean up after an error.
func everyCall(c *comm.Comm, r *slowRank) error {
	ctx := context.Background()
	solver, err := newTestSolver(c, 1, "phi", "T")
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	opts := r.opts(c)
	cfg := serviceConfig(Latest)
	cfg.Checkpoint.Every, cfg.Checkpoint.Keep = 1, 1
	for run := range 3 {
		service, err := NewService(ctx, c, cfg, opts...)
		if err != nil {
			return err
		}
		if _, err := service.Restore(ctx, solver.solver()); err != nil {
			return err
		}
		next := int64(run + 1)
		if run < 2 {
			if err := c.Agree(ctx, solver.advance(next)); err != nil {
				return err
			}
			if _, err := service.MaybeSave(ctx, solver.solver()); err != nil {
				return err
			}
		}
		// The ranks are together again after each call: none is left at work.
		if err := c.Meet(ctx); err != nil {
			return err
		}
		service.Close()
		if run == 1 { // for the next run to find
			if err := c.OnRoot(ctx, nil, func() error {
				return r.fsys.Remove("/data/ckpt/step_2/fields/T.bin")
			}); err != nil {
				return err
			}
			cfg.RestartFrom, cfg.Checkpoint.Superseded = "", SetAside
		}
	}
	if err := SaveBundle(ctx, c, "/data/b", solver.state(), opts...); err != nil {
		return err
	}
	for _, more := range [][]Option{nil, {InPlace()}} {
		if _, err := LoadBundle(ctx, c, "/data/b", Request{Fields: solver.named()}, append(slices.Clone(opts), more...)...); err != nil {
			return err
		}
	}
	write := func(ctx context.Context, dir string) error {
		if c.Rank() > 0 {
			return nil
		}
		content := make([]byte, testDomain.Cells()*8)
		return vfs.WriteFile(r.fsys, filepath.Join(dir, "a.bin"), content, 0o666, false)
	}
	meta := Metadata{Domain: testDomain, Fields: []string{"a"}}
	if err := Directory(ctx, c, "/data/d", meta, write, opts...); err != nil {
		return err
	}
	refused := errors.New("no more paper")
	err = Directory(ctx, c, "/data/e", meta, func(context.Context, string) error { return refused }, opts...)
	if err == nil || errors.Is(err, comm.ErrDead) || !strings.Contains(err.Error(), refused.Error()) {
		return fmt.Errorf("a callback that fails: %w", err)
	}
	dumps, err := NewDumps(ctx, c, "/data/phi_%04d.bin", solver.named()[:1], opts...)
	if err != nil {
		return err
	}
	defer dumps.Close()
	if _, err := dumps.Write(ctx, 1, 0.5); err != nil {
		return err
	}
	return c.Meet(ctx)
}

// What rank 0 does at the end of a publication whose name may not be durable is done when
// the others return.
func TestASlowDiskAfterAFailedSyncIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSlowRank(t, 0, 2)
		r.slow = func(op vfs.Op) bool { return op.Kind == vfs.OpUnlock }
		r.fault = &vfs.Rule{Kinds: []vfs.Kind{vfs.OpSyncDir}, Match: func(op vfs.Op) bool { return op.Name == "/data" }}
		err := onRanks(t, 2, func(c *comm.Comm) error {
			solver, err := newTestSolver(c, 1, "phi")
			if err := c.Agree(context.Background(), err); err != nil {
				return err
			}
			err = SaveBundle(context.Background(), c, "/data/b", solver.state(), r.opts(c)...)
			if met := c.Meet(context.Background()); met != nil {
				return met
			}
			return err
		})
		wantError(t, err, ErrDurabilityUnknown)
	})
}

func init() { mpitest.Register("save with slow ranks", saveSlowly) }

// saveSlowly saves and loads a bundle. One rank after the other takes twice as long for
// a part of it as the others wait for it to come to a call.
func saveSlowly(c *comm.Comm, args []string) error {
	ctx, slow := context.Background(), 2*c.WatchLimit()
	box, err := cuts[2].box(testDomain, c) // x is split: the cells go through a window
	if err != nil {
		return err
	}
	p, err := newPart(testDomain, box, [3]int{}, killedSpaces...)
	if err != nil {
		return err
	}
	if err := p.set(1); err != nil {
		return err
	}
	if err := c.Meet(ctx); err != nil {
		return err
	}
	fmt.Println("together")
	once := false
	step := func(step Step, _ string) {
		if c.Rank() == 1 && step == StepField && !once || c.Rank() == 0 && step == StepChecksums {
			once = true
			time.Sleep(slow)
		}
	}
	log := Logger(slog.New(slog.NewTextHandler(os.Stdout, nil)))
	waiting.FirstWarning = slow / 4
	path := filepath.Join(args[0], "b")
	if err := SaveBundle(ctx, c, path, p.state(1), OnStep(step), log); err != nil {
		return err
	}
	if _, err := LoadBundle(ctx, c, path, Request{Fields: p.named()}); err != nil {
		return err
	}
	return c.Meet(ctx)
}

// The same with processes, where the ranks wait in MPI and at a barrier in memory that
// they share.
func TestSlowRanksOfAJobAreWaitedFor(t *testing.T) {
	if !mpi.Enabled {
		return // the other tests say it of goroutines, and take no time
	}
	// On a busy machine ranks may be late for other reasons.
	for _, watch := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
		j := mpitest.Start(t, 2, "save with slow ranks", []string{t.TempDir()}, mpitest.Watch(watch))
		output, exit := j.Wait()
		if exit != 0 {
			t.Logf("with a watch of %v the job ends with status %d:\n%s", watch, exit, output)
			continue
		}
		for _, want := range []string{`msg="slow step"`, `rank=1 step="write field`, `rank=0 step="write what describes the fields"`, `msg="waiting for other ranks"`} {
			if !strings.Contains(output, want) {
				t.Errorf("no rank tells %s:\n%s", want, output)
			}
		}
		return
	}
	t.Error("no job went through")
}

// hangingBoundary is a condition whose hook hangs on one rank.
type hangingBoundary struct {
	hang func(where string)
}

func (b hangingBoundary) Config() (json.RawMessage, error) {
	b.hang("config")
	return json.RawMessage(`{}`), nil
}

func (b hangingBoundary) CheckpointState(context.Context, *comm.Comm) (json.RawMessage, error) {
	b.hang("state")
	return json.RawMessage(`{}`), nil
}

func (b hangingBoundary) RestoreCheckpointState(json.RawMessage) error {
	b.hang("restore")
	return nil
}

type hangingClock struct {
	*testClock
	hang func(where string)
}

func (k hangingClock) Restore(n int64, t float64) error {
	k.hang("clock")
	return k.testClock.Restore(n, t)
}

// A rank that hangs in a callback of the solver doesn't come: the others find that out.
func TestARankThatHangsInItsOwnCallbackIsMissing(t *testing.T) {
	const ranks, absentee = 3, 1
	for _, where := range []string{"config", "state", "restore", "accept", "clock", "write", "sidecar",
		"before NewService", "before Save", "before Restore", "before LoadBundle", "before Directory", "before NewDumps", "before Write"} {
		for _, inPlace := range []bool{false, true} {
			name := where
			var more []Option
			if inPlace {
				name, more = name+", in place", []Option{InPlace()}
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newSlowRank(t, -1, ranks)
					var hung, found [ranks]bool
					err := comm.Run(ranks, func(c *comm.Comm) error {
						hang := func(at string) {
							if at == where && c.Rank() == absentee && !hung[absentee] {
								hung[absentee] = true
								time.Sleep(tooLong)
							}
						}
						err := everyCallback(c, hang, r.opts(c, more...))
						found[c.Rank()] = errors.Is(err, comm.ErrDead)
						return nil
					})
					if err != nil || !hung[absentee] {
						t.Fatalf("rank %d has hung: %v, %v", absentee, hung[absentee], err)
					}
					if !found[0] || !found[2] {
						t.Errorf("the ranks find out: %v", found)
					}
				})
			})
		}
	}
}

// everyCallback lets hang be called in each callback.
func everyCallback(c *comm.Comm, hang func(where string), opts []Option) error {
	ctx := context.Background()
	solver, err := newTestSolver(c, 1, "phi")
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	v := solver.solver()
	v.Boundaries = []Boundary{hangingBoundary{hang}}
	v.Clock = hangingClock{&solver.clock, hang}
	v.Sidecar = func() (any, error) { hang("sidecar"); return nil, nil }
	hang("before NewService")
	service, err := NewService(ctx, c, serviceConfig(Latest), opts...)
	if err != nil {
		return err
	}
	defer service.Close()
	if err := c.Agree(ctx, solver.advance(1)); err != nil {
		return err
	}
	hang("before Save")
	if _, err := service.Save(ctx, v); err != nil {
		return err
	}
	hang("before Restore")
	if _, err := service.Restore(ctx, v); err != nil {
		return err
	}
	hang("before LoadBundle")
	accept := func(Metadata) error { hang("accept"); return nil }
	want := Request{Fields: v.Fields, Boundaries: v.Boundaries, Accept: accept}
	if _, err := LoadBundle(ctx, c, "/data/ckpt/step_1", want, opts...); err != nil {
		return err
	}
	hang("before NewDumps")
	dumps, err := NewDumps(ctx, c, "/data/phi_%04d.bin", v.Fields[:1], opts...)
	if err != nil {
		return err
	}
	defer dumps.Close()
	hang("before Write")
	if _, err := dumps.Write(ctx, 1, 0.5); err != nil {
		return err
	}
	hang("before Directory")
	return Directory(ctx, c, "/data/d", Metadata{Domain: testDomain, Fields: []string{"a"}}, func(ctx context.Context, dir string) error {
		hang("write")
		return errors.New("no more paper")
	}, opts...)
}

// A solver may limit the waits for ranks at work too.
func TestWorkMayHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSlowRank(t, 1, 2)
		r.slow = func(op vfs.Op) bool { return op.Kind == vfs.OpSync }
		var errs [2]error
		start := time.Now()
		err := comm.Run(2, func(c *comm.Comm) error {
			solver, err := newTestSolver(c, 1, "phi", "T")
			if err != nil {
				return err
			}
			errs[c.Rank()] = SaveBundle(context.Background(), c, "/data/b", solver.state(), r.opts(c)...)
			return nil
		}, comm.Watch(time.Second), comm.WorkLimit(5*time.Minute))
		if err != nil || !errors.Is(errs[0], comm.ErrDead) {
			t.Errorf("rank 0 got %v, %v", errs[0], err)
		}
		if took := time.Since(start); took != tooLong { // the slow rank's
			t.Errorf("that took %v", took)
		}
	})
}
