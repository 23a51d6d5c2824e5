package field

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Field is an array over the box of cells that one rank owns, with ghost cells
// on all sides, in host memory or on a device. See the package documentation.
type Field[T pack.Number] struct {
	domain    grid.Domain
	box       grid.Box
	halo      [3]int
	iteration [3]int
	layout    pack.Layout

	mu    sync.Mutex
	freed bool
	host  []T            // the padded storage; on a device its mirror, nil until it is needed
	dev   *residence     // nil in host memory
	own   []func() error // gives back what the field itself allocated
	waits bool           // the stream has to be passed before
}

// New returns a field whose cells, ghost cells included, are all 0. The box
// lies within the domain or is empty; a field with an empty box has no storage
// at all, no ghost cells either.
//
// The options choose the halo and the memory space. On a device the field
// allocates padded storage there and, unless [OnStream] gives one, a stream; the
// pinned mirror is made when it is needed. Both copies of the cells are in sync.
func New[T pack.Number](domain grid.Domain, box grid.Box, opts ...Option) (*Field[T], error) {
	f, o, err := prepare[T](domain, box, opts)
	if err != nil {
		return nil, fmt.Errorf("new field: %w", err)
	}
	if o.space == nil {
		f.host = make([]T, f.layout.PaddedCells())
		return f, nil
	}
	if err := f.allocate(o); err != nil {
		return nil, fmt.Errorf("new field: %w", errors.Join(err, f.release()))
	}
	return f, nil
}

// WrapHost returns a field around host memory that the caller owns: the padded
// storage, with x fastest, in the layout that [Field.Layout] returns. Free
// leaves it alone. For an empty box the data isn't used. A wrong length is a
// [*LengthError].
func WrapHost[T pack.Number](domain grid.Domain, box grid.Box, data []T, opts ...Option) (*Field[T], error) {
	f, o, err := prepare[T](domain, box, opts)
	if err != nil {
		return nil, fmt.Errorf("wrap host memory: %w", err)
	}
	if o.space != nil {
		return nil, fmt.Errorf("wrap host memory: space %s chosen; use WrapDevice", o.space.Name())
	}
	if f.host, err = f.checkLength("data", data); err != nil {
		return nil, fmt.Errorf("wrap host memory: %w", err)
	}
	return f, nil
}

// WrapDevice returns a field around padded device memory that the caller owns,
// and that kernels on the given stream use: the address of the first cell of the
// layout that [Field.Layout] returns, ghost cells included. The device counts as
// newer. The field is on the stream's space; what it does to the memory is in order
// with what is in the stream, and with the events that [Field.NoteDeviceWrite] is given.
//
// The mirror is padded host memory of the caller, or nil for one that the
// field makes if it is ever needed: cells are saved and loaded without, see the
// package documentation. Copies are faster and don't hold up the driver if the
// caller's is pinned ([device.Space.AllocateHost], [device.Space.RegisterHost]).
//
// Free waits for what the field itself still does in the stream, and leaves alone
// what the caller owns: memory, stream and mirror must last until then. For an empty box
// pointer and mirror aren't used. A wrong length of the mirror is a [*LengthError], a
// pointer to something else than that much memory of the stream's device, or one that
// isn't aligned to the element (8 bytes for float64 and complex128, 4 for float32),
// [device.ErrAddress].
func WrapDevice[T pack.Number](domain grid.Domain, box grid.Box, p device.Ptr, stream device.Stream, mirror []T, opts ...Option) (*Field[T], error) {
	if stream == nil {
		return nil, errors.New("wrap device memory: stream is nil")
	}
	f, o, err := prepare[T](domain, box, append(opts[:len(opts):len(opts)], OnStream(stream)))
	if err != nil {
		return nil, fmt.Errorf("wrap device memory: %w", err)
	}
	if mirror != nil {
		if mirror, err = f.checkLength("mirror", mirror); err != nil {
			return nil, fmt.Errorf("wrap device memory: %w", err)
		}
	}
	if err := f.wrap(o, p, mirror); err != nil {
		return nil, fmt.Errorf("wrap device memory: %w", errors.Join(err, f.release()))
	}
	return f, nil
}

// prepare validates everything but memory.
func prepare[T pack.Number](domain grid.Domain, box grid.Box, opts []Option) (*Field[T], options, error) {
	if err := domain.Validate(); err != nil {
		return nil, options{}, err
	}
	o, err := collect(opts)
	if err != nil {
		return nil, options{}, err
	}
	for a, n := range box.Size {
		if n < 0 {
			return nil, options{}, fmt.Errorf("box %v: size along %s is %d, must not be negative", box, axisNames[a], n)
		}
	}
	if !domain.Box().Contains(box) {
		return nil, options{}, &OutsideError{Box: box, Domain: domain.Box()}
	}
	f := &Field[T]{domain: domain, box: box, halo: o.halo, iteration: o.iteration}
	f.layout = pack.Layout{Size: box.Size, Halo: o.halo}
	if box.Empty() {
		f.layout.Halo = [3]int{}
	}
	if err := f.layout.Validate(); err != nil {
		return nil, options{}, err
	}
	return f, o, nil
}

// checkLength returns data, or nothing for an empty box.
func (f *Field[T]) checkLength(what string, data []T) ([]T, error) {
	if f.box.Empty() {
		return []T{}, nil
	}
	if want := f.layout.PaddedCells(); int64(len(data)) != want {
		return nil, &LengthError{What: what, Got: int64(len(data)), Want: want, Padded: f.layout.PaddedSize()}
	}
	return data, nil
}

// Domain returns the global grid.
func (f *Field[T]) Domain() grid.Domain { return f.domain }

// Box returns the owned cells in global indices.
func (f *Field[T]) Box() grid.Box { return f.box }

// Kind returns the element type.
func (f *Field[T]) Kind() Kind { return KindOf[T]() }

// Halo returns the number of ghost cells on each side along x, y and z.
func (f *Field[T]) Halo() [3]int { return f.halo }

// Layout returns the layout of the storage. With an empty box it has neither
// cells nor halo.
func (f *Field[T]) Layout() pack.Layout { return f.layout }

// View returns the padded storage for reading: on a device the mirror, brought
// up to date if the device is newer, which waits for the stream. It marks
// nothing stale, so nothing must be written to it. It is valid until Free and
// shows later changes only after another View.
func (f *Field[T]) View() ([]T, error) {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.hostReady(); err != nil {
		return nil, fmt.Errorf("view field: %w", err)
	}
	return f.host, nil
}

// MutableView returns the padded storage for reading and writing: on a device
// the mirror, brought up to date if the device is newer. The device's storage
// is stale from then on, until Upload. What is written to the slice after an
// Upload needs another MutableView to be noticed.
func (f *Field[T]) MutableView() ([]T, error) {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.hostReady(); err != nil {
		return nil, fmt.Errorf("mutable view of field: %w", err)
	}
	f.dev.markDeviceStale()
	return f.host, nil
}

// hostReady checks for use after Free and brings the mirror up to date.
func (f *Field[T]) hostReady() error {
	if f.freed {
		return ErrFreed
	}
	if err := f.needMirror(); err != nil {
		return err
	}
	return f.dev.refreshMirror()
}

// Free gives back what the field allocated, after waiting for its stream, and
// ends all views. Memory and streams of the caller are left alone. A second
// call is ErrFreed. On a lost device everything is given back too; that it is lost is
// an error only if no call on a field of the space has had it.
func (f *Field[T]) Free() error {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		return fmt.Errorf("free field: %w", ErrFreed)
	}
	f.freed = true
	if err := f.release(); err != nil {
		return fmt.Errorf("free field: %w", err)
	}
	return nil
}

// release gives back the field's own memory, the latest first. Whatever is in
// the stream may still use it, the solver's kernels too.
func (f *Field[T]) release() error {
	var errs []error
	if f.dev != nil && f.dev.stream != nil {
		errs = append(errs, f.dev.retire(f.waits))
	}
	f.dev, f.host = nil, nil
	for i := len(f.own) - 1; i >= 0; i-- {
		errs = append(errs, f.own[i]())
	}
	f.own = nil
	return errors.Join(errs...)
}
