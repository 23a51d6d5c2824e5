//go:build hdf5

package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/runfile"
)

func TestNumbersOfACheckpointThatAreNotFiniteAreTold(t *testing.T) {
	nothingOpen(t)
	t.Chdir(t.TempDir())
	k, fields := checkpoint(0.5, 1, 3)
	for _, counts := range []map[string]int64{{k.Layout.Unknowns[0].Name: 5}, {}, nil} {
		k.NonFinite = counts
		if err := runfile.WriteCheckpoint(t.Context(), ".", "decay", k, runfile.Fields(fields)); err != nil {
			t.Fatal(err)
		}
		got := decodeRun(t, mustRun(t, 0, "show", "--json", "decay.checkpoint.h5")).Checkpoint.NonFinite
		if !maps.Equal(got, counts) || (got == nil) != (counts == nil) {
			t.Errorf("%v, want %v", got, counts)
		}
		text := mustRun(t, 0, "show", "decay.checkpoint.h5").out
		want := "NaN or infinite in " + k.Layout.Unknowns[0].Name
		if strings.Contains(text, want) != (len(counts) > 0) {
			t.Errorf("%v:\n%s", counts, text)
		}
	}
}
