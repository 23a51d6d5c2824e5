//go:build hdf5

package h5_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// python is the interpreter that Debian's python3-h5py belongs to.
const python = "/usr/bin/python3"

func runPython(t *testing.T, args ...string) {
	t.Helper()
	if err := exec.Command(python, "-c", "import h5py").Run(); err != nil {
		if os.Getenv("FIELDSTONE_REQUIRE_H5PY") != "" {
			t.Fatal("h5py is required:", err)
		}
		t.Skip("no h5py to compare with:", err)
	}
	cmd := exec.Command(python, append([]string{"testdata/check.py"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func writeNumbers[T h5.Element](t *testing.T, f *h5.File, name string, data ...T) {
	t.Helper()
	must(t, h5.Write(f, "numbers/"+name, data, len(data)))
	must(t, h5.SetAttribute(f, "numbers", name, data, len(data)))
}

func TestPythonReadsWhatWeWrite(t *testing.T) {
	f, name := create(t)
	writeNumbers[int8](t, f, "i1", 0, 1, 100)
	writeNumbers[int16](t, f, "i2", 0, 1, 100)
	writeNumbers[int32](t, f, "i4", 0, 1, 100)
	writeNumbers[int64](t, f, "i8", 0, 1, 100)
	writeNumbers[uint8](t, f, "u1", 0, 1, 100)
	writeNumbers[uint16](t, f, "u2", 0, 1, 100)
	writeNumbers[uint32](t, f, "u4", 0, 1, 100)
	writeNumbers[uint64](t, f, "u8", 0, 1, 100)
	writeNumbers[float32](t, f, "f4", 0, 1, 100)
	writeNumbers[float64](t, f, "f8", 0, 1, 100)
	must(t, h5.Write(f, "bools", []bool{true, false}, 2))
	must(t, h5.SetAttribute(f, "bools", "flag", []bool{true}))
	block := make([]float64, 24)
	for i := range block {
		block[i] = float64(i)
	}
	must(t, h5.Write(f, "block", block, 2, 3, 4))
	must(t, h5.Write(f, "scalar", []float64{1.5}))
	must(t, h5.Write(f, "empty", []float64{}, 0, 3))
	must(t, f.WriteString("text", "Größe µm"))
	must(t, f.WriteString("nothing", ""))
	must(t, f.WriteStrings("fixed", []string{"a", "", "long é"}, h5.Fixed))
	must(t, f.WriteStrings("variable", []string{"a", "", "long é"}, h5.Variable))
	must(t, f.SetAttributeString("text", "unit", "V/m"))
	must(t, f.SetAttributeStrings("text", "list", []string{"x", "yy"}, h5.Variable))
	must(t, h5.CreateDataset[float64](f, "grown", h5.Layout{Shape: []int{3, 4}, Chunk: []int{2, 4}, Extendible: true, Deflate: 6}))
	must(t, f.Extend("grown", 5))
	must(t, h5.WriteSlab(f, "grown", block[:20], []int{0, 0}, []int{5, 4}))
	must(t, f.Close())
	runPython(t, "check", name)

	dump, err := exec.Command("h5dump", "-H", name).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("FIELDSTONE_REQUIRE_H5PY") == "" {
		t.Skip("no h5dump to compare with")
	}
	if err != nil || !strings.Contains(string(dump), "DATASPACE  SIMPLE { ( 2, 3, 4 ) / ( 2, 3, 4 ) }") {
		t.Errorf("h5dump: %v: %s", err, dump)
	}
}

func readNumbers[T h5.Element](t *testing.T, f *h5.File, name string, want ...T) {
	t.Helper()
	for _, order := range []string{"le", "be"} {
		path := "numbers/" + order + name
		got, shape, err := h5.Read[T](f, path)
		if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(shape, []int{len(want)}) {
			t.Errorf("%s: %v %v %v", path, got, shape, err)
		}
		got, _, err = h5.Attribute[T](f, path, "v")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: attribute: %v %v", path, got, err)
		}
		part := make([]T, 2)
		if err := h5.ReadSlab(f, path, part, []int{1}, []int{2}); err != nil || !reflect.DeepEqual(part, want[1:]) {
			t.Errorf("%s: slab: %v %v", path, part, err)
		}
	}
}

func readNone[T h5.Element](t *testing.T, f *h5.File, name string) {
	t.Helper()
	got, shape, err := h5.Read[T](f, "none/"+name)
	if err != nil || len(got) != 0 || !slices.Equal(shape, []int{0}) {
		t.Errorf("no %s: %v of shape %v, %v", name, got, shape, err)
	}
	if name == "bool" {
		return
	}
	if got, shape, err := h5.Attribute[T](f, "none/"+name, "v"); err != nil || len(got) != 0 || !slices.Equal(shape, []int{0}) {
		t.Errorf("no %s: attribute: %v of shape %v, %v", name, got, shape, err)
	}
}

// What others write for a bool, for no number at all, and for one text.
func readForms(t *testing.T, f *h5.File) {
	t.Helper()
	want := []bool{true, false, true}
	for _, path := range []string{"bits", "bigbits", "plain/i1", "plain/i2", "plain/i4", "plain/i8", "plain/u1", "plain/u2", "plain/u4", "plain/u8"} {
		if got, _, err := h5.ReadAs[bool](f, path); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
		if got, _, err := h5.AttributeAs[bool](f, path, "v"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: attribute: %v, %v", path, got, err)
		}
	}
	for _, path := range []string{"bits", "bigbits"} {
		part := make([]bool, 2)
		if err := h5.ReadSlab(f, path, part, []int{1}, []int{2}); err != nil || !slices.Equal(part, want[1:]) {
			t.Errorf("%s: slab: %v, %v", path, part, err)
		}
		if info, err := f.Stat(path); err != nil || info.Type != h5.Bool || info.Class != "bit field" {
			t.Errorf("%s is %v, %v", path, info, err)
		}
	}
	if got, shape, err := h5.Read[bool](f, "bit"); err != nil || shape != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("one bit field: %v of shape %v, %v", got, shape, err)
	}
	for path, want := range map[string][]float64{"whole": {0, -5, 1 << 53}, "wholeu": {0, 1 << 63}} {
		if got, _, err := h5.ReadAs[float64](f, path); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	readNone[bool](t, f, "bool")
	readNone[int8](t, f, "i1")
	readNone[int16](t, f, "i2")
	readNone[int32](t, f, "i4")
	readNone[int64](t, f, "i8")
	readNone[uint8](t, f, "u1")
	readNone[uint16](t, f, "u2")
	readNone[uint32](t, f, "u4")
	readNone[uint64](t, f, "u8")
	readNone[float32](t, f, "f4")
	readNone[float64](t, f, "f8")
	if got, err := f.ReadString("onetext"); err != nil || got != "alone" {
		t.Errorf("a list of one text: %q, %v", got, err)
	}
	if got, err := f.AttributeString("onetext", "v"); err != nil || got != "alone" {
		t.Errorf("an attribute that is a list of one text: %q, %v", got, err)
	}
}

func TestWeReadWhatPythonWrote(t *testing.T) {
	for _, version := range []string{"EARLIEST", "LATEST"} {
		t.Run(version, func(t *testing.T) {
			watch(t)
			name := filepath.Join(t.TempDir(), "python.h5")
			runPython(t, "make", name, version)
			f, err := h5.Open(name)
			must(t, err)
			defer func() { must(t, f.Close()) }()
			readNumbers[int8](t, f, "i1", 0, 1, 100)
			readNumbers[int16](t, f, "i2", 0, 1, 100)
			readNumbers[int32](t, f, "i4", 0, 1, 100)
			readNumbers[int64](t, f, "i8", 0, 1, 100)
			readNumbers[uint8](t, f, "u1", 0, 1, 100)
			readNumbers[uint16](t, f, "u2", 0, 1, 100)
			readNumbers[uint32](t, f, "u4", 0, 1, 100)
			readNumbers[uint64](t, f, "u8", 0, 1, 100)
			readNumbers[float32](t, f, "f4", 0, 1, 100)
			readNumbers[float64](t, f, "f8", 0, 1, 100)
			for _, path := range []string{"bools", "bytes"} {
				if got, _, err := h5.Read[bool](f, path); err != nil || !reflect.DeepEqual(got, []bool{true, false}) {
					t.Errorf("%s: %v, %v", path, got, err)
				}
			}
			readForms(t, f)
			if got, _, err := h5.Attribute[bool](f, "bools", "flag"); err != nil || !got[0] {
				t.Error(got, err)
			}
			for path, want := range map[string]string{"text": "Größe µm", "soft": "Größe µm", "emptytext": ""} {
				if got, err := f.ReadString(path); err != nil || got != want {
					t.Errorf("%s: %q, %v", path, got, err)
				}
			}
			for name, want := range map[string]string{"text": "V/m", "null": ""} {
				if got, err := f.AttributeString(name, map[string]string{"text": "unit", "null": "none"}[name]); err != nil || got != want {
					t.Errorf("attribute of %s: %q, %v", name, got, err)
				}
			}
			if got, err := f.AttributeStrings("text", "list"); err != nil || !reflect.DeepEqual(got, []string{"x", "", "yyy"}) {
				t.Errorf("%q, %v", got, err)
			}
			many := make([]string, 50)
			for i := range many {
				many[i] = fmt.Sprint("s", i)
			}
			for path, want := range map[string][]string{
				"variable": {"a", "", "long é"}, "ascii": {"a", "", "bcd"}, "chunked": many,
				"term": {"a", "", "b c"}, "null": {"a", "", "b c"}, "space": {"a", "", "b c"},
			} {
				if got, err := f.ReadStrings(path); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %q, %v", path, got, err)
				}
			}
			if got, _, err := h5.Read[float64](f, "sparse"); err != nil || len(got) != 1000 || got[999] != 0 {
				t.Error(len(got), err)
			}

			for _, c := range []struct {
				path string
				err  error
				want error
				says string
			}{
				{"bad", second(h5.Read[bool](f, "bad")), h5.ErrType, "element 1 is 2"},
				{"badbits", second(h5.Read[bool](f, "badbits")), h5.ErrType, "element 2 is 6"},
				{"widebits", second(h5.ReadAs[bool](f, "widebits")), h5.ErrType, "bit field of 2 bytes"},
				{"minus", second(h5.ReadAs[bool](f, "minus")), h5.ErrType, "element 1 is -1"},
				{"large", second(h5.ReadAs[bool](f, "large")), h5.ErrType, "element 1 is 256"},
				{"odd", second(h5.ReadAs[float64](f, "odd")), h5.ErrType, "element 1 is 9007199254740993"},
				{"oddu", second(h5.ReadAs[float64](f, "oddu")), h5.ErrType, "element 1 is 18446744073709551615"},
				{"most", second(h5.ReadAs[float64](f, "most")), h5.ErrType, "element 0 is 9223372036854775807"},
				{"whole", second(h5.Read[float64](f, "whole")), h5.ErrType, "int64, not float64"},
				{"real", second(h5.ReadAs[bool](f, "real")), h5.ErrType, "float64, not bool"},
				{"colors", second(h5.ReadAs[bool](f, "colors")), h5.ErrType, "enumeration of 1 bytes"},
				{"plain", second(h5.Read[bool](f, "plain/u1")), h5.ErrType, "uint8, not bool"},
				{"variable", errOf(f.ReadString("variable")), h5.ErrShape, "shape [3]"},
				{"compound", second(h5.Read[float64](f, "compound")), h5.ErrType, "compound of 12 bytes"},
				{"complex", second(h5.Read[float64](f, "complex")), h5.ErrType, "compound"},
				{"half", second(h5.ReadAs[float64](f, "half")), h5.ErrType, "float of 2 bytes"},
				{"opaque", errOf(f.ReadString("opaque")), h5.ErrType, "opaque"},
				{"reference", second(h5.Read[int64](f, "reference")), h5.ErrType, "reference"},
				{"sequence", second(h5.Read[int32](f, "sequence")), h5.ErrType, "sequence"},
				{"type", second(h5.Read[int32](f, "type")), h5.ErrKind, "named type"},
				{"loop/a", errOf(f.Stat("loop/a")), h5.ErrLink, "too many links"},
				{"dangling", errOf(f.Stat("dangling")), fs.ErrNotExist, "dangling"},
				{"external", errOf(f.Stat("external")), h5.ErrLink, "another file"},
				{"via", errOf(f.Stat("via")), h5.ErrLink, "another file"},
				{"elsewhere", second(h5.Read[uint8](f, "elsewhere")), h5.ErrLink, "another file"},
				{"virtual", second(h5.Read[float64](f, "virtual")), h5.ErrLink, "another file"},
				{"huge", second(h5.Read[float64](f, "huge")), h5.ErrTooLarge, "[1099511627776 1024]"},
				{"overflow", second(h5.Read[uint8](f, "overflow")), h5.ErrTooLarge, "[1099511627776 1099511627776]"},
				{"hugetext", errOf(f.ReadStrings("hugetext")), h5.ErrTooLarge, "[1099511627776]"},
				{"cycle", f.Walk("cycle", func(string, h5.Entry) error { return nil }), h5.ErrLink, "cycle/inner/back: refused link: the group is also cycle"},
				{"swapped", errOf(f.Pieces("swapped", 0, 10)), h5.ErrType, "not in the form of float64"},
				{"n", f.Walk("n", func(string, h5.Entry) error { return nil }), h5.ErrLink, "deeper than 144"},
			} {
				t.Run(c.path, func(t *testing.T) {
					if !errors.Is(c.err, c.want) {
						t.Fatalf("got %v, want %v", c.err, c.want)
					}
					for _, s := range []string{name, c.path, c.says} {
						if !strings.Contains(c.err.Error(), s) {
							t.Errorf("%v does not say %q", c.err, s)
						}
					}
				})
			}
			entries, err := f.List("/")
			must(t, err)
			if !slices.IsSortedFunc(entries, func(a, b h5.Entry) int { return strings.Compare(a.Name, b.Name) }) {
				t.Errorf("a group that keeps no order is listed as %v", entries)
			}
			kinds := map[string]h5.Kind{}
			for _, e := range entries {
				kinds[e.Name] = e.Kind
			}
			for name, want := range map[string]h5.Kind{
				"soft": h5.SoftLink, "external": h5.ExternalLink, "type": h5.NamedType, "loop": h5.Group, "text": h5.Dataset,
			} {
				if kinds[name] != want {
					t.Errorf("%s is a %v", name, kinds[name])
				}
			}
			// Nor is another file written to.
			content, err := os.ReadFile(name)
			must(t, err)
			copied := filepath.Join(t.TempDir(), "copy.h5")
			must(t, os.WriteFile(copied, content, 0o666))
			w, err := h5.OpenReadWrite(copied)
			must(t, err)
			for _, path := range []string{"external", "via"} {
				if err := h5.Append(w, path, []float64{1}, 0); !errors.Is(err, h5.ErrLink) {
					t.Errorf("append to %s: %v", path, err)
				}
			}
			must(t, w.Close())
		})
	}
}
