package record_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

// sample returns a record with a value of every kind.
func sample(t testing.TB) record.Record {
	t.Helper()
	return mustOf(t,
		"bool", true,
		"int", -3,
		"uint", uint64(math.MaxUint64),
		"float", 0.5,
		"text", "tight",
		"texts", []string{"a", "b"},
		"floats", []float64{1, 2},
		"ints", []int{1, 2, 3},
		"matrix", mustArray(t, []float64{1, 2, 3, 4, 5, 6}, 2, 3),
		"bytes", []uint8{1, 2},
		"arrays", []record.Array{mustArray(t, []float32{1}), mustArray(t, []int16{1, 2}, 2, 1)},
		"record", mustOf(t, "inner", mustOf(t, "leaf", 1)),
		"records", []record.Record{mustOf(t, "name", "one", "v", 1), mustOf(t, "name", "two", "v", 2.0)},
	)
}

func TestAccessors(t *testing.T) {
	r := sample(t)
	for _, c := range []struct {
		path string
		get  func(path string) (any, error)
		want any
	}{
		{"bool", as(r.Bool), true},
		{"int", as(r.Int), int64(-3)},
		{"uint", as(r.Uint), uint64(math.MaxUint64)},
		{"record/inner/leaf", as(r.Uint), uint64(1)},
		{"float", as(r.Float), 0.5},
		{"text", as(r.Text), "tight"},
		{"texts", as(r.Texts), []string{"a", "b"}},
		{"floats", as(r.Floats), []float64{1, 2}},
		{"ints", as(r.Ints), []int64{1, 2, 3}},
		{"record/inner/leaf", as(r.Int), int64(1)},
		{"records/two/v", as(r.Float), 2.0},
		{"records/one/name", as(r.Text), "one"},
	} {
		got, err := c.get(c.path)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is %v, %v; want %v", c.path, got, err, c.want)
		}
		if !r.Has(c.path) {
			t.Errorf("%s is missing", c.path)
		}
	}

	if a, err := r.Array("arrays/2"); err != nil || !a.Equal(mustArray(t, []int16{1, 2}, 2, 1)) {
		t.Errorf("member 2 of a list of arrays is %v, %v", a, err)
	}
	if a, err := r.Arrays("arrays"); err != nil || len(a) != 2 || !a[0].Equal(mustArray(t, []float32{1})) {
		t.Errorf("the list of arrays is %v, %v", a, err)
	}
	if in, err := r.Record("record/inner"); err != nil || !in.Equal(mustOf(t, "leaf", 1)) {
		t.Errorf("the inner record is %v, %v", in, err)
	}
	if e, err := r.Record("records/one"); err != nil || !e.Equal(mustOf(t, "v", 1, "name", "one")) {
		t.Errorf("the entry is %v, %v", e, err)
	}
	if es, err := r.Records("records"); err != nil || len(es) != 2 || !es[1].Equal(mustOf(t, "v", 2.0, "name", "two")) {
		t.Errorf("the list of records is %v, %v", es, err)
	}
}

func as[T any](get func(string) (T, error)) func(string) (any, error) {
	return func(path string) (any, error) { return get(path) }
}

func TestAccessorErrors(t *testing.T) {
	r := sample(t)
	missing, wrong := record.ErrMissing, record.ErrType
	for _, c := range []struct {
		name, path string
		get        func(path string) (any, error)
		err        error
		text       string
	}{
		{"no such key", "nothing", as(r.Float), missing, "record entry nothing: missing"},
		{"no key", "", as(r.Float), missing, `record entry "": missing`},
		{"no such record", "none/of/these", as(r.Int), missing, "record entry none/of/these (at none): missing"},
		{"no such key within", "record/inner/x", as(r.Int), missing, "record entry record/inner/x: missing"},
		{"an empty part", "record//inner", as(r.Int), missing, "record entry record//inner (at record/): missing"},
		{"an empty end", "record/", as(r.Record), missing, "record entry record/: missing"},
		{"no such entry", "records/three", as(r.Record), missing, "missing"},
		{"an entry by number", "records/1", as(r.Record), missing, "missing"},
		{"member 0", "arrays/0", as(r.Array), missing, "missing"},
		{"a member too many", "arrays/3", as(r.Array), missing, "missing"},
		{"a member with a sign", "arrays/+1", as(r.Array), missing, "missing"},
		{"a member with a zero", "arrays/01", as(r.Array), missing, "missing"},
		{"through a float", "float/x/y", as(r.Int), wrong, "record entry float/x/y (at float): is the float 0.5, not a record"},
		{"through an array", "floats/1", as(r.Float), wrong, "is an array float64[2], not a record"},
		{"through a member", "arrays/1/1", as(r.Float), wrong, "(at arrays/1): is an array float32[1], not a record"},
		{"a text", "text", as(r.Float), wrong, `record entry text: is the text "tight", not a float`},
		{"an int is no float", "int", as(r.Float), wrong, "is the integer -3, not a float"},
		{"a float is no int", "float", as(r.Int), wrong, "is the float 0.5, not an integer"},
		{"an int is no bool", "int", as(r.Bool), wrong, "is the integer -3, not a boolean"},
		{"a bool is no int", "bool", as(r.Int), wrong, "is the boolean true, not an integer"},
		{"a bool is no uint", "bool", as(r.Uint), wrong, "not an integer from 0"},
		{"beyond int64", "uint", as(r.Int), wrong, "is the integer 18446744073709551615, not an integer"},
		{"below 0", "int", as(r.Uint), wrong, "is the integer -3, not an integer from 0"},
		{"no uint", "nothing", as(r.Uint), missing, "missing"},
		{"texts are no text", "texts", as(r.Text), wrong, "is a list of 2 texts, not a text"},
		{"a text is no texts", "text", as(r.Texts), wrong, "not a list of texts"},
		{"an array is no arrays", "floats", as(r.Arrays), wrong, "is an array float64[2], not a list of arrays"},
		{"arrays are no array", "arrays", as(r.Array), wrong, "is a list of 2 arrays, not an array"},
		{"records are no record", "records", as(r.Record), wrong, "is a list of 2 records, not a record"},
		{"a record is no records", "record", as(r.Records), wrong, "is a record of 1 key, not a list of records"},
		{"ints are no floats", "ints", as(r.Floats), wrong, "is an array int64[3], not a vector of float64"},
		{"floats are no ints", "floats", as(r.Ints), wrong, "not a vector of int64"},
		{"a matrix is no vector", "matrix", as(r.Floats), wrong, "is an array float64[2 3], not a vector of float64"},
		{"no vector", "nothing", as(r.Floats), missing, "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.get(c.path)
			if !errors.Is(err, c.err) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("error %v, want %v and %q", err, c.err, c.text)
			}
			var p *record.PathError
			if !errors.As(err, &p) || p.Path != c.path || !strings.HasPrefix(c.path, p.At) {
				t.Errorf("the error's path is not %q: %#v", c.path, p)
			}
			if v := reflect.ValueOf(got); v.Kind() != reflect.Struct && !v.IsZero() {
				t.Errorf("the result is %v", got)
			}
		})
	}
}

func TestDefaultIsForWhatIsMissing(t *testing.T) {
	r := sample(t)
	if v, err := record.Default(r.Float, "float", 7); v != 0.5 || err != nil {
		t.Errorf("what is there: %v, %v", v, err)
	}
	if v, err := record.Default(r.Text, "a/b", "none"); v != "none" || err != nil {
		t.Errorf("what is missing: %v, %v", v, err)
	}
	if _, err := record.Default(r.Float, "int", 7); !errors.Is(err, record.ErrType) {
		t.Errorf("what is of another type: %v", err)
	}
}

func TestZeroRecordIsEmpty(t *testing.T) {
	var r record.Record
	built, err := record.NewBuilder().Build()
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 0 || len(r.Keys()) != 0 || r.Has("k") || r.Writable() != nil || !r.Equal(built) || r.String() != "" {
		t.Error("it is not")
	}
	for key := range r.All() {
		t.Errorf("it has the key %q", key)
	}
	if r.Hash() != built.Hash() {
		t.Error("its hash differs from that of an empty record")
	}
}

func TestIterationStops(t *testing.T) {
	var keys []string
	for key := range sample(t).All() {
		keys = append(keys, key)
		if key == "uint" {
			break
		}
	}
	if !slices.Equal(keys, []string{"bool", "int", "uint"}) {
		t.Errorf("the keys are %q", keys)
	}
}

func TestAnyAndValueOfAreInverse(t *testing.T) {
	for key, v := range sample(t).All() {
		back := mustValue(t, v.Any())
		if !back.Equal(v) || back.Kind() != v.Kind() {
			t.Errorf("%s: %v became %v", key, v, back)
		}
	}
	if (record.Value{}).Any() != nil {
		t.Error("the zero Value is something")
	}
	if _, err := record.ValueOf(record.Value{}); !errors.Is(err, record.ErrValue) {
		t.Errorf("ValueOf of the zero Value: %v", err)
	}
}

// distinct returns values that all differ from each other.
func distinct(t *testing.T) []any {
	r := func(kv ...any) record.Record { return mustOf(t, kv...) }
	return []any{
		true, false, 0, 1, -1, uint64(math.MaxUint64), 0.0, math.Copysign(0, -1), 1.0, -1.0, math.NaN(), math.Inf(1), math.Inf(-1),
		"", "1", "true", "NaN",
		[]string{}, []string{""}, []string{"", ""}, []string{"a", "b"}, []string{"b", "a"}, []string{"ab"},
		[]int8{}, []int16{}, []int32{}, []int64{}, []uint8{}, []uint16{}, []uint32{}, []uint64{}, []float32{}, []float64{},
		mustArray(t, []float64{}, 0, 1), mustArray(t, []float64{}, 1, 0), mustArray(t, []float64{}, 0, 0),
		[]int8{1}, []int16{1}, []int32{1}, []int64{1}, []uint8{1}, []uint16{1}, []uint32{1}, []uint64{1}, []float32{1}, []float64{1},
		[]float32{0}, []float32{float32(math.Copysign(0, -1))}, []float64{0}, []float64{math.Copysign(0, -1)},
		[]float32{float32(math.NaN())}, []float64{math.NaN()},
		mustArray(t, []int8{1}, 1, 1), []float64{1, 2}, []float64{2, 1}, mustArray(t, []float64{1, 2}, 1, 2), mustArray(t, []float64{1, 2}, 2, 1),
		[]record.Array{}, []record.Array{mustArray(t, []int8{1})}, []record.Array{mustArray(t, []int16{1})},
		[]record.Array{mustArray(t, []int8{1}), mustArray(t, []int8{1})}, []record.Array{{}},
		record.Record{}, r("a", 1), r("a", 1.0), r("b", 1), r("a", 1, "b", 2), r("a", record.Record{}), r("a", []string{}),
		[]record.Record{}, []record.Record{r("name", "a")}, []record.Record{r("name", "a", "v", 1)},
		[]record.Record{r("name", "a"), r("name", "b")}, []record.Record{r("name", "b"), r("name", "a")},
	}
}

func TestValuesDiffer(t *testing.T) {
	values := distinct(t)
	for i, a := range values {
		for j, b := range values {
			v, w := mustValue(t, a), mustValue(t, b)
			if v.Equal(w) != (i == j) {
				t.Errorf("%T %v equals %T %v: %v", a, a, b, b, i != j)
			}
			if (v.Hash() == w.Hash()) != (i == j) {
				t.Errorf("%T %v has the hash of %T %v: %v", a, a, b, b, i != j)
			}
			if diff := record.Diff(mustOf(t, "k", a), mustOf(t, "k", b)); (len(diff) == 0) != (i == j) {
				t.Errorf("%T %v against %T %v: %v", a, a, b, b, diff)
			}
		}
	}
}

func TestEveryNaNIsOne(t *testing.T) {
	payload := math.Float64frombits(0xfff800000000beef)
	payload32 := math.Float32frombits(0xffc0beef)
	a := mustOf(t, "f", math.NaN(), "a", []float64{1, math.NaN()}, "s", []float32{float32(math.NaN())})
	b := mustOf(t, "f", payload, "a", []float64{1, payload}, "s", []float32{payload32})
	if !a.Equal(b) || a.Hash() != b.Hash() || len(record.Diff(a, b)) != 0 {
		t.Errorf("they differ: %v", record.Diff(a, b))
	}
	// What was given is kept all the same.
	if f, _ := b.Float("f"); math.Float64bits(f) != math.Float64bits(payload) {
		t.Errorf("the payload became %#x", math.Float64bits(f))
	}
}

func TestOrderOfKeysIsKeptAndDoesNotMatter(t *testing.T) {
	a, b := mustOf(t, "z", 1, "a", 2), mustOf(t, "a", 2, "z", 1)
	if !slices.Equal(a.Keys(), []string{"z", "a"}) || !slices.Equal(b.Keys(), []string{"a", "z"}) {
		t.Errorf("the keys are %q and %q", a.Keys(), b.Keys())
	}
	if !a.Equal(b) || a.Hash() != b.Hash() || len(record.Diff(a, b)) != 0 {
		t.Error("they differ")
	}
}

func TestKindNames(t *testing.T) {
	want := []string{"bool", "int", "uint", "float", "text", "texts", "array", "array", "array", "array", "arrays", "record", "records"}
	var got []string
	for _, v := range sample(t).All() {
		got = append(got, v.Kind().String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the kinds are %q", got)
	}
	for got, want := range map[string]string{
		record.Kind(0).String():         "Kind(0)",
		record.Kind(99).String():        "Kind(99)",
		record.ElementType(0).String():  "ElementType(0)",
		record.ElementType(11).String(): "ElementType(11)",
		record.Change(0).String():       "Change(0)",
		record.Change(7).String():       "Change(7)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if record.ElementType(0).Size() != 0 || record.ElementType(11).Size() != 0 {
		t.Error("what is no element type has a size")
	}
}
