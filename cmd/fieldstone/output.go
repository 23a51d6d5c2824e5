package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fieldstone-io/fieldstone/internal/excerpt"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/rivo/uniseg"
)

// reason is the text of an error about path without the path itself, which the
// caller names.
func reason(path string, err error) string {
	var damage *publish.DamageError
	if errors.As(err, &damage) && samePath(damage.Bundle, path) {
		return damage.File + ": " + damage.Reason
	}
	var bundle *publish.BundleError
	if errors.As(err, &bundle) && samePath(bundle.Bundle, path) {
		return inFile(bundle.File, bundle.Err)
	}
	var link *vfs.DeadLink
	if errors.As(err, &link) && samePath(link.Name, path) {
		return link.Reason()
	}
	var cause *fs.PathError
	if errors.As(err, &cause) && samePath(cause.Path, path) {
		return nothingAt(path, cause.Err)
	}
	if errors.As(err, &cause) && err.Error() == cause.Error() {
		if within, ok := strings.CutPrefix(filepath.Clean(cause.Path), filepath.Clean(path)+string(filepath.Separator)); ok {
			return within + ": " + cause.Err.Error()
		}
	}
	return err.Error()
}

// inFile is an error of a file, or of an object in one, which may have no name.
func inFile(name string, err error) string {
	if name == "" {
		return err.Error()
	}
	return name + ": " + err.Error()
}

func samePath(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }

// oneLine keeps names and texts that came from a bundle from steering the
// terminal: what can't be printed is escaped, line breaks included.
func oneLine(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if unicode.IsPrint(r) && !(r == utf8.RuneError && n == 1) {
			b.WriteString(s[:n])
		} else {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// table aligns the cells of its rows by their width on a terminal.
type table struct {
	right map[int]bool // columns that are aligned to the right
	rows  [][]string
}

func newTable(right ...int) *table {
	t := &table{right: make(map[int]bool)}
	for _, c := range right {
		t.right[c] = true
	}
	return t
}

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = oneLine(cells[i])
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer, indent string) {
	var width []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], uniseg.StringWidth(cell))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-uniseg.StringWidth(cell))
			if t.right[i] {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
			b.WriteString("  ")
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// humanSize is a number of bytes in units of 1024.
func humanSize(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1024, "KMGTPE"
	for v >= 1023.95 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", v, units[0])
}

// shortened keeps a text in a table to a length that fits there.
func shortened(s string) string {
	return excerpt.Of(s, 60, "…")
}

// count is a number with the noun in the right number.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// exact is the shortest text that reads back as the same float64.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// rough is a text for people.
func rough(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// number is a float64 that JSON can hold: what isn't finite becomes one of the
// strings "NaN", "Infinity" and "-Infinity".
type number float64

// MarshalJSON keeps finite values exact.
func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	switch {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(v)
}

// notUTF8 are the bytes of a path that isn't UTF-8, nil for any other. JSON has texts only,
// so that such a path can't be opened by the one in it: the key beside it, which ends with
// _bytes, has these in base64.
func notUTF8(path string) []byte {
	if utf8.ValidString(path) {
		return nil
	}
	return []byte(path)
}

// anyNotUTF8 is notUTF8 for each of some paths, nil if all of these are UTF-8.
func anyNotUTF8(paths []string) [][]byte {
	if !slices.ContainsFunc(paths, func(path string) bool { return !utf8.ValidString(path) }) {
		return nil
	}
	list := make([][]byte, len(paths))
	for i, path := range paths {
		list[i] = notUTF8(path)
	}
	return list
}

// writeJSON writes an indented JSON text.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
