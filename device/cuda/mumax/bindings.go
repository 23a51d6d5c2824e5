//go:build mumax

package mumax

import (
	"crypto/sha256"
	"sync"
	"unsafe"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// bindings is package cu as a driver, with what cu lacks, for one space.
type bindings struct {
	context cu.Context
	// word is a byte of device memory for the work that streams wait by.
	word cu.DevicePtr

	mu      sync.Mutex
	queues  map[uintptr]*queue
	events  map[uintptr]*event
	newest  uintptr // handle of an event
	modules map[[sha256.Size]byte]cu.Module
	kernels map[entry]cu.Function
}

// entry is a kernel by its name.
type entry struct {
	module uintptr
	name   string
}

var _ gpu.API = (*bindings)(nil)

func newBindings(ctx cu.Context) *bindings {
	return &bindings{
		context: ctx,
		queues:  map[uintptr]*queue{0: {claims: 1}},
		events:  map[uintptr]*event{},
		modules: map[[sha256.Size]byte]cu.Module{},
		kernels: map[entry]cu.Function{},
	}
}

// try makes calls of cu.
func try(fn func()) gpu.Code { return gpu.Code(attempt(fn)) }

func (*bindings) Current() (current gpu.Context, c gpu.Code) {
	c = try(func() { current = gpu.Context(cu.CtxGetCurrent()) })
	return current, c
}

func (*bindings) SetCurrent(c gpu.Context) gpu.Code { return try(cu.Context(c).SetCurrent) }

func (*bindings) MemoryInfo() (info device.MemoryInfo, c gpu.Code) {
	c = try(func() { info.Free, info.Total = cu.MemGetInfo() })
	return info, c
}

func (*bindings) Allocate(bytes int64) (p device.Ptr, c gpu.Code) {
	c = try(func() { p = device.Ptr(cu.MemAlloc(bytes)) })
	return p, c
}

func (*bindings) Free(p device.Ptr) gpu.Code { return try(cu.DevicePtr(p).Free) }

func (*bindings) AddressRange(p device.Ptr) (base device.Ptr, bytes int64, c gpu.Code) {
	// Pinned host memory has a range too.
	t, r := cu.PointerGetAttributeMemoryType(cu.DevicePtr(p))
	if r == cu.SUCCESS && t == cu.MemoryTypeDevice {
		var b cu.DevicePtr
		bytes, b, r = addressRange(cu.DevicePtr(p))
		base = device.Ptr(b)
	}
	if r == cu.ERROR_INVALID_VALUE {
		r = cu.SUCCESS
	}
	return base, bytes, gpu.Code(r)
}

// addressRange returns the allocation around an address, or none.
func addressRange(p cu.DevicePtr) (bytes int64, base cu.DevicePtr, r cu.Result) {
	r = attempt(func() { bytes, base = cu.MemGetAddressRange(p) })
	if r == cu.ERROR_INVALID_VALUE || r == cu.ERROR_NOT_FOUND {
		return 0, 0, cu.SUCCESS
	}
	return bytes, base, r
}

func (*bindings) AllocateHost(bytes int64) (p unsafe.Pointer, c gpu.Code) {
	c = try(func() { p = cu.MemAllocHost(bytes) })
	return p, c
}

func (*bindings) FreeHost(p unsafe.Pointer) gpu.Code { return try(func() { cu.MemFreeHost(p) }) }

// RegisterHost does nothing, see open: copies are waited for as those of any memory
// that the driver wasn't told of.
func (*bindings) RegisterHost(unsafe.Pointer, int64) gpu.Code { return gpu.Success }

func (*bindings) UnregisterHost(unsafe.Pointer) gpu.Code { return gpu.Success }

// HostIsPinned asks twice. Where the device reaches all memory of the host, a driver may
// call it all memory of the host; an allocation it has for pinned memory only.
func (*bindings) HostIsPinned(p unsafe.Pointer) (bool, gpu.Code) {
	t, r := cu.PointerGetAttributeMemoryType(cu.DevicePtr(uintptr(p)))
	if r == cu.SUCCESS && t == cu.MemoryTypeHost {
		var bytes int64
		if bytes, _, r = addressRange(cu.DevicePtr(uintptr(p))); r == cu.SUCCESS {
			return bytes > 0, gpu.Success
		}
	}
	if r == cu.ERROR_INVALID_VALUE {
		r = cu.SUCCESS
	}
	return false, gpu.Code(r)
}

func (*bindings) CopyToDevice(dst device.Ptr, src unsafe.Pointer, bytes int64, stream uintptr) gpu.Code {
	return try(func() { cu.MemcpyHtoDAsync(cu.DevicePtr(dst), src, bytes, cu.Stream(stream)) })
}

func (*bindings) CopyToHost(dst unsafe.Pointer, src device.Ptr, bytes int64, stream uintptr) gpu.Code {
	return try(func() { cu.MemcpyDtoHAsync(dst, cu.DevicePtr(src), bytes, cu.Stream(stream)) })
}

func (*bindings) CopyOnDevice(dst, src device.Ptr, bytes int64, stream uintptr) gpu.Code {
	return try(func() { cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), bytes, cu.Stream(stream)) })
}

// CopyBox copies the longest contiguous parts of the box, one after the other.
func (*bindings) CopyBox(dst, src gpu.Side, e device.Extent, stream uintptr) gpu.Code {
	return try(func() {
		st := cu.Stream(stream)
		for to, from := range parts(dst.Pitch, src.Pitch, &e) {
			switch {
			case dst.Host != nil:
				cu.MemcpyDtoHAsync(unsafe.Add(dst.Host, to), cu.DevicePtr(src.Ptr.Add(from)), e.Row, st)
			case src.Host != nil:
				cu.MemcpyHtoDAsync(cu.DevicePtr(dst.Ptr.Add(to)), unsafe.Add(src.Host, from), e.Row, st)
			default:
				cu.MemcpyDtoDAsync(cu.DevicePtr(dst.Ptr.Add(to)), cu.DevicePtr(src.Ptr.Add(from)), e.Row, st)
			}
		}
	})
}

func (*bindings) Fill(p device.Ptr, value byte, bytes int64, stream uintptr) gpu.Code {
	return try(func() { cu.MemsetD8Async(cu.DevicePtr(p), value, bytes, cu.Stream(stream)) })
}

// LoadModule loads an image once: cu can't unload it. Its log stays unknown.
func (b *bindings) LoadModule(image []byte) (module uintptr, log string, c gpu.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := sha256.Sum256(image)
	m, ok := b.modules[sum]
	if !ok {
		if c := try(func() { m = cu.ModuleLoadData(string(image)) }); c != gpu.Success {
			return 0, "", c
		}
		b.modules[sum] = m
	}
	return uintptr(m), "", gpu.Success
}

func (*bindings) CloseModule(uintptr) gpu.Code { return gpu.Success }

// Kernel asks for each name once: cu keeps a copy of the name for each question.
func (b *bindings) Kernel(module uintptr, name string) (uintptr, gpu.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := entry{module, name}
	f, ok := b.kernels[e]
	if !ok {
		if c := try(func() { f = cu.Module(module).GetFunction(name) }); c != gpu.Success {
			return 0, c
		}
		b.kernels[e] = f
	}
	return uintptr(f), gpu.Success
}

func (*bindings) Synchronize() gpu.Code { return try(cu.CtxSynchronize) }
