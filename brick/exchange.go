package brick

import (
	"context"
	"os"
	"slices"
	"sort"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

const (
	// longRun is the length of runs from which on each rank moves its own: as long as
	// the stripes of most parallel filesystems.
	longRun = 1 << 20

	// shortSlot is the least that a rank takes of a step, if its memory is enough: ranks
	// that write too close to each other wait for each other.
	shortSlot = 512 << 10

	// exchangeStaging is the default staging of an exchange: a quarter of it is what a rank
	// has of its own cells in a step.
	exchangeStaging = 16 << 20

	exchangeTag = 12
)

// exchanges reports whether ranks put rows together by messages: on all ranks alike.
func (p *Plan) exchanges() bool {
	return p.drv.name() == MPIIO && p.pieces && p.c.Size() > 1 && p.shortest < longRun
}

// An exchange moves the cells of all ranks, on any nodes. A file is gone through in steps, each
// of which is a stretch of its cells, as long as no rank has more of it than its memory
// allows. The ranks that have cells in a stretch cut it into slots, one for each of them:
// they send each other what belongs there, and each writes its slot. Others have nothing to
// do with it, so different steps go on at the same time. What a rank has of a stretch is a
// range of its packed cells, and so is what it has of a slot. Reading is the reverse.
//
// A rank that failed stays in step. Each message ends with a mark that says so, and what
// it brings isn't used.
type exchange struct {
	p     *Plan
	op    string
	ctx   context.Context
	jobs  []job
	tally *tally
	sums  []*sums

	own, slot, message []byte // memory: of this rank's cells, of its slot, of what comes or goes

	file    cellFile // nil until it is needed
	at      int      // the job whose file it is
	failed  error
	stopped bool // another rank has failed
}

// stretch is a range of a file's cells.
type stretch struct{ first, end int64 }

func (s stretch) cells() int64 { return s.end - s.first }

// perStretch are the most cells that a rank has of a stretch, the same on all ranks.
func (p *Plan) perStretch() int64 {
	limit := p.opt.staging
	if limit == 0 {
		limit = exchangeStaging
	}
	return max(1, min(limit/4, p.opt.round)/int64(p.elem.Size()))
}

// exchangeMemory is what an exchange needs. A message and a rank's cells have room for a mark;
// a slot may be longer by a page, for its end to lie where a page ends.
func (p *Plan) exchangeMemory() (own, slot, message int64) {
	elem := int64(p.elem.Size())
	most := min(p.perStretch(), p.largest/elem)
	slot = min(p.perStretch(), p.FileSize()/elem)*elem + pageSize
	return most*elem + pageSize, slot, min(most*elem, slot) + pageSize
}

// stretches are those of a file, the same on all ranks.
func (p *Plan) stretches() []stretch {
	if p.steps != nil {
		return p.steps
	}
	cells, most := p.FileSize()/int64(p.elem.Size()), p.perStretch()
	for first := int64(0); first < cells; {
		fits := func(end int64) bool {
			return !slices.ContainsFunc(p.boxes, func(b grid.Box) bool { return before(p.size, b, end)-before(p.size, b, first) > most })
		}
		// No rank has more than one of one cell.
		n := sort.Search(int(min(cells-first, most*int64(len(p.boxes)))), func(n int) bool { return !fits(first + int64(n) + 1) })
		p.steps = append(p.steps, stretch{first, first + int64(n)})
		first += int64(n)
	}
	return p.steps
}

// before is the number of cells of a box that come before a cell of the file.
func before(size [3]int, box grid.Box, cell int64) int64 {
	if box.Empty() {
		return 0
	}
	nx, ny := int64(size[0]), int64(size[1])
	at := [3]int64{cell % nx, cell / nx % ny, cell / nx / ny}
	n, unit := int64(0), int64(1)
	var units [3]int64
	for axis := range 3 {
		units[axis] = unit
		unit *= int64(box.Size[axis])
	}
	for axis := 2; axis >= 0; axis-- {
		k := at[axis] - int64(box.Low[axis])
		n += units[axis] * max(0, min(k, int64(box.Size[axis])))
		if k < 0 || k >= int64(box.Size[axis]) {
			break
		}
	}
	return n
}

// has is what a rank has of a stretch: the range of its packed cells.
func (p *Plan) has(rank int, s stretch) (first, n int64) {
	first = before(p.size, p.boxes[rank], s.first)
	return first, before(p.size, p.boxes[rank], s.end) - first
}

// deal cuts a stretch of file i among the ranks that have cells in it: slots[k] is that of
// members[k], and may be empty.
func (p *Plan) deal(i int, s stretch) (members []int, slots []stretch) {
	for rank := range p.boxes {
		if _, n := p.has(rank, s); n > 0 {
			members = append(members, rank)
		}
	}
	elem := int64(p.elem.Size())
	least := min(shortSlot/elem, p.perStretch())
	n := int(min(int64(len(members)), (s.cells()-1)/least+1))
	slots = make([]stretch, len(members))
	bound := func(k int) int64 {
		at := s.first + s.cells()*int64(k)/int64(n)
		if k == 0 || k == n || s.cells()/int64(n)*elem < 2*pageSize {
			return at
		}
		return max(s.first, at-at%(pageSize/elem))
	}
	for k := range n {
		// Where there are fewer slots than members, those of other files fall to others.
		slots[(k*len(members)/n+i)%len(members)] = stretch{bound(k), bound(k + 1)}
	}
	return members, slots
}

func (p *Plan) newExchange(ctx context.Context, op string, jobs []job, t *tally) *exchange {
	own, slot, message := p.exchangeMemory()
	b := p.staging.Bytes
	x := &exchange{p: p, op: op, ctx: ctx, jobs: jobs, tally: t, own: b[:own], slot: b[own : own+slot], message: b[own+slot : own+slot+message]}
	for range jobs {
		s := new(sums)
		t.begin(s, p.FileSize())
		x.sums = append(x.sums, s)
	}
	return x
}

// A seat is the place of one rank in a step of one file.
type seat struct {
	file     int
	me       int // of the members
	members  []int
	slots    []stretch
	first, n int64 // of this rank's cells
}

// each calls f for each step in which this rank has cells, in the order of the files and their cells.
// Its error is that the ranks can't be reached.
func (x *exchange) each(f func(q seat) error) error {
	for i := range x.jobs {
		for _, s := range x.p.stretches() {
			q := seat{file: i}
			if q.first, q.n = x.p.has(x.p.c.Rank(), s); q.n == 0 {
				continue
			}
			q.members, q.slots = x.p.deal(i, s)
			q.me = slices.Index(q.members, x.p.c.Rank())
			x.try(i, func() error { return cancelled(x.ctx) })
			if err := f(q); err != nil {
				return err
			}
		}
		x.close()
	}
	for i, s := range x.sums {
		x.tally.add(i, s)
	}
	return nil
}

// try does something with a file unless a rank has failed.
func (x *exchange) try(i int, f func() error) {
	if x.failed != nil || x.stopped {
		return
	}
	defer waiting.Doing(x.ctx, x.op, x.jobs[i].named()).End()
	x.failed = x.jobs[i].fail(x.op, f())
}

func (x *exchange) bad() bool { return x.failed != nil || x.stopped }

// open opens the file of a job unless it is open.
func (x *exchange) open(i, flag int) (err error) {
	if x.file == nil {
		x.file, err = x.p.open(x.ctx, i, x.jobs[i], flag)
		x.at = i
	}
	return err
}

// close closes the file that is open, if there is one.
func (x *exchange) close() {
	if x.file == nil {
		return
	}
	defer waiting.Doing(x.ctx, "close", x.jobs[x.at].named()).End()
	err := x.file.Close()
	x.file = nil
	if x.failed == nil {
		x.failed = x.jobs[x.at].fail(x.op, err)
	}
}

// end is this rank's error, given that of the messages.
func (x *exchange) end(err error) error {
	if err != nil {
		x.close()
		return also(x.failed, err)
	}
	if x.failed == nil && x.stopped {
		return errStopped
	}
	return x.failed
}

// mine is what this rank has of a slot, of the cells of its step, with room for a mark.
func (x *exchange) mine(q seat, slot stretch) []byte {
	if slot.cells() == 0 {
		return x.own[:1]
	}
	first, n := x.p.has(q.members[q.me], slot)
	elem := int64(x.p.elem.Size())
	from := (first - q.first) * elem
	return x.own[from : from+n*elem+1]
}

// rows calls move for each row that a rank has of a slot: where it lies in the slot, and in
// what the rank has of it.
func (x *exchange) rows(rank int, slot stretch, move func(slot, packed []byte), packed []byte) {
	r := newRuns(x.p.size, x.p.boxes[rank], x.p.elem)
	// The only error is one of the function.
	_ = r.within(slot.first, slot.end, func(q piece) error {
		at, n := (q.cell-slot.first)*r.elem, q.n*r.elem
		for range q.rows {
			move(x.slot[at:at+n], packed[:n])
			at, packed = at+r.rowStep*r.elem, packed[n:]
		}
		return nil
	})
}

// The marks at the ends of messages.
const (
	markGood byte = 1
	markBad  byte = 2
)

// send sends out and fills in, each with a mark at its end; what is too short for more than
// the mark isn't sent. The bytes at the ends of the buffers are as they were afterwards.
func (x *exchange) send(to int, out []byte, from int, in []byte) error {
	mark := markGood
	if x.bad() {
		mark = markBad
	}
	if len(out) <= 1 {
		to, out = -1, nil
	}
	if len(in) <= 1 {
		from, in = -1, nil
	}
	if to < 0 && from < 0 {
		return nil
	}
	if to >= 0 {
		last := &out[len(out)-1]
		defer func(was byte) { *last = was }(*last)
		*last = mark
	}
	if from >= 0 {
		last := &in[len(in)-1]
		defer func(was byte) { *last = was }(*last)
	}
	if err := x.p.c.SendRecv(x.ctx, to, out, from, in, exchangeTag); err != nil {
		return err
	}
	if from >= 0 && in[len(in)-1] != markGood {
		x.stopped = true
	}
	return nil
}

// partners calls f for the pairs of members to which and from which a message goes at the same
// time, this rank itself first.
func (q seat) partners(f func(to, from int) error) error {
	for d := range q.members {
		if err := f((q.me+d)%len(q.members), (q.me+len(q.members)-d)%len(q.members)); err != nil {
			return err
		}
	}
	return nil
}

// count is the number of bytes that a member has of a slot, with the mark.
func (x *exchange) count(q seat, member int, slot stretch) int64 {
	_, n := x.p.has(q.members[member], slot)
	return n*int64(x.p.elem.Size()) + 1
}

func (p *Plan) exchangeWrite(ctx context.Context, jobs []WriteJob, t *tally) error {
	x, r := p.newExchange(ctx, "write", writeIDs(jobs), t), p.runs(t)
	put := func(slot, packed []byte) { copy(slot, packed) }
	return x.end(x.each(func(q seat) error {
		own := x.own[:q.n*r.elem]
		x.try(q.file, func() error {
			if err := readCells(jobs[q.file].Source, own, q.first); err != nil {
				return err
			}
			r.add(x.sums[q.file], own, q.first)
			t.move(q.file, int64(len(own)))
			return nil
		})
		slot := q.slots[q.me]
		err := q.partners(func(to, from int) error {
			if to == q.me {
				x.rows(q.members[q.me], slot, put, x.mine(q, slot))
				return nil
			}
			in := x.message[:x.count(q, from, slot)]
			if err := x.send(q.members[to], x.mine(q, q.slots[to]), q.members[from], in); err != nil {
				return err
			}
			x.rows(q.members[from], slot, put, in)
			return nil
		})
		if err != nil || slot.cells() == 0 {
			return err
		}
		x.try(q.file, func() error {
			if err := x.open(q.file, os.O_WRONLY); err != nil {
				return err
			}
			return p.put(x.file, x.slot[:slot.cells()*r.elem], x.jobs[q.file].Offset+slot.first*r.elem)
		})
		return nil
	}))
}

func (p *Plan) exchangeRead(ctx context.Context, jobs []ReadJob, t *tally) error {
	x, r := p.newExchange(ctx, "read", readIDs(jobs), t), p.runs(t)
	take := func(slot, packed []byte) { copy(packed, slot) }
	return x.end(x.each(func(q seat) error {
		slot := q.slots[q.me]
		if slot.cells() > 0 {
			x.try(q.file, func() error {
				if err := x.open(q.file, os.O_RDONLY); err != nil {
					return err
				}
				return vfs.ReadFull(x.file, x.slot[:slot.cells()*r.elem], x.jobs[q.file].Offset+slot.first*r.elem)
			})
		}
		err := q.partners(func(to, from int) error {
			if to == q.me {
				x.rows(q.members[q.me], slot, take, x.mine(q, slot))
				return nil
			}
			out := x.message[:x.count(q, to, slot)]
			x.rows(q.members[to], slot, take, out)
			return x.send(q.members[to], out, q.members[from], x.mine(q, q.slots[from]))
		})
		if err != nil {
			return err
		}
		x.try(q.file, func() error {
			own := x.own[:q.n*r.elem]
			r.add(x.sums[q.file], own, q.first)
			t.move(q.file, int64(len(own)))
			return sinkCells(jobs[q.file].Sink, own, q.first)
		})
		return nil
	}))
}
