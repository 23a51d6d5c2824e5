//go:build hdf5

package h5_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// numbered gives strings that differ, of several lengths, some of them empty.
func numbered(from, n int) []string {
	list := make([]string, n)
	for i := range list {
		if (from+i)%5 > 0 {
			list[i] = fmt.Sprintf("%d µ%s", from+i, strings.Repeat("x", (from+i)*7%90))
		}
	}
	return list
}

func wantStrings(t *testing.T, f *h5.File, path string, want []string) {
	t.Helper()
	got, err := f.ReadStrings(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %d strings, want %d, %v: %.200q", path, len(got), len(want), err, got)
	}
}

func TestListsOfStringsGrow(t *testing.T) {
	for _, start := range []int{0, 1, 255, 256, 257, 600} {
		t.Run(fmt.Sprint("from ", start), func(t *testing.T) {
			f, name := create(t)
			want := numbered(0, start)
			must(t, f.CreateStrings("g/list", want))
			info, err := f.Stat("g/list")
			if err != nil || info.Type != h5.String || !info.Variable || !slices.Equal(info.Shape, []int{start}) ||
				!slices.Equal(info.Max, []int{h5.Unlimited}) || info.Chunk[0]*16 != 4096 {
				t.Errorf("%+v, %v", info, err)
			}
			for _, n := range []int{0, 1, 3, 256, 0, 300} {
				more := numbered(len(want), n)
				must(t, f.AppendStrings("g/list", more))
				want = append(want, more...)
				wantStrings(t, f, "g/list", want) // from the file that is being written
				must(t, f.Close())
				f, err = h5.OpenReadWrite(name)
				must(t, err)
				wantStrings(t, f, "g/list", want)
			}
			// What an extended list has no text for is empty.
			must(t, f.Extend("g/list", len(want)+2))
			must(t, f.AppendStrings("g/list", []string{"end"}))
			must(t, f.Sync())
			want = append(want, "", "", "end")
			wantStrings(t, reopen(t, f), "g/list", want)
		})
	}
}

func TestOthersReadListsThatGrew(t *testing.T) {
	f, name := create(t)
	must(t, f.CreateStrings("none", nil))
	must(t, f.CreateStrings("grown", []string{"a", "", "long é"}))
	must(t, f.Close())
	f, err := h5.OpenReadWrite(name)
	must(t, err)
	for i := range 300 {
		must(t, f.AppendStrings("grown", []string{fmt.Sprint("s", i)}))
	}
	must(t, f.Extend("grown", 305))
	must(t, f.Close())
	runPython(t, "grown", name)
	dump, err := exec.Command("h5dump", "-d", "grown", name).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("FIELDSTONE_REQUIRE_H5PY") == "" {
		t.Skip("no h5dump to compare with")
	}
	for _, s := range []string{"STRSIZE H5T_VARIABLE", "CSET H5T_CSET_UTF8", "( 305 ) / ( H5S_UNLIMITED )", `"s299"`} {
		if err != nil || !strings.Contains(string(dump), s) {
			t.Errorf("h5dump says no %s: %v: %.500s", s, err, dump)
		}
	}
}

// Lists that others made grow if they are such lists.
func TestListsOfOthersGrow(t *testing.T) {
	f, name := create(t)
	must(t, f.Close())
	runPython(t, "growing", name)
	f, err := h5.OpenReadWrite(name)
	must(t, err)
	for _, path := range []string{"text", "ascii", "packed"} {
		must(t, f.AppendStrings(path, []string{"b", "", "c"}))
	}
	must(t, f.AppendStrings("text", []string{"é"}))
	if err := f.AppendStrings("ascii", []string{"b", "é"}); !errors.Is(err, h5.ErrText) || !strings.Contains(err.Error(), "string 1") {
		t.Error(err)
	}
	must(t, f.AppendStrings("bounded", []string{"b"}))
	if err := f.AppendStrings("bounded", []string{"b", "c", "d"}); !errors.Is(err, h5.ErrShape) {
		t.Error(err)
	}
	if err := f.AppendStrings("fixed", []string{"b"}); !errors.Is(err, h5.ErrType) {
		t.Error(err)
	}
	f = reopen(t, f)
	wantStrings(t, f, "text", []string{"a", "b", "", "c", "é"})
	wantStrings(t, f, "ascii", []string{"a", "b", "", "c"})
	wantStrings(t, f, "packed", []string{"a", "b", "", "c"})
	wantStrings(t, f, "bounded", []string{"a", "b"})
	wantStrings(t, f, "fixed", []string{"a"})
}

func TestWhatDoesNotGrowIsRefused(t *testing.T) {
	f, name := create(t)
	must(t, f.CreateStrings("list", []string{"a"}))
	must(t, f.WriteStrings("variable", []string{"a"}, h5.Variable))
	must(t, f.WriteStrings("fixed", []string{"a"}, h5.Fixed))
	must(t, f.WriteString("one", "a"))
	must(t, h5.CreateDataset[float64](f, "numbers", h5.Layout{Shape: []int{0}, Chunk: []int{8}, Extendible: true}))
	must(t, f.CreateGroup("group"))
	b := []string{"b"}
	for _, c := range []struct {
		name, path string
		err        error
		want       error
		says       string
	}{
		{"an existing list", "list", f.CreateStrings("list", b), fs.ErrExist, "write"},
		{"NUL in a new list", "new", f.CreateStrings("new", []string{"a", "\x00"}), h5.ErrText, "string 1"},
		{"no UTF-8 in a new list", "new", f.CreateStrings("new", []string{"\xff"}), h5.ErrText, "string 0"},
		{"a bad name", "a//b", f.CreateStrings("a//b", b), h5.ErrName, "a//b"},
		{"NUL", "list", f.AppendStrings("list", []string{"a", "\x00"}), h5.ErrText, "string 1"},
		{"no UTF-8", "list", f.AppendStrings("list", []string{"\xff"}), h5.ErrText, "string 0"},
		{"all of one length", "fixed", f.AppendStrings("fixed", b), h5.ErrType, "strings of 1 bytes"},
		{"a list that can't", "variable", f.AppendStrings("variable", b), h5.ErrShape, "shape [1], at most [1], can't take 1 more"},
		{"one string", "one", f.AppendStrings("one", b), h5.ErrType, "append"},
		{"numbers", "numbers", f.AppendStrings("numbers", b), h5.ErrType, "float64, not string"},
		{"a group", "group", f.AppendStrings("group", b), h5.ErrKind, "group, not a dataset"},
		{"nothing", "none", f.AppendStrings("none", b), fs.ErrNotExist, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
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
	must(t, f.Sync()) // none of it counts as a failure
	f = reopen(t, f)
	wantStrings(t, f, "list", []string{"a"})
	wantStrings(t, f, "variable", []string{"a"})
	if err := f.AppendStrings("list", b); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if there, err := f.Exists("new"); there || err != nil {
		t.Error(there, err)
	}
}

// What is added costs about its text and a reference of 16 bytes for each string.
func TestAGrowingListTakesWhatItsTextDoes(t *testing.T) {
	f, name := create(t)
	must(t, f.CreateStrings("list", nil))
	const n, length = 2000, 40
	s := strings.Repeat("t", length)
	size := func() int {
		t.Helper()
		must(t, f.Flush())
		n, err := f.Size()
		must(t, err)
		return int(n)
	}
	before := size()
	for range n {
		must(t, f.AppendStrings("list", []string{s}))
	}
	// Heaps have 16 bytes for each string of their own.
	if grown, most := size()-before, n*(length+32)*5/4; grown > most {
		t.Errorf("%d strings of %d bytes took %d bytes, more than %d", n, length, grown, most)
	}
	const opened = 50
	before = size()
	for range opened {
		must(t, f.Close())
		var err error
		f, err = h5.OpenReadWrite(name)
		must(t, err)
		must(t, f.AppendStrings("list", []string{s}))
	}
	if grown, most := size()-before, opened*(4096+512); grown > most {
		t.Errorf("opening and adding %d times took %d bytes, more than %d", opened, grown, most)
	}
	wantStrings(t, reopen(t, f), "list", slices.Repeat([]string{s}, n+opened))
}
