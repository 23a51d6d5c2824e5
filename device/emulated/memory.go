package emulated

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

// Allocate implements [device.Space].
func (d *Device) Allocate(bytes int64) (device.Memory, error) {
	op := fmt.Sprintf("allocate %d bytes", bytes)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallAllocate); err != nil {
		return nil, d.fail(op, err)
	}
	al, err := d.arena.allocate(bytes)
	if err != nil {
		return nil, d.fail(op, err)
	}
	d.live.Memory++
	return &memory{d: d, al: al, ptr: al.base, size: bytes}, nil
}

// WrapMemory implements [device.Space].
func (d *Device) WrapMemory(p device.Ptr, bytes int64) (device.Memory, error) {
	op := fmt.Sprintf("wrap %d bytes at %#x", bytes, uintptr(p))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallWrapMemory); err != nil {
		return nil, d.fail(op, err)
	}
	if bytes <= 0 {
		return nil, d.fail(op, fmt.Errorf("%w: size must be greater than 0", device.ErrInvalid))
	}
	if _, err := d.arena.bytes(p, bytes); err != nil {
		return nil, d.fail(op, err)
	}
	return &memory{d: d, ptr: p, size: bytes}, nil
}

// AddressRange implements [device.Space].
func (d *Device) AddressRange(p device.Ptr) (device.Ptr, int64, error) {
	op := fmt.Sprintf("address range of %#x", uintptr(p))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallAddressRange); err != nil {
		return 0, 0, d.fail(op, err)
	}
	al, err := d.arena.find(p)
	if err != nil {
		return 0, 0, d.fail(op, err)
	}
	return al.base, al.size, nil
}

type memory struct {
	d     *Device
	al    *allocation // nil if wrapped
	ptr   device.Ptr
	size  int64
	freed bool
}

func (m *memory) Ptr() device.Ptr { return m.ptr }
func (m *memory) Size() int64     { return m.size }

func (m *memory) Free() error {
	op := fmt.Sprintf("free %d bytes at %#x", m.size, uintptr(m.ptr))
	// Not while a task has the bytes.
	m.d.running.Lock()
	defer m.d.running.Unlock()
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if err := m.d.enterFree(CallFree); err != nil {
		return m.d.fail(op, err)
	}
	if m.freed {
		return m.d.fail(op, device.ErrClosed)
	}
	m.freed = true
	if m.al == nil {
		return nil
	}
	m.d.live.Memory--
	if err := m.d.arena.free(m.al); err != nil {
		return m.d.fail(op, err)
	}
	return nil
}

// AllocateHost implements [device.Space]. The memory is Go's, so that the race
// detector watches it, and holds NaNs.
func (d *Device) AllocateHost(bytes int64) (device.HostMemory, error) {
	op := fmt.Sprintf("allocate %d bytes of host memory", bytes)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallAllocateHost); err != nil {
		return nil, d.fail(op, err)
	}
	if bytes <= 0 {
		return nil, d.fail(op, fmt.Errorf("%w: size must be greater than 0", device.ErrInvalid))
	}
	if bytes > d.arena.capacity {
		return nil, d.fail(op, fmt.Errorf("%w: more than %d bytes", device.ErrOutOfMemory, d.arena.capacity))
	}
	mem := alignedBytes(bytes)
	fill(mem, 0xff)
	return d.pin(mem, CallFreeHost), nil
}

// RegisterHost implements [device.Space].
func (d *Device) RegisterHost(mem []byte) (device.HostMemory, error) {
	op := fmt.Sprintf("register %d bytes of host memory", len(mem))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallRegisterHost); err != nil {
		return nil, d.fail(op, err)
	}
	if len(mem) == 0 {
		return nil, d.fail(op, fmt.Errorf("%w: no memory", device.ErrInvalid))
	}
	r := rangeOf(mem)
	for _, p := range d.pinned {
		if r.low < p.high && p.low < r.high {
			return nil, d.fail(op, fmt.Errorf("%w: pinned already", device.ErrInvalid))
		}
	}
	return d.pin(mem, CallUnregisterHost), nil
}

// pinnedRange is a range of host addresses.
type pinnedRange struct{ low, high uintptr }

func rangeOf(mem []byte) pinnedRange {
	low := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	return pinnedRange{low, low + uintptr(len(mem))}
}

func (d *Device) pin(mem []byte, free Call) device.HostMemory {
	d.pinned = append(d.pinned, rangeOf(mem))
	d.live.HostMemory++
	return &hostMemory{d: d, mem: mem, free: free}
}

func (d *Device) isPinned(mem []byte) bool {
	r := rangeOf(mem)
	return slices.ContainsFunc(d.pinned, func(p pinnedRange) bool {
		return p.low <= r.low && r.high <= p.high
	})
}

type hostMemory struct {
	d    *Device
	mem  []byte
	free Call
}

func (m *hostMemory) Bytes() []byte {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	return m.mem
}

func (m *hostMemory) Free() error {
	const op = "free host memory"
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if err := m.d.enterFree(m.free); err != nil {
		return m.d.fail(op, err)
	}
	if m.mem == nil {
		return m.d.fail(op, device.ErrClosed)
	}
	i := slices.Index(m.d.pinned, rangeOf(m.mem))
	m.d.pinned = slices.Delete(m.d.pinned, i, i+1)
	m.d.live.HostMemory--
	m.mem = nil
	return nil
}
