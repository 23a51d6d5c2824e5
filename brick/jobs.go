package brick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

// WriteJob is one file, or a part of one, to write. Name says what it is in errors
// (`field "psi"`), Path is the same on all ranks and leads to rank 0's file, Source yields this rank's cells: it
// is called with ascending, adjoining ranges, by one goroutine at a time, and not at
// all on a rank that has no cells. Sources of different jobs may be called at the same
// time, in any order of the jobs. One that is a [pack.RowSource] too may be asked for
// rows that lie apart instead, one that is a [pack.LendSource] for cells that go into
// the file from where they are.
//
// Within places the array in a file that exists: it begins at byte Offset, wherever
// that is, and what lies around it stays as it is. The file is never created and never
// truncated; it is extended if it ends before the array does. Without Within, Offset
// is 0.
type WriteJob struct {
	Name, Path string
	Source     pack.Source
	Within     bool
	Offset     int64
}

func (j WriteJob) id() job { return job{j.Name, j.Path, j.Within, j.Offset} }

// ReadJob is one file, or a part of one, to read. Sink receives this rank's cells in
// ascending, adjoining ranges, by one goroutine at a time; those of different jobs may
// be called at the same time.
//
// Within reads an array that is a part of the file: it begins at byte Offset, and the
// file goes on at least up to its end. Without Within, Offset is 0 and the file is the
// array.
type ReadJob struct {
	Name, Path string
	Sink       Sink
	Within     bool
	Offset     int64
}

func (j ReadJob) id() job { return job{j.Name, j.Path, j.Within, j.Offset} }

// Sink takes the cells of a rank's box from number first on, packed as in the
// file. The slice is only valid during the call. A [pack.Sink] is one; if it is a
// [pack.RowSink] too, it may be given rows that lie apart instead; a [pack.FlushSink]
// is flushed before a read is called done.
type Sink interface {
	WriteCells(src []byte, first int64) error
}

// SinkFunc is a function as a [Sink].
type SinkFunc func(src []byte, first int64) error

// WriteCells calls f.
func (f SinkFunc) WriteCells(src []byte, first int64) error { return f(src, first) }

// Write writes the files of all jobs, creating or truncating them, and returns
// the sum of each; of jobs that are Within a file it writes that part, and
// returns the sum of the part. It is collective; all ranks give the same names,
// paths and offsets in the same order, and each path once, but for parts of one file
// that don't overlap. Paths are compared as they are given; two that the filesystem takes
// for one, as where it doesn't tell case apart, are an error before anything is written.
//
// Every file is created and its space allocated before any rank writes, so a full
// disk is found while nothing is half done. With the [Sync] option, on
// return the data of each file is durable (its directory entry isn't: that is
// the caller's).
//
// The error is the same on all ranks and names the lowest rank that failed, the
// file and the cause: `rank 2: write field "psi": no space left on device`. A
// cancelled context counts as a failure of its rank. A rank whose disk is slow is
// waited for, see [comm.Comm.AtWork]; so is one whose Source takes long. After an error
// the files may be there, with anything in them; a file with parts may be longer, and has
// anything in these parts, but nothing else has changed.
func (p *Plan) Write(ctx context.Context, jobs []WriteJob) ([]Sum, error) {
	ctx = waiting.Named(ctx, "Plan.Write")
	ids := writeIDs(jobs)
	var err error
	for i, j := range jobs {
		if j.Source == nil && err == nil {
			err = ids[i].fail("write", errors.New("no source"))
		}
	}
	return p.call(ctx, "write", ids, err, func(ctx context.Context, ids []job) ([]Sum, error) {
		jobs := slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Path = ids[i].Path
		}
		return p.write(ctx, jobs, ids)
	})
}

func (p *Plan) write(ctx context.Context, jobs []WriteJob, ids []job) ([]Sum, error) {
	if err := p.make(ctx, ids); err != nil {
		step := waiting.Doing(ctx, "close", "the files")
		_ = p.made.close(ids) // the error is that of all ranks already
		step.End()
		_ = p.c.Meet(context.WithoutCancel(ctx)) // none is left at work
		return nil, err
	}
	t := p.newTally(len(jobs))
	t.counts = true
	err := p.drv.write(ctx, p, jobs, t)
	// Those that other ranks wrote, or nobody because of an error.
	step := waiting.Doing(ctx, "close", "the files")
	if cerr := p.made.close(ids); err == nil {
		err = cerr
	}
	step.End()
	sums, err := p.finish(ctx, "write", ids, t, err)
	if err != nil {
		return nil, err
	}
	if p.opt.sync {
		if err := p.c.durable(ctx, p.opt.fs, files(ids)); err != nil {
			return nil, err
		}
	}
	again, err := p.mustReadBack(ctx, ids)
	if err != nil {
		return nil, err
	}
	if again {
		if err := p.readBack(ctx, ids, sums); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// Read reads this rank's box of the files of all jobs and returns the
// CRC-64/NVME of each whole file, or part of a file, which the caller compares. It is
// collective; all ranks give the same names, paths and offsets in the same order. The
// sizes of all files are checked before anything is read: the error has a *[SizeError]
// or [ErrSize] in its chain. Errors are like those of [Plan.Write]; after one, any
// part of the cells may have gone into the sinks.
func (p *Plan) Read(ctx context.Context, jobs []ReadJob) ([]uint64, error) {
	ctx = waiting.Named(ctx, "Plan.Read")
	ids := readIDs(jobs)
	var err error
	for i, j := range jobs {
		if j.Sink == nil && err == nil {
			err = ids[i].fail("read", errors.New("no sink"))
		}
	}
	sums, err := p.call(ctx, "read", ids, err, func(ctx context.Context, ids []job) ([]Sum, error) {
		jobs := slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Path = ids[i].Path
		}
		var err error
		if p.c.Rank() == 0 {
			err = p.checkSizes(ctx, ids)
		}
		if err := p.c.sameFiles(ctx, p.opt.fs, ids, p.FileSize(), err); err != nil {
			return nil, err
		}
		t := p.newTally(len(jobs))
		err = p.drv.read(ctx, p, jobs, t)
		if err == nil {
			err = flush(jobs)
		}
		return p.finish(ctx, "read", ids, t, err)
	})
	if err != nil || len(sums) == 0 {
		return nil, err
	}
	crcs := make([]uint64, len(sums))
	for i, s := range sums {
		crcs[i] = s.CRC
	}
	return crcs, nil
}

// call begins every call of a plan: the ranks agree that all of them are here,
// able to take part, and with the same jobs. do gets them with rank 0's absolute paths.
func (p *Plan) call(ctx context.Context, op string, jobs []job, err error, do func(ctx context.Context, jobs []job) ([]Sum, error)) ([]Sum, error) {
	p.c.calls, p.sections = 0, nil
	if err == nil {
		err = p.ready(op, jobs)
	}
	jobs, err = p.c.sameJobs(ctx, jobs, err)
	if err != nil {
		if errors.Is(err, ErrDisagree) {
			err = fmt.Errorf("%s bricks: %w", op, err)
		}
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	ctx, end := p.c.atWork(ctx, p.opt.log, op+" bricks")
	defer end()
	if err := p.openWindow(ctx, len(jobs)); err != nil {
		return nil, err
	}
	if p.window != nil && p.c.Rank() == 0 {
		// All ranks agree once more before they come to it.
		p.window.Reset()
		for i := range 2 * p.c.Size() {
			p.window.Counter(i).Store(0)
		}
	}
	sums, err := do(ctx, jobs)
	p.opt.log.Debug("brick "+op, "driver", p.drv.name(), "files", len(jobs), "bytes", p.FileSize(),
		"rank", p.c.Rank(), "collectives", p.c.calls, "error", err)
	return sums, err
}

// ready looks for what would fail on this rank later, when it is harder to stay
// in step.
func (p *Plan) ready(op string, jobs []job) error {
	if p.closed {
		return fmt.Errorf("%s bricks: %w", op, ErrClosed)
	}
	for _, j := range jobs {
		if err := p.offset(j); err != nil {
			return j.fail(op, err)
		}
	}
	if op == "write" {
		names := make(map[string]job, len(jobs))
		for _, j := range jobs {
			if other, ok := names[j.Path]; ok && !(j.Within && other.Within) {
				return j.fail(op, fmt.Errorf("%q is the path of %s too", j.Path, other.label()))
			}
			names[j.Path] = j
		}
		if err := p.apart(jobs); err != nil {
			return err
		}
	}
	return p.reserve(len(jobs))
}

// offset looks for one that no file has.
func (p *Plan) offset(j job) error {
	switch {
	case j.Within && j.Offset < 0:
		return fmt.Errorf("the array begins at byte %d of %q", j.Offset, j.Path)
	case j.Within && j.Offset > math.MaxInt64-p.FileSize():
		return fmt.Errorf("%d bytes from byte %d on don't fit a file (%q)", p.FileSize(), j.Offset, j.Path)
	case !j.Within && j.Offset != 0:
		return fmt.Errorf("offset %d in a file that is the array alone (%q)", j.Offset, j.Path)
	}
	return nil
}

// apart checks that parts of one file don't overlap.
func (p *Plan) apart(jobs []job) error {
	var parts []job
	for _, j := range jobs {
		if j.Within {
			parts = append(parts, j)
		}
	}
	slices.SortStableFunc(parts, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Offset, b.Offset))
	})
	for i := 1; i < len(parts); i++ {
		if a, b := parts[i-1], parts[i]; a.Path == b.Path && b.Offset-a.Offset < p.FileSize() {
			return b.fail("write", fmt.Errorf("bytes %d to %d of %q overlap those of %s, %d to %d",
				b.Offset, b.Offset+p.FileSize(), b.Path, a.label(), a.Offset, a.Offset+p.FileSize()))
		}
	}
	return nil
}

// files are the jobs with each file once.
func files(jobs []job) []job {
	parts := partsOf(jobs)
	if parts == nil {
		return jobs
	}
	var once []job
	for i, j := range jobs {
		if !j.Within || parts[j.Path][0] == i {
			once = append(once, j)
		}
	}
	return once
}

// own is the number of bytes of this rank's cells in a file.
func (p *Plan) own() int64 { return p.box.Cells() * int64(p.elem.Size()) }

func writeIDs(jobs []WriteJob) []job {
	ids := make([]job, len(jobs))
	for i, j := range jobs {
		ids[i] = j.id()
	}
	return ids
}

func readIDs(jobs []ReadJob) []job {
	ids := make([]job, len(jobs))
	for i, j := range jobs {
		ids[i] = j.id()
	}
	return ids
}

func (p *Plan) checkSizes(ctx context.Context, jobs []job) error {
	defer waiting.Doing(ctx, "look at", "the sizes of the files").End()
	for _, j := range jobs {
		info, err := p.opt.fs.Stat(j.Path)
		if err == nil {
			err = check(info, j, p.FileSize())
		}
		if err != nil {
			return j.fail("read", err)
		}
	}
	return nil
}

// hasSize checks that an open file is a regular one with size bytes, or one that has
// so many from a part's offset on. 0 asks nothing of the file of a part.
func hasSize(f vfs.File, j job, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return check(info, j, size)
}

func check(info fs.FileInfo, j job, size int64) error {
	end := j.Offset + size
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w", j.Path, vfs.ErrNotRegular)
	case j.Within && size > 0 && info.Size() < end, !j.Within && info.Size() != size:
		return &SizeError{j.Path, info.Size(), end, j.Within}
	}
	return nil
}

// finish agrees on the outcome and combines the ranks' parts of the sums.
func (p *Plan) finish(ctx context.Context, op string, jobs []job, t *tally, err error) ([]Sum, error) {
	stopped := err == errStopped
	switch {
	case stopped:
		err = nil
	case err == nil:
		err = t.covered(op, jobs, p.own())
	}
	counts, err := p.c.agreeCounts(ctx, err, t)
	if err != nil {
		return nil, err
	}
	if stopped { // all the more on the other ranks
		return nil, fmt.Errorf("%s bricks: %w", op, errStopped)
	}
	if p.throughWindow(len(jobs)) {
		if err := p.complete(ctx, op, jobs, t); err != nil {
			return nil, err
		}
	}
	sums, err := p.c.combine(ctx, t, counts, p.FileSize())
	if err == nil && p.opt.planes > 0 {
		p.sections = make([][]uint64, len(t.files))
		for i := range t.files {
			p.sections[i] = t.files[i].sections
		}
	}
	return sums, err
}

// newTally is one for files of the plan.
func (p *Plan) newTally(files int) *tally {
	t := newTally(files, p.own())
	t.section = int64(min(p.opt.planes, p.size[2])) * int64(p.size[0]) * int64(p.size[1]) * int64(p.elem.Size())
	return t
}

// runs are those of this rank's box, cut where sections of a tally end.
func (p *Plan) runs(t *tally) runs {
	r := newRuns(p.size, p.box, p.elem)
	r.section = t.section / r.elem
	return r
}

// complete checks that the ranks together have had every byte of each file, where no
// rank can tell what its share is.
func (p *Plan) complete(ctx context.Context, op string, jobs []job, t *tally) error {
	sums := make([]int64, len(t.files))
	for i, s := range t.files {
		sums[i] = s.summed
	}
	if err := p.c.AllReduceInt64(ctx, comm.Sum, sums); err != nil {
		return err
	}
	// All ranks have the same numbers.
	for i, n := range sums {
		if n != p.FileSize() {
			return jobs[i].fail(op, fmt.Errorf("the ranks moved %d of %d bytes", n, p.FileSize()))
		}
	}
	return nil
}
