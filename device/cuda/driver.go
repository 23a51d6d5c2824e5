package cuda

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/dl"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
)

const kind = "cuda"

type driver struct{}

func init() { device.RegisterDriver(kind, driver{}) }

// soname is the name of the driver library, folders are those of containers where the
// loader may not look for it. Variables for tests.
var (
	soname  = "libcuda.so.1"
	folders = []string{"/usr/local/nvidia/lib64", "/usr/local/cuda/compat"}
)

// loaded is the driver library once it could be loaded.
var loaded struct {
	sync.Mutex
	lib *library
}

func load() (*library, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.lib == nil {
		names := []string{soname}
		found, err := dl.Open(append(names, dl.InFolders(names, folders...)...)...)
		if err != nil {
			return nil, err
		}
		if loaded.lib, err = bind(found); err != nil {
			return nil, err
		}
	}
	return loaded.lib, nil
}

// unavailable is the error of a call that finds out what there is.
func (l *library) unavailable(call string, c gpu.Code) error {
	m := l.Meaning(c)
	return fmt.Errorf("%w: %s: %w: %s (code %d)", device.ErrUnavailable, call, m.Err, m.Name, c)
}

func (driver) Devices() ([]device.Properties, error) {
	l, err := load()
	if err != nil {
		return nil, err
	}
	n, err := l.count()
	if err != nil {
		return nil, err
	}
	list := make([]device.Properties, n)
	for i := range list {
		if list[i], err = l.properties(i); err != nil {
			return nil, err
		}
	}
	return list, nil
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
	l, err := load()
	if err != nil {
		return nil, err
	}
	// The current context must not change on the way.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	context, c := l.Current()
	if c != gpu.Success {
		return nil, l.unavailable("cuCtxGetCurrent", c)
	}
	if context != 0 {
		ordinal, err := l.currentDevice()
		if err != nil {
			return nil, err
		}
		if wanted < 0 || wanted == ordinal {
			return l.space(ordinal, context, nil)
		}
	}
	if which == "current" {
		return nil, fmt.Errorf("context that is current on the thread: %w", device.ErrNotFound)
	}
	return l.primary(max(wanted, 0))
}

// primary returns a space in the primary context of a device.
func (l *library) primary(ordinal int) (device.Space, error) {
	n, err := l.count()
	if err != nil {
		return nil, err
	}
	if ordinal >= n {
		return nil, fmt.Errorf("%w: there are %d CUDA devices", device.ErrUnavailable, n)
	}
	context, c := l.retain(ordinal)
	if c != gpu.Success {
		return nil, l.unavailable("cuDevicePrimaryCtxRetain", c)
	}
	release := func() gpu.Code { return l.release(ordinal) }
	s, err := l.space(ordinal, context, release)
	if err != nil {
		release() // err is what there is to say
	}
	return s, err
}

func (l *library) space(ordinal int, context gpu.Context, release func() gpu.Code) (device.Space, error) {
	p, err := l.properties(ordinal)
	if err != nil {
		return nil, err
	}
	return gpu.New(gpu.Config{
		API:        l,
		Properties: p,
		Context:    context,
		Release:    release,
		BoxImage:   func() ([]byte, error) { return kernels.PTX(), nil },
	}), nil
}

// Adopt opens a space in a context of the solver's, given by its handle, a
// CUcontext. The context must outlive the space.
func Adopt(context uintptr) (device.Space, error) {
	s, err := adopt(gpu.Context(context))
	if err != nil {
		return nil, fmt.Errorf("open space in CUDA context %#x: %w", context, err)
	}
	return s, nil
}

func adopt(context gpu.Context) (device.Space, error) {
	if context == 0 {
		return nil, fmt.Errorf("%w: no context", device.ErrInvalid)
	}
	l, err := load()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, c := l.Current()
	if c != gpu.Success {
		return nil, l.unavailable("cuCtxGetCurrent", c)
	}
	if c := l.SetCurrent(context); c != gpu.Success {
		return nil, fmt.Errorf("%w: cuCtxSetCurrent: %s (code %d)", device.ErrInvalid, l.Meaning(c).Name, c)
	}
	ordinal, err := l.currentDevice()
	if l.SetCurrent(before) != gpu.Success {
		c = l.SetCurrent(before)
	}
	if c != gpu.Success {
		return nil, l.unavailable("cuCtxSetCurrent", c)
	}
	if err != nil {
		return nil, err
	}
	return l.space(ordinal, context, nil)
}
