package h5

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Strings of variable length lie in global heaps, and in place of them there are
// references: length, address of the heap, number in it. The library follows these
// without a check of what it finds, so that a damaged heap crashes it or keeps it busy
// for ever. Here they are followed with checks. The layout is that of section III.E of
// the HDF5 file format specification, "Level 1E: Global Heap".

const (
	referenceSize  = 16
	heapHeader     = 16
	heapObject     = 16
	undefinedPlace = ^uint64(0)
)

// heap has the objects of a global heap by number.
type heap map[uint16][]byte

func (f *File) readVariable(o object, info Info) ([]string, error) {
	if f.writable {
		// Heaps are read from the disk.
		if err := f.change(f.flush); err != nil {
			return nil, err
		}
	}
	size, err := f.onDisk()
	if err != nil {
		return nil, err
	}
	refs := make([]byte, info.Elements()*referenceSize)
	if err := o.readReferences(refs); err != nil {
		return nil, err
	}
	// All strings can be one and the same place of the file.
	left := size + maxSparse
	list := make([]string, info.Elements())
	heaps := map[uint64]heap{}
	for i := range list {
		ref := refs[i*referenceSize:]
		length, at, n := binary.LittleEndian.Uint32(ref), binary.LittleEndian.Uint64(ref[4:]), binary.LittleEndian.Uint32(ref[12:])
		if at == 0 || at == undefinedPlace || length == 0 {
			continue
		}
		h, ok := heaps[at]
		if !ok {
			if h, err = f.readHeap(at, size, &left); err != nil {
				return nil, fmt.Errorf("string %d: %w", i, err)
			}
			heaps[at] = h
		}
		text, ok := h[uint16(n)]
		if !ok || n > 0xffff || int64(length) > int64(len(text)) {
			return nil, fmt.Errorf("string %d: %w: %d bytes of object %d of the heap at %d", i, ErrFormat, length, n, at)
		}
		if left -= int64(length); left < 0 {
			return nil, fmt.Errorf("%w: more text than the file of %d bytes can hold", ErrTooLarge, size)
		}
		// Some writers count the NUL behind a string.
		text, _, _ = bytes.Cut(text[:length], []byte{0})
		list[i] = string(text)
	}
	return list, nil
}

// readHeap reads the heap at a place of a file of the size.
func (f *File) readHeap(at uint64, size int64, left *int64) (heap, error) {
	bad := func(what string) error { return fmt.Errorf("%w: the heap at %d has %s", ErrFormat, at, what) }
	if at > uint64(size) {
		return nil, bad("no place in the file")
	}
	var head [heapHeader]byte
	if err := f.h.readAt(head[:], at); err != nil {
		return nil, err
	}
	if string(head[:5]) != "GCOL\x01" {
		return nil, bad("no signature")
	}
	length := binary.LittleEndian.Uint64(head[8:])
	if length < heapHeader || length > uint64(size)-at {
		return nil, bad("an impossible size")
	}
	if *left -= int64(length); *left < 0 {
		return nil, bad("no end")
	}
	b := make([]byte, length-heapHeader)
	if err := f.h.readAt(b, at+heapHeader); err != nil {
		return nil, err
	}
	h := heap{}
	for len(b) >= heapObject {
		n, length := binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint64(b[8:])
		if n == 0 { // what is free, up to the end
			break
		}
		b = b[heapObject:]
		if length > uint64(len(b)) {
			return nil, bad("an object that is too long")
		}
		if _, ok := h[n]; ok {
			return nil, bad("an object twice")
		}
		h[n] = b[:length:length]
		b = b[min(uint64(len(b)), (length+7)&^7):]
	}
	return h, nil
}
