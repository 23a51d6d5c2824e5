package brick

import (
	"context"
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/shm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Sum is what a call found out about one array while its bytes passed by.
type Sum struct {
	CRC uint64 // CRC-64/NVME of the array as it is on disk

	// NonFinite is the number of float64 numbers that are NaN or infinite. Of a
	// complex128 cell real part and imaginary part count by themselves.
	NonFinite int64
}

// Checksums returns the sums of whole files, read by all ranks together, each a
// contiguous share. It is collective and all ranks give the same paths; where they
// don't, the error has [ErrDisagree] in its chain. A file that has not the expected
// size is an error with [ErrSize] in its chain; a node that sees other files than
// rank 0 is an error too. In files whose size is no multiple of 8 nothing is counted.
func Checksums(ctx context.Context, c *comm.Comm, fsys vfs.FS, paths []string, size int64) ([]Sum, error) {
	ctx = waiting.Named(ctx, "brick.Checksums")
	r := ranks{Comm: c}
	jobs := unnamed(paths)
	var err error
	if size < 0 {
		err = fmt.Errorf("their size is %d", size)
	}
	if jobs, err = r.sameJobs(ctx, jobs, err); err == nil {
		ctx = c.AtWork(ctx)
		err = r.sameFiles(ctx, fsys, jobs, size, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("checksum of files: %w", err)
	}
	return r.sumFiles(ctx, fsys, "read", jobs, size, false)
}

// sumFiles sums up files, afresh without what the nodes have kept of them.
func (r *ranks) sumFiles(ctx context.Context, fsys vfs.FS, op string, jobs []job, size int64, afresh bool) ([]Sum, error) {
	low, high := part(size, r.Rank(), r.Size())
	t := newTally(len(jobs), high-low)
	t.counts = size%8 == 0
	counts, err := r.agreeCounts(ctx, sumRanges(ctx, fsys, op, jobs, size, low, high, afresh, t), t)
	if err != nil {
		return nil, err
	}
	return r.combine(ctx, t, counts, size)
}

// sumRanges sums up the bytes [low, high) of all files, of parts those of the part.
func sumRanges(ctx context.Context, fsys vfs.FS, op string, jobs []job, size, low, high int64, afresh bool, t *tally) (err error) {
	buf, err := shm.Alloc(int(min(readChunk, high-low)))
	if err != nil {
		return err
	}
	defer func() { err = also(err, buf.Free()) }()
	var sum sums
	for i, j := range jobs {
		t.begin(&sum, size)
		if err := sumRange(ctx, fsys, j, size, low, high, afresh, buf.Bytes, &sum); err != nil {
			return j.fail(op, err)
		}
		t.add(i, &sum)
		t.move(i, high-low)
	}
	return t.covered(op, jobs, high-low)
}

// agreeCounts agrees that no rank failed and adds up what the ranks counted, in one
// reduction: that of the checksums, which follows, can't add up.
func (r *ranks) agreeCounts(ctx context.Context, err error, t *tally) ([]int64, error) {
	counts := t.nonFinite()
	return counts, r.agreeSum(ctx, err, counts)
}

// combine makes the sums of the files from the ranks' parts of the checksums and the
// counts of all ranks. The tally has the checksums of their sections then.
func (r *ranks) combine(ctx context.Context, t *tally, counts []int64, size int64) ([]Sum, error) {
	n := t.sections(size)
	parts := t.parts(n)
	if len(parts) == 0 {
		return nil, nil
	}
	if err := r.AllReduceInt64(ctx, comm.BitXor, parts); err != nil {
		return nil, err
	}
	sums := make([]Sum, len(t.files))
	for i := range sums {
		for k, part := range parts[i*n : (i+1)*n] {
			length := size
			if n > 1 {
				length = min(t.section, size-int64(k)*t.section)
			}
			crc := pack.Finish(uint64(part), length)
			t.files[i].sections = append(t.files[i].sections, crc)
			sums[i].CRC = pack.Combine(sums[i].CRC, crc, length)
		}
		if counts != nil {
			sums[i].NonFinite = counts[i]
		}
	}
	return sums, nil
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

func sumRange(ctx context.Context, fsys vfs.FS, j job, size, low, high int64, afresh bool, buf []byte, sum *sums) (err error) {
	step := waiting.Doing(ctx, "open", j.called())
	f, err := fsys.OpenFile(j.Path, os.O_RDONLY|vfs.NoWait, 0)
	if err != nil {
		step.End()
		return err
	}
	defer func() { err = also(err, f.Close()) }()
	if afresh {
		vfs.Forget(f)
	}
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
		err := vfs.ReadFull(f, piece, j.Offset+at)
		step.End()
		if err != nil {
			return err
		}
		sum.add(at, piece)
		at += int64(len(piece))
	}
	return nil
}
