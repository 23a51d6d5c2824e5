//go:build hdf5

package main

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/runfile"
)

func TestDiffOfRunFilesWithATolerance(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		cell   float64
		change func(s *runfile.Solution)
		args   []string
		status int
		says   []string
	}{
		"the same, except wall times": {0, func(s *runfile.Solution) { s.Statistics.WallTime[1] = 99 }, []string{"--rtol", "1"}, 0,
			[]string{"tolerance: |a - b| <= 1 max(|a|, |b|)\n", "setup hash: equal\n"}},
		"a cell within": {0.5, func(*runfile.Solution) {}, []string{"--atol", "0.5"}, 0,
			[]string{"phi   ", "within tolerance  0 of 96  0.5      0.5 s, (3, 2, 1)  0.000801925  0.5 s, (3, 2, 1)\n"}},
		"a cell beyond": {0.5, func(*runfile.Solution) {}, []string{"--rtol", "1e-4"}, 1,
			[]string{"different  1 of 96  0.5", "0.5 s, (3, 2, 1)  623  623.5\n"}},
		"a time within":       {0, func(s *runfile.Solution) { s.Times[3] = 0.75 + 1e-12 }, []string{"--atol", "1e-9"}, 0, []string{"0 of 4"}},
		"a time beyond":       {0, func(s *runfile.Solution) { s.Times[3] = 0.8 }, []string{"--atol", "1e-9"}, 1, []string{"1 of 4", "0.75 s, 0"}},
		"a number within":     {0, func(s *runfile.Solution) { s.States[1][2] += 1e-12 }, []string{"--rtol", "1e-9"}, 0, []string{"unknown", "0 of 8"}},
		"an update within":    {0, func(s *runfile.Solution) { s.Updates[0].States[2][1] += 1e-12 }, []string{"--rtol", "1e-9"}, 0, []string{"interval update", "0 of 8"}},
		"a statistic within":  {0, func(s *runfile.Solution) { s.Statistics.ErrorEstimate[2] += 1e-12 }, []string{"--rtol", "1e-9"}, 0, []string{"error_estimate", "0 of 5"}},
		"NaNs of other bits":  {0, func(s *runfile.Solution) { s.Statistics.ErrorEstimate[2] = nan }, []string{"--rtol", "9"}, 1, []string{"1 of 5", "NaN\n", "statistics error_estimate: the maxima leave out 1 value with a NaN or an infinity\n"}},
		"an integer is exact": {0, func(s *runfile.Solution) { s.Statistics.LinearIterations[1]++ }, []string{"--rtol", "1", "--atol", "1"}, 1, []string{"1 of 5", "7  8\n"}},
		"a text is exact":     {0, func(s *runfile.Solution) { s.Statistics.Outcome[4] = "failed" }, []string{"--rtol", "1"}, 1, []string{"1 of 5", "converged", "failed"}},
		"the layout is exact": {0, func(s *runfile.Solution) { s.Layout.R[1] += 1e-15 }, []string{"--rtol", "1"}, 1, []string{"the radial grids differ"}},
		"fewer states, all within": {0.5, func(s *runfile.Solution) {
			s.Times, s.States = s.Times[:3], s.States[:3]
			s.Updates[0].States = s.Updates[0].States[:3]
		}, []string{"--rtol", "1"}, 1, []string{"4 saved states in A, 3 in B", "0 of 72"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			changed(t, "b.h5", c.cell, c.change)
			args := append([]string{"diff", segment1, "b.h5"}, c.args...)
			says(t, mustRun(t, c.status, args...).out, c.says...)
			d := decodeJSON[runDifference](t, mustRun(t, c.status, append(args, "--json")...))
			if d.Equal != (c.status == 0) || d.Tolerance == nil {
				t.Errorf("%+v", d)
			}
			for _, p := range d.Parts {
				exact := p.Kind == "layout" || p.Kind == "statistics" && (p.Name == "accepted" || strings.Contains(p.Name, "iterations") || p.Name == "outcome" || p.Name == "iterations/attempt")
				if p.Name == "iterations/residual" {
					exact = false
				}
				if exact != (p.Maxima == nil) {
					t.Errorf("%s: maxima are %+v", p.title(), p.Maxima)
				}
			}
			if o := mustRun(t, c.status, append(args, "-q")...); o.out != "" {
				t.Errorf("%s", o.out)
			}
		})
	}
}

func TestDiffOfDirectoriesOfRuns(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T)
		args    []string
		status  int
	}{
		{"the same", func(*testing.T) {}, nil, 0},
		{"a cell, within", func(t *testing.T) { changed(t, "b/decay.segment0001.h5", 1e-9, func(*runfile.Solution) {}) }, []string{"--rtol", "1e-9"}, 0},
		{"a cell, a missing segment and one more", func(t *testing.T) {
			changed(t, "b/decay.segment0001.h5", 1e-9, func(*runfile.Solution) {})
			rename(t, "b/decay.segment0002.h5", "b/decay.segment0003.h5")
			remove(t, "b/decay.checkpoint.prev.h5")
		}, nil, 1},
		{"other numbers of digits", func(t *testing.T) { rename(t, "b/decay.segment0002.h5", "b/decay.segment2.h5") }, nil, 0},
		{"one that is torn", func(t *testing.T) { write(t, "b/decay.segment0001.h5", read(t, segment1)[:5000]) }, nil, 2},
		{"bundles too", func(t *testing.T) {
			sample{increment: 9}.save(t, "a/step_9")
			sample{increment: 9}.save(t, "b/step_9")
			sample{increment: 10}.save(t, "b/step_10")
		}, []string{"--sidecar"}, 1},
		{"another setup, which counts", func(t *testing.T) {
			changed(t, "b/decay.segment0001.h5", 0, func(s *runfile.Solution) { s.Settings = runSettings(tolerance(1), must(firstSegmentRecord("x"))) })
		}, []string{"--metadata"}, 1},
		{"files of others and what is being written", func(t *testing.T) {
			f, err := h5.Create("a/other.h5")
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			write(t, "b/decay.segment0003.h5.tmp", read(t, segment1)[:500])
		}, nil, 0},
		{"a joined file", func(t *testing.T) { mustRun(t, 0, "join", segment1, segment2, "-o", "b/joined.h5") }, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs(t)
			for _, dir := range []string{"a", "b"} {
				if err := os.CopyFS(dir, os.DirFS("results")); err != nil {
					t.Fatal(err)
				}
			}
			c.prepare(t)
			args := append([]string{"diff", "a", "b"}, c.args...)
			text := mustRun(t, c.status, args...)
			golden(t, "directories-of-runs-"+strings.NewReplacer(" ", "-", ",", "").Replace(c.name)+".txt", text.out)
			d := decodeJSON[directoryDiff](t, mustRun(t, c.status, append(args, "--json")...))
			if d.Equal != (c.status == 0) || len(d.RunFiles) == 0 {
				t.Errorf("%+v", d)
			}
			if c.status < 2 {
				mustRun(t, c.status, append(args, "-q")...)
			}
		})
	}
}
