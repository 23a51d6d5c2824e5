//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// formsOfOthers are those in which the script writes what ours writes in one form.
var formsOfOthers = []string{"julia", "bytes", "signed", "enumerations", "integers"}

func TestFormsOfOtherWriters(t *testing.T) {
	dir := t.TempDir()
	runPython(t, "forms", dir)
	check := []string{"joined"}
	for _, form := range formsOfOthers {
		t.Run(form, func(t *testing.T) {
			closed(t)
			for _, path := range readForm(t, dir, filepath.Join(dir, form+"-output.h5"), filepath.Join(dir, form+"-checkpoint.h5")) {
				check = append(check, form, path)
			}
		})
	}
	runPython(t, check...)
}

// Files of another writer that were made once stay readable.
func TestGoldenFilesOfAnotherWriter(t *testing.T) {
	closed(t)
	readForm(t, t.TempDir(), "testdata/golden/foreign-output.0.0.5.h5", "testdata/golden/foreign-checkpoint.0.0.5.h5")
}

// statisticsOfOthers are those of every form, those that the format has.
func statisticsOfOthers() Statistics {
	nan := slices.Repeat([]float64{math.NaN()}, 3)
	return Statistics{
		Time: []float64{0.5, 0.25, 0.5}, StepLength: []float64{0.5, 0.25, 0.25}, Accepted: []bool{false, true, true},
		ErrorEstimate: nan, NonlinearIterations: []int64{3, 2, 1}, LinearIterations: []int64{0, 0, 0}, WallTime: nan,
		Outcome:          []string{"rejected", "converged", "converged"},
		IterationAttempt: []int64{1, 2, 2, 3}, IterationResidual: []float64{1, 1, 0.5, 1},
	}
}

// readForm reads files in a form of others, and writes them again as files of ours that
// have all of it. It returns those of the output.
func readForm(t *testing.T, dir, output, checkpoint string) (ours []string) {
	t.Helper()
	warn, warnings := heard()
	got, err := ReadOutput(t.Context(), []string{output}, Warn(warn))
	if err != nil {
		t.Fatal(err)
	}
	// What goes with no attempt can't be part of the statistics.
	for _, name := range []string{"total", "histogram", "pairs", "more"} {
		if !slices.ContainsFunc(*warnings, func(w string) bool {
			return strings.Contains(w, output) && strings.Contains(w, `"`+name+`" is left out`)
		}) {
			t.Errorf("no warning says that %s is left out: %q", name, *warnings)
		}
	}
	if len(*warnings) != 4 {
		t.Errorf("warnings: %q", *warnings)
	}
	want := foreign(t, "0.0.5", true)
	settings := got.Settings
	want.Settings, want.Statistics, want.Times = settings, statisticsOfOthers(), []float64{0, 1}
	same(t, "output", got, want)
	seg, err := segmentOf(settings)
	if err != nil || *seg.index != 2 || *seg.start != 0 || *seg.savedBefore != 5 || *seg.attemptsBefore != 4 || seg.previousSetupHash != "" {
		t.Errorf("the segment is %+v, %v", seg, err)
	}
	if flag, err := boolAt(settings, "forms/flag"); err != nil || !flag {
		t.Errorf("the flag is %v, %v", flag, err)
	}
	for path, empty := range map[string]record.Array{
		"forms/no_floats": mustArray(t, []float64{}), "forms/no_ints": mustArray(t, []int32{}), "forms/no_bytes": mustArray(t, []uint8{}),
	} {
		if a, err := settings.Array(path); err != nil || !a.Equal(empty) {
			t.Errorf("%s is %v, %v", path, a, err)
		}
	}
	if keys := mustGet(t, settings, "forms/numbered").Keys(); !slices.Equal(keys, []string{"2", "1"}) {
		t.Errorf("the records of a list are %v", keys)
	}
	others := got.Statistics.Others()
	if keys := slices.Sorted(slices.Values(others.Keys())); !slices.Equal(keys, []string{"damping", "iteration_steps", "norms", "phase", "refreshed"}) {
		t.Errorf("the other statistics are %v", keys)
	}

	// The file that is made of it has all of that, whose hashes they are too.
	for name, opts := range map[string][]Option{"plain": nil, "extendible": {Extendible()}} {
		path := filepath.Join(dir, filepath.Base(output)+"."+name)
		if err := WriteOutput(t.Context(), path, got, opts...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// And once more of that file.
		again := sameAgain(t, path, got)
		if err := WriteOutput(t.Context(), path+".again", again); err != nil {
			t.Fatal(err)
		}
		sameAgain(t, path+".again", got)
		ours = append(ours, path, path+".again")
	}

	k, err := ReadState(t.Context(), checkpoint, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	if k.Time != 0.25 || k.Segment != 2 || k.SavedCount != 6 || k.Summary != (Summary{Attempted: 9, Accepted: 7, WallTime: 1.5}) {
		t.Errorf("the checkpoint is %+v", k)
	}
	if err := WriteCheckpoint(t.Context(), dir, "run", k); err != nil {
		t.Fatal(err)
	}
	last := CheckpointFile(dir, "run")
	again, err := ReadState(t.Context(), last, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "checkpoint", again, k)
	if v, err := Verify(t.Context(), last, noWarnings(t)); err != nil || !v.Ours || v.Hashes != 0 {
		t.Errorf("the checkpoint is verified: %+v, %v", v, err)
	}
	return ours
}

func mustGet(t *testing.T, r record.Record, path string) record.Record {
	t.Helper()
	r, err := r.Record(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sameAgain compares a file of ours with the solution of another writer that it was made of.
func sameAgain(t *testing.T, path string, want *Solution) *Solution {
	t.Helper()
	got, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "written again", got, want)
	if a, b := got.Statistics.Others(), want.Statistics.Others(); !a.Equal(b) {
		t.Errorf("the other statistics are %v, were %v", a, b)
	}
	info, faults, err := Faults(t.Context(), path, noWarnings(t))
	if err = errors.Join(append(faults, err)...); err != nil || !info.Ours || info.HashesBy != "unknown" || info.Hashes != 0 {
		t.Errorf("%v: ours %v, hashes by %q, %d checked", err, info.Ours, info.HashesBy, info.Hashes)
	}
	return got
}

// The hashes of a joined file are those of its last part, and are checked if that is ours.
func TestHashesOfJoinedFiles(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	const theirs = "testdata/golden/foreign-output.0.0.5.h5"
	first, err := ReadOutput(t.Context(), []string{theirs}, Warn(func(string) {}))
	if err != nil {
		t.Fatal(err)
	}
	ours := *first
	ours.carried, ours.Statistics, ours.Times = nil, Statistics{}, []float64{2, 3}
	b := record.NewBuilder()
	for _, name := range sections {
		b.Section(name, func(b *record.Builder) { b.Text("of", name) })
	}
	settings := mustBuild(t, b)
	hashes, err := record.Hashes(settings, sections...)
	if err != nil {
		t.Fatal(err)
	}
	b.Record("hashes", hashes).Text("setup_hash", hashes.Hash())
	b.Record("segment", mustRecord(t, "index", 3, "start_time", 1.5, "resumed_from_segment", 2, "previous_setup_hash", hashOfOthers("setup")))
	ours.Settings = mustBuild(t, b)
	second := filepath.Join(dir, "ours.h5")
	if err := WriteOutput(t.Context(), second, &ours); err != nil {
		t.Fatal(err)
	}
	earlier := ours
	earlier.Times = []float64{-2, -1}
	earlier.Settings = withEntry(t, ours.Settings, "segment", mustRecord(t, "index", 1, "start_time", -2.0))
	before := filepath.Join(dir, "before.h5")
	if err := WriteOutput(t.Context(), before, &earlier); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files  []string
		change func(s *Solution)
		by     string
		hashes int
	}{
		"theirs":                        {[]string{theirs}, nil, "unknown", 0},
		"ours is last":                  {[]string{theirs, second}, nil, "", 9},
		"theirs is last":                {[]string{before, theirs}, nil, "unknown", 0},
		"ours":                          {[]string{second}, nil, "", 9},
		"other entries":                 {[]string{theirs}, func(s *Solution) { s.Settings = withEntry(t, s.Settings, "run", mustRecord(t, "of", "this")) }, "unknown", 0},
		"our hashes in place of theirs": {[]string{theirs}, func(s *Solution) { s.Settings = ours.Settings }, "", 9},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadOutput(t.Context(), c.files, Warn(func(string) {}))
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(s)
			}
			path := filepath.Join(t.TempDir(), "joined.h5")
			if err := WriteOutput(t.Context(), path, s); err != nil {
				t.Fatal(err)
			}
			info, faults, err := Faults(t.Context(), path, noWarnings(t))
			if err = errors.Join(append(faults, err)...); err != nil || info.HashesBy != c.by || info.Hashes != c.hashes {
				t.Errorf("%v: hashes by %q, %d checked", err, info.HashesBy, info.Hashes)
			}
		})
	}
	// The mark isn't one for everybody: without it the hashes are wrong.
	path := filepath.Join(dir, "joined.h5")
	if err := WriteOutput(t.Context(), path, first); err != nil {
		t.Fatal(err)
	}
	apply(t, path, func(f *h5.File) error { return f.DeleteAttribute("settings", hashesByAttribute) })
	if _, err := Verify(t.Context(), path); !errors.Is(err, ErrHash) {
		t.Errorf("without the mark: %v", err)
	}
}

// Other writers may name themselves, and their hashes keep the name.
func TestWritersOfHashes(t *testing.T) {
	for name, c := range map[string]struct {
		do edit
		by string
	}{
		"a name":         {attribute("/", writerAttribute, "theirs 1.0"), "theirs 1.0"},
		"a name of ours": {attribute("/", writerAttribute, "fieldstonelike"), "fieldstonelike"},
		"a number":       {func(f *h5.File) error { return h5.SetAttribute(f, "/", writerAttribute, []int64{1}) }, "unknown"},
		"names": {func(f *h5.File) error {
			return f.SetAttributeStrings("/", writerAttribute, []string{"a", "b"}, h5.Fixed)
		}, "unknown"},
		"nothing":              {attribute("/", writerAttribute, ""), "unknown"},
		"more than a name":     {attribute("/", writerAttribute, strings.Repeat("x", 1000)), "unknown"},
		"an attribute of ours": {attribute("settings", hashesByAttribute, "not looked at"), "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			dir := t.TempDir()
			theirs := filepath.Join(dir, "theirs.h5")
			spoil(t, theirs, golden(t, "foreign-output.0.0.5.h5"))
			apply(t, theirs, c.do)
			path := filepath.Join(dir, "joined.h5")
			for _, from := range []string{theirs, path} {
				s, err := ReadOutput(t.Context(), []string{from}, Warn(func(string) {}))
				if err != nil {
					t.Fatal(err)
				}
				if err := WriteOutput(t.Context(), path, s); err != nil {
					t.Fatal(err)
				}
				info, _, err := Inspect(t.Context(), path)
				if err != nil || info.HashesBy != c.by {
					t.Errorf("hashes by %q, %v", info.HashesBy, err)
				}
			}
		})
	}
}

// The mark that a file is complete may have any form of a boolean.
func TestFormsOfTheMark(t *testing.T) {
	for name, c := range map[string]struct {
		do   edit
		want error
	}{
		"an enumeration":     {func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []bool{true}) }, nil},
		"a word":             {func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []int64{1}) }, nil},
		"a list of one":      {func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []uint8{1}, 1) }, nil},
		"a false one":        {func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []bool{false}) }, ErrTorn},
		"nothing":            {func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []uint8{}, 0) }, ErrTorn},
		"another number":     {func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []uint8{2}) }, h5.ErrType},
		"a number below one": {func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []float64{1}) }, h5.ErrType},
	} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			path := filepath.Join(t.TempDir(), "run.h5")
			if err := WriteOutput(t.Context(), path, everything(t, 1), Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			apply(t, path, c.do)
			_, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), completeAttribute) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// Keys that no record of ours has are written where they were read, and nowhere else.
func TestKeysOfOthersAreOnlyCarried(t *testing.T) {
	closed(t)
	s := everything(t, 1)
	s.Settings = mustBuild(t, record.NewBuilder(record.AnyKeys()).Int("order", 1))
	err := WriteOutput(t.Context(), filepath.Join(t.TempDir(), "run.h5"), s, Fields(fieldValues))
	if !errors.Is(err, record.ErrKey) || !errors.Is(err, ErrInput) {
		t.Errorf("%v", err)
	}
	k := checkpointAt(t, 2.5)
	k.Stepper = mustBuild(t, record.NewBuilder(record.AnyKeys()).Int("1", 1))
	err = WriteCheckpoint(t.Context(), t.TempDir(), "run", k, Fields(fieldValues))
	if !errors.Is(err, record.ErrKey) || !errors.Is(err, ErrInput) {
		t.Errorf("%v", err)
	}
}

// What a builder takes can be written, at every place that a file has for it.
func TestTheLongestKeysCanBeWritten(t *testing.T) {
	closed(t)
	third := strings.Repeat("k", record.MaxPath/3-1)
	long, err := record.NewBuilder().
		Int(strings.Repeat("l", record.MaxPath), 1).
		Section(third, func(b *record.Builder) { b.Section(third, func(b *record.Builder) { b.Int(third, 2) }) }).
		Build()
	if err != nil {
		t.Fatal(err)
	}
	k := checkpointAt(t, 2.5)
	k.Settings, k.Stepper = long, long
	k.Updates = []UpdateState{{strings.Repeat("u", record.MaxPath), []float64{1}}}
	dir := t.TempDir()
	if err := WriteCheckpoint(t.Context(), dir, "run", k, Fields(fieldValues)); err != nil {
		t.Fatalf("%.1000v", err)
	}
	got, err := ReadState(t.Context(), CheckpointFile(dir, "run"), noWarnings(t))
	if err != nil {
		t.Fatalf("%.1000v", err)
	}
	if !got.Settings.Equal(long) || !got.Stepper.Equal(long) || got.Updates[0].Name != k.Updates[0].Name {
		t.Error("they are read as others")
	}
	// A name of an unknown is part of longer paths.
	l := Layout{R: []float64{0, 1, 2}, Grids: []MomentumGrid{{Name: "g", P: []float64{0, 1}, Xi: []float64{-1, 1}}, {Name: "h", P: []float64{0, 1, 2}, Xi: []float64{-1, 1}}},
		Unknowns: []Unknown{{Name: strings.Repeat("n", record.MaxPath-len("unknowns//lower_limit_tolerance")), Kind: Kinetic, Scale: 1, Grids: []string{"g", "h"}, Lower: &LowerLimit{Tolerance: 1}}}}
	s := &Solution{Settings: mustRecord(t), Layout: l, Times: []float64{0}, States: [][]float64{{1, 2, 3}}}
	path := filepath.Join(dir, "run.h5")
	if err := WriteOutput(context.Background(), path, s); err != nil {
		t.Fatalf("%.1000v", err)
	}
	again, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
	if err != nil {
		t.Fatalf("%.1000v", err)
	}
	same(t, "output", again, s)
}

// Statistics of other writers are cut and joined with the attempts, and are unknown where
// a file lacks them.
func TestStatisticsOfOthersAreJoined(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	const theirs = "testdata/golden/foreign-output.0.0.5.h5"
	copyOf := func(name string, edits ...edit) string {
		path := filepath.Join(dir, name)
		spoil(t, path, golden(t, filepath.Base(theirs)))
		apply(t, path, append([]edit{
			floats("time", []float64{2, 3}, 2),
			replace("settings/segment", func(f *h5.File) error {
				return writeRecord(f, "settings/segment", mustRecord(t, "index", 3, "start_time", 1.5, "attempts_before", 6))
			}),
		}, edits...)...)
		return path
	}
	for name, c := range map[string]struct {
		second  string
		lacks   []string // of what the joined statistics have
		warning []string
	}{
		"the same": {copyOf("a.h5"), nil, nil},
		"one lacks some": {copyOf("b.h5", unlink("solver_statistics/norms"), unlink("solver_statistics/phase"),
			unlink("solver_statistics/iteration_steps"), unlink("solver_statistics/refreshed"), unlink("solver_statistics/damping")), nil, nil},
		"other types": {copyOf("c.h5", strs("solver_statistics/norms", "a", "b", "c"), floats("solver_statistics/phase", []float64{1, 2, 3}, 3)),
			[]string{"norms", "phase"}, []string{`"norms"`, "int64 of shape [2]", "string", theirs, "c.h5"}},
		"another shape": {copyOf("d.h5", ints("solver_statistics/norms", []int64{1, 2, 3}, 3, 1)),
			[]string{"norms"}, []string{`"norms"`, "int64 of shape [2]", "int64 of shape [1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			warn, warnings := heard()
			s, err := ReadOutput(t.Context(), []string{theirs, c.second}, Warn(warn))
			if err != nil {
				t.Fatal(err)
			}
			told := slices.DeleteFunc(*warnings, func(w string) bool {
				return strings.Contains(w, "entries for 3 attempts") || !strings.Contains(w, " and ")
			})
			for _, word := range c.warning {
				if !slices.ContainsFunc(told, func(w string) bool { return strings.Contains(w, word) }) {
					t.Errorf("no warning says %q: %q", word, *warnings)
				}
			}
			// The second goes on from two of the three attempts: the third has gone.
			if !slices.Equal(s.Statistics.Time, []float64{0.5, 0.25, 0.5, 0.25, 0.5}) || !slices.Equal(s.Statistics.IterationAttempt, []int64{1, 2, 2, 3, 4, 4, 5}) {
				t.Fatalf("attempts at %v, iterations of %v", s.Statistics.Time, s.Statistics.IterationAttempt)
			}
			want := map[string]any{
				"damping":         mustArray(t, []float64{0.5, 1, 0.5, 1, 1}),
				"norms":           mustArray(t, []int64{1, 2, 3, 4, 1, 2, 3, 4, 5, 6}, 5, 2),
				"refreshed":       mustArray(t, []uint8{1, 0, 1, 0, 0}),
				"phase":           []string{"start", "", "start", "", "end"},
				"iteration_steps": mustArray(t, []int16{1, 1, 2, 1, 1, 2, 1}),
			}
			if name == "one lacks some" {
				nan := math.NaN()
				want = map[string]any{
					"damping":         mustArray(t, []float64{0.5, 1, nan, nan, nan}),
					"norms":           mustArray(t, []int64{1, 2, 3, 4, 0, 0, 0, 0, 0, 0}, 5, 2),
					"refreshed":       mustArray(t, []uint8{1, 0, 0, 0, 0}),
					"phase":           []string{"start", "", "unknown", "unknown", "unknown"},
					"iteration_steps": mustArray(t, []int16{1, 1, 2, 0, 0, 0, 0}),
				}
			}
			for _, name := range c.lacks {
				delete(want, name)
			}
			b := record.NewBuilder()
			for _, name := range slices.Sorted(maps.Keys(want)) {
				b.Set(name, want[name])
			}
			if got, want := s.Statistics.Others(), mustBuild(t, b); !got.Equal(want) {
				t.Errorf("they are %v, want %v", got, want)
			}
		})
	}
}

// What a joined file has no place for is told.
func TestObjectsOfOthersThatAreLeftOut(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "theirs.h5")
	spoil(t, path, golden(t, "output.0.0.5.h5"))
	apply(t, path,
		func(f *h5.File) error { return f.CreateGroup("provenance") },
		func(f *h5.File) error { return h5.Write(f, "seed", []int64{1}) },
		func(f *h5.File) error { return h5.Write(f, "unknowns/other", []float64{1, 2}, 2) },
		func(f *h5.File) error { return h5.Write(f, "x", []float64{1, 2}, 2) },
		func(f *h5.File) error { return f.SetAttributeString("x", "CLASS", "DIMENSION_SCALE") },
	)
	warn, warnings := heard()
	s, err := ReadOutput(t.Context(), []string{path}, Warn(warn))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(*warnings)
	for i, word := range []string{`"provenance" is left out`, `"seed" is left out`, `unknown "other" is left out`} {
		if len(*warnings) != 3 || !strings.Contains((*warnings)[i], word) || !strings.Contains((*warnings)[i], path) {
			t.Fatalf("warnings: %q", *warnings)
		}
	}
	joined := path + ".joined"
	if err := WriteOutput(t.Context(), joined, s); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOutput(t.Context(), []string{joined}, noWarnings(t)); err != nil {
		t.Error(err)
	}
}

// golden is the content of a golden file.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata/golden", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
