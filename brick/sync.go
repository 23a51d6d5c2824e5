package brick

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Durable puts the data of files on stable storage, wherever the ranks wrote it
// from: on each node the files are shared out over its ranks, and each is fsynced
// there by one of them, through a descriptor of its own. That is what makes an
// error of earlier write-back visible, and what a network filesystem needs of
// each client. It is collective and reports the same error on all ranks. A
// failed fsync is final.
func Durable(ctx context.Context, c *comm.Comm, fsys vfs.FS, paths []string) error {
	node, err := c.SplitNode()
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	for i := node.Rank(); i < len(paths); i += node.Size() {
		if err == nil {
			err = syncFile(fsys, paths[i])
		}
	}
	err = errors.Join(err, node.Free())
	return c.Agree(ctx, err)
}

func syncFile(fsys vfs.FS, path string) error {
	// Some filesystems sync only descriptors that may write.
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Checksums returns the CRC-64/NVME of whole files, read by all ranks together,
// each a contiguous share. It is collective; a file that has not the expected
// size gives a *[SizeError].
func Checksums(ctx context.Context, c *comm.Comm, fsys vfs.FS, paths []string, size int64) ([]uint64, error) {
	if len(paths) == 0 {
		return nil, c.Agree(ctx, nil)
	}
	parts := make([]int64, len(paths))
	var err error
	buf := pageAligned(posixChunk)
	for i, path := range paths {
		if err != nil {
			break
		}
		sum := pack.NewChecksum(size)
		low, high := share(size, c.Rank(), c.Size())
		err = sumRange(ctx, fsys, path, size, low, high, buf, sum)
		parts[i] = int64(sum.Part())
	}
	if err := c.Agree(ctx, err); err != nil {
		return nil, err
	}
	if err := c.AllReduceInt64(ctx, comm.BitXor, parts); err != nil {
		return nil, err
	}
	crcs := make([]uint64, len(paths))
	for i, part := range parts {
		crcs[i] = pack.Finish(uint64(part), size)
	}
	return crcs, nil
}

// share cuts size into parts of whole chunks.
func share(size int64, rank, ranks int) (low, high int64) {
	chunks := (size + posixChunk - 1) / posixChunk
	cut := func(r int) int64 {
		return min((chunks/int64(ranks)*int64(r)+chunks%int64(ranks)*int64(r)/int64(ranks))*posixChunk, size)
	}
	return cut(rank), cut(rank + 1)
}

func sumRange(ctx context.Context, fsys vfs.FS, path string, size, low, high int64, buf []byte, sum *pack.Checksum) (err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != size {
		return &SizeError{path, info.Size(), size}
	}
	for at := low; at < high; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), high-at)]
		if _, err := io.ReadFull(io.NewSectionReader(f, at, int64(len(piece))), piece); err != nil {
			return fmt.Errorf("read %s at byte %d: %w", path, at, err)
		}
		sum.Add(at, piece)
		at += int64(len(piece))
	}
	return nil
}

// mustReadBack says whether written files have to be read again. Rank 0's answer
// counts; it is part of the agreed options or of the filesystem that rank 0 sees.
func (p *Plan) mustReadBack(ctx context.Context, paths []string) (bool, error) {
	if len(paths) == 0 || p.opt.readBack || p.drv.name() != MPIIO {
		return len(paths) > 0 && p.opt.readBack, nil
	}
	need := []int64{0}
	if p.c.Rank() == 0 {
		if u, err := p.opt.fs.Usage(paths[0]); err != nil || !u.Allocates {
			need[0] = 1
		}
	}
	err := p.c.AllReduceInt64(ctx, comm.Max, need)
	return need[0] != 0, err
}

func (p *Plan) readBack(ctx context.Context, jobs []job, want []uint64) error {
	paths := make([]string, len(jobs))
	for i, j := range jobs {
		paths[i] = j.Path
	}
	got, err := Checksums(ctx, p.c, p.opt.fs, paths, p.FileSize())
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	for i := range got {
		if got[i] != want[i] {
			return jobs[i].fail("write", fmt.Errorf("%w: checksum %016x, want %016x", ErrReadBack, got[i], want[i]))
		}
	}
	return nil
}
