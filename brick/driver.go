package brick

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Driver names a way of moving bricks to and from files. The bytes on disk don't
// depend on it.
type Driver int

// The drivers.
const (
	Auto  Driver = iota // choose by communicator
	POSIX               // each rank by itself, with pwrite and pread
	MPIIO               // MPI-IO by each rank, of long pieces that the ranks put together
	Node                // the ranks of one node, with pwrite and pread and memory that they share
)

var driverNames = [...]string{"auto", "posix", "mpiio", "node"}

func (d Driver) String() string {
	if d < 0 || int(d) >= len(driverNames) {
		return fmt.Sprintf("driver(%d)", int(d))
	}
	return driverNames[d]
}

// errStopped is what a driver returns on a rank that has no error of its own, but
// knows that another one has.
var errStopped = errors.New("stopped after an error that no rank has")

// driver moves the bricks of already created (write) or checked (read) files. It
// adds what passes by to the tally and returns this rank's first error, or
// errStopped; it stays in step with the other ranks whatever happens here, and leaves
// the final agreement to its caller.
type driver interface {
	name() Driver
	write(ctx context.Context, p *Plan, jobs []WriteJob, t *tally) error
	read(ctx context.Context, p *Plan, jobs []ReadJob, t *tally) error
}

// posix has no collective call at all: a rank that fails stops.
type posix struct{}

func (posix) name() Driver { return POSIX }

func (posix) write(ctx context.Context, p *Plan, jobs []WriteJob, t *tally) error {
	return p.streamWrite(ctx, jobs, t)
}

func (posix) read(ctx context.Context, p *Plan, jobs []ReadJob, t *tally) error {
	return p.streamRead(ctx, jobs, t)
}

// node goes through a window where cells lie in short rows.
type node struct{}

func (node) name() Driver { return Node }

func (node) write(ctx context.Context, p *Plan, jobs []WriteJob, t *tally) error {
	if p.throughWindow(len(jobs)) {
		return p.windowWrite(ctx, jobs, t)
	}
	return p.streamWrite(ctx, jobs, t)
}

func (node) read(ctx context.Context, p *Plan, jobs []ReadJob, t *tally) error {
	if p.throughWindow(len(jobs)) {
		return p.windowRead(ctx, jobs, t)
	}
	return p.streamRead(ctx, jobs, t)
}

// chooseDriver comes to the same result on all ranks that have the same options
// and see the same.
func chooseDriver(c *comm.Comm, o options, oneNode bool) (driver, string, error) {
	switch o.driver {
	case POSIX:
		return posix{}, "forced", nil
	case MPIIO:
		return mpiio{}, "forced", nil
	case Node:
		if !oneNode {
			return nil, "", errors.New("driver node needs all ranks on one node")
		}
		return node{}, "forced", nil
	}
	switch {
	case c.Size() == 1:
		return posix{}, "one rank", nil
	case oneNode:
		return node{}, fmt.Sprintf("%d ranks on one node", c.Size()), nil
	case o.fs != vfs.OS:
		return posix{}, "not the operating system's files", nil
	}
	return mpiio{}, fmt.Sprintf("%d ranks on several nodes", c.Size()), nil
}

// drivable looks for what the forced driver lacks.
func drivable(c *comm.Comm, o options) error {
	if o.driver == MPIIO && c.Handle() == nil {
		return errors.New("driver mpiio needs a communicator of MPI (build with the tag mpi)")
	}
	return nil
}
