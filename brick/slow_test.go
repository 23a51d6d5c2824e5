package brick_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// journal is what a rank logs.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(line)
}

// A rank whose disk takes longer for each operation than the others wait for it to come
// to a call is waited for within one. Time is that of package synctest.
func TestASlowDiskIsWaitedFor(t *testing.T) {
	const ranks, slow = 2, 11 * time.Minute
	for _, driver := range []brick.Driver{brick.POSIX, brick.Node} {
		for rank := range ranks {
			for _, split := range []int{0, 2} { // x makes short rows, which go through a window
				t.Run(fmt.Sprintf("%v, rank %d, axis %d", driver, rank, split), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						mem := vfs.NewMem()
						var logs [ranks]journal
						err := comm.Run(ranks, func(c *comm.Comm) error {
							fsys := vfs.NewInject(mem)
							if c.Rank() == rank {
								fsys.Delay(func(vfs.Op) { time.Sleep(slow) })
							}
							log := slog.New(slog.NewTextHandler(&logs[c.Rank()], nil))
							return slowCalls(t, c, fsys, split, brick.Using(driver), brick.Logger(log))
						})
						if err != nil {
							t.Error(err)
						}
						if text := logs[rank].b.String(); !strings.Contains(text, fmt.Sprintf(`msg="slow step" call="write bricks" rank=%d step="sync field \"%c\"" for=1m0s`, rank, 'a'+rune(rank))) {
							t.Errorf("rank %d doesn't tell of its slow steps:\n%s", rank, text)
						}
						if text := logs[1-rank].b.String(); strings.Contains(text, "slow step") || rank == 1 != strings.Contains(text, `msg="waiting for other ranks" call="write bricks" rank=0`) {
							t.Errorf("rank %d tells\n%s", 1-rank, text)
						}
					})
				})
			}
		}
	}
}

func slowCalls(t *testing.T, c *comm.Comm, fsys vfs.FS, split int, opts ...brick.Option) error {
	size := [3]int{4, 6, 4}
	box := grid.Box{Size: size}
	box.Size[split] /= 2
	box.Low[split] = c.Rank() * box.Size[split]
	p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, append(opts, brick.Filesystem(fsys), brick.Sync(), brick.ReadBack())...)
	if err != nil {
		return err
	}
	defer p.Close()
	zero := sourceFunc(func(dst []byte, _ int64) error { clear(dst); return nil })
	sink := brick.SinkFunc(func([]byte, int64) error { return nil })
	var writes []brick.WriteJob
	var reads []brick.ReadJob
	var paths []string
	for _, name := range []string{"a", "b"} {
		path := "/" + name + ".bin"
		paths = append(paths, path)
		writes = append(writes, brick.WriteJob{Name: fmt.Sprintf("field %q", name), Path: path, Source: zero})
		reads = append(reads, brick.ReadJob{Name: fmt.Sprintf("field %q", name), Path: path, Sink: sink})
	}
	if _, err := p.Write(t.Context(), writes); err != nil {
		return err
	}
	if _, err := p.Read(t.Context(), reads); err != nil {
		return err
	}
	if _, err := brick.Checksums(t.Context(), c, fsys, paths, p.FileSize()); err != nil {
		return err
	}
	if err := brick.Durable(c.AtWork(t.Context()), c, fsys, paths); err != nil {
		return err
	}
	return c.Meet(t.Context()) // nobody is left at work
}

// Where files can't be made on one rank, the others wait for one that is slow to close
// those that it has made.
func TestASlowDiskAfterAFailureIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		err := comm.Run(2, func(c *comm.Comm) error {
			fsys := vfs.NewInject(mem)
			if c.Rank() == 0 {
				fsys.Delay(func(op vfs.Op) {
					if op.Kind == vfs.OpClose {
						time.Sleep(11 * time.Minute)
					}
				})
			} else {
				fsys.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpAllocate}, Err: syscall.ENOSPC})
			}
			if err := slowCalls(t, c, fsys, 0); !errors.Is(err, syscall.ENOSPC) {
				return fmt.Errorf("got %w", err)
			}
			return c.Meet(t.Context())
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A rank that doesn't come to a call is found out.
func TestARankThatDoesNotComeIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		var late error
		if err := comm.Run(2, func(c *comm.Comm) error {
			if c.Rank() == 1 {
				time.Sleep(11 * time.Minute)
			}
			err := slowCalls(t, c, mem, 0)
			if c.Rank() == 0 {
				late = err
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(late, comm.ErrDead) {
			t.Errorf("rank 0 got %v", late)
		}
	})
}
