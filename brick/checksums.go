package brick

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
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
	if err := r.sameJobs(ctx, jobs); err != nil {
		return nil, fmt.Errorf("checksum of files: %w", err)
	}
	return r.sumFiles(ctx, fsys, "read", jobs, size)
}

func (r *ranks) sumFiles(ctx context.Context, fsys vfs.FS, op string, jobs []job, size int64) ([]uint64, error) {
	sums := make([]*pack.Checksum, len(jobs))
	var err error
	var buf []byte
	low, high := share(size, r.Rank(), r.Size())
	for i, j := range jobs {
		sums[i] = pack.NewChecksum(size)
		if err != nil {
			continue
		}
		if buf == nil {
			buf = pageAligned(int(min(posixChunk, high-low)))
		}
		err = j.fail(op, sumRange(ctx, fsys, j.Path, size, low, high, buf, sums[i]))
	}
	if err == nil {
		err = covered(op, jobs, sums, high-low)
	}
	if err := r.Agree(ctx, err); err != nil {
		return nil, err
	}
	return r.combine(ctx, sums, size)
}

// combine makes the checksums of the files from the ranks' parts.
func (r *ranks) combine(ctx context.Context, sums []*pack.Checksum, size int64) ([]uint64, error) {
	if len(sums) == 0 {
		return nil, nil
	}
	parts := make([]int64, len(sums))
	for i, s := range sums {
		parts[i] = int64(s.Part())
	}
	if err := r.AllReduceInt64(ctx, comm.BitXor, parts); err != nil {
		return nil, err
	}
	crcs := make([]uint64, len(sums))
	for i, part := range parts {
		crcs[i] = pack.Finish(uint64(part), size)
	}
	return crcs, nil
}

// share cuts size into parts of whole chunks, one for each rank.
func share(size int64, rank, ranks int) (low, high int64) {
	chunks, n := size/posixChunk, int64(ranks) // but for a last one that is not whole
	cut := func(r int64) int64 {
		if r == n {
			return size
		}
		return (chunks/n*r + chunks%n*r/n) * posixChunk
	}
	return cut(int64(rank)), cut(int64(rank) + 1)
}

func sumRange(ctx context.Context, fsys vfs.FS, path string, size, low, high int64, buf []byte, sum *pack.Checksum) (err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = also(err, f.Close()) }()
	if err := hasSize(f, path, size); err != nil {
		return err
	}
	for at := low; at < high; {
		if err := cancelled(ctx); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), high-at)]
		if err := readFull(f, piece, at); err != nil {
			return err
		}
		sum.Add(at, piece)
		at += int64(len(piece))
	}
	return nil
}
