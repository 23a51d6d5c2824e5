package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// twoRuns makes two directories of bundles that have some in common.
func twoRuns(t *testing.T) {
	t.Helper()
	prepare(t, "two runs", func(dir string) { makeTwoRuns(t, dir) })
}

func makeTwoRuns(t *testing.T, dir string) {
	t.Helper()
	value := func(extra float64) []sampleField {
		return []sampleField{constant("phi", 1, map[int]float64{5: 1 + extra}), constant("T", 300, map[int]float64{2: 300 * (1 + extra)})}
	}
	for _, n := range []int64{9, 10, 20} {
		sample{increment: n, fields: value(0)}.save(t, filepath.Join(dir, fmt.Sprintf("a/step_%d", n)))
		sample{increment: n, fields: value(0)}.save(t, filepath.Join(dir, fmt.Sprintf("b/step_%d", n)))
	}
	sample{increment: 30, fields: value(0)}.save(t, filepath.Join(dir, "a/step_30"))
	sample{increment: 30, fields: value(1e-6)}.save(t, filepath.Join(dir, "b/step_30"))
	sample{increment: 40}.save(t, filepath.Join(dir, "a/step_40"))
	sample{increment: 50}.save(t, filepath.Join(dir, "b/step_50"))
	sample{increment: 60}.save(t, filepath.Join(dir, "a/step_60.superseded"))
	sample{increment: 5}.save(t, filepath.Join(dir, "b/step_5.damaged"))
	write(t, filepath.Join(dir, "b/step_70.publishing/fields/phi.bin"), []byte("begun"))
	write(t, filepath.Join(dir, "a/notes.txt"), nil)
}

func TestDiffOfDirectories(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T)
		args    []string
		status  int
	}{
		{"bit for bit", nil, nil, 1},
		{"within a tolerance", nil, []string{"--rtol", "1e-5"}, 1},
		{"all within", func(t *testing.T) { remove(t, "a/step_40"); remove(t, "b/step_50") }, []string{"--rtol", "1e-5"}, 0},
		{"all equal", func(t *testing.T) {
			remove(t, "a/step_40")
			remove(t, "b/step_50")
			remove(t, "a/step_30")
			remove(t, "b/step_30")
		}, nil, 0},
		{"with metadata", func(t *testing.T) {
			remove(t, "b/step_10")
			sample{increment: 10, method: "etd1", sidecar: 1}.save(t, "b/step_10")
		}, []string{"--metadata", "--sidecar"}, 1},
		{"one that is damaged", func(t *testing.T) { remove(t, "a/step_20/fields/T.bin") }, nil, 2},
		{"other names", func(t *testing.T) { rename(t, "a/step_20", "a/before"); rename(t, "b/step_10", "b/after") }, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			twoRuns(t)
			if c.prepare != nil {
				c.prepare(t)
			}
			args := append([]string{"diff", "a", "b"}, c.args...)
			text, asJSON := mustRun(t, c.status, args...), mustRun(t, c.status, append(args, "--json")...)
			golden(t, "directories-"+strings.ReplaceAll(c.name, " ", "-")+".txt", text.out+text.errors)
			d := decodeJSON[directoryDiff](t, asJSON)
			if d.Equal != (c.status == 0) || d.A != "a" || d.B != "b" {
				t.Errorf("%+v", d)
			}
			counted := make(map[sideState]int)
			for _, p := range d.Bundles {
				counted[p.State]++
				if (p.A == nil) != (p.State == sideOnlyB) || (p.B == nil) != (p.State == sideOnlyA) {
					t.Errorf("%+v", p)
				}
				if compared := p.State == sideEqual || p.State == sideWithin || p.State == sideDifferent; compared != (p.Bundle != nil) || p.Run != nil {
					t.Errorf("%+v", p)
				}
			}
			s := d.Summary
			if want := (pairCounts{
				counted[sideEqual], counted[sideWithin], counted[sideDifferent], counted[sideOnlyA], counted[sideOnlyB], counted[sideNotCompared],
			}); s != want {
				t.Errorf("%+v, want %+v", s, want)
			}
			o := run(t, append(args, "-q")...)
			if o.out != "" || (o.status == 0) != (c.status == 0) {
				t.Errorf("quietly: exit status %d, %q", o.status, o.out)
			}
			if back := run(t, append([]string{"diff", "b", "a"}, c.args...)...); back.status != c.status {
				t.Errorf("exchanged: exit status %d\n%s", back.status, back.out)
			}
		})
	}
}

// The part of the outcome for a pair is that of the pair alone.
func TestDiffOfDirectoriesHasThatOfEachPair(t *testing.T) {
	twoRuns(t)
	d := decodeJSON[map[string]any](t, mustRun(t, 1, "diff", "--json", "a", "b"))
	found := 0
	for _, p := range d["bundles"].([]any) {
		pair := p.(map[string]any)
		if pair["bundle"] == nil {
			continue
		}
		found++
		alone := decodeJSON[any](t, run(t, "diff", "--json", pair["a"].(string), pair["b"].(string)))
		if diff := cmp.Diff(alone, pair["bundle"]); diff != "" {
			t.Errorf("%s (-alone +pair)\n%s", pair["name"], diff)
		}
	}
	if found != 4 {
		t.Errorf("%d pairs were compared", found)
	}
}

// A directory without anything of ours has nothing to compare; one from which all was set
// aside has nothing left.
func TestDiffWithADirectoryOfLittle(t *testing.T) {
	twoRuns(t)
	if err := os.Mkdir("hollow", 0o777); err != nil {
		t.Fatal(err)
	}
	o := mustRun(t, 2, "diff", "a", "hollow")
	if want := "fieldstone: diff hollow: neither a bundle nor a run file, nor a directory of them\n"; o.errors != want || o.out != "" {
		t.Errorf("%q and %q", o.out, o.errors)
	}
	sample{increment: 1}.save(t, "c/step_1.superseded")
	o = mustRun(t, 1, "diff", "a", "c")
	if !strings.HasSuffix(o.out, "\n5 only in A\n") || o.errors != "" {
		t.Errorf("%q and %q", o.out, o.errors)
	}
	if o := mustRun(t, 0, "diff", "c", "c"); o.out != "A: c\nB: c\nnothing to compare\n" {
		t.Errorf("%q", o.out)
	}
}

// A run that keeps few bundles takes the oldest away while the tool looks: it is then in
// one directory only.
func TestDiffOfABundleThatLeavesMeanwhile(t *testing.T) {
	twoRuns(t)
	a, err := bundlesIn("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundlesIn("b")
	if err != nil {
		t.Fatal(err)
	}
	named := func(list []*entry, name string) **entry {
		return &list[slices.IndexFunc(list, func(e *entry) bool { return e.name == name })]
	}
	p := pair[*entry]{named(a, "step_9"), named(b, "step_9")}
	tool := &app{err: failing{os.ErrClosed}}
	remove(t, "a/step_9")
	if d := tool.diffBundlePair(t.Context(), p, diffOptions{}); d == nil || d.State != sideOnlyB || d.A != nil {
		t.Errorf("%+v", d)
	}
	remove(t, "b/step_9")
	if d := tool.diffBundlePair(t.Context(), p, diffOptions{}); d != nil {
		t.Errorf("%+v", d)
	}
}

func TestRunKey(t *testing.T) {
	for path, want := range map[string]string{
		"x/decay.segment0001.h5": "decay.segment1", "decay.segment1.h5": "decay.segment1", "decay.segment0010.h5": "decay.segment10",
		"other.segment0001.h5": "other.segment1", "decay.checkpoint.h5": "decay.checkpoint.h5", "decay.checkpoint.prev.h5": "decay.checkpoint.prev.h5",
		"joined.h5": "joined.h5", "decay.segmentx.h5": "decay.segmentx.h5", "a.segment1.h5.old": "a.segment1.h5.old",
	} {
		if got := runKey(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
