package brick

import (
	"context"
	"errors"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/pack"
)

// openBatch bounds the files that are open at once, and with them the
// agreements: one per batch.
const openBatch = 128

type mpiio struct{}

func (mpiio) name() Driver { return MPIIO }

func (mpiio) write(ctx context.Context, p *Plan, jobs []WriteJob, sums []*pack.Checksum) error {
	ids := make([]job, len(jobs))
	for i, j := range jobs {
		ids[i] = job{j.Name, j.Path}
	}
	r := newRuns(p.size, p.box, p.elem)
	return p.collective(ctx, "write", ids, func(f *mpi.File, i int, buf []byte, first int64, failed error) error {
		if failed == nil && len(buf) > 0 {
			failed = readCells(jobs[i].Source, buf, first)
		}
		if failed != nil {
			buf = nil
		}
		if err := f.WriteAtAll(first, buf, p.elem.Size()); err != nil && failed == nil {
			failed = err
		}
		if failed != nil {
			return failed
		}
		return r.each(first, int64(len(buf)/p.elem.Size()), func(offset, from, to int64) error {
			sums[i].Add(offset, buf[from:to])
			return nil
		})
	})
}

func (mpiio) read(ctx context.Context, p *Plan, jobs []ReadJob, sums []*pack.Checksum) error {
	ids := make([]job, len(jobs))
	for i, j := range jobs {
		ids[i] = job{j.Name, j.Path}
	}
	r := newRuns(p.size, p.box, p.elem)
	return p.collective(ctx, "read", ids, func(f *mpi.File, i int, buf []byte, first int64, failed error) error {
		if failed != nil {
			buf = nil
		}
		if err := f.ReadAtAll(first, buf, p.elem.Size()); err != nil && failed == nil {
			failed = err
		}
		if failed != nil || len(buf) == 0 {
			return failed
		}
		err := r.each(first, int64(len(buf)/p.elem.Size()), func(offset, from, to int64) error {
			sums[i].Add(offset, buf[from:to])
			return nil
		})
		if err != nil {
			return err
		}
		return sinkCells(jobs[i], buf, first)
	})
}

// collective opens the files in batches, agrees that every rank has them open,
// and calls move for each round of each file. After its first error a rank goes
// on with empty contributions, for MPI-IO gives the others no way to go on
// without it.
func (p *Plan) collective(ctx context.Context, op string, jobs []job,
	move func(f *mpi.File, i int, buf []byte, first int64, failed error) error) error {
	var failed error
	for start := 0; start < len(jobs); start += openBatch {
		batch := jobs[start:min(start+openBatch, len(jobs))]
		files, err := p.openAll(ctx, op, batch)
		if err != nil {
			return err
		}
		for k, f := range files {
			p.eachRound(func(buf []byte, first int64) {
				if failed == nil {
					failed = ctx.Err()
				}
				if err := move(f, start+k, buf, first, failed); err != nil && failed == nil {
					failed = batch[k].fail(op, err)
				}
			})
		}
		for k, f := range files {
			if err := f.Close(); err != nil && failed == nil {
				failed = batch[k].fail(op, err)
			}
		}
	}
	return failed
}

// openAll opens the files on all ranks or on none. Some implementations wait for
// ever in an open that fails on one rank only, so each rank first tries the paths
// by itself and the ranks agree that they can be opened.
func (p *Plan) openAll(ctx context.Context, op string, batch []job) ([]*mpi.File, error) {
	flag := os.O_WRONLY
	if op == "read" {
		flag = os.O_RDONLY
	}
	var err error
	for _, j := range batch {
		f, oerr := p.opt.fs.OpenFile(j.Path, flag, 0)
		if oerr == nil {
			oerr = f.Close()
		}
		if oerr != nil {
			err = j.fail(op, oerr)
			break
		}
	}
	if err := p.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	files := make([]*mpi.File, len(batch))
	missing := make([]int64, len(batch))
	for k, j := range batch {
		// Every rank opens every file, whatever came before: the call is collective.
		f, oerr := p.c.Handle().OpenFile(j.Path, op == "write", p.opt.hints)
		if oerr == nil {
			if oerr = f.SetView(0, p.elem.Size(), p.size, p.box.Size, p.box.Low); oerr == nil {
				files[k] = f
				continue
			}
		}
		files[k], missing[k] = f, 1
		if err == nil {
			err = j.fail(op, oerr)
		}
	}
	agreed := p.c.Agree(context.WithoutCancel(ctx), err)
	if agreed == nil {
		return files, nil
	}
	// Closing is collective as well: only what every rank has open can be closed.
	if err := p.c.AllReduceInt64(context.WithoutCancel(ctx), comm.Max, missing); err == nil {
		for k, f := range files {
			if missing[k] == 0 {
				err = errors.Join(err, f.Close())
			}
		}
		if err != nil {
			return nil, errors.Join(agreed, err)
		}
	}
	return nil, agreed
}

// eachRound calls f once per collective round with this rank's part of the
// staging memory, empty when its brick has been moved.
func (p *Plan) eachRound(f func(buf []byte, first int64)) {
	elem := int64(p.elem.Size())
	per := max(min(p.opt.staging, p.opt.round)/elem, 1)
	cells := p.box.Cells()
	for round := range p.rounds() {
		first := min(round*per, cells)
		f(p.stage()[:min(per, cells-first)*elem], first)
	}
}
