package brick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// mustReadBack reports whether written files have to be read again: with MPI-IO, which may
// call a write to a full disk a success, and where several nodes write into one file, since
// their caches may put one's old bytes over another's new ones. It is part of
// the agreed options and jobs or of the filesystem that rank 0 sees. What a file that
// exists shares with a clone is space that nobody has promised.
func (p *Plan) mustReadBack(ctx context.Context, jobs []job) (bool, error) {
	if p.opt.readBack || p.drv.name() != MPIIO && p.oneNode {
		return p.opt.readBack, nil
	}
	if slices.ContainsFunc(jobs, func(j job) bool { return j.Within }) {
		return true, nil
	}
	need := []int64{0}
	if p.c.Rank() == 0 {
		step := waiting.Doing(ctx, "look at", "the filesystem")
		if u, err := p.opt.fs.Usage(jobs[0].Path); err != nil || !u.Allocates {
			need[0] = 1
		}
		step.End()
	}
	err := p.c.AllReduceInt64(ctx, comm.Max, need)
	return need[0] != 0, err
}

// Files that look wrong are read again so many times, after a pause and then after four
// times the last one: network filesystems keep what a client has read, for a second mostly.
const (
	readsAgain = 3
	againAfter = 300 * time.Millisecond
)

// pauseOf is the first pause, which tests make shorter.
func pauseOf(ctx context.Context) time.Duration {
	return cmp.Or(onedir.From(ctx).Pause, againAfter)
}

// readBack compares the checksums of files with those of what was written. It returns the
// same error on all ranks.
func (p *Plan) readBack(ctx context.Context, jobs []job, want []Sum) error {
	pause := pauseOf(ctx)
	for again := 0; ; again++ {
		bad, err := p.lookBack(ctx, jobs, want, again > 0)
		if bad == nil {
			return err
		}
		if again == readsAgain {
			return fmt.Errorf("%w (it was read %d times: the filesystem has lost a part of it, or a node's cache of it is out of date)", err, again+1)
		}
		if p.c.Rank() == 0 {
			p.opt.log.Warn("a file isn't yet as it was written: it is read again", "file", bad[0].Path, "files", len(bad), "after", pause)
		}
		waiting.Rest(ctx, pause)
		pause *= 4
		var left []Sum
		for i, j := range jobs {
			if slices.Contains(bad, j) {
				left = append(left, want[i])
			}
		}
		jobs, want = bad, left
	}
}

// lookBack returns the jobs whose files are not as they were written and may yet be, and
// what is wrong with the first, the same on all ranks. Without such jobs the error is final.
// Afresh it reads without the pages that the nodes have kept: a page that was filled from a
// client's old copy of the file stays for as long as the file isn't changed again.
func (p *Plan) lookBack(ctx context.Context, jobs []job, want []Sum, afresh bool) (bad []job, err error) {
	got, err := p.c.sumFiles(ctx, p.opt.fs, "read back", jobs, p.FileSize(), afresh)
	if err != nil {
		for _, old := range []error{ErrSize, io.ErrUnexpectedEOF, fs.ErrNotExist, syscall.ESTALE} {
			if errors.Is(err, old) {
				return jobs, err // what a node sees of a file's size may be old too
			}
		}
		return nil, err
	}
	for i, j := range jobs {
		if got[i].CRC == want[i].CRC {
			continue
		}
		if bad = append(bad, j); len(bad) == 1 {
			err = fmt.Errorf("%w: checksum %016x, want %016x", ErrReadBack, got[i].CRC, want[i].CRC)
		}
	}
	if bad == nil {
		return nil, nil
	}
	// All ranks have the same numbers; only what is free may look different.
	wrong := bad[0].fail("read back", err)
	if full := p.explain(bad[0], err); errors.Is(full, syscall.ENOSPC) {
		err = bad[0].fail("read back", full)
	} else {
		err = nil
	}
	if err := p.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	return bad, wrong
}
