package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/publish"
)

// asCommand is set in the environment of a test binary that is to be the command.
const asCommand = "ALLENCAHN_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(mpitest.Main(m))
}

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
	gpu := findGPUs(t)
	common := []string{"-nx", "18", "-ny", "10", "-nz", "12", "-periodic", "xz", "-start", "random", "-every", "8"}
	job := func(ranks int, device, dir string, steps int, args ...string) {
		t.Helper()
		args = append(args, "-device", device, "-out", dir, "-steps", strconv.Itoa(steps))
		output, exit := mpitest.Start(t, ranks, "allencahn", append(args, common...), gpu.options...).Wait()
		if exit != 0 {
			t.Fatalf("%d ranks on %s end with status %d:\n%s", ranks, device, exit, output)
		}
	}
	whole, err := parse(append(common, "-out", filepath.Join(t.TempDir(), "whole"), "-steps", "30"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	runRanks(t, 1, whole)
	parts := filepath.Join(t.TempDir(), "parts")
	job(2, gpu.first, parts, 11, "-px", "2", "-py", "1", "-pz", "1")
	job(3, "host", parts, 19, "-restart", "latest")
	job(1, gpu.second, parts, 30, "-restart", "latest")
	for _, increment := range []int64{8, 16, 24, 30} {
		mustBeEqual(t, filepath.Join(parts, publish.StepName(increment)), whole.bundle(increment))
	}
}

// A device that is lost under way ends the job with its error; what was saved before
// is good, and the run goes on from there without the device.
func TestLostDeviceEndsTheJobAndLeavesItsBundles(t *testing.T) {
	gpu := findGPUs(t)
	if gpu.loseAtStep == nil {
		t.Skip("this test is for the fake driver: no other device is lost when it is told to")
	}
	set := small(t)
	args := []string{"-nx", "8", "-ny", "7", "-nz", "6", "-start", "random", "-every", "2", "-steps", "10"}
	dir := set.saves.Checkpoint.Directory
	output, exit := mpitest.Start(t, 2, "allencahn", append(args, "-device", gpu.first, "-out", dir), append(gpu.options, gpu.loseAtStep(7))...).Wait()
	if exit == 0 || !strings.Contains(output, "device lost: illegal device address: CUDA_ERROR_ILLEGAL_ADDRESS") {
		t.Fatalf("status %d:\n%s", exit, output)
	}
	for i, restart := range []string{"", publish.Latest} {
		run, err := parse(append(args, "-out", []string{dir + " whole", dir}[i], "-restart", restart), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		runRanks(t, 3, run)
	}
	for _, increment := range []int64{2, 4, 6, 8, 10} {
		name := publish.StepName(increment)
		mustBeEqual(t, filepath.Join(dir, name), filepath.Join(dir+" whole", name))
	}
}

func TestSignalSavesAndStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	j := mpitest.Start(t, 2, "allencahn", []string{"-nx", "8", "-ny", "8", "-nz", "8", "-device", "emulated",
		"-steps", "1000000000", "-out", dir, "-every", "0", "-on-signal", "SIGTERM"})
	j.WaitFor("cells on", 1) // of the line that rank 0 begins with
	j.Signal(1, syscall.SIGTERM)
	output, exit := j.Wait()
	if exit != 0 || !strings.Contains(output, "stopped at step") {
		t.Fatalf("status %d:\n%s", exit, output)
	}
	bundles, err := os.ReadDir(dir)
	if err != nil || len(bundles) != 1 {
		t.Fatalf("%d bundles, %v:\n%s", len(bundles), err, output)
	}
	if last := filepath.Join(dir, bundles[0].Name()); !strings.Contains(output, "the last bundle is "+last+"\n") {
		t.Errorf("output doesn't name %s:\n%s", last, output)
	}
}

func TestJobWithoutItsDeviceEnds(t *testing.T) {
	output, exit := mpitest.Command(t, 3, "allencahn", "-device", "emulated:99")
	if exit == 0 || !strings.Contains(output, `rank 0: -device emulated:99: open device "emulated:99": unavailable`) {
		t.Errorf("status %d:\n%s", exit, output)
	}
}
