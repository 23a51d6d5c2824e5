package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The keys that mark in JSON what JSON has no type for. No key of a record contains
// '/'.
const (
	jsonFloat   = "/float"
	jsonArray   = "/array"
	jsonArrays  = "/arrays"
	jsonRecords = "/records"
)

// MarshalJSON returns the JSON view of the record: an object with the keys in order,
// from which [ParseJSON] makes an equal record. The package comment gives the view.
func (r Record) MarshalJSON() ([]byte, error) { return appendRecord(nil, r), nil }

// MarshalJSON returns the JSON view of the value; null for the zero Value.
func (v Value) MarshalJSON() ([]byte, error) { return appendJSON(nil, v), nil }

// MarshalJSON returns the JSON view of the array.
func (a Array) MarshalJSON() ([]byte, error) { return appendArray(nil, a), nil }

func appendJSON(dst []byte, v Value) []byte {
	switch v.kind {
	case Float:
		number := appendFloat(nil, v.float(), 64)
		if isWord(number) {
			return fmt.Appendf(dst, `{%q:%q}`, jsonFloat, number)
		}
		return append(dst, number...)
	case Text:
		return appendString(dst, v.text())
	case Texts:
		return appendList(dst, v.texts(), appendString)
	case Numbers:
		return appendArray(dst, v.array())
	case Arrays:
		dst = fmt.Appendf(dst, `{%q:`, jsonArrays)
		return append(appendList(dst, v.arrays(), appendArray), '}')
	case Group:
		return appendRecord(dst, v.record())
	case Records:
		dst = fmt.Appendf(dst, `{%q:`, jsonRecords)
		return append(appendList(dst, v.list().entries, appendRecord), '}')
	case Bool, Int, Uint:
		return append(dst, v.textLine(0)...)
	}
	return append(dst, "null"...)
}

func appendRecord(dst []byte, r Record) []byte {
	dst = append(dst, '{')
	first := true
	for key, v := range r.All() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, key), ':')
		dst = appendJSON(dst, v)
	}
	return append(dst, '}')
}

func appendArray(dst []byte, a Array) []byte {
	dst = fmt.Appendf(dst, `{%q:"%v","dims":`, jsonArray, a.Type())
	dst = appendList(dst, a.shape(), func(dst []byte, d int) []byte { return strconv.AppendInt(dst, int64(d), 10) })
	dst = append(dst, `,"values":[`...)
	s := a.store()
	for i := range s.length() {
		if i > 0 {
			dst = append(dst, ',')
		}
		at := len(dst)
		dst = s.appendNumber(dst, i)
		if isWord(dst[at:]) {
			dst = append(slices.Insert(dst, at, '"'), '"')
		}
	}
	return append(dst, "]}"...)
}

// isWord tells whether the text of a number is NaN, Infinity or -Infinity.
func isWord(number []byte) bool { return number[len(number)-1] > '9' }

func appendList[T any](dst []byte, list []T, appendOne func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOne(dst, v)
	}
	return append(dst, ']')
}

// appendString appends a JSON string. Unlike json.Marshal it leaves the characters
// that matter in HTML as they are.
func appendString(dst []byte, s string) []byte {
	buf := bytes.NewBuffer(dst)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string and a buffer can't fail
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// UnmarshalJSON makes the record that the JSON view shows; see [ParseJSON].
func (r *Record) UnmarshalJSON(data []byte) error {
	parsed, err := ParseJSON(data)
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// ParseJSON returns the record of which data is the JSON view. Spaces don't matter.
// Every number with a point or an exponent is a float, every other an integer; null
// is refused, as are all values, keys and names that a [Builder] refuses. The error
// matches [ErrJSON], or is that of the builder.
func ParseJSON(data []byte, options ...Option) (Record, error) {
	if !utf8.Valid(data) {
		return Record{}, fmt.Errorf("parse record: %w: not UTF-8", ErrJSON)
	}
	// Unmarshal gives the better error texts, and refuses what follows the value.
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return Record{}, fmt.Errorf("parse record: %w: %w", ErrJSON, err)
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(data)), options: options}
	p.dec.UseNumber()
	v, err := p.value("", 1)
	if err == nil && v.kind != Group {
		err = p.fail("", "it is not an object with the keys of a record")
	}
	if err != nil {
		return Record{}, fmt.Errorf("parse record: %w", err)
	}
	return v.record(), nil
}

// A parser reads the tokens of text that is valid JSON. What MaxDepth doesn't bound,
// marks within marks, Unmarshal's own limit of nesting has refused.
type parser struct {
	dec     *json.Decoder
	options []Option
}

func (p *parser) fail(path, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if path == "" {
		return fmt.Errorf("%w: %s", ErrJSON, reason)
	}
	return fmt.Errorf("entry %s: %w: %s", quoteKey(path), ErrJSON, reason)
}

// value parses the value at a path, which lies in depth-1 records.
func (p *parser) value(path string, depth int) (Value, error) {
	token, err := p.dec.Token()
	if err != nil {
		return Value{}, err
	}
	switch token := token.(type) {
	case bool:
		return valueOf(token)
	case string:
		return p.checked(path, token)
	case json.Number:
		return p.number(path, token.String())
	case json.Delim:
		if token == '[' {
			return p.texts(path)
		}
		return p.object(path, depth)
	}
	return Value{}, p.fail(path, "null")
}

// checked returns a Go value as a value, with the path in the error.
func (p *parser) checked(path string, v any) (Value, error) {
	value, err := valueOf(v)
	if err != nil {
		f := err.(*fault)
		return Value{}, &BuildError{Path: path, Value: f.value, Reason: f.reason, Err: f.err}
	}
	return value, nil
}

func (p *parser) number(path, number string) (Value, error) {
	if strings.ContainsAny(number, ".eE") {
		f, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return Value{}, p.fail(path, "%s is beyond the range of float64", shorten(number))
		}
		return floatValue(f), nil
	}
	if i, err := strconv.ParseInt(number, 10, 64); err == nil {
		return intValue(i), nil
	}
	u, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return Value{}, p.fail(path, "%s is beyond the range of int64 and uint64", shorten(number))
	}
	return uintValue(u), nil
}

// texts parses a list of strings after its bracket.
func (p *parser) texts(path string) (Value, error) {
	texts := []string{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return Value{}, err
		}
		s, ok := token.(string)
		if !ok {
			return Value{}, p.fail(path, "a list of what is no string; other lists are marked %q, %q or %q",
				jsonArray, jsonArrays, jsonRecords)
		}
		texts = append(texts, s)
	}
	if _, err := p.dec.Token(); err != nil {
		return Value{}, err
	}
	return p.checked(path, texts)
}

// object parses what begins with a brace, after it.
func (p *parser) object(path string, depth int) (Value, error) {
	if depth > MaxDepth {
		return Value{}, p.fail(path, "more than %d records within each other", MaxDepth)
	}
	b := NewBuilder(p.options...)
	if path != "" {
		b.prefix = path + "/"
	}
	for first := true; p.dec.More(); first = false {
		key, err := p.key()
		if err != nil {
			return Value{}, err
		}
		if first && strings.HasPrefix(key, "/") {
			v, err := p.marked(path, key, depth)
			if err == nil {
				err = p.close(path)
			}
			return v, err
		}
		v, err := p.value(b.prefix+key, depth+1)
		if err != nil {
			return Value{}, err
		}
		b.put(key, v)
	}
	r, err := b.Build()
	if err != nil {
		return Value{}, err
	}
	return Value{kind: Group, ref: r}, p.close(path)
}

// close reads the end of an object that must have no more keys.
func (p *parser) close(path string) error {
	token, err := p.dec.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('}') {
		return p.fail(path, "a key %q too many", shorten(fmt.Sprint(token)))
	}
	return nil
}

func (p *parser) key() (string, error) {
	token, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	return token.(string), nil // by the grammar of JSON
}

// marked parses the rest of an object whose first key says what it is.
func (p *parser) marked(path, mark string, depth int) (Value, error) {
	switch mark {
	case jsonFloat:
		token, err := p.dec.Token()
		if err != nil {
			return Value{}, err
		}
		f, ok := jsonSpecials[token]
		if !ok {
			return Value{}, p.fail(path, `%q must be "NaN", "Infinity" or "-Infinity"`, mark)
		}
		return floatValue(f), nil
	case jsonArray:
		return p.array(path)
	case jsonArrays:
		var arrays []Array
		err := p.each(path, depth, func(path string, v Value) error {
			if v.kind != Numbers {
				return p.fail(path, "it is %s, not an array", v.describe())
			}
			arrays = append(arrays, v.array())
			return nil
		})
		if err != nil {
			return Value{}, err
		}
		return valueOf(arrays)
	case jsonRecords:
		var records []Record
		err := p.each(path, depth, func(path string, v Value) error {
			if v.kind != Group {
				return p.fail(path, "it is %s, not a record", v.describe())
			}
			records = append(records, v.record())
			return nil
		})
		if err != nil {
			return Value{}, err
		}
		v, err := recordsValue(records, NewBuilder(p.options...).anyKeys)
		if err != nil {
			f := err.(*fault)
			return Value{}, &BuildError{Path: path, Value: f.value, Reason: f.reason, Err: f.err}
		}
		return v, nil
	}
	return Value{}, p.fail(path, "the mark %q is not known", shorten(mark))
}

// The floats that JSON has no numbers for.
var jsonSpecials = map[any]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}

// each parses a list and calls add with each of its values.
func (p *parser) each(path string, depth int, add func(path string, v Value) error) error {
	if err := p.open(path); err != nil {
		return err
	}
	for i := 1; p.dec.More(); i++ {
		at := path + "/" + strconv.Itoa(i)
		v, err := p.value(at, depth)
		if err != nil {
			return err
		}
		if err := add(at, v); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

// open reads the bracket of a list.
func (p *parser) open(path string) error {
	token, err := p.dec.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('[') {
		return p.fail(path, "where a list belongs there is none")
	}
	return nil
}

// array parses an array after its mark.
func (p *parser) array(path string) (Value, error) {
	token, err := p.dec.Token()
	if err != nil {
		return Value{}, err
	}
	parse, ok := arrayParsers[token]
	if !ok {
		return Value{}, p.fail(path, "%q is no element type", shorten(fmt.Sprint(token)))
	}
	if err := p.want(path, "dims"); err != nil {
		return Value{}, err
	}
	dims, err := readList(p, path, func(token any) (int, bool) {
		number, ok := token.(json.Number)
		d, err := strconv.Atoi(number.String())
		return d, ok && err == nil
	})
	if err != nil {
		return Value{}, err
	}
	if len(dims) == 0 {
		return Value{}, p.fail(path, "an array without dimensions")
	}
	if err := p.want(path, "values"); err != nil {
		return Value{}, err
	}
	a, err := parse(p, path, dims)
	if f, ok := err.(*fault); ok {
		return Value{}, &BuildError{Path: path, Value: f.value, Reason: f.reason, Err: f.err}
	}
	return Value{kind: Numbers, ref: a}, err
}

// want reads a key of an array.
func (p *parser) want(path, key string) error {
	token, err := p.dec.Token()
	if err != nil {
		return err
	}
	if token != key {
		return p.fail(path, "an array has the keys %q, \"dims\" and \"values\" in this order", jsonArray)
	}
	return nil
}

// readList parses a list of what one takes.
func readList[T any](p *parser, path string, one func(token any) (T, bool)) ([]T, error) {
	if err := p.open(path); err != nil {
		return nil, err
	}
	out := []T{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		v, ok := one(token)
		if !ok {
			return nil, p.fail(path, "element %d can't be %s", len(out), shorten(fmt.Sprint(token)))
		}
		out = append(out, v)
	}
	_, err := p.dec.Token()
	return out, err
}

// arrayParsers parse the values of an array, per element type.
var arrayParsers = map[any]func(p *parser, path string, dims []int) (Array, error){
	"int8": signed[int8], "int16": signed[int16], "int32": signed[int32], "int64": signed[int64],
	"uint8": unsigned[uint8], "uint16": unsigned[uint16], "uint32": unsigned[uint32], "uint64": unsigned[uint64],
	"float32": floating[float32], "float64": floating[float64],
}

func signed[T int8 | int16 | int32 | int64](p *parser, path string, dims []int) (Array, error) {
	bits := 8 * ElementTypeOf[T]().Size()
	return parseArray(p, path, dims, func(number string) (T, error) {
		v, err := strconv.ParseInt(number, 10, bits)
		return T(v), err
	})
}

func unsigned[T uint8 | uint16 | uint32 | uint64](p *parser, path string, dims []int) (Array, error) {
	bits := 8 * ElementTypeOf[T]().Size()
	return parseArray(p, path, dims, func(number string) (T, error) {
		v, err := strconv.ParseUint(number, 10, bits)
		return T(v), err
	})
}

func floating[T float32 | float64](p *parser, path string, dims []int) (Array, error) {
	bits := 8 * ElementTypeOf[T]().Size()
	return parseArray(p, path, dims, func(number string) (T, error) {
		v, err := strconv.ParseFloat(number, bits)
		return T(v), err
	})
}

func parseArray[T Element](p *parser, path string, dims []int, parse func(string) (T, error)) (Array, error) {
	isFloat := ElementTypeOf[T]() >= Float32
	values, err := readList(p, path, func(token any) (T, bool) {
		if f, ok := jsonSpecials[token]; ok {
			return T(f), isFloat
		}
		number, ok := token.(json.Number)
		if !ok {
			return 0, false
		}
		v, err := parse(number.String())
		return v, err == nil
	})
	if err != nil {
		return Array{}, err
	}
	return newArray(values, dims)
}
