package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// MaxRank is the largest rank of an array. HDF5 has the same limit.
const MaxRank = 32

// An Element is a Go type that the elements of an [Array] can have.
type Element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// An ElementType names the type of an array's elements.
type ElementType uint8

// The element types.
const (
	Int8 ElementType = iota + 1
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
)

// elementTypes holds, per type, its name and its code in the canonical encoding:
// the class of the number and its size in bytes.
var elementTypes = [...]struct{ name, code string }{
	Int8: {"int8", "i1"}, Int16: {"int16", "i2"}, Int32: {"int32", "i4"}, Int64: {"int64", "i8"},
	Uint8: {"uint8", "u1"}, Uint16: {"uint16", "u2"}, Uint32: {"uint32", "u4"}, Uint64: {"uint64", "u8"},
	Float32: {"float32", "f4"}, Float64: {"float64", "f8"},
}

// String returns the name of the Go type: "int8" to "float64".
func (t ElementType) String() string {
	if t < Int8 || t > Float64 {
		return "ElementType(" + strconv.Itoa(int(t)) + ")"
	}
	return elementTypes[t].name
}

// Size returns the size of an element in bytes, 0 for a type that isn't one.
func (t ElementType) Size() int {
	if t < Int8 || t > Float64 {
		return 0
	}
	return int(elementTypes[t].code[1] - '0')
}

// ElementTypeOf returns the element type of T.
func ElementTypeOf[T Element]() ElementType { return elements[T](nil).elementType() }

// An Array is an immutable array of numbers of one type, of rank 1 to [MaxRank].
// The zero Array has element type float64 and the dimensions [0].
//
// Its values and dimensions are in C order: the last index is the fastest.
type Array struct {
	_    [0]func() // not comparable: use Equal
	data store     // nil in the zero Array
	dims []int
}

// NewArray returns an array of the values, which it copies. Without dims it has
// rank 1; otherwise the values are those of an array of these dimensions in C
// order, and their number must be the product of dims. The error matches
// [ErrValue].
func NewArray[T Element](values []T, dims ...int) (Array, error) {
	a, err := newArray(slices.Clone(values), slices.Clone(dims))
	if err != nil {
		return Array{}, fmt.Errorf("array: %w", err)
	}
	return a, nil
}

// newArray is NewArray without copies. The error is a *fault.
func newArray[T Element](values []T, dims []int) (Array, error) {
	if len(dims) == 0 {
		dims = []int{len(values)}
	}
	if len(dims) > MaxRank {
		return Array{}, faultf(ErrValue, "rank %d, the largest is %d", len(dims), MaxRank)
	}
	count, empty := 1, false
	for _, d := range dims {
		switch {
		case d < 0:
			return Array{}, faultf(ErrValue, "dimensions %v: one is negative", dims)
		case d == 0:
			empty = true
		case count > math.MaxInt/d:
			count = math.MaxInt
		default:
			count *= d
		}
	}
	if empty {
		count = 0
	}
	if count != len(values) {
		return Array{}, faultf(ErrValue, "%d values don't fill the dimensions %v", len(values), dims)
	}
	return Array{data: elements[T](values), dims: dims}, nil
}

// Type returns the type of the elements.
func (a Array) Type() ElementType { return a.store().elementType() }

// Dims returns a copy of the dimensions in C order.
func (a Array) Dims() []int {
	if a.dims == nil {
		return []int{0}
	}
	return slices.Clone(a.dims)
}

// Rank returns the number of dimensions.
func (a Array) Rank() int { return max(1, len(a.dims)) }

// Len returns the number of elements.
func (a Array) Len() int { return a.store().length() }

// Data returns a copy of the values in C order as the slice type of the elements:
// []int8 to []float64, for a type switch. Use [Values] where the type is known.
func (a Array) Data() any { return a.store().clone() }

// Values returns a copy of the array's values in C order. The array's elements
// must be of type T exactly; the error matches [ErrType].
func Values[T Element](a Array) ([]T, error) {
	s, ok := a.store().(elements[T])
	if !ok {
		return nil, fmt.Errorf("array values: %w: the elements are %v, not %v", ErrType, a.Type(), ElementTypeOf[T]())
	}
	return append(make([]T, 0, len(s)), s...), nil
}

// Float64s returns the values as float64 in C order, whatever their type. It
// refuses an integer that a float64 can't represent; the error matches [ErrType].
func (a Array) Float64s() ([]float64, error) { return a.store().float64s() }

// Equal tells whether two arrays have the same type, dimensions and values. A
// value equals another of the same bits, and every NaN every other NaN.
func (a Array) Equal(b Array) bool {
	return a.Type() == b.Type() && slices.Equal(a.shape(), b.shape()) && a.store().differ(b.store(), nil) == 0
}

// store returns the values, for the zero Array too.
func (a Array) store() store {
	if a.data == nil {
		return elements[float64](nil)
	}
	return a.data
}

// shape returns the dimensions, not a copy.
func (a Array) shape() []int {
	if a.dims == nil {
		return []int{0}
	}
	return a.dims
}

// index returns the indices of the element at a position in C order.
func (a Array) index(position int) []int {
	dims := a.shape()
	index := make([]int, len(dims))
	for i := len(dims) - 1; i >= 0; i-- {
		index[i] = position % dims[i]
		position /= dims[i]
	}
	return index
}

// A store holds the values of an array. Only elements implements it.
type store interface {
	elementType() ElementType
	length() int
	clone() any
	float64s() ([]float64, error)
	// appendBytes appends the canonical bytes of the values from..to.
	appendBytes(dst []byte, from, to int) []byte
	// appendNumber appends the value at i as text that parses back exactly.
	appendNumber(dst []byte, i int) []byte
	// differ counts the positions at which the values differ from those of a
	// store of the same type and length, and puts the first one into first
	// unless that is nil.
	differ(other store, first *int) int
}

type elements[T Element] []T

func (s elements[T]) elementType() ElementType {
	var zero T
	switch any(zero).(type) {
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	}
	return Float64
}

func (s elements[T]) length() int { return len(s) }

func (s elements[T]) clone() any { return append(make([]T, 0, len(s)), s...) }

func (s elements[T]) float64s() ([]float64, error) {
	out := make([]float64, len(s))
	for i, v := range s {
		out[i] = float64(v)
		exact := true
		// Values next to 2⁶³ and 2⁶⁴ round up to them, and can't be converted back.
		switch v := any(v).(type) {
		case int64:
			exact = out[i] < 1<<63 && int64(out[i]) == v
		case uint64:
			exact = out[i] < 1<<64 && uint64(out[i]) == v
		}
		if !exact {
			return nil, fmt.Errorf("array values: %w: float64 can't represent %v at position %d", ErrType, v, i)
		}
	}
	return out, nil
}

func (s elements[T]) appendBytes(dst []byte, from, to int) []byte {
	switch s := any(s[from:to]).(type) {
	case elements[float64]:
		for _, v := range s {
			dst = binary.LittleEndian.AppendUint64(dst, float64Bits(v))
		}
	case elements[float32]:
		for _, v := range s {
			dst = binary.LittleEndian.AppendUint32(dst, float32Bits(v))
		}
	default:
		// It can't fail: the elements have a fixed size.
		dst, _ = binary.Append(dst, binary.LittleEndian, s)
	}
	return dst
}

func (s elements[T]) appendNumber(dst []byte, i int) []byte {
	switch v := any(s[i]).(type) {
	case float64:
		return appendFloat(dst, v, 64)
	case float32:
		return appendFloat(dst, float64(v), 32)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	}
	return strconv.AppendInt(dst, int64(s[i]), 10)
}

func (s elements[T]) differ(other store, first *int) int {
	count := 0
	for i, v := range other.(elements[T]) {
		if sameNumber(s[i], v) {
			continue
		}
		if count == 0 && first != nil {
			*first = i
		}
		count++
	}
	return count
}

// sameNumber tells whether two values have the same bits or are both NaN.
func sameNumber[T Element](a, b T) bool {
	if a != b {
		return a != a && b != b
	}
	// Among equal values only the two zeros have different bits.
	return a != 0 || math.Signbit(float64(a)) == math.Signbit(float64(b))
}

// The bits that every NaN has in the canonical encoding.
const (
	nanBits64 = 0x7ff8000000000000
	nanBits32 = 0x7fc00000
)

func float64Bits(v float64) uint64 {
	if v != v {
		return nanBits64
	}
	return math.Float64bits(v)
}

func float32Bits(v float32) uint32 {
	if v != v {
		return nanBits32
	}
	return math.Float32bits(v)
}
