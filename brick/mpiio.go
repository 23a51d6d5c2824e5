package brick

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// mpiio moves bricks by MPI-IO. Each rank opens the files by itself and makes calls of its
// own: in a collective call of the libraries, the ranks wait for ever for one whose open, read
// or write has failed. Where cells lie in short rows the ranks put them together first, by
// messages, and each moves long pieces; see [exchange].
type mpiio struct{}

func (mpiio) name() Driver { return MPIIO }

func (mpiio) write(ctx context.Context, p *Plan, jobs []WriteJob, t *tally) error {
	if p.exchanges() {
		return p.exchangeWrite(ctx, jobs, t)
	}
	return p.streamWrite(ctx, jobs, t)
}

func (mpiio) read(ctx context.Context, p *Plan, jobs []ReadJob, t *tally) error {
	var err error
	if p.exchanges() {
		err = p.exchangeRead(ctx, jobs, t)
	} else {
		err = p.streamRead(ctx, jobs, t)
	}
	if p.c.Rank() == 0 {
		// Reads past the end may return full counts, so a file that became shorter
		// in the meantime shows in its size only. It explains any other error too.
		if serr := p.checkSizes(ctx, readIDs(jobs)); serr != nil {
			return serr
		}
	}
	return err
}

// cellFile is an open file, of the system's or of MPI-IO.
type cellFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// mpiFile is a file of MPI-IO.
type mpiFile struct {
	*mpi.File
	p *Plan
	j job
}

func (f mpiFile) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(b, offset)
	return n, f.p.explain(f.j, err)
}

// openMPI opens a file by MPI-IO. A part, and what is read, has its size by now: a file that
// hasn't is another one.
func (p *Plan) openMPI(ctx context.Context, j job, flag int) (cellFile, error) {
	if j.Within || flag == os.O_RDONLY {
		own, err := p.openSized(ctx, j, flag, true)
		if err == nil {
			err = own.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := p.c.Handle().OpenFile(j.Path, flag != os.O_RDONLY, p.opt.hints)
	if err != nil {
		// What the system says is clearer, where it says something.
		own, serr := p.opt.fs.OpenFile(j.Path, flag|vfs.NoWait, 0)
		if serr != nil {
			return nil, serr
		}
		return nil, also(err, own.Close())
	}
	p.logHints(f)
	return mpiFile{f, p, j}, nil
}

// logHints tells once which hints are in force: implementations ignore those that they
// don't know.
func (p *Plan) logHints(f *mpi.File) {
	if p.toldHints || p.c.Rank() != 0 || !p.opt.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	p.toldHints = true
	force, err := f.Hints()
	if err != nil {
		p.opt.log.Debug("brick hints", "error", err)
		return
	}
	p.opt.log.Debug("brick hints", "given", p.opt.hints, "in_force", force)
}
