package brick

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/shm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

const (
	// windowLimit is the most memory that the ranks of a node share.
	windowLimit = 64 << 20

	// shortRun is the length of runs below which ranks move cells through a
	// window: there it is faster to put the rows together in memory than to move
	// each by a call of its own.
	shortRun = 64 << 10
)

// A windowCall moves the cells of all ranks of a node through memory that they
// share. It has two halves, each with a slot for every rank. Step by step all
// ranks put their cells, in the order of the file, into all slots of one half, and
// meet; then each writes its own slot, and helps with the others', while those that
// are done may already fill the second half. Nobody comes to a half again before all
// have met once more, that is, before all slots of it are written. Reading is the
// reverse.
type windowCall struct {
	p     *Plan
	op    string
	ctx   context.Context
	jobs  []job
	flag  int // how files are opened
	plan  schedule
	win   *shm.Window
	slot  int64 // bytes
	tally *tally

	files  map[int]*openFile
	opened []int // in the order of opening
	failed error
}

// openFile is a file that this rank writes or reads parts of.
type openFile struct {
	cellFile
	base int64 // where the array begins
	sum  sums
}

const (
	// unitBytes is what a rank takes from a slot at once.
	unitBytes = 512 << 10

	// mostOpen are the files that a rank has open at the same time: it comes back to
	// those of the large files that it writes.
	mostOpen = 16
)

// throughWindow says whether files are moved through a window: on all ranks alike.
func (p *Plan) throughWindow(files int) bool {
	if p.drv.name() != Node || p.noWindow || files == 0 || p.c.Size() == 1 {
		return false
	}
	return p.shortest < min(shortRun, p.FileSize())
}

// slotLimit is the most bytes of a slot.
func (p *Plan) slotLimit(ranks int) int64 {
	elem := int64(p.elem.Size())
	n := min(int64(windowLimit)/int64(2*ranks), p.stagingLimit()/2, maxChunk)
	if n >= pageSize {
		return n / pageSize * pageSize
	}
	return max(n/elem, 1) * elem
}

// slotFor is what the slot of a call needs: no more than the files of a rank.
func (p *Plan) slotFor(files, ranks int) int64 {
	limit, whole := p.slotLimit(ranks), p.FileSize()
	perRank := int64((files-1)/ranks + 1)
	if whole > limit/perRank {
		return limit
	}
	return min(limit, (perRank*whole+pageSize-1)/pageSize*pageSize)
}

// openWindow makes the window for a call, or keeps the one that is there. It is
// collective. Where there can be none, this is logged and the call does without.
func (p *Plan) openWindow(ctx context.Context, files int) error {
	if !p.throughWindow(files) {
		return nil
	}
	slot := p.slotFor(files, p.c.Size())
	if p.window != nil && p.slot >= slot {
		return nil
	}
	if err := p.closeWindow(); err != nil {
		p.opt.log.Warn("brick window", "rank", p.c.Rank(), "error", err)
	}
	for _, kind := range p.kinds {
		w, err := p.shareWindow(ctx, kind, int(2*slot)*p.c.Size())
		if err == nil {
			w.Spin = p.ownCores
			p.window, p.slot = w, slot
			return nil
		}
		if errors.Is(err, comm.ErrDead) {
			return err
		}
		if p.c.Rank() == 0 {
			p.opt.log.Warn("the ranks of the node can't share memory in this way", "kind", kind.String(), "error", err)
		}
	}
	if p.c.Rank() == 0 {
		p.opt.log.Warn("no window: short rows are moved one by one, which is slow")
	}
	p.noWindow = true
	return p.c.Agree(ctx, p.reserve(files)) // what a stream needs is more
}

func (p *Plan) shareWindow(ctx context.Context, kind shm.Kind, size int) (w *shm.Window, err error) {
	ranks := p.c.Size()
	var name string
	if p.c.Rank() == 0 {
		w, name, err = shm.Create(kind, size, ranks)
	}
	got, berr := p.c.Broadcast(ctx, 0, []byte(name))
	if err == nil {
		err = berr
	}
	if err == nil && p.c.Rank() != 0 {
		if len(got) == 0 {
			err = errors.New("rank 0 has no window")
		} else {
			w, err = shm.Open(kind, string(got), size, ranks)
		}
	}
	// A context that is cancelled on one rank must not decide about the next kind: it
	// counts at the next agreement.
	if err := p.c.Agree(context.WithoutCancel(ctx), err); err != nil {
		return nil, also(err, w.Close())
	}
	// A name that stays is a nuisance, no reason to do without.
	if err := w.Unlink(); err != nil {
		p.opt.log.Warn("brick window", "rank", p.c.Rank(), "error", err)
	}
	return w, nil
}

func (p *Plan) closeWindow() error {
	w := p.window
	p.window, p.slot = nil, 0
	return w.Close()
}

func (p *Plan) newWindowCall(ctx context.Context, op string, jobs []job, flag int, t *tally) *windowCall {
	elem := int64(p.elem.Size())
	for i := range t.files {
		t.files[i].due = 0 // until this rank takes something
	}
	return &windowCall{p: p, op: op, ctx: ctx, jobs: jobs, flag: flag, win: p.window, slot: p.slot, tally: t,
		plan: newSchedule(len(jobs), p.c.Size(), p.FileSize()/elem, p.slot/elem), files: make(map[int]*openFile)}
}

// of is where a rank's slot of a step is.
func (w *windowCall) of(step, rank int) []byte {
	at := int64(step%2*w.plan.ranks+rank) * w.slot
	return w.win.Bytes[at : at+w.slot : at+w.slot]
}

// in is where an extent lies in its slot.
func (w *windowCall) in(slot []byte, e extent) []byte {
	elem := int64(w.p.elem.Size())
	return slot[e.at*elem : (e.at+e.end-e.first)*elem]
}

// try runs a part of the call unless one failed before: a rank that failed stays
// in step with nothing to do, and says so at the next meeting.
func (w *windowCall) try(f func() error) {
	if w.failed == nil {
		w.failed = f()
	}
	if w.failed != nil {
		w.win.Fail()
	}
}

// fill calls move for what is this rank's in all slots of a step.
func (w *windowCall) fill(step int, move func(i int, b []byte, q piece) error) error {
	p := w.p
	r := newRuns(p.size, p.box, p.elem)
	for rank := range w.plan.ranks {
		slot := w.of(step, rank)
		err := w.plan.extents(step, rank, func(e extent) error {
			if err := cancelled(w.ctx); err != nil {
				return w.jobs[e.file].fail(w.op, err)
			}
			b := w.in(slot, e)
			defer waiting.Doing(w.ctx, w.op, w.jobs[e.file].called()).End()
			return w.jobs[e.file].fail(w.op, r.within(e.first, e.end, func(q piece) error {
				w.tally.move(e.file, q.n*q.rows*r.elem)
				from := (q.cell - e.first) * r.elem
				return move(e.file, b[from:from+((q.rows-1)*r.rowStep+q.n)*r.elem], q)
			}))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls move for what this rank takes of a step: from its own slot first, then
// from the others'. Every part of a slot is taken once.
func (w *windowCall) each(step int, move func(f *openFile, offset int64, b []byte) error) error {
	elem := int64(w.p.elem.Size())
	for k := range w.plan.ranks {
		rank := (w.p.c.Rank() + k) % w.plan.ranks
		slot, taken := w.of(step, rank), w.counter(step, rank)
		for {
			e, ok := w.plan.unit(step, rank, int(taken.Add(1))-1, max(unitBytes/elem, 1))
			if !ok {
				break
			}
			if err := w.unit(slot, e, move); err != nil {
				return err
			}
		}
	}
	return nil
}

// unit opens the file of an extent and calls move for it.
func (w *windowCall) unit(slot []byte, e extent, move func(f *openFile, offset int64, b []byte) error) error {
	defer waiting.Doing(w.ctx, w.op, w.jobs[e.file].called()).End()
	f, err := w.open(e.file)
	if err != nil {
		return err
	}
	elem := int64(w.p.elem.Size())
	w.tally.files[e.file].due += (e.end - e.first) * elem
	return w.jobs[e.file].fail(w.op, move(f, e.first*elem, w.in(slot, e)))
}

// counter says how much of a slot has been taken.
func (w *windowCall) counter(step, rank int) *atomic.Uint32 {
	return w.win.Counter(step%2*w.plan.ranks + rank)
}

// renew makes everything of a step there to be taken. One rank does it, when nobody
// can be at the same half any more or yet.
func (w *windowCall) renew(step int) {
	if w.p.c.Rank() == 0 {
		for rank := range w.plan.ranks {
			w.counter(step, rank).Store(0)
		}
	}
}

// open opens file i unless it is open.
func (w *windowCall) open(i int) (*openFile, error) {
	if f := w.files[i]; f != nil {
		return f, nil
	}
	if len(w.opened) == mostOpen {
		if err := w.close(1); err != nil {
			return nil, err
		}
	}
	file, err := w.p.open(w.ctx, i, w.jobs[i], w.flag)
	if err != nil {
		return nil, w.jobs[i].fail(w.op, err)
	}
	f := &openFile{cellFile: file, base: w.jobs[i].Offset}
	w.tally.begin(&f.sum, w.p.FileSize())
	w.files[i] = f
	w.opened = append(w.opened, i)
	return f, nil
}

// close closes the files that were opened first.
func (w *windowCall) close(n int) (err error) {
	for _, i := range w.opened[:n] {
		f := w.files[i]
		delete(w.files, i)
		w.tally.add(i, &f.sum)
		if cerr := f.Close(); err == nil {
			err = w.jobs[i].fail(w.op, cerr)
		}
	}
	w.opened = w.opened[n:]
	return err
}

// end closes what is open and gives this rank's error.
func (w *windowCall) end(stopped bool) error {
	defer waiting.Doing(w.ctx, "close", "the files").End()
	err := also(w.failed, w.close(len(w.opened)))
	if err == nil && stopped {
		return errStopped
	}
	return err
}

// meet waits for the other ranks. It tells all of them alike to stop.
func (w *windowCall) meet() (stop bool) {
	defer waiting.ForOthers(w.ctx).End()
	stop, err := w.win.Meet(w.p.c.WaitLimit(w.ctx))
	if err != nil {
		w.failed = also(w.failed, fmt.Errorf("%s bricks: %w", w.op, err))
		return true
	}
	return stop
}

func (p *Plan) windowWrite(ctx context.Context, jobs []WriteJob, t *tally) error {
	w := p.newWindowCall(ctx, "write", writeIDs(jobs), os.O_WRONLY, t)
	step := p.size[0] * p.elem.Size()
	stopped := false
	for n := range w.plan.steps {
		w.try(func() error {
			return w.fill(n, func(i int, b []byte, q piece) error { return p.readRows(jobs[i].Source, b, q, step) })
		})
		w.renew(n)
		if stopped = w.meet(); stopped {
			break
		}
		w.try(func() error {
			return w.each(n, func(f *openFile, offset int64, b []byte) error {
				f.sum.add(offset, b)
				return p.put(f.cellFile, b, f.base+offset)
			})
		})
	}
	return w.end(stopped)
}

func (p *Plan) windowRead(ctx context.Context, jobs []ReadJob, t *tally) error {
	w := p.newWindowCall(ctx, "read", readIDs(jobs), os.O_RDONLY, t)
	step := p.size[0] * p.elem.Size()
	stopped := false
	for n := range w.plan.steps {
		w.try(func() error {
			return w.each(n, func(f *openFile, offset int64, b []byte) error {
				// Into memory of this rank's own first: the system would have to get the
				// window's from the caches of other cores.
				own := p.staging.Bytes[:len(b)]
				if err := vfs.ReadFull(f, own, f.base+offset); err != nil {
					return err
				}
				f.sum.add(offset, own)
				return pack.Stream(b, own)
			})
		})
		w.renew(n + 1)
		if stopped = w.meet(); stopped {
			break
		}
		w.try(func() error {
			return w.fill(n, func(i int, b []byte, q piece) error { return p.sinkRows(jobs[i].Sink, b, q, step) })
		})
	}
	return w.end(stopped)
}
