package publish

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       bool
	}{
		{"equal texts", `{"a":1}`, `{"a":1}`, true},
		{"white space", " {\"a\" : 1}\n", `{"a":1}`, true},
		{"another order of keys", `{"a":1,"b":[2]}`, `{"b":[2],"a":1}`, true},
		{"another spelling of a number", `[1,1.0,10e-1]`, `[1.00,1e0,1]`, true},
		{"another spelling of a string", `"\u0061"`, `"a"`, true},
		{"a number that differs in its last digit", `9007199254740993`, `9007199254740992`, false},
		{"another order of elements", `[1,2]`, `[2,1]`, false},
		{"a key more", `{"a":1}`, `{"a":1,"b":null}`, false},
		{"a number and a string", `1`, `"1"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
				if got, err := SameJSON(json.RawMessage(p[0]), json.RawMessage(p[1])); err != nil || got != c.want {
					t.Errorf("SameJSON(%s, %s) = %t, %v", p[0], p[1], got, err)
				}
			}
		})
	}
	for _, bad := range []string{"", "{", `{"a":1,"a":1}`, "1 2", strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		if _, err := SameJSON(json.RawMessage("1"), json.RawMessage(bad)); err == nil || !strings.Contains(err.Error(), "second JSON text") {
			t.Errorf("%.20q: %v", bad, err)
		}
		if _, err := SameJSON(json.RawMessage(bad), json.RawMessage("1")); err == nil || !strings.Contains(err.Error(), "first JSON text") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}
