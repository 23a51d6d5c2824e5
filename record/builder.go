package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Builder collects the entries of a [Record] in order. Its methods return the
// builder for chaining and don't fail: [Builder.Build] returns all the errors. The
// zero Builder is ready for use. A Builder must not be copied after its first use,
// nor used by several goroutines at once.
type Builder struct {
	anyKeys bool
	prefix  string // path of the record that is being built
	keys    []string
	values  []Value
	index   map[string]int
	lists   map[string]*pending
	errs    []error
}

// pending is a list of records that Entry adds to.
type pending struct {
	at      int // index of the key
	entries []Record
	names   map[string]bool
}

// An Option changes what a [Builder] or [ParseJSON] accepts.
type Option func(*Builder)

// AnyKeys accepts the keys and names "order" and those of digits too. It is for
// records that show what is in a file: there a list of arrays is read as a record
// with the keys "1", "2", …. [Record.Writable] reports whether such a record is one that
// may be made and written; package runfile writes others only where it read them. A builder
// without the option refuses them as a part.
func AnyKeys() Option { return func(b *Builder) { b.anyKeys = true } }

// NewBuilder returns an empty builder.
func NewBuilder(options ...Option) *Builder {
	b := new(Builder)
	for _, option := range options {
		option(b)
	}
	return b
}

// Of returns a record of alternating keys and values, for which see [ValueOf]. The
// error joins all the errors, as [Builder.Build] does.
func Of(keysAndValues ...any) (Record, error) {
	var b Builder
	for i := 0; i < len(keysAndValues); i += 2 {
		key, ok := keysAndValues[i].(string)
		switch {
		case !ok:
			b.fail("", fmt.Sprintf("%T", keysAndValues[i]), fmt.Sprintf("argument %d is no string", i+1), ErrKey)
		case i+1 == len(keysAndValues):
			b.fail(key, "", "the key has no value", ErrValue)
		default:
			b.Set(key, keysAndValues[i+1])
		}
	}
	return b.Build()
}

// Set adds an entry of any type that [ValueOf] takes.
func (b *Builder) Set(key string, value any) *Builder {
	var v Value
	var err error
	if entries, ok := value.([]Record); ok {
		v, err = recordsValue(entries, b.anyKeys)
	} else {
		v, err = valueOf(value)
	}
	if err != nil {
		return b.refuse(key, err)
	}
	return b.put(key, v)
}

// Bool adds a boolean.
func (b *Builder) Bool(key string, v bool) *Builder { return b.Set(key, v) }

// Int adds an integer.
func (b *Builder) Int(key string, v int64) *Builder { return b.put(key, intValue(v)) }

// Uint adds an integer. One that int64 can represent is the same value as from Int.
func (b *Builder) Uint(key string, v uint64) *Builder { return b.put(key, uintValue(v)) }

// Float adds a float.
func (b *Builder) Float(key string, v float64) *Builder { return b.put(key, floatValue(v)) }

// Text adds a string: UTF-8 without NUL.
func (b *Builder) Text(key, v string) *Builder { return b.Set(key, v) }

// Texts adds a list of strings, empty if there are none.
func (b *Builder) Texts(key string, v []string) *Builder { return b.Set(key, v) }

// Floats adds an array of float64; see [NewArray] for the dimensions.
func (b *Builder) Floats(key string, v []float64, dims ...int) *Builder {
	return PutArray(b, key, v, dims...)
}

// Ints adds an array of int64; see [NewArray] for the dimensions.
func (b *Builder) Ints(key string, v []int64, dims ...int) *Builder {
	return PutArray(b, key, v, dims...)
}

// PutArray adds an array of any element type; see [NewArray] for the dimensions.
func PutArray[T Element](b *Builder, key string, v []T, dims ...int) *Builder {
	a, err := newArray(slices.Clone(v), slices.Clone(dims))
	if err != nil {
		return b.refuse(key, err)
	}
	return b.Array(key, a)
}

// Array adds an array.
func (b *Builder) Array(key string, v Array) *Builder { return b.Set(key, v) }

// Arrays adds a list of arrays, empty if there are none.
func (b *Builder) Arrays(key string, v []Array) *Builder { return b.Set(key, v) }

// Record adds a record.
func (b *Builder) Record(key string, v Record) *Builder { return b.Set(key, v) }

// Records adds a list of records, empty if there are none. Each holds a text "name",
// unique within the list and valid as a key.
func (b *Builder) Records(key string, v []Record) *Builder { return b.Set(key, v) }

// Section adds the record that fill, which may be nil, builds.
func (b *Builder) Section(key string, fill func(*Builder)) *Builder {
	sub := Builder{anyKeys: b.anyKeys, prefix: b.prefix + key + "/"}
	if fill != nil {
		fill(&sub)
	}
	b.errs = append(b.errs, sub.errs...)
	return b.put(key, Value{kind: Group, ref: sub.record()})
}

// Entry appends a record to the list of records that the first Entry with the key
// adds. The record holds the text "name" and what fill, which may be nil, adds to it.
func (b *Builder) Entry(key, name string, fill func(*Builder)) *Builder {
	l := b.lists[key]
	if l == nil {
		l = &pending{at: len(b.keys), names: map[string]bool{}}
		// The value is replaced by the list when all its entries are known.
		if b.put(key, Value{kind: Records, ref: new(list)}); len(b.keys) == l.at {
			return b
		}
		if b.lists == nil {
			b.lists = map[string]*pending{}
		}
		b.lists[key] = l
	}
	if reason := keyFault(name, b.anyKeys); reason != "" {
		b.fail(key, strconv.Quote(shorten(name)), "as the name of an entry, "+reason, ErrKey)
		return b
	}
	if l.names[name] {
		b.fail(key, strconv.Quote(name), "the list has two entries of this name", ErrDuplicate)
		return b
	}
	l.names[name] = true
	sub := Builder{anyKeys: b.anyKeys, prefix: b.prefix + key + "/" + name + "/"}
	sub.Text("name", name)
	if fill != nil {
		fill(&sub)
	}
	b.errs = append(b.errs, sub.errs...)
	entry := sub.record()
	if b.fits(key+"/"+name, Value{kind: Group, ref: entry}) {
		l.entries = append(l.entries, entry)
	}
	return b
}

// Build returns the record. The error joins a [*BuildError] for every entry that was
// refused; the record is then empty. The builder may go on to build a longer one.
func (b *Builder) Build() (Record, error) {
	if err := errors.Join(b.errs...); err != nil {
		return Record{}, err
	}
	return b.record(), nil
}

// put adds an entry of a valid value.
func (b *Builder) put(key string, v Value) *Builder {
	if reason := keyFault(key, b.anyKeys); reason != "" {
		b.fail(key, "", reason, ErrKey)
		return b
	}
	if _, ok := b.index[key]; ok {
		b.fail(key, v.short(), "the record has the key already", ErrDuplicate)
		return b
	}
	if !b.fits(key, v) {
		return b
	}
	if b.index == nil {
		b.index = map[string]int{}
	}
	b.index[key] = len(b.keys)
	b.keys = append(b.keys, key)
	b.values = append(b.values, v)
	return b
}

// fits tells whether a value may be part of the record, and notes an error if not.
func (b *Builder) fits(key string, v Value) bool {
	if v.depth() >= MaxDepth {
		b.fail(key, "", fmt.Sprintf("more than %d records within each other", MaxDepth), ErrValue)
		return false
	}
	if n := len(key) + v.longest(); n > MaxPath {
		b.fail(key, "", "the longest path in it: "+tooLong(n), ErrKey)
		return false
	}
	if path := v.reservedPath(); path != "" && !b.anyKeys {
		name := path[strings.LastIndexByte(path, '/')+1:]
		b.fail(key+"/"+path, "", strconv.Quote(name)+" is reserved for lists", ErrKey)
		return false
	}
	return true
}

// record returns what was collected, without the entries that were refused.
func (b *Builder) record() Record {
	if len(b.keys) == 0 {
		return Record{}
	}
	c := &content{
		keys:   slices.Clone(b.keys),
		values: slices.Clone(b.values),
		index:  maps.Clone(b.index),
	}
	for _, l := range b.lists {
		// The names were checked one by one.
		c.values[l.at], _ = recordsValue(l.entries, true)
	}
	for i, v := range c.values {
		c.nesting = max(c.nesting, v.depth())
		c.longest = max(c.longest, len(c.keys[i])+v.longest())
		c.reserved = c.reserved || reserved(c.keys[i]) || v.reservedPath() != ""
	}
	c.nesting++
	return Record{c: c}
}

func (b *Builder) refuse(key string, err error) *Builder {
	f := err.(*fault)
	b.fail(key, f.value, f.reason, f.err)
	return b
}

func (b *Builder) fail(key, value, reason string, err error) {
	b.errs = append(b.errs, &BuildError{Path: shortenPath(b.prefix + key), Value: value, Reason: reason, Err: err})
}
