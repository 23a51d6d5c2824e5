//go:build hdf5

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/fieldstone-io/fieldstone/runfile"
)

func TestVerifyRunFilesOfEveryVersion(t *testing.T) {
	nothingOpen(t)
	o := mustRun(t, 0, "verify", goldenRuns)
	if o.errors != "" || strings.Count(o.out, ": good (") != 16 {
		t.Errorf("%s%s", o.errors, o.out)
	}
	// Hashes of other writers are reported as not ours, not as wrong.
	if n := strings.Count(o.out, "hashes of another writer not checked"); n != 12 {
		t.Errorf("%d files of other writers", n)
	}
}

func TestVerifyRunFiles(t *testing.T) {
	flipped := func(path string) func(f *h5.File) error {
		return replace(path, func(f *h5.File) error { return h5.Write(f, path, []float64{1e-9}) })
	}
	for name, c := range map[string]struct {
		path   string
		change func(f *h5.File) error
		status int
		says   []string // of each line on standard error, after the path
	}{
		"good":                   {segment1, func(*h5.File) error { return nil }, 0, nil},
		"a setting":              {segment1, flipped("settings/system/tolerance"), 1, []string{"settings/system: the hash does not match: stored is "}},
		"the setup hash":         {segment1, replace("settings/setup_hash", func(f *h5.File) error { return f.WriteString("settings/setup_hash", "x") }), 1, []string{"settings/setup_hash: the hash does not match: stored is x"}},
		"the mark":               {segment1, func(f *h5.File) error { return f.DeleteAttribute("/", "complete") }, 1, []string{"the file was not finished"}},
		"a version to come":      {segment1, func(f *h5.File) error { return f.SetAttributeString("/", "format_version", "0.1.0") }, 2, []string{"format version not supported: format_version is 0.1.0"}},
		"a shape":                {segment1, replace("unknowns/T", func(f *h5.File) error { return h5.Write(f, "unknowns/T", make([]float64, 8), 4, 1, 2) }), 1, []string{"unknowns/T: does not match: its shape is [4 1 2]"}},
		"two objects":            {segment1, func(f *h5.File) error { return firstOf(f.Unlink("unknowns/T"), f.Unlink("update_states/mean")) }, 1, []string{"unknowns/T: "}},
		"a count":                {lastCheckpoint, replace("checkpoint/saved_count", func(f *h5.File) error { return h5.Write(f, "checkpoint/saved_count", []int64{9}) }), 1, []string{"checkpoint/saved_count: does not match: it is 9, " + segment2 + " has 2 and 3 before it"}},
		"a segment that is none": {lastCheckpoint, replace("checkpoint/segment", func(f *h5.File) error { return h5.Write(f, "checkpoint/segment", []int64{7}) }), 1, []string{"checkpoint/segment: does not match: it is 7, and there is no results/decay.segment0007.h5"}},
		"several settings at once": {segment1, func(f *h5.File) error {
			return firstOf(flipped("settings/system/tolerance")(f), flipped("settings/time/points")(f))
		}, 1, []string{"settings/system: the hash", "settings/time: the hash"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			edit(t, c.path, c.change)
			o := mustRun(t, c.status, "verify", c.path)
			got := strings.Split(strings.TrimSuffix(o.errors, "\n"), "\n")
			if o.errors == "" {
				got = nil
			}
			if len(got) != len(c.says) {
				t.Fatalf("%s", o.errors)
			}
			for i, want := range c.says {
				if want = "fieldstone: verify " + c.path + ": " + want; !strings.HasPrefix(got[i], want) {
					t.Errorf("%s\nwant %s", got[i], want)
				}
			}
			if q := mustRun(t, c.status, "verify", "-q", c.path); q.out != "" || q.errors != o.errors {
				t.Errorf("%q, %q", q.out, q.errors)
			}
			// The directory has the others too, which are good.
			d := mustRun(t, c.status, "verify", "results")
			says(t, d.errors, got...)
			want := 3
			if c.status == statusGood {
				want = 4
			}
			if n := strings.Count(d.out, ": good ("); n != want {
				t.Errorf("%d are good: %s", n, d.out)
			}
		})
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestVerifyRunFilesJSON(t *testing.T) {
	runs(t)
	edit(t, segment1, func(f *h5.File) error { return f.Unlink("unknowns/T") })
	write(t, "torn.h5", []byte("torn"))
	v := decodeJSON[struct {
		Runs []runVerdict `json:"run_files"`
	}](t, mustRun(t, 1, "verify", "--json", "theirs.h5", "results", "torn.h5")).Runs
	var paths []string
	for _, r := range v {
		paths = append(paths, r.Path)
	}
	if !slices.Equal(paths, []string{"theirs.h5", lastCheckpoint, previousCheckpoint, segment1, segment2, "torn.h5"}) {
		t.Fatalf("%v", paths)
	}
	if r := v[0]; r.Ours || r.Hashes != 0 || r.State != stateGood || *r.Kind != "segment" || r.Writer != nil || r.States != 2 || *r.HashesBy != "unknown" {
		t.Errorf("%+v", r)
	}
	if r := v[1]; !r.Ours || r.Hashes != 4 || r.HashesBy != nil || *r.Kind != "checkpoint" || *r.Writer != "fieldstone 0.1.0" || *r.Version != "0.0.5" {
		t.Errorf("%+v", r)
	}
	if r := v[3]; r.State != stateBad || len(r.Faults) != 1 || r.Faults[0].Object != "unknowns/T" || strings.Contains(r.Faults[0].Reason, "results") {
		t.Errorf("%+v", r)
	}
	if r := v[5]; r.State != stateBad || r.Kind != nil || r.Faults[0].Object != "" {
		t.Errorf("%+v", r)
	}
}

// A directory may have bundles, run files and other files.
func TestVerifyOfMixedDirectories(t *testing.T) {
	runs(t)
	sample{increment: 9}.save(t, "results/"+publish.StepName(9))
	f, err := h5.Create("results/other.h5")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, "results/decay.segment0003.h5.tmp", read(t, segment1)[:500])
	write(t, "results/notes.h5", []byte("no HDF5 file, and no name of a run's"))
	o := mustRun(t, 0, "verify", "results")
	if o.errors != "" || strings.Count(o.out, "\n") != 5 || !strings.HasPrefix(o.out, "results/step_9: good") {
		t.Errorf("%s%s", o.errors, o.out)
	}
	// Named, they are what they are.
	says(t, mustRun(t, 2, "verify", "results/other.h5").errors, "verify results/other.h5: neither a bundle nor a run file (it is an HDF5 file, but it has no attribute format_version)\n")
	says(t, mustRun(t, 1, "verify", "results/notes.h5").errors, "no signature of HDF5")
	// What has the name of a run's is one.
	if err := os.Rename("results/other.h5", "results/x.checkpoint.h5"); err != nil {
		t.Fatal(err)
	}
	says(t, mustRun(t, 1, "verify", "results").errors, "verify results/x.checkpoint.h5: not a file of a run")
}

// What is no file of a run is told from one that can't be read.
func TestWhatIsNoRunFile(t *testing.T) {
	runs(t)
	sample{increment: 9}.save(t, "ckpt/step_9")
	for path, says := range map[string]string{
		"nowhere.h5": "nowhere.h5: no such file or directory\n", "results": "results: is a directory, not a run file\n",
		"ckpt/step_9": "ckpt/step_9: is a bundle, not a run file\n", "/dev/null": "/dev/null: neither a bundle nor a run file (it is a device)\n",
	} {
		for _, args := range [][]string{
			{"settings", path}, {"settings", "diff", path, segment1}, {"settings", "diff", segment1, path},
			{"join", segment1, path, "-o", "out"}, {"xdmf", path, "-o", "out"}, {"xdmf", segment1, path, "-o", "out"},
		} {
			o := mustRun(t, 2, args...)
			command, _, _ := strings.Cut(strings.Join(args, " "), " "+path)
			command, _, _ = strings.Cut(command, " "+segment1)
			if o.errors != "fieldstone: "+command+" "+says || o.out != "" {
				t.Errorf("%q: %q and %q", args, o.errors, o.out)
			}
		}
	}
	for _, args := range [][]string{{"settings", "theirs.txt"}, {"join", "theirs.txt", "-o", "out"}, {"xdmf", "theirs.txt", "-o", "out"}} {
		write(t, "theirs.txt", []byte("text"))
		says(t, mustRun(t, 2, args...).errors, "theirs.txt: neither a bundle nor a run file\n")
	}
	for _, args := range [][]string{{"join", lastCheckpoint, "-o", "out"}, {"join", segment1, lastCheckpoint, "-o", "out"}, {"xdmf", segment1, lastCheckpoint, "-o", "out"}} {
		says(t, mustRun(t, 2, args...).errors, lastCheckpoint+": not an output file: it is a checkpoint")
	}
	if exists("out") {
		t.Error("something was written")
	}
}

// A full disk below standard output, or a reader that has gone, is noticed.
func TestRunOutputThatCannotBeWritten(t *testing.T) {
	runs(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{
		{"show", segment1}, {"show", "--json", segment1}, {"verify", "results"}, {"verify", "--json", segment1},
		{"segments", "results", "decay"}, {"segments", "--json", "results", "decay"}, {"settings", segment1}, {"settings", "--json", segment1},
		{"settings", "diff", segment1, segment1}, {"xdmf", segment1, "-o", "-"}, {"join", segment1, "-o", "out.h5", "--overwrite"},
	} {
		var errors strings.Builder
		if got := execute(t.Context(), args, full, &errors); got != 2 || errors.String() != "fieldstone: write output: no space left on device\n" {
			t.Errorf("%q: exit status %d, %q", args, got, errors.String())
		}
	}
}

// A run that goes on replaces its files while the tool looks: what it sees is whole.
func TestVerifyWhileARunWrites(t *testing.T) {
	runs(t)
	done := make(chan error)
	go func() {
		for range 20 {
			k, fields := checkpoint(1, 2, 5)
			if err := runfile.WriteCheckpoint(t.Context(), "results", "decay", k, runfile.Fields(fields)); err != nil {
				done <- err
				return
			}
		}
		close(done)
	}()
	for {
		if o := run(t, "verify", "results"); o.status != 0 {
			t.Errorf("%s", o.errors)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestIsRunName(t *testing.T) {
	for name, want := range map[string]bool{
		"a.segment0001.h5": true, "a.checkpoint.h5": true, "a.checkpoint.prev.h5": true, "a b.segment12345.h5": true,
		"a.h5": false, "a.segment.h5": false, "a.segmentx.h5": false, "a.segment0001.h5.tmp": false, "a.checkpoint": false, ".segment0001.h5": false,
	} {
		if got := isRunName(filepath.Base(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A damage that hides many objects is told once, and in JSON for each of them.
func TestOneReasonOfManyObjectsIsToldOnce(t *testing.T) {
	runs(t)
	s, _ := output(runSettings(tolerance(1e-6), must(firstSegmentRecord("x"))), 0, 0.25)
	s.Layout = runfile.Layout{Grids: runLayout().Grids[1:], Unknowns: []runfile.Unknown{{Name: "hot", Kind: runfile.Kinetic, Unit: "m^-3", Scale: 1}}}
	for i := range 7 {
		s.Layout.R = append(s.Layout.R, float64(i))
		if i > 0 {
			s.Layout.Unknowns[0].Grids = append(s.Layout.Unknowns[0].Grids, "grid_2")
		}
	}
	for k := range s.States {
		s.States[k] = make([]float64, s.Layout.Size())
	}
	if err := runfile.WriteOutput(t.Context(), "x.h5", s); err != nil {
		t.Fatal(err)
	}
	const name = "unknowns/hot/radius_"
	edit(t, "x.h5", func(f *h5.File) error {
		for i := range 6 {
			path := name + string(rune('1'+i))
			shape := []int{2, 5}
			if i == 5 {
				shape[1] = 4
			}
			if err := replace(path, func(f *h5.File) error { return h5.Write(f, path, make([]float64, 2*shape[1]), shape...) })(f); err != nil {
				return err
			}
		}
		return nil
	})
	const reason = ": does not match: its shape is [2 5], "
	for _, command := range []string{"show", "verify"} {
		o := mustRun(t, 1, command, "x.h5")
		lines := strings.Split(strings.TrimSpace(o.errors), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "fieldstone: "+command+" x.h5: "+name+"1, "+name+"2, "+name+"3, and 2 more"+reason) ||
			!strings.HasPrefix(lines[1], "fieldstone: "+command+" x.h5: "+name+"6: ") {
			t.Errorf("%s", o.errors)
		}
	}
	v := decodeJSON[struct {
		Runs []runVerdict `json:"run_files"`
	}](t, mustRun(t, 1, "verify", "--json", "x.h5")).Runs
	if len(v) != 1 || len(v[0].Faults) != 6 || v[0].Faults[4].Object != name+"5" {
		t.Errorf("%+v", v)
	}
}

func TestRunFaultLines(t *testing.T) {
	got := runFaultLines([]runFault{{"", "torn"}, {"a", "x"}, {"b", "y"}, {"c", "x"}, {"d", "x"}, {"e", "x"}, {"f", "y"}})
	if want := []string{"torn", "a, c, d, e: x", "b, f: y"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
