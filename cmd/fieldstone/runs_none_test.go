//go:build !hdf5

package main

import (
	"strings"
	"testing"
)

// A tool without HDF5 says so, of every command that needs it, and is as good for bundles.
func TestWithoutHDF5(t *testing.T) {
	results(t)
	remove(t, "results/ckpt/step_40")
	content := append(signature, "the rest of an HDF5 file"...)
	for _, path := range []string{"results/run.segment0001.h5", "results/run.checkpoint.h5", "results/notes", "results/other.h5"} {
		write(t, path, content)
	}
	const reason = "this tool was built without HDF5 (build it with the tag hdf5)\n"
	file := "results/run.segment0001.h5"
	for _, c := range []struct {
		args   []string
		prefix string
	}{
		{[]string{"show", file}, "show " + file}, {[]string{"show", "results/notes"}, "show results/notes"}, {[]string{"verify", file}, "verify " + file},
		{[]string{"diff", file, file}, "diff " + file}, {[]string{"diff", "results", "results"}, "diff: run files are not compared"},
		{[]string{"settings", file}, "settings"}, {[]string{"settings", "diff", "results/notes", file}, "settings"}, {[]string{"settings"}, "settings"},
		{[]string{"segments", "results", "run"}, "segments"}, {[]string{"join", file, "-o", "out"}, "join"}, {[]string{"xdmf", "--nothing"}, "xdmf"},
		{[]string{"join", "--help"}, "join"}, {[]string{"help", "join"}, "join"}, {[]string{"help", "settings", "diff"}, "settings"},
	} {
		o := mustRun(t, 2, c.args...)
		if o.errors != "fieldstone: "+c.prefix+": "+reason {
			t.Errorf("%q: %q", c.args, o.errors)
		}
	}
	if exists("out") || exists("results/run.segment0001.xmf") {
		t.Error("something was written")
	}
	shown := mustRun(t, 2, "show", file).out
	if !strings.Contains(shown, "complete    not known\n") || !strings.Contains(shown, "size        32 B\n") {
		t.Errorf("%s", shown)
	}
	// Of a directory only what has the name of a run's is told of.
	o := mustRun(t, 2, "verify", "results")
	if strings.Count(o.errors, reason) != 2 || strings.Contains(o.errors, "notes") || strings.Contains(o.errors, "other") {
		t.Errorf("%s", o.errors)
	}
	mustRun(t, 1, "verify", "results/ckpt")
	says(t, mustRun(t, 2, "diff", "results", "results").out, "run.segment0001.h5  not compared")
	mustRun(t, 0, "show", "results/ckpt/step_9")
}

// runFileCommands are those that want a run file at a path: this tool has none.
func runFileCommands(string) [][]string { return nil }

// What the tool says of itself names nothing that it lacks.
func TestWithoutHDF5NothingNamesWhatIsLacking(t *testing.T) {
	results(t)
	write(t, "results/ckpt/decay.segment0001.h5", nil)
	texts := map[string]string{
		"bare":       mustRun(t, 0).out,
		"completion": mustRun(t, 0, "__complete", "").out,
		"ls":         mustRun(t, 0, "ls", "results/ckpt").out,
		"suggestion": mustRun(t, 2, "segmnts").errors + mustRun(t, 2, "setings").errors,
	}
	for _, name := range []string{"show", "ls", "verify", "diff", "version"} {
		texts["help of "+name] = mustRun(t, 0, "help", name).out
		texts["usage of "+name] = mustRun(t, 2, name, "a", "b", "--nothing").errors
	}
	for name, text := range texts {
		for _, lacking := range []string{"segments", "settings", "join", "xdmf", "run file", "decay.", "setup hash"} {
			if strings.Contains(text, lacking) {
				t.Errorf("%s names %q:\n%s", name, lacking, text)
			}
		}
	}
}
