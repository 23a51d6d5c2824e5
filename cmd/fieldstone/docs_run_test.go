//go:build hdf5

package main

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/runfile"
)

// The examples of docs/cli-run-files.md are what the tool writes.
func TestExamplesOfRunFiles(t *testing.T) {
	runs(t)
	s, fields := output(runSettings(tolerance(1e-8), must(firstSegmentRecord("other"))), 0)
	save(t, "other.h5", s, fields)
	changed(t, "again.h5", 1e-9, func(*runfile.Solution) {})
	changed(t, "other/decay.segment0001.h5", 1e-9, func(*runfile.Solution) {})
	write(t, "other/decay.segment0002.h5", read(t, segment2))
	write(t, "other/decay.checkpoint.h5", read(t, lastCheckpoint))
	checkExamples(t, runPage, 10)
}

func TestJSONKeysOfRunFilesAreDocumented(t *testing.T) {
	runs(t)
	s, fields := output(runSettings(tolerance(1e-8), must(firstSegmentRecord("other"))), 0)
	save(t, "other.h5", s, fields)
	write(t, "torn.h5", []byte("torn"))
	checkKeys(t, runPage, [][]string{
		{"show", "--json", "--stats", segment1}, {"show", "--json", lastCheckpoint}, {"verify", "--json", "results", "torn.h5"},
		{"segments", "--json", "results", "decay"}, {"settings", "diff", "--json", segment1, "other.h5"},
		{"diff", "--json", segment1, segment2}, {"diff", "--json", "--rtol", "1", segment1, segment2},
		{"join", "--json", segment1, segment2, "-o", "joined.h5"},
	})
}
