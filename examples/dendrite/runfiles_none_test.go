//go:build !hdf5

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/runfile"
)

func TestRunFilesNeedHDF5(t *testing.T) {
	set := small(filepath.Join(t.TempDir(), "out"))
	set.Run.Name = "crystal"
	err := comm.Run(2, func(c *comm.Comm) error {
		err := run(t.Context(), c, set, t.Output())
		if !errors.Is(err, runfile.ErrNoHDF5) {
			return fmt.Errorf("rank %d: error is %w", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(set.Checkpoint.Directory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}
