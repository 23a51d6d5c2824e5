package field

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/pack"
)

// Kind is the element type of a field.
type Kind int

const (
	// Float64 is float64 in memory and on disk.
	Float64 Kind = iota + 1
	// Float32 is float32 in memory and float64 on disk.
	Float32
	// Complex128 is complex128 in memory and on disk: real, then imaginary
	// part.
	Complex128
)

// KindOf returns the kind of an element type.
func KindOf[T pack.Number]() Kind {
	var v T
	switch any(v).(type) {
	case float32:
		return Float32
	case complex128:
		return Complex128
	default:
		return Float64
	}
}

// DiskSize returns the bytes of one cell in a file, which are also those of
// one cell of a [pack.Source].
func (k Kind) DiskSize() int {
	if k == Complex128 {
		return 16
	}
	return 8
}

// String returns the name of the Go type.
func (k Kind) String() string {
	switch k {
	case Float64:
		return "float64"
	case Float32:
		return "float32"
	case Complex128:
		return "complex128"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}
