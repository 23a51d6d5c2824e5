package publish

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/excerpt"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
	"github.com/fieldstone-io/fieldstone/internal/strictjson"
)

// metadataV2 is a minimal text of version 2 whose parts the tests replace.
const metadataV2 = `{
  "format_version": 2,
  "accepted_time": 12.375,
  "accepted_increment": 99,
  "result_counter": 7,
  "method_identity": "etd1",
  "domain": {
    "global_dimensions": [10, 6, 7],
    "physical_origin": [-1.5, 0.0, 2.25],
    "grid_spacing": [0.5, 0.1, 0.25],
    "periodic": [true, false, true]
  },
  "fields": ["psi", "temperature"]
}`

const metadataV1 = `{
  "format_version": 1,
  "accepted_time": 12.375,
  "accepted_increment": 99,
  "method_identity": "etd1",
  "domain": {
    "global_dimensions": [10, 6, 7],
    "physical_origin": [-1.5, 0.0, 2.25],
    "grid_spacing": [0.5, 0.1, 0.25]
  }
}`

func sampleMetadata() Metadata {
	return Metadata{
		FormatVersion: 2, AcceptedTime: 12.375, AcceptedIncrement: 99, ResultCounter: 7, MethodIdentity: "etd1",
		Domain: grid.Domain{
			Size: [3]int{10, 6, 7}, Origin: [3]float64{-1.5, 0, 2.25}, Spacing: [3]float64{0.5, 0.1, 0.25},
			Periodic: [3]bool{true, false, true},
		},
		Fields: []string{"psi", "temperature"},
	}
}

// replaced returns text with one part replaced, which must be there once.
func replaced(t *testing.T, text, old, new string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is in the text %d times", old, strings.Count(text, old))
	}
	return strings.Replace(text, old, new, 1)
}

func TestParseMetadata(t *testing.T) {
	base := sampleMetadata()
	with := func(change func(m *Metadata)) Metadata {
		m := base
		change(&m)
		return m
	}
	for _, c := range []struct {
		name     string
		text     string
		old, new string
		want     Metadata
	}{
		{"version 2", metadataV2, "", "", base},
		{"version 1 is periodic and lists no fields", metadataV1, "", "", with(func(m *Metadata) {
			m.FormatVersion, m.ResultCounter, m.Fields = 1, 0, nil
			m.Domain.Periodic = [3]bool{true, true, true}
		})},
		{"version 1 may list fields", metadataV1, `"etd1",`, `"etd1", "fields": ["b", "a"],`, with(func(m *Metadata) {
			m.FormatVersion, m.ResultCounter, m.Fields = 1, 0, []string{"b", "a"}
			m.Domain.Periodic = [3]bool{true, true, true}
		})},
		{"version 1 may say that it is periodic", metadataV1, `"domain": {`, `"domain": {"periodic": [true, true, true],`, with(func(m *Metadata) {
			m.FormatVersion, m.ResultCounter, m.Fields = 1, 0, nil
			m.Domain.Periodic = [3]bool{true, true, true}
		})},
		{"version 1 may have boundary conditions", metadataV1, `"etd1",`, `"etd1", "boundary_conditions": [],`, with(func(m *Metadata) {
			m.FormatVersion, m.ResultCounter, m.Fields, m.BoundaryConditions = 1, 0, nil, []BoundaryRecord{}
			m.Domain.Periodic = [3]bool{true, true, true}
		})},
		{"an absent result counter is 0", metadataV2, `"result_counter": 7,`, "", with(func(m *Metadata) { m.ResultCounter = 0 })},
		{"unknown keys are ignored", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "x": {"format_version": [null]}, "": 1,`, base},
		{"keys are told by case", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "Accepted_Time": 1,`, base},
		{"an integer may have a point", metadataV2, `99`, `99.0`, base},
		{"an integer may have an exponent", metadataV2, `99`, `0.99e2`, base},
		{"the largest increment", metadataV2, `99`, `9223372036854775807`, with(func(m *Metadata) { m.AcceptedIncrement = math.MaxInt64 })},
		{"an integral time is a float", metadataV2, `12.375`, `12`, with(func(m *Metadata) { m.AcceptedTime = 12 })},
		{"a time may be negative", metadataV2, `12.375`, `-1e-300`, with(func(m *Metadata) { m.AcceptedTime = -1e-300 })},
		{"escapes in strings", metadataV2, `"etd1"`, `"\u0065\u00e9\ud83d\ude00\n\"\/"`, with(func(m *Metadata) { m.MethodIdentity = "eé😀\n\"/" })},
		{"no fields", metadataV2, `["psi", "temperature"]`, `[ ]`, with(func(m *Metadata) { m.Fields = []string{} })},
		{"a decomposition", metadataV2, `"result_counter": 7,`, `"result_counter": 7,
			"decomposition": {"mpi_size": 3, "local_size": [10, 6, 2], "local_offset": [0, 0, 5]},`,
			with(func(m *Metadata) { m.Decomposition = &Decomposition{3, [3]int{10, 6, 2}, [3]int{0, 0, 5}} })},
		{"boundary conditions keep the spelling of their numbers", metadataV2, `"result_counter": 7,`, `"result_counter": 7,
			"boundary_conditions": [{"config": { "a b": [1.0, 12345678901234567890123, 1E400 ], "s": "x \" y" }, "state": null},
				{"state": {"xpos": 1.50}, "config": null}, {"config": 1}],`,
			with(func(m *Metadata) {
				m.BoundaryConditions = []BoundaryRecord{
					{Config: json.RawMessage(`{"a b":[1.0,12345678901234567890123,1E400],"s":"x \" y"}`)},
					{Config: json.RawMessage(`null`), State: json.RawMessage(`{"xpos":1.50}`)},
					{Config: json.RawMessage(`1`)},
				}
			})},
		{"the writer", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "fieldstone": {"version": "v1", "created": "2026-01-02T03:04:05.5+01:00", "more": 1},`,
			with(func(m *Metadata) {
				m.Writer = &Writer{Version: "v1", Created: time.Date(2026, 1, 2, 2, 4, 5, 5e8, time.UTC)}
			})},
		{"an optional key may be null", metadataV2, `"result_counter": 7,`,
			`"result_counter": null, "decomposition": null, "boundary_conditions": null, "fieldstone": null,`,
			with(func(m *Metadata) { m.ResultCounter = 0 })},
		{"parts of the writer may be null", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "fieldstone": {"version": null, "created": null},`,
			with(func(m *Metadata) { m.Writer = &Writer{} })},
		{"what version 1 need not have may be null", metadataV1, `"domain": {`, `"fields": null, "result_counter": null, "domain": {"periodic": null,`, with(func(m *Metadata) {
			m.FormatVersion, m.ResultCounter, m.Fields = 1, 0, nil
			m.Domain.Periodic = [3]bool{true, true, true}
		})},
		{"an empty list of version 1 is none", metadataV1, `"etd1",`, `"etd1", "fields": [],`, with(func(m *Metadata) {
			m.FormatVersion, m.ResultCounter, m.Fields = 1, 0, nil
			m.Domain.Periodic = [3]bool{true, true, true}
		})},
		{"a writer that has counted", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "fieldstone": {"non_finite": {"temperature": 420, "psi": 0}},`,
			with(func(m *Metadata) { m.Writer = &Writer{NonFinite: map[string]int64{"temperature": 420, "psi": 0}} })},
		{"a writer that has found nothing", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "fieldstone": {"non_finite": {}},`,
			with(func(m *Metadata) { m.Writer = &Writer{NonFinite: map[string]int64{}} })},
		{"a writer that hasn't counted", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "fieldstone": {"non_finite": null},`,
			with(func(m *Metadata) { m.Writer = &Writer{} })},
		{"a writer that says nothing", metadataV2, `"result_counter": 7,`, `"result_counter": 7, "fieldstone": {},`,
			with(func(m *Metadata) { m.Writer = &Writer{} })},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.text
			if c.old != "" {
				text = replaced(t, text, c.old, c.new)
			}
			got, err := ParseMetadata([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestParseMetadataRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 4000) + strings.Repeat(`]}`, 4000)
	for _, c := range []struct {
		name     string
		old, new string // in metadataV2
		key      string
		reason   string
	}{
		{"a version from the future", `"format_version": 2`, `"format_version": 3`, "format_version", "3 is not supported (this reader knows 1 and 2)"},
		{"version 0", `"format_version": 2`, `"format_version": 0`, "format_version", "0 is not supported"},
		{"a version that is no number", `"format_version": 2`, `"format_version": "2"`, "format_version", "want an integer, got a string"},
		{"a version that is no integer", `"format_version": 2`, `"format_version": 2.5`, "format_version", "want an integer, got 2.5"},
		{"no version", `"format_version": 2,`, ``, "format_version", "missing"},
		{"no time", `"accepted_time": 12.375,`, ``, "accepted_time", "missing"},
		{"no increment", `"accepted_increment": 99,`, ``, "accepted_increment", "missing"},
		{"no method", `"method_identity": "etd1",`, ``, "method_identity", "missing"},
		{"no fields", `"fields": ["psi", "temperature"]`, `"f": 1`, "fields", "missing (required in format version 2)"},
		{"no periodicity", `"periodic": [true, false, true]`, `"p": 1`, "domain.periodic", "missing (required in format version 2)"},
		{"no dimensions", `"global_dimensions": [10, 6, 7],`, ``, "domain.global_dimensions", "missing"},
		{"no origin", `"physical_origin": [-1.5, 0.0, 2.25],`, ``, "domain.physical_origin", "missing"},
		{"no spacing", `"grid_spacing": [0.5, 0.1, 0.25],`, ``, "domain.grid_spacing", "missing"},
		{"a time that is null", `12.375`, `null`, "accepted_time", "want a number, got null"},
		{"a time that is a string", `12.375`, `"12.375"`, "accepted_time", "want a number, got a string"},
		{"a time beyond float64", `12.375`, `1e400`, "accepted_time", "1e400 is out of the range of a float64"},
		{"a time that is not JSON", `12.375`, `NaN`, "accepted_time", `line 3, column 20: want a JSON value, got 'N'`},
		{"an infinite time", `12.375`, `-Infinity`, "accepted_time", `want a digit`},
		{"a negative increment", `99`, `-1`, "accepted_increment", "-1 is negative"},
		{"an increment with a fraction", `99`, `99.5`, "accepted_increment", "want an integer, got 99.5"},
		{"an increment beyond 64 bits", `99`, `9223372036854775808`, "accepted_increment", "does not fit into 64 bits"},
		{"an increment far beyond", `99`, `1e1000000000`, "accepted_increment", "does not fit into 64 bits"},
		{"an increment with an endless exponent", `99`, `1e99999999999999999999999`, "accepted_increment", "does not fit into 64 bits"},
		{"an increment near zero", `99`, `1e-1000000000`, "accepted_increment", "want an integer"},
		{"a negative counter", `"result_counter": 7`, `"result_counter": -7`, "result_counter", "-7 is negative"},
		{"a method that is a number", `"etd1"`, `1`, "method_identity", "want a string, got a number"},
		{"a domain that is an array", `"domain": {`, `"domain": [1], "x": {`, "domain", "want an object, got an array"},
		{"two dimensions", `[10, 6, 7]`, `[10, 6]`, "domain.global_dimensions", "want 3 integers, got 2"},
		{"four dimensions", `[10, 6, 7]`, `[10, 6, 7, 1]`, "domain.global_dimensions", "want 3 integers, got 4"},
		{"a dimension of 0", `[10, 6, 7]`, `[10, 0, 7]`, "domain.global_dimensions[1]", "0, must be greater than 0"},
		{"a negative dimension", `[10, 6, 7]`, `[10, 6, -7]`, "domain.global_dimensions[2]", "-7, must be greater than 0"},
		{"a dimension with a fraction", `[10, 6, 7]`, `[10, 6.5, 7]`, "domain.global_dimensions[1]", "want an integer, got 6.5"},
		{"dimensions whose product is too large", `[10, 6, 7]`, `[2000000000, 2000000000, 1]`, "domain.global_dimensions", "more cells than a file can hold"},
		{"dimensions that are an object", `[10, 6, 7]`, `{}`, "domain.global_dimensions", "want an array of 3 integers, got an object"},
		{"an origin beyond float64", `-1.5`, `-1e999`, "domain.physical_origin[0]", "out of the range of a float64"},
		{"a spacing of 0", `0.25`, `0`, "domain.grid_spacing[2]", "0, must be finite and greater than 0"},
		{"a spacing that rounds to 0", `0.25`, `1e-400`, "domain.grid_spacing[2]", "0, must be finite and greater than 0"},
		{"a negative spacing", `0.25`, `-0.25`, "domain.grid_spacing[2]", "-0.25, must be finite and greater than 0"},
		{"a flag that is a number", `[true, false, true]`, `[true, 0, true]`, "domain.periodic[1]", "want a boolean, got a number"},
		{"a flag that is null", `[true, false, true]`, `[true, false, null]`, "domain.periodic[2]", "want a boolean, got null"},
		{"fields that are an object", `["psi", "temperature"]`, `{"psi": 1}`, "fields", "want an array of strings, got an object"},
		{"a field that is a number", `"temperature"]`, `1]`, "fields[1]", "want a string, got a number"},
		{"a field twice", `"temperature"]`, `"psi"]`, "fields[1]", `field id "psi": given twice`},
		{"an id that leads out", `"temperature"]`, `"../../etc/passwd"]`, "fields[1]", `field id "../../etc/passwd": must not contain a slash`},
		{"an id that is escaped", `"temperature"]`, `"a\u0000b"]`, "fields[1]", `field id "a\x00b": must not contain control characters`},
		{"an empty id", `"temperature"]`, `""]`, "fields[1]", `field id "": must not be empty`},
		{"a decomposition without size", `"result_counter": 7,`, `"decomposition": {},`, "decomposition.mpi_size", "missing"},
		{"a decomposition with a huge size", `"result_counter": 7,`, `"decomposition": {"mpi_size": 1e30, "local_size": [1,1,1], "local_offset": [0,0,0]},`, "decomposition.mpi_size", "does not fit into 64 bits"},
		{"fields that are null", `["psi", "temperature"]`, `null`, "fields", "want an array of strings, got null"},
		{"periodicity that is null", `[true, false, true]`, `null`, "domain.periodic", "want an array of 3 booleans, got null"},
		{"a decomposition with a size that is null", `"result_counter": 7,`, `"decomposition": {"mpi_size": null, "local_size": [1,1,1], "local_offset": [0,0,0]},`, "decomposition.mpi_size", "want an integer, got null"},
		{"a boundary condition without configuration", `"result_counter": 7,`, `"boundary_conditions": [{"state": null}],`, "boundary_conditions[0].config", "missing"},
		{"a boundary condition that is a string", `"result_counter": 7,`, `"boundary_conditions": ["fixed"],`, "boundary_conditions[0]", "want an object, got a string"},
		{"a writer with a bad time", `"result_counter": 7,`, `"fieldstone": {"created": "yesterday"},`, "fieldstone.created", `"yesterday" is not a time by RFC 3339`},
		{"a writer that has counted no numbers", `"result_counter": 7,`, `"fieldstone": {"non_finite": {"psi": "many"}},`, "fieldstone.non_finite.psi", "want an integer, got a string"},
		{"a writer that has counted less than none", `"result_counter": 7,`, `"fieldstone": {"non_finite": {"psi": -1}},`, "fieldstone.non_finite.psi", "-1 is not a number of cells of 420"},
		{"a writer that has counted more cells than there are", `"result_counter": 7,`, `"fieldstone": {"non_finite": {"psi": 421}},`, "fieldstone.non_finite.psi", "421 is not a number of cells of 420"},
		{"a writer that has counted in another field", `"result_counter": 7,`, `"fieldstone": {"non_finite": {"phi x": 1}},`, `fieldstone.non_finite."phi x"`, "is not one of the fields"},
		{"a writer whose counts are a list", `"result_counter": 7,`, `"fieldstone": {"non_finite": []},`, "fieldstone.non_finite", "want an object, got an array"},
		{"a key twice", `"result_counter": 7,`, `"accepted_time": 12.375,`, "accepted_time", "line 5, column 3: key given twice"},
		{"a key twice in the domain", `"periodic":`, `"grid_spacing": [1, 1, 1], "periodic":`, "domain.grid_spacing", "key given twice"},
		{"a key twice in another spelling", `"result_counter": 7,`, `"accepted\u005ftime": 1,`, "accepted_time", "key given twice"},
		{"a key twice in what is ignored", `"result_counter": 7,`, `"x": [{"a": 1, "a": 1}],`, "x[0].a", "key given twice"},
		{"a key twice in a configuration", `"result_counter": 7,`, `"boundary_conditions": [{"config": {"k": {"a b": 1, "a b": 2}}}],`, `boundary_conditions[0].config.k."a b"`, "key given twice"},
		{"nesting without end", `"result_counter": 7,`, `"x": ` + deep + `,`, "", "nested deeper than 128 levels"},
		{"an unclosed nesting", `"result_counter": 7,`, strings.Repeat("[", 100000), "result", ""},
		{"a comma at the end", `"temperature"]`, `"temperature",]`, "fields[2]", "want a JSON value, got ']'"},
		{"a comment", `"result_counter": 7,`, `// no`, "", "want a key, got '/'"},
		{"a key without quotes", `"result_counter": 7,`, `x: 1,`, "", "want a key, got 'x'"},
		{"a number with a leading 0", `99`, `099`, "accepted_increment", "a number can't begin with 0"},
		{"a number with a sign", `99`, `+99`, "accepted_increment", "want a JSON value, got '+'"},
		{"a number that ends in a point", `99`, `99.`, "accepted_increment", "want a digit after the point"},
		{"a number that ends in an exponent", `99`, `99e+`, "accepted_increment", "want a digit in the exponent"},
		{"a line break in a string", `"etd1"`, "\"etd\n1\"", "method_identity", "control character '\\n' in a string"},
		{"an unknown escape", `"etd1"`, `"\x41"`, "method_identity", `unknown escape \x`},
		{"half a surrogate pair", `"etd1"`, `"\ud83dx"`, "method_identity", "unpaired surrogate"},
		{"a surrogate pair the wrong way round", `"etd1"`, `"\ude00\ud83d"`, "method_identity", "unpaired surrogate"},
		{"two first halves of a surrogate pair", `"etd1"`, `"\ud83d\ud83d"`, "method_identity", "unpaired surrogate"},
		{"an escape with few digits", `"etd1"`, `"\u12g4"`, "method_identity", "want 4 hexadecimal digits"},
		{"invalid UTF-8", `etd1`, "\xff", "", "line 6, column 23: invalid UTF-8"},
		{"a surrogate in UTF-8", `etd1`, "\xed\xa0\x80", "", "line 6, column 23: invalid UTF-8"},
		{"a word that is cut", `[true, false, true]`, `[true, fals, true]`, "domain.periodic[1]", "want false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := replaced(t, metadataV2, c.old, c.new)
			m, err := ParseMetadata([]byte(text))
			if err == nil {
				t.Fatalf("read as %+v", m)
			}
			var e *MetadataError
			if !errors.As(err, &e) {
				t.Fatalf("%T is not a MetadataError: %v", err, err)
			}
			if c.name == "an unclosed nesting" {
				return
			}
			if c.key != "" && e.Key != c.key || !strings.Contains(e.Reason, c.reason) {
				t.Errorf("got  %q: %s\nwant %q: %s", e.Key, excerpt.Of(e.Reason, 300, "..."), c.key, c.reason)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			version := c.key == "format_version" && strings.Contains(c.reason, "not supported")
			if errors.Is(err, ErrVersion) != version || errors.Is(err, ErrMetadata) == version {
				t.Errorf("ErrVersion is %t, ErrMetadata %t", errors.Is(err, ErrVersion), errors.Is(err, ErrMetadata))
			}
		})
	}
}

func TestParseMetadataRefusesTexts(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "line 1, column 1: the text ends in the middle of a value"},
		{"white space", " \n ", "line 2, column 2: the text ends"},
		{"not JSON", "<xml>", "line 1, column 1: want a JSON value, got '<'"},
		{"no object", "[]", "want an object, got an array"},
		{"null", "null", "want an object, got null"},
		{"a byte-order mark", "\ufeff" + metadataV2, "begins with a byte-order mark"},
		{"UTF-16", "{\x00\"\x00", "want a key, got '\\x00'"},
		{"text after the end", metadataV2 + "x", "text after the end of the JSON value"},
		{"two values", metadataV2 + metadataV2, "text after the end of the JSON value"},
		{"too large", strings.Repeat(" ", maxMetadataBytes+1), "bytes of metadata, at most"},
		{"a bounded axis in version 1", replaced(t, metadataV1, `"domain": {`, `"domain": {"periodic": [true, false, true],`),
			"domain.periodic: format version 1 can't express a bounded axis"},
		{"a mistyped periodicity in version 1", replaced(t, metadataV1, `"domain": {`, `"domain": {"periodic": true,`),
			"domain.periodic: want an array of 3 booleans, got a boolean"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseMetadata([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrMetadata) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseMetadataRefusesEveryTruncation(t *testing.T) {
	for n := range len(metadataV2) {
		if _, err := ParseMetadata([]byte(metadataV2[:n])); !errors.Is(err, ErrMetadata) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestEncodeMetadata(t *testing.T) {
	m := sampleMetadata()
	m.FormatVersion = 0
	m.AcceptedTime = 1e-7
	m.Domain.Origin = [3]float64{math.Copysign(0, -1), 1e21, 3}
	m.MethodIdentity = "a \"b\" \\ <&> é\u2028\x1f"
	m.Decomposition = &Decomposition{3, [3]int{10, 6, 3}, [3]int{0, 0, 0}}
	m.BoundaryConditions = []BoundaryRecord{
		{Config: json.RawMessage("{ \"a\": 1.0,\n \"b\": \"< >\" }"), State: json.RawMessage(`{"xpos": 1e400}`)},
		{Config: json.RawMessage(`[]`), State: json.RawMessage(`null`)},
	}
	m.Writer = &Writer{Version: "v0.1.0", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}
	const want = `{
  "format_version": 2,
  "accepted_time": 1e-07,
  "accepted_increment": 99,
  "result_counter": 7,
  "method_identity": "a \"b\" \\ <&> é` + "\u2028" + `\u001f",
  "domain": {
    "global_dimensions": [10, 6, 7],
    "physical_origin": [-0.0, 1e+21, 3.0],
    "grid_spacing": [0.5, 0.1, 0.25],
    "periodic": [true, false, true]
  },
  "decomposition": {
    "mpi_size": 3,
    "local_size": [10, 6, 3],
    "local_offset": [0, 0, 0]
  },
  "fields": [
    "psi",
    "temperature"
  ],
  "boundary_conditions": [
    {
      "config": {"a":1.0,"b":"< >"},
      "state": {"xpos":1e400}
    },
    {
      "config": [],
      "state": null
    }
  ],
  "fieldstone": {
    "version": "v0.1.0",
    "created": "2026-01-02T02:04:05Z"
  }
}
`
	got, err := EncodeMetadata(m)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if !json.Valid(got) {
		t.Error("encoding/json does not take it")
	}
}

func TestEncodeMetadataRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name   string
		change func(m *Metadata)
		want   string
	}{
		{"NaN as time", func(m *Metadata) { m.AcceptedTime = nan }, "accepted_time: NaN is not finite"},
		{"an infinite time", func(m *Metadata) { m.AcceptedTime = -inf }, "accepted_time: -Inf is not finite"},
		{"a negative increment", func(m *Metadata) { m.AcceptedIncrement = -1 }, "accepted_increment: -1 is negative"},
		{"a negative counter", func(m *Metadata) { m.ResultCounter = -1 }, "result_counter: -1 is negative"},
		{"a dimension of 0", func(m *Metadata) { m.Domain.Size[2] = 0 }, "domain.global_dimensions[2]: 0, must"},
		{"a negative dimension", func(m *Metadata) { m.Domain.Size[0] = -3 }, "domain.global_dimensions[0]: -3, must"},
		{"too many cells", func(m *Metadata) { m.Domain.Size = [3]int{1 << 30, 1 << 30, 2} }, "domain.global_dimensions: "},
		{"NaN as origin", func(m *Metadata) { m.Domain.Origin[1] = nan }, "domain.physical_origin[1]: NaN is not finite"},
		{"a spacing of 0", func(m *Metadata) { m.Domain.Spacing[0] = 0 }, "domain.grid_spacing[0]: 0, must"},
		{"NaN as spacing", func(m *Metadata) { m.Domain.Spacing[1] = nan }, "domain.grid_spacing[1]: NaN, must"},
		{"an infinite spacing", func(m *Metadata) { m.Domain.Spacing[1] = inf }, "domain.grid_spacing[1]: +Inf, must"},
		{"a method that is not UTF-8", func(m *Metadata) { m.MethodIdentity = "\xff" }, "method_identity: "},
		{"a bad id", func(m *Metadata) { m.Fields[1] = "a/b" }, `fields[1]: field id "a/b": must not contain a slash`},
		{"an id twice", func(m *Metadata) { m.Fields[1] = "psi" }, `fields[1]: field id "psi": given twice`},
		{"no configuration", func(m *Metadata) { m.BoundaryConditions = []BoundaryRecord{{}} }, "boundary_conditions[0].config: missing"},
		{"a configuration that is not JSON", func(m *Metadata) { m.BoundaryConditions = []BoundaryRecord{{Config: json.RawMessage("{")}} }, "boundary_conditions[0].config: line 1"},
		{"a state with a key twice", func(m *Metadata) {
			m.BoundaryConditions = []BoundaryRecord{{Config: json.RawMessage("1"), State: json.RawMessage(`{"a":1,"a":1}`)}}
		}, "boundary_conditions[0].state: a: line 1, column 8: key given twice"},
		{"a configuration that is too deep inside of the whole", func(m *Metadata) {
			deep := strings.Repeat("[", strictjson.MaxDepth-1) + strings.Repeat("]", strictjson.MaxDepth-1)
			m.BoundaryConditions = []BoundaryRecord{{Config: json.RawMessage(deep)}}
		}, "nested deeper"},
		{"a year that can't be written", func(m *Metadata) { m.Writer = &Writer{Created: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} }, "fieldstone.created"},
		{"a version of the writer that is not UTF-8", func(m *Metadata) { m.Writer = &Writer{Version: "\xff"} }, "fieldstone.version"},
		{"version 1", func(m *Metadata) { m.FormatVersion, m.Domain.Periodic = 1, [3]bool{true, true, true} }, "format_version: 1 is not written, only 2"},
		{"version 3", func(m *Metadata) { m.FormatVersion = 3 }, "format_version: 3 is not"},
		{"more than is read", func(m *Metadata) { m.MethodIdentity = strings.Repeat("x", maxMetadataBytes) }, "at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sampleMetadata()
			c.change(&m)
			text, err := EncodeMetadata(m)
			var e *MetadataError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q; text %.200s", err, c.want, text)
			}
		})
	}
}

func TestMetadataIsJSONOfOtherPackages(t *testing.T) {
	m := sampleMetadata()
	m.FormatVersion, m.Domain.Periodic = 1, [3]bool{true, true, true}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got Metadata
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if err := json.Unmarshal([]byte(`{"format_version": 9}`), &got); !errors.Is(err, ErrVersion) {
		t.Errorf("got %v", err)
	}
}

func anyFloat(label string) *rapid.Generator[float64] {
	return rapid.Custom(func(t *rapid.T) float64 {
		v := math.Float64frombits(rapid.Uint64().Draw(t, label))
		if !nonfinite.Finite(v) {
			return rapid.Float64().Draw(t, label)
		}
		return v
	})
}

func anyID() *rapid.Generator[string] {
	return rapid.String().Filter(func(s string) bool { return CheckID(s) == nil })
}

// anyJSON returns texts without white space, of all types, some of them with
// numbers that no float64 holds.
func anyJSON(depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1.50", "1E400", "123456789012345678901234567890", "-1e-999999999999999999999"}),
		rapid.Custom(func(t *rapid.T) string {
			text, err := json.Marshal(rapid.String().Draw(t, "string"))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}))
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Custom(func(t *rapid.T) string {
			return "[" + strings.Join(rapid.SliceOfN(anyJSON(depth-1), 0, 3).Draw(t, "array"), ",") + "]"
		}),
		rapid.Custom(func(t *rapid.T) string {
			var members []string
			for k, v := range rapid.MapOfN(rapid.StringMatching("[a-c é]{0,3}"), anyJSON(depth-1), 0, 3).Draw(t, "object") {
				members = append(members, `"`+k+`":`+v)
			}
			return "{" + strings.Join(members, ",") + "}"
		}))
}

func anyMetadata() *rapid.Generator[Metadata] {
	return rapid.Custom(func(t *rapid.T) Metadata {
		triple := rapid.IntRange(1, 1<<19)
		bit := rapid.Bool()
		m := Metadata{
			FormatVersion:     2,
			AcceptedTime:      anyFloat("bits").Draw(t, "time"),
			AcceptedIncrement: rapid.Int64Range(0, math.MaxInt64).Draw(t, "increment"),
			ResultCounter:     rapid.Int64Range(0, math.MaxInt64).Draw(t, "counter"),
			MethodIdentity:    rapid.String().Draw(t, "method"),
			Fields:            rapid.SliceOfNDistinct(anyID(), 0, 4, func(s string) string { return s }).Draw(t, "fields"),
		}
		for a := range 3 {
			m.Domain.Size[a] = triple.Draw(t, "size")
			m.Domain.Origin[a] = anyFloat("bits").Draw(t, "origin")
			m.Domain.Spacing[a] = math.Abs(anyFloat("bits").Filter(func(v float64) bool { return v != 0 }).Draw(t, "spacing"))
			m.Domain.Periodic[a] = bit.Draw(t, "periodic")
		}
		if bit.Draw(t, "decomposition") {
			m.Decomposition = &Decomposition{MPISize: rapid.Int().Draw(t, "ranks")}
			for a := range 3 {
				m.Decomposition.LocalSize[a] = rapid.Int().Draw(t, "local size")
				m.Decomposition.LocalOffset[a] = rapid.Int().Draw(t, "local offset")
			}
		}
		if bit.Draw(t, "boundaries") {
			m.BoundaryConditions = []BoundaryRecord{}
			for range rapid.IntRange(0, 3).Draw(t, "conditions") {
				r := BoundaryRecord{Config: json.RawMessage(anyJSON(3).Draw(t, "config"))}
				if s := anyJSON(3).Draw(t, "state"); s != "null" {
					r.State = json.RawMessage(s)
				}
				m.BoundaryConditions = append(m.BoundaryConditions, r)
			}
		}
		if bit.Draw(t, "writer") {
			m.Writer = &Writer{Version: rapid.String().Draw(t, "version")}
			if bit.Draw(t, "counted") {
				m.Writer.NonFinite = map[string]int64{}
				for _, id := range m.Fields {
					if bit.Draw(t, "not finite") {
						m.Writer.NonFinite[id] = rapid.Int64Range(0, m.Domain.Cells()).Draw(t, "count")
					}
				}
			}
			if bit.Draw(t, "created") {
				m.Writer.Created = time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
			}
		}
		return m
	})
}

func TestMetadataRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMetadata().Draw(t, "metadata")
		text, err := EncodeMetadata(m)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			t.Fatalf("encoding/json does not take %s", text)
		}
		got, err := ParseMetadata(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		// DeepEqual, as it tells nil from empty; -0 from 0 is told by the text.
		if !reflect.DeepEqual(m, got) {
			t.Fatalf("-want +got:\n%s", cmp.Diff(m, got))
		}
		again, err := EncodeMetadata(got)
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(text) {
			t.Fatalf("another text the second time:\n%s", cmp.Diff(string(text), string(again)))
		}
	})
}

func TestReadMetadata(t *testing.T) {
	write := func(t *testing.T, text string, fields ...string) string {
		dir := filepath.Join(t.TempDir(), "a bundle é")
		if err := os.MkdirAll(filepath.Join(dir, "fields"), 0o777); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			writeTestFile(t, filepath.Join(dir, "metadata.json"), []byte(text))
		}
		for _, f := range fields {
			writeTestFile(t, filepath.Join(dir, "fields", f), nil)
		}
		return dir
	}
	t.Run("the fields of version 1 are those of the directory, sorted", func(t *testing.T) {
		m, err := ReadMetadata(write(t, metadataV1, "b.bin", "a.bin", "a-b.bin", "notes.txt", ".bin.bin"))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{".bin", "a", "a-b", "b"}, m.Fields); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
	t.Run("what other programs leave is no field", func(t *testing.T) {
		m, err := ReadMetadata(write(t, replaced(t, metadataV1, `"etd1",`, `"etd1", "fields": [],`),
			"a.bin", "._a.bin", "._.bin", ".#a.bin", ".DS_Store", ".nfs0000a1", "a.bin~", "#a.bin#", ".a.bin.swp", "b.bin.part", ".c.bin"))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{".c", "a"}, m.Fields); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
	t.Run("version 1 without fields", func(t *testing.T) {
		m, err := ReadMetadata(write(t, metadataV1))
		if err != nil || m.Fields == nil || len(m.Fields) != 0 {
			t.Errorf("got %v, %v", m.Fields, err)
		}
	})
	for _, c := range []struct {
		name string
		dir  func(t *testing.T) string
		want string
		is   error
	}{
		{"the error names file and key", func(t *testing.T) string {
			return write(t, replaced(t, metadataV2, `"periodic": [true, false, true]`, `"p": 1`))
		}, "a bundle é/metadata.json: domain.periodic: missing (required in format version 2)", ErrMetadata},
		{"an unknown version isn't damage", func(t *testing.T) string {
			return write(t, `{"format_version": 3}`)
		}, "metadata.json: format_version: 3 is not supported", ErrVersion},
		{"an id of version 1 that can't be one", func(t *testing.T) string {
			return write(t, metadataV1, "a\nb.bin")
		}, `a bundle é/fields: field id "a\nb": must not contain control characters`, ErrDamaged},
		{"a file without id in version 1", func(t *testing.T) string {
			return write(t, metadataV1, ".bin")
		}, `field id "": must not be empty`, ErrDamaged},
		{"no metadata", func(t *testing.T) string { return write(t, "") }, "not a bundle: no metadata.json", ErrNotABundle},
		{"no directory", func(t *testing.T) string {
			return filepath.Join(write(t, metadataV2), "metadata.json")
		}, "not a bundle: not a directory", ErrNotABundle},
		{"nothing", func(t *testing.T) string { return filepath.Join(t.TempDir(), "no") }, "no: no such file", fs.ErrNotExist},
		{"metadata that are a directory", func(t *testing.T) string {
			dir := write(t, "")
			if err := os.Mkdir(filepath.Join(dir, "metadata.json"), 0o777); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "metadata.json: not a regular file", ErrDamaged},
		{"metadata that are too large", func(t *testing.T) string {
			return write(t, strings.Repeat(" ", maxMetadataBytes+1))
		}, "metadata.json: more than the", ErrDamaged},
		{"version 1 without a directory of fields", func(t *testing.T) string {
			dir := write(t, metadataV1)
			if err := os.Remove(filepath.Join(dir, "fields")); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "fields: the directory is missing", ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadMetadata(c.dir(t))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.is) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.is == ErrVersion && errors.Is(err, ErrDamaged) {
				t.Error("an unknown version counts as damage")
			}
		})
	}
}

func writeTestFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(metadataV1))
	f.Add([]byte(metadataV2))
	f.Add([]byte(`{"format_version":2,"format_version":2}`))
	f.Add([]byte(`{"format_version":1e0,"accepted_time":1e400}`))
	f.Add([]byte("\ufeff{}"))
	f.Add([]byte(`{"a":"\ud83d\ude00","b":[[[]]]}`))
	f.Add([]byte(strings.Replace(metadataV2, "\"fields\"", "\"fieldstone\": {\"non_finite\": {\"psi\": 3}}, \"fields\"", 1)))
	for _, name := range []string{"golden-v1", "golden-v1-empty-list", "golden-v2"} {
		text, err := os.ReadFile(filepath.Join("testdata", name, "metadata.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMetadata(text)
		if err != nil {
			var e *MetadataError
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseMetadata(again)
		if err != nil {
			// What was read may be written as more than is read.
			if len(again) <= maxMetadataBytes {
				t.Fatalf("%v in %s", err, again)
			}
			return
		}
		if !reflect.DeepEqual(m, got) {
			t.Fatalf("-want +got:\n%s", cmp.Diff(m, got))
		}
	})
}
