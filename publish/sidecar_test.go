package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/strictjson"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

var inf, notANumber = math.Inf(1), math.NaN()

// controller is a sidecar as solvers have it.
type controller struct {
	Step      float64            `json:"step"`
	LastError float64            `json:"last_error,omitempty"`
	Single    float32            `json:"single"`
	History   []float64          `json:"history"`
	Pair      [2]float32         `json:"pair"`
	Named     map[string]float64 `json:"named"`
	Stages    []*stage           `json:"stages"`
	Note      string             `json:"note"`
	Any       any                `json:"any"`
	Raw       json.RawMessage    `json:"raw"`
	Began     time.Time          `json:"began"`
	Skipped   float64            `json:"-"`
	embedded
	hidden float64
}

type embedded struct{ Inner float64 }

type stage struct{ Residual, Note any }

func text(v any) string { return fmt.Sprintf("%+v", v) }

func TestASidecarKeepsNumbersThatJSONDoesNotHave(t *testing.T) {
	saved := controller{
		Step: 0.1, LastError: inf, Single: float32(math.Inf(-1)), History: []float64{1, notANumber, -inf, 2.5e-33},
		Pair: [2]float32{float32(notANumber), 3}, Named: map[string]float64{"a": inf, "b": 1, "NaN": 2},
		Stages: []*stage{{inf, "NaN"}, nil}, Note: "NaN", Any: []any{"Infinity", 1.5},
		Raw: json.RawMessage(`["-Infinity",7.10001e-33]`), Began: time.Unix(1e9, 0).UTC(), Skipped: inf, embedded: embedded{notANumber}, hidden: inf,
	}
	before := text(saved)
	fsys := newFS(t)
	err := saveWith(t, fsys, 3, "/data/b", func(_ *comm.Comm, s *State) (string, error) {
		s.Sidecar = saved
		return "/data/b", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := text(saved); after != before {
		t.Errorf("the sidecar changed from %s to %s", before, after)
	}
	file, err := vfs.ReadFile(fsys, "/data/b/sidecar.json", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := strictjson.Check(file); err != nil {
		t.Errorf("the file is no JSON: %v\n%s", err, file)
	}
	for _, want := range []string{`"last_error": "Infinity"`, `"single": "-Infinity"`, `"Inner": "NaN"`, `"step": 0.1`, `2.5e-33`, `7.10001e-33`} {
		if !strings.Contains(string(file), want) {
			t.Errorf("the file lacks %s:\n%s", want, file)
		}
	}
	err = onRanks(t, 2, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi", "T")
		if err != nil {
			return err
		}
		loaded, err := LoadBundle(context.Background(), c, "/data/b", Request{Fields: s.named()}, Filesystem(fsys))
		if err != nil {
			return err
		}
		var got controller
		if err := DecodeSidecar(loaded.Sidecar, &got); err != nil {
			return err
		}
		want := saved
		want.Skipped, want.hidden = 0, 0
		want.Stages = []*stage{{"Infinity", "NaN"}, nil} // nothing says that it is a number
		got.Raw = json.RawMessage(strings.Join(strings.Fields(string(got.Raw)), ""))
		if a, b := text(got), text(want); strings.NewReplacer(fmt.Sprint(got.Stages), "").Replace(a) != strings.NewReplacer(fmt.Sprint(want.Stages), "").Replace(b) {
			return fmt.Errorf("got\n%s, want\n%s", a, b)
		}
		if a, b := text(*got.Stages[0]), text(*want.Stages[0]); a != b || got.Stages[1] != nil {
			return fmt.Errorf("got the stage %s, want %s", a, b)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A value that looks like a mark stays as it is.
func TestASidecarTakesNoNumberForAnother(t *testing.T) {
	m := newMarks(0)
	for _, saved := range []any{
		[]any{inf, m[1].double, m[0].text},
		[]float32{float32(inf), float32(m[1].single)},
		map[string]any{m[2].text: inf},
		map[string]any{"a": notANumber, "b": m[0].text + " and more"},
		[]any{inf, newMarks(1)[0].double, newMarks(2)[0].double},
		[]any{-inf, json.RawMessage("1"), []byte("NaN"), map[int]float64{3: inf}, (*float64)(nil), &inf, [][]float64{nil, {inf}}},
	} {
		file, err := encodeSidecar(saved, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(file, &got); err != nil {
			t.Fatal(err)
		}
		back := string(must1(json.Marshal(got)))
		if !strings.Contains(back, "Infinity") && !strings.Contains(back, "NaN") || strings.Count(text(saved), "7.1000") != strings.Count(back, "7.1000") {
			t.Errorf("%v is saved as %s", saved, back)
		}
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestASidecarWithNumbersAsStrings(t *testing.T) {
	v := struct {
		A float64 `json:",string"`
		B float64 `json:",string"`
	}{inf, 2}
	file, err := encodeSidecar(v, 1<<20)
	if want := "{\n  \"A\": \"Infinity\",\n  \"B\": \"2\"\n}\n"; err != nil || string(file) != want {
		t.Errorf("got %s, %v, want %s", file, err, want)
	}
}

// own writes itself.
type own struct{ v float64 }

func (o own) MarshalJSON() ([]byte, error) { return json.Marshal(o.v) }

// nullable has a way of its own with numbers that JSON doesn't have.
type nullable struct{ V float64 }

func (n nullable) MarshalJSON() ([]byte, error) {
	if math.IsNaN(n.V) {
		return []byte("null"), nil
	}
	return json.Marshal(n.V)
}

type ring struct {
	Next *ring
	V    float64
}

func TestASidecarThatJSONCanNotHoldIsRefused(t *testing.T) {
	cycle := &ring{V: inf}
	cycle.Next = cycle
	for name, v := range map[string]any{
		"a value that writes itself": own{inf},
		"one of both":                []any{own{inf}, inf},
		"a cycle":                    cycle,
		"a channel":                  make(chan int),
		"a value without a copy":     struct{ *embedded }{&embedded{inf}},
	} {
		if file, err := encodeSidecar(v, 1<<20); err == nil || !strings.HasPrefix(err.Error(), "sidecar: json: ") {
			t.Errorf("%s: %s, %v", name, file, err)
		}
	}
	file, err := encodeSidecar([]any{own{1}, nullable{notANumber}, inf}, 1<<20)
	if want := "[\n  1,\n  null,\n  \"Infinity\"\n]\n"; err != nil || string(file) != want {
		t.Errorf("values that write themselves beside an infinite one: %s, %v", file, err)
	}
}

func TestDecodeSidecar(t *testing.T) {
	type rows struct {
		Rows []struct {
			Name  string
			Error float64
		}
	}
	for _, tc := range []struct {
		name, text string
		into, want any
		err        string
	}{
		{"a number", `"Infinity"`, new(float64), inf, ""},
		{"a negative one", `"-Infinity"`, new(float32), float32(-inf), ""},
		{"a string", `"NaN"`, new(string), "NaN", ""},
		{"anything", `["NaN", 1]`, new(any), []any{"NaN", 1.0}, ""},
		{"a list", `["Infinity", 1, "-Infinity"]`, new([]float64), []float64{inf, 1, -inf}, ""},
		{"strings beside numbers", `{"Rows": [{"Name": "Infinity", "Error": 1}, {"Name": "Infinity", "Error": "Infinity"}, {"Error": "Infinity", "Name": "\"Infinity"}]}`,
			new(rows), rows{[]struct {
				Name  string
				Error float64
			}{{"Infinity", 1}, {"Infinity", inf}, {`"Infinity`, inf}}}, ""},
		{"a map", `{"a": "Infinity", "b": 2, "c": "-Infinity"}`, new(map[string]float64), map[string]float64{"a": inf, "b": 2, "c": -inf}, ""},
		{"a pointer", `{"a": "Infinity"}`, new(map[string]*float64), map[string]*float64{"a": &inf}, ""},
		{"numbers that stand for others meanwhile", `[7.10002e-33, "Infinity"]`, new([]float64), []float64{7.10002e-33, inf}, ""},
		{"another string", `["Infinity", "inf"]`, new([]float64), nil, "string into Go value of type float64"},
		{"another string after one that is none", `{"a": "Infinity", "b": "x"}`, new(struct {
			A string
			B float64
		}), nil, "B of type float64"},
		{"an integer", `["Infinity"]`, new([]int), nil, "string into Go value of type int"},
		{"no JSON", `[`, new([]int), nil, "unexpected end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := DecodeSidecar(json.RawMessage(tc.text), tc.into)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error is %v, want %q", err, tc.err)
				}
				return
			}
			if got := reflect.ValueOf(tc.into).Elem().Interface(); err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v, %v, want %#v", got, err, tc.want)
			}
		})
	}
	var v float64
	if err := DecodeSidecar(json.RawMessage(`"NaN"`), &v); err != nil || !math.IsNaN(v) {
		t.Errorf("got %v, %v, want NaN", v, err)
	}
	if err := DecodeSidecar(json.RawMessage(`1`), nil); !errors.As(err, new(*json.InvalidUnmarshalError)) {
		t.Errorf("into nil: %v", err)
	}
}

// Many numbers take as many passes as there are places for them, not as there are numbers.
func TestDecodeSidecarTakesManyNumbers(t *testing.T) {
	saved := make([]struct{ A, B float64 }, 20000)
	for i := range saved {
		saved[i].A = inf
		saved[i].B = float64(i)
	}
	file, err := encodeSidecar(saved, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var got []struct{ A, B float64 }
	if err := DecodeSidecar(file, &got); err != nil || !reflect.DeepEqual(got, saved) {
		t.Errorf("got %d, %v", len(got), err)
	}
}

func FuzzDecodeSidecar(f *testing.F) {
	f.Add([]byte(`{"step": "NaN", "history": ["Infinity", 1, "-Infinity"], "note": "NaN", "stages": [{"Residual": "NaN"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var plain, got controller
		perr := json.Unmarshal(data, &plain)
		err := DecodeSidecar(data, &got)
		if perr == nil && (err != nil || text(plain.History) != text(got.History)) {
			t.Errorf("got %+v, %v, want %+v", got, err, plain)
		}
	})
}
