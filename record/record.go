package record

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// MaxDepth is how many records may lie within each other, the outermost one
// included. It bounds every recursion, that of a reader of hostile files too.
const MaxDepth = 64

// A Record is an immutable ordered map from keys to values. The zero Record is
// empty. Copies share their content and are cheap.
type Record struct {
	_ [0]func() // not comparable: use Equal
	c *content  // nil in an empty record
}

type content struct {
	keys     []string
	values   []Value
	index    map[string]int
	nesting  int
	longest  int  // bytes of the longest path
	reserved bool // some key or name, here or below, is one that AnyKeys allows only
}

// Len returns the number of keys.
func (r Record) Len() int {
	if r.c == nil {
		return 0
	}
	return len(r.c.keys)
}

// Keys returns the keys in order.
func (r Record) Keys() []string {
	if r.c == nil {
		return []string{}
	}
	return slices.Clone(r.c.keys)
}

// All iterates over the keys and values in order.
func (r Record) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if r.c == nil {
			return
		}
		for i, key := range r.c.keys {
			if !yield(key, r.c.values[i]) {
				return
			}
		}
	}
}

// Equal tells whether two records have the same keys with equal values, in any
// order of the keys. See [Value.Equal].
func (r Record) Equal(s Record) bool {
	if r.Len() != s.Len() {
		return false
	}
	if r.c == s.c {
		return true
	}
	for key, v := range r.All() {
		w, ok := s.at(key)
		if !ok || !v.Equal(w) {
			return false
		}
	}
	return true
}

// With returns a copy of the record in which a key has another value. The key keeps
// its place; a new one comes last. See [ValueOf] for the values; the error is that of
// [Builder.Build].
func (r Record) With(key string, value any) (Record, error) {
	b := Builder{anyKeys: r.c != nil && r.c.reserved}
	done := false
	for k, v := range r.All() {
		if k == key {
			b.Set(key, value)
			done = true
			continue
		}
		b.put(k, v)
	}
	if !done {
		b.Set(key, value)
	}
	return b.Build()
}

// Without returns a copy of the record that lacks the keys.
func (r Record) Without(keys ...string) Record {
	b := Builder{anyKeys: true}
	for k, v := range r.All() {
		if !slices.Contains(keys, k) {
			b.put(k, v)
		}
	}
	return b.record()
}

// Writable tells whether the record's keys, those of the records within and the
// names of lists are all valid by [CheckKey]. It is so for every record but those
// that were built with [AnyKeys]. The error matches [ErrKey] and names the path.
func (r Record) Writable() error {
	if path := r.reservedPath(); path != "" {
		name := path[strings.LastIndexByte(path, '/')+1:]
		return &BuildError{Path: path, Reason: strconv.Quote(name) + " is reserved for lists", Err: ErrKey}
	}
	return nil
}

// reservedPath returns the path of a key or name that only AnyKeys allows; empty if
// there is none.
func (r Record) reservedPath() string {
	if r.c == nil || !r.c.reserved {
		return ""
	}
	for key, v := range r.All() {
		if reserved(key) {
			return key
		}
		if path := v.reservedPath(); path != "" {
			return key + "/" + path
		}
	}
	return ""
}

func (r Record) depth() int {
	if r.c == nil {
		return 1
	}
	return r.c.nesting
}

// longest returns the bytes of the longest path within the record, from a slash on.
func (r Record) longest() int {
	if r.c == nil {
		return 0
	}
	return len("/") + r.c.longest
}

// at returns the value of a key.
func (r Record) at(key string) (Value, bool) {
	if r.c == nil {
		return Value{}, false
	}
	i, ok := r.c.index[key]
	if !ok {
		return Value{}, false
	}
	return r.c.values[i], true
}

// Has tells whether there is something at a path.
func (r Record) Has(path string) bool {
	_, err := r.Get(path)
	return err == nil
}

// Get returns the value at a path. A path names a key, or with '/' what lies
// deeper: keys of records, names of the entries of a list of records, and numbers
// from 1 in a list of arrays. So it is the path of the object in a run file. The
// error is a [*PathError], as those of the other accessors: it matches [ErrMissing],
// or [ErrType] where the path leads through a value that has no entries.
func (r Record) Get(path string) (Value, error) {
	at := Value{kind: Group, ref: r}
	for rest, more, from := path, true, 0; more; {
		var key string
		key, rest, more = strings.Cut(rest, "/")
		next, ok := Value{}, false
		switch at.kind {
		case Group:
			next, ok = at.record().at(key)
		case Records:
			var i int
			if i, ok = at.list().names[key]; ok {
				next = Value{kind: Group, ref: at.list().entries[i]}
			}
		case Arrays:
			var i int
			if i, ok = memberIndex(key, len(at.arrays())); ok {
				next = Value{kind: Numbers, ref: at.arrays()[i]}
			}
		default:
			return Value{}, &PathError{Path: path, At: path[:from-1], Want: "a record", Have: at.describe(), Err: ErrType}
		}
		if !ok {
			return Value{}, &PathError{Path: path, At: path[:from+len(key)], Err: ErrMissing}
		}
		at, from = next, from+len(key)+1
	}
	return at, nil
}

// memberIndex returns the index of the member of a list of n arrays that a key
// names.
func memberIndex(key string, n int) (int, bool) {
	number, err := strconv.Atoi(key)
	if err != nil || number < 1 || number > n || strconv.Itoa(number) != key {
		return 0, false
	}
	return number - 1, true
}

// get returns the value at a path if it is of the kind.
func (r Record) get(path string, kind Kind) (Value, error) {
	v, err := r.Get(path)
	if err != nil {
		return Value{}, err
	}
	if v.kind != kind {
		return Value{}, typeError(path, v, wanted[kind])
	}
	return v, nil
}

func typeError(path string, v Value, want string) error {
	return &PathError{Path: path, At: path, Want: want, Have: v.describe(), Err: ErrType}
}

var wanted = [...]string{
	Bool: "a boolean", Int: "an integer", Uint: "an integer", Float: "a float", Text: "a text",
	Texts: "a list of texts", Numbers: "an array", Arrays: "a list of arrays", Group: "a record",
	Records: "a list of records",
}

// Bool returns the boolean at a path.
func (r Record) Bool(path string) (bool, error) {
	v, err := r.get(path, Bool)
	return v.bits != 0, err
}

// Int returns the integer at a path. One beyond int64 is of the wrong type.
func (r Record) Int(path string) (int64, error) {
	v, err := r.get(path, Int)
	return int64(v.bits), err
}

// Uint returns the integer at a path. A negative one is of the wrong type.
func (r Record) Uint(path string) (uint64, error) {
	v, err := r.Get(path)
	if err != nil {
		return 0, err
	}
	if v.kind == Uint || v.kind == Int && int64(v.bits) >= 0 {
		return v.bits, nil
	}
	return 0, typeError(path, v, "an integer from 0")
}

// Float returns the float at a path. An integer is of the wrong type.
func (r Record) Float(path string) (float64, error) {
	v, err := r.get(path, Float)
	return v.float(), err
}

// Text returns the string at a path.
func (r Record) Text(path string) (string, error) {
	v, err := r.get(path, Text)
	if err != nil {
		return "", err
	}
	return v.text(), nil
}

// Texts returns the list of strings at a path.
func (r Record) Texts(path string) ([]string, error) {
	v, err := r.get(path, Texts)
	if err != nil {
		return nil, err
	}
	return append([]string{}, v.texts()...), nil
}

// Array returns the array at a path.
func (r Record) Array(path string) (Array, error) {
	v, err := r.get(path, Numbers)
	if err != nil {
		return Array{}, err
	}
	return v.array(), nil
}

// Arrays returns the list of arrays at a path.
func (r Record) Arrays(path string) ([]Array, error) {
	v, err := r.get(path, Arrays)
	if err != nil {
		return nil, err
	}
	return append([]Array{}, v.arrays()...), nil
}

// Record returns the record at a path.
func (r Record) Record(path string) (Record, error) {
	v, err := r.get(path, Group)
	if err != nil {
		return Record{}, err
	}
	return v.record(), nil
}

// Records returns the list of records at a path.
func (r Record) Records(path string) ([]Record, error) {
	v, err := r.get(path, Records)
	if err != nil {
		return nil, err
	}
	return append([]Record{}, v.list().entries...), nil
}

// Floats returns the array of float64 of rank 1 at a path.
func (r Record) Floats(path string) ([]float64, error) { return vectorAt[float64](r, path) }

// Ints returns the array of int64 of rank 1 at a path.
func (r Record) Ints(path string) ([]int64, error) { return vectorAt[int64](r, path) }

func vectorAt[T Element](r Record, path string) ([]T, error) {
	want := fmt.Sprintf("a vector of %v", ElementTypeOf[T]())
	v, err := r.Get(path)
	if err != nil {
		return nil, err
	}
	if v.kind != Numbers || v.array().Rank() != 1 || v.array().Type() != ElementTypeOf[T]() {
		return nil, typeError(path, v, want)
	}
	return Values[T](v.array())
}

// Default replaces the result of an accessor by a default where the record has
// nothing at the path: tolerance, err := record.Default(r.Float, "tolerance", 1e-6).
// A value of the wrong type stays an error.
func Default[T any](get func(path string) (T, error), path string, otherwise T) (T, error) {
	v, err := get(path)
	if errors.Is(err, ErrMissing) {
		return otherwise, nil
	}
	return v, err
}
