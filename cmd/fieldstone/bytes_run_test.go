//go:build hdf5

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// Output that can't be written is an error of every command, also after a file was made.
func TestOutputOfRunFileCommandsThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		errors string
	}{{syscall.ENOSPC, 2, "fieldstone: write output: no space left on device\n"}, {syscall.EPIPE, 141, ""}} {
		runs(t)
		for i, args := range [][]string{
			{"show", segment1}, {"show", "--json", segment1}, {"verify", "results"}, {"diff", segment1, segment1}, {"diff", "results", "results"},
			{"segments", "results", "decay"}, {"segments", "--json", "results", "decay"}, {"settings", segment1}, {"settings", "--json", segment1, "time"},
			{"settings", "diff", segment1, segment1}, {"join", segment1, segment2, "-o", fmt.Sprint("joined", c.status, ".h5")},
			{"xdmf", segment1, "-o", "-"}, {"xdmf", segment1, "-o", fmt.Sprint(c.status, ".xmf")},
		} {
			var errors bytes.Buffer
			if got := execute(t.Context(), args, failing{&os.PathError{Op: "write", Path: "/dev/stdout", Err: c.err}}, &errors); got != c.status || errors.String() != c.errors {
				t.Errorf("%d: %q: exit status %d, %q; want %d, %q", i, args, got, errors.String(), c.status, c.errors)
			}
		}
	}
}
