package emulated

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

// KernelFunc does what all threads of a launch do together. An error, or a
// panic, is a failure of queued work: the device is lost.
type KernelFunc func(c *Launch) error

var modules = struct {
	sync.Mutex
	byName map[string]map[string]KernelFunc
}{byName: map[string]map[string]KernelFunc{}}

const imagePrefix = "fieldstone emulated module "

// RegisterModule makes a set of kernels known under a name, for all devices.
// The name must be new.
func RegisterModule(name string, kernels map[string]KernelFunc) error {
	modules.Lock()
	defer modules.Unlock()
	if _, ok := modules.byName[name]; ok {
		return fmt.Errorf("register emulated module %q: %w: there is one already", name, device.ErrInvalid)
	}
	for k, f := range kernels {
		if f == nil {
			return fmt.Errorf("register emulated module %q: %w: kernel %q is nil", name, device.ErrInvalid, k)
		}
	}
	modules.byName[name] = maps.Clone(kernels)
	return nil
}

// Image returns the image of a registered module, which
// [device.Space.LoadModule] takes.
func Image(name string) []byte { return []byte(imagePrefix + name) }

// LoadModule implements [device.Space].
func (d *Device) LoadModule(image []byte) (device.Module, error) {
	const op = "load module"
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallLoadModule); err != nil {
		return nil, d.fail(op, err)
	}
	name, ok := strings.CutPrefix(string(image), imagePrefix)
	if !ok {
		return nil, d.fail(op, fmt.Errorf("%w: not an image of an emulated module", device.ErrInvalid))
	}
	modules.Lock()
	kernels, ok := modules.byName[name]
	modules.Unlock()
	if !ok {
		return nil, d.fail(op, fmt.Errorf("module %q: %w", name, device.ErrNotFound))
	}
	d.live.Modules++
	return &module{d: d, name: name, kernels: kernels}, nil
}

type module struct {
	d       *Device
	name    string
	kernels map[string]KernelFunc
	closed  bool
}

func (m *module) Kernel(name string) (device.Kernel, error) {
	op := fmt.Sprintf("find kernel %q", name)
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if err := m.d.enter(CallKernel); err != nil {
		return nil, m.d.fail(op, err)
	}
	if m.closed {
		return nil, m.d.fail(op, fmt.Errorf("%w: module", device.ErrClosed))
	}
	f, ok := m.kernels[name]
	if !ok {
		return nil, m.d.fail(op, fmt.Errorf("module %q: %w", m.name, device.ErrNotFound))
	}
	return &kernel{m, name, f}, nil
}

func (m *module) Close() error {
	const op = "close module"
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if err := m.d.enterFree(CallCloseModule); err != nil {
		return m.d.fail(op, err)
	}
	if m.closed {
		return m.d.fail(op, device.ErrClosed)
	}
	m.closed = true
	m.d.live.Modules--
	return nil
}

type kernel struct {
	m    *module
	name string
	f    KernelFunc
}

func (k *kernel) Name() string { return k.name }

func (s *stream) Launch(k device.Kernel, config device.LaunchConfig, args *device.Args) error {
	own, ok := k.(*kernel)
	if !ok || own.m.d != s.d {
		return s.d.fail("launch kernel", fmt.Errorf("%w: kernel is not one of this device", device.ErrInvalid))
	}
	op := fmt.Sprintf("launch kernel %q", own.name)
	l := &Launch{d: s.d, args: append([]byte(nil), args.Bytes()...)}
	for a := range 3 {
		l.Grid[a], l.Block[a] = max(config.Grid[a], 1), max(config.Block[a], 1)
	}
	l.SharedBytes = config.SharedBytes
	return s.queued(CallLaunch, op, func() error {
		if own.m.closed {
			return fmt.Errorf("%w: module", device.ErrClosed)
		}
		if min(config.Grid[0], config.Grid[1], config.Grid[2], config.Block[0], config.Block[1], config.Block[2], config.SharedBytes) < 0 {
			return fmt.Errorf("%w: negative launch configuration %+v", device.ErrInvalid, config)
		}
		s.d.transfers.Launches++
		return nil
	}, func() error {
		if err := own.f(l); err != nil {
			return err
		}
		return l.finish()
	})
}

// Launch is one launch of a kernel, as the kernel sees it. The methods that
// return arguments take them in order, as the compiler lays them out; types
// that don't fit what was passed make the launch fail.
type Launch struct {
	// Grid is the number of blocks, Block the number of threads of each.
	Grid, Block [3]int
	SharedBytes int

	d    *Device
	args []byte
	at   int
	err  error
}

// Ptr takes an argument that is a device address.
func (l *Launch) Ptr() device.Ptr { return device.Ptr(l.Uint64()) }

// Int64 takes an argument that is a 64-bit integer.
func (l *Launch) Int64() int64 { return int64(l.Uint64()) }

// Int32 takes an argument that is a 32-bit integer.
func (l *Launch) Int32() int32 { return int32(l.Uint32()) }

// Float64 takes an argument that is a double.
func (l *Launch) Float64() float64 { return math.Float64frombits(l.Uint64()) }

// Float32 takes an argument that is a float.
func (l *Launch) Float32() float32 { return math.Float32frombits(l.Uint32()) }

// Uint64 takes an argument that is an unsigned 64-bit integer.
func (l *Launch) Uint64() uint64 {
	if b := l.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uint32 takes an argument that is an unsigned 32-bit integer.
func (l *Launch) Uint32() uint32 {
	if b := l.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (l *Launch) take(size int) []byte {
	at := int(roundUp(int64(l.at), int64(size)))
	if at+size > len(l.args) {
		if l.err == nil {
			l.err = fmt.Errorf("%w: the kernel has more parameters than the %d bytes passed", device.ErrInvalid, len(l.args))
		}
		return nil
	}
	l.at = at + size
	return l.args[at:l.at]
}

// finish reports arguments that don't fit the kernel.
func (l *Launch) finish() error {
	if l.err != nil {
		return l.err
	}
	if l.at != len(l.args) {
		return fmt.Errorf("%w: %d bytes of arguments passed, the kernel takes %d", device.ErrInvalid, len(l.args), l.at)
	}
	return nil
}

// Threads returns the number of threads of the launch.
func (l *Launch) Threads() int {
	return l.Grid[0] * l.Grid[1] * l.Grid[2] * l.Block[0] * l.Block[1] * l.Block[2]
}

// Bytes returns the memory behind a range of device addresses, which must lie
// in one allocation. It must not be used after the kernel has returned.
func (l *Launch) Bytes(p device.Ptr, bytes int64) ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	return l.d.resolve(p, bytes)
}

// Element is a type of array elements in device memory.
type Element interface {
	int32 | int64 | uint32 | uint64 | float32 | float64 | complex128
}

// Slice is [Launch.Bytes] for n elements.
func Slice[T Element](l *Launch, p device.Ptr, n int64) ([]T, error) {
	var v T
	size := int64(unsafe.Sizeof(v))
	if n < 0 || n > math.MaxInt64/size {
		return nil, fmt.Errorf("%w: %d elements", device.ErrInvalid, n)
	}
	b, err := l.Bytes(p, n*size)
	if err != nil || n == 0 {
		return nil, err
	}
	first := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(first)%unsafe.Alignof(v) != 0 {
		return nil, fmt.Errorf("%w: %#x is not aligned", device.ErrAddress, uintptr(p))
	}
	return unsafe.Slice((*T)(first), int(n)), nil
}
