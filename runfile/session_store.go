package runfile

import (
	"context"

	"github.com/fieldstone-io/fieldstone/record"
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
	settings(ctx context.Context, file string) (record.Record, error)
	// checkpoint is the last one that can be read, nil where there is none at all.
	checkpoint(ctx context.Context) (*Checkpoint, error)
	// state is a saved state of an output file, or that of a checkpoint.
	state(ctx context.Context, file string, number int) (*Checkpoint, error)
	// exists looks for a file.
	exists(file string) (bool, error)

	writeSegment(ctx context.Context, number int, s *Solution, fields FieldReader) error
	writeCheckpoint(ctx context.Context, k *Checkpoint, fields FieldReader) error
}
