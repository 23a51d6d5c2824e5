package shm

import (
	"errors"
	"fmt"
)

const (
	// hugePage is the size of the pages that the kernel is asked for where the memory
	// is large enough: one fault instead of 512, and copies are faster.
	hugePage = 2 << 20

	// worthHuge is the size from which on memory takes whole huge pages.
	worthHuge = 256 << 10
)

// Memory is private memory whose first byte is the first of a page.
type Memory struct {
	// Bytes is the memory, zeroed at first. It is nil when it was freed.
	Bytes []byte

	mapping []byte
}

// Alloc returns n bytes. Pages cost nothing before they are touched.
func Alloc(n int) (*Memory, error) {
	if n < 0 {
		return nil, fmt.Errorf("allocate %d bytes", n)
	}
	if n == 0 {
		return &Memory{Bytes: []byte{}}, nil
	}
	m, err := alloc(n)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", n, err)
	}
	return m, nil
}

// Free gives the memory back. A second Free, or one of nil, does nothing.
func (m *Memory) Free() error {
	if m == nil {
		return nil
	}
	mapping := m.mapping
	m.Bytes, m.mapping = nil, nil
	if mapping == nil {
		return nil
	}
	if err := unmap(mapping); err != nil {
		return fmt.Errorf("free memory: %w", err)
	}
	return nil
}

// ErrUnsupported is in the chain of errors that say that this system has no
// memory that processes can share in the way asked for.
var ErrUnsupported = errors.ErrUnsupported
