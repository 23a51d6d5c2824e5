package gpu

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
)

type memory struct {
	*object
	size int64
}

// Allocate implements [device.Space].
func (s *Space) Allocate(bytes int64) (device.Memory, error) {
	m, err := s.allocate(bytes)
	if err != nil {
		return nil, s.fail(fmt.Sprintf("allocate %d bytes", bytes), err)
	}
	return m, nil
}

func (s *Space) allocate(bytes int64) (*memory, error) {
	if bytes <= 0 {
		return nil, errSize
	}
	o := s.newObject(memoryKind, func(p uintptr) Code { return s.api.Free(device.Ptr(p)) })
	err := o.create(func() (uintptr, Code) {
		p, c := s.api.Allocate(bytes)
		return uintptr(p), c
	})
	if err != nil {
		return nil, err
	}
	return &memory{o, bytes}, nil
}

var errSize = fmt.Errorf("%w: size must be greater than 0", device.ErrInvalid)

// WrapMemory implements [device.Space].
func (s *Space) WrapMemory(p device.Ptr, bytes int64) (device.Memory, error) {
	m, err := s.wrapMemory(p, bytes)
	if err != nil {
		return nil, s.fail(fmt.Sprintf("wrap %d bytes at %#x", bytes, uintptr(p)), err)
	}
	return m, nil
}

func (s *Space) wrapMemory(p device.Ptr, bytes int64) (*memory, error) {
	if bytes <= 0 {
		return nil, errSize
	}
	base, size, err := s.addressRange(p)
	if err != nil {
		return nil, err
	}
	if bytes > size-int64(p-base) {
		return nil, fmt.Errorf("%w: %d bytes at %#x reach past the end of an allocation of %d bytes at %#x",
			device.ErrAddress, bytes, uintptr(p), size, uintptr(base))
	}
	return &memory{&object{space: s, kind: memoryKind, handle: uintptr(p)}, bytes}, nil
}

// AddressRange implements [device.Space].
func (s *Space) AddressRange(p device.Ptr) (device.Ptr, int64, error) {
	base, size, err := s.addressRange(p)
	if err != nil {
		return 0, 0, s.fail(fmt.Sprintf("address range of %#x", uintptr(p)), err)
	}
	return base, size, nil
}

func (s *Space) addressRange(p device.Ptr) (base device.Ptr, size int64, err error) {
	err = s.call(func() (c Code) {
		base, size, c = s.api.AddressRange(p)
		return c
	})
	if err == nil && size == 0 {
		err = fmt.Errorf("%w: %#x isn't memory of this context", device.ErrAddress, uintptr(p))
	}
	return base, size, err
}

func (m *memory) Ptr() device.Ptr { return device.Ptr(m.handle) }
func (m *memory) Size() int64     { return m.size }

func (m *memory) Free() error {
	return m.free(fmt.Sprintf("free %d bytes at %#x", m.size, m.handle))
}
