//go:build linux

package faultfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/faultfs"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func init() { mpitest.Register("open", openThere) }

// openThere opens a file on all ranks, as a driver does, and closes it again.
func openThere(c *comm.Comm, args []string) error {
	f, err := c.Handle().OpenFile(args[0], true, nil)
	if err := c.Agree(context.Background(), err); err != nil {
		return err
	}
	return f.Close()
}

// A file that is there opens where no other one can be made, as on a disk without inodes:
// a library that makes files of its own beside it must not wait for them. Where the ranks
// are on several nodes, OMPIO would take the component for locked files: each rank makes one
// to see whether it can be locked, and then rank 0 makes one that stays.
func TestAFileOpensWhereNoneCanBeMade(t *testing.T) {
	if !mpi.Enabled {
		t.Skip("there is no MPI-IO without MPI")
	}
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) {
			base, mount := t.TempDir(), t.TempDir()
			faultfs.Mount(t, base, mount)
			if err := os.WriteFile(filepath.Join(base, "there"), make([]byte, 800), 0o666); err != nil {
				t.Fatal(err)
			}
			rule := faultfs.Rule{Op: "create", Action: faultfs.Err, Argument: int(syscall.ENOSPC), Skip: 2, Times: 1 << 20}
			if err := faultfs.Control(mount).Fail(rule); err != nil {
				t.Fatal(err)
			}
			options := append(component.Options, asOnNodes, mpitest.Limit(time.Minute))
			if output, exit := mpitest.Start(t, 2, "open", []string{filepath.Join(mount, "there")}, options...).Wait(); exit != 0 {
				t.Errorf("status %d:\n%s", exit, output)
			}
			if err := onlyFile(base, "there"); err != nil {
				t.Error(err)
			}
		})
	}
}

func onlyFile(dir, name string) error {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err == nil && (len(names) != 1 || names[0] != name) {
		err = errors.New("there are " + strings.Join(names, ", "))
	}
	return err
}
