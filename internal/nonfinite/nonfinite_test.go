package nonfinite

import (
	"maps"
	"testing"
)

type policy string

func policies(rest policy, byName map[string]policy) Policies[policy] {
	return Policies[policy]{Rest: rest, ByName: byName, What: "field", Numbers: "cell", Keys: Keys{"rest", "fields"}}
}

func TestPolicies(t *testing.T) {
	names := []string{"phi", "T", "mask"}
	counts := map[string]int64{"T": 1, "phi": 12, "mask": 3, "other": 5}
	for _, c := range []struct {
		p                       Policies[policy]
		warn, refuse, notFinite string
		text                    string
	}{
		{policies("", nil), `12 cells of field "phi", 1 cell of field "T", 3 cells of field "mask"`, "",
			`12 cells of field "phi", 1 cell of field "T", 3 cells of field "mask"`, "warn"},
		{policies(Refuse, map[string]policy{"mask": Ignore}), "", `12 cells of field "phi", 1 cell of field "T"`,
			`12 cells of field "phi", 1 cell of field "T"`, `refuse, "mask" ignore`},
		{policies(Ignore, map[string]policy{"T": Warn, "phi": Refuse}), `1 cell of field "T"`, `12 cells of field "phi"`,
			`12 cells of field "phi", 1 cell of field "T"`, `ignore, "T" warn, "phi" refuse`},
		{policies(Ignore, nil), "", "", "", "ignore"},
	} {
		if got := c.p.Describe(names, counts, Warn); got != c.warn {
			t.Errorf("%v: warns of %s, want %s", c.p, got, c.warn)
		}
		if got := c.p.Describe(names, counts, Refuse); got != c.refuse {
			t.Errorf("%v: refuses %s, want %s", c.p, got, c.refuse)
		}
		if got := c.p.NotFinite(names, counts); got != c.notFinite {
			t.Errorf("%v: not finite are %s, want %s", c.p, got, c.notFinite)
		}
		if got := c.p.String(); got != c.text {
			t.Errorf("%s, want %s", got, c.text)
		}
		if err := c.p.Validate(); err != nil {
			t.Error(err)
		}
		if err := c.p.Check(names); err != nil {
			t.Error(err)
		}
	}
}

func TestPoliciesThatThereAreNot(t *testing.T) {
	for want, p := range map[string]Policies[policy]{
		`rest: "wran": want "warn", "refuse" or "ignore"`:                policies("wran", nil),
		`fields: field "phi": "": want "warn", "refuse" or "ignore"`:     policies("", map[string]policy{"phi": ""}),
		`fields: field "T": "Ignore": want "warn", "refuse" or "ignore"`: policies(Warn, map[string]policy{"a": Warn, "T": "Ignore"}),
	} {
		if err := p.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	const want = `fields: field "phj" is not one of ["phi" "T"]`
	if err := policies("", map[string]policy{"phj": Warn, "phi": Warn}).Check([]string{"phi", "T"}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestRisen(t *testing.T) {
	got := Risen(map[string]int64{"a": 1, "b": 2, "c": 3}, map[string]int64{"a": 1, "b": 3, "c": 2, "d": 1})
	if want := map[string]int64{"b": 3, "d": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
