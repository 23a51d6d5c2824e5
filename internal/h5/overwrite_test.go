//go:build hdf5

package h5_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

func wantNumbers[T h5.Element](t *testing.T, f *h5.File, path string, want []T, shape ...int) {
	t.Helper()
	got, is, err := h5.Read[T](f, path)
	if err != nil || !slices.Equal(got, want) || !slices.Equal(is, shape) {
		t.Errorf("%s is %v of shape %v, %v; want %v of %v", path, got, is, err, want, shape)
	}
}

// What has the same type and shape is overwritten, and everything else stays as it is.
func TestOverwrite(t *testing.T) {
	f, _ := create(t)
	must(t, h5.Write(f, "one", []float64{1}))
	must(t, h5.Write(f, "list", []int64{1, 2}, 2))
	must(t, h5.Write(f, "block", []float32{1, 2, 3, 4}, 2, 2))
	must(t, h5.Write(f, "none", []float64(nil), 0))
	must(t, h5.Write(f, "yes", []bool{true}))
	must(t, h5.Write(f, "byte", []uint8{1}))
	must(t, f.WriteString("text", "four"))
	must(t, f.WriteStrings("texts", []string{"a", "bcd"}, h5.Fixed))
	must(t, f.WriteStrings("variable", []string{"a"}, h5.Variable))
	must(t, f.CreateGroup("group"))
	made := f.Created()
	for name, c := range map[string]struct {
		do   func() (bool, error)
		fits bool
	}{
		"a number":             {func() (bool, error) { return h5.Overwrite(f, "one", []float64{7}) }, true},
		"an integer for it":    {func() (bool, error) { return h5.Overwrite(f, "one", []int64{8}) }, false},
		"a list for it":        {func() (bool, error) { return h5.Overwrite(f, "one", []float64{8}, 1) }, false},
		"a list":               {func() (bool, error) { return h5.Overwrite(f, "list", []int64{5, 6}, 2) }, true},
		"a longer list":        {func() (bool, error) { return h5.Overwrite(f, "list", []int64{7, 8, 9}, 3) }, false},
		"a block":              {func() (bool, error) { return h5.Overwrite(f, "block", []float32{5, 6, 7, 8}, 2, 2) }, true},
		"a block as a list":    {func() (bool, error) { return h5.Overwrite(f, "block", []float32{0, 0, 0, 0}, 4) }, false},
		"no numbers":           {func() (bool, error) { return h5.Overwrite(f, "none", []float64{}, 0) }, true},
		"a bool":               {func() (bool, error) { return h5.Overwrite(f, "yes", []bool{false}) }, true},
		"a byte for a bool":    {func() (bool, error) { return h5.Overwrite(f, "yes", []uint8{1}) }, false},
		"a bool for a byte":    {func() (bool, error) { return h5.Overwrite(f, "byte", []bool{false}) }, false},
		"a number for a group": {func() (bool, error) { return h5.Overwrite(f, "group", []float64{1}) }, false},
		"a number for a text":  {func() (bool, error) { return h5.Overwrite(f, "text", []float64{1}) }, false},
		"a shorter text":       {func() (bool, error) { return f.OverwriteString("text", "é") }, true},
		"a longer text":        {func() (bool, error) { return f.OverwriteString("text", "fifth") }, false},
		"texts for a text":     {func() (bool, error) { return f.OverwriteStrings("text", []string{"a"}) }, false},
		"texts":                {func() (bool, error) { return f.OverwriteStrings("texts", []string{"", "xyz"}) }, true},
		"longer texts":         {func() (bool, error) { return f.OverwriteStrings("texts", []string{"", "long"}) }, false},
		"more texts":           {func() (bool, error) { return f.OverwriteStrings("texts", []string{"", "", ""}) }, false},
		"texts of any length":  {func() (bool, error) { return f.OverwriteStrings("variable", []string{"b"}) }, false},
		"a text for a number":  {func() (bool, error) { return f.OverwriteString("one", "a") }, false},
		"a text for a group":   {func() (bool, error) { return f.OverwriteString("group", "a") }, false},
	} {
		if fits, err := c.do(); err != nil || fits != c.fits {
			t.Errorf("%s: %v, %v; want %v", name, fits, err, c.fits)
		}
	}
	for name, err := range map[string]error{
		"nothing there":      failed(h5.Overwrite(f, "missing", []float64{1})),
		"no text there":      failed(f.OverwriteString("missing", "a")),
		"nothing in a group": failed(h5.Overwrite(f, "group/missing", []float64{1})),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := failed(h5.Overwrite(f, "list", []int64{1}, 2)); !errors.Is(err, h5.ErrShape) {
		t.Error(err)
	}
	if err := failed(f.OverwriteString("text", "\x00")); !errors.Is(err, h5.ErrText) {
		t.Error(err)
	}
	if n := f.Created(); n != made || n != 10 {
		t.Errorf("%d objects are made, were %d", n, made)
	}
	f = reopen(t, f)
	wantNumbers(t, f, "one", []float64{7})
	wantNumbers(t, f, "list", []int64{5, 6}, 2)
	wantNumbers(t, f, "block", []float32{5, 6, 7, 8}, 2, 2)
	wantNumbers(t, f, "none", []float64{}, 0)
	wantNumbers(t, f, "yes", []bool{false})
	wantNumbers(t, f, "byte", []uint8{1})
	wantStrings(t, f, "texts", []string{"", "xyz"})
	if s, err := f.ReadString("text"); err != nil || s != "é" {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := h5.Overwrite(f, "one", []float64{9}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that is open for reading: %v", err)
	}
}

func failed(_ bool, err error) error { return err }

// Rows come behind those that a dataset has, and only if it has as many as is said.
func TestAppend(t *testing.T) {
	f, _ := create(t)
	must(t, h5.CreateDataset[float64](f, "list", h5.Layout{Shape: []int{0}, Chunk: []int{2}, Extendible: true}))
	must(t, h5.CreateDataset[float64](f, "g/rows", h5.Layout{Shape: []int{1, 2, 3}, Chunk: []int{1, 2, 2}, Extendible: true}))
	must(t, h5.CreateDataset[bool](f, "yes", h5.Layout{Shape: []int{0}, Chunk: []int{8}, Extendible: true}))
	must(t, h5.Write(f, "fixed", []float64{1}, 1))
	must(t, h5.Append(f, "list", []float64{1}, 0))
	must(t, h5.Append(f, "list", []float64{2, 3, 4}, 1))
	must(t, h5.Append(f, "list", []float64{}, 4))
	must(t, h5.Append(f, "yes", []bool{true, false}, 0))
	must(t, h5.Append(f, "g/rows", []float64{1, 2, 3, 4, 5, 6}, 1, 2, 3))
	for name, c := range map[string]struct {
		err, want error
	}{
		"a row too many":    {h5.Append(f, "list", []float64{9}, 5), h5.ErrShape},
		"a row less":        {h5.Append(f, "list", []float64{9}, 3), h5.ErrShape},
		"another type":      {h5.Append(f, "list", []int64{9}, 4), h5.ErrType},
		"other rows":        {h5.Append(f, "g/rows", []float64{1, 2, 3, 4, 5, 6}, 2, 3, 2), h5.ErrShape},
		"other axes":        {h5.Append(f, "g/rows", []float64{1}, 2), h5.ErrShape},
		"half a row":        {h5.Append(f, "g/rows", []float64{1, 2, 3}, 2, 2, 3), h5.ErrShape},
		"rows of nothing":   {h5.Append(f, "list", []float64{1}, 4, 0), h5.ErrShape},
		"less than no rows": {h5.Append(f, "list", []float64{1}, -1), h5.ErrShape},
		"what can't grow":   {h5.Append(f, "fixed", []float64{2}, 1), h5.ErrShape},
		"a group":           {h5.Append(f, "g", []float64{1}, 0), h5.ErrKind},
		"nothing":           {h5.Append(f, "none", []float64{1}, 0), fs.ErrNotExist},
		"a bad name":        {h5.Append(f, "a//b", []float64{1}, 0), h5.ErrName},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	must(t, h5.Append(f, "list", []float64{5}, 4)) // none of these has spoiled the file
	f = reopen(t, f)
	wantNumbers(t, f, "list", []float64{1, 2, 3, 4, 5}, 5)
	wantNumbers(t, f, "yes", []bool{true, false}, 2)
	wantNumbers(t, f, "g/rows", []float64{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6}, 2, 2, 3)
	wantNumbers(t, f, "fixed", []float64{1}, 1)
}

func TestFixedStringsGrow(t *testing.T) {
	f, _ := create(t)
	must(t, f.CreateFixedStrings("list", []string{"a", ""}, 4))
	must(t, f.AppendFixedStrings("list", []string{"four", "é"}))
	must(t, f.AppendFixedStrings("list", nil))
	must(t, f.CreateFixedStrings("none", nil, 2))
	must(t, f.AppendFixedStrings("none", []string{"x"}))
	must(t, f.CreateStrings("any", []string{"a"}))
	must(t, f.WriteStrings("fixed", []string{"a"}, h5.Fixed))
	for name, c := range map[string]struct {
		err, want error
		says      string
	}{
		"a longer one":      {f.AppendFixedStrings("list", []string{"b", "fifth"}), h5.ErrText, "string 1 has 5 bytes"},
		"of any length":     {f.AppendFixedStrings("any", []string{"b"}), h5.ErrType, "one length"},
		"what can't grow":   {f.AppendFixedStrings("fixed", []string{"b"}), h5.ErrShape, "can't take 1 more"},
		"too long at first": {f.CreateFixedStrings("new", []string{"abc"}, 2), h5.ErrText, "string 0 has 3 bytes"},
		"of no length":      {f.CreateFixedStrings("new", nil, 0), h5.ErrShape, "strings of 0 bytes"},
		"NUL":               {f.AppendFixedStrings("list", []string{"\x00"}), h5.ErrText, "string 0"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", name, c.err, c.want, c.says)
		}
	}
	f = reopen(t, f)
	wantStrings(t, f, "list", []string{"a", "", "four", "é"})
	wantStrings(t, f, "none", []string{"x"})
}
