package publish

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// nonFinite are the numbers that JSON doesn't have, and the strings that stand for
// them in a sidecar.
var nonFinite = [3]struct {
	name  string
	value float64
}{{"NaN", math.NaN()}, {"Infinity", math.Inf(1)}, {"-Infinity", math.Inf(-1)}}

// marks are three numbers that stand for those of nonFinite while package json has them.
// Their digits are few, so that float32 and float64 print them alike.
type marks [len(nonFinite)]struct {
	text           string
	double, single float64 // the values that it has as a float64 and as a float32
}

// newMarks returns others for each n below markSets.
func newMarks(n int) (m marks) {
	for i := range m {
		m[i].text = fmt.Sprintf("7.%d%de-33", 1000+n, i+1)
		m[i].double, _ = strconv.ParseFloat(m[i].text, 64)
		m[i].single, _ = strconv.ParseFloat(m[i].text, 32)
	}
	return m
}

const markSets = 9000

// index returns which of the marks a text is, -1 for none.
func (m *marks) index(text string) int {
	for i := range m {
		if text == m[i].text {
			return i
		}
	}
	return -1
}

func (m *marks) value(i, bits int) float64 {
	if bits == 32 {
		return m[i].single
	}
	return m[i].double
}

// of returns which of the marks a number of the given size is, -1 for none.
func (m *marks) of(v float64, bits int) int {
	for i := range m {
		if v == m.value(i, bits) {
			return i
		}
	}
	return -1
}

// marshalSidecar is json.MarshalIndent, but takes numbers that aren't finite: they become
// the strings "NaN", "Infinity" and "-Infinity".
func marshalSidecar(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if _, unsupported := errors.AsType[*json.UnsupportedValueError](err); !unsupported {
		return text, err
	}
	// A number of the caller may look like a mark of one set, but not like that of the next.
	var before []byte
	for n := range markSets {
		w := sidecarWriter{marks: newMarks(n)}
		finite := reflect.New(reflect.TypeOf(v)).Elem()
		finite.Set(reflect.ValueOf(v))
		w.mark(finite, 0)
		marked, merr := json.MarshalIndent(finite.Interface(), "", "  ")
		if merr != nil || w.deep {
			return nil, err // it is about something else, or within a type that writes itself
		}
		named := w.marks.toNames(marked)
		if n > 0 && bytes.Equal(named, before) {
			return named, nil
		}
		before = named
	}
	return nil, err
}

type sidecarWriter struct {
	marks marks
	deep  bool // probably a cycle
}

// maxSidecarDepth is more than any value has that isn't within itself.
const maxSidecarDepth = 1000

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// mark puts marks in place of numbers that aren't finite. v is a copy that may be changed;
// values that it refers to are copied first. Values that write themselves stay.
func (w *sidecarWriter) mark(v reflect.Value, depth int) {
	if w.deep = w.deep || depth > maxSidecarDepth; w.deep {
		return
	}
	t := v.Type()
	for _, p := range []reflect.Type{t, reflect.PointerTo(t)} {
		if p.Implements(jsonMarshaler) || p.Implements(textMarshaler) {
			return
		}
	}
	if !v.CanSet() && v.Kind() != reflect.Struct { // a struct may be embedded
		return
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		w.markFloat(v)
	case reflect.Interface:
		if !v.IsNil() {
			inner := reflect.New(v.Elem().Type()).Elem()
			inner.Set(v.Elem())
			w.mark(inner, depth+1)
			v.Set(inner)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			inner := reflect.New(t.Elem())
			inner.Elem().Set(v.Elem())
			w.mark(inner.Elem(), depth+1)
			v.Set(inner.Convert(t))
		}
	case reflect.Slice:
		if v.IsNil() || t.Elem().Kind() == reflect.Uint8 {
			return
		}
		list := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(list, v)
		v.Set(list)
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			w.mark(v.Index(i), depth+1)
		}
	case reflect.Map:
		w.markMap(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := t.Field(i); f.IsExported() || f.Anonymous {
				w.mark(v.Field(i), depth+1)
			}
		}
	}
}

func (w *sidecarWriter) markFloat(v reflect.Value) {
	bits, x := v.Type().Bits(), v.Float()
	for i, n := range nonFinite {
		if x == n.value || math.IsNaN(x) && math.IsNaN(n.value) {
			v.SetFloat(w.marks.value(i, bits))
			return
		}
	}
}

func (w *sidecarWriter) markMap(v reflect.Value, depth int) {
	if v.IsNil() {
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), v.Len())
	for key, value := range v.Seq2() {
		copied := reflect.New(v.Type().Elem()).Elem()
		copied.Set(value)
		w.mark(copied, depth+1)
		m.SetMapIndex(key, copied)
	}
	v.Set(m)
}

// toNames puts the strings in place of the marks, be they numbers or, as the option
// "string" of a field makes them, strings.
func (m *marks) toNames(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		n := 1
		switch c := text[at]; {
		case c == '"':
			for n < len(text)-at && text[at+n] != '"' {
				if text[at+n] == '\\' {
					n++
				}
				n++
			}
			n++
		case c == '-' || '0' <= c && c <= '9':
			for n < len(text)-at && strings.IndexByte("+-.0123456789eE", text[at+n]) >= 0 {
				n++
			}
		}
		token := text[at : at+n]
		if i := m.index(string(bytes.Trim(token, `"`))); i >= 0 {
			token = strconv.AppendQuote(nil, nonFinite[i].name)
		}
		out = append(out, token...)
		at += n
	}
	return out
}

// DecodeSidecar is [json.Unmarshal] for the sidecar of a bundle: the strings "NaN",
// "Infinity" and "-Infinity", as which numbers are saved that JSON doesn't have, become
// these numbers again where v has a float. Elsewhere they stay strings. It isn't
// collective.
func DecodeSidecar(sidecar json.RawMessage, v any) error {
	err := json.Unmarshal(sidecar, v)
	if !wantedFloat(err) {
		return err
	}
	var m marks
	for n := 0; n == 0 || m.in(sidecar); n++ {
		if n == markSets {
			return err
		}
		m = newMarks(n)
	}
	names := findNames(sidecar)
	numbers := make(map[string]bool) // paths of names that are wanted as numbers
	for wantedFloat(err) {
		_, name := m.toMarks(sidecar, names, numbers, offset(err))
		if name == nil {
			return err // it is another string
		}
		// The same place of another element has the same type.
		numbers[name.path] = true
		text, _ := m.toMarks(sidecar, names, numbers, 0)
		err = json.Unmarshal(text, v)
	}
	m.unmark(reflect.ValueOf(v), 0)
	return err
}

func (m *marks) in(text []byte) bool {
	for _, mark := range m {
		if bytes.Contains(text, []byte(mark.text)) {
			return true
		}
	}
	return false
}

// wantedFloat reports whether a string was met where a float is wanted.
func wantedFloat(err error) bool {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok && e.Value == "string" && (e.Type.Kind() == reflect.Float32 || e.Type.Kind() == reflect.Float64)
}

func offset(err error) int {
	e, _ := errors.AsType[*json.UnmarshalTypeError](err)
	return int(e.Offset)
}

// foundName is one of the strings of nonFinite in a JSON text.
type foundName struct {
	index      int // in nonFinite
	start, end int
	path       string // without the indices of arrays
}

func findNames(text []byte) (names []foundName) {
	type level struct {
		array bool
		key   string
		named bool // the next string is a value
	}
	var levels []level
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return names // the end: the text is JSON
		}
		var top *level
		if len(levels) > 0 {
			top = &levels[len(levels)-1]
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '}' || t == ']' {
				if levels = levels[:len(levels)-1]; len(levels) > 0 {
					levels[len(levels)-1].named = false
				}
				continue
			}
			levels = append(levels, level{array: t == '['})
			continue
		case string:
			if top != nil && !top.array && !top.named {
				top.key, top.named = t, true
				continue
			}
			end := int(d.InputOffset())
			for i, n := range nonFinite {
				if start := end - len(n.name) - 2; t == n.name && start >= 0 && string(text[start:end]) == strconv.Quote(n.name) {
					var path strings.Builder
					for _, l := range levels {
						fmt.Fprintf(&path, "%t %q/", l.array, l.key)
					}
					names = append(names, foundName{i, start, end, path.String()})
				}
			}
		}
		if top != nil {
			top.named = false
		}
	}
}

// toMarks puts marks in place of the names with the given paths. It returns the other
// name that is at an offset of the new text, if one is.
func (m *marks) toMarks(text []byte, names []foundName, numbers map[string]bool, offset int) (out []byte, found *foundName) {
	at := 0
	for i := range names {
		n := &names[i]
		out = append(out, text[at:n.start]...)
		if at = n.start; numbers[n.path] {
			out, at = append(out, m[n.index].text...), n.end
			continue
		}
		if start, end := len(out), len(out)+n.end-n.start; start < offset && offset <= end+1 {
			found = n
		}
	}
	return append(out, text[at:]...), found
}

// unmark puts the numbers in place of their marks.
func (m *marks) unmark(v reflect.Value, depth int) {
	if depth > maxSidecarDepth {
		return
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if i := m.of(v.Float(), v.Type().Bits()); i >= 0 && v.CanSet() {
			v.SetFloat(nonFinite[i].value)
		}
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			m.unmark(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			m.unmark(v.Index(i), depth+1)
		}
	case reflect.Map:
		if !v.CanInterface() {
			return
		}
		for key, value := range v.Seq2() {
			copied := reflect.New(v.Type().Elem()).Elem()
			copied.Set(value)
			m.unmark(copied, depth+1)
			v.SetMapIndex(key, copied)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				m.unmark(v.Field(i), depth+1)
			}
		}
	}
}
