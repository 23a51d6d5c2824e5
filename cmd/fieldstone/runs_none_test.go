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
	const says = "this tool was built without HDF5 (build it with the tag hdf5)\n"
	file := "results/run.segment0001.h5"
	for _, c := range []struct {
		args   []string
		prefix string
	}{
		{[]string{"show", file}, "show " + file}, {[]string{"show", "results/notes"}, "show results/notes"}, {[]string{"verify", file}, "verify " + file},
		{[]string{"settings", file}, "settings " + file}, {[]string{"settings", "diff", "results/notes", file}, "settings diff results/notes"},
		{[]string{"segments", "results", "run"}, "segments results"}, {[]string{"join", file, "-o", "out"}, "join " + file},
		{[]string{"diff", file, "results/ckpt/step_9"}, "diff " + file}, {[]string{"xdmf", file}, "xdmf " + file},
	} {
		o := mustRun(t, 2, c.args...)
		if !strings.HasPrefix(o.errors, "fieldstone: "+c.prefix+": "+says) {
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
	if strings.Count(o.errors, says) != 2 || strings.Contains(o.errors, "notes") || strings.Contains(o.errors, "other") {
		t.Errorf("%s", o.errors)
	}
	mustRun(t, 1, "verify", "results/ckpt")
	mustRun(t, 0, "show", "results/ckpt/step_9")
}
