//go:build hdf5

package h5_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// watch fails the test if it leaves anything open in the library.
func watch(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if n := h5.OpenObjects(); n != 0 {
			t.Errorf("%d objects are open", n)
		}
	})
}

func create(t testing.TB) (*h5.File, string) {
	t.Helper()
	watch(t)
	name := filepath.Join(t.TempDir(), "file.h5")
	f, err := h5.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return f, name
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reopen closes a file and opens it for reading until the end of the test.
func reopen(t testing.TB, f *h5.File) *h5.File {
	t.Helper()
	must(t, f.Close())
	r, err := h5.Open(f.Name())
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

func roundTrip[T h5.Element](t *testing.T, want h5.Type, data []T) {
	t.Run(want.String(), func(t *testing.T) {
		f, _ := create(t)
		must(t, h5.Write(f, "scalar", data[:1]))
		must(t, h5.Write(f, "deep/down/list", data, len(data)))
		must(t, h5.Write(f, "block", data[:4], 1, 2, 2))
		must(t, h5.Write(f, "empty", data[:0], 3, 0))
		must(t, h5.SetAttribute(f, "block", "scalar", data[:1]))
		must(t, h5.SetAttribute(f, "block", "list", []T{data[0]}, 1))
		must(t, h5.SetAttribute(f, "block", "list", data, len(data)))
		must(t, h5.SetAttribute(f, "block", "empty", data[:0], 0))
		f = reopen(t, f)
		for _, c := range []struct {
			path, attribute string
			data            []T
			shape           []int
		}{
			{"scalar", "", data[:1], nil},
			{"deep/down/list", "", data, []int{len(data)}},
			{"block", "", data[:4], []int{1, 2, 2}},
			{"empty", "", []T{}, []int{3, 0}},
			{"block", "scalar", data[:1], nil},
			{"block", "list", data, []int{len(data)}},
			{"block", "empty", []T{}, []int{0}},
		} {
			var got []T
			var shape []int
			var info h5.Info
			var err, err2 error
			if c.attribute == "" {
				got, shape, err = h5.Read[T](f, c.path)
				info, err2 = f.Stat(c.path)
			} else {
				got, shape, err = h5.Attribute[T](f, c.path, c.attribute)
				info, err2 = f.StatAttribute(c.path, c.attribute)
			}
			if err != nil || err2 != nil {
				t.Errorf("%s %s: %v, %v", c.path, c.attribute, err, err2)
				continue
			}
			if info.Type != want || !reflect.DeepEqual(info.Shape, c.shape) || info.Elements() != len(c.data) {
				t.Errorf("%s %s is %v %v", c.path, c.attribute, info.Type, info.Shape)
			}
			if !reflect.DeepEqual(shape, c.shape) || fmt.Sprint(got) != fmt.Sprint(c.data) {
				t.Errorf("%s %s: got %v %v, want %v %v", c.path, c.attribute, got, shape, c.data, c.shape)
			}
		}
	})
}

func TestElementsComeBackAsTheyWere(t *testing.T) {
	roundTrip(t, h5.Bool, []bool{true, false, true, true, false})
	roundTrip(t, h5.Int8, []int8{math.MinInt8, -1, 0, 1, math.MaxInt8})
	roundTrip(t, h5.Int16, []int16{math.MinInt16, -1, 0, 1, math.MaxInt16})
	roundTrip(t, h5.Int32, []int32{math.MinInt32, -1, 0, 1, math.MaxInt32})
	roundTrip(t, h5.Int64, []int64{math.MinInt64, -1, 0, 1, math.MaxInt64})
	roundTrip(t, h5.Uint8, []uint8{0, 1, 2, 3, math.MaxUint8})
	roundTrip(t, h5.Uint16, []uint16{0, 1, 2, 3, math.MaxUint16})
	roundTrip(t, h5.Uint32, []uint32{0, 1, 2, 3, math.MaxUint32})
	roundTrip(t, h5.Uint64, []uint64{0, 1, 2, 3, math.MaxUint64})
	roundTrip(t, h5.Float32, []float32{float32(math.Inf(-1)), float32(math.Copysign(0, -1)), float32(math.NaN()), math.SmallestNonzeroFloat32, math.MaxFloat32})
	roundTrip(t, h5.Float64, []float64{math.Inf(-1), math.Copysign(0, -1), math.NaN(), math.SmallestNonzeroFloat64, math.MaxFloat64})
}

func TestFloatsKeepTheirBits(t *testing.T) {
	f, _ := create(t)
	want := []float64{math.Copysign(0, -1), math.Float64frombits(0x7ff8dead0000beef), math.Float64frombits(0x7ff0000000000001), 5e-324}
	must(t, h5.Write(f, "x", want, len(want)))
	got, _, err := h5.Read[float64](reopen(t, f), "x")
	must(t, err)
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Errorf("element %d is %x, was %x", i, math.Float64bits(got[i]), math.Float64bits(want[i]))
		}
	}
}

func TestStringsComeBackAsTheyWere(t *testing.T) {
	lists := map[string][]string{
		"none":  {},
		"empty": {""},
		"one":   {"a"},
		"some":  {"", "x", "Größe µm ∂φ/∂t", " spaces around ", "trailing ", strings.Repeat("long ", 5000)},
	}
	for _, how := range []h5.Storing{h5.Fixed, h5.Variable} {
		for name, list := range lists {
			t.Run(fmt.Sprint(name, how), func(t *testing.T) {
				f, _ := create(t)
				must(t, f.WriteStrings("a/list", list, how))
				if name == "some" {
					list = list[:5]
				}
				must(t, f.SetAttributeStrings("a", "list", list, how))
				for i, s := range list {
					must(t, f.WriteString(fmt.Sprint("s", i), s))
					must(t, f.SetAttributeString("a", fmt.Sprint("s", i), s))
				}
				f = reopen(t, f)
				got, err := f.ReadStrings("a/list")
				if err != nil || !reflect.DeepEqual(got, lists[name]) {
					t.Errorf("dataset: %.200q, %v", got, err)
				}
				got, err = f.AttributeStrings("a", "list")
				if err != nil || !reflect.DeepEqual(got, list) {
					t.Errorf("attribute: %q, %v", got, err)
				}
				for i, s := range list {
					if got, err := f.ReadString(fmt.Sprint("s", i)); err != nil || got != s {
						t.Errorf("%q came back as %q, %v", s, got, err)
					}
					if got, err := f.AttributeString("a", fmt.Sprint("s", i)); err != nil || got != s {
						t.Errorf("%q came back as attribute as %q, %v", s, got, err)
					}
				}
				info, err := f.Stat("a/list")
				if err != nil || info.Type != h5.String || info.Variable != (how == h5.Variable) {
					t.Errorf("%+v, %v", info, err)
				}
			})
		}
	}
}

func TestWideningReadsEveryValueOrRefuses(t *testing.T) {
	f, _ := create(t)
	must(t, h5.Write(f, "i8", []int8{-128, 127}, 2))
	must(t, h5.Write(f, "u32", []uint32{0, math.MaxUint32}, 2))
	must(t, h5.Write(f, "u64", []uint64{math.MaxUint64}))
	must(t, h5.Write(f, "f32", []float32{0.1}))
	must(t, h5.Write(f, "b", []bool{true}))
	must(t, h5.SetAttribute(f, "/", "i16", []int16{-2}))
	f = reopen(t, f)
	if got, _, err := h5.ReadAs[int64](f, "i8"); err != nil || !reflect.DeepEqual(got, []int64{-128, 127}) {
		t.Error(got, err)
	}
	if got, _, err := h5.ReadAs[int64](f, "u32"); err != nil || !reflect.DeepEqual(got, []int64{0, math.MaxUint32}) {
		t.Error(got, err)
	}
	if got, _, err := h5.ReadAs[float64](f, "f32"); err != nil || got[0] != float64(float32(0.1)) {
		t.Error(got, err)
	}
	if got, _, err := h5.AttributeAs[float64](f, "/", "i16"); err != nil || got[0] != -2 {
		t.Error(got, err)
	}
	for name, err := range map[string]error{
		"uint64 as int64": second(h5.ReadAs[int64](f, "u64")), "int8 as uint8": second(h5.ReadAs[uint8](f, "i8")),
		"uint64 as float64": second(h5.ReadAs[float64](f, "u64")), "uint32 as float32": second(h5.ReadAs[float32](f, "u32")),
		"float32 as int64": second(h5.ReadAs[int64](f, "f32")), "bool as int64": second(h5.ReadAs[int64](f, "b")),
		"int8 read as int16": second(h5.Read[int16](f, "i8")), "int8 read as bool": second(h5.ReadAs[bool](f, "i8")),
	} {
		if !errors.Is(err, h5.ErrType) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, _ []int, err error) error { return err }

func TestChunksGrowAndAreWrittenInParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout h5.Layout
	}{
		{"plain", h5.Layout{Shape: []int{0, 3, 5}, Chunk: []int{2, 2, 5}, Extendible: true}},
		{"early", h5.Layout{Shape: []int{0, 3, 5}, Chunk: []int{1, 3, 5}, Extendible: true, Early: true}},
		{"deflate", h5.Layout{Shape: []int{0, 3, 5}, Chunk: []int{4, 3, 5}, Extendible: true, Deflate: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, name := create(t)
			must(t, h5.CreateDataset[float64](f, "x", c.layout))
			var want []float64
			for row := range 7 {
				must(t, f.Extend("x", row+1))
				part := make([]float64, 15)
				for i := range part {
					part[i] = float64(100*row + i)
				}
				must(t, h5.WriteSlab(f, "x", part, []int{row, 0, 0}, []int{1, 3, 5}))
				want = append(want, part...)
				if row == 3 {
					must(t, f.Close())
					var err error
					f, err = h5.OpenReadWrite(name)
					must(t, err)
				}
			}
			must(t, h5.WriteSlab(f, "x", []float64{-1, -2}, []int{6, 1, 2}, []int{1, 2, 1}))
			want[6*15+1*5+2], want[6*15+2*5+2] = -1, -2
			f = reopen(t, f)
			got, shape, err := h5.Read[float64](f, "x")
			if err != nil || !reflect.DeepEqual(shape, []int{7, 3, 5}) || !reflect.DeepEqual(got, want) {
				t.Errorf("%v %v %v", got, shape, err)
			}
			part := make([]float64, 4)
			must(t, h5.ReadSlab(f, "x", part, []int{2, 1, 3}, []int{2, 2, 1}))
			if want := []float64{208, 213, 308, 313}; !reflect.DeepEqual(part, want) {
				t.Errorf("slab %v, want %v", part, want)
			}
			info, err := f.Stat("x")
			if err != nil || !reflect.DeepEqual(info.Chunk, c.layout.Chunk) || !reflect.DeepEqual(info.Max, []int{h5.Unlimited, 3, 5}) ||
				(info.Filters > 0) != (c.layout.Deflate > 0) {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
}

// Data written at the places that Pieces gives is what the library reads.
func TestPiecesAreWhereTheDataIs(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout h5.Layout
		pieces int
	}{
		{"contiguous", h5.Layout{Shape: []int{4, 5, 3}, Early: true}, 1},
		{"chunks that end with the array", h5.Layout{Shape: []int{4, 6, 3}, Chunk: []int{1, 2, 3}, Early: true}, 6},
		{"chunks that end behind it", h5.Layout{Shape: []int{4, 5, 3}, Chunk: []int{1, 2, 3}, Early: true, Extendible: true}, 6},
		{"one chunk for two rows", h5.Layout{Shape: []int{4, 5, 3}, Chunk: []int{2, 5, 3}, Early: true}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, name := create(t)
			must(t, h5.CreateDataset[float64](f, "a/x", c.layout))
			pieces, err := f.Pieces("a/x", 1, 2)
			must(t, err)
			must(t, f.Close())
			if len(pieces) != c.pieces {
				t.Fatalf("%d pieces: %+v", len(pieces), pieces)
			}
			raw, err := os.OpenFile(name, os.O_RDWR, 0)
			must(t, err)
			shape := c.layout.Shape
			for _, p := range pieces {
				for i := range p.Count[0] {
					for j := range p.Count[1] {
						for k := range p.Count[2] {
							// Chunks at the end are stored whole.
							rows, length := p.Count[1], p.Count[2]
							if c.layout.Chunk != nil {
								rows, length = c.layout.Chunk[1], c.layout.Chunk[2]
							}
							v := float64(100*(p.Start[0]+i) + 10*(p.Start[1]+j) + p.Start[2] + k)
							var b [8]byte
							for n := range b {
								b[n] = byte(math.Float64bits(v) >> (8 * n))
							}
							if _, err := raw.WriteAt(b[:], p.Offset+8*int64((i*rows+j)*length+k)); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
			}
			must(t, raw.Close())
			r, err := h5.Open(name)
			must(t, err)
			defer r.Close()
			got := make([]float64, 2*shape[1]*shape[2])
			must(t, h5.ReadSlab(r, "a/x", got, []int{1, 0, 0}, []int{2, shape[1], shape[2]}))
			for n, v := range got {
				i, j, k := n/(shape[1]*shape[2]), n/shape[2]%shape[1], n%shape[2]
				if want := float64(100*(1+i) + 10*j + k); v != want {
					t.Fatalf("element %d %d %d is %v, want %v", i, j, k, v, want)
				}
			}
		})
	}
}

func TestGroupsAreListedInOrder(t *testing.T) {
	f, _ := create(t)
	must(t, f.CreateGroup("b/z"))
	must(t, h5.Write(f, "b/a", []int8{1}))
	must(t, f.CreateGroup("Ä"))
	must(t, f.CreateGroup("a"))
	must(t, f.CreateGroup("c"))
	must(t, f.Unlink("b/z"))
	must(t, f.CreateGroup("b/z"))
	for i := range 20 { // more than the object of a group has room for
		must(t, f.CreateGroup(fmt.Sprintf("c/%d", 20-i)))
	}
	must(t, f.SetAttributeString("b", "y", "1"))
	must(t, f.SetAttributeString("b", "x", "2"))
	f = reopen(t, f)
	var got []string
	must(t, f.Walk("/", func(path string, e h5.Entry) error {
		got = append(got, path+" "+e.Kind.String())
		return nil
	}))
	want := []string{"b group", "b/a dataset", "b/z group", "Ä group", "a group", "c group"}
	for i := range 20 {
		want = append(want, fmt.Sprintf("c/%d group", 20-i))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	names, err := f.Attributes("b")
	if err != nil || !reflect.DeepEqual(names, []string{"x", "y"}) {
		t.Errorf("%q, %v", names, err)
	}
	for path, want := range map[string]bool{"b": true, "b/a": true, "b/c": false, "c/c": false, "/": true} {
		if got, err := f.Exists(path); got != want || err != nil {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}

func TestUnlinkAndDelete(t *testing.T) {
	f, _ := create(t)
	must(t, h5.Write(f, "a/x", []int8{1}))
	must(t, f.SetAttributeString("a", "n", "v"))
	must(t, f.Unlink("a/x"))
	must(t, f.DeleteAttribute("a", "n"))
	if err := f.Unlink("a/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := f.DeleteAttribute("a", "n"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	must(t, h5.Write(f, "a/x", []float64{2}))
	if got, _, err := h5.Read[float64](f, "a/x"); err != nil || got[0] != 2 {
		t.Error(got, err)
	}
	must(t, f.Sync())
	must(t, f.Close())
}

func TestMistakesAreRefusedAndDoNoHarm(t *testing.T) {
	f, name := create(t)
	must(t, h5.Write(f, "d/x", []float64{1, 2}, 2))
	must(t, h5.CreateDataset[int32](f, "grow", h5.Layout{Shape: []int{2}, Chunk: []int{2}, Extendible: true}))
	must(t, f.WriteString("s", "text"))
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"too few elements", h5.Write(f, "y", []float64{1}, 2), h5.ErrShape},
		{"a scalar of two", h5.Write(f, "y", []float64{1, 2}), h5.ErrShape},
		{"negative extent", h5.Write(f, "y", []float64{}, -1, 0), h5.ErrShape},
		{"overflowing shape", h5.CreateDataset[int8](f, "y", h5.Layout{Shape: []int{1 << 40, 1 << 40}}), h5.ErrShape},
		{"too many axes", h5.Write(f, "y", []int8{1}, make([]int, 33)...), h5.ErrShape},
		{"chunks of another rank", h5.CreateDataset[int8](f, "y", h5.Layout{Shape: []int{2}, Chunk: []int{1, 1}}), h5.ErrShape},
		{"chunks above the shape", h5.CreateDataset[int8](f, "y", h5.Layout{Shape: []int{2}, Chunk: []int{3}}), h5.ErrShape},
		{"empty chunks", h5.CreateDataset[int8](f, "y", h5.Layout{Shape: []int{2}, Chunk: []int{0}}), h5.ErrShape},
		{"extendible without chunks", h5.CreateDataset[int8](f, "y", h5.Layout{Shape: []int{2}, Extendible: true}), h5.ErrShape},
		{"early and compressed", h5.CreateDataset[int8](f, "y", h5.Layout{Shape: []int{2}, Chunk: []int{1}, Early: true, Deflate: 1}), h5.ErrShape},
		{"an existing dataset", h5.Write(f, "d/x", []float64{1}), fs.ErrExist},
		{"an existing group", f.CreateGroup("d"), fs.ErrExist},
		{"the root", f.CreateGroup("/"), fs.ErrExist},
		{"an empty path", f.CreateGroup(""), h5.ErrName},
		{"a path with empty parts", f.CreateGroup("a//b"), h5.ErrName},
		{"a path from the root", f.CreateGroup("/a"), h5.ErrName},
		{"a path through itself", f.CreateGroup("a/./b"), h5.ErrName},
		{"a path with a NUL", f.CreateGroup("a\x00b"), h5.ErrName},
		{"a path that is not UTF-8", f.CreateGroup("a\xff"), h5.ErrName},
		{"a path that is too deep", f.CreateGroup(strings.Repeat("a/", 150) + "b"), h5.ErrName},
		{"the root unlinked", f.Unlink("/"), h5.ErrName},
		{"no name of an attribute", f.SetAttributeString("d", "", "x"), h5.ErrName},
		{"a NUL in a string", f.WriteString("y", "a\x00"), h5.ErrText},
		{"a NUL in a list", f.WriteStrings("y", []string{"a", "\x00"}, h5.Variable), h5.ErrText},
		{"a NUL in an attribute", f.SetAttributeString("d", "n", "\x00a"), h5.ErrText},
		{"no UTF-8", f.WriteString("y", "a\xff"), h5.ErrText},
		{"a group read", second(h5.Read[float64](f, "d")), h5.ErrKind},
		{"a dataset listed", errOf(f.List("d/x")), h5.ErrKind},
		{"a string of numbers", errOf(f.ReadString("d/x")), h5.ErrType},
		{"numbers of a string", second(h5.Read[int8](f, "s")), h5.ErrType},
		{"a list of one string", errOf(f.ReadStrings("s")), h5.ErrShape},
		{"nothing read", second(h5.Read[int8](f, "d/y")), fs.ErrNotExist},
		{"no attribute", errOf(f.AttributeString("d", "n")), fs.ErrNotExist},
		{"slab of another type", h5.WriteSlab(f, "d/x", []int64{1}, []int{0}, []int{1}), h5.ErrType},
		{"slab of another rank", h5.WriteSlab(f, "d/x", []float64{1}, []int{0, 0}, []int{1, 1}), h5.ErrShape},
		{"slab behind the end", h5.WriteSlab(f, "d/x", []float64{1}, []int{2}, []int{1}), h5.ErrShape},
		{"slab of another length", h5.WriteSlab(f, "d/x", []float64{1}, []int{0}, []int{2}), h5.ErrShape},
		{"slab into too little", h5.ReadSlab(f, "d/x", []float64{1}, []int{0}, []int{2}), h5.ErrShape},
		{"slab before the start", h5.ReadSlab(f, "d/x", []float64{1}, []int{-1}, []int{1}), h5.ErrShape},
		{"extending what can't grow", f.Extend("d/x", 3), h5.ErrShape},
		{"shrinking", f.Extend("grow", 1), h5.ErrShape},
		{"places of what has none", errOf(f.Pieces("grow", 0, 2)), h5.ErrKind},
		{"places behind the end", errOf(f.Pieces("d/x", 1, 2)), h5.ErrShape},
		{"places of strings", errOf(f.Pieces("s", 0, 1)), h5.ErrKind},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !errors.Is(c.err, c.want) {
				t.Fatalf("got %v, want %v", c.err, c.want)
			}
			var e *h5.Error
			if !errors.As(c.err, &e) || e.File != name || !strings.Contains(c.err.Error(), name) {
				t.Errorf("%v does not name the file", c.err)
			}
		})
	}
	if err := h5.Write(f, "s/x", []int8{1}); err == nil {
		t.Error("a dataset was a group")
	}
	must(t, f.Sync()) // none of it counts as a failure
	must(t, f.Close())
	for name, err := range map[string]error{
		"sync": f.Sync(), "close": f.Close(), "write": h5.Write(f, "y", []int8{1}), "list": errOf(f.List("/")),
	} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	r, err := h5.Open(name)
	must(t, err)
	if err := h5.Write(r, "y", []int8{1}); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if err := r.Sync(); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	must(t, r.Close())
}

func errOf[T any](_ T, err error) error { return err }

func TestCreateNewLeavesAFileAlone(t *testing.T) {
	f, name := create(t)
	must(t, h5.Write(f, "x", []int8{1}))
	must(t, f.Close())
	if _, err := h5.CreateNew(name); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	f, err := h5.Open(name)
	must(t, err)
	if _, _, err := h5.Read[int8](f, "x"); err != nil {
		t.Error(err)
	}
	must(t, f.Close())
	f, err = h5.Create(name)
	must(t, err)
	if there, err := f.Exists("x"); there || err != nil {
		t.Error(there, err)
	}
	must(t, f.Close())
}

func TestErrorsSayWhatTheSystemSaid(t *testing.T) {
	watch(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"missing file", errOf(h5.Open(dir + "/none.h5")), fs.ErrNotExist},
		{"missing directory", errOf(h5.Create(dir + "/none/a.h5")), fs.ErrNotExist},
		{"directory", errOf(h5.Open(dir)), h5.ErrFormat},
		{"device", errOf(h5.Open(os.DevNull)), h5.ErrFormat},
		{"no name", errOf(h5.Create("")), h5.ErrName},
		{"name with a NUL", errOf(h5.Open(dir + "/a\x00b")), h5.ErrName},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	err := errOf(h5.Create(dir + "/none/a.h5"))
	if want := "create " + dir + "/none/a.h5: H5Fcreate: unable to create file: unable to open file: open failed: no such file or directory"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// The same calls in the same order give the same bytes.
func TestFilesRepeat(t *testing.T) {
	var files [2][]byte
	for i := range files {
		f, name := create(t)
		must(t, f.CreateGroup("g"))
		must(t, h5.Write(f, "g/x", []float64{1, 2}, 2))
		must(t, f.WriteStrings("g/s", []string{"a", "bc"}, h5.Variable))
		must(t, f.SetAttributeString("/", "version", "1"))
		must(t, f.Close())
		var err error
		files[i], err = os.ReadFile(name)
		must(t, err)
	}
	if !reflect.DeepEqual(files[0], files[1]) {
		t.Error("two files differ")
	}
}

func TestGoroutinesShareFiles(t *testing.T) {
	f, _ := create(t)
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 20 {
				path := fmt.Sprintf("g%d/x%d", g, i)
				if err := h5.Write(f, path, []int64{int64(g), int64(i)}, 2); err != nil {
					t.Error(err)
				}
				if got, _, err := h5.Read[int64](f, path); err != nil || got[0] != int64(g) || got[1] != int64(i) {
					t.Error(got, err)
				}
				if _, _, err := h5.Read[int64](f, path+"/none"); err == nil || strings.Contains(err.Error(), fmt.Sprintf("g%d", (g+1)%8)) {
					t.Errorf("wrong error: %v", err)
				}
			}
		})
	}
	wait.Wait()
	must(t, f.Close())
}

// What the library keeps must not grow with the number of calls.
func TestMemoryDoesNotGrow(t *testing.T) {
	f, _ := create(t)
	must(t, h5.Write(f, "x", make([]float64, 1000), 10, 100))
	list := make([]string, 200)
	for i := range list {
		list[i] = strings.Repeat("s", 500)
	}
	must(t, f.WriteStrings("v", list, h5.Variable))
	must(t, f.SetAttributeStrings("x", "v", list[:20], h5.Variable))
	use := func(n int) {
		for range n {
			_, _, err := h5.Read[float64](f, "x")
			must(t, err)
			must(t, h5.ReadSlab(f, "x", make([]float64, 10), []int{3, 0}, []int{1, 10}))
			must(t, h5.WriteSlab(f, "x", make([]float64, 10), []int{3, 0}, []int{1, 10}))
			must(t, errOf(f.ReadStrings("v")))
			must(t, errOf(f.AttributeStrings("x", "v")))
			must(t, errOf(f.List("/")))
			must(t, errOf(f.Stat("x")))
			if err := second(h5.Read[int8](f, "none")); err == nil {
				t.Fatal("no error")
			}
		}
	}
	use(20)
	before := resident(t)
	use(300) // of 100 kB of strings each
	if after := resident(t); after > before+20<<20 {
		t.Errorf("%d MB grew to %d", before>>20, after>>20)
	}
	must(t, f.Close())
}

func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory() // what Go's heap keeps is no matter
	var size, pages int
	b, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	_, err = fmt.Sscan(string(b), &size, &pages)
	must(t, err)
	return pages * os.Getpagesize()
}

func TestSizeIsThatOfTheOpenFile(t *testing.T) {
	f, name := create(t)
	must(t, h5.Write(f, "x", make([]float64, 1000), 1000))
	must(t, f.Flush())
	info, err := os.Stat(name)
	must(t, err)
	must(t, os.Remove(name))
	if size, err := f.Size(); err != nil || size != info.Size() || size < 8000 {
		t.Errorf("%d bytes, %v; the file has %d", size, err, info.Size())
	}
	must(t, f.Close())
}

// What was never written takes memory only once.
func TestManyEmptyDatasets(t *testing.T) {
	f, _ := create(t)
	const n = 5 << 20 // of eight bytes
	for _, path := range []string{"a", "b"} {
		must(t, h5.CreateDataset[float64](f, path, h5.Layout{Shape: []int{n}, Chunk: []int{1024}, Extendible: true}))
	}
	f = reopen(t, f)
	if data, _, err := h5.Read[float64](f, "a"); err != nil || len(data) != n {
		t.Fatalf("%d elements, %v", len(data), err)
	}
	if _, _, err := h5.Read[float64](f, "b"); !errors.Is(err, h5.ErrTooLarge) {
		t.Errorf("the second: %v", err)
	}
}

// What isn't there is named once, or the part of its path from which on nothing is.
func TestTheTextOfWhatIsNotThere(t *testing.T) {
	f, name := create(t)
	must(t, f.CreateGroup("a"))
	for path, want := range map[string]string{
		"x": "x: there is no such object", "a/x": "a/x: there is no such object", "x/y/z": "x/y/z: there is no x", "a/y/z": "a/y/z: there is no a/y",
	} {
		_, err := f.Stat(path)
		if err == nil || err.Error() != "stat "+name+": "+want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
		if err := f.Unlink(path); err == nil || err.Error() != "unlink "+name+": "+want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	must(t, f.Close())
}
