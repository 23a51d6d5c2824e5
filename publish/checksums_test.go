package publish

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestChecksumsText(t *testing.T) {
	files := []fileChecksum{
		{metadataFile, 0xae8b14860a799888}, {sidecarFile, 1}, {fieldPath("psi"), 0}, {fieldPath("a b  é"), 0xffffffffffffffff},
	}
	const want = `ae8b14860a799888  metadata.json
0000000000000001  sidecar.json
0000000000000000  fields/psi.bin
ffffffffffffffff  fields/a b  é.bin
`
	text := formatChecksums(files)
	if string(text) != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	got, err := parseChecksums(text)
	if err != nil || !reflect.DeepEqual(got, files) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestParseChecksumsRefuses(t *testing.T) {
	const sum = "ae8b14860a799888"
	for _, c := range []struct{ name, text, want string }{
		{"a cut last line", sum + "  metadata.json", "line 1: the end is missing"},
		{"an empty line", sum + "  metadata.json\n\n", "line 2: want 16 hexadecimal digits"},
		{"few digits", "ae8b  metadata.json\n", "line 1: want 16 hexadecimal digits"},
		{"many digits", sum + "0  metadata.json\n", "line 1: want 16 hexadecimal digits, two spaces"},
		{"capital digits", strings.ToUpper(sum) + "  metadata.json\n", "lower-case hexadecimal"},
		{"a sign", "+e8b14860a799888  metadata.json\n", "lower-case hexadecimal"},
		{"other characters", "ge8b14860a799888  metadata.json\n", "lower-case hexadecimal"},
		{"one space", sum + " metadata.json\n", "two spaces"},
		{"a tab", sum + "\t\tmetadata.json\n", "two spaces"},
		{"three spaces", sum + "   metadata.json\n", `" metadata.json" is not the path of a bundle's file`},
		{"a carriage return", sum + "  metadata.json\r\n", "is not the path of a bundle's file"},
		{"no path", sum + "  \n", `"" is not the path`},
		{"itself", sum + "  checksums.txt\n", "is not the path"},
		{"another directory", sum + "  other/psi.bin\n", "is not the path"},
		{"another suffix", sum + "  fields/psi.txt\n", "is not the path"},
		{"a field without id", sum + "  fields/.bin\n", `field id "": must not be empty`},
		{"a path that leads out", sum + "  fields/../../x.bin\n", "must not contain a slash"},
		{"an absolute path", sum + "  /etc/passwd\n", "is not the path"},
		{"a path with a dot", sum + "  ./metadata.json\n", "is not the path"},
		{"a file twice", sum + "  metadata.json\n" + sum + "  metadata.json\n", `line 2: "metadata.json" is listed on line 1 already`},
		{"a path that is not UTF-8", sum + "  fields/\xff.bin\n", "must be valid UTF-8"},
		{"too large", strings.Repeat(" ", maxChecksumsBytes+1), "bytes, at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if files, err := parseChecksums([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %q", files, err, c.want)
			}
		})
	}
}

func TestChecksumsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := []fileChecksum{{metadataFile, rapid.Uint64().Draw(t, "crc")}}
		for _, id := range rapid.SliceOfNDistinct(anyID(), 0, 5, func(s string) string { return s }).Draw(t, "ids") {
			files = append(files, fileChecksum{fieldPath(id), rapid.Uint64().Draw(t, "crc")})
		}
		got, err := parseChecksums(formatChecksums(files))
		if err != nil || !reflect.DeepEqual(got, files) {
			t.Fatalf("got %v, %v, want %v", got, err, files)
		}
	})
}

func FuzzParseChecksums(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "golden-v2", "checksums.txt"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte("0000000000000000  fields/a.bin\n0000000000000001  fields/..bin\n"))
	f.Add([]byte("ae8b14860a799888  fields/../a.bin\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := parseChecksums(text)
		if err != nil {
			return
		}
		if again := formatChecksums(files); string(again) != string(text) {
			t.Fatalf("written as %q", again)
		}
		for _, file := range files {
			if !filepath.IsLocal(file.Path) {
				t.Fatalf("%q leads out of the bundle", file.Path)
			}
		}
	})
}
