package brick

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/shm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Checksums returns the CRC-64/NVME of whole files, read by all ranks together,
// each a contiguous share. It is collective and all ranks give the same paths;
// where they don't, the error has [ErrDisagree] in its chain. A file that has not
// the expected size gives an error with [ErrSize] in its chain.
func Checksums(ctx context.Context, c *comm.Comm, fsys vfs.FS, paths []string, size int64) ([]uint64, error) {
	r := ranks{Comm: c}
	jobs := unnamed(paths)
	var err error
	if size < 0 {
		err = fmt.Errorf("checksum of files: their size is %d", size)
	}
	if err := r.Agree(ctx, err); err != nil {
		return nil, err
	}
	if err := r.sameJobs(ctx, jobs, nil); err != nil {
		return nil, fmt.Errorf("checksum of files: %w", err)
	}
	return r.sumFiles(c.AtWork(ctx), fsys, "read", jobs, size)
}

func (r *ranks) sumFiles(ctx context.Context, fsys vfs.FS, op string, jobs []job, size int64) ([]uint64, error) {
	low, high := part(size, r.Rank(), r.Size())
	t := newTally(len(jobs), high-low)
	if err := r.Agree(ctx, sumRanges(ctx, fsys, op, jobs, size, low, high, t)); err != nil {
		return nil, err
	}
	return r.combine(ctx, t.parts(), size)
}

// sumRanges sums up the bytes [low, high) of all files, of parts those of the part.
func sumRanges(ctx context.Context, fsys vfs.FS, op string, jobs []job, size, low, high int64, t *tally) (err error) {
	buf, err := shm.Alloc(int(min(readChunk, high-low)))
	if err != nil {
		return err
	}
	defer func() { err = also(err, buf.Free()) }()
	sum := pack.NewChecksum(size)
	for i, j := range jobs {
		sum.Reset(size)
		if err := sumRange(ctx, fsys, j, size, low, high, buf.Bytes, sum); err != nil {
			return j.fail(op, err)
		}
		t.add(i, sum)
		t.move(i, high-low)
	}
	return t.covered(op, jobs, high-low)
}

// combine makes the checksums of the files from the ranks' parts.
func (r *ranks) combine(ctx context.Context, parts []int64, size int64) ([]uint64, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	if err := r.AllReduceInt64(ctx, comm.BitXor, parts); err != nil {
		return nil, err
	}
	crcs := make([]uint64, len(parts))
	for i, part := range parts {
		crcs[i] = pack.Finish(uint64(part), size)
	}
	return crcs, nil
}

// readChunk is what is read at once where nothing is done with it but to sum it up.
const readChunk = 1 << 20

// part cuts size into parts of whole chunks, one for each rank.
func part(size int64, rank, ranks int) (low, high int64) {
	chunks, n := size/readChunk, int64(ranks) // but for a last one that is not whole
	cut := func(r int64) int64 {
		if r == n {
			return size
		}
		return (chunks/n*r + chunks%n*r/n) * readChunk
	}
	return cut(int64(rank)), cut(int64(rank) + 1)
}

func sumRange(ctx context.Context, fsys vfs.FS, j job, size, low, high int64, buf []byte, sum *pack.Checksum) (err error) {
	step := waiting.Doing(ctx, "open", j.called())
	f, err := fsys.OpenFile(j.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		step.End()
		return err
	}
	defer func() { err = also(err, f.Close()) }()
	err = hasSize(f, j, size)
	step.End()
	if err != nil {
		return err
	}
	for at := low; at < high; {
		if err := cancelled(ctx); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), high-at)]
		step := waiting.Doing(ctx, "read", j.called())
		err := readFull(f, piece, j.Offset+at)
		step.End()
		if err != nil {
			return err
		}
		sum.Add(at, piece)
		at += int64(len(piece))
	}
	return nil
}
