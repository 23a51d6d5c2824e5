//go:build mumax

package mumax

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
)

const kind = "mumax"

func init() { device.RegisterDriver(kind, driver{}) }

// spaces are those that aren't closed, with their bindings.
var spaces sync.Map

// bindingsOf returns the bindings of an open space of this package.
func bindingsOf(space device.Space) (*bindings, error) {
	if b, ok := spaces.Load(space); ok {
		return b.(*bindings), nil
	}
	return nil, fmt.Errorf("%w: %s is no open space of package mumax", device.ErrInvalid, space.Name())
}

// Adopt opens a space in the context that is current on the calling thread;
// without one the error is device.ErrNotFound. The context must outlive the space.
func Adopt() (device.Space, error) { return device.Open(kind + ":current") }

// Context returns the context of a space of this package, 0 for other spaces.
func Context(space device.Space) cu.Context {
	b, err := bindingsOf(space)
	if err != nil {
		return 0
	}
	return b.context
}

// WrapMemory returns the solver's memory from p to the end of its allocation, as
// the space's WrapMemory does for a given size.
func WrapMemory(space device.Space, p cu.DevicePtr) (device.Memory, error) {
	base, bytes, err := space.AddressRange(device.Ptr(p))
	if err != nil {
		return nil, err
	}
	return space.WrapMemory(device.Ptr(p), bytes-int64(device.Ptr(p)-base))
}

// WrapStream returns a stream that the solver has made with cu. Where it has to
// wait for another stream of cu, or the other one for it, the device does so,
// while for streams given to the space's WrapStream the host waits. Close it
// before the solver destroys its stream.
func WrapStream(space device.Space, s cu.Stream) (device.Stream, error) {
	b, err := bindingsOf(space)
	if err != nil {
		return nil, fmt.Errorf("wrap stream of cu: %w", err)
	}
	wrapped, err := space.WrapStream(uintptr(s))
	if err != nil {
		return nil, err
	}
	q := b.queue(uintptr(s))
	b.claim(q, 1)
	return &stream{wrapped, b, q}, nil
}

// stream is one that the solver has made with cu. Its handle may be another's after
// it is closed.
type stream struct {
	device.Stream
	b *bindings
	q *queue
}

func (s *stream) Close() error {
	err := s.Stream.Close()
	if err == nil {
		s.b.claim(s.q, -1)
	}
	return err
}

type driver struct{}

// failed is the error of calls of cu that find out what there is.
func failed(what string, r cu.Result) error {
	if r == cu.SUCCESS {
		return nil
	}
	m := meaningOf(r)
	return fmt.Errorf("%w: %s: %w: %s (code %d)", device.ErrUnavailable, what, m.Err, m.Name, int(r))
}

func (driver) Devices() ([]device.Properties, error) {
	var list []device.Properties
	r := attempt(func() {
		cu.Init(0)
		for i := range cu.DeviceGetCount() {
			list = append(list, properties(cu.DeviceGet(i)))
		}
	})
	if r != cu.SUCCESS {
		return nil, failed("look for devices", r)
	}
	return list, nil
}

// properties describes a device; it panics as cu does.
func properties(d cu.Device) device.Properties {
	major, minor := d.ComputeCapability()
	version := cu.Version()
	return device.Properties{
		Kind:    kind,
		Ordinal: int(d),
		Model:   d.Name(),
		Arch:    fmt.Sprintf("sm_%d%d", major, minor),
		Driver:  fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10),
	}
}

// Open opens a space; see the package documentation for which.
func (driver) Open(which string) (device.Space, error) {
	wanted := -1
	if which != "" && which != "current" {
		n, err := strconv.Atoi(which)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: %q is neither a device's number nor \"current\"", device.ErrInvalid, which)
		}
		wanted = n
	}
	// The current context must not change on the way.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var current cu.Context
	var ordinal int
	r := attempt(func() {
		cu.Init(0)
		if current = cu.CtxGetCurrent(); current != 0 {
			ordinal = int(cu.CtxGetDevice())
		}
	})
	switch {
	case r != cu.SUCCESS:
		return nil, failed("current context", r)
	case current != 0 && (wanted < 0 || wanted == ordinal):
		return open(current, nil)
	case which == "current":
		return nil, fmt.Errorf("context that is current on the thread: %w", device.ErrNotFound)
	}
	r = onNewThread(func() { current = cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(max(wanted, 0))) })
	if r != cu.SUCCESS {
		return nil, failed("create context", r)
	}
	return open(current, func() gpu.Code {
		own := current // Destroy forgets it
		return gpu.Code(onNewThread(own.Destroy))
	})
}

// open returns a space in a context, which destroy ends if it isn't nil.
func open(ctx cu.Context, destroy func() gpu.Code) (device.Space, error) {
	b := newBindings(ctx)
	var p device.Properties
	r := within(ctx, func() {
		p = properties(cu.CtxGetDevice())
		b.word = cu.MemAlloc(1)
	})
	if r != cu.SUCCESS {
		if destroy != nil {
			destroy() // the error is what there is to say
		}
		return nil, failed("context", r)
	}
	var space *gpu.Space
	release := func() gpu.Code {
		// What has been given back is not again, if this is tried again.
		c := gpu.Code(within(ctx, b.word.Free))
		if c == gpu.Success {
			b.word = 0
		}
		if destroy != nil && (c == gpu.Success || meaningOf(cu.Result(c)).Sticky) {
			c = destroy()
		}
		if c == gpu.Success || meaningOf(cu.Result(c)).Sticky {
			spaces.Delete(space)
		}
		return c
	}
	space = gpu.New(gpu.Config{
		API:        b,
		Properties: p,
		Context:    gpu.Context(ctx),
		Release:    release,
		BoxImage:   func() ([]byte, error) { return kernels.PTX(), nil },
		// cu has no call for it that every toolkit links.
		RegistersNothing: true,
	})
	spaces.Store(space, b)
	return space, nil
}
