package hip

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/dl"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// library is HIP's runtime API. Functions, constants and structures are those of
// hip_runtime_api.h; only what is the same in ROCm 5, 6 and 7 is used, but for
// the properties of a device.
type library struct {
	runtime string // "HIP 6.1.40092"

	getDeviceProperties dl.Func
	archAt              int // offset of the architecture's name

	initialise, runtimeGetVersion                      dl.Func
	getErrorName, getLastError                         dl.Func
	getDeviceCount, getDevice, setDevice               dl.Func
	deviceSynchronize                                  dl.Func
	memGetInfo, malloc, free, memGetAddressRange       dl.Func
	pointerGetAttributes                               dl.Func
	hostMalloc, hostFree, hostRegister, hostUnregister dl.Func
	streamCreate, streamDestroy                        dl.Func
	streamQuery, streamSynchronize, streamWaitEvent    dl.Func
	eventCreate, eventDestroy, eventRecord             dl.Func
	eventQuery, eventSynchronize                       dl.Func
	memcpy, memcpy3D, memset                           dl.Func
	moduleLoadData, moduleUnload, moduleGetFunction    dl.Func
	moduleLaunchKernel                                 dl.Func
}

var _ gpu.API = (*library)(nil)

// functions are those that the library must have, by name.
func (l *library) functions() map[string]*dl.Func {
	return map[string]*dl.Func{
		"hipInit":                  &l.initialise,
		"hipRuntimeGetVersion":     &l.runtimeGetVersion,
		"hipGetErrorName":          &l.getErrorName,
		"hipGetLastError":          &l.getLastError,
		"hipGetDeviceCount":        &l.getDeviceCount,
		"hipGetDevice":             &l.getDevice,
		"hipSetDevice":             &l.setDevice,
		"hipDeviceSynchronize":     &l.deviceSynchronize,
		"hipMemGetInfo":            &l.memGetInfo,
		"hipMalloc":                &l.malloc,
		"hipFree":                  &l.free,
		"hipMemGetAddressRange":    &l.memGetAddressRange,
		"hipPointerGetAttributes":  &l.pointerGetAttributes,
		"hipHostMalloc":            &l.hostMalloc,
		"hipHostFree":              &l.hostFree,
		"hipHostRegister":          &l.hostRegister,
		"hipHostUnregister":        &l.hostUnregister,
		"hipStreamCreateWithFlags": &l.streamCreate,
		"hipStreamDestroy":         &l.streamDestroy,
		"hipStreamQuery":           &l.streamQuery,
		"hipStreamSynchronize":     &l.streamSynchronize,
		"hipStreamWaitEvent":       &l.streamWaitEvent,
		"hipEventCreateWithFlags":  &l.eventCreate,
		"hipEventDestroy":          &l.eventDestroy,
		"hipEventRecord":           &l.eventRecord,
		"hipEventQuery":            &l.eventQuery,
		"hipEventSynchronize":      &l.eventSynchronize,
		"hipMemcpyAsync":           &l.memcpy,
		"hipMemcpy3DAsync":         &l.memcpy3D,
		"hipMemsetAsync":           &l.memset,
		"hipModuleLoadData":        &l.moduleLoadData,
		"hipModuleUnload":          &l.moduleUnload,
		"hipModuleGetFunction":     &l.moduleGetFunction,
		"hipModuleLaunchKernel":    &l.moduleLaunchKernel,
	}
}

// bind finds the functions and initialises the runtime.
func bind(found *dl.Library) (*library, error) {
	l := &library{}
	if err := found.Bind(l.functions()); err != nil {
		return nil, err
	}
	// Since ROCm 6 the plain name is that of an older structure.
	var err error
	l.archAt = archAtR0600
	if l.getDeviceProperties, err = found.Func("hipGetDevicePropertiesR0600"); err != nil {
		l.archAt = archAtR0000
		if l.getDeviceProperties, err = found.Func("hipGetDeviceProperties"); err != nil {
			return nil, err
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if c := l.result(l.initialise.Call1(0)); c != gpu.Success {
		return nil, l.unavailable("hipInit", c)
	}
	if v, c := l.runtimeGetVersion.Out(); l.result(c) == gpu.Success {
		l.runtime = fmt.Sprintf("HIP %d.%d.%d", v/10_000_000, v/100_000%100, v%100_000)
	}
	return l, nil
}

// result turns a result into a code. A failure also stays behind as the last
// error of the OS thread, where the solver would find it.
func (l *library) result(c int32) gpu.Code {
	if c != 0 {
		l.getLastError.Call0()
	}
	return gpu.Code(c)
}

func (l *library) count() (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n, c := l.getDeviceCount.Out()
	if c := l.result(c); c != gpu.Success {
		return 0, l.unavailable("hipGetDeviceCount", c)
	}
	return int(n), nil
}

// A hipDeviceProp_t begins with the device's name. The architecture's comes later
// in the structure of ROCm 6 and 7 than in that of ROCm 5.
const (
	propertiesBytes = 8192 // more than any version has
	nameBytes       = 256
	archAtR0000     = 396
	archAtR0600     = 1160
)

func (l *library) properties(ordinal int) (device.Properties, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Words, as the structure is aligned.
	words := make([]uint64, propertiesBytes/8)
	p := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), propertiesBytes)
	c := l.result(l.getDeviceProperties.Call2(uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(ordinal)))
	if c != gpu.Success {
		return device.Properties{}, l.unavailable("hipGetDeviceProperties", c)
	}
	text := func(at int) string {
		t, _, _ := bytes.Cut(p[at:at+nameBytes], []byte{0})
		return string(t)
	}
	return device.Properties{
		Kind:    kind,
		Ordinal: ordinal,
		Model:   text(0),
		Arch:    text(l.archAt),
		Driver:  l.runtime,
	}, nil
}

func (l *library) Current() (gpu.Context, gpu.Code) {
	n, c := l.getDevice.Out()
	return gpu.Context(n), l.result(c)
}

func (l *library) SetCurrent(device gpu.Context) gpu.Code {
	return l.result(l.setDevice.Call1(uintptr(device)))
}

func (l *library) MemoryInfo() (device.MemoryInfo, gpu.Code) {
	var free, total uintptr
	c := l.memGetInfo.Call2(uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return device.MemoryInfo{Free: int64(free), Total: int64(total)}, l.result(c)
}

func (l *library) Allocate(bytes int64) (device.Ptr, gpu.Code) {
	p, c := l.malloc.Out(uintptr(bytes))
	return device.Ptr(p), l.result(c)
}

func (l *library) Free(p device.Ptr) gpu.Code { return l.result(l.free.Call1(uintptr(p))) }

// pointerAttributes is a hipPointerAttribute_t. The numbers of the types of
// memory differ between ROCm 5 and 6, so the other members must do.
type pointerAttributes struct {
	memoryType      int32
	device          int32
	devicePointer   uintptr
	hostPointer     uintptr
	isManaged       int32
	allocationFlags uint32
	_               [8]uint64 // room for later versions
}

func (l *library) attributes(p uintptr) (pointerAttributes, gpu.Code) {
	a := new(pointerAttributes)
	c := l.result(l.pointerGetAttributes.Call2(uintptr(unsafe.Pointer(a)), p))
	if c == invalidValue {
		// That is how ROCm 5 says that it doesn't know the pointer. Since
		// ROCm 6 it is success, with no pointers.
		return pointerAttributes{}, gpu.Success
	}
	return *a, c
}

func (l *library) AddressRange(p device.Ptr) (device.Ptr, int64, gpu.Code) {
	a, c := l.attributes(uintptr(p))
	if c != gpu.Success {
		return 0, 0, c
	}
	mine, c := l.Current()
	host := a.hostPointer != 0 && a.isManaged == 0
	if c != gpu.Success || a.devicePointer == 0 || host || gpu.Context(a.device) != mine {
		return 0, 0, c
	}
	return l.rangeOf(uintptr(p))
}

// rangeOf returns what the runtime has allocated or registered around an address, or
// none.
func (l *library) rangeOf(p uintptr) (device.Ptr, int64, gpu.Code) {
	var base, size uintptr
	switch c := l.result(l.memGetAddressRange.Call3(uintptr(unsafe.Pointer(&base)), uintptr(unsafe.Pointer(&size)), p)); c {
	case invalidValue, invalidDevicePointer, notFound:
		return 0, 0, gpu.Success
	default:
		return device.Ptr(base), int64(size), c
	}
}

// portable makes pinned memory pinned for all devices.
const portable = 1

func (l *library) AllocateHost(bytes int64) (unsafe.Pointer, gpu.Code) {
	var p unsafe.Pointer
	c := l.hostMalloc.Call3(uintptr(unsafe.Pointer(&p)), uintptr(bytes), portable)
	return p, l.result(c)
}

func (l *library) FreeHost(p unsafe.Pointer) gpu.Code { return l.result(l.hostFree.Call1(uintptr(p))) }

func (l *library) RegisterHost(p unsafe.Pointer, bytes int64) gpu.Code {
	return l.result(l.hostRegister.Call3(uintptr(p), uintptr(bytes), portable))
}

func (l *library) UnregisterHost(p unsafe.Pointer) gpu.Code {
	return l.result(l.hostUnregister.Call1(uintptr(p)))
}

// HostIsPinned asks twice. Where the device reaches all memory of the host, a runtime may
// have attributes for what nobody has pinned; an allocation it has for none of that.
func (l *library) HostIsPinned(p unsafe.Pointer) (bool, gpu.Code) {
	a, c := l.attributes(uintptr(p))
	if c != gpu.Success || a.hostPointer == 0 || a.isManaged != 0 {
		return false, c
	}
	_, bytes, c := l.rangeOf(uintptr(p))
	return bytes > 0, c
}

const streamNonBlocking = 1

func (l *library) NewStream() (uintptr, gpu.Code) {
	s, c := l.streamCreate.Out(streamNonBlocking)
	return s, l.result(c)
}

func (l *library) CloseStream(s uintptr) gpu.Code { return l.result(l.streamDestroy.Call1(s)) }
func (l *library) QueryStream(s uintptr) gpu.Code { return l.result(l.streamQuery.Call1(s)) }
func (l *library) SynchronizeStream(s uintptr) gpu.Code {
	return l.result(l.streamSynchronize.Call1(s))
}

const eventDisableTiming = 2

func (l *library) NewEvent() (uintptr, gpu.Code) {
	e, c := l.eventCreate.Out(eventDisableTiming)
	return e, l.result(c)
}

func (l *library) CloseEvent(e uintptr) gpu.Code       { return l.result(l.eventDestroy.Call1(e)) }
func (l *library) QueryEvent(e uintptr) gpu.Code       { return l.result(l.eventQuery.Call1(e)) }
func (l *library) SynchronizeEvent(e uintptr) gpu.Code { return l.result(l.eventSynchronize.Call1(e)) }
func (l *library) Record(e, s uintptr) gpu.Code        { return l.result(l.eventRecord.Call2(e, s)) }
func (l *library) Wait(s, e uintptr) gpu.Code          { return l.result(l.streamWaitEvent.Call3(s, e, 0)) }

// Directions of copies.
const (
	hostToDevice   = 1
	deviceToHost   = 2
	deviceToDevice = 3
)

func (l *library) CopyToDevice(dst device.Ptr, src unsafe.Pointer, bytes int64, s uintptr) gpu.Code {
	return l.result(l.memcpy.Call5(uintptr(dst), uintptr(src), uintptr(bytes), hostToDevice, s))
}

func (l *library) CopyToHost(dst unsafe.Pointer, src device.Ptr, bytes int64, s uintptr) gpu.Code {
	return l.result(l.memcpy.Call5(uintptr(dst), uintptr(src), uintptr(bytes), deviceToHost, s))
}

func (l *library) CopyOnDevice(dst, src device.Ptr, bytes int64, s uintptr) gpu.Code {
	return l.result(l.memcpy.Call5(uintptr(dst), uintptr(src), uintptr(bytes), deviceToDevice, s))
}

// copySide is one half of a hipMemcpy3DParms. The length of a row, xSize, stays
// 0: otherwise the runtime compares the box with whole slices of the allocation,
// which the last slice need not be.
type copySide struct {
	array                uintptr
	x, y, z              uintptr
	ptr                  uintptr
	pitch, xSize, height uintptr
}

// copy3D is a hipMemcpy3DParms.
type copy3D struct {
	src, dst             copySide
	width, height, depth uintptr
	kind                 uintptr
}

func sideOf(s gpu.Side) copySide {
	return copySide{ptr: uintptr(s.Ptr) | uintptr(s.Host), pitch: uintptr(s.Pitch.Row), height: uintptr(s.Pitch.Rows)}
}

var copies = sync.Pool{New: func() any { return new(copy3D) }}

func (l *library) CopyBox(dst, src gpu.Side, e device.Extent, s uintptr) gpu.Code {
	kind := uintptr(deviceToDevice)
	switch {
	case src.Host != nil:
		kind = hostToDevice
	case dst.Host != nil:
		kind = deviceToHost
	}
	p := copies.Get().(*copy3D)
	*p = copy3D{sideOf(src), sideOf(dst), uintptr(e.Row), uintptr(e.Rows), uintptr(e.Slices), kind}
	c := l.memcpy3D.Call2(uintptr(unsafe.Pointer(p)), s)
	*p = copy3D{}
	copies.Put(p)
	return l.result(c)
}

func (l *library) Fill(p device.Ptr, value byte, bytes int64, s uintptr) gpu.Code {
	return l.result(l.memset.Call4(uintptr(p), uintptr(value), uintptr(bytes), s))
}

// magics are the first bytes of a code object, of a bundle, and of a compressed one.
var magics = [][]byte{[]byte("\x7fELF"), []byte("__CLANG_OFFLOAD_BUNDLE__"), []byte("CCOB")}

// LoadModule has no log of the runtime's, which ignores the options that ask for
// one. It isn't told the image's length either, so it gets none that is too short
// to be told from others.
func (l *library) LoadModule(image []byte) (uintptr, string, gpu.Code) {
	known := func(magic []byte) bool { return bytes.HasPrefix(image, magic) }
	if !slices.ContainsFunc(magics, known) {
		return 0, "neither a code object nor a bundle of them", invalidImage
	}
	module, c := l.moduleLoadData.Out(uintptr(unsafe.Pointer(unsafe.SliceData(image))))
	return module, "", l.result(c)
}

func (l *library) CloseModule(m uintptr) gpu.Code { return l.result(l.moduleUnload.Call1(m)) }

func (l *library) Kernel(module uintptr, name string) (uintptr, gpu.Code) {
	text := append([]byte(name), 0)
	k, c := l.moduleGetFunction.Out(module, uintptr(unsafe.Pointer(unsafe.SliceData(text))))
	return k, l.result(c)
}

// Words of the list by which a kernel is given its arguments.
const (
	paramBufferPointer = 1
	paramBufferSize    = 2
	paramEnd           = 3
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

// Launch refuses more threads along an axis than the runtime counts, which not all
// versions of it do.
func (l *library) Launch(kernel uintptr, config gpu.Launch, s uintptr, args *device.Args) gpu.Code {
	for a, blocks := range config.Grid {
		if uint64(blocks)*uint64(config.Block[a]) > math.MaxUint32 {
			return invalidConfiguration
		}
	}
	buffer := args.Bytes()
	p := lists.Get().(*params)
	p.pointer, p.bytes = unsafe.Pointer(unsafe.SliceData(buffer)), uintptr(len(buffer))
	g, b := config.Grid, config.Block
	c := l.moduleLaunchKernel.Call11(kernel,
		uintptr(g[0]), uintptr(g[1]), uintptr(g[2]), uintptr(b[0]), uintptr(b[1]), uintptr(b[2]),
		uintptr(config.SharedBytes), s, 0, uintptr(unsafe.Pointer(p)))
	p.pointer = nil
	lists.Put(p)
	return l.result(c)
}

func (l *library) Synchronize() gpu.Code { return l.result(l.deviceSynchronize.Call0()) }
