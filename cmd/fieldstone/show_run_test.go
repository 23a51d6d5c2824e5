//go:build hdf5

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// decodeRun reads the JSON of a file whose content could be read.
func decodeRun(t *testing.T, o outcome) shownRun {
	t.Helper()
	c := decodeJSON[shownContent](t, o)
	f := decodeJSON[struct {
		State    state
		Error    *string
		Bytes    *int64
		Version  *string `json:"format_version"`
		Writer   *string
		Complete *bool
	}](t, o)
	return shownRun{State: f.State, Error: f.Error, Bytes: f.Bytes, Version: f.Version, Writer: f.Writer, Complete: f.Complete, shownContent: &c}
}

// Every version of the format is shown, and files of other writers.
func TestShowRunFilesOfEveryVersion(t *testing.T) {
	nothingOpen(t)
	for _, version := range []string{"0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5"} {
		for kind, shown := range map[string]string{"output": "segment", "checkpoint": "checkpoint"} {
			path := filepath.Join(goldenRuns, kind+"."+version+".h5")
			o := mustRun(t, 0, "show", path)
			says(t, o.out, path, version, "another program, version 0.3.0, commit 0123456789abcdef", "a hash of another writer")
			s := decodeRun(t, mustRun(t, 0, "show", "--json", path))
			if s.Kind != shown || *s.Version != version || s.Writer != nil || s.Complete != nil || s.State != stateGood || s.Error != nil {
				t.Errorf("%+v", s)
			}
			if len(s.Unknowns) != 4 || len(s.Unknowns[3].Shapes) != 2 || s.Unknowns[0].Stored != (version >= "0.0.5") || (s.Checkpoint != nil) != (kind == "checkpoint") {
				t.Errorf("%+v", s.shownContent)
			}
			if unit := s.Unknowns[1].Unit; (unit == "m^-3") != (version >= "0.0.5") {
				t.Errorf("%s: the unit is %q", version, unit)
			}
		}
	}
	for _, name := range []string{"ours-output.0.0.5.h5", "ours-checkpoint.0.0.5.h5"} {
		s := decodeRun(t, mustRun(t, 0, "show", "--json", filepath.Join(goldenRuns, name)))
		if *s.Writer != "fieldstone 0.1.0" || !*s.Complete || len(s.Unknowns) != 6 {
			t.Errorf("%+v", s)
		}
	}
}

func TestShowRunFile(t *testing.T) {
	runs(t)
	s := decodeRun(t, mustRun(t, 0, "show", "--json", segment1))
	if s.Kind != "segment" || len(s.Times) != 4 || *s.Statistics != (shownStatistics{5, 4, 5, 35, 10}) ||
		len(s.Updates) != 1 || s.Updates[0] != (shownUpdate{"mean", 2}) || *s.Bytes == 0 || len(*s.SetupHash) != 64 {
		t.Errorf("%+v", s.shownContent)
	}
	if !strings.Contains(string(s.Segment), `"limit of 4 steps"`) {
		t.Errorf("the segment is %s", s.Segment)
	}
	k := decodeRun(t, mustRun(t, 0, "show", "--json", previousCheckpoint))
	if k.Kind != "checkpoint" || k.Checkpoint.Time != 0.5 || k.Checkpoint.Segment != 1 || k.Checkpoint.Saved != 3 || !k.Checkpoint.Stepper || k.Statistics.Accepted != 4 {
		t.Errorf("%+v", k.Checkpoint)
	}
	// What is joined is no segment, though it has the settings of one.
	mustRun(t, 0, "join", segment1, segment2, "-o", "joined.h5")
	if j := decodeRun(t, mustRun(t, 0, "show", "--json", "joined.h5")); j.Kind != "output" {
		t.Errorf("joined is a %s", j.Kind)
	}
}

// The name plays no part.
func TestRunFilesAreKnownByTheirContent(t *testing.T) {
	runs(t)
	rename(t, segment1, "notes.txt")
	says(t, mustRun(t, 0, "show", "notes.txt").out, "segment 1")
	says(t, mustRun(t, 0, "verify", "notes.txt").out, "notes.txt: good (segment 1, 4 states, 4 hashes, ")
	write(t, "late.dat", append(make([]byte, 1024), signature...))
	write(t, "later.dat", append(make([]byte, 1025), signature...))
	if !hasSignature("late.dat") || hasSignature("later.dat") || hasSignature("results") || hasSignature("nothing") {
		t.Error("the signature is at 0, 512, 1024, …")
	}
	write(t, "empty.h5", nil)
	o := mustRun(t, 1, "show", "empty.h5")
	says(t, o.errors, "fieldstone: show empty.h5: not a usable HDF5 file: it has no signature of HDF5\n")
}

func TestShowOfBadRunFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *h5.File) error
		status int
		says   []string
	}{
		{"torn", func(f *h5.File) error { return f.DeleteAttribute("/", "complete") }, 1, []string{"the file was not finished", "complete    no"}},
		{"a newer version", func(f *h5.File) error { return f.SetAttributeString("/", "format_version", "0.0.6") }, 2, []string{"0.0.6, known are 0.0.1 to 0.0.5"}},
		{"not of a run", func(f *h5.File) error { return f.DeleteAttribute("/", "format_version") }, 1, []string{"not a file of a run"}},
		{"without an unknown", func(f *h5.File) error { return f.Unlink("unknowns/T") }, 1, []string{"unknowns/T", "not there", "phi"}},
		{"without settings", func(f *h5.File) error { return f.Unlink("settings") }, 1, []string{": settings: ", "setup hash    not known"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs(t)
			edit(t, segment1, c.change)
			o := mustRun(t, c.status, "show", segment1)
			says(t, o.errors+o.out, append(c.says, "fieldstone: show "+segment1+": ")...)
			s := decodeJSON[map[string]any](t, mustRun(t, c.status, "show", "--json", segment1))
			if s["error"] == nil || s["state"] == "good" || s["bytes"].(float64) == 0 {
				t.Errorf("%v", s)
			}
		})
	}
}

func TestShowRunStats(t *testing.T) {
	runs(t)
	s := decodeRun(t, mustRun(t, 0, "show", "--json", "--stats", segment2))
	for i, want := range []shownStats{
		{0.75, 1, 0.875, 0},   // I is the time
		{1.75, 3, 2.375, 0},   // T is 1 and 2 s later
		{3.75, 11, 7.375, 0},  // the numbers 3 to 10
		{750, 1123, 936.5, 0}, // phi
	} {
		if got := *s.Unknowns[i].Stats; got != want {
			t.Errorf("%s: %+v, want %+v", s.Unknowns[i].Name, got, want)
		}
	}
	k, _ := checkpoint(1, 2, 5)
	k.Bundles = map[string]string{"phi": "results/ckpt/step_4"}
	if err := runfile.WriteCheckpoint(t.Context(), "results", "decay", k); err != nil {
		t.Fatal(err)
	}
	o := mustRun(t, 0, "show", "--stats", lastCheckpoint)
	says(t, o.out, "in the bundle results/ckpt/step_4", "bundle of phi  results/ckpt/step_4")
	s = decodeRun(t, mustRun(t, 0, "show", "--json", "--stats", lastCheckpoint))
	if s.Unknowns[0].Stats.Mean != 1 || s.Unknowns[3].Stats != nil || *s.Unknowns[3].Bundle != "results/ckpt/step_4" {
		t.Errorf("%+v", s.Unknowns)
	}
}

// Files that were made to do harm are refused like any bad one, by every command.
func TestHostileRunFiles(t *testing.T) {
	nothingOpen(t)
	files, err := filepath.Glob(filepath.Join(hostileRuns, "*.h5"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out := filepath.Join(t.TempDir(), "out")
	for _, file := range files {
		if strings.HasSuffix(file, "sound.h5") {
			continue
		}
		for _, c := range []struct {
			status int
			args   []string
		}{
			{1, []string{"verify", file}}, {1, []string{"show", file}}, {1, []string{"show", "--stats", file}},
			{1, []string{"join", file, "-o", out}}, {2, []string{"xdmf", file, "-o", out}},
		} {
			o := mustRun(t, c.status, c.args...)
			says(t, o.errors, file)
		}
		run(t, "settings", file) // which may be sound
		run(t, "settings", "diff", file, file)
	}
	if exists(out) {
		t.Error("something was written")
	}
}

// Of a file that can't be opened the size is known, and its writer isn't.
func TestShowOfRunFilesThatCannotBeRead(t *testing.T) {
	runs(t)
	write(t, segment1, read(t, segment1)[:20_000])
	o := mustRun(t, 1, "show", segment1)
	says(t, o.out, "  complete    not known\n", "  written by  not known\n", "  size        19.5 KiB\n")
	if s := decodeRun(t, mustRun(t, 1, "show", "--json", segment1)); *s.Bytes != 20_000 || s.Complete != nil {
		t.Errorf("%+v", s)
	}
	v := decodeJSON[struct {
		Runs []runVerdict `json:"run_files"`
	}](t, mustRun(t, 1, "verify", "--json", segment1))
	if len(v.Runs) != 1 || *v.Runs[0].Bytes != 20_000 {
		t.Errorf("%+v", v)
	}
	if size := sizeOf(&runfile.Info{File: "nowhere.h5"}); size != nil || orNoSize(size) != "not known" {
		t.Errorf("a file that isn't there has %d bytes", *size)
	}
}

// Cut anywhere, a file is bad, and no more.
func TestCutRunFiles(t *testing.T) {
	runs(t)
	whole := read(t, segment1)
	for n := 0; n < len(whole); n += 1 + n/3 {
		write(t, segment1, whole[:n])
		for _, args := range [][]string{{"show", segment1}, {"verify", segment1}} {
			o := mustRun(t, 1, args...)
			says(t, o.errors, segment1+": ")
		}
		o := mustRun(t, 0, "segments", "results", "decay")
		says(t, o.out, "      1  bad ")
	}
}

func TestRunFilesThatCannotBeOpened(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root opens everything: a name that leads nowhere stands for it.
		runs(t)
		remove(t, segment1)
		symlink(t, "nowhere", segment1)
		says(t, mustRun(t, 2, "verify", segment1).errors, "no such file or directory")
		says(t, mustRun(t, 2, "verify", "results").errors, segment1+": no such file or directory")
		return
	}
	runs(t)
	if err := os.Chmod(segment1, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"show", segment1}, {"verify", segment1}, {"settings", segment1}} {
		says(t, mustRun(t, 2, args...).errors, "permission denied")
	}
}

// Statistics of which a part can't be read are none, in place of sums over the rest.
func TestShowRunWithDamagedStatistics(t *testing.T) {
	for _, name := range []string{"time", "accepted", "linear_iterations", "wall_time", "outcome"} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			path := "solver_statistics/" + name
			edit(t, segment1, replace(path, func(f *h5.File) error { return h5.Write(f, path, []float32{1, 2}, 2) }))
			o := mustRun(t, 1, "show", segment1)
			says(t, o.errors, "fieldstone: show "+segment1+": solver_statistics")
			says(t, o.out, "unknowns\n", "interval updates\n")
			if strings.Contains(o.out, "statistics\n") {
				t.Errorf("%s", o.out)
			}
			m := decodeJSON[map[string]any](t, mustRun(t, 1, "show", "--json", segment1))
			if statistics, there := m["statistics"]; !there || statistics != nil || m["unknowns"] == nil {
				t.Errorf("%v", m)
			}
			mustRun(t, 0, "segments", "results", "decay")
		})
	}
}

// The size of an unknown is that of its values, however much room its chunks have for
// more.
func TestSizesAreThoseOfTheValues(t *testing.T) {
	for name, options := range map[string][]runfile.Option{
		"in one piece": nil, "in chunks that grow": {runfile.Extendible()},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			s, fields := firstSegment()
			if err := runfile.WriteOutput(t.Context(), "x.h5", s, append(options, runfile.Fields(fields))...); err != nil {
				t.Fatal(err)
			}
			for _, u := range decodeRun(t, mustRun(t, 0, "show", "--json", "x.h5")).Unknowns {
				want := map[string]int64{"I": 32, "T": 64, "hot": 256, "phi": 768}[u.Name]
				if u.Bytes != want {
					t.Errorf("%s: %d bytes, want %d", u.Name, u.Bytes, want)
				}
			}
		})
	}
}

// What others compress is as large as it is then.
func TestSizeOfWhatIsCompressed(t *testing.T) {
	runs(t)
	edit(t, segment1, replace("unknowns/T", func(f *h5.File) error {
		l := h5.Layout{Shape: []int{4, 2, 1}, Chunk: []int{512, 2, 1}, Extendible: true, Deflate: 9}
		return firstOf(h5.CreateDataset[float64](f, "unknowns/T", l), h5.WriteSlab(f, "unknowns/T", make([]float64, 8), []int{0, 0, 0}, []int{4, 2, 1}))
	}))
	if u := decodeRun(t, mustRun(t, 0, "show", "--json", segment1)).Unknowns[1]; u.Name != "T" || u.Bytes <= 0 || u.Bytes > 64 {
		t.Errorf("%+v", u)
	}
}
