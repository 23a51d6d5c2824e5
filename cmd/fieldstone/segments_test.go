//go:build hdf5

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

func TestSegments(t *testing.T) {
	runs(t)
	l := decodeJSON[runListing](t, mustRun(t, 0, "segments", "--json", "results", "decay"))
	if len(l.Segments) != 2 || len(l.Missing) != 0 || l.Join != nil || l.InUse == nil || *l.InUse {
		t.Fatalf("%+v", l)
	}
	a, b := l.Segments[0], l.Segments[1]
	if a.Number != 1 || a.Path != segment1 || a.State != stateGood || a.States != 4 || *a.Dropped != 1 || *a.First != 0 || *a.Last != 0.75 ||
		*a.Status != "stopped" || *a.StopReason != "limit of 4 steps" || *a.End != 0.75 || a.ResumedFrom != nil || a.Attempts != 5 {
		t.Errorf("%+v", a)
	}
	if b.Number != 2 || *b.Dropped != 0 || *b.Status != "completed" || b.StopReason != nil || *b.ResumedFrom != lastCheckpoint || *b.ResumedSegment != 1 || b.Attempts != 2 {
		t.Errorf("%+v", b)
	}
	if last, previous := l.Checkpoints[0], l.Checkpoints[1]; last.State != stateGood || *last.Time != 1 || *last.Segment != 2 || *last.Saved != 5 ||
		*previous.Time != 0.5 || *previous.Segment != 1 || *previous.Saved != 3 || *previous.Steps != 4 {
		t.Errorf("%+v", l.Checkpoints)
	}
}

func TestSegmentsOfDamagedRuns(t *testing.T) {
	third := func(t *testing.T) {
		s, fields := secondSegment()
		s.Settings = must(s.Settings.With("segment", must(record.Of("index", 4, "start_time", 1.0, "resumed_from_segment", 3, "resumed_from", "decay.checkpoint.h5", "status", "running"))))
		s.Times = []float64{2, 3}
		save(t, "results/decay.segment0004.h5", s, fields)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T)
		says   []string
	}{
		"a gap":                  {third, []string{"missing: segment 3\n", "the segments don't join: ", "resumed from segment 3", "ended without closing", "      4  good        2        ?"}},
		"the first is missing":   {func(t *testing.T) { remove(t, segment1) }, []string{"missing: segment 1\n", "the segments join"}},
		"a bad segment":          {func(t *testing.T) { write(t, segment2, []byte("torn")) }, []string{"      2  bad ", "no signature of HDF5", "the segments don't join: "}},
		"no last checkpoint":     {func(t *testing.T) { remove(t, lastCheckpoint) }, []string{"last        missing", "previous    good     0.5 s"}},
		"a bad checkpoint":       {func(t *testing.T) { write(t, lastCheckpoint, []byte("torn")) }, []string{"last        bad ", "no signature of HDF5"}},
		"an output in its place": {func(t *testing.T) { write(t, lastCheckpoint, read(t, segment1)) }, []string{"last        bad ", "not a checkpoint"}},
		"nothing but checkpoints": {func(t *testing.T) {
			remove(t, segment1)
			remove(t, segment2)
		}, []string{"no segments", "last        good"}},
		"nothing but segments": {func(t *testing.T) {
			remove(t, lastCheckpoint)
			remove(t, previousCheckpoint)
		}, []string{"the segments join", "last        missing", "previous    missing"}},
		"names that are not of the run": {func(t *testing.T) {
			write(t, "results/decay.segment1.h5", nil)
			write(t, "results/decay.segment0001.h5.tmp", nil)
			write(t, "results/decayed.segment0003.h5", nil)
		}, []string{"the segments join"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			c.change(t)
			o := mustRun(t, 0, "segments", "results", "decay")
			says(t, o.out, c.says...)
			if o.errors != "" {
				t.Errorf("standard error: %s", o.errors)
			}
		})
	}
}

func TestSegmentsOfARunThatIsGoingOn(t *testing.T) {
	runs(t)
	lock, err := vfs.OS.Lock("results/decay.lock")
	if err != nil {
		t.Fatal(err)
	}
	says(t, mustRun(t, 0, "segments", "results", "decay").out, "the run is going on\n")
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if o := mustRun(t, 0, "segments", "results", "decay"); strings.Contains(o.out, "going on") {
		t.Errorf("%s", o.out)
	}
}

func TestSegmentsFailures(t *testing.T) {
	runs(t)
	for _, c := range []struct{ dir, name, errors string }{
		{"nowhere", "decay", "fieldstone: segments nowhere: no such file or directory\n"},
		{segment1, "decay", "fieldstone: segments " + segment1 + ": not a directory\n"},
		{"results", "other", "fieldstone: segments results: no run \"other\", there are decay\n"},
		{".", "decay", "fieldstone: segments .: no run \"decay\"\n"},
		{"results", "a/b", "fieldstone: segments results: name of the run: invalid input: \"a/b\" can't begin the name of a file\n"},
	} {
		if o := mustRun(t, 2, "segments", c.dir, c.name); o.errors != c.errors || o.out != "" {
			t.Errorf("%q, want %q", o.errors, c.errors)
		}
	}
	o := mustRun(t, 0, "__complete", "segments", "results", "")
	says(t, o.out, "decay\n")
}

func TestMissingSegments(t *testing.T) {
	from := func(number int, n int64, file string) listedSegment {
		return listedSegment{Number: number, ResumedSegment: &n, ResumedFrom: &file}
	}
	for name, c := range map[string]struct {
		list []listedSegment
		want []int
	}{
		"none":                        {nil, []int{}},
		"from the first on":           {[]listedSegment{{Number: 1}, {Number: 2}}, []int{}},
		"from a later one on":         {[]listedSegment{{Number: 5}, {Number: 6}}, []int{}},
		"between":                     {[]listedSegment{{Number: 1}, {Number: 4}, {Number: 6}}, []int{2, 3, 5}},
		"before the first":            {[]listedSegment{from(3, 2, "x/run.checkpoint.h5")}, []int{2}},
		"before, from the previous":   {[]listedSegment{from(3, 1, "run.checkpoint.prev.h5")}, []int{1, 2}},
		"before, from a segment":      {[]listedSegment{from(3, 2, "run.segment0002.h5")}, []int{2}},
		"of another run":              {[]listedSegment{from(3, 2, "other.checkpoint.h5")}, []int{}},
		"of a run of a longer name":   {[]listedSegment{from(3, 2, "run.b.checkpoint.h5")}, []int{}},
		"from what is no earlier one": {[]listedSegment{from(3, 7, "run.checkpoint.h5")}, []int{}},
		"from a number that is none":  {[]listedSegment{from(3, -7, "run.checkpoint.h5")}, []int{}},
	} {
		if got := missingSegments(c.list, "run"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What is dropped is what a join leaves out.
func TestSegmentsAgreeWithTheJoin(t *testing.T) {
	runs(t)
	l := decodeJSON[runListing](t, mustRun(t, 0, "segments", "--json", "results", "decay"))
	s, err := runfile.ReadRun(t.Context(), "results", "decay")
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, g := range l.Segments {
		kept += g.States - *g.Dropped
	}
	if kept != len(s.Times) {
		t.Errorf("%d states are left of %d", kept, len(s.Times))
	}
}
