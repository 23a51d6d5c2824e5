//go:build linux

package faultfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/faultfs"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/publish"
)

// On real files that don't tell case apart, two ids of one file are refused before
// anything is there, and other ids make a bundle that verifies.
func TestFilesThatDoNotTellCaseApart(t *testing.T) {
	base, mount := t.TempDir(), t.TempDir()
	faultfs.Mount(t, base, mount, faultfs.Folds)
	domain := grid.Domain{Size: [3]int{4, 3, 2}, Spacing: [3]float64{1, 1, 1}}
	save := func(driver brick.Driver, name string, ids ...string) error {
		return comm.Run(2, func(c *comm.Comm) error {
			cut, err := grid.Decompose(domain, c.Size())
			if err != nil {
				return err
			}
			var fields []field.Named
			for _, id := range ids {
				f, err := field.New[float64](domain, cut.Box(c.Rank()))
				if err != nil {
					return err
				}
				fields = append(fields, field.Named{ID: id, Field: f})
			}
			state := publish.State{Fields: fields, Increment: 1, Method: "m"}
			return publish.SaveBundle(t.Context(), c, filepath.Join(mount, name), state, publish.Bricks(brick.Using(driver)))
		})
	}
	for _, driver := range []brick.Driver{brick.POSIX, brick.Node} {
		if err := save(driver, "Refused", "psi", "phi", "Phi"); !errors.Is(err, publish.ErrInput) || !errors.Is(err, vfs.ErrOneFile) {
			t.Errorf("driver %v: the error is %v", driver, err)
		}
		if _, err := os.Lstat(filepath.Join(mount, "Refused")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("driver %v: the bundle is there: %v", driver, err)
		}
		name := "Of_" + driver.String()
		if err := save(driver, name, "psi", "phi"); err != nil {
			t.Error(err)
		}
		b, err := publish.OpenBundle(filepath.Join(mount, name))
		if err == nil {
			err = errors.Join(b.Verify(context.Background(), nil), b.Close())
		}
		if err != nil {
			t.Errorf("driver %v: %v", driver, err)
		}
	}
}
