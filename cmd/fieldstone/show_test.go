package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

func TestShowGolden(t *testing.T) {
	for _, c := range []struct {
		golden string
		status int
		args   []string
	}{
		{"show.txt", 0, []string{"show", "results/ckpt/step_20"}},
		{"show-stats.txt", 0, []string{"show", "--stats", "results/ckpt/step_20"}},
		{"show.json", 0, []string{"show", "--json", "results/ckpt/step_20"}},
		{"show-stats.json", 0, []string{"show", "--json", "--stats", "results/ckpt/step_9"}},
		{"show-directory.txt", 1, []string{"show", "results/ckpt"}},
		{"show-directory-stats.txt", 1, []string{"show", "--stats", "results/ckpt"}},
		{"show-directory.json", 1, []string{"show", "--json", "results/ckpt"}},
		{"show-bad.txt", 1, []string{"show", "results/ckpt/step_40"}},
	} {
		t.Run(c.golden, func(t *testing.T) {
			results(t)
			o := mustRun(t, c.status, c.args...)
			golden(t, c.golden, o.out+o.errors)
		})
	}
}

func TestShowVersion1(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{increment: 10}.save(t, "old")
	version1(t, "old")
	golden(t, "show-version1.txt", mustRun(t, 0, "show", "old").out)
}

func TestShowFailures(t *testing.T) {
	for _, c := range []struct {
		name, path string
		status     int
		errors     string
	}{
		{"nothing", "nowhere", 2, "fieldstone: show nowhere: no such file or directory\n"},
		{"a file", "results/ckpt/notes.txt", 2, "fieldstone: show results/ckpt/notes.txt: neither a bundle nor a run file\n"},
		{"no bundles", "results", 2, "fieldstone: show results: neither a bundle nor a run file, nor a directory of them\n"},
		{"metadata not JSON", "results/ckpt/step_10", 1, "fieldstone: show results/ckpt/step_10: metadata.json: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			results(t)
			rewrite(t, "results/ckpt/step_10", "metadata.json", func([]byte) []byte { return []byte("<xml/>") })
			o := mustRun(t, c.status, "show", c.path)
			if !strings.HasPrefix(o.errors, c.errors) || strings.Count(o.errors, "\n") != 1 || o.out != "" {
				t.Errorf("%q and %q, want %q", o.out, o.errors, c.errors)
			}
		})
	}
}

// What can't be read has no keys, instead of zeros that look like a state.
func TestShowJSONOfUnreadableMetadata(t *testing.T) {
	results(t)
	rewrite(t, "results/ckpt/step_10", "metadata.json", func([]byte) []byte { return []byte("{}") })
	m := decodeJSON[map[string]any](t, mustRun(t, 1, "show", "--json", "results/ckpt/step_10"))
	if _, there := m["accepted_time"]; there || m["state"] != "bad" || m["error"] == nil || m["bytes"] != nil {
		t.Errorf("%v", m)
	}
}

func TestShowStats(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name  string
		value func(cell int) float64
		want  shownStats
	}{
		{"a ramp", func(i int) float64 { return float64(i) }, shownStats{0, 23, 11.5, 0}},
		{"a NaN is counted and left out", func(i int) float64 {
			if i == 0 {
				return nan
			}
			return float64(i)
		}, shownStats{1, 23, 12, 1}},
		{"nothing but NaN", func(int) float64 { return nan }, shownStats{number(nan), number(nan), number(nan), 24}},
		{"infinities", func(i int) float64 { return inf * float64(1-2*(i%2)) }, shownStats{number(-inf), number(inf), number(nan), 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			sample{fields: []sampleField{{"f", c.value}}}.save(t, "b")
			m := decodeJSON[struct {
				Fields []struct{ Stats json.RawMessage }
			}](t, mustRun(t, 0, "show", "--stats", "--json", "b"))
			want, err := json.Marshal(c.want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := publish.SameJSON(m.Fields[0].Stats, want)
			if err != nil || !got {
				t.Errorf("%s, want %s", m.Fields[0].Stats, want)
			}
		})
	}
}

// What a bundle says must not steer the terminal.
func TestShowEscapesControlCharacters(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{method: "\x1b[2Jeuler\nforged line"}.save(t, "b")
	o := mustRun(t, 0, "show", "b")
	if strings.ContainsAny(o.out, "\x1b\r") || strings.Contains(o.out, "\nforged") || !strings.Contains(o.out, `\x1b[2Jeuler\nforged line`) {
		t.Errorf("%q", o.out)
	}
}

func TestShowNeedsNoDecompositionAndNoWriter(t *testing.T) {
	t.Chdir(t.TempDir())
	s := sample{domain: grid.Domain{Size: [3]int{1, 1, 1}, Spacing: [3]float64{1, 1, 1}}}
	s.save(t, "b")
	editMetadata(t, "b", func(m *publish.Metadata) { m.Decomposition, m.Writer = nil, nil })
	o := mustRun(t, 0, "show", "b")
	for _, want := range []string{"written by  not known", "periodic    no axis", "1 x 1 x 1 (1 cell)"} {
		if !strings.Contains(o.out, want) {
			t.Errorf("no %q in\n%s", want, o.out)
		}
	}
}
