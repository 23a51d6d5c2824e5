package publish

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// dumpTemplate is the pattern of the paths of dumps: a format of C's printf whose
// one argument is the increment, with %s for the id of the field besides. A % in the
// name of a directory that begins no verb is one, as it is to the C library of GNU.
type dumpTemplate struct {
	text  string
	root  string // what a relative path is relative to
	parts []templatePart
}

// templatePart is a verb, or a piece of text between verbs.
type templatePart struct {
	verb byte // 'd': the increment, 's': the id, 0: text
	text string

	left, plus, space, zero bool
	width                   int
	precision               int // -1: none
}

// maxVerbWidth bounds width and precision of a verb. No increment has more digits,
// and few names have more room.
const maxVerbWidth = 99

// parseTemplate parses a template, and makes it absolute, so that the series stays
// where it is when the process changes its working directory.
func parseTemplate(text string) (dumpTemplate, error) {
	t := dumpTemplate{text: text}
	if text == "" || strings.ContainsRune(text, 0) || os.IsPathSeparator(text[len(text)-1]) {
		return t, fmt.Errorf("template %q is not the path of a file", text)
	}
	verbs := map[byte]int{}
	for rest := text; rest != ""; {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			at = len(rest)
		}
		t.literal(rest[:at])
		if rest = rest[at:]; rest == "" {
			break
		}
		part, length, err := parseVerb(rest)
		if err != nil && inDirectory(rest) && !isConversion(rest) {
			part, length, err = templatePart{text: "%"}, 1, nil // printf prints it
		}
		if err != nil {
			return t, fmt.Errorf("template %q: %w", text, err)
		}
		rest = rest[length:]
		if part.verb == 0 {
			t.literal(part.text)
			continue
		}
		if verbs[part.verb]++; verbs[part.verb] > 1 {
			return t, fmt.Errorf("template %q has more than one verb for the %s", text,
				map[byte]string{'d': "increment", 's': "field"}[part.verb])
		}
		t.parts = append(t.parts, part)
	}
	if !filepath.IsAbs(text) {
		root, err := os.Getwd()
		if err != nil {
			return t, fmt.Errorf("template %q: %w", text, err)
		}
		t.root = root
	}
	return t, nil
}

// literal appends text, to the text before it if there is some.
func (t *dumpTemplate) literal(text string) {
	switch n := len(t.parts); {
	case text == "":
	case n > 0 && t.parts[n-1].verb == 0:
		t.parts[n-1].text += text
	default:
		t.parts = append(t.parts, templatePart{text: text})
	}
}

var errVerb = errors.New("a % begins neither a verb for the increment, like %d, %04d or %-6d, nor %s for the field; a % itself is %%")

// parseVerb parses the verb that text begins with.
func parseVerb(text string) (part templatePart, length int, err error) {
	at := 1
	next := func() byte {
		if at < len(text) {
			return text[at]
		}
		return 0
	}
	switch next() {
	case '%':
		return templatePart{text: "%"}, 2, nil
	case 's':
		return templatePart{verb: 's'}, 2, nil
	}
	part = templatePart{verb: 'd', precision: -1}
	flags := map[byte]*bool{'-': &part.left, '+': &part.plus, ' ': &part.space, '0': &part.zero}
	for flags[next()] != nil {
		*flags[next()] = true
		at++
	}
	number := func() (n int) {
		for ; next() >= '0' && next() <= '9' && n <= maxVerbWidth; at++ {
			n = 10*n + int(next()-'0')
		}
		return n
	}
	part.width = number()
	if next() == '.' {
		at++
		part.precision = number()
	}
	if part.width > maxVerbWidth || part.precision > maxVerbWidth {
		return part, 0, fmt.Errorf("a verb is wider than %d digits", maxVerbWidth)
	}
	switch next() {
	case 'u': // has no sign
		part.plus, part.space = false, false
	case 'd', 'i':
	default:
		return part, 0, errVerb
	}
	return part, at + 1, nil
}

// inDirectory reports whether text, the rest of a template, begins in the name of a
// directory.
func inDirectory(text string) bool { return directory(text) != "" }

// isConversion reports whether text begins with a conversion that C's printf knows,
// whatever it is given. It leaves other text that begins with a % as it is.
func isConversion(text string) bool {
	text = strings.TrimLeft(text[1:], "-+ #0'I")
	text = strings.TrimLeft(text, "0123456789*")
	if rest, ok := strings.CutPrefix(text, "."); ok {
		text = strings.TrimLeft(rest, "0123456789*")
	}
	text = strings.TrimLeft(text, "hlqLjzt")
	return text == "" || strings.Contains("diouxXeEfFgGaAcspnmCS%", text[:1])
}

// format is what C's printf makes of the number.
func (p templatePart) format(n int64) string {
	digits, sign := strconv.FormatInt(n, 10), ""
	switch {
	case n < 0:
		digits, sign = digits[1:], "-"
	case p.plus:
		sign = "+"
	case p.space:
		sign = " "
	}
	if p.precision == 0 && n == 0 {
		digits = ""
	}
	digits = strings.Repeat("0", max(0, p.precision-len(digits))) + digits
	fill := max(0, p.width-len(sign)-len(digits))
	switch {
	case p.left:
		return sign + digits + strings.Repeat(" ", fill)
	case p.zero && p.precision < 0:
		return sign + strings.Repeat("0", fill) + digits
	}
	return strings.Repeat(" ", fill) + sign + digits
}

// has reports whether the template has a verb.
func (t dumpTemplate) has(verb byte) bool {
	for _, p := range t.parts {
		if p.verb == verb {
			return true
		}
	}
	return false
}

// path returns the absolute path of the dump of a field.
func (t dumpTemplate) path(increment int64, id string) string {
	return t.under(t.expand(increment, id))
}

// under makes a path absolute.
func (t dumpTemplate) under(path string) string {
	if t.root == "" {
		return path
	}
	return vfs.Under(t.root, path)
}

func (t dumpTemplate) expand(increment int64, id string) string {
	var b strings.Builder
	for _, p := range t.parts {
		switch p.verb {
		case 'd':
			b.WriteString(p.format(increment))
		case 's':
			b.WriteString(id)
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// check checks that the template names files, one for each of the ids.
func (t dumpTemplate) check(ids []string) error {
	if len(ids) > 1 && !t.has('s') {
		return fmt.Errorf("template %q has no %%s for the ids of the %d fields", t.text, len(ids))
	}
	series := t.series(ids)
	for _, id := range ids {
		text := t.expand(0, id)
		switch name := strings.TrimPrefix(text, directory(text)); {
		case !vfs.IsFileName(name):
			return fmt.Errorf("template %q is not the path of a file", t.text)
		case t.path(0, id) == series:
			return fmt.Errorf("template %q is the path of the XDMF file of its series", t.text)
		}
	}
	return nil
}

// directory returns what a path has before its last element, with the separator at the
// end. Unlike [filepath.Dir] it leaves ".." as it is.
func directory(path string) string {
	for i := len(path); i > 0; i-- {
		if os.IsPathSeparator(path[i-1]) {
			return path[:i]
		}
	}
	return ""
}

// series returns the path of the XDMF file: that of the dumps without the number,
// and without the id where there are several, in the last directory that all dumps
// share.
func (t dumpTemplate) series(ids []string) string {
	elements := t.elements(ids)
	var dir []string // each with its separator
	for len(elements) > 1 && len(elements[0]) == 1 {
		dir = append(dir, elements[0][0]+string(filepath.Separator))
		elements = elements[1:]
	}
	var names []string
	for i, pieces := range elements {
		var name string
		for j, piece := range pieces {
			if j < len(pieces)-1 {
				name += strings.TrimRight(piece, "_-. ")
				continue
			}
			if i == len(elements)-1 {
				piece = strings.TrimSuffix(piece, filepath.Ext(piece))
			}
			name += piece
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if names == nil {
		names = []string{"series"}
	}
	return t.under(strings.Join(dir, "") + strings.Join(names, "_") + ".xmf")
}

// elements returns, for each element of the path, the texts between the verbs whose
// values change from dump to dump.
func (t dumpTemplate) elements(ids []string) [][]string {
	list := [][]string{{""}}
	text := func(s string) {
		for _, c := range []byte(s) {
			if os.IsPathSeparator(c) {
				list = append(list, []string{""})
				continue
			}
			e := list[len(list)-1]
			e[len(e)-1] += string([]byte{c})
		}
	}
	for _, p := range t.parts {
		switch {
		case p.verb == 0:
			text(p.text)
		case p.verb == 's' && len(ids) == 1:
			text(ids[0])
		default:
			list[len(list)-1] = append(list[len(list)-1], "")
		}
	}
	return list
}
