package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

func TestJSONView(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"a boolean", true, `true`},
		{"an integer", -7, `-7`},
		{"an integer beyond int64", uint64(1 << 63), `9223372036854775808`},
		{"a float", 0.1, `0.1`},
		{"a whole float has a point", 3.0, `3.0`},
		{"minus zero keeps its sign", math.Copysign(0, -1), `-0.0`},
		{"a small float", 2.5e-7, `2.5e-07`},
		{"a large float", 1e16, `1e+16`},
		{"a float below that", 9007199254740993.0, `9007199254740992.0`},
		{"NaN", math.NaN(), `{"/float":"NaN"}`},
		{"Infinity", math.Inf(1), `{"/float":"Infinity"}`},
		{"-Infinity", math.Inf(-1), `{"/float":"-Infinity"}`},
		{"a text", "a<\"\n\u2028φ", `"a<\"\n\u2028φ"`},
		{"a list of texts", []string{"a", ""}, `["a",""]`},
		{"no texts", []string{}, `[]`},
		{"an array", []int8{1, -2}, `{"/array":"int8","dims":[2],"values":[1,-2]}`},
		{"a matrix", mustArray(t, []uint64{math.MaxUint64, 0}, 2, 1), `{"/array":"uint64","dims":[2,1],"values":[18446744073709551615,0]}`},
		{"an array with specials", []float32{0.1, float32(math.NaN()), float32(math.Inf(-1)), float32(math.Inf(1)), 2},
			`{"/array":"float32","dims":[5],"values":[0.1,"NaN","-Infinity","Infinity",2.0]}`},
		{"no elements", mustArray(t, []float64{}, 0, 3), `{"/array":"float64","dims":[0,3],"values":[]}`},
		{"a list of arrays", []record.Array{mustArray(t, []int8{1})}, `{"/arrays":[{"/array":"int8","dims":[1],"values":[1]}]}`},
		{"no arrays", []record.Array{}, `{"/arrays":[]}`},
		{"a record", mustOf(t, "z", 1, "a", 2), `{"z":1,"a":2}`},
		{"no keys", record.Record{}, `{}`},
		{"a list of records", []record.Record{mustOf(t, "name", "a")}, `{"/records":[{"name":"a"}]}`},
		{"no records", []record.Record{}, `{"/records":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustOf(t, "k", c.value)
			got, err := r.MarshalJSON()
			if want := `{"k":` + c.want + `}`; err != nil || string(got) != want {
				t.Fatalf("JSON %s, %v; want %s", got, err, want)
			}
			if !json.Valid(got) {
				t.Fatal("not valid JSON")
			}
			back, err := record.ParseJSON(got)
			if err != nil || !back.Equal(r) || !slices.Equal(back.Keys(), r.Keys()) {
				t.Errorf("parsed back: %v, %v", back, err)
			}
			v := mustValue(t, c.value)
			if got, err := v.MarshalJSON(); err != nil || string(got) != c.want {
				t.Errorf("the value alone: %s, %v", got, err)
			}
		})
	}
	if got, err := (record.Value{}).MarshalJSON(); err != nil || string(got) != "null" {
		t.Errorf("the zero Value: %s, %v", got, err)
	}
}

// The package json escapes and indents what MarshalJSON returns, and may be given a
// record within something else.
func TestJSONWithinOtherValues(t *testing.T) {
	type file struct {
		Settings record.Record
		Faces    record.Array
	}
	r := sample(t)
	text, err := json.MarshalIndent(file{r, mustArray(t, []int8{1})}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ Settings record.Record }
	if err := json.Unmarshal(text, &back); err != nil || !back.Settings.Equal(r) {
		t.Errorf("%v, %v", back.Settings, err)
	}
	if !slices.Equal(back.Settings.Keys(), r.Keys()) {
		t.Errorf("the keys are %q", back.Settings.Keys())
	}
	if err := json.Unmarshal([]byte(`{"Settings":{"k":null}}`), &back); !errors.Is(err, record.ErrJSON) {
		t.Errorf("null within: %v", err)
	}
}

func TestParseJSONAccepts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       any
	}{
		{"spaces", " {\n\t\"k\" : [ \"a\" , \"b\" ] }\n", []string{"a", "b"}},
		{"a capital exponent", `{"k":1E2}`, 100.0},
		{"a float that is too small", `{"k":1e-999}`, 0.0},
		{"minus the integer 0", `{"k":-0}`, 0},
		{"whole numbers in an array of floats", `{"k":{"/array":"float64","dims":[2],"values":[1,2e0]}}`, []float64{1, 2}},
		{"escapes", `{"\u006b":"\u0061\/"}`, "a/"},
		{"the least integer", `{"k":-9223372036854775808}`, int64(math.MinInt64)},
	} {
		got, err := record.ParseJSON([]byte(c.text))
		if want := mustOf(t, "k", c.want); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, want)
		}
	}
}

func TestParseJSONRefuses(t *testing.T) {
	deep := func(n int, open, inner, end string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, c := range []struct {
		name, text string
		err        error
		want       string // in the error
	}{
		{"nothing", ``, record.ErrJSON, "unexpected end"},
		{"half a record", `{"k":1`, record.ErrJSON, "unexpected end"},
		{"more than a record", `{} {}`, record.ErrJSON, "after top-level value"},
		{"what is not UTF-8", "{\"k\":\"\xff\"}", record.ErrJSON, "not UTF-8"},
		{"a number", `1`, record.ErrJSON, "not an object"},
		{"a list", `[]`, record.ErrJSON, "not an object"},
		{"an array", `{"/array":"int8","dims":[1],"values":[1]}`, record.ErrJSON, "not an object with the keys of a record"},
		{"null", `{"a":{"k":null}}`, record.ErrJSON, "entry a/k: not the JSON view of a record: null"},
		{"an integer beyond 64 bits", `{"k":18446744073709551616}`, record.ErrJSON, "entry k: not the JSON view of a record: 18446744073709551616 is beyond"},
		{"an integer below 64 bits", `{"k":-9223372036854775809}`, record.ErrJSON, "beyond"},
		{"a float beyond float64", `{"k":1e999}`, record.ErrJSON, "beyond the range of float64"},
		{"a list of numbers", `{"k":[1,2]}`, record.ErrJSON, `marked "/array"`},
		{"a list of lists", `{"k":[[]]}`, record.ErrJSON, `no string`},
		{"an unknown mark", `{"k":{"/complex":1}}`, record.ErrJSON, `the mark "/complex" is not known`},
		{"a mark too late", `{"k":{"a":1,"/float":"NaN"}}`, record.ErrKey, `entry k//float`},
		{"a mark and more", `{"k":{"/float":"NaN","a":1}}`, record.ErrJSON, `a key "a" too many`},
		{"a float of another name", `{"k":{"/float":"nan"}}`, record.ErrJSON, `"/float" must be`},
		{"a float that is a list", `{"k":{"/float":[]}}`, record.ErrJSON, `"/float" must be`},
		{"an unknown element type", `{"k":{"/array":"int","dims":[1],"values":[1]}}`, record.ErrJSON, `"int" is no element type`},
		{"an element type that is none", `{"k":{"/array":{"a":1}}}`, record.ErrJSON, `is no element type`},
		{"an array without values", `{"k":{"/array":"int8","dims":[1]}}`, record.ErrJSON, `"dims" and "values" in this order`},
		{"an array in another order", `{"k":{"/array":"int8","values":[1],"dims":[1]}}`, record.ErrJSON, `in this order`},
		{"an array with more", `{"k":{"/array":"int8","dims":[1],"values":[1],"unit":"m"}}`, record.ErrJSON, `a key "unit" too many`},
		{"no dimensions", `{"k":{"/array":"int8","dims":[],"values":[1]}}`, record.ErrJSON, `without dimensions`},
		{"dimensions that are none", `{"k":{"/array":"int8","dims":["1"],"values":[1]}}`, record.ErrJSON, `element 0 can't be 1`},
		{"a dimension of 1.0", `{"k":{"/array":"int8","dims":[1.0],"values":[1]}}`, record.ErrJSON, `element 0 can't be 1.0`},
		{"a dimension beyond int", `{"k":{"/array":"int8","dims":[18446744073709551617],"values":[1]}}`, record.ErrJSON, `can't be`},
		{"a negative dimension", `{"k":{"/array":"int8","dims":[-1],"values":[1]}}`, record.ErrValue, `entry k: invalid value: dimensions [-1]`},
		{"dimensions that the values don't fill", `{"a":{"k":{"/array":"int8","dims":[1000000000,1000000000],"values":[1]}}}`, record.ErrValue, `entry a/k: invalid value: 1 values don't fill`},
		{"a rank beyond the largest", `{"k":{"/array":"int8","dims":[1` + strings.Repeat(",1", 32) + `],"values":[1]}}`, record.ErrValue, `rank 33`},
		{"values that are none", `{"k":{"/array":"int8","dims":[1],"values":1}}`, record.ErrJSON, `there is none`},
		{"a value beyond its type", `{"k":{"/array":"int8","dims":[2],"values":[1,128]}}`, record.ErrJSON, `element 1 can't be 128`},
		{"a negative value", `{"k":{"/array":"uint8","dims":[1],"values":[-1]}}`, record.ErrJSON, `can't be -1`},
		{"a float in an array of integers", `{"k":{"/array":"int64","dims":[1],"values":[1.0]}}`, record.ErrJSON, `can't be 1.0`},
		{"NaN in an array of integers", `{"k":{"/array":"int64","dims":[1],"values":["NaN"]}}`, record.ErrJSON, `can't be NaN`},
		{"a value beyond float32", `{"k":{"/array":"float32","dims":[1],"values":[1e39]}}`, record.ErrJSON, `can't be 1e39`},
		{"nested values", `{"k":{"/array":"int8","dims":[1,1],"values":[[1]]}}`, record.ErrJSON, `can't be [`},
		{"a list of arrays that is none", `{"k":{"/arrays":{}}}`, record.ErrJSON, `there is none`},
		{"a list of arrays with a number", `{"k":{"/arrays":[1]}}`, record.ErrJSON, `entry k/1: not the JSON view of a record: it is the integer 1, not an array`},
		{"a list of records with a text", `{"k":{"/records":["a"]}}`, record.ErrJSON, `entry k/1: not the JSON view of a record: it is the text "a", not a record`},
		{"a list of records with an array", `{"k":{"/records":[{"/array":"int8","dims":[0],"values":[]}]}}`, record.ErrJSON, `not a record`},
		{"a list of records without names", `{"k":{"/records":[{"a":1}]}}`, record.ErrValue, `entry k: invalid value: record 1`},
		{"a list of records with a name twice", `{"k":{"/records":[{"name":"a"},{"name":"a"}]}}`, record.ErrDuplicate, `entry k`},
		{"a key twice", `{"a":{"k":1,"k":2}}`, record.ErrDuplicate, `entry a/k = 2`},
		{"a key that is none", `{"a":{"order":1}}`, record.ErrKey, `entry a/order`},
		{"a key of digits", `{"1":1}`, record.ErrKey, `entry 1`},
		{"a text with NUL", `{"k":"\u0000"}`, record.ErrValue, `entry k = "\x00": invalid value: the string contains NUL`},
		{"a list with NUL", `{"k":["\u0000"]}`, record.ErrValue, `entry k`},
		{"records too deep", deep(65, `{"k":`, `1`, `}`), record.ErrJSON, "more than 64 records"},
		{"records far too deep", deep(100000, `{"k":`, `1`, `}`), record.ErrJSON, "depth"},
		{"marks too deep", deep(9999, `{"/records":[`, ``, `]}`), record.ErrJSON, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := record.ParseJSON([]byte(c.text))
			if !errors.Is(err, c.err) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("error %v, want %v with %q", err, c.err, c.want)
			}
			if r.Len() != 0 {
				t.Errorf("the refused record is %v", r)
			}
			if len(fmt.Sprint(err)) > 1000 {
				t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
			}
		})
	}
}

func TestParseJSONOfTheDeepestRecord(t *testing.T) {
	r := nested(t, record.MaxDepth)
	text, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := record.ParseJSON(text); err != nil || !back.Equal(r) {
		t.Errorf("%v", err)
	}
}

func TestParseJSONWithAnyKeys(t *testing.T) {
	text := []byte(`{"1":{"order":2},"list":{"/records":[{"name":"7"}]}}`)
	r, err := record.ParseJSON(text, record.AnyKeys())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.MarshalJSON(); err != nil || string(got) != string(text) {
		t.Errorf("%s, %v", got, err)
	}
	if !errors.Is(r.Writable(), record.ErrKey) {
		t.Errorf("Writable: %v", r.Writable())
	}
}
