package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/publish"
)

// blownUp makes a directory of bundles of which some are not finite.
func blownUp(t *testing.T, counts map[int64]map[string]int64) {
	t.Helper()
	t.Chdir(t.TempDir())
	for increment, n := range counts {
		dir := sample{increment: increment}.save(t, "ckpt/"+publish.StepName(increment))
		editMetadata(t, dir, func(m *publish.Metadata) { m.Writer.NonFinite = n })
	}
}

func TestCellsThatAreNotFiniteAreTold(t *testing.T) {
	blownUp(t, map[int64]map[string]int64{10: nil, 20: {}, 30: {"phi": 24}, 40: {"phi": 1, "T": 7}})
	const note = "NaN or infinite: phi (1 cell), T (7 cells)"

	o := mustRun(t, 0, "ls", "ckpt")
	for _, want := range []string{note + "\n", "NaN or infinite: phi (24 cells)\n", `"latest" restarts from step_20, passing over step_40, step_30 (if`} {
		if !strings.Contains(o.out, want) {
			t.Errorf("ls lacks %q:\n%s", want, o.out)
		}
	}
	l := decodeJSON[listing](t, mustRun(t, 0, "ls", "--json", "ckpt"))
	want := []map[string]int64{{"phi": 1, "T": 7}, {"phi": 24}, {}, nil}
	for i, e := range l.Entries {
		if !maps.Equal(e.NonFinite, want[i]) || (e.NonFinite == nil) != (want[i] == nil) {
			t.Errorf("%s: %v, want %v", e.Name, e.NonFinite, want[i])
		}
	}
	if *l.Latest.From != "step_20" || strings.Join(l.Latest.Passed, " ") != "step_40 step_30" {
		t.Errorf("%+v", l.Latest)
	}

	if o := mustRun(t, 0, "show", "ckpt/step_40"); !strings.HasSuffix(o.out, "\n"+note+"\n") {
		t.Errorf("show lacks %q:\n%s", note, o.out)
	}
	for _, step := range []string{"step_10", "step_20"} {
		if o := mustRun(t, 0, "show", "ckpt/"+step); strings.Contains(o.out, "infinite") {
			t.Errorf("%s", o.out)
		}
	}
	type fields struct{ Fields []shownField }
	known := decodeJSON[fields](t, mustRun(t, 0, "show", "--json", "ckpt/step_30"))
	if f := known.Fields; *f[0].NonFinite != 24 || *f[1].NonFinite != 0 {
		t.Errorf("%d, %d", *f[0].NonFinite, *f[1].NonFinite)
	}
	unknown := decodeJSON[fields](t, mustRun(t, 0, "show", "--json", "ckpt/step_10"))
	if f := unknown.Fields; f[0].NonFinite != nil || f[1].NonFinite != nil {
		t.Errorf("%+v", f)
	}

	o = mustRun(t, 0, "verify", "ckpt/step_40", "ckpt/step_20")
	lines := strings.Split(o.out, "\n")
	if !strings.HasSuffix(lines[0], "); "+note) || !strings.HasSuffix(lines[1], ")") {
		t.Errorf("%s", o.out)
	}
	v := decodeJSON[struct{ Bundles []bundleVerdict }](t, mustRun(t, 0, "verify", "--json", "ckpt/step_40"))
	if !maps.Equal(v.Bundles[0].NonFinite, map[string]int64{"phi": 1, "T": 7}) {
		t.Errorf("%+v", v)
	}
}

// Where no good bundle is finite, a restart takes the newest good one.
func TestLsTellsTheRestartFromBundlesThatAreNotFinite(t *testing.T) {
	some := map[string]int64{"phi": 3}
	blownUp(t, map[int64]map[string]int64{10: {}, 20: some, 30: some, 40: some})
	remove(t, "ckpt/step_10/fields/T.bin")
	remove(t, "ckpt/step_40/fields/T.bin")
	o := mustRun(t, 0, "ls", "ckpt")
	if want := `"latest" restarts from step_30, which is not finite, passing over step_40 (if`; !strings.Contains(o.out, want) {
		t.Errorf("lacks %q:\n%s", want, o.out)
	}
	l := decodeJSON[listing](t, mustRun(t, 0, "ls", "--json", "ckpt"))
	if *l.Latest.From != "step_30" || strings.Join(l.Latest.Passed, " ") != "step_40" {
		t.Errorf("%+v", l.Latest)
	}
}
