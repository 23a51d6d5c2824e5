package record_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/fieldstone-io/fieldstone/record"
)

func TestText(t *testing.T) {
	r, err := sample(t).With("empty", record.Record{})
	if err != nil {
		t.Fatal(err)
	}
	r, err = r.With("unnamed", []record.Record{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `bool: true
int: -3
uint: 18446744073709551615
float: 0.5
text: "tight"
texts: ["a", "b"]
floats: float64[2] 1.0 2.0
ints: int64[3] 1 2 3
matrix: float64[2 3] 1.0 2.0 3.0 4.0 5.0 6.0
bytes: uint8[2] 1 2
arrays: 2 arrays
  1: float32[1] 1.0
  2: int16[2 1] 1 2
record:
  inner:
    leaf: 1
records: 2 records
  one:
    name: "one"
    v: 1
  two:
    name: "two"
    v: 2.0
empty: no keys
unnamed: 0 records
`
	if got := r.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := mustValue(t, r).String(); got != want {
		t.Errorf("as a value:\n%s", got)
	}
}

func TestTextIsShortened(t *testing.T) {
	r := mustOf(t,
		"numbers", []int{1, 2, 3, 4, 5, 6, 7, 8, 9},
		"texts", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"})
	const short = `numbers: int64[9] 1 2 3 4 5 6 7 8 … 9 in all
texts: ["1", "2", "3", "4", "5", "6", "7", "8", … 9 in all]
`
	if got := r.String(); got != short {
		t.Errorf("got\n%s\nwant\n%s", got, short)
	}
	const long = `numbers: int64[9] 1 2 3 4 5 6 7 8 9
texts: ["1", "2", "3", "4", "5", "6", "7", "8", "9"]
`
	var s strings.Builder
	if err := r.WriteText(&s, 0); err != nil || s.String() != long {
		t.Errorf("got\n%s\n%v, want\n%s", s.String(), err, long)
	}
}

// What a file holds must not reach the terminal as a command.
func TestTextHoldsNothingThatControlsATerminal(t *testing.T) {
	const bad = "\x1b[2J\r\n\u202e\u0085"
	r := mustOf(t, bad, bad,
		"texts", []string{bad},
		"records", []record.Record{mustOf(t, "name", bad)},
		"record", mustOf(t, bad, 1))
	texts := []string{r.String(), record.CheckKey(bad + "/").Error()}
	for _, d := range record.Diff(r, mustOf(t, "texts", []string{"other"}, "record", mustOf(t, bad, 2))) {
		texts = append(texts, d.String())
	}
	_, err := r.Float("record/" + bad)
	texts = append(texts, err.Error())
	_, err = r.Float("records/" + bad + "/name/" + bad)
	texts = append(texts, err.Error())
	_, err = record.Of(bad, bad+"\x00")
	texts = append(texts, err.Error())
	for _, text := range texts {
		for _, c := range strings.ReplaceAll(text, "\n", "") {
			if !unicode.IsPrint(c) {
				t.Errorf("%q contains %q", text, c)
			}
		}
	}
	if n := strings.Count(r.String(), "\n"); n != 7 {
		t.Errorf("%d lines:\n%v", n, r)
	}
}

func TestTextOfSingleValues(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{1.5e300, "1.5e+300"},
		{[]record.Array{{}}, "1 array"},
		{[]record.Record{}, "0 records"},
		{[]float64{}, "float64[0]"},
	} {
		if got := mustValue(t, c.value).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := (record.Value{}).String(); got != "no value" {
		t.Errorf("the zero Value is %q", got)
	}
}
