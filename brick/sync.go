package brick

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Durable puts the data of files on stable storage, wherever the ranks wrote it
// from: on each node the files are shared out over its ranks, and each is fsynced
// there by one of them, through a descriptor of its own. That is what makes an
// error of earlier write-back visible, and what a network filesystem needs of
// each client. It is collective, all ranks give the same paths, and it reports
// the same error on all ranks, also when a node sees other files than rank 0. A failed
// fsync is final.
func Durable(ctx context.Context, c *comm.Comm, fsys vfs.FS, paths []string) error {
	ctx = waiting.Named(ctx, "brick.Durable")
	r := ranks{Comm: c}
	jobs := unnamed(paths)
	if onedir.IsChecked(ctx) {
		return r.durable(ctx, fsys, jobs)
	}
	jobs, err := r.sameJobs(ctx, jobs, nil)
	if err != nil {
		return fmt.Errorf("sync files: %w", err)
	}
	ctx = c.AtWork(ctx)
	if err := r.durable(ctx, fsys, jobs); err != nil {
		return err
	}
	several, _, err := onedir.From(ctx).Nodes(ctx, c)
	if err != nil || !several {
		return err
	}
	// Now that the nodes have handed over what they wrote, all see the same.
	return r.sameFiles(ctx, fsys, jobs, -1, nil)
}

// unnamed are jobs that errors call by their paths.
func unnamed(paths []string) []job {
	jobs := make([]job, len(paths))
	for i, path := range paths {
		jobs[i].Path = path
	}
	return jobs
}

func (r *ranks) durable(ctx context.Context, fsys vfs.FS, jobs []job) error {
	rank, ranks, err := onedir.From(ctx).Place(context.WithoutCancel(ctx), r.Comm) // the first call is collective
	if err != nil {
		return err
	}
	return r.Agree(ctx, eachFile(ctx, "sync", dealt(jobs, rank, ranks), syncsInFlight, func(_ int, j job) error {
		return syncFile(fsys, j.Path)
	}))
}

// syncsInFlight are the files that a rank syncs at the same time, so that the disk
// always has something to do.
const syncsInFlight = 4

// eachFile calls f for files, as many at the same time as given, and returns the
// error of the first file that has one. After an error it begins with no other file.
func eachFile(ctx context.Context, op string, jobs []job, together int, f func(n int, j job) error) error {
	errs := make([]error, len(jobs))
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(jobs) || failed.Load() {
				return
			}
			err := cancelled(ctx)
			if err == nil {
				step := waiting.Doing(ctx, op, jobs[i].called())
				err = f(i, jobs[i])
				step.End()
			}
			if err != nil {
				errs[i] = jobs[i].fail(op, err)
				failed.Store(true)
			}
		}
	}
	var wg sync.WaitGroup
	for range min(together, len(jobs)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// dealt are the jobs of one of several ranks, which take turns.
func dealt(jobs []job, rank, ranks int) []job {
	var mine []job
	for i := rank; i < len(jobs); i += ranks {
		mine = append(mine, jobs[i])
	}
	return mine
}

func syncFile(fsys vfs.FS, path string) error {
	// Some filesystems sync only descriptors that may write.
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return also(f.Sync(), f.Close())
}

// explain adds that the disk is full to an error of MPI-IO, whose implementations
// say of a full disk that something went wrong, or nothing at all.
func (p *Plan) explain(j job, err error) error {
	if err == nil || errors.Is(err, syscall.ENOSPC) {
		return err
	}
	u, uerr := p.opt.fs.Usage(j.Path)
	if uerr != nil || u.Free >= readChunk {
		return err
	}
	return fmt.Errorf("%w (%d bytes are free): %w", syscall.ENOSPC, u.Free, err)
}
