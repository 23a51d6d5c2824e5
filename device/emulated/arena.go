package emulated

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

const (
	page = 4096
	// maxWindow is the largest range of addresses that a device reserves.
	maxWindow = 1 << (20 + strconv.IntSize/4) // 64 GiB, or 256 MiB on 32 bits
	// windowFactor is the size of the window in units of the capacity: the
	// more addresses there are, the later a freed one is given out again.
	windowFactor = 16
)

// arena gives out addresses of an inaccessible window, and knows the bytes
// behind each. The device's lock protects it.
type arena struct {
	base     uintptr
	size     uintptr
	capacity int64
	used     int64
	next     uintptr       // offset at which the search for free addresses goes on
	live     []*allocation // ascending addresses
	release  func() error
}

type allocation struct {
	base    device.Ptr
	size    int64
	bytes   []byte
	release func() error
}

func newArena(capacity int64) (*arena, error) {
	size := int64(maxWindow)
	if capacity < maxWindow/windowFactor {
		size = max(capacity*windowFactor, 64*page)
	}
	size = roundUp(size, page)
	base, release, err := reserve(size)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", size, err)
	}
	return &arena{base: base, size: uintptr(size), capacity: capacity, release: release}, nil
}

func (a *arena) close() error {
	var errs []error
	for _, al := range a.live {
		errs = append(errs, al.release())
	}
	a.live = nil
	return errors.Join(append(errs, a.release())...)
}

// allocate returns memory that is filled with NaNs: all bits are set, which is
// one for both float32 and float64.
func (a *arena) allocate(bytes int64) (*allocation, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("%w: size must be greater than 0", device.ErrInvalid)
	}
	if bytes > a.capacity-a.used {
		return nil, fmt.Errorf("%w: %d of %d bytes are free", device.ErrOutOfMemory, a.capacity-a.used, a.capacity)
	}
	offset, at, ok := a.place(uintptr(roundUp(bytes, page)))
	if !ok {
		return nil, fmt.Errorf("%w: addresses are fragmented", device.ErrOutOfMemory)
	}
	mem, release, err := backing(bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrOutOfMemory, err)
	}
	fill(mem, 0xff)
	al := &allocation{base: device.Ptr(a.base + offset), size: bytes, bytes: mem, release: release}
	a.live = slices.Insert(a.live, at, al)
	a.used += bytes
	a.next = offset + uintptr(roundUp(bytes, page)) + page
	return al, nil
}

// place finds free addresses, a page apart from what is allocated, so that an
// access past the end isn't one to the neighbour. It returns the place in the
// list as well.
func (a *arena) place(bytes uintptr) (offset uintptr, at int, ok bool) {
	for _, from := range []uintptr{max(a.next, page), page} {
		offset = from
		for at = 0; ; at++ {
			end := a.size - page
			if at < len(a.live) {
				end = uintptr(a.live[at].base) - a.base - page
			}
			if offset <= end && bytes <= end-offset {
				return offset, at, true
			}
			if at == len(a.live) {
				break
			}
			al := a.live[at]
			offset = max(offset, uintptr(al.base)-a.base+uintptr(roundUp(al.size, page))+page)
		}
	}
	return 0, 0, false
}

func (a *arena) free(al *allocation) error {
	i := slices.Index(a.live, al)
	if i < 0 {
		return device.ErrClosed
	}
	a.live = slices.Delete(a.live, i, i+1)
	a.used -= al.size
	al.bytes = nil
	return al.release()
}

// find returns the allocation that p points into.
func (a *arena) find(p device.Ptr) (*allocation, error) {
	i, ok := slices.BinarySearchFunc(a.live, p, func(al *allocation, p device.Ptr) int {
		switch {
		case p < al.base:
			return 1
		case p-al.base >= device.Ptr(al.size):
			return -1
		}
		return 0
	})
	if !ok {
		return nil, fmt.Errorf("%w: %#x is not allocated", device.ErrAddress, uintptr(p))
	}
	return a.live[i], nil
}

// bytes returns the memory behind a range of addresses.
func (a *arena) bytes(p device.Ptr, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	al, err := a.find(p)
	if err != nil {
		return nil, err
	}
	offset := int64(p - al.base)
	if n < 0 || n > al.size-offset {
		return nil, fmt.Errorf("%w: %d bytes at %#x reach past the end of an allocation of %d bytes at %#x",
			device.ErrAddress, n, uintptr(p), al.size, uintptr(al.base))
	}
	return al.bytes[offset : offset+n : offset+n], nil
}

func fill(b []byte, value byte) {
	if len(b) == 0 {
		return
	}
	b[0] = value
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// alignedBytes returns memory of the Go heap that is aligned for every
// element type.
func alignedBytes(n int64) []byte {
	words := make([]complex128, (n+63)/64*4)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 16*len(words))[:n:n]
}

func roundUp(n, unit int64) int64 {
	if n > math.MaxInt64-unit {
		return n / unit * unit
	}
	return (n + unit - 1) / unit * unit
}
