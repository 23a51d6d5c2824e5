//go:build hdf5

package main

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// changed is the first segment after a change of its numbers and of the cell (3, 2, 1)
// of phi at 0.5 s.
func changed(t *testing.T, path string, cell float64, change func(s *runfile.Solution)) {
	t.Helper()
	s, fields := firstSegment()
	change(s)
	save(t, path, s, func(ctx context.Context, name string, state int, box grid.Box, dst []float64) error {
		if err := fields(ctx, name, state, box, dst); err != nil {
			return err
		}
		if at := ((1-box.Low[2])*3+2)*4 + 3; s.Times[state] == 0.5 && at >= 0 && at < len(dst) {
			dst[at] += cell
		}
		return nil
	})
}

func TestDiffOfRunFiles(t *testing.T) {
	for name, c := range map[string]struct {
		cell   float64
		change func(s *runfile.Solution)
		status int
		says   []string
	}{
		"the same, but for wall times": {0, func(s *runfile.Solution) { s.Statistics.WallTime[1] = 99 }, 0, []string{"setup hash: equal\n"}},
		"a cell":                       {1, func(*runfile.Solution) {}, 1, []string{"phi", "1 of 96", "0.5 s, (3, 2, 1)", "623", "624"}},
		"a number": {0, func(s *runfile.Solution) { s.States[1][2] = math.Nextafter(s.States[1][2], 9) }, 1,
			[]string{"1 of 8", "0.25 s, 1 ", " 2.25 ", "2.2500000000000004"}},
		"a NaN of other bits": {0, func(s *runfile.Solution) { s.States[1][0] = math.Float64frombits(0x7ff8000000000002) }, 1, []string{"NaN"}},
		"a time":              {0, func(s *runfile.Solution) { s.Times[3] = 0.8 }, 1, []string{"1 of 4", "0.75 s, 0"}},
		"fewer states": {0, func(s *runfile.Solution) {
			s.Times, s.States, s.Updates[0].States = s.Times[:2], s.States[:2], s.Updates[0].States[:2]
		}, 1, []string{"4 saved states in A, 2 in B"}},
		"an update":           {0, func(s *runfile.Solution) { s.Updates[0].States[2][1] = 7 }, 1, []string{"interval update  mean", "0.5 s, 1 "}},
		"another update":      {0, func(s *runfile.Solution) { s.Updates[0].Name = "other" }, 1, []string{"only in A", "only in B"}},
		"an outcome":          {0, func(s *runfile.Solution) { s.Statistics.Outcome[4] = "failed" }, 1, []string{"1 of 5", "converged", "failed"}},
		"a unit":              {0, func(s *runfile.Solution) { s.Layout.Unknowns[0].Unit = "kA" }, 1, []string{"layout", `the unit of I is "A" in A, "kA" in B`}},
		"an unknown's name":   {0, func(s *runfile.Solution) { s.Layout.Unknowns[0].Name = "J" }, 1, []string{"I", "only in A", "J", "only in B"}},
		"a radius":            {0, func(s *runfile.Solution) { s.Layout.R[1] = 0.6 }, 1, []string{"the radial grids differ"}},
		"the grid of a field": {0, func(s *runfile.Solution) { s.Layout.Unknowns[3].Domain.Spacing[0] = 2 }, 1, []string{"the grid of the field phi"}},
		"another setup": {0, func(s *runfile.Solution) {
			s.Settings = runSettings(tolerance(1), must(firstSegmentRecord("limit of 4 steps")))
		}, 0, []string{"setup hash: different (that counts with --metadata)\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			changed(t, "b.h5", c.cell, c.change)
			o := mustRun(t, c.status, "diff", segment1, "b.h5")
			says(t, o.out, append(c.says, "A: "+segment1+"\nB: b.h5\n")...)
			if c.status == 0 && strings.Contains(o.out, "FIRST AT") {
				t.Errorf("%s", o.out)
			}
			d := decodeJSON[runDifference](t, mustRun(t, c.status, "diff", "--json", segment1, "b.h5"))
			if d.Equal != (c.status == 0) || d.A != segment1 {
				t.Errorf("%+v", d)
			}
			if o := mustRun(t, c.status, "diff", "-q", segment1, "b.h5"); o.out != "" {
				t.Errorf("%s", o.out)
			}
		})
	}
}

func TestDiffOfRunFilesAsJSON(t *testing.T) {
	runs(t)
	changed(t, "b.h5", 1, func(s *runfile.Solution) {
		s.Settings = runSettings(tolerance(1), record.Record{})
		s.States[1][0] = math.Inf(1)
	})
	d := decodeJSON[runDifference](t, mustRun(t, 1, "diff", "--json", segment1, "b.h5"))
	if d.Setup.State != sideDifferent || *d.Setup.A == *d.Setup.B {
		t.Errorf("%+v", d.Setup)
	}
	found := 0
	for _, p := range d.Parts {
		switch p.Name {
		case "phi":
			if f := p.First; p.Differing != 1 || p.Values != 96 || *f.State != 2 || *f.Time != 0.5 || f.Index != 23 || *f.Cell != [3]int{3, 2, 1} ||
				f.A != 623.0 || f.B != 624.0 || *f.BitsA != bits(623) || *f.BitsB != bits(624) {
				t.Errorf("%+v", p.First)
			}
			found++
		case "I":
			if f := p.First; p.Differing != 1 || f.Cell != nil || f.Index != 0 || f.B != "Infinity" {
				t.Errorf("%+v", p.First)
			}
			found++
		default:
			if p.State != "equal" || p.First != nil {
				t.Errorf("%+v", p)
			}
		}
	}
	if found != 2 {
		t.Errorf("%+v", d.Parts)
	}
	mustRun(t, 1, "diff", "-q", "--metadata", segment1, "b.h5")
}

func TestDiffOfCheckpoints(t *testing.T) {
	runs(t)
	mustRun(t, 0, "diff", lastCheckpoint, lastCheckpoint)
	o := mustRun(t, 1, "diff", previousCheckpoint, lastCheckpoint)
	says(t, o.out, "times", "1 of 1", "phi", "24 of 24", "saved_count", "3 ", "5")
	write(t, "other/notes", nil)
	for _, bundles := range []map[string]string{nil, {"phi": "results/ckpt/step_4"}} {
		k, fields := checkpoint(1, 2, 5)
		k.Stepper, k.Bundles = must(record.Of("length", 0.5)), bundles
		if err := runfile.WriteCheckpoint(t.Context(), "other", "decay", k, runfile.Fields(fields)); err != nil {
			t.Fatal(err)
		}
		o = mustRun(t, 1, "diff", "other/decay.checkpoint.h5", lastCheckpoint)
		says(t, o.out, "stepper (hash)")
	}
	says(t, o.out, "not compared: a bundle holds it")
}

func TestDiffOfRunFilesFailures(t *testing.T) {
	runs(t)
	write(t, "torn.h5", []byte("torn"))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{segment1, lastCheckpoint}, "fieldstone: diff: A, " + segment1 + ", is an output, and B, " + lastCheckpoint + ", is a checkpoint\n"},
		{[]string{segment1, "results"}, "fieldstone: diff: A, " + segment1 + ", is a run file, and B, results, is a directory of bundles or run files\n"},
		{[]string{"nowhere", segment1}, "fieldstone: diff nowhere: no such file or directory\n"},
		{[]string{segment1, "torn.h5"}, "fieldstone: diff torn.h5: not a usable HDF5 file"},
		{[]string{"--sidecar", segment1, segment1}, "fieldstone: diff: a run file has no sidecar\n"},
	} {
		if o := mustRun(t, 2, append([]string{"diff"}, c.args...)...); !strings.HasPrefix(o.errors, c.says) || o.out != "" {
			t.Errorf("%q: %s%s", c.args, o.out, o.errors)
		}
	}
}
