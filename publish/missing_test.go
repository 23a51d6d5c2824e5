package publish

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
)

// A bundle is made in a directory that exists: one that doesn't is named, on every rank.
func TestAMissingDirectoryIsNamed(t *testing.T) {
	dir := t.TempDir()
	err := comm.Run(3, func(c *comm.Comm) error {
		d := grid.Domain{Size: [3]int{3, 2, 2}, Spacing: [3]float64{1, 1, 1}}
		f, err := field.New[float64](d, grid.Box{Low: [3]int{c.Rank(), 0, 0}, Size: [3]int{1, 2, 2}})
		if err != nil {
			return err
		}
		err = SaveBundle(t.Context(), c, filepath.Join(dir, "no/sub/step_1"), State{Fields: []field.Named{{ID: "f", Field: f}}})
		if err == nil || !strings.Contains(err.Error(), "there is no directory "+filepath.Join(dir, "no")) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
