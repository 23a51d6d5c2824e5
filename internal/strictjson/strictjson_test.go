package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func nested(n int, begin, inner, end string) string {
	return strings.Repeat(begin, n) + inner + strings.Repeat(end, n)
}

func TestCheckTakes(t *testing.T) {
	for _, text := range []string{
		`null`, ` true `, `"a"`, `-0.5e+10`, `1e99999999999999999999`, "[]", "{}", "\t{\r\n} ",
		`{"a": 1, "A": 2, "": [null, {"a": {}}]}`,
		`"\ud83d\ude00\u0000\/\b\f\n\r\t\"\\"`, "\"\x7f\u2028\ufeff\"", `"�"`,
		nested(MaxDepth, "[", "", "]"), nested(MaxDepth, `{"a":`, "1", "}"),
	} {
		if err := Check([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "line 1, column 1: the text ends in the middle of a value"},
		{" \n ", "line 2, column 2: the text ends in the middle of a value"},
		{`{"é": [1, `, "line 1, column 11: the text ends in the middle of a value"},
		{`{"a`, "line 1, column 4: the text ends in the middle of a value"},
		{"\ufeff{}", "begins with a byte-order mark"},
		{"{} \n x", "line 2, column 2: text after the end of the JSON value"},
		{"01", "line 1, column 2: text after the end of the JSON value"},
		{`{"a": {"b": [{"c d": 1, "c d": 2}]}}`, `a.b[0]."c d": line 1, column 25: key given twice`},
		{`{"a": 1, "\u0061": 2}`, "a: line 1, column 10: key given twice"},
		{`{"7": 1, "7": 2}`, "7: line 1, column 10: key given twice"},
		{`[0, {"/~": NaN}]`, `[1]."/~": line 1, column 12: want a JSON value, got 'N'`},
		{`{"a": "\ud83d"}`, "a: line 1, column 8: unpaired surrogate"},
		{`["\ude00\ud83d"]`, "[0]: line 1, column 3: unpaired surrogate"},
		{`["\u12"]`, `[0]: line 1, column 3: want 4 hexadecimal digits after \u`},
		{`["\q"]`, `[0]: line 1, column 3: unknown escape \q`},
		{"[\"\\\x1b\"]", `[0]: line 1, column 3: unknown escape \\x1b`},
		{"[1, \"\x00\"]", `[1]: line 1, column 6: control character '\x00' in a string`},
		{"[1, \"\xff\"]", "[1]: line 1, column 6: invalid UTF-8"},
		{"\"\xed\xa0\x80\"", "line 1, column 2: invalid UTF-8"},
		{"\xff", "line 1, column 1: want a JSON value, got '\ufffd'"},
		{"{\x00", "line 1, column 2: want a key, got '\\x00'"},
		{`{1: 2}`, "line 1, column 2: want a key, got '1'"},
		{`{"a": 1, }`, "line 1, column 10: want a key, got '}'"},
		{`{"a" 1}`, "a: line 1, column 6: want ':', got '1'"},
		{`{"a": }`, "a: line 1, column 7: want a JSON value, got '}'"},
		{`{"a": {"b": 1] }`, "a: line 1, column 14: want ',' or '}', got ']'"},
		{`{"a": [1 2]}`, "a: line 1, column 10: want ',' or ']', got '2'"},
		{`{"a": [1,]}`, "a[1]: line 1, column 10: want a JSON value, got ']'"},
		{`[,1]`, "[0]: line 1, column 2: want a JSON value, got ','"},
		{`[true1]`, "line 1, column 6: want ',' or ']', got '1'"},
		{`[nul]`, "[0]: line 1, column 5: want null"},
		{`[tru]`, "[0]: line 1, column 5: want true"},
		{`[fals]`, "[0]: line 1, column 6: want false"},
		{`[Infinity]`, "[0]: line 1, column 2: want a JSON value, got 'I'"},
		{`[+1]`, "[0]: line 1, column 2: want a JSON value, got '+'"},
		{`[-]`, "[0]: line 1, column 3: want a digit"},
		{`[1.]`, "[0]: line 1, column 4: want a digit after the point"},
		{`[1e+]`, "[0]: line 1, column 5: want a digit in the exponent"},
		{`[1, 02]`, "[1]: line 1, column 6: a number can't begin with 0"},
		{nested(MaxDepth+1, "[", "", "]"), nested(MaxDepth, "[0]", "", "") + ": line 1, column 129: nested deeper than 128 levels"},
		{nested(MaxDepth, `{"a":`, "[]", "}"), "a" + nested(MaxDepth-1, ".a", "", "") + ": line 1, column 641: nested deeper than 128 levels"},
		{nested(100000, "[", "", ""), "nested deeper than 128 levels"},
		{`{"` + strings.Repeat("k", 100) + `": x}`, strings.Repeat("k", 64) + "...: line 1, column 106: want a JSON value"},
	} {
		err := Check([]byte(c.text))
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100s:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestParseBoundsKeysAndStrings(t *testing.T) {
	text := []byte(`{"a": ["b", 1, "c"], "d": {}}`)
	if _, err := Parse(text, 4); err != nil {
		t.Error(err)
	}
	if _, err := Parse(text, 3); err == nil || err.Error() != "d: line 1, column 25: more than 3 keys and strings" {
		t.Error(err)
	}
}

func TestValues(t *testing.T) {
	const text = ` {"s": "a\u00e9\n", "t": true, "f": false, "n": null, "a": [ 1 , [2] ], "o": {"x y": {}},
		"i": -4.20e1, "max": 9223372036854775807, "more": 9223372036854775808, "min": -9223372036854775808,
		"half": 0.5, "huge": 1e400, "tiny": 1e-400, "zero": -0e9999999999999999999999} `
	root, err := Parse([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	members, err := root.Members()
	if err != nil || len(members) != 14 {
		t.Fatal(members, err)
	}
	elements := func(v Value) (string, error) {
		all, err := v.Elements("a list")
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, e := range all {
			fmt.Fprintf(&b, "%s=%s;", e.Path, e.Raw)
		}
		return b.String(), nil
	}
	for _, c := range []struct {
		key    string
		decode any
		want   string
	}{
		{"s", Value.String, "aé\n"},
		{"t", Value.Bool, "true"},
		{"f", Value.Bool, "false"},
		{"a", elements, "a[0]=1;a[1]=[2];"},
		{"i", Value.Int, "-42"},
		{"max", Value.Int, "9223372036854775807"},
		{"min", Value.Int, "-9223372036854775808"},
		{"zero", Value.Int, "0"},
		{"half", Value.Float, "0.5"},
		{"tiny", Value.Float, "0"},
		{"i", Value.Size, "-42"},
		{"more", Value.Int, "more: 9223372036854775808 does not fit into 64 bits"},
		{"more", Value.Size, "more: 9223372036854775808 does not fit into 64 bits"},
		{"half", Value.Int, "half: want an integer, got 0.5"},
		{"huge", Value.Float, "huge: 1e400 is out of the range of a float64"},
		{"s", Value.Bool, "s: want a boolean, got a string"},
		{"t", Value.String, "t: want a string, got a boolean"},
		{"f", Value.Int, "f: want an integer, got a boolean"},
		{"n", Value.Float, "n: want a number, got null"},
		{"a", Value.Members, "a: want an object, got an array"},
		{"o", elements, "o: want a list, got an object"},
		{"i", elements, "i: want a list, got a number"},
	} {
		out := reflect.ValueOf(c.decode).Call([]reflect.Value{reflect.ValueOf(members[c.key])})
		got := fmt.Sprint(out[0])
		if err := out[1]; !err.IsNil() {
			got = fmt.Sprint(err)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.key, got, c.want)
		}
	}
	if !members["n"].Null() || members["f"].Null() {
		t.Error("null isn't told")
	}
	inner, err := members["o"].Members()
	if v := inner["x y"]; err != nil || v.Path != `o."x y"` || string(v.Raw) != "{}" {
		t.Errorf("%+v, %v", inner, err)
	}
}

func TestCompactKeepsSpelling(t *testing.T) {
	text := []byte(" { \"a \\u0041\\/\" : [ 1.50 ,\n1E400, -0 ] } ")
	before := bytes.Clone(text)
	if got := string(Compact(text)); got != `{"a \u0041\/":[1.50,1E400,-0]}` {
		t.Error(got)
	}
	if !bytes.Equal(text, before) {
		t.Error("the text has changed")
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		equal      bool
	}{
		{"an integer and a float", `1`, `1.0`, true},
		{"exponents", `100`, `1E+2`, true},
		{"a fraction and an exponent", `0.001`, `1e-3`, true},
		{"trailing zeros", `1.500`, `15e-1`, true},
		{"the zeros", `0`, `-0.000e99999999999999999999`, true},
		{"signs", `1`, `-1`, false},
		{"beyond float64", `1e400`, `10e399`, true},
		{"beyond float64, different", `1e400`, `1e401`, false},
		{"the last digit of many", `0.1000000000000000055511151231257827`, `0.1`, false},
		{"many digits", `123456789012345678901234567890`, `12345678901234567890123456789e1`, true},
		{"endless exponents", `1e99999999999999999999`, `1e99999999999999999999`, true},
		{"endless exponents, different", `1e99999999999999999999`, `1e99999999999999999998`, false},
		{"a number and a string", `1`, `"1"`, false},
		{"true and 1", `true`, `1`, false},
		{"escapes", `"a\/\u0041\t"`, `"a/A\u0009"`, true},
		{"a string that looks like another value", `"{}"`, `{}`, false},
		{"strings that would run together", `["a,","b"]`, `["a",",b"]`, false},
		{"order of keys", `{"a":1,"b":{"c":[],"d":{}}}`, `{"b":{"d":{},"c":[]},"a":1}`, true},
		{"an empty array and an empty object", `[]`, `{}`, false},
		{"an array in an array", `[[1],2]`, `[[1,2]]`, false},
		{"keys that differ in case", `{"a":1}`, `{"A":1}`, false},
		{"white space", " [ 1 ,\n2\t] ", `[1,2]`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range []string{c.a, c.b} {
				if err := Check([]byte(s)); err != nil {
					t.Fatal(err)
				}
			}
			a, b := Canonical([]byte(c.a)), Canonical([]byte(c.b))
			if (a == b) != c.equal {
				t.Errorf("%s and %s", a, b)
			}
		})
	}
}

// What Check takes, encoding/json takes too, as the same value. What only Check refuses is
// what it is there for.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `["\ud83d\ude00","\ud83d","\u12g4"]`, "\ufeff{}", "{}x", "[1,]", "\"\x00\xff\"",
		`[1e400,-0,1E+2,1e99999999999999999999,9223372036854775808]`, nested(MaxDepth, "[", "", "]"), nested(MaxDepth+1, "[", "", "]"),
		`{"a":{"b":[true,false,null,"\/"]}, "A":0.5}`, `{"a" 1}`, `{"a":[1 2]}`, `[-]`, `[01]`, `[1.]`, `[1e]`, `{1}`, `nul`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := Parse(text, 0)
		if err != nil {
			own := []string{"byte-order mark", "key given twice", "invalid UTF-8", "unpaired surrogate", "nested deeper than 128 levels"}
			if json.Valid(text) && !containsAny(err.Error(), own) {
				t.Fatalf("only we refuse %q: %v", text, err)
			}
			return
		}
		var want, got any
		decode := func(text []byte, v *any) {
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if err := d.Decode(v); err != nil {
				t.Fatal(err)
			}
		}
		decode(text, &want)
		compact := Compact(text)
		decode(compact, &got)
		if !reflect.DeepEqual(got, want) || Check(compact) != nil || Canonical(compact) != Canonical(text) {
			t.Fatalf("compact is another value: %s", compact)
		}
		if got := values(t, root); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// values decodes a value as encoding/json does.
func values(t *testing.T, v Value) any {
	switch v.Raw[0] {
	case '{':
		members, err := v.Members()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]any{}
		for key, member := range members {
			all[key] = values(t, member)
		}
		return all
	case '[':
		elements, err := v.Elements("")
		if err != nil {
			t.Fatal(err)
		}
		all := []any{}
		for _, element := range elements {
			all = append(all, values(t, element))
		}
		return all
	case '"':
		s, err := v.String()
		if err != nil {
			t.Fatal(err)
		}
		return s
	case 't', 'f':
		b, err := v.Bool()
		if err != nil {
			t.Fatal(err)
		}
		return b
	case 'n':
		return nil
	}
	return json.Number(v.Raw)
}
