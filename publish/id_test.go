package publish

import (
	"strings"
	"testing"
)

func TestCheckID(t *testing.T) {
	for _, c := range []struct{ name, id, want string }{
		{"a plain name", "psi", ""},
		{"spaces and UTF-8", "phase field φ", ""},
		{"a leading dot", ".psi", ""},
		{"three dots", "...", ""},
		{"a backslash", `a\b`, ""},
		{"a suffix like ours", "psi.bin", ""},
		{"the longest name", strings.Repeat("x", 251), ""},
		{"empty", "", "must not be empty"},
		{"the directory", ".", "is the name of a directory"},
		{"the parent", "..", "is the name of a directory"},
		{"a slash", "a/b", "must not contain a slash"},
		{"an absolute path", "/etc/passwd", "must not contain a slash"},
		{"a path that leads out", "../x", "must not contain a slash"},
		{"NUL", "a\x00", "must not contain control characters"},
		{"a line break", "a\nb", "must not contain control characters"},
		{"DEL", "\x7f", "must not contain control characters"},
		{"a control character beyond ASCII", "\u0085", "must not contain control characters"},
		{"invalid UTF-8", "\xc3", "must be valid UTF-8"},
		{"too long", strings.Repeat("x", 252), "252 bytes, at most 251"},
		{"too long in bytes only", strings.Repeat("é", 126), "252 bytes, at most 251"},
		{"very long", strings.Repeat("x", 1<<20), "bytes, at most 251"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckID(c.id)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case err != nil && len(err.Error()) > 300:
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestCheckIDs(t *testing.T) {
	for _, c := range []struct {
		name string
		ids  []string
		want string
	}{
		{"none", nil, ""},
		{"different ones", []string{"a", "A", "a "}, ""},
		{"one twice", []string{"a", "b", "a"}, `field id "a": given twice, as field 0 and 2`},
		{"a bad one", []string{"a", "b/c"}, `field id "b/c"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckIDs(c.ids)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
