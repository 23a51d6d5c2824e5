package hip

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/dl"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
)

const kind = "hip"

type driver struct{}

func init() { device.RegisterDriver(kind, driver{}) }

// names are those of ROCm 7, 6 and 5, and the one that development packages
// have; folders are where the loader may not look for them. Variables for tests.
var (
	names   = []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}
	folders = []string{"/opt/rocm/lib"}
)

// loaded is the library once it could be loaded.
var loaded struct {
	sync.Mutex
	lib *library
}

func load() (*library, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.lib == nil {
		found, err := dl.Open(slices.Concat(names, dl.InFolders(names, folders...))...)
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

// Targets returns the targets whose code objects run on a device of an architecture, as
// the Arch property has it: the one for the architecture alone, and then the one for its
// family, if it has one that compilers know by now. For "gfx1103" these are "gfx1103"
// and "gfx11-generic"; for "gfx90a:sramecc+:xnack-" it is "gfx90a" alone. A program
// that comes with code objects loads the first that it has. ROCm before 6.4 refuses
// those of families with an error that is [device.ErrUnsupported].
func Targets(arch string) []string { return kernels.Targets(arch) }

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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := load()
	if err != nil {
		return nil, err
	}
	n, err := l.count()
	if err != nil {
		return nil, err
	}
	if wanted < 0 {
		current, c := l.Current()
		if c != gpu.Success {
			return nil, l.unavailable("hipGetDevice", c)
		}
		wanted = int(current)
	}
	if wanted >= n {
		return nil, fmt.Errorf("%w: there are %d HIP devices", device.ErrUnavailable, n)
	}
	p, err := l.properties(wanted)
	if err != nil {
		return nil, err
	}
	return gpu.New(gpu.Config{
		API:        l,
		Properties: p,
		Context:    gpu.Context(wanted),
		BoxImage:   func() ([]byte, error) { return kernels.CodeObject(p.Arch) },
	}), nil
}
