//go:build hdf5

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPathsOfRunFilesThatAreNotUTF8InJSON(t *testing.T) {
	runs(t)
	if err := os.CopyFS(odd, os.DirFS("results")); err != nil {
		t.Skip("names are UTF-8 here:", err)
	}
	in := func(name string) string { return filepath.Join(odd, filepath.Base(name)) }
	checkBytes(t, 0, "path_bytes", "show", "--json", in(segment1))
	checkBytes(t, 0, "path_bytes", "verify", "--json", odd)
	checkBytes(t, 1, "a_bytes b_bytes", "diff", "--json", in(segment1), in(segment2))
	checkBytes(t, 0, "a_bytes b_bytes", "diff", "--json", odd, odd)
	checkBytes(t, 0, "directory_bytes path_bytes", "segments", "--json", odd, "decay")
	checkBytes(t, 1, "a_bytes b_bytes", "settings", "diff", "--json", in(segment1), in(segment2))
	checkBytes(t, 0, "output_bytes path_bytes", "join", "--json", in(segment1), in(segment2), "-o", in("joined.h5"))
	for _, suffix := range []string{".segment0001.h5", ".checkpoint.h5", ".checkpoint.prev.h5"} {
		rename(t, in("decay"+suffix), in("run\xfe"+suffix))
	}
	checkBytes(t, 0, "directory_bytes name_bytes", "segments", "--json", odd, "run\xfe")
	checkBytes(t, 0, "directory_bytes runs_bytes", "ls", "--json", odd)
	// XML has no such names: the file says so.
	o := mustRun(t, 2, "xdmf", in(segment2), "-o", "out.xmf")
	if !strings.Contains(o.errors, "UTF-8") || exists("out.xmf") {
		t.Errorf("%s", o.errors)
	}
}
