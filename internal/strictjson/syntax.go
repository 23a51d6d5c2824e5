package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// syntaxError is the error of a decoder that has stopped. The decoder knows that the text is
// wrong, and where; this says what was wanted there, in words that don't change with the
// library.
func syntaxError(text []byte, d *jsontext.Decoder, err error) error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok: // io.EOF
		return fault(text, len(text), d, "", endsEarly)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault(text, len(text), d, syntax.JSONPointer, endsEarly)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fault(text, int(syntax.ByteOffset), d, syntax.JSONPointer, "key given twice")
	}
	kind, length := d.StackIndex(d.StackDepth())
	last, parent := d.StackPointer(), d.StackPointer()
	if length > 0 {
		parent = last.Parent()
	}
	end := int(d.InputOffset())
	at := afterSpace(text, end)
	array, key := kind == jsontext.KindBeginArray, kind == jsontext.KindBeginObject && length%2 == 0
	separator, wanted := byte(','), "',' or '}'"
	switch {
	case array:
		wanted = "',' or ']'"
	case !key:
		separator, wanted, parent = ':', "':'", last
	}
	if length > 0 {
		switch {
		case text[at] == separator:
			at = afterSpace(text, at+1)
		case at == end && text[at-1] == '0' && isDigit(text[at]):
			return fault(text, at, d, last, "a number can't begin with 0")
		default:
			return fault(text, at, d, parent, wantGot(wanted, text[at:]))
		}
	}
	switch {
	case key && text[at] != '"':
		return fault(text, at, d, parent, wantGot("a key", text[at:]))
	case array:
		last = parent.AppendToken(strconv.FormatInt(length, 10))
	case key:
		last = parent
	}
	if wrong := int(syntax.ByteOffset); at <= wrong && wrong < len(text) {
		if reason := inToken(text[at:], wrong-at); reason != "" {
			return fault(text, wrong, d, last, reason)
		}
	}
	return fault(text, at, d, last, wantGot("a JSON value", text[at:]))
}

const endsEarly = "the text ends in the middle of a value"

func wantGot(wanted string, text []byte) string {
	got, _ := utf8.DecodeRune(text)
	return fmt.Sprintf("want %s, got %q", wanted, got)
}

func afterSpace(text []byte, at int) int {
	return len(text) - len(bytes.TrimLeft(text[at:], space))
}

// inToken says what is wrong with a token at an offset of it. It is empty for
// what begins no token.
func inToken(token []byte, at int) string {
	switch first, c := token[0], token[at]; {
	case first == '"' && at > 0:
		return inString(c, token[at+1:])
	case (first == '-' || isDigit(first)) && at > 0:
		switch before := token[at-1]; {
		case before == '.':
			return "want a digit after the point"
		case at > 1 && !isDigit(before):
			return "want a digit in the exponent"
		}
		return "want a digit"
	case first == 't':
		return "want true"
	case first == 'f':
		return "want false"
	case first == 'n':
		return "want null"
	}
	return ""
}

// inString says what is wrong with a character of a string, which others follow.
func inString(c byte, following []byte) string {
	switch {
	case c < ' ':
		return fmt.Sprintf("control character %q in a string", c)
	case c != '\\':
		return "invalid UTF-8"
	case !bytes.HasPrefix(following, []byte("u")):
		r, _ := utf8.DecodeRune(following)
		return `unknown escape \` + strings.Trim(strconv.QuoteRune(r), "'")
	}
	if _, err := strconv.ParseUint(string(following[1:min(5, len(following))]), 16, 16); err != nil {
		return `want 4 hexadecimal digits after \u`
	}
	return "unpaired surrogate"
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
