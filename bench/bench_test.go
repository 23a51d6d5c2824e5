package main

import (
	"context"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/plan"
)

// found makes results of lines, all in one launch of a component.
func found(component string, cases []plan.Case, lines ...plan.Line) *results {
	r := newResults()
	r.note(plan.Launch{Component: component, Cases: cases})
	for _, l := range lines {
		r.add(component, l)
	}
	return r
}

func times(v ...float64) []float64 { return v }

func TestMeasuresTakeTheWorstRatio(t *testing.T) {
	two := []plan.Case{
		{Name: "a", Kind: plan.Save, Contestants: []string{"floor", "fieldstone", "hdf5", "pnetcdf"}},
		{Name: "b", Kind: plan.Save, Contestants: []string{"floor", "fieldstone", "hdf5", "pnetcdf"}},
	}
	r := found("ompio", two,
		plan.Line{Case: "a", Contestant: "floor", Seconds: times(1, 1, 1)},
		plan.Line{Case: "a", Contestant: "fieldstone", Seconds: times(0.5, 0.5, 0.5)},
		plan.Line{Case: "a", Contestant: "hdf5", Seconds: times(2, 2, 2)},
		plan.Line{Case: "a", Contestant: "pnetcdf", Seconds: times(1.5, 1.5, 1.5)},
		plan.Line{Case: "b", Contestant: "floor", Seconds: times(1, 1, 1)},
		plan.Line{Case: "b", Contestant: "fieldstone", Seconds: times(2, 2, 2)},
		plan.Line{Case: "b", Contestant: "hdf5", Error: "wrong bytes", Seconds: times(0.1)},
		plan.Line{Case: "b", Contestant: "pnetcdf", Missing: "not built"},
	)
	r.note(plan.Launch{Component: "romio", Cases: two[:1]})
	r.add("romio", plan.Line{Case: "a", Contestant: "fieldstone", Seconds: times(1, 1, 1)})
	r.add("romio", plan.Line{Case: "a", Contestant: "hdf5", Seconds: times(1.2, 1.2, 1.2)})
	for _, c := range []struct {
		name  string
		m     plan.Measure
		ratio float64
		ok    bool
		note  string
	}{
		{"one yardstick", plan.Measure{Must: 2, Theirs: []string{"floor"}, Cases: []string{"a"}}, 2, true, ""},
		{"the better of two peers counts", plan.Measure{Must: 3, Theirs: []string{"hdf5", "pnetcdf"}, Cases: []string{"a"}}, 3, true, "pnetcdf"},
		{"the worse of two cases counts", plan.Measure{Must: 0.6, Theirs: []string{"floor"}, Cases: []string{"a", "b"}}, 0.5, false, "b"},
		{"the best component counts if it is asked for", plan.Measure{Must: 1, Theirs: []string{"hdf5"}, Cases: []string{"a"}, Best: true}, 1.2, true, "romio"},
		{"a peer that is taken out or missing doesn't count", plan.Measure{Must: 1, Theirs: []string{"hdf5", "pnetcdf"}, Cases: []string{"b"}}, 0, false, "not measured"},
		{"what rounds to the target has reached it", plan.Measure{Must: 2.004, Theirs: []string{"floor"}, Cases: []string{"a"}}, 2, true, ""},
		{"what doesn't has missed it", plan.Measure{Must: 2.01, Theirs: []string{"floor"}, Cases: []string{"a"}}, 2, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.m.Ours = "fieldstone"
			e := evaluate(c.m, r)
			if e.Ratio != c.ratio || e.OK != c.ok || !strings.Contains(e.Note, c.note) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestMemoryIsAMeasure(t *testing.T) {
	cases := []plan.Case{{Name: "m", Kind: plan.Memory, Contestants: []string{"fieldstone"}}}
	r := found("ompio", cases, plan.Line{Case: "m", Contestant: "fieldstone", Bytes: 50, Limit: 100})
	if e := evaluate(plan.Measure{Must: 1, Ours: "fieldstone", Cases: []string{"m"}}, r); e.Ratio != 2 || !e.OK {
		t.Errorf("%+v", e)
	}
}

func TestLaunchesOfAComponentAreOneSeries(t *testing.T) {
	cases := []plan.Case{{Name: "a", Contestants: []string{"floor"}}}
	r := found("ompio", cases,
		plan.Line{Case: "a", Contestant: "floor", Seconds: times(1, 2), Checked: 3},
		plan.Line{Case: "a", Contestant: "floor", Seconds: times(3), Checked: 2})
	r.note(plan.Launch{Component: "ompio", Cases: []plan.Case{{Name: "a", Contestants: []string{"floor", "hdf5"}}}})
	if got := r.seconds("ompio", "a", "floor"); !slices.Equal(got, times(1, 2, 3)) {
		t.Errorf("%v", got)
	}
	if len(r.cases) != 1 || len(r.cases[0].Contestants) != 2 || len(r.components) != 1 {
		t.Errorf("%+v, %v", r.cases, r.components)
	}
	if s := r.series(); len(s) != 1 || s[0].Checked != 5 || s[0].Median != 2 {
		t.Errorf("%+v", s)
	}
}

func TestOnlyFieldstonesErrorsFailTheRun(t *testing.T) {
	cases := []plan.Case{{Name: "a", Contestants: []string{"floor", "hdf5", "fieldstone-posix"}}}
	r := found("ompio", cases, plan.Line{Case: "a", Contestant: "hdf5", Error: "broken"})
	if errs := r.failed(); len(errs) != 0 {
		t.Errorf("%v", errs)
	}
	r.add("ompio", plan.Line{Case: "a", Contestant: "fieldstone-posix", Error: "wrong bytes"})
	if errs := r.failed(); len(errs) != 1 || !strings.Contains(errs[0].Error(), "wrong bytes") {
		t.Errorf("%v", errs)
	}
}

func TestNoise(t *testing.T) {
	cases := []plan.Case{{Name: "quiet", Contestants: []string{"floor"}}, {Name: "loud", Contestants: []string{"floor"}}, {Name: "beside", Contestants: []string{"floor"}}}
	r := found("ompio", cases,
		plan.Line{Case: "quiet", Contestant: "floor", Seconds: times(1, 1.01, 1.02)},
		plan.Line{Case: "loud", Contestant: "floor", Seconds: times(1, 1.5, 2)},
		plan.Line{Case: "beside", Contestant: "floor", Seconds: times(1, 1.01, 1.02)})
	r.end(plan.Launch{Component: "ompio", Cases: cases[:2]}, jobRecord{Others: othersLimit / 2})
	r.end(plan.Launch{Component: "ompio", Cases: cases[2:]}, jobRecord{Others: othersLimit * 2})
	for name, want := range map[string]bool{"quiet": false, "loud": true, "beside": true} {
		if got := r.noisy("ompio", name); got != want {
			t.Errorf("%s is noisy: %v", name, got)
		}
	}
	for _, c := range []struct {
		name    string
		m       machine
		entries []entry
		want    string
	}{
		{"a busy start is told", machine{Cores: 2, Load: 1.5, Others: 0.5}, nil, "50 % of 2 cores were busy, and the load average was 1.5"},
		{"others are told", machine{Cores: 2}, nil, "during 1 of 2 jobs more than 5 %"},
		{"noisy measures are told", machine{Cores: 2}, []entry{{Noisy: true}, {}}, "1 of 2 measures"},
	} {
		if got := verdict(c.m, r.jobs, c.entries); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	if got := verdict(machine{Cores: 2, Load: 0.1}, r.jobs[:1], []entry{{}}); got != "The machine was quiet." {
		t.Error(got)
	}
}

func TestUsage(t *testing.T) {
	u := parseUsage([]byte("cpu  100 10 50 9999 7 3 2 5 0 0\ncpu0 1 1 1 1\n"))
	if u.busy != 1650*time.Millisecond || u.away != 50*time.Millisecond {
		t.Errorf("%+v", u)
	}
	at := time.Now()
	a := usage{at: at, busy: time.Second}
	b := usage{at: at.Add(time.Second), busy: 3 * time.Second, away: 100 * time.Millisecond}
	cores := float64(thisMachine().Cores)
	if got := a.others(b, 1500*time.Millisecond); math.Abs(got-0.6/cores) > 1e-9 {
		t.Errorf("%v of %v cores went to others", got, cores)
	}
	if got := a.others(b, time.Minute); got != 0 {
		t.Errorf("more than all was ours: %v", got)
	}
	if got := a.others(usage{at: at.Add(time.Second), busy: time.Second}, 0); got != 0 {
		t.Errorf("nothing is known: %v", got)
	}
}

func TestReport(t *testing.T) {
	s := plan.NewSuite(plan.Quick)
	r := newResults()
	for _, l := range s.Launches {
		r.note(l)
		for _, c := range l.Cases {
			for i, name := range c.Contestants {
				line := plan.Line{Case: c.Name, Contestant: name, Bytes: c.Bytes(), Seconds: times(1+float64(i), 1.01+float64(i), 1+float64(i))}
				if c.Kind == plan.Memory {
					line.Seconds, line.Limit = nil, 2*line.Bytes
				}
				if name == "pnetcdf" && l.Component == "mpich" {
					line = plan.Line{Case: c.Name, Contestant: name, Missing: "not built"}
				}
				r.add(l.Component, line)
			}
		}
		r.end(l, jobRecord{Seconds: 1})
	}
	dir := t.TempDir()
	if err := report(dir, s, r, machine{Cores: 2, Processor: "P"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var summary []map[string]any
	if err := json.Unmarshal(data, &summary); err != nil {
		t.Fatal(err)
	}
	if len(summary) != len(s.Measures) {
		t.Errorf("%d entries for %d measures", len(summary), len(s.Measures))
	}
	for _, e := range summary {
		_, name := e["name"].(string)
		ratio, isRatio := e["ratio"].(float64)
		target, isTarget := e["target"].(float64)
		_, ok := e["ok"].(bool)
		if !name || !isRatio || !isTarget || !ok || ratio <= 0 || target <= 0 {
			t.Errorf("%v", e)
		}
	}
	if data, err = os.ReadFile(filepath.Join(dir, "results.json")); err != nil || !json.Valid(data) {
		t.Errorf("results.json: %v", err)
	}
	for name, want := range map[string]string{"tables.txt": "Growth with ranks (4 fields", "tables.md": "| pnetcdf | mpich | 3 | not built |"} {
		if data, err = os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s, %v, lacks %q:\n%s", name, err, want, data)
		}
	}
	f, err := os.Open(filepath.Join(dir, "rates.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if image, err := png.Decode(f); err != nil || image.Bounds().Dx() < 400 {
		t.Errorf("rates.png: %v", err)
	}
}

func TestGrowth(t *testing.T) {
	g := plan.Growth{Name: "cells", Cases: []string{"a", "b", "c"}, X: []float64{10, 100, 1000}}
	cases := []plan.Case{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	r := found("ompio", cases,
		plan.Line{Case: "a", Contestant: "floor", Seconds: times(0.001)},
		plan.Line{Case: "b", Contestant: "floor", Seconds: times(0.01)},
		plan.Line{Case: "c", Contestant: "floor", Seconds: times(0.1)},
		plan.Line{Case: "a", Contestant: "common", Seconds: times(1)})
	tb, ok := growthTable(g, r)
	if !ok || len(tb.rows) != 1 || strings.Join(tb.rows[0], " ") != "floor 1 10 100 1.00" {
		t.Errorf("%v", tb.rows)
	}
	dir := t.TempDir()
	if err := plots(dir, &plan.Suite{Growth: []plan.Growth{g}}, r); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "growth.png")); err != nil {
		t.Error(err)
	}
	if err := plots(dir, &plan.Suite{}, newResults()); err != nil {
		t.Errorf("nothing to draw: %v", err)
	}
}

func TestTables(t *testing.T) {
	tb := table{title: "T", note: "N", header: []string{"a", "bb"}, rows: [][]string{{"x³", "1"}, {"long", "22|"}}}
	if got, want := tb.text(), "T\n  a      bb\n  x³      1\n  long  22|\n  N\n"; got != want {
		t.Errorf("%q", got)
	}
	if got, want := tb.markdown(), "## T\n\n| a | bb |\n|---|---:|\n| x³ | 1 |\n| long | 22\\| |\n\nN\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestSelection(t *testing.T) {
	s := plan.NewSuite(plan.Quick)
	for _, c := range []struct {
		name                string
		sel                 selection
		launches            int
		kinds, contestants  string
		repeats, components int
	}{
		{"one case has one launch", selection{match: regexp.MustCompile("^restart.*1x1x3"), repeats: 7, contestants: []string{"pread"}}, 2, "bundle restart", "pread", 7, 1},
		{"no restart, no bundle", selection{match: regexp.MustCompile("^save 100.*1x1x2")}, 3, "save save save", "floor fieldstone common", 4, 3},
		{"one component", selection{match: regexp.MustCompile("^save 100.*1x1x2"), component: "mpich"}, 1, "save", "floor fieldstone common", 4, 1},
		{"nothing matches", selection{match: regexp.MustCompile("nothing")}, 0, "", "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var kinds []string
			components := make(map[string]bool)
			chosen := c.sel.choose(s.Launches)
			for _, l := range chosen {
				components[l.Component] = true
				for _, k := range l.Cases {
					kinds = append(kinds, string(k.Kind))
					if k.Kind != plan.Bundle && (strings.Join(k.Contestants, " ") != c.contestants || k.Repeats != c.repeats) {
						t.Errorf("%+v", k)
					}
				}
			}
			if len(chosen) != c.launches || strings.Join(kinds, " ") != c.kinds || len(components) != c.components {
				t.Errorf("%d launches, %v, %v", len(chosen), kinds, components)
			}
		})
	}
	if all := (selection{match: regexp.MustCompile("")}).choose(s.Launches); len(all) != len(s.Launches) {
		t.Errorf("%d of %d launches", len(all), len(s.Launches))
	}
}

func TestCommands(t *testing.T) {
	r := &launcher{bind: "none"}
	for _, c := range []struct {
		l    plan.Launch
		want string
	}{
		{plan.Launch{MPI: "openmpi", Component: "ompio", Ranks: 2}, "mpirun.openmpi -n 2 --oversubscribe --bind-to none --mca io ompio w j"},
		{plan.Launch{MPI: "openmpi", Component: "romio", Ranks: 4}, "mpirun.openmpi -n 4 --oversubscribe --bind-to none --mca io romio321 w j"},
		{plan.Launch{MPI: "openmpi", Component: plan.H5py, Ranks: 2}, "mpirun.openmpi -n 2 --oversubscribe --bind-to none --mca io ompio w j"},
		{plan.Launch{MPI: "mpich", Component: "mpich", Ranks: 1}, "mpirun.mpich -n 1 w j"},
	} {
		if got := strings.Join(r.command(c.l, "w", "j"), " "); got != c.want {
			t.Errorf("%v: %s", c.l, got)
		}
	}
}

func TestStart(t *testing.T) {
	const ample = 5 * time.Minute
	r := &launcher{limit: ample}
	var lines []string
	use := func(line []byte) error {
		lines = append(lines, string(line))
		return nil
	}
	if err := r.start(context.Background(), []string{"sh", "-c", "echo a; echo b; echo noise >&2"}, use); err != nil || strings.Join(lines, " ") != "a b" {
		t.Errorf("%v, %v", lines, err)
	}
	if err := r.start(context.Background(), []string{"sh", "-c", "echo why >&2; exit 3"}, use); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("a failure: %v", err)
	}
	r.limit = 100 * time.Millisecond
	began := time.Now()
	err := r.start(context.Background(), []string{"sh", "-c", "sleep 3600 & sleep 3600"}, use)
	if err == nil || !strings.Contains(err.Error(), "deadline") || time.Since(began) > ample {
		t.Errorf("a hang: %v", err)
	}
}
