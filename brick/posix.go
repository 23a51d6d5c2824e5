package brick

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/fieldstone-io/fieldstone/pack"
)

// posixChunk is what is packed before it is written: large enough to amortise
// the call, small enough to stay in the cache.
const posixChunk = 1 << 20

// posix has no collective call at all: a rank that fails stops.
type posix struct{}

func (posix) name() Driver { return POSIX }

func (posix) write(ctx context.Context, p *Plan, jobs []WriteJob, sums []*pack.Checksum) error {
	for i, j := range jobs {
		if err := writeRuns(ctx, p, j, sums[i]); err != nil {
			return job{j.Name, j.Path}.fail("write", err)
		}
	}
	return nil
}

func writeRuns(ctx context.Context, p *Plan, j WriteJob, sum *pack.Checksum) (err error) {
	if p.box.Empty() {
		return nil
	}
	f, err := p.opt.fs.OpenFile(j.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	// Closing can be where a network filesystem reports that a write failed.
	defer func() { err = also(err, f.Close()) }()
	r := newRuns(p.size, p.box, p.elem)
	return p.chunks(ctx, func(buf []byte, first, count int64) error {
		if err := readCells(j.Source, buf, first); err != nil {
			return err
		}
		return r.each(first, count, func(offset, from, to int64) error {
			sum.Add(offset, buf[from:to])
			n, err := f.WriteAt(buf[from:to], offset)
			if err == nil && int64(n) != to-from {
				err = io.ErrShortWrite
			}
			return err
		})
	})
}

func (posix) read(ctx context.Context, p *Plan, jobs []ReadJob, sums []*pack.Checksum) error {
	for i, j := range jobs {
		if err := readRuns(ctx, p, j, sums[i]); err != nil {
			return job{j.Name, j.Path}.fail("read", err)
		}
	}
	return nil
}

func readRuns(ctx context.Context, p *Plan, j ReadJob, sum *pack.Checksum) (err error) {
	if p.box.Empty() {
		return nil
	}
	f, err := p.opt.fs.OpenFile(j.Path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = also(err, f.Close()) }()
	r := newRuns(p.size, p.box, p.elem)
	return p.chunks(ctx, func(buf []byte, first, count int64) error {
		err := r.each(first, count, func(offset, from, to int64) error {
			if err := readFull(f, buf[from:to], offset); err != nil {
				return err
			}
			sum.Add(offset, buf[from:to])
			return nil
		})
		if err != nil {
			return err
		}
		return sinkCells(j, buf, first)
	})
}

// readFull fills buf. The end of the file is an error here: the size was right
// before.
func readFull(f io.ReaderAt, buf []byte, offset int64) error {
	n, err := f.ReadAt(buf, offset)
	switch {
	case n == len(buf):
		return nil
	case err == io.EOF || err == nil:
		return fmt.Errorf("the file ends at byte %d: %w", offset+int64(n), io.ErrUnexpectedEOF)
	}
	return err
}

// chunks walks this rank's cells in pieces of the staging memory.
func (p *Plan) chunks(ctx context.Context, f func(buf []byte, first, count int64) error) error {
	elem := int64(p.elem.Size())
	stage := p.stage()
	per := min(int64(len(stage)), posixChunk) / elem
	for first, cells := int64(0), p.box.Cells(); first < cells; first += per {
		if err := cancelled(ctx); err != nil {
			return err
		}
		count := min(per, cells-first)
		if err := f(stage[:count*elem], first, count); err != nil {
			return err
		}
	}
	return nil
}
