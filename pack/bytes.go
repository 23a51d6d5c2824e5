package pack

import (
	"fmt"
	"slices"
	"unsafe"
)

// Number is an element type that fields and files have.
type Number interface {
	float32 | float64 | complex128
}

// Bytes returns the memory of s as bytes, in the byte order of the host. It
// does not copy.
func Bytes[T Number](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// View returns the memory of b as elements, in the byte order of the host. It
// does not copy. The length must be a multiple of the element size and the
// address a multiple of its alignment.
func View[T Number](b []byte) ([]T, error) {
	var t T
	size := int(unsafe.Sizeof(t))
	if len(b)%size != 0 {
		return nil, fmt.Errorf("view bytes: %d bytes are not a multiple of %d", len(b), size)
	}
	if len(b) == 0 {
		return nil, nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if align := unsafe.Alignof(t); uintptr(p)%align != 0 {
		return nil, fmt.Errorf("view bytes: address is not a multiple of %d", align)
	}
	return unsafe.Slice((*T)(p), len(b)/size), nil
}

// Files are little-endian. Everything that a big-endian host does differently
// is below and behind the constant bigEndian: a packed chunk is swapped in
// place after it was filled, and read through a small buffer, because the
// caller's bytes stay as they are.

// wordSize is the size of the numbers that an element is made of.
func wordSize[T Number]() int {
	var t T
	return min(int(unsafe.Sizeof(t)), 8)
}

// swapCells reverses the bytes of each number in b.
func swapCells[T Number](b []byte) {
	word := wordSize[T]()
	for ; len(b) >= word; b = b[word:] {
		slices.Reverse(b[:word])
	}
}

// swapRows does that to rows of n cells that lie row cells apart.
func swapRows[T Number](b []byte, n, rows, row int) {
	var t T
	size := int(unsafe.Sizeof(t))
	for i := range rows {
		swapCells[T](b[i*row*size:][:n*size])
	}
}

// swapped calls fn with copies of consecutive pieces of rows of n bytes, row
// bytes apart, the bytes of whose numbers are reversed, and the number of the
// first cell of each.
func swapped[T Number](b []byte, n, rows, row int, fn func(piece []byte, cell int64) error) error {
	var t T
	size := int(unsafe.Sizeof(t))
	buffer := make([]byte, min(n, 4096*size))
	cell := int64(0)
	for i := range rows {
		for from := b[i*row:][:n]; len(from) > 0; {
			m := copy(buffer, from)
			swapCells[T](buffer[:m])
			if err := fn(buffer[:m], cell); err != nil {
				return err
			}
			from = from[m:]
			cell += int64(m / size)
		}
	}
	return nil
}
