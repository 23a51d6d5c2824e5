package h5

import (
	"fmt"
	"math"
	"math/bits"
)

// Element is what datasets and attributes consist of, strings apart. A bool is
// stored as a byte, 0 or 1, in an object that has the attribute "bool". Those of other
// writers are read too: enumerations of FALSE and TRUE, as h5py writes them, and bit
// fields of one byte, as Julia does.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// Type is the type of the elements of a dataset or attribute, whatever the order
// of its bytes in the file.
type Type int

// The types that can be read. Everything else in a file is Unknown.
const (
	Unknown Type = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	String
)

var typeNames = [...]string{
	"unknown", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
	"float32", "float64", "string",
}

// String gives the name of the Go type.
func (t Type) String() string {
	if t < 0 || int(t) >= len(typeNames) {
		return fmt.Sprintf("Type(%d)", int(t))
	}
	return typeNames[t]
}

// size is the size of an element in memory, 0 for strings.
func (t Type) size() int {
	switch t {
	case Bool, Int8, Uint8:
		return 1
	case Int16, Uint16:
		return 2
	case Int32, Uint32, Float32:
		return 4
	case Int64, Uint64, Float64:
		return 8
	}
	return 0
}

// typeOf gives the type that T is stored as.
func typeOf[T Element]() Type {
	var zero T
	switch any(zero).(type) {
	case bool:
		return Bool
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
	default:
		return Float64
	}
}

// integer reports whether t is a type of integers.
func (t Type) integer() bool { return t >= Int8 && t <= Uint64 }

// widens reports whether every value of t is a value of u, or integers of t may be, which
// reading has to check: others write bools as numbers, and integers for floats.
func (t Type) widens(u Type) bool {
	if t == u {
		return t != Unknown && t != String
	}
	signed := func(t Type) bool { return t >= Int8 && t <= Int64 }
	unsigned := func(t Type) bool { return t >= Uint8 && t <= Uint64 }
	switch {
	case u == Bool:
		return t.integer()
	case signed(t) && signed(u), unsigned(t) && unsigned(u), unsigned(t) && signed(u):
		return t.size() < u.size()
	case u == Float64:
		return t == Float32 || t.integer()
	case u == Float32:
		return (signed(t) || unsigned(t)) && t.size() <= 2
	}
	return false
}

// Kind is the kind of an object in a file, or of a link that is no object.
type Kind int

// The kinds. Calls follow soft links; nothing follows the other ones.
const (
	Other Kind = iota
	Group
	Dataset
	NamedType
	SoftLink
	ExternalLink
)

// String gives the kind in words.
func (k Kind) String() string {
	switch k {
	case Group:
		return "group"
	case Dataset:
		return "dataset"
	case NamedType:
		return "named type"
	case SoftLink:
		return "soft link"
	case ExternalLink:
		return "external link"
	}
	return "unknown object"
}

// Entry is a member of a group.
type Entry struct {
	Name string
	Kind Kind

	address uint64 // where the object is in the file
}

// Unlimited is the largest extent of an axis that grows without end.
const Unlimited = -1

// Info describes an object or an attribute.
type Info struct {
	Kind Kind // Dataset for attributes

	// The rest is that of datasets and attributes.

	Type  Type
	Class string // the library's name of the class, such as "compound"
	Null  bool   // there is no element at all, not even a scalar
	Shape []int  // nil for scalars
	Max   []int  // how far each axis can grow

	Chunk   []int // nil where the data is not in chunks
	Filters int   // such as deflate
	Storage int64 // bytes of the file that the data takes

	// AsMemory says that elements have the same bytes in the file as in memory: other
	// orders of bytes and other forms of numbers are converted when they are read.
	AsMemory bool

	// Of strings: whether they can have any length, and the length otherwise.
	Variable bool
	Length   int

	foreign, elsewhere, placed, ascii bool
	bytes                             int64 // of an element in the file
	padding                           int
}

// Elements is the number of elements.
func (i Info) Elements() int {
	if i.Null {
		return 0
	}
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// ElementBytes is the size of an element in the form in which the file has it.
func (i Info) ElementBytes() int64 { return i.bytes }

// Bytes is the size of all elements in the form in which the file has each, as far as an
// int64 takes it. Storage is more where chunks aren't full, and may be less where there are
// filters or elements that were never written.
func (i Info) Bytes() int64 {
	high, low := bits.Mul64(uint64(i.Elements()), uint64(i.bytes))
	if high != 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// Layout says how a dataset is created.
type Layout struct {
	Shape []int // at most 32 axes

	// Chunk is the shape of the pieces that the data is stored in; nil stores it
	// in one.
	Chunk []int

	// Extendible lets the first axis grow. It needs Chunk.
	Extendible bool

	// Early reserves the place in the file at once, and when the dataset is
	// extended, without writing to it: the content is undefined until it is
	// written, by WriteSlab or at the places that Pieces gives.
	Early bool

	// Deflate compresses chunks, 1 fast to 9 small. It excludes Early.
	Deflate int
}

// Piece is a part of a dataset that lies in the file in one piece, in C order.
type Piece struct {
	Start, Count []int // elements
	Offset       int64 // in the file
	Bytes        int64 // at least those of Count; chunks at the end are stored whole
}
