package runfile

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A FieldReader gives the values of a field in a box of its domain at saved state
// number state, from 0: the cells in C order, x fastest. [Solution.ReadField] is one.
type FieldReader func(ctx context.Context, name string, state int, box grid.Box, dst []float64) error

// An Option changes how files are written or read. Each says where it counts.
type Option func(*options) error

type options struct {
	atomic     bool
	extendible bool
	fields     FieldReader
	warn       func(string)
	state      int
	noValues   bool
	stateBase  int // from which the caller counts states, for errors
	chunkBytes int
	fsys       vfs.FS
	reserved   *place // where fields go that others than HDF5 write, nil for none
	noCells    bool   // those of fields are not compared
	apart      bool   // ranks on several nodes write to working files
	written    int64  // bytes of numbers and strings handed to HDF5
	total      *int64 // the same of all options of a store, nil for nobody who counts
}

func (o *options) count(bytes int) {
	o.written += int64(bytes)
	if o.total != nil {
		*o.total += int64(bytes)
	}
}

func newOptions(opts []Option) (*options, error) {
	o := &options{
		warn:       func(text string) { slog.Warn(text) },
		state:      -1,
		chunkBytes: chunkBytes,
		fsys:       vfs.OS,
	}
	for _, opt := range opts {
		if err := opt(o); err != nil {
			return nil, err
		}
	}
	if !h5.Enabled {
		return nil, ErrNoHDF5
	}
	return o, nil
}

// Atomic makes [WriteOutput] write a temporary file beside the path and rename it, so
// that the path has its old or its new content at any time.
func Atomic() Option {
	return func(o *options) error { o.atomic = true; return nil }
}

// Extendible makes [WriteOutput] arrange what it writes so that states can be appended.
// Datasets then consist of chunks, which takes more space for a few states.
func Extendible() Option {
	return func(o *options) error { o.extendible = true; return nil }
}

// Fields gives the values of the fields to [WriteOutput] and [WriteCheckpoint]. A
// solution that was read gives its own.
func Fields(read FieldReader) Option {
	return func(o *options) error {
		if read == nil {
			return fmt.Errorf("option Fields: %w: no function", ErrInput)
		}
		o.fields = read
		return nil
	}
}

// State chooses the saved state that [ReadState] returns, from 0; negative numbers count
// from the end, and -1, the last, is the default.
func State(number int) Option {
	return func(o *options) error { o.state = number; return nil }
}

// Warn makes reading call a function with what is worth knowing and no reason to
// fail. The default logs it.
func Warn(warn func(text string)) Option {
	return func(o *options) error {
		if warn == nil {
			return fmt.Errorf("option Warn: %w: no function", ErrInput)
		}
		o.warn = warn
		return nil
	}
}

// NoValues makes [Faults] read no values of unknowns, which takes long where there are many.
func NoValues() Option {
	return func(o *options) error { o.noValues = true; return nil }
}
