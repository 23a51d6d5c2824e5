//go:build hdf5

package runfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A file is made in a directory that exists: one that doesn't is named.
func TestAMissingDirectoryIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "no")
	s := &Solution{Layout: Layout{Unknowns: []Unknown{{Name: "I", Kind: Scalar}}}, Times: []float64{0}, States: [][]float64{{1}}}
	k := &Checkpoint{Layout: s.Layout, State: []float64{1}, Segment: 1}
	for name, err := range map[string]error{
		"output":     WriteOutput(t.Context(), filepath.Join(dir, "sub/x.h5"), s),
		"atomically": WriteOutput(t.Context(), filepath.Join(dir, "sub/x.h5"), s, Atomic()),
		"checkpoint": WriteCheckpoint(t.Context(), filepath.Join(dir, "sub"), "x", k),
	} {
		if err == nil || !strings.HasSuffix(err.Error(), ": there is no directory "+dir) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
