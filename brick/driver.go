package brick

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Driver names a way of moving bricks to and from files. The bytes on disk don't
// depend on it.
type Driver int

// The drivers.
const (
	Auto  Driver = iota // choose by communicator
	POSIX               // pwrite and pread per run of contiguous cells
	MPIIO               // collective MPI-IO
)

func (d Driver) String() string {
	switch d {
	case Auto:
		return "auto"
	case POSIX:
		return "posix"
	case MPIIO:
		return "mpiio"
	}
	return fmt.Sprintf("driver(%d)", int(d))
}

// driver moves the bricks of already created (write) or checked (read) files. It
// adds what passes by to the checksums and returns this rank's first error; it
// stays in step with the other ranks whatever happens here, and leaves the final
// agreement to its caller.
type driver interface {
	name() Driver
	write(ctx context.Context, p *Plan, jobs []WriteJob, sums []*pack.Checksum) error
	read(ctx context.Context, p *Plan, jobs []ReadJob, sums []*pack.Checksum) error
}

// chooseDriver comes to the same result on all ranks that have the same options.
func chooseDriver(c *comm.Comm, o options) (driver, string, error) {
	switch o.driver {
	case POSIX:
		return posix{}, "forced", nil
	case MPIIO:
		if c.Handle() == nil {
			return nil, "", errors.New("driver mpiio needs a communicator of MPI (build with the tag mpi)")
		}
		return mpiio{}, "forced", nil
	}
	switch {
	case c.Size() == 1:
		return posix{}, "one rank", nil
	case c.Handle() == nil:
		return posix{}, "the ranks share a process", nil
	case o.fs != vfs.OS:
		return posix{}, "not the operating system's files", nil
	}
	return mpiio{}, fmt.Sprintf("%d ranks of MPI", c.Size()), nil
}

// readCells packs cells from a source; a panic in it is this rank's error.
func readCells(s pack.Source, dst []byte, first int64) error {
	return comm.Protect(func() error { return s.ReadCells(dst, first) })
}

func sinkCells(j ReadJob, src []byte, first int64) error {
	return comm.Protect(func() error { return j.Sink.WriteCells(src, first) })
}
