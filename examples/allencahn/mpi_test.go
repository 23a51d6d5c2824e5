package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/publish"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }

func init() {
	mpitest.Register("allencahn", func(c *comm.Comm, args []string) error {
		set, err := parse(args, os.Stderr)
		if err != nil {
			return err
		}
		return run(context.Background(), c, set, os.Stdout)
	})
}

// A run that changes devices and the number of ranks under way, by MPI's launcher
// where there is one, ends as the one on a host that was never interrupted.
func TestJobsOnChangingDevicesEqualUninterruptedRun(t *testing.T) {
	common := []string{"-nx", "18", "-ny", "10", "-nz", "12", "-periodic", "xz", "-start", "random", "-every", "8"}
	job := func(ranks int, device, dir string, steps int, args ...string) {
		t.Helper()
		args = append(args, "-device", device, "-out", dir, "-steps", strconv.Itoa(steps))
		output, exit := mpitest.Start(t, ranks, "allencahn", append(args, common...)).Wait()
		if exit != 0 {
			t.Fatalf("%d ranks on %s end with status %d:\n%s", ranks, device, exit, output)
		}
	}
	dir := t.TempDir()
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	job(1, "host", whole, 30)
	job(2, "emulated", parts, 11, "-px", "2", "-py", "1", "-pz", "1")
	job(3, "host", parts, 19, "-restart", "latest")
	job(1, "emulated:0", parts, 30, "-restart", "latest")
	for _, increment := range []int64{8, 16, 24, 30} {
		mustBeEqual(t, filepath.Join(parts, publish.StepName(increment)), filepath.Join(whole, publish.StepName(increment)))
	}
}
