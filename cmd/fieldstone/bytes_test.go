package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// odd is a name that is no UTF-8, as any bytes are a name where files have such.
const odd = "caf\xe9"

// oddDirectory makes a directory with such a name, if the filesystem takes it.
func oddDirectory(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir(odd, 0o777); err != nil {
		t.Skip("names are UTF-8 here:", err)
	}
}

// bytesIn finds all keys that end with _bytes, and checks that the key without that has
// the same path as text.
func bytesIn(t *testing.T, v any) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	decode := func(key string, raw, text any) {
		data, err := base64.StdEncoding.DecodeString(raw.(string))
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got := text.(string); strings.ToValidUTF8(string(data), "\ufffd") != got || string(data) == got {
			t.Errorf("%s is %q, the text is %q", key, data, got)
		}
		found[key] = append(found[key], string(data))
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, member := range v {
				plain, ok := strings.CutSuffix(key, "_bytes")
				text, there := v[plain]
				switch member := member.(type) {
				case string:
					if ok && there {
						decode(key, member, text)
					}
				case []any:
					for i, element := range member {
						if s, isText := element.(string); ok && there && isText {
							decode(key, s, text.([]any)[i])
						}
					}
				case map[string]any:
					for name, element := range member {
						if s, isText := element.(string); ok && there && isText {
							decode(key, s, text.(map[string]any)[name])
						}
					}
				}
				if !ok {
					visit(member)
				}
			}
		case []any:
			for _, element := range v {
				visit(element)
			}
		}
	}
	visit(v)
	return found
}

// checkBytes runs a command with JSON output, and opens what its paths name.
func checkBytes(t *testing.T, status int, keys string, args ...string) {
	t.Helper()
	o := mustRun(t, status, args...)
	found := bytesIn(t, decodeJSON[any](t, o))
	for _, key := range strings.Fields(keys) {
		if len(found[key]) == 0 {
			t.Errorf("%q: no %s in\n%s", args, key, o.out)
		}
	}
	for key, paths := range found {
		for _, path := range paths {
			if key == "name_bytes" || key == "runs_bytes" {
				continue // below a directory
			}
			f, err := os.Open(path)
			if err != nil {
				t.Errorf("%q: %s: %v", args, key, err)
				continue
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestPathsThatAreNotUTF8InJSON(t *testing.T) {
	oddDirectory(t)
	a, b := filepath.Join(odd, "step_10"), filepath.Join(odd, "other\xff")
	sample{increment: 10}.save(t, a)
	sample{increment: 20}.save(t, b)
	sample{increment: 20}.save(t, filepath.Join(odd, "unlisted/step_1"))
	write(t, filepath.Join(odd, "run\xfe.checkpoint.h5"), nil)
	checkBytes(t, 0, "path_bytes", "show", "--json", a)
	checkBytes(t, 0, "path_bytes", "show", "--json", odd)
	checkBytes(t, 0, "path_bytes", "verify", "--json", a, b)
	checkBytes(t, 1, "a_bytes b_bytes", "diff", "--json", "--metadata", a, b)
	checkBytes(t, 0, "a_bytes b_bytes", "diff", "--json", a, a)
	checkBytes(t, 0, "directory_bytes name_bytes runs_bytes", "ls", "--json", odd)
	remove(t, filepath.Join(odd, "run\xfe.checkpoint.h5"))
	checkBytes(t, 0, "a_bytes b_bytes name_bytes", "diff", "--json", odd, odd)
	// UTF-8 needs no second key.
	sample{increment: 1}.save(t, "ψ/step_1")
	for _, args := range [][]string{{"show", "--json", "ψ"}, {"ls", "--json", "ψ"}, {"verify", "--json", "ψ"}, {"diff", "--json", "ψ", "ψ"}} {
		if o := mustRun(t, 0, args...); strings.Contains(o.out, "_bytes") {
			t.Errorf("%q: %s", args, o.out)
		}
	}
	// For people the bytes are escaped.
	says(t, mustRun(t, 0, "ls", odd).out, `other\xff`)
	// What the metadata don't list may have any name.
	write(t, filepath.Join(a, "fields/x\xff.bin"), nil)
	for _, command := range []string{"show", "verify"} {
		o := mustRun(t, 0, command, "--json", a)
		found := bytesIn(t, decodeJSON[any](t, o))["unlisted_bytes"]
		if len(found) != 1 || found[0] != "fields/x\xff.bin" {
			t.Errorf("%s: %q in\n%s", command, found, o.out)
		}
		says(t, o.errors, `fields/x\xff.bin`)
	}
}
