package bricktest_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/brick/bricktest"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// The suite itself, on the simplest driver.
func TestPOSIXInMemory(t *testing.T) {
	m := vfs.NewMem()
	if err := m.Mkdir("/d", 0o777); err != nil {
		t.Fatal(err)
	}
	err := comm.Run(3, func(c *comm.Comm) error {
		bricktest.Run(t, c, bricktest.Config{Options: []brick.Option{brick.Filesystem(m)}, FS: m, Dir: "/d"})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
