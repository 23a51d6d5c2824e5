package cuda

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/dl"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// library is the CUDA driver API. Functions, constants and structures are those
// of cuda.h, in the versions that CUDA 10 and all later ones have.
type library struct {
	driver string // "CUDA 12.2"

	initialise, driverGetVersion, getErrorName        dl.Func
	deviceGetCount, deviceGetName, deviceGetAttribute dl.Func
	ctxGetCurrent, ctxSetCurrent, ctxGetDevice        dl.Func
	ctxSynchronize                                    dl.Func
	primaryCtxRetain, primaryCtxRelease               dl.Func
	memGetInfo, memAlloc, memFree, memGetAddressRange dl.Func
	pointerGetAttribute                               dl.Func
	hostAlloc, freeHost, hostRegister, hostUnregister dl.Func
	streamCreate, streamDestroy                       dl.Func
	streamQuery, streamSynchronize, streamWaitEvent   dl.Func
	eventCreate, eventDestroy, eventRecord            dl.Func
	eventQuery, eventSynchronize                      dl.Func
	memcpyHtoD, memcpyDtoH, memcpyDtoD, memcpy3D      dl.Func
	memsetD8                                          dl.Func
	moduleLoadDataEx, moduleUnload, moduleGetFunction dl.Func
	launchKernel                                      dl.Func
}

var _ gpu.API = (*library)(nil)

// functions are those that the library must have, by name.
func (l *library) functions() map[string]*dl.Func {
	return map[string]*dl.Func{
		"cuInit":                   &l.initialise,
		"cuDriverGetVersion":       &l.driverGetVersion,
		"cuGetErrorName":           &l.getErrorName,
		"cuDeviceGetCount":         &l.deviceGetCount,
		"cuDeviceGetName":          &l.deviceGetName,
		"cuDeviceGetAttribute":     &l.deviceGetAttribute,
		"cuCtxGetCurrent":          &l.ctxGetCurrent,
		"cuCtxSetCurrent":          &l.ctxSetCurrent,
		"cuCtxGetDevice":           &l.ctxGetDevice,
		"cuCtxSynchronize":         &l.ctxSynchronize,
		"cuDevicePrimaryCtxRetain": &l.primaryCtxRetain,
		"cuMemGetInfo_v2":          &l.memGetInfo,
		"cuMemAlloc_v2":            &l.memAlloc,
		"cuMemFree_v2":             &l.memFree,
		"cuMemGetAddressRange_v2":  &l.memGetAddressRange,
		"cuPointerGetAttribute":    &l.pointerGetAttribute,
		"cuMemHostAlloc":           &l.hostAlloc,
		"cuMemFreeHost":            &l.freeHost,
		"cuMemHostRegister_v2":     &l.hostRegister,
		"cuMemHostUnregister":      &l.hostUnregister,
		"cuStreamCreate":           &l.streamCreate,
		"cuStreamDestroy_v2":       &l.streamDestroy,
		"cuStreamQuery":            &l.streamQuery,
		"cuStreamSynchronize":      &l.streamSynchronize,
		"cuStreamWaitEvent":        &l.streamWaitEvent,
		"cuEventCreate":            &l.eventCreate,
		"cuEventDestroy_v2":        &l.eventDestroy,
		"cuEventRecord":            &l.eventRecord,
		"cuEventQuery":             &l.eventQuery,
		"cuEventSynchronize":       &l.eventSynchronize,
		"cuMemcpyHtoDAsync_v2":     &l.memcpyHtoD,
		"cuMemcpyDtoHAsync_v2":     &l.memcpyDtoH,
		"cuMemcpyDtoDAsync_v2":     &l.memcpyDtoD,
		"cuMemcpy3DAsync_v2":       &l.memcpy3D,
		"cuMemsetD8Async":          &l.memsetD8,
		"cuModuleLoadDataEx":       &l.moduleLoadDataEx,
		"cuModuleUnload":           &l.moduleUnload,
		"cuModuleGetFunction":      &l.moduleGetFunction,
		"cuLaunchKernel":           &l.launchKernel,
	}
}

// bind finds the functions and initialises the driver.
func bind(found *dl.Library) (*library, error) {
	l := &library{}
	if err := found.Bind(l.functions()); err != nil {
		return nil, err
	}
	// The second version came with CUDA 11.
	var err error
	l.primaryCtxRelease, err = found.Func("cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease")
	if err != nil {
		return nil, err
	}
	if c := gpu.Code(l.initialise.Call1(0)); c != gpu.Success {
		return nil, l.unavailable("cuInit", c)
	}
	if v, c := l.driverGetVersion.Out(); c == 0 {
		l.driver = fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
	}
	return l, nil
}

func (l *library) count() (int, error) {
	n, c := l.deviceGetCount.Out()
	if c != 0 {
		return 0, l.unavailable("cuDeviceGetCount", gpu.Code(c))
	}
	return int(n), nil
}

// currentDevice returns the device of the current context.
func (l *library) currentDevice() (int, error) {
	n, c := l.ctxGetDevice.Out()
	if c != 0 {
		return 0, l.unavailable("cuCtxGetDevice", gpu.Code(c))
	}
	return int(n), nil
}

func (l *library) retain(ordinal int) (gpu.Context, gpu.Code) {
	context, c := l.primaryCtxRetain.Out(uintptr(ordinal))
	return gpu.Context(context), gpu.Code(c)
}

func (l *library) release(ordinal int) gpu.Code {
	return gpu.Code(l.primaryCtxRelease.Call1(uintptr(ordinal)))
}

// Attributes of devices.
const (
	computeCapabilityMajor = 75
	computeCapabilityMinor = 76
)

// properties describes a device. Devices are numbered as CUdevice handles are.
func (l *library) properties(ordinal int) (device.Properties, error) {
	var name [256]byte
	c := l.deviceGetName.Call3(uintptr(unsafe.Pointer(&name)), uintptr(len(name)-1), uintptr(ordinal))
	if c != 0 {
		return device.Properties{}, l.unavailable("cuDeviceGetName", gpu.Code(c))
	}
	var capability [2]uintptr
	for i, attribute := range []uintptr{computeCapabilityMajor, computeCapabilityMinor} {
		if capability[i], c = l.deviceGetAttribute.Out(attribute, uintptr(ordinal)); c != 0 {
			return device.Properties{}, l.unavailable("cuDeviceGetAttribute", gpu.Code(c))
		}
	}
	model, _, _ := bytes.Cut(name[:], []byte{0})
	return device.Properties{
		Kind:    kind,
		Ordinal: ordinal,
		Model:   string(model),
		Arch:    fmt.Sprintf("sm_%d%d", capability[0], capability[1]),
		Driver:  l.driver,
	}, nil
}

func (l *library) Current() (gpu.Context, gpu.Code) {
	context, c := l.ctxGetCurrent.Out()
	return gpu.Context(context), gpu.Code(c)
}

func (l *library) SetCurrent(context gpu.Context) gpu.Code {
	return gpu.Code(l.ctxSetCurrent.Call1(uintptr(context)))
}

func (l *library) MemoryInfo() (device.MemoryInfo, gpu.Code) {
	var free, total uintptr
	c := l.memGetInfo.Call2(uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return device.MemoryInfo{Free: int64(free), Total: int64(total)}, gpu.Code(c)
}

func (l *library) Allocate(bytes int64) (device.Ptr, gpu.Code) {
	p, c := l.memAlloc.Out(uintptr(bytes))
	return device.Ptr(p), gpu.Code(c)
}

func (l *library) Free(p device.Ptr) gpu.Code { return gpu.Code(l.memFree.Call1(uintptr(p))) }

// Attributes of pointers.
const (
	pointerContext    = 1
	pointerMemoryType = 2
)

// Types of memory. Managed memory counts as the device's.
const (
	memoryHost   = 1
	memoryDevice = 2
)

// memoryType returns 0 for what the driver doesn't know.
func (l *library) memoryType(p uintptr) (uintptr, gpu.Code) {
	t, c := l.pointerGetAttribute.Out(pointerMemoryType, p)
	if c == invalidValue {
		return 0, gpu.Success
	}
	return t, gpu.Code(c)
}

// owner returns the context in which memory was allocated or registered. Memory of pools
// and of virtual mappings has none, as has memory that the driver knows nothing of.
func (l *library) owner(p uintptr) (gpu.Context, gpu.Code) {
	c, result := l.pointerGetAttribute.Out(pointerContext, p)
	if result == invalidValue {
		return 0, gpu.Success
	}
	return gpu.Context(c), gpu.Code(result)
}

func (l *library) AddressRange(p device.Ptr) (device.Ptr, int64, gpu.Code) {
	t, c := l.memoryType(uintptr(p))
	if c != gpu.Success || t != memoryDevice {
		return 0, 0, c
	}
	owner, c := l.owner(uintptr(p))
	if c != gpu.Success {
		return 0, 0, c
	}
	mine, c := l.Current()
	if c != gpu.Success || owner != 0 && owner != mine {
		return 0, 0, c
	}
	var base, size uintptr
	result := l.memGetAddressRange.Call3(uintptr(unsafe.Pointer(&base)), uintptr(unsafe.Pointer(&size)), uintptr(p))
	if result == invalidValue || result == notFound {
		return 0, 0, gpu.Success // it has been freed
	}
	return device.Ptr(base), int64(size), gpu.Code(result)
}

// portable makes pinned memory pinned for all contexts.
const portable = 1

func (l *library) AllocateHost(bytes int64) (unsafe.Pointer, gpu.Code) {
	var p unsafe.Pointer
	c := l.hostAlloc.Call3(uintptr(unsafe.Pointer(&p)), uintptr(bytes), portable)
	return p, gpu.Code(c)
}

func (l *library) FreeHost(p unsafe.Pointer) gpu.Code {
	return gpu.Code(l.freeHost.Call1(uintptr(p)))
}

func (l *library) RegisterHost(p unsafe.Pointer, bytes int64) gpu.Code {
	return gpu.Code(l.hostRegister.Call3(uintptr(p), uintptr(bytes), portable))
}

func (l *library) UnregisterHost(p unsafe.Pointer) gpu.Code {
	return gpu.Code(l.hostUnregister.Call1(uintptr(p)))
}

// HostIsPinned asks twice. Where the device reaches all memory of the host, a driver may
// call it all memory of the host; the context is the one in which memory was allocated
// or registered.
func (l *library) HostIsPinned(p unsafe.Pointer) (bool, gpu.Code) {
	t, c := l.memoryType(uintptr(p))
	if c != gpu.Success || t != memoryHost {
		return false, c
	}
	owner, c := l.owner(uintptr(p))
	return owner != 0, c
}

const streamNonBlocking = 1

func (l *library) NewStream() (uintptr, gpu.Code) {
	s, c := l.streamCreate.Out(streamNonBlocking)
	return s, gpu.Code(c)
}

func (l *library) CloseStream(s uintptr) gpu.Code { return gpu.Code(l.streamDestroy.Call1(s)) }
func (l *library) QueryStream(s uintptr) gpu.Code { return gpu.Code(l.streamQuery.Call1(s)) }
func (l *library) SynchronizeStream(s uintptr) gpu.Code {
	return gpu.Code(l.streamSynchronize.Call1(s))
}

const eventDisableTiming = 2

func (l *library) NewEvent() (uintptr, gpu.Code) {
	e, c := l.eventCreate.Out(eventDisableTiming)
	return e, gpu.Code(c)
}

func (l *library) CloseEvent(e uintptr) gpu.Code { return gpu.Code(l.eventDestroy.Call1(e)) }
func (l *library) QueryEvent(e uintptr) gpu.Code { return gpu.Code(l.eventQuery.Call1(e)) }
func (l *library) SynchronizeEvent(e uintptr) gpu.Code {
	return gpu.Code(l.eventSynchronize.Call1(e))
}
func (l *library) Record(e, s uintptr) gpu.Code { return gpu.Code(l.eventRecord.Call2(e, s)) }
func (l *library) Wait(s, e uintptr) gpu.Code   { return gpu.Code(l.streamWaitEvent.Call3(s, e, 0)) }

func (l *library) CopyToDevice(dst device.Ptr, src unsafe.Pointer, bytes int64, s uintptr) gpu.Code {
	return gpu.Code(l.memcpyHtoD.Call4(uintptr(dst), uintptr(src), uintptr(bytes), s))
}

func (l *library) CopyToHost(dst unsafe.Pointer, src device.Ptr, bytes int64, s uintptr) gpu.Code {
	return gpu.Code(l.memcpyDtoH.Call4(uintptr(dst), uintptr(src), uintptr(bytes), s))
}

func (l *library) CopyOnDevice(dst, src device.Ptr, bytes int64, s uintptr) gpu.Code {
	return gpu.Code(l.memcpyDtoD.Call4(uintptr(dst), uintptr(src), uintptr(bytes), s))
}

// copySide is one half of a CUDA_MEMCPY3D.
type copySide struct {
	xInBytes, y, z, lod uintptr
	memoryType          uint32
	host                uintptr
	device              device.Ptr
	array, reserved     uintptr
	pitch, height       uintptr
}

// copy3D is a CUDA_MEMCPY3D.
type copy3D struct {
	src, dst                    copySide
	widthInBytes, height, depth uintptr
}

func sideOf(s gpu.Side) copySide {
	side := copySide{memoryType: memoryDevice, device: s.Ptr, pitch: uintptr(s.Pitch.Row), height: uintptr(s.Pitch.Rows)}
	if s.Host != nil {
		side.memoryType, side.host, side.device = memoryHost, uintptr(s.Host), 0
	}
	return side
}

var copies = sync.Pool{New: func() any { return new(copy3D) }}

func (l *library) CopyBox(dst, src gpu.Side, e device.Extent, s uintptr) gpu.Code {
	p := copies.Get().(*copy3D)
	*p = copy3D{src: sideOf(src), dst: sideOf(dst), widthInBytes: uintptr(e.Row), height: uintptr(e.Rows), depth: uintptr(e.Slices)}
	c := l.memcpy3D.Call2(uintptr(unsafe.Pointer(p)), s)
	*p = copy3D{}
	copies.Put(p)
	return gpu.Code(c)
}

func (l *library) Fill(p device.Ptr, value byte, bytes int64, s uintptr) gpu.Code {
	return gpu.Code(l.memsetD8.Call4(uintptr(p), uintptr(value), uintptr(bytes), s))
}

// Options of the compiler.
const (
	jitErrorLogBuffer          = 5
	jitErrorLogBufferSizeBytes = 6
)

func (l *library) LoadModule(image []byte) (uintptr, string, gpu.Code) {
	// A text ends with the NUL behind it; binaries tell their length.
	log := make([]byte, 8192)
	options := &[...]uint32{jitErrorLogBuffer, jitErrorLogBufferSizeBytes}
	values := &struct {
		buffer unsafe.Pointer
		size   uintptr
	}{unsafe.Pointer(unsafe.SliceData(log)), uintptr(len(log) - 1)}
	module, c := l.moduleLoadDataEx.Out(uintptr(unsafe.Pointer(unsafe.SliceData(image))),
		uintptr(len(options)), uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(values)))
	text, _, _ := bytes.Cut(log, []byte{0})
	return module, string(text), gpu.Code(c)
}

func (l *library) CloseModule(m uintptr) gpu.Code { return gpu.Code(l.moduleUnload.Call1(m)) }

func (l *library) Kernel(module uintptr, name string) (uintptr, gpu.Code) {
	text := append([]byte(name), 0)
	k, c := l.moduleGetFunction.Out(module, uintptr(unsafe.Pointer(unsafe.SliceData(text))))
	return k, gpu.Code(c)
}

// Words of the list by which a kernel is given its arguments.
const (
	paramEnd           = 0
	paramBufferPointer = 1
	paramBufferSize    = 2
)

// params is a list of arguments in one block.
type params struct {
	pointerKey uintptr
	pointer    unsafe.Pointer
	sizeKey    uintptr
	size       *uintptr
	end        uintptr

	bytes uintptr
}

var lists = sync.Pool{New: func() any {
	p := &params{pointerKey: paramBufferPointer, sizeKey: paramBufferSize, end: paramEnd}
	p.size = &p.bytes
	return p
}}

func (l *library) Launch(kernel uintptr, config gpu.Launch, s uintptr, args *device.Args) gpu.Code {
	buffer := args.Bytes()
	p := lists.Get().(*params)
	p.pointer, p.bytes = unsafe.Pointer(unsafe.SliceData(buffer)), uintptr(len(buffer))
	g, b := config.Grid, config.Block
	c := l.launchKernel.Call11(kernel,
		uintptr(g[0]), uintptr(g[1]), uintptr(g[2]), uintptr(b[0]), uintptr(b[1]), uintptr(b[2]),
		uintptr(config.SharedBytes), s, 0, uintptr(unsafe.Pointer(p)))
	p.pointer = nil
	lists.Put(p)
	return gpu.Code(c)
}

func (l *library) Synchronize() gpu.Code { return gpu.Code(l.ctxSynchronize.Call0()) }
