package brick

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

// stream moves this rank's cells between chunks of its staging memory and the
// files, without a collective call. Several workers may share the files: each has
// a chunk, takes a file that nobody works on, and helps with the others when there
// is none left, so that one packs while another one writes.
type stream struct {
	p     *Plan
	op    string
	ctx   context.Context
	jobs  []job
	files []streamed
	tally *tally
	stop  atomic.Bool
}

// streamed is one file of a stream.
type streamed struct {
	mu    sync.Mutex
	turn  sync.Cond
	file  cellFile
	users int   // workers that may use it
	next  int64 // the first cell that no worker has taken
	sunk  int64 // the cells before it are in the sink
	err   error
}

// worker is one goroutine of a stream.
type worker struct {
	buf []byte
	sum sums
}

// stream lets the workers call chunk for each file until it has no more, and returns
// the error of the first file that has one. A rank begins with a file that no other rank begins
// with, as far as there are enough, because writers of one file wait for each
// other.
func (p *Plan) stream(ctx context.Context, op string, flag int, jobs []job, t *tally, chunk func(s *stream, w *worker, i int) (more bool, err error)) error {
	if p.box.Empty() {
		return nil
	}
	s := &stream{p: p, op: op, ctx: ctx, jobs: jobs, files: make([]streamed, len(jobs)), tally: t}
	for i := range s.files {
		s.files[i].turn.L = &s.files[i].mu
	}
	start := len(jobs) * p.c.Rank() / p.c.Size()
	var wg sync.WaitGroup
	chunks := p.chunks()
	for k, buf := range chunks {
		w := &worker{buf: buf}
		all := func() {
			for n := range jobs {
				if s.stop.Load() {
					return
				}
				s.work(w, (start+k*len(jobs)/len(chunks)+n)%len(jobs), flag, chunk)
			}
		}
		if k == len(chunks)-1 {
			all()
			break
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			all()
		}()
	}
	wg.Wait()
	for i := range s.files {
		if err := s.files[i].err; err != nil {
			return jobs[i].fail(op, err)
		}
	}
	return nil
}

// work is one worker's part in file i.
func (s *stream) work(w *worker, i, flag int, chunk func(s *stream, w *worker, i int) (more bool, err error)) {
	name := s.jobs[i].called()
	if s.p.drv.name() == MPIIO {
		name = s.jobs[i].named()
	}
	open := waiting.Doing(s.ctx, "open", name)
	entered := s.enter(i, flag)
	open.End()
	if !entered {
		return
	}
	s.tally.begin(&w.sum, s.p.FileSize())
	for {
		step := waiting.Doing(s.ctx, s.op, name)
		more, err := chunk(s, w, i)
		step.End()
		if err != nil || !more {
			defer waiting.Doing(s.ctx, "close", name).End()
			s.leave(w, i, err)
			return
		}
	}
}

// enter opens file i for a worker, unless there is nothing left to do.
func (s *stream) enter(i, flag int) bool {
	f := &s.files[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.next >= s.p.box.Cells() {
		return false
	}
	if f.file == nil {
		if f.file, f.err = s.p.open(s.ctx, i, s.jobs[i], flag); f.err != nil {
			s.stop.Store(true)
			return false
		}
	}
	f.users++
	return true
}

// leave ends a worker's part in file i. The last one closes it, since closing can
// be where a network filesystem reports that a write failed.
func (s *stream) leave(w *worker, i int, err error) {
	s.tally.add(i, &w.sum)
	f := &s.files[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		s.stop.Store(true)
		if f.err == nil {
			f.err = err
		}
	}
	f.turn.Broadcast()
	if f.users--; f.users == 0 {
		if err := f.file.Close(); err != nil {
			s.stop.Store(true)
			f.err = also(f.err, err)
		}
		f.file = nil
	}
}

// take gives a worker the next cells of file i, none if there are none or the
// stream has stopped. The file is locked.
func (s *stream) take(w *worker, i int) (buf []byte, first int64, err error) {
	f := &s.files[i]
	elem := int64(s.p.elem.Size())
	left := s.p.box.Cells() - f.next
	if left <= 0 || s.stop.Load() {
		return nil, 0, nil
	}
	if err := cancelled(s.ctx); err != nil {
		return nil, 0, err
	}
	first = f.next
	n := min(int64(len(w.buf))/elem, left)
	f.next += n
	return w.buf[:n*elem], first, nil
}

// streamWrite writes this rank's cells of all files.
func (p *Plan) streamWrite(ctx context.Context, jobs []WriteJob, t *tally) error {
	r := p.runs(t)
	return p.stream(ctx, "write", os.O_WRONLY, writeIDs(jobs), t, func(s *stream, w *worker, i int) (bool, error) {
		buf, first, lender, err := s.pack(w, jobs[i].Source, i, r)
		if err != nil || buf == nil {
			return false, err
		}
		if lender != nil {
			r.add(&w.sum, buf, first)
		}
		f := &s.files[i]
		err = r.each(first, int64(len(buf))/r.elem, func(offset, from, to int64) error {
			return p.put(f.file, buf[from:to], s.jobs[i].Offset+offset)
		})
		if lender != nil {
			err = also(err, returnCells(lender, buf))
		}
		return true, err
	})
}

// shortSum is the length of runs below which a source is not asked for each of them
// alone.
const shortSum = 32 << 10

// pack gives a worker the next cells of file i: in its chunk, summed up, or lent by
// the source, which gets them back. The source is asked by one worker at a time.
func (s *stream) pack(w *worker, src pack.Source, i int, r runs) (buf []byte, first int64, lender pack.LendSource, err error) {
	f := &s.files[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	buf, first, err = s.take(w, i)
	if err != nil || buf == nil {
		return nil, 0, nil, err
	}
	lent, lender, err := lendCells(src, first, len(buf), int(r.elem))
	if err != nil {
		return nil, 0, nil, err
	}
	if lender != nil {
		buf = lent
		f.next = first + int64(len(buf))/r.elem // it may be less than was taken
	}
	s.tally.move(i, int64(len(buf)))
	switch {
	case lender != nil:
		return buf, first, lender, nil // summed up while others are at the source
	case r.rowRun*r.elem < shortSum:
		if err := readCells(src, buf, first); err != nil {
			return nil, 0, nil, err
		}
		r.add(&w.sum, buf, first)
		return buf, first, nil, nil
	}
	return buf, first, nil, r.each(first, int64(len(buf))/r.elem, func(offset, from, to int64) error {
		sum, at := w.sum.at(offset)
		return readSum(src, buf[from:to], first+from/r.elem, sum, at)
	})
}

// put writes bytes and, where they are to be durable, lets the disk begin.
func (p *Plan) put(f cellFile, b []byte, offset int64) error {
	n, err := f.WriteAt(b, offset)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	if file, ok := f.(vfs.File); ok && err == nil && p.opt.sync {
		vfs.StartWriteBack(file, offset, int64(n))
	}
	return err
}

// streamRead reads this rank's cells of all files.
func (p *Plan) streamRead(ctx context.Context, jobs []ReadJob, t *tally) error {
	r := p.runs(t)
	return p.stream(ctx, "read", os.O_RDONLY, readIDs(jobs), t, func(s *stream, w *worker, i int) (bool, error) {
		f := &s.files[i]
		f.mu.Lock()
		buf, first, err := s.take(w, i)
		f.mu.Unlock()
		if err != nil || buf == nil {
			return false, err
		}
		err = r.each(first, int64(len(buf))/r.elem, func(offset, from, to int64) error {
			return vfs.ReadFull(f.file, buf[from:to], s.jobs[i].Offset+offset)
		})
		if err == nil {
			err = s.sink(w, jobs[i].Sink, i, r, buf, first)
		}
		return true, err
	})
}

// sink hands a worker's chunk to the sink when those before it are there, and sums it
// up.
func (s *stream) sink(w *worker, to Sink, i int, r runs, buf []byte, first int64) error {
	f := &s.files[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.sunk != first {
		if s.stop.Load() || f.err != nil {
			return nil
		}
		f.turn.Wait()
	}
	var err error
	if r.rowRun*r.elem < shortSum {
		r.add(&w.sum, buf, first)
		err = sinkCells(to, buf, first)
	} else {
		err = r.each(first, int64(len(buf))/r.elem, func(offset, from, end int64) error {
			sum, at := w.sum.at(offset)
			return sinkSum(to, buf[from:end], first+from/r.elem, sum, at)
		})
	}
	if err != nil {
		return err
	}
	s.tally.move(i, int64(len(buf)))
	f.sunk = first + int64(len(buf)/s.p.elem.Size())
	f.turn.Broadcast()
	return nil
}
