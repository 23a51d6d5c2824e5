package devicetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
)

// Config tells what to check.
type Config struct {
	// Open returns a new space. The suite closes it.
	Open func() (device.Space, error)

	// Image holds a module with two kernels, for blocks of 256 threads along
	// x of a grid along x, which has a thread for each element or more:
	//
	//	pack3d(double *out, const double *in, int64 ox, oy, oz, nx, ny, nz, sy, sz)
	//	unpack3d(double *out, const double *in, int64 ox, oy, oz, nx, ny, nz, sy, sz)
	//
	// pack3d copies the box with its first element at (ox, oy, oz) and nx by
	// ny by nz elements, of the array in, whose rows are sy and whose slices
	// are sz elements apart, to the contiguous array out. unpack3d copies
	// from the contiguous array in to the box of the array out.
	//
	// Without an image, spaces of kind "cuda" and "hip" get one that comes
	// with this module.
	Image []byte

	// Faults tells to check, too, what follows when a kernel touches memory
	// that isn't there. The driver must survive that, and a space that is
	// opened afterwards must work.
	Faults bool
}

// image returns the image for a space.
func (config Config) image(space device.Space) ([]byte, error) {
	if config.Image != nil {
		return config.Image, nil
	}
	switch p := space.Properties(); p.Kind {
	case "cuda":
		return kernels.TestPTX(), nil
	case "hip":
		return kernels.TestCodeObject(p.Arch)
	default:
		return nil, fmt.Errorf("no image for kind %q", p.Kind)
	}
}

// Check is one promise of the interface.
type Check struct {
	// Name says what must hold.
	Name string
	run  func(c *checker)
	// fault says that the check loses the space.
	fault bool
}

// LosesTheSpace reports whether the check makes a kernel fail, after which not every
// driver works. [Run] does it only if [Config] has Faults.
func (k Check) LosesTheSpace() bool { return k.fault }

// Checks returns all checks of the suite.
func Checks() []Check {
	return slices.Concat(memoryChecks, copyChecks, orderChecks, kernelChecks, boxChecks, lifeChecks, faultChecks)
}

// Run runs all checks as subtests.
func Run(t *testing.T, config Config) {
	for _, c := range Checks() {
		if c.fault && !config.Faults {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(config); err != nil {
				t.Error(err)
			}
		})
	}
}

// RunPlanted tests the suite: each of the [Bugs] is planted into a space, and
// must be noticed by its check, in every one of so many rounds. That is so on
// a device which runs work as late as it may.
func RunPlanted(t *testing.T, config Config, rounds int) {
	open := config.Open
	for _, bug := range Bugs() {
		t.Run(string(bug), func(t *testing.T) {
			config.Open = func() (device.Space, error) {
				space, err := open()
				if err != nil {
					return nil, err
				}
				return Plant(space, bug), nil
			}
			i := slices.IndexFunc(Checks(), func(c Check) bool { return c.Name == bug.noticedBy() })
			if i < 0 {
				t.Fatalf("there is no check %q", bug.noticedBy())
			}
			for range rounds {
				if Checks()[i].Run(config) == nil {
					t.Fatalf("%q doesn't notice", bug.noticedBy())
				}
			}
		})
	}
}

// Run opens a space, does the check, and closes the space. The error says what
// doesn't hold.
func (k Check) Run(config Config) error {
	space, err := config.Open()
	if err != nil {
		return err
	}
	image, err := config.image(space)
	if err != nil {
		return errors.Join(err, space.Close())
	}
	return (&checker{space: space, image: image, open: config.Open}).whole(k)
}

// whole does a check and closes the space.
func (c *checker) whole(k Check) error {
	if err := c.run(k); err != nil {
		// What the check had not freed yet must not hide its error.
		_ = c.space.Close()
		return err
	}
	if c.closed {
		return nil
	}
	return c.space.Close()
}

// checker holds what a check works with. Its methods end the check when
// something doesn't hold.
type checker struct {
	space  device.Space
	image  []byte
	open   func() (device.Space, error)
	closed bool     // the check has closed the space itself
	undo   []func() // in order of creation
}

// stop is what the methods of checker panic with, to be caught in run.
type stop struct{ err error }

func (c *checker) run(k Check) (err error) {
	// A host that touches device memory is an error, not the end.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stop:
			err = r.err
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("the host touches address %#x: %v", r.Addr(), r)
		default:
			panic(r)
		}
	}()
	k.run(c)
	c.free()
	return nil
}

// another does something with a space that is opened for it.
func (c *checker) another(do func(other *checker)) {
	space, err := c.open()
	c.must(err)
	c.must((&checker{space: space, image: c.image, open: c.open}).whole(Check{run: do}))
}

// free frees what the check has made, the last thing first.
func (c *checker) free() {
	for len(c.undo) > 0 {
		last := len(c.undo) - 1
		undo := c.undo[last]
		c.undo = c.undo[:last]
		undo()
	}
}

func (c *checker) must(err error) {
	if err != nil {
		panic(stop{err})
	}
}

func (c *checker) failf(format string, args ...any) {
	panic(stop{fmt.Errorf(format, args...)})
}

// wantError checks that an error is one of a space, and that it wraps target.
func (c *checker) wantError(what string, err, target error) {
	if !errors.Is(err, target) {
		c.failf("%s: error %v, want one that is %q", what, err, target)
	}
	e, ok := errors.AsType[*device.Error](err)
	if !ok {
		c.failf("%s: error %v is of type %T, want *device.Error", what, err, err)
	}
	if e.Space != c.space.Name() || e.Op == "" {
		c.failf("%s: error names space %q and call %q, want space %q and the call", what, e.Space, e.Op, c.space.Name())
	}
}

// later frees something at the end of the check.
func (c *checker) later(free func() error) {
	c.undo = append(c.undo, func() { c.must(free()) })
}

func (c *checker) stream() device.Stream {
	s, err := c.space.NewStream()
	c.must(err)
	c.later(s.Close)
	return s
}

func (c *checker) event() device.Event {
	e, err := c.space.NewEvent()
	c.must(err)
	c.later(e.Close)
	return e
}

func (c *checker) memory(size int64) device.Ptr {
	m, err := c.space.Allocate(size)
	c.must(err)
	c.later(m.Free)
	return m.Ptr()
}

// pinned returns host memory filled with a pattern.
func (c *checker) pinned(size int, seed byte) []byte {
	m, err := c.space.AllocateHost(int64(size))
	c.must(err)
	c.later(m.Free)
	pattern(m.Bytes(), seed)
	return m.Bytes()
}

// pattern fills b so that every place and every seed differs from its
// neighbours.
func pattern(b []byte, seed byte) {
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for len(b) > 0 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], x)
		b = b[copy(b, word[:]):]
	}
}

// patterned returns ordinary memory with a pattern.
func patterned(size int, seed byte) []byte {
	b := make([]byte, size)
	pattern(b, seed)
	return b
}

// wantBytes compares and names the first difference.
func (c *checker) wantBytes(what string, got, want []byte) {
	if len(got) != len(want) {
		c.failf("%s: %d bytes, want %d", what, len(got), len(want))
	}
	if bytes.Equal(got, want) {
		return
	}
	for i := range got {
		if got[i] != want[i] {
			c.failf("%s: byte %d of %d is %#02x, want %#02x", what, i, len(got), got[i], want[i])
		}
	}
}
