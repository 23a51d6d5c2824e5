//go:build hdf5

package runfile

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// What a file refers to is written once: later checkpoints leave the scales as they are,
// and the time that they share grows.
func TestScalesOfASegmentStay(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	solver := newCellSolver(t, seriesDomain.Box(), 1, false)
	defer solver.free(t)
	cfg := solver.config(dir)
	cfg.Layout.R = []float64{0, 1, 3}
	cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, Unknown{Name: "T", Kind: Radial, Components: 2})
	cfg.Initial = make([]float64, 5)
	cfg.Checkpoint.Steps = 1
	var log events
	cfg.Logger = slog.New(&log)
	s, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	solver.set(t, 0)
	state := make([]float64, 5)
	if err := s.SaveState(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	file, last := SegmentFile(dir, "run", 1), CheckpointFile(dir, "run")
	storage := func() (sizes []int64) {
		t.Helper()
		for _, at := range [][2]string{{"time", "REFERENCE_LIST"}, {"x", "REFERENCE_LIST"}, {"r", "REFERENCE_LIST"}, {"unknowns/phi", "DIMENSION_LIST"}} {
			f, err := h5.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.StatAttribute(at[0], at[1])
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, int64(info.Elements()), info.Storage)
		}
		return sizes
	}
	var before []int64
	for i := range 3 {
		s.Attempt(Attempt{Time: s.NextTime(), StepLength: 1, Accepted: true, WallTime: 1})
		solver.set(t, s.time)
		if err := s.SaveState(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Checkpoint(t.Context(), state, nil); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, last} {
			if _, err := Verify(t.Context(), path); err != nil {
				t.Error(err)
			}
		}
		runPython(t, "scales", file)
		runPython(t, "scales", last)
		now := storage()
		if before != nil && !slices.Equal(now, before) {
			t.Errorf("after %d checkpoints the references take %v, took %v", i+1, now, before)
		}
		before = now
	}
	if want := []int64{3, 2, 1, 4}; before[0] != want[0] || before[2] != want[1] || before[4] != want[2] || before[6] != want[3] {
		t.Errorf("the references are %v", before)
	}
	// Two fields of all cells go to the segment and the checkpoint each; before the first
	// checkpoint two states were saved.
	cells := 2 * 8 * seriesDomain.Cells()
	for i, got := range log.list {
		states := int64(1 + map[bool]int{true: 2, false: 1}[i == 0])
		if n := got.value["bytes"].Int64(); got.name != "checkpoint" || n < states*(cells+8*6) || n > states*(cells+8*6)+1024 {
			t.Errorf("%s %d wrote %d bytes, of %d states with %d in fields", got.name, i, n, states, cells)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A file whose coordinates aren't those of its layout is a bad one; one without them, as of
// an earlier release, is good.
func TestVerifyComparesCoordinates(t *testing.T) {
	closed(t)
	for name, tc := range map[string]struct {
		change func(f *h5.File) error
		fault  string
	}{
		"as it is":               {func(f *h5.File) error { return nil }, ""},
		"another coordinate":     {func(f *h5.File) error { return h5.WriteSlab(f, "y", []float64{7}, []int{1}, []int{1}) }, "y: does not match"},
		"another radius":         {func(f *h5.File) error { return h5.WriteSlab(f, "r", []float64{7}, []int{2}, []int{1}) }, "r: "},
		"another number":         {func(f *h5.File) error { return h5.WriteSlab(f, "component_2", []int64{7}, []int{3}, []int{1}) }, "component_2: "},
		"none":                   {func(f *h5.File) error { return f.Unlink("x") }, ""},
		"a group in their place": {func(f *h5.File) error { return errors.Join(f.Unlink("x"), f.CreateGroup("x")) }, "x: "},
		"another length": {func(f *h5.File) error {
			return errors.Join(f.Unlink("x"), h5.Write(f, "x", []float64{0, 1}, 2))
		}, "x: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.h5")
			if err := WriteOutput(t.Context(), path, everything(t, 2), Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			if err := change(path, tc.change); err != nil {
				t.Fatal(err)
			}
			_, faults, err := Faults(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tc.fault == "" && len(faults) > 0:
				t.Errorf("faults are %v", faults)
			case tc.fault != "" && (len(faults) != 1 || !strings.Contains(faults[0].Error(), path+": "+tc.fault)):
				t.Errorf("faults are %v, want one of %s", faults, tc.fault)
			}
			if _, err := ReadOutput(t.Context(), []string{path}, noWarnings(t)); err != nil {
				t.Errorf("a reader minds: %v", err)
			}
		})
	}
}
