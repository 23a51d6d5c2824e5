//go:build !hdf5

package runfile

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// Without the library each call says so, and touches no file.
func TestWithoutHDF5EveryCallSaysSo(t *testing.T) {
	dir := t.TempDir()
	const name = "run"
	last := CheckpointFile(dir, name)
	if err := os.WriteFile(last, []byte("a checkpoint"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(SegmentFile(dir, name, 1), []byte("a segment"), 0o666); err != nil {
		t.Fatal(err)
	}
	layout := Layout{Unknowns: []Unknown{{Name: "n", Kind: Scalar}}}
	solution := &Solution{Layout: layout, Times: []float64{0}, States: [][]float64{{1}}}
	for what, call := range map[string]func(ctx context.Context) error{
		"WriteOutput":        func(ctx context.Context) error { return WriteOutput(ctx, last, solution) },
		"WriteOutput atomic": func(ctx context.Context) error { return WriteOutput(ctx, last, solution, Atomic()) },
		"WriteCheckpoint": func(ctx context.Context) error {
			return WriteCheckpoint(ctx, dir, name, &Checkpoint{Layout: layout, State: []float64{1}})
		},
		"Verify":         func(ctx context.Context) error { _, err := Verify(ctx, last); return err },
		"Faults":         func(ctx context.Context) error { _, _, err := Faults(ctx, last); return err },
		"Inspect":        func(ctx context.Context) error { _, _, err := Inspect(ctx, last); return err },
		"Outline":        func(ctx context.Context) error { _, err := Outline(ctx, []string{last}); return err },
		"ReadOutput":     func(ctx context.Context) error { _, err := ReadOutput(ctx, []string{last}); return err },
		"ReadRun":        func(ctx context.Context) error { _, err := ReadRun(ctx, dir, name); return err },
		"ReadState":      func(ctx context.Context) error { _, err := ReadState(ctx, last); return err },
		"ReadSettings":   func(ctx context.Context) error { _, err := ReadSettings(ctx, last); return err },
		"ReadCheckpoint": func(ctx context.Context) error { _, err := ReadCheckpoint(ctx, dir, name); return err },
		"no checkpoint":  func(ctx context.Context) error { _, err := ReadCheckpoint(ctx, t.TempDir(), name); return err },
	} {
		err := call(t.Context())
		if !errors.Is(err, ErrNoHDF5) || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "tag hdf5") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if content, err := os.ReadFile(last); err != nil || string(content) != "a checkpoint" {
		t.Errorf("the checkpoint is %q, %v", content, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}
