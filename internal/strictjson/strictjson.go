// Package strictjson reads JSON in which two readers can't see different values. It refuses
// what encoding/json passes over: a key twice in an object, invalid UTF-8, unpaired
// surrogates, a byte-order mark, and keys in another case. Nesting is bounded. The grammar is
// that of package jsontext; this package adds the bounds, the exact numbers, and errors that
// name the place as people write it: "domain.periodic[1]: line 8, column 22: ...".
//
// [Check] takes or refuses a text. [Parse] does that too and returns the text's [Value], whose
// methods decode it:
//
//	root, err := strictjson.Parse(text, 0)
//	members, err := root.Members()
//	n, err := members["count"].Int() // 40, 40.0 and 4e1 are the same integer
//
// Errors about a text are of type [*Error].
package strictjson

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fieldstone-io/fieldstone/internal/excerpt"
)

// MaxDepth bounds the nesting of arrays and objects.
const MaxDepth = 128

// Error is an error inside a JSON text.
type Error struct {
	Path   string // of the value, for example "domain.periodic[1]"; empty for the whole text
	Reason string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// Check reports whether a text is one JSON value by RFC 8259, and stricter: no byte-order
// mark, valid UTF-8, no unpaired surrogates, no key twice in an object, and at most
// [MaxDepth] levels.
func Check(text []byte) error { return check(text, 0) }

// Parse checks a text as [Check] does and returns its value. The text must have at most the
// given number of keys and strings; 0 stands for any number. The value refers to the text.
func Parse(text []byte, most int) (Value, error) {
	if err := check(text, most); err != nil {
		return Value{}, err
	}
	return Value{Raw: bytes.Trim(text, space)}, nil
}

const space = " \t\r\n"

func check(text []byte, most int) error {
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return &Error{Reason: "begins with a byte-order mark"}
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	for texts := 0; ; {
		token, err := d.ReadToken()
		if err != nil {
			return syntaxError(text, d, err)
		}
		end := int(d.InputOffset())
		switch token.Kind() {
		case jsontext.KindString:
			if texts++; most > 0 && texts > most {
				return fault(text, end, d, d.StackPointer(), fmt.Sprintf("more than %d keys and strings", most))
			}
		case jsontext.KindBeginArray, jsontext.KindBeginObject:
			if d.StackDepth() > MaxDepth {
				return fault(text, end-1, d, d.StackPointer(), fmt.Sprintf("nested deeper than %d levels", MaxDepth))
			}
		}
		if d.StackDepth() > 0 {
			continue
		}
		if rest := bytes.TrimLeft(text[end:], space); len(rest) > 0 {
			return fault(text, len(text)-len(rest), d, "", "text after the end of the JSON value")
		}
		return nil
	}
}

// fault is an error at an offset of the text, in the value that the pointer names and d is in.
func fault(text []byte, at int, d *jsontext.Decoder, pointer jsontext.Pointer, reason string) error {
	var path string
	level := 0
	for step := range pointer.Tokens() {
		level++
		if kind, _ := d.StackIndex(level); kind == jsontext.KindBeginArray {
			path += "[" + step + "]"
		} else {
			path = Join(path, step)
		}
	}
	before := text[:at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return &Error{Path: path, Reason: fmt.Sprintf("line %d, column %d: %s", line, column, reason)}
}

// Join returns the path of a member of the object at a path. A key that could be taken for
// the text around it is quoted.
func Join(path, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !(r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	})
	if key = shorten(key); !plain {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func shorten(s string) string { return excerpt.Of(s, 64, "...") }

// Value is a value in a text that [Check] has accepted. Raw is its text without white space
// around it; Path is where it is, for errors.
type Value struct {
	Path string
	Raw  []byte
}

// Null reports whether the value is null.
func (v Value) Null() bool { return v.kind() == jsontext.KindNull }

func (v Value) kind() jsontext.Kind { return jsontext.Value(v.Raw).Kind() }

// Fault returns an error about the value.
func (v Value) Fault(format string, args ...any) error {
	return &Error{Path: v.Path, Reason: fmt.Sprintf(format, args...)}
}

var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindFalse: "a boolean", jsontext.KindTrue: "a boolean", jsontext.KindString: "a string",
	jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}

func (v Value) want(what string) error { return v.Fault("want %s, got %s", what, kindNames[v.kind()]) }

// Members returns the values of an object by their keys.
func (v Value) Members() (map[string]Value, error) {
	if v.kind() != jsontext.KindBeginObject {
		return nil, v.want("an object")
	}
	members := make(map[string]Value)
	return members, v.each(func(key string, raw []byte) {
		members[key] = Value{Path: Join(v.Path, key), Raw: raw}
	})
}

// Elements returns the values of an array. The error for another value says that it should
// be what.
func (v Value) Elements(what string) ([]Value, error) {
	if v.kind() != jsontext.KindBeginArray {
		return nil, v.want(what)
	}
	elements := []Value{}
	return elements, v.each(func(_ string, raw []byte) {
		elements = append(elements, Value{Path: fmt.Sprintf("%s[%d]", v.Path, len(elements)), Raw: raw})
	})
}

// each calls visit with the members of an object or the elements of an array.
func (v Value) each(visit func(key string, raw []byte)) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(v.Raw), jsontext.AllowDuplicateNames(true)) // the text has been checked
	begin, err := d.ReadToken()
	for err == nil && d.PeekKind() != jsontext.KindEndObject && d.PeekKind() != jsontext.KindEndArray {
		var key string
		if begin.Kind() == jsontext.KindBeginObject {
			var token jsontext.Token
			if token, err = d.ReadToken(); err != nil {
				break
			}
			key = token.String()
		}
		var raw jsontext.Value
		if raw, err = d.ReadValue(); err == nil {
			// The decoder's slice is good until its next call only.
			end := int(d.InputOffset())
			visit(key, v.Raw[end-len(raw):end])
		}
	}
	return err
}

// String decodes a string.
func (v Value) String() (string, error) {
	if v.kind() != jsontext.KindString {
		return "", v.want("a string")
	}
	s, err := jsontext.AppendUnquote(nil, v.Raw)
	return string(s), err
}

// Bool decodes a boolean.
func (v Value) Bool() (bool, error) {
	kind := v.kind()
	if kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		return false, v.want("a boolean")
	}
	return kind == jsontext.KindTrue, nil
}

// Float decodes a number within the range of a float64.
func (v Value) Float() (float64, error) {
	if v.kind() != jsontext.KindNumber {
		return 0, v.want("a number")
	}
	f, err := strconv.ParseFloat(string(v.Raw), 64)
	if err != nil {
		return 0, v.Fault("%s is out of the range of a float64", shorten(string(v.Raw)))
	}
	return f, nil
}

// Int decodes a number in any notation whose value is an integer: 40, 40.0, 4e1.
func (v Value) Int() (int64, error) {
	if v.kind() != jsontext.KindNumber {
		return 0, v.want("an integer")
	}
	text := string(v.Raw)
	d, ok := parseDecimal(text)
	switch {
	case ok && d.exponent < 0:
		return 0, v.Fault("want an integer, got %s", shorten(text))
	case !ok || int64(len(d.digits))+d.exponent > 19:
		return 0, v.Fault("%s does not fit into 64 bits", shorten(text))
	}
	n, err := strconv.ParseInt(d.sign+d.digits+strings.Repeat("0", int(d.exponent)), 10, 64)
	if err != nil {
		return 0, v.Fault("%s does not fit into 64 bits", shorten(text))
	}
	return n, nil
}

// Size decodes an integer that fits into an int.
func (v Value) Size() (int, error) {
	n, err := v.Int()
	if err == nil && (n > math.MaxInt || n < math.MinInt) {
		err = v.Fault("%d does not fit into an int", n)
	}
	return int(n), err
}

// Compact returns a text that [Check] has accepted without white space. Numbers and strings
// keep their spelling.
func Compact(text []byte) []byte {
	v := jsontext.Value(bytes.Clone(text))
	_ = v.Compact() // fails only if the text isn't JSON
	return v
}

// Canonical returns a text that is the same for two texts that [Check] has accepted exactly
// if their values are equal. The order of keys and the spelling of strings are free, and
// numbers count by their exact value: 1, 1.0 and 10e-1 are equal, numbers that differ beyond
// the precision of a float64 are not.
func Canonical(text []byte) string {
	v := jsontext.Value(bytes.Clone(text))
	_ = v.Format(jsontext.ReorderRawObjects(true)) // likewise
	var b []byte
	d := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return string(b)
		}
		text := token.String()
		switch token.Kind() {
		case jsontext.KindString:
			text = strconv.Quote(text)
		case jsontext.KindNumber:
			// One beyond the decimals is equal only to itself.
			if n, ok := parseDecimal(text); ok {
				text = fmt.Sprintf("%s%se%d", n.sign, n.digits, n.exponent)
			}
		}
		b = append(append(b, text...), ',')
	}
}

// decimal is the exact value of a JSON number: digits * 10^exponent. The digits have no
// leading or trailing zero; zero is "0" with exponent 0 and no sign.
type decimal struct {
	sign, digits string
	exponent     int64
}

// maxExponent bounds what is computed with exponents, far from an overflow.
const maxExponent = 1 << 60

// parseDecimal returns false for an exponent beyond maxExponent.
func parseDecimal(number string) (d decimal, ok bool) {
	if strings.HasPrefix(number, "-") {
		d.sign, number = "-", number[1:]
	}
	mantissa, exponent := number, "0"
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent = number[:i], number[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{digits: "0"}, true
	}
	e, err := strconv.ParseInt(exponent, 10, 64)
	if err != nil || e > maxExponent || e < -maxExponent {
		return decimal{}, false
	}
	d.digits = strings.TrimRight(digits, "0")
	d.exponent = e + int64(len(digits)-len(d.digits)) - int64(len(fraction))
	return d, true
}
