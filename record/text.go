package record

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/excerpt"
)

// shownElements is how many elements of an array or a list String shows.
const shownElements = 8

// String returns the record as text for people, a line per key, with all but the
// first 8 elements of arrays and lists of strings left out. See [Record.WriteText].
func (r Record) String() string {
	var s strings.Builder
	r.WriteText(&s, shownElements) // a strings.Builder takes everything
	return s.String()
}

// WriteText writes the record as text for people: a line per key in order, what lies
// within a record or list indented by two spaces. Types show: strings are quoted,
// floats have a point or an exponent, arrays have their element type and dimensions.
// At most limit elements of arrays and of lists of strings are shown, all if it is 0.
// Nothing in the text can control a terminal.
//
// The text is for reading, and may change. [Record.MarshalJSON] is for programs.
func (r Record) WriteText(w io.Writer, limit int) error {
	b := bufio.NewWriter(w)
	writeText(b, r, "", limit)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func writeText(w *bufio.Writer, r Record, indent string, limit int) {
	for key, v := range r.All() {
		w.WriteString(indent)
		w.WriteString(quoteKey(key))
		w.WriteByte(':')
		inner := indent + "  "
		switch v.kind {
		case Group:
			writeGroup(w, v.record(), inner, limit)
		case Records:
			fmt.Fprintf(w, " %s\n", count(len(v.list().entries), "record"))
			for name, i := range v.list().inOrder() {
				w.WriteString(inner)
				w.WriteString(quoteKey(name))
				w.WriteByte(':')
				writeGroup(w, v.list().entries[i], inner+"  ", limit)
			}
		case Arrays:
			fmt.Fprintf(w, " %s\n", count(len(v.arrays()), "array"))
			for i, a := range v.arrays() {
				fmt.Fprintf(w, "%s%d: %s\n", inner, i+1, a.text(limit))
			}
		default:
			w.WriteByte(' ')
			w.WriteString(v.textLine(limit))
			w.WriteByte('\n')
		}
	}
}

func writeGroup(w *bufio.Writer, r Record, indent string, limit int) {
	if r.Len() == 0 {
		w.WriteString(" no keys\n")
		return
	}
	w.WriteByte('\n')
	writeText(w, r, indent, limit)
}

// textLine returns a value without records in it as a line of text.
func (v Value) textLine(limit int) string {
	switch v.kind {
	case Bool:
		return strconv.FormatBool(v.bits != 0)
	case Int:
		return strconv.FormatInt(int64(v.bits), 10)
	case Uint:
		return strconv.FormatUint(v.bits, 10)
	case Float:
		return string(appendFloat(nil, v.float(), 64))
	case Text:
		return strconv.Quote(v.text())
	case Texts:
		return textsLine(v.texts(), limit)
	case Numbers:
		return v.array().text(limit)
	case Arrays:
		return count(len(v.arrays()), "array")
	case Group:
		return "record of " + count(v.record().Len(), "key")
	case Records:
		return count(len(v.list().entries), "record")
	}
	return "no value"
}

func textsLine(texts []string, limit int) string {
	line := []byte{'['}
	for i, s := range texts {
		if i > 0 {
			line = append(line, ", "...)
		}
		if limit > 0 && i == limit {
			line = fmt.Appendf(line, "… %d in all", len(texts))
			break
		}
		line = strconv.AppendQuote(line, s)
	}
	return string(append(line, ']'))
}

// text returns an array as a line of text, "float64[2 3] 0.0 0.5 … 6 in all".
func (a Array) text(limit int) string {
	line := fmt.Appendf(nil, "%v%v", a.Type(), a.shape())
	n := a.Len()
	for i := range n {
		if limit > 0 && i == limit {
			line = fmt.Appendf(line, " … %d in all", n)
			break
		}
		line = a.store().appendNumber(append(line, ' '), i)
	}
	return string(line)
}

// String returns the array's type, dimensions and first 8 values.
func (a Array) String() string { return a.text(shownElements) }

// String returns the value as text for people: a record as by [Record.String], others
// in one line.
func (v Value) String() string {
	if v.kind == Group {
		return v.record().String()
	}
	return v.textLine(shownElements)
}

// short returns a value as one short line.
func (v Value) short() string {
	switch v.kind {
	case Text:
		return strconv.Quote(shorten(v.text()))
	case Texts:
		texts := make([]string, 0, 5)
		for _, s := range v.texts()[:min(4, len(v.texts()))] {
			texts = append(texts, strconv.Quote(shorten(s)))
		}
		if n := len(v.texts()); n > 4 {
			texts = append(texts, fmt.Sprintf("… %d in all", n))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return v.textLine(4)
}

// describe returns a value with its kind, for an error.
func (v Value) describe() string {
	switch v.kind {
	case Bool:
		return "the boolean " + v.short()
	case Int, Uint:
		return "the integer " + v.short()
	case Float:
		return "the float " + v.short()
	case Text:
		return "the text " + v.short()
	case Texts:
		return "a list of " + count(len(v.texts()), "text")
	case Numbers:
		return fmt.Sprintf("an array %v%v", v.array().Type(), v.array().shape())
	case Arrays, Records:
		return "a list of " + v.short()
	}
	return "a " + v.short()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// shorten cuts a string to what fits a message.
func shorten(s string) string {
	return excerpt.Of(s, 48, "…")
}

// appendFloat appends the shortest text that parses back to the same float of the
// given size. A point or an exponent tells it from an integer.
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch abs := math.Abs(v); {
	case v != v:
		return append(dst, "NaN"...)
	case v > math.MaxFloat64:
		return append(dst, "Infinity"...)
	case v < -math.MaxFloat64:
		return append(dst, "-Infinity"...)
	case abs != 0 && (abs < 1e-4 || abs >= 1e16):
		return strconv.AppendFloat(dst, v, 'e', -1, bits)
	case v == math.Trunc(v):
		return append(strconv.AppendFloat(dst, v, 'f', -1, bits), ".0"...)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, bits)
}
