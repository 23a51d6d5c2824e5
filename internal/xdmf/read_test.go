package xdmf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReadGivesBackWhatWriteWrote(t *testing.T) {
	files, err := filepath.Glob("testdata/*.xmf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(data)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := Write(&b, s); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), data) {
				t.Errorf("written again it is\n%s", b.Bytes())
			}
		})
	}
}

func TestReadRefusesWhatItWouldNotWriteTheSame(t *testing.T) {
	good, err := os.ReadFile("testdata/a_series.xmf")
	if err != nil {
		t.Fatal(err)
	}
	slabs, err := os.ReadFile("testdata/hyperslabs.xmf")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{
		"another stride":        bytes.Replace(slabs, []byte("1 1 1 1"), []byte("1 1 2 1"), 1),
		"another start":         bytes.Replace(slabs, []byte("0 0 0 0 1"), []byte("0 0 1 0 1"), 1),
		"an index of letters":   bytes.Replace(slabs, []byte(">0 0 0 0 1"), []byte(">a 0 0 0 1"), 1),
		"a slab beyond the end": bytes.Replace(slabs, []byte(`Dimensions="2 3 4 5"`), []byte(`Dimensions="0 3 4 5"`), 1),
		"an extent of letters":  bytes.Replace(slabs, []byte(`Dimensions="2 3 4 5"`), []byte(`Dimensions="b 3 4 5"`), 1),
		"one item in a slab":    bytes.Replace(slabs, []byte(`<DataItem Dimensions="3 4" NumberType="Int" Precision="8" Format="XML">0 0 0 0 1 1 1 1 1 3 4 5</DataItem>`), nil, 1),
		"no colon in a slab":    bytes.Replace(slabs, []byte(".h5:/"), []byte(".h5/"), 1),
		"empty":                 nil,
		"not XML":               []byte("psi"),
		"truncated":             good[:len(good)/2],
		"another root":          []byte("<Other/>"),
		"a comment added":       bytes.Replace(good, []byte("<Domain>"), []byte("<Domain><!-- mine -->"), 1),
		"other white space":     bytes.Replace(good, []byte("  <Domain>"), []byte("<Domain>"), 1),
		"a dimension missing":   bytes.Replace(good, []byte(`Dimensions="3 4 5"/>`), []byte(`Dimensions="4 5"/>`), 1),
		"geometry missing":      bytes.ReplaceAll(good, []byte("Geometry"), []byte("Geometrie")),
		"text after the end":    append(bytes.Clone(good), "<a/>"...),
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(data); !errors.Is(err, ErrForeign) {
				t.Errorf("got %v, want ErrForeign", err)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.xmf")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, s); err != nil || !bytes.Equal(b.Bytes(), data) {
			t.Errorf("written again: %v\n%s", err, b.Bytes())
		}
	})
}
