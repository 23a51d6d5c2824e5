package record

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Kind says what a [Value] is.
type Kind uint8

// The kinds of values, with the Go type that [Value.Any] returns.
const (
	Bool    Kind = iota + 1 // bool
	Int                     // int64
	Uint                    // uint64, an integer that int64 can't represent
	Float                   // float64
	Text                    // string
	Texts                   // []string, a list of strings
	Numbers                 // Array
	Arrays                  // []Array, a list of arrays
	Group                   // Record
	Records                 // []Record, a list of records
)

var kindNames = [...]string{
	Bool: "bool", Int: "int", Uint: "uint", Float: "float", Text: "text", Texts: "texts",
	Numbers: "array", Arrays: "arrays", Group: "record", Records: "records",
}

// String returns the kind's name: "bool", "int", "uint", "float", "text", "texts",
// "array", "arrays", "record" or "records".
func (k Kind) String() string {
	if k < Bool || k > Records {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// A Value is one immutable value of a record. The zero Value is none of them: its
// kind is 0, and no record holds it.
type Value struct {
	_    [0]func() // not comparable: use Equal
	kind Kind
	bits uint64 // of a bool, an int, a uint and a float
	ref  any    // of the rest: string, []string, Array, []Array, Record, *list
}

// A list is a list of records.
type list struct {
	entries []Record
	names   map[string]int
}

// inOrder iterates over the names and indices of the entries.
func (l *list) inOrder() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for i, entry := range l.entries {
			name, _ := entry.at("name")
			if !yield(name.text(), i) {
				return
			}
		}
	}
}

// ValueOf returns a Go value as the value of a record. It takes
//
//   - bool, every integer type, float32 and float64, string;
//   - []string, a list of strings;
//   - slices of an [Element] and of int (whose elements become int64), arrays of
//     rank 1, and Array;
//   - []Array, a list of arrays;
//   - Record, and []Record, a list of records that each hold a text "name", unique
//     within the list and valid as a key;
//   - Value.
//
// A string is UTF-8 without NUL. What ValueOf is given is copied. The error matches
// [ErrValue], [ErrKey] or [ErrDuplicate].
func ValueOf(v any) (Value, error) {
	val, err := valueOf(v)
	if err != nil {
		return Value{}, fmt.Errorf("record value: %w", err)
	}
	return val, nil
}

func valueOf(v any) (Value, error) {
	switch v := v.(type) {
	case Value:
		if v.kind == 0 {
			return Value{}, faultf(ErrValue, "the zero Value")
		}
		return v, nil
	case bool:
		if v {
			return Value{kind: Bool, bits: 1}, nil
		}
		return Value{kind: Bool}, nil
	case int:
		return intValue(int64(v)), nil
	case int8:
		return intValue(int64(v)), nil
	case int16:
		return intValue(int64(v)), nil
	case int32:
		return intValue(int64(v)), nil
	case int64:
		return intValue(v), nil
	case uint:
		return uintValue(uint64(v)), nil
	case uint8:
		return uintValue(uint64(v)), nil
	case uint16:
		return uintValue(uint64(v)), nil
	case uint32:
		return uintValue(uint64(v)), nil
	case uint64:
		return uintValue(v), nil
	case float32:
		return floatValue(float64(v)), nil
	case float64:
		return floatValue(v), nil
	case string:
		if err := checkText(v); err != nil {
			return Value{}, err
		}
		return Value{kind: Text, ref: v}, nil
	case []string:
		for i, s := range v {
			if err := checkText(s); err != nil {
				f := err.(*fault)
				f.reason = fmt.Sprintf("string %d of the list: %s", i+1, f.reason)
				return Value{}, f
			}
		}
		return Value{kind: Texts, ref: slices.Clone(v)}, nil
	case Array:
		return Value{kind: Numbers, ref: v}, nil
	case []Array:
		return Value{kind: Arrays, ref: slices.Clone(v)}, nil
	case Record:
		return Value{kind: Group, ref: v}, nil
	case []Record:
		return recordsValue(v, false)
	case []int:
		wide := make([]int64, len(v))
		for i, n := range v {
			wide[i] = int64(n)
		}
		return Value{kind: Numbers, ref: Array{data: elements[int64](wide), dims: []int{len(v)}}}, nil
	}
	if a, ok := arrayOf(v); ok {
		return Value{kind: Numbers, ref: a}, nil
	}
	return Value{}, faultf(ErrValue, "a record can't hold a %T", v)
}

// arrayOf returns a slice of an Element as an array of rank 1.
func arrayOf(v any) (Array, bool) {
	switch v := v.(type) {
	case []int8:
		return vector(v), true
	case []int16:
		return vector(v), true
	case []int32:
		return vector(v), true
	case []int64:
		return vector(v), true
	case []uint8:
		return vector(v), true
	case []uint16:
		return vector(v), true
	case []uint32:
		return vector(v), true
	case []uint64:
		return vector(v), true
	case []float32:
		return vector(v), true
	case []float64:
		return vector(v), true
	}
	return Array{}, false
}

func vector[T Element](v []T) Array {
	return Array{data: elements[T](slices.Clone(v)), dims: []int{len(v)}}
}

func intValue(v int64) Value { return Value{kind: Int, bits: uint64(v)} }

// uintValue returns an Int wherever it can, so that one number is one value.
func uintValue(v uint64) Value {
	if v <= math.MaxInt64 {
		return Value{kind: Int, bits: v}
	}
	return Value{kind: Uint, bits: v}
}

func floatValue(v float64) Value { return Value{kind: Float, bits: math.Float64bits(v)} }

// recordsValue returns a list of records after checking their names.
func recordsValue(entries []Record, anyKey bool) (Value, error) {
	l := &list{entries: slices.Clone(entries), names: make(map[string]int, len(entries))}
	for i, entry := range entries {
		v, ok := entry.at("name")
		if !ok || v.kind != Text {
			return Value{}, faultf(ErrValue, "record %d of the list has no text \"name\"", i+1)
		}
		name := v.text()
		if reason := keyFault(name, anyKey); reason != "" {
			return Value{}, faultf(ErrKey, "the name %q of record %d of the list: %s", shorten(name), i+1, reason)
		}
		if first, ok := l.names[name]; ok {
			return Value{}, faultf(ErrDuplicate, "records %d and %d of the list are both named %q", first+1, i+1, name)
		}
		l.names[name] = i
	}
	return Value{kind: Records, ref: l}, nil
}

func checkText(s string) error {
	switch {
	case !utf8.ValidString(s):
		return &fault{value: strconv.Quote(shorten(s)), reason: "the string is not UTF-8", err: ErrValue}
	case strings.ContainsRune(s, 0):
		return &fault{value: strconv.Quote(shorten(s)), reason: "the string contains NUL", err: ErrValue}
	}
	return nil
}

// Kind returns what the value is; 0 for the zero Value.
func (v Value) Kind() Kind { return v.kind }

// Any returns the value as the Go type of its kind: bool, int64, uint64, float64,
// string, []string, [Array], [][Array], [Record] or [][Record]; nil for the zero
// Value. Slices are copies. [ValueOf] is its inverse.
func (v Value) Any() any {
	switch v.kind {
	case Bool:
		return v.bits != 0
	case Int:
		return int64(v.bits)
	case Uint:
		return v.bits
	case Float:
		return v.float()
	case Text, Numbers, Group:
		return v.ref
	case Texts:
		return append([]string{}, v.texts()...)
	case Arrays:
		return append([]Array{}, v.arrays()...)
	case Records:
		return append([]Record{}, v.list().entries...)
	}
	return nil
}

// Equal tells whether two values have the same kind and content: numbers by their
// bits, with one NaN; records whatever the order of their keys; lists in order. Two
// values are equal exactly if their encodings and so their hashes are.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind {
		return false
	}
	switch v.kind {
	case Float:
		return sameNumber(v.float(), w.float())
	case Text:
		return v.text() == w.text()
	case Texts:
		return slices.Equal(v.texts(), w.texts())
	case Numbers:
		return v.array().Equal(w.array())
	case Arrays:
		return slices.EqualFunc(v.arrays(), w.arrays(), Array.Equal)
	case Group:
		return v.record().Equal(w.record())
	case Records:
		return slices.EqualFunc(v.list().entries, w.list().entries, Record.Equal)
	}
	return v.bits == w.bits
}

func (v Value) float() float64  { return math.Float64frombits(v.bits) }
func (v Value) text() string    { return v.ref.(string) }
func (v Value) texts() []string { return v.ref.([]string) }
func (v Value) array() Array    { return v.ref.(Array) }
func (v Value) arrays() []Array { return v.ref.([]Array) }
func (v Value) record() Record  { return v.ref.(Record) }
func (v Value) list() *list     { return v.ref.(*list) }

// depth returns how many records lie within each other in the value.
func (v Value) depth() int {
	depth := 0
	switch v.kind {
	case Group:
		depth = v.record().depth()
	case Records:
		for _, entry := range v.list().entries {
			depth = max(depth, entry.depth())
		}
	}
	return depth
}

// longest returns the bytes of the longest path below the value, its slash included.
func (v Value) longest() int {
	switch v.kind {
	case Group:
		return v.record().longest()
	case Arrays:
		if n := len(v.arrays()); n > 0 {
			return len("/") + len(strconv.Itoa(n))
		}
	case Records:
		longest := len("/" + orderKey)
		for name, i := range v.list().inOrder() {
			longest = max(longest, len("/")+len(name)+v.list().entries[i].longest())
		}
		return longest
	}
	return 0
}

// reservedPath is that of a record, below the value.
func (v Value) reservedPath() string {
	switch v.kind {
	case Group:
		return v.record().reservedPath()
	case Records:
		for name, i := range v.list().inOrder() {
			if reserved(name) {
				return name
			}
			if path := v.list().entries[i].reservedPath(); path != "" {
				return name + "/" + path
			}
		}
	}
	return ""
}
