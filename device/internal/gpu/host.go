package gpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

// pins are the ranges of pinned host memory of all spaces of a kind: what one
// has pinned is pinned for the others too. Lookups don't lock.
type pins struct {
	mu     sync.Mutex
	ranges atomic.Pointer[[]*pin] // ascending addresses; replaced, not changed
}

// pin is a range of pinned host memory. What is registered may be Go's; it is
// held until it is freed.
type pin struct {
	low, high uintptr
	memory    []byte
	hold      runtime.Pinner
	ordinary  bool // the driver knows nothing of it
}

var allPins sync.Map // kind to *pins

func pinsOf(kind string) *pins {
	p, _ := allPins.LoadOrStore(kind, &pins{})
	return p.(*pins)
}

func newPin(mem []byte) *pin {
	low := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	return &pin{low: low, high: low + uintptr(len(mem)), memory: mem}
}

// find returns all ranges, and which one is the first that ends after an
// address.
func (p *pins) find(address uintptr) (ranges []*pin, at int) {
	r := p.ranges.Load()
	if r == nil {
		return nil, 0
	}
	at, _ = slices.BinarySearchFunc(*r, address, func(x *pin, a uintptr) int {
		if x.high <= a {
			return -1
		}
		return 1
	})
	return *r, at
}

// contains reports whether all of mem is in one range.
func (p *pins) contains(mem []byte) bool {
	low := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	ranges, i := p.find(low)
	return i < len(ranges) && !ranges[i].ordinary && ranges[i].low <= low && low+uintptr(len(mem)) <= ranges[i].high
}

// add adds a range, unless it overlaps with one that is there.
func (p *pins) add(m *pin) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ranges, i := p.find(m.low)
	if i < len(ranges) && ranges[i].low < m.high {
		return false
	}
	ranges = slices.Insert(slices.Clone(ranges), i, m)
	p.ranges.Store(&ranges)
	return true
}

// remove removes a range that has been added, if it is still there.
func (p *pins) remove(m *pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ranges, i := p.find(m.low)
	if i < len(ranges) && ranges[i] == m {
		ranges = slices.Delete(slices.Clone(ranges), i, i+1)
		p.ranges.Store(&ranges)
	}
}

type hostMemory struct {
	*object
	what string
	pin  *pin
}

// AllocateHost implements [device.Space].
func (s *Space) AllocateHost(bytes int64) (device.HostMemory, error) {
	m, err := s.allocateHost(bytes)
	if err != nil {
		return nil, s.fail(fmt.Sprintf("allocate %d bytes of host memory", bytes), err)
	}
	return m, nil
}

func (s *Space) allocateHost(bytes int64) (*hostMemory, error) {
	if bytes <= 0 {
		return nil, errSize
	}
	h := &hostMemory{what: "free host memory"}
	var p unsafe.Pointer
	h.object = s.newObject(hostKind, func(uintptr) Code {
		return s.unpin(h.pin, func() Code { return s.api.FreeHost(p) })
	})
	h.gone = h.unpinned
	err := h.create(func() (_ uintptr, c Code) {
		if p, c = s.api.AllocateHost(bytes); c == Success {
			h.pin = newPin(unsafe.Slice((*byte)(p), bytes))
			s.pinned.add(h.pin)
		}
		return uintptr(p), c
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// unpin frees a pinned range. It isn't known as pinned any more before the
// driver may give out its addresses again.
func (s *Space) unpin(m *pin, free func() Code) Code {
	s.pinned.remove(m)
	c := free()
	if c != Success {
		s.pinned.add(m)
	}
	return c
}

// unpinned ends what a pin does when its object is gone.
func (m *hostMemory) unpinned() {
	m.space.pinned.remove(m.pin)
	m.pin.hold.Unpin()
}

// RegisterHost implements [device.Space].
func (s *Space) RegisterHost(mem []byte) (device.HostMemory, error) {
	m, err := s.registerHost(mem)
	if err != nil {
		return nil, s.fail(fmt.Sprintf("register %d bytes of host memory", len(mem)), err)
	}
	return m, nil
}

func (s *Space) registerHost(mem []byte) (*hostMemory, error) {
	if len(mem) == 0 {
		return nil, errSize
	}
	// Adding first keeps two registrations of the same memory apart.
	h := &hostMemory{what: "end registration of host memory", pin: newPin(mem)}
	h.pin.ordinary = s.config.RegistersNothing
	if !s.pinned.add(h.pin) {
		return nil, fmt.Errorf("%w: pinned already", device.ErrInvalid)
	}
	p := unsafe.Pointer(unsafe.SliceData(mem))
	h.pin.hold.Pin(p)
	h.object = s.newObject(hostKind, func(uintptr) Code {
		return s.unpin(h.pin, func() Code { return s.api.UnregisterHost(p) })
	})
	h.gone = h.unpinned
	err := h.create(func() (uintptr, Code) {
		return uintptr(p), s.api.RegisterHost(p, int64(len(mem)))
	})
	if err != nil {
		h.unpinned()
		return nil, err
	}
	return h, nil
}

func (m *hostMemory) Bytes() []byte { return m.pin.memory }
func (m *hostMemory) Free() error   { return m.free(m.what) }

// isPinned reports whether host memory is pinned, by this package or by the
// solver itself.
func (s *Space) isPinned(mem []byte) (bool, Code) {
	if s.pinned.contains(mem) {
		return true, Success
	}
	return s.driverPinned(mem)
}

// HostIsPinned reports whether the driver says that host memory, which isn't empty, is
// pinned, whoever did that. It is for tests of the driver.
func (s *Space) HostIsPinned(mem []byte) (pinned bool, err error) {
	err = s.call(func() (c Code) {
		pinned, c = s.driverPinned(mem)
		return c
	})
	if err != nil {
		return false, s.fail(fmt.Sprintf("ask for %d bytes of host memory", len(mem)), err)
	}
	return pinned, nil
}

func (s *Space) driverPinned(mem []byte) (bool, Code) {
	first, c := s.api.HostIsPinned(unsafe.Pointer(&mem[0]))
	if c != Success || !first || len(mem) == 1 {
		return first, c
	}
	return s.api.HostIsPinned(unsafe.Pointer(&mem[len(mem)-1]))
}
