package brick

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// openBatch bounds the files that are open at once: each takes a descriptor and a
// communicator of its own inside of the MPI library, which has few of both.
const openBatch = 128

// mpiio moves bricks by collective MPI-IO. Its number of agreements is two for
// up to openBatch files, and one more for each openBatch more.
type mpiio struct{}

func (mpiio) name() Driver { return MPIIO }

func (mpiio) write(ctx context.Context, p *Plan, jobs []WriteJob, t *tally) error {
	ids := writeIDs(jobs)
	r, list := p.runs(t), p.checksums(t)
	err := p.collective(ctx, "write", ids, func(f *mpi.File, i int, buf []byte, first int64) error {
		var err error
		if len(buf) > 0 {
			if err = readCells(jobs[i].Source, buf, first); err != nil {
				buf = nil
			}
		}
		if werr := f.WriteAtAll(first, buf, p.elem.Size()); err == nil {
			err = p.explain(ids[i], werr)
		}
		if err == nil {
			r.add(list[i], buf, first)
			t.move(i, int64(len(buf)))
		}
		return err
	})
	for i, sum := range list {
		t.add(i, sum)
	}
	return err
}

// checksums makes one for each file.
func (p *Plan) checksums(t *tally) []*sums {
	list := make([]*sums, len(t.files))
	for i := range list {
		list[i] = new(sums)
		t.begin(list[i], p.FileSize())
	}
	return list
}

func (mpiio) read(ctx context.Context, p *Plan, jobs []ReadJob, t *tally) error {
	ids := readIDs(jobs)
	r, list := p.runs(t), p.checksums(t)
	err := p.collective(ctx, "read", ids, func(f *mpi.File, i int, buf []byte, first int64) error {
		if err := f.ReadAtAll(first, buf, p.elem.Size()); err != nil || len(buf) == 0 {
			return err
		}
		r.add(list[i], buf, first)
		t.move(i, int64(len(buf)))
		return sinkCells(jobs[i].Sink, buf, first)
	})
	for i, sum := range list {
		t.add(i, sum)
	}
	if p.c.Rank() == 0 {
		// Reads past the end may return full counts, so a file that became shorter
		// in the meantime shows in its size only. It explains any other error too.
		if serr := p.checkSizes(ctx, ids); serr != nil {
			return serr
		}
	}
	return err
}

// collective opens the files in batches, agrees that every rank has them open,
// and calls move for each round of each file. After its first error a rank goes
// on with empty contributions, for MPI-IO gives the others no way to go on
// without it.
func (p *Plan) collective(ctx context.Context, op string, jobs []job, move func(f *mpi.File, i int, buf []byte, first int64) error) error {
	release, err := p.c.filesTurn(ctx, p.tryOpen(ctx, op, jobs))
	if err != nil {
		return err
	}
	defer release()
	var failed error
	hints := p.hints(op == "write")
	start := 0
	for batch := range slices.Chunk(jobs, openBatch) {
		files, err := p.openAll(ctx, op, batch, hints, failed)
		if err != nil {
			return err
		}
		if start == 0 {
			p.logHints(ctx, files[0], hints)
		}
		for k, f := range files {
			p.eachRound(func(buf []byte, first int64) {
				if failed == nil {
					failed = batch[k].fail(op, cancelled(ctx))
				}
				if failed != nil {
					buf = nil
				}
				step := waiting.Doing(ctx, op, batch[k].named())
				err := move(f, start+k, buf, first)
				step.End()
				if failed == nil {
					failed = batch[k].fail(op, err)
				}
			})
		}
		for k, f := range files {
			step := waiting.Doing(ctx, "close", batch[k].named())
			err := f.Close()
			step.End()
			if failed == nil {
				failed = batch[k].fail(op, err)
			}
		}
		start += len(batch)
	}
	return failed
}

// tryOpen opens the files on this rank alone, as many at once as the collective
// will, and closes them again. Some implementations wait for ever in a collective
// open that fails on one rank only, so what can fail is found out before: a path,
// also one that leads elsewhere on another node, and a lack of descriptors.
func (p *Plan) tryOpen(ctx context.Context, op string, jobs []job) error {
	defer waiting.Doing(ctx, "open", "the files").End()
	for batch := range slices.Chunk(jobs, openBatch) {
		if err := p.tryBatch(ctx, op, batch); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) tryBatch(ctx context.Context, op string, batch []job) (err error) {
	flag := os.O_WRONLY
	if op == "read" {
		flag = os.O_RDONLY
	}
	// The library may need some more for itself.
	const spare = 8
	tries := append(slices.Clone(batch), slices.Repeat(batch[:1], spare)...)
	files := make([]vfs.File, 0, len(tries))
	defer func() {
		for k, f := range files {
			if cerr := f.Close(); err == nil {
				err = tries[k].fail(op, cerr)
			}
		}
	}()
	for _, j := range tries {
		f, err := p.openSized(ctx, j, flag, op == "read" || j.Within)
		if err != nil {
			return j.fail(op, err)
		}
		files = append(files, f)
	}
	return nil
}

// openAll opens the files on all ranks or on none. A rank that failed before
// takes part up to the agreement, where its error ends the call for all.
func (p *Plan) openAll(ctx context.Context, op string, batch []job, hints map[string]string, failed error) ([]*mpi.File, error) {
	files := make([]*mpi.File, len(batch))
	for k, j := range batch {
		// Every rank opens every file, whatever came before: both calls are
		// collective.
		step := waiting.Doing(ctx, "open", j.named())
		f, err := p.c.Handle().OpenFile(j.Path, op == "write", hints)
		if err == nil {
			files[k] = f
			err = f.SetView(j.Offset, p.elem.Size(), p.size, p.box.Size, p.box.Low)
		}
		step.End()
		if failed == nil {
			failed = j.fail(op, err)
		}
	}
	agreed := p.c.Agree(ctx, failed)
	if agreed == nil {
		return files, nil
	}
	if err := p.closeCommon(ctx, op, batch, files); err != nil { // of this rank alone
		p.opt.log.Warn("brick files of a call that failed don't close", "rank", p.c.Rank(), "error", err)
	}
	return nil, agreed
}

// closeCommon closes the files that every rank has open, for closing is
// collective too. A file that is open on some ranks only has to stay so. The error is this
// rank's.
func (p *Plan) closeCommon(ctx context.Context, op string, batch []job, files []*mpi.File) error {
	missing := make([]int64, len(files))
	for k, f := range files {
		if f == nil {
			missing[k] = 1
		}
	}
	if err := p.c.AllReduceInt64(ctx, comm.Max, missing); err != nil {
		return err
	}
	var first error
	for k, f := range files {
		if missing[k] == 0 {
			if err := f.Close(); first == nil {
				first = batch[k].fail(op, err)
			}
		}
	}
	return first
}

// eachRound calls f once per collective round with this rank's part of the
// staging memory, empty when its brick has been moved.
func (p *Plan) eachRound(f func(buf []byte, first int64)) {
	elem := int64(p.elem.Size())
	per, cells := p.perRound(), p.box.Cells()
	for round := range p.rounds() {
		first := min(round*per, cells)
		f(p.staging.Bytes[:min(per, cells-first)*elem], first)
	}
}

// logHints tells which hints are in force: implementations ignore those that they
// don't know.
func (p *Plan) logHints(ctx context.Context, f *mpi.File, given map[string]string) {
	if p.c.Rank() != 0 || !p.opt.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	force, err := f.Hints()
	if err != nil {
		p.opt.log.Debug("brick hints", "error", err)
		return
	}
	p.opt.log.Debug("brick hints", "given", given, "in_force", force)
}
