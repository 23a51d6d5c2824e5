package runfile

import (
	"context"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// store is where a session keeps the files of its run. Only rank 0 uses it.
type store interface {
	// lock keeps other runs of the name away, until release or the end of the
	// process.
	lock() (release func() error, err error)
	// segments gives those that exist, in the order of their numbers.
	segments() ([]Segment, error)
	// owns reports whether a file is one of the run's.
	owns(file string) bool
	// look inspects a segment: what it holds, what is wrong with it by itself, and why it
	// can't be judged.
	look(ctx context.Context, g Segment) (*Info, []error, error)
	// places refuses what is in the place of a file that the segment of a number comes to
	// write, and is none; of checkpoints alone where it is 0.
	places(number int) error
	// checkpoint is the last one that is good by itself, nil where there is none at all.
	checkpoint(ctx context.Context) (*Checkpoint, error)
	// previous is the checkpoint before the last one, nil where there is none.
	previous(ctx context.Context) (*Checkpoint, error)
	// checkpointsFrom are the files of checkpoints of a segment or a later one, and of
	// those of which that can't be read.
	checkpointsFrom(ctx context.Context, number int) ([]string, error)
	// setAside renames a file of the run and returns the new name, so that nobody
	// takes it for one of the run. A file that isn't there has no name.
	setAside(file string) (string, error)
	// state is a saved state of an output file, or that of a checkpoint.
	state(ctx context.Context, file string, number int) (*Checkpoint, error)
	// exists looks for a file.
	exists(file string) (bool, error)

	// segment begins the output of the segment of a number. No file changes yet.
	segment(number int) (segmentFile, error)
	writeCheckpoint(ctx context.Context, k *Checkpoint) error

	// reserveCheckpoint makes a checkpoint that lacks the cells of its fields, and
	// says where they are to go. completeCheckpoint publishes it when they are there,
	// with how many of them are NaN or infinite, discardCheckpoint removes it.
	reserveCheckpoint(ctx context.Context, k *Checkpoint) (place, error)
	completeCheckpoint(ctx context.Context, k *Checkpoint, counts map[string]int64) error
	discardCheckpoint() error

	// written counts the bytes of the values that were handed to the files so far, except
	// for the cells of fields.
	written() int64

	// filesystem is where all ranks find the files, directory where they are in it; empty
	// where they are in none.
	filesystem() vfs.FS
	directory() string
	workingDirectory() string // at the beginning
	// onNodes says that the ranks are on several nodes.
	onNodes()
}

// segmentFile is the output of a segment while the session goes on.
type segmentFile interface {
	// publish adds the states and the attempts of a solution to the file, and gives it
	// the settings. An error leaves the file as it was, unless it matches errUnsynced.
	publish(ctx context.Context, add *Solution) error
	// reserve makes room for the cells of one more state of the fields, and says
	// where; they are in the file once their state is published. head has the
	// settings and the layout.
	reserve(ctx context.Context, head *Solution) (place, error)
	// discard takes back what was reserved since the file was published.
	discard() error
}
