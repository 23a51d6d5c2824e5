package record_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

func TestDiff(t *testing.T) {
	long := strings.Repeat("φ", 100)
	entries := func(names ...string) []record.Record {
		list := []record.Record{}
		for _, name := range names {
			list = append(list, mustOf(t, "name", name))
		}
		return list
	}
	for _, c := range []struct {
		name string
		a, b any // values of the key k; nil: no such key
		want []string
	}{
		{"equal", 1, 1, nil},
		{"only the first has it", 1, nil, []string{`k: only in A: 1`}},
		{"only the second has it", nil, "x", []string{`k: only in B: "x"`}},
		{"another value", 0.5, 0.25, []string{`k: value: 0.5 -> 0.25`}},
		{"another sign of zero", 0.0, math.Copysign(0, -1), []string{`k: value: 0.0 -> -0.0`}},
		{"another boolean", true, false, []string{`k: value: true -> false`}},
		{"another type", 1, 1.0, []string{`k: type: the integer 1 -> the float 1.0`}},
		{"a record for an array", mustOf(t, "a", 1), []int8{1}, []string{`k: type: a record of 1 key -> an array int8[1]`}},
		{"a long text", long, "x" + long, []string{`k: value: "` + long[:48] + `…" -> "x` + long[:46] + `…"`}},
		{"texts", []string{"a", "b", "c"}, []string{"a", "x", "y"}, []string{`k: value: "b" -> "x" at [1], the first of 2`}},
		{"other texts", []string{"a"}, []string{"a", "b", "c", "d", "e"}, []string{`k: shape: ["a"] -> ["a", "b", "c", "d", … 5 in all]`}},
		{"elements", mustArray(t, []int8{1, 2, 3, 4}, 2, 2), mustArray(t, []int8{1, 2, 9, 9}, 2, 2), []string{`k: value: 3 -> 9 at [1 0], the first of 2`}},
		{"element types", []int8{1}, []int16{1}, []string{`k: type: int8[1] 1 -> int16[1] 1`}},
		{"shapes", []int8{1, 2, 3, 4, 5, 6}, mustArray(t, []int8{1, 2, 3, 4, 5, 6}, 3, 2), []string{`k: shape: int8[6] 1 2 3 4 … 6 in all -> int8[3 2] 1 2 3 4 … 6 in all`}},
		{"fewer arrays", []record.Array{{}, {}}, []record.Array{{}}, []string{`k/2: only in A: float64[0]`}},
		{"more arrays", []record.Array{}, []record.Array{{}}, []string{`k/1: only in B: float64[0]`}},
		{"a member", []record.Array{mustArray(t, []int8{1})}, []record.Array{mustArray(t, []int8{2})}, []string{`k/1: value: 1 -> 2 at [0], the first of 1`}},
		{"within", mustOf(t, "a", mustOf(t, "x", 1, "y", 2), "b", 1), mustOf(t, "b", 2, "c", 3, "a", mustOf(t, "y", 3, "x", 1)),
			[]string{`k/a/y: value: 2 -> 3`, `k/b: value: 1 -> 2`, `k/c: only in B: 3`}},
		{"a whole record", mustOf(t, "a", 1, "b", 2), nil, []string{`k: only in A: record of 2 keys`}},
		{"entries by name", entries("a", "b"), entries("b", "c"), []string{`k/a: only in A: record of 1 key`, `k/c: only in B: record of 1 key`}},
		{"an entry", []record.Record{mustOf(t, "name", "a", "v", 1)}, []record.Record{mustOf(t, "v", 2, "name", "a")}, []string{`k/a/v: value: 1 -> 2`}},
		{"entries in another order", entries("a", "b", "c"), entries("c", "x", "a", "b"),
			[]string{`k/x: only in B: record of 1 key`, `k: order: ["a", "b", "c"] -> ["c", "a", "b"]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			records := make([]record.Record, 2)
			for i, v := range []any{c.a, c.b} {
				if v != nil {
					records[i] = mustOf(t, "k", v)
				}
			}
			var got []string
			for _, d := range record.Diff(records[0], records[1]) {
				got = append(got, d.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestDifferenceAsJSON(t *testing.T) {
	diff := record.Diff(mustOf(t, "a", []int8{1, 2}, "b", 1), mustOf(t, "a", []int8{1, 3}))
	text, err := json.Marshal(diff)
	const want = `[{"path":"a","change":"value","a":"2","b":"3","count":1,"index":[1]},{"path":"b","change":"only in A","a":"1"}]`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}
