package field

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/fieldstone-io/fieldstone/device"
)

// Option changes how a field is made.
type Option func(*options) error

type options struct {
	halo      [3]int
	iteration [3]int
	space     device.Space
	stream    device.Stream
	path      Path
	ring      ringSize
	log       *slog.Logger
}

// Halo sets the number of ghost cells in the storage on each side of all three
// axes. The default is none.
func Halo(n int) Option { return HaloXYZ(n, n, n) }

// HaloXYZ sets the number of ghost cells in the storage on each side along x,
// y and z.
func HaloXYZ(x, y, z int) Option {
	return func(o *options) error {
		o.halo = [3]int{x, y, z}
		return notNegative("halo", o.halo)
	}
}

// IterationHalo sets how many of the ghost cells on each side of all three
// axes [Field.Iteration] visits. The default is none. It can't be wider than
// the storage's halo.
func IterationHalo(n int) Option { return IterationHaloXYZ(n, n, n) }

// IterationHaloXYZ sets the iteration halo along x, y and z.
func IterationHaloXYZ(x, y, z int) Option {
	return func(o *options) error {
		o.iteration = [3]int{x, y, z}
		return notNegative("iteration halo", o.iteration)
	}
}

// In puts the field on a device. The default is host memory.
func In(space device.Space) Option {
	return func(o *options) error {
		if space == nil {
			return errors.New("space is nil")
		}
		o.space = space
		return nil
	}
}

// OnStream puts the field on the stream's device and lets its copies run on
// that stream, so that they are in order with the kernels that the solver
// launches there. Without it the field has a stream of its own.
func OnStream(stream device.Stream) Option {
	return func(o *options) error {
		if stream == nil {
			return errors.New("stream is nil")
		}
		o.stream = stream
		return nil
	}
}

// The ring that the fields of a space share has DefaultRingChunks chunks of at most
// DefaultRingChunk bytes where no field asks for others by [Ring].
const (
	DefaultRingChunk  = 1 << 20
	DefaultRingChunks = 4
)

// Ring asks for a ring of so many chunks of so many bytes each, through which the cells of
// all fields of the space go past the mirror: as much memory on the device, and as much
// pinned memory of the host. 0 leaves a number to the others, or to the default. The
// largest chunk and the largest number that any field has asked for count, until the last
// field of the space is freed; no chunk is larger than the owned cells of the largest
// field. A ring that is in use grows when it is idle.
//
// A chunk is a multiple of 4096 bytes, at most 64 MiB; there are 4 chunks at least, 64
// at most: half of them have what one reader needs next. Larger chunks mean fewer calls of
// the driver, more of them let more writers of files be served at the same time. It means
// nothing for a field in host memory.
func Ring(chunkBytes int64, chunks int) Option {
	return func(o *options) error {
		const mostBytes, most = 64 << 20, 64
		switch {
		case chunkBytes < 0 || chunkBytes%pageSize != 0 || chunkBytes > mostBytes:
			return fmt.Errorf("chunks of the ring have %d bytes, must be a multiple of %d, at most %d", chunkBytes, pageSize, mostBytes)
		case chunks != 0 && chunks < DefaultRingChunks || chunks > most:
			return fmt.Errorf("the ring has %d chunks, must be %d to %d", chunks, DefaultRingChunks, most)
		}
		o.ring = ringSize{chunkBytes, chunks}
		return nil
	}
}

// silent is the default logger.
var silent = slog.New(slog.DiscardHandler)

func collect(opts []Option) (options, error) {
	o := options{log: silent}
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return options{}, err
		}
	}
	for a := range o.halo {
		if o.iteration[a] > o.halo[a] {
			return options{}, fmt.Errorf("iteration halo %d along %s is wider than the storage's halo %d",
				o.iteration[a], axisNames[a], o.halo[a])
		}
	}
	if o.stream != nil {
		other := o.stream.Space()
		switch {
		case o.space == nil:
		case o.space.Name() != other.Name():
			return options{}, fmt.Errorf("stream belongs to %s, not to %s", other.Name(), o.space.Name())
		case isKey(o.space) && isKey(other) && o.space != other:
			return options{}, fmt.Errorf("stream belongs to another space of %s, opened by itself", other.Name())
		}
		o.space = other
	}
	if o.space != nil && !isKey(o.space) {
		return options{}, fmt.Errorf("space %s is a %T: it must be comparable", o.space.Name(), o.space)
	}
	return o, nil
}

// isKey reports whether spaces of this type can be told apart, as pointers can.
func isKey(s device.Space) bool { return reflect.TypeOf(s).Comparable() }

var axisNames = [3]string{"x", "y", "z"}

func notNegative(what string, halo [3]int) error {
	for a, n := range halo {
		if n < 0 {
			return fmt.Errorf("%s along %s is %d, must not be negative", what, axisNames[a], n)
		}
	}
	return nil
}
