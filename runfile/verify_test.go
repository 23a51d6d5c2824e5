//go:build hdf5

package runfile

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

func TestVerify(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "run.h5")
	s := hashed(t)
	write := func() {
		t.Helper()
		if err := WriteOutput(t.Context(), path, s, Fields(fieldValues)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	got, err := Verify(t.Context(), path, noWarnings(t))
	if want := (Verified{Version: FormatVersion, Ours: true, Hashes: 3, States: 2}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for what, do := range map[string]edit{
		"system":     floats("settings/system/tolerance", []float64{1e-9}),
		"run":        str("settings/run/name", "b"),
		"setup_hash": str("settings/setup_hash", strings.Repeat("0", 64)),
	} {
		write()
		apply(t, path, do)
		if _, err := Verify(t.Context(), path); !errors.Is(err, ErrHash) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), what) {
			t.Errorf("another %s: %v", what, err)
		}
	}
	for what, do := range map[string]edit{
		"a hash of nothing":        func(f *h5.File) error { return f.WriteString("settings/hashes/time", "x") },
		"a hash that is a number":  ints("settings/hashes/run", []int64{1}),
		"hashes that are no group": str("settings/hashes", "x"),
	} {
		write()
		apply(t, path, do)
		if _, err := Verify(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
	write()
	apply(t, path, unlink("unknowns/phi"))
	if _, err := Verify(t.Context(), path); err == nil || !strings.Contains(err.Error(), "unknowns/phi") {
		t.Errorf("without the field: %v", err)
	}
	// Of others, hashes are only texts.
	got, err = Verify(t.Context(), "testdata/golden/output.0.0.4.h5", noWarnings(t))
	if want := (Verified{Version: "0.0.4", States: 2}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	got, err = Verify(t.Context(), "testdata/golden/ours-checkpoint.0.0.5.h5", noWarnings(t))
	if want := (Verified{Version: "0.0.5", Ours: true, Checkpoint: true, States: 1}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}
