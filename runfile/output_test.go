//go:build hdf5

package runfile

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, states := range []int{0, 1, 3} {
		for name, opts := range map[string][]Option{
			"in place":            nil,
			"atomically":          {Atomic()},
			"to be extended":      {Extendible()},
			"atomic and extended": {Atomic(), Extendible()},
		} {
			t.Run(fmt.Sprintf("%d states %s", states, name), func(t *testing.T) {
				closed(t)
				path := filepath.Join(t.TempDir(), "run.h5")
				s := everything(t, states)
				if err := WriteOutput(t.Context(), path, s, append(opts, Fields(fieldValues))...); err != nil {
					t.Fatal(err)
				}
				got, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
				if err != nil {
					t.Fatal(err)
				}
				if states == 0 {
					s.Updates = nil // they leave no trace
				}
				same(t, "solution", got, s)
				if got.Settings.Hash() != s.Settings.Hash() {
					t.Error("the hash of the settings is another one")
				}
				b := grid.Box{Low: [3]int{1, 0, 1}, Size: [3]int{2, 3, 1}}
				for i := range states {
					values, want := make([]float64, b.Cells()), make([]float64, b.Cells())
					if err := got.ReadField(t.Context(), "phi", i, b, values); err != nil {
						t.Fatal(err)
					}
					if err := fieldValues(t.Context(), "phi", i, b, want); err != nil {
						t.Fatal(err)
					}
					same(t, "field", values, want)
				}
			})
		}
	}
}

func TestSettingsAreReadTypeForType(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	s := everything(t, 1)
	if err := WriteOutput(t.Context(), path, s, Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSettings(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(s.Settings) || got.Hash() != s.Settings.Hash() {
		t.Errorf("got\n%v\nwant\n%v", got, s.Settings)
	}
}
