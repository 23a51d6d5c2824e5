package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The parser is our own because encoding/json takes the last of two equal keys,
// replaces invalid UTF-8, and matches keys in any case. All of these would let
// two readers see different states in one file.

// maxJSONDepth bounds the nesting of arrays and objects.
const maxJSONDepth = 128

// jsonFault is an error inside a JSON text.
type jsonFault struct {
	path   string // of the value: "domain.periodic[1]"
	reason string
}

func (e *jsonFault) Error() string {
	if e.path == "" {
		return e.reason
	}
	return e.path + ": " + e.reason
}

// checkJSON reports whether data is one JSON text by RFC 8259, and stricter: no
// byte-order mark, valid UTF-8, no unpaired surrogates, no key twice in an
// object, and at most maxJSONDepth levels. The error is a *jsonFault.
func checkJSON(data []byte) error { return checkJSONOf(data, 0) }

// checkJSONOf is checkJSON of a text that has so many keys and strings at most; 0 stands for
// any number.
func checkJSONOf(data []byte, strings int) error {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return &jsonFault{reason: "begins with a byte-order mark"}
	}
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, n := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return &jsonFault{reason: position(data, at) + "invalid UTF-8"}
	}
	s := &jsonScanner{data: data, most: strings}
	err := s.value()
	if err == nil {
		s.space()
		if s.at < len(data) {
			err = errors.New("text after the end of the JSON value")
		}
	}
	if err != nil {
		return &jsonFault{path: s.where(), reason: position(data, s.at) + err.Error()}
	}
	return nil
}

// position names the line and column of an offset.
func position(data []byte, at int) string {
	before := data[:at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d: ", line, column)
}

// jsonStep is one step of the path to a value: into a key, or, with an empty key
// and index >= 0, into an element.
type jsonStep struct {
	key   string
	index int // -1: key
}

// jsonScanner walks over a JSON text. After an error, path leads to the value and at
// to the byte.
type jsonScanner struct {
	data []byte
	at   int
	path []jsonStep

	strings, most int // keys and strings so far, and how many there may be; 0: any number
}

func (s *jsonScanner) where() string {
	var b strings.Builder
	for _, p := range s.path {
		if p.index >= 0 {
			fmt.Fprintf(&b, "[%d]", p.index)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(printableKey(p.key))
	}
	return b.String()
}

// printableKey quotes a key that would not be told from the text around it.
func printableKey(key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !(r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	})
	if plain {
		return shorten(key)
	}
	return strconv.Quote(shorten(key))
}

var errEnd = errors.New("the text ends in the middle of a value")

func (s *jsonScanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next skips white space and returns the next byte without consuming it.
func (s *jsonScanner) next() (byte, error) {
	s.space()
	if s.at >= len(s.data) {
		return 0, errEnd
	}
	return s.data[s.at], nil
}

func (s *jsonScanner) unexpected(want string) error {
	r, _ := utf8.DecodeRune(s.data[s.at:])
	return fmt.Errorf("want %s, got %q", want, r)
}

// value consumes one value.
func (s *jsonScanner) value() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch {
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array(nil)
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.unexpected("a JSON value")
}

func (s *jsonScanner) word(w string) error {
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return fmt.Errorf("want %s", w)
	}
	s.at += len(w)
	return nil
}

// object consumes an object and hands each member to visit.
func (s *jsonScanner) object(visit func(key string, raw []byte)) error {
	if len(s.path) >= maxJSONDepth {
		return fmt.Errorf("nested deeper than %d levels", maxJSONDepth)
	}
	s.at++
	if c, err := s.next(); err != nil {
		return err
	} else if c == '}' {
		s.at++
		return nil
	}
	keys := make(map[string]struct{})
	for {
		if c, err := s.next(); err != nil {
			return err
		} else if c != '"' {
			return s.unexpected("a key")
		}
		start := s.at
		key, err := s.text()
		if err != nil {
			return err
		}
		s.path = append(s.path, jsonStep{key: key, index: -1})
		if _, twice := keys[key]; twice {
			s.at = start
			return errors.New("key given twice")
		}
		keys[key] = struct{}{}
		if c, err := s.next(); err != nil {
			return err
		} else if c != ':' {
			return s.unexpected("':'")
		}
		s.at++
		s.space()
		start = s.at
		if err := s.value(); err != nil {
			return err
		}
		if visit != nil {
			visit(key, s.data[start:s.at])
		}
		s.path = s.path[:len(s.path)-1]
		c, err := s.next()
		if err != nil {
			return err
		}
		switch c {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.unexpected("',' or '}'")
		}
	}
}

// array consumes an array and hands each element to visit.
func (s *jsonScanner) array(visit func(raw []byte)) error {
	if len(s.path) >= maxJSONDepth {
		return fmt.Errorf("nested deeper than %d levels", maxJSONDepth)
	}
	s.at++
	if c, err := s.next(); err != nil {
		return err
	} else if c == ']' {
		s.at++
		return nil
	}
	for i := 0; ; i++ {
		s.path = append(s.path, jsonStep{index: i})
		s.space()
		start := s.at
		if err := s.value(); err != nil {
			return err
		}
		if visit != nil {
			visit(s.data[start:s.at])
		}
		s.path = s.path[:len(s.path)-1]
		c, err := s.next()
		if err != nil {
			return err
		}
		switch c {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return s.unexpected("',' or ']'")
		}
	}
}

// number consumes a number: -? int frac? exp?
func (s *jsonScanner) number() error {
	if s.data[s.at] == '-' {
		s.at++
	}
	switch n := s.digits(); {
	case n == 0:
		return errors.New("want a digit")
	case n > 1 && s.data[s.at-n] == '0':
		return errors.New("a number can't begin with 0")
	}
	if s.at < len(s.data) && s.data[s.at] == '.' {
		s.at++
		if s.digits() == 0 {
			return errors.New("want a digit after the point")
		}
	}
	if s.at < len(s.data) && (s.data[s.at] == 'e' || s.data[s.at] == 'E') {
		s.at++
		if s.at < len(s.data) && (s.data[s.at] == '+' || s.data[s.at] == '-') {
			s.at++
		}
		if s.digits() == 0 {
			return errors.New("want a digit in the exponent")
		}
	}
	return nil
}

func (s *jsonScanner) digits() int {
	start := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}

// text consumes a string and returns what it stands for.
func (s *jsonScanner) text() (string, error) {
	if s.strings++; s.most > 0 && s.strings > s.most {
		return "", fmt.Errorf("more than %d keys and strings", s.most)
	}
	s.at++
	start := s.at
	var b []byte // nil as long as nothing was escaped
	for {
		if s.at >= len(s.data) {
			return "", errEnd
		}
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			if b == nil {
				return string(s.data[start : s.at-1]), nil
			}
			return string(b), nil
		case c < ' ':
			return "", fmt.Errorf("control character %q in a string", c)
		case c == '\\':
			if b == nil {
				b = append(make([]byte, 0, 2*(s.at-start)+16), s.data[start:s.at]...)
			}
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		default:
			if b != nil {
				b = append(b, c)
			}
			s.at++
		}
	}
}

var escapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func (s *jsonScanner) escape() (rune, error) {
	if s.at+1 >= len(s.data) {
		return 0, errEnd
	}
	c := s.data[s.at+1]
	if c != 'u' {
		r, ok := escapes[c]
		if !ok {
			return 0, fmt.Errorf("unknown escape \\%c", c)
		}
		s.at += 2
		return r, nil
	}
	hi, err := s.hex4()
	if err != nil {
		return 0, err
	}
	switch {
	case hi < 0xd800 || hi > 0xdfff:
		s.at += 6
		return hi, nil
	case hi >= 0xdc00:
		return 0, errors.New("unpaired surrogate")
	}
	s.at += 6
	if !bytes.HasPrefix(s.data[s.at:], []byte(`\u`)) {
		return 0, errors.New("unpaired surrogate")
	}
	lo, err := s.hex4()
	if err != nil {
		return 0, err
	}
	if lo < 0xdc00 || lo > 0xdfff {
		return 0, errors.New("unpaired surrogate")
	}
	s.at += 6
	return 0x10000 + (hi-0xd800)<<10 + (lo - 0xdc00), nil
}

// hex4 reads the digits of the \uXXXX at the present position.
func (s *jsonScanner) hex4() (rune, error) {
	if s.at+6 > len(s.data) {
		return 0, errEnd
	}
	var r rune
	for _, c := range s.data[s.at+2 : s.at+6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 + rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 + rune(c-'a') + 10
		case 'A' <= c && c <= 'F':
			r = r<<4 + rune(c-'A') + 10
		default:
			return 0, errors.New(`want 4 hexadecimal digits after \u`)
		}
	}
	return r, nil
}

// jsonValue is a JSON value whose text checkJSON has accepted, with its path for
// errors. The methods decode it.
type jsonValue struct {
	path string
	raw  []byte
}

// kind names the type of the value as an error text has it.
func (v jsonValue) kind() string {
	switch v.raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (v jsonValue) fault(format string, args ...any) error {
	return &jsonFault{path: v.path, reason: fmt.Sprintf(format, args...)}
}

func (v jsonValue) want(what string) error {
	return v.fault("want %s, got %s", what, v.kind())
}

// members returns the values of an object by their keys.
func (v jsonValue) members() (map[string]jsonValue, error) {
	if v.raw[0] != '{' {
		return nil, v.want("an object")
	}
	m := make(map[string]jsonValue)
	s := &jsonScanner{data: v.raw}
	err := s.object(func(key string, raw []byte) {
		m[key] = jsonValue{path: join(v.path, key), raw: raw}
	})
	return m, err
}

func join(path, key string) string {
	if path == "" {
		return printableKey(key)
	}
	return path + "." + printableKey(key)
}

// elements returns the values of an array.
func (v jsonValue) elements(what string) ([]jsonValue, error) {
	if v.raw[0] != '[' {
		return nil, v.want(what)
	}
	a := []jsonValue{}
	s := &jsonScanner{data: v.raw}
	err := s.array(func(raw []byte) {
		a = append(a, jsonValue{path: fmt.Sprintf("%s[%d]", v.path, len(a)), raw: raw})
	})
	return a, err
}

func (v jsonValue) string() (string, error) {
	if v.raw[0] != '"' {
		return "", v.want("a string")
	}
	return (&jsonScanner{data: v.raw}).text()
}

func (v jsonValue) bool() (bool, error) {
	switch v.raw[0] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, v.want("a boolean")
}

func (v jsonValue) float() (float64, error) {
	if v.kind() != "a number" {
		return 0, v.want("a number")
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil {
		return 0, v.fault("%s is out of the range of a float64", shorten(string(v.raw)))
	}
	return f, nil
}

// int takes a number in any notation whose value is an integer: 40, 40.0, 4e1.
func (v jsonValue) int() (int64, error) {
	if v.kind() != "a number" {
		return 0, v.want("an integer")
	}
	text := string(v.raw)
	d, ok := parseDecimal(text)
	switch {
	case ok && d.exponent < 0:
		return 0, v.fault("want an integer, got %s", shorten(text))
	case !ok || int64(len(d.digits))+d.exponent > 19:
		return 0, v.fault("%s does not fit into 64 bits", shorten(text))
	}
	whole := d.digits + strings.Repeat("0", int(d.exponent))
	if d.negative {
		whole = "-" + whole
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, v.fault("%s does not fit into 64 bits", shorten(text))
	}
	return n, nil
}

// size takes an integer that fits into an int.
func (v jsonValue) size() (int, error) {
	n, err := v.int()
	if err == nil && (n > math.MaxInt || n < math.MinInt) {
		err = v.fault("%d does not fit into an int", n)
	}
	return int(n), err
}

// compact returns the text without white space. Numbers and strings keep their
// spelling.
func (v jsonValue) compact() json.RawMessage {
	b := make([]byte, 0, len(v.raw))
	inString := false
	for i := 0; i < len(v.raw); i++ {
		c := v.raw[i]
		switch {
		case inString && c == '\\':
			b = append(b, c)
			i++
			c = v.raw[i]
		case c == '"':
			inString = !inString
		case !inString && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		b = append(b, c)
	}
	return b
}

// decimal is the exact value of a JSON number: digits * 10^exponent. The digits
// have no leading or trailing zero; zero is "0" with exponent 0 and no sign.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// maxExponent bounds what is computed with exponents, far from an overflow.
const maxExponent = 1 << 60

// parseDecimal returns false for an exponent beyond maxExponent.
func parseDecimal(text string) (decimal, bool) {
	var d decimal
	d.negative = strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{digits: "0"}, true
	}
	if exponent != "" {
		e, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil || e > maxExponent || e < -maxExponent {
			return decimal{}, false
		}
		d.exponent = e
	}
	d.digits = strings.TrimRight(digits, "0")
	d.exponent += int64(len(digits)-len(d.digits)) - int64(len(fraction))
	return d, true
}

// canonical returns a text that is the same for two values exactly if they are
// equal: keys sorted, strings in one spelling, numbers by their exact decimal
// value (1, 1.0 and 10e-1 are equal; numbers that differ beyond the precision of
// a float64 are not).
func (v jsonValue) canonical() string {
	s := &jsonScanner{data: v.raw}
	return string(s.canonical(nil))
}

// canonical consumes a value that checkJSON has accepted, and appends its
// canonical text to b.
func (s *jsonScanner) canonical(b []byte) []byte {
	c, _ := s.next()
	start := s.at
	switch c {
	case '{':
		return s.canonicalObject(b)
	case '[':
		return s.canonicalArray(b)
	case '"':
		text, _ := s.text()
		return strconv.AppendQuote(b, text)
	case 't', 'f', 'n':
		_ = s.value()
		return append(b, s.data[start:s.at]...)
	}
	_ = s.value()
	text := string(s.data[start:s.at])
	d, ok := parseDecimal(text)
	if !ok {
		// An exponent of more than 18 digits: equal only to itself.
		return append(b, text...)
	}
	if d.negative {
		b = append(b, '-')
	}
	return fmt.Appendf(b, "%se%d", d.digits, d.exponent)
}

func (s *jsonScanner) canonicalObject(b []byte) []byte {
	type member struct{ key, text string }
	var members []member
	s.at++
	for {
		if c, err := s.next(); err != nil || c == '}' {
			s.at++
			break
		} else if c == ',' {
			s.at++
			s.space()
		}
		key, _ := s.text()
		_, _ = s.next()
		s.at++ // the colon
		members = append(members, member{key, string(s.canonical(nil))})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	b = append(b, '{')
	for _, m := range members {
		b = strconv.AppendQuote(b, m.key)
		b = append(b, ':')
		b = append(b, m.text...)
		b = append(b, ',')
	}
	return append(b, '}')
}

func (s *jsonScanner) canonicalArray(b []byte) []byte {
	s.at++
	b = append(b, '[')
	for {
		if c, err := s.next(); err != nil || c == ']' {
			s.at++
			return append(b, ']')
		} else if c == ',' {
			s.at++
		}
		b = s.canonical(b)
		b = append(b, ',')
	}
}
