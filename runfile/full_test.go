//go:build hdf5 && linux

package runfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// apart is set in the process that runs a test of a disk that fills up: the library may
// keep objects that it could not write.
const apart = "FIELDSTONE_RUNFILE_FULL"

func inProcess(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(apart) != "" {
		test(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), apart+"=1")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v: %s", err, out)
	}
}

// A limit on the size of files stands for a full disk where nothing can be mounted:
// writes fail with EFBIG in place of ENOSPC.
func TestALimitOnFilesLeavesTheOldOnes(t *testing.T) {
	inProcess(t, func(t *testing.T) {
		dir := t.TempDir()
		fillUp(t, dir, syscall.EFBIG, func() {
			signal.Ignore(syscall.SIGXFSZ)
			limit := unix.Rlimit{Cur: 200 << 10, Max: unix.RLIM_INFINITY}
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestAFullDiskLeavesTheOldFiles(t *testing.T) {
	inProcess(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=400k"); err != nil {
			t.Skip("a small filesystem needs root; the limit on file sizes is tested instead:", err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		fillUp(t, dir, syscall.ENOSPC, func() {})
	})
}

// fillUp writes small files, and then ones for which there is no room.
func fillUp(t *testing.T, dir string, want syscall.Errno, limit func()) {
	segment := SegmentFile(dir, "run", 1)
	write := func(cells, states int) (output, checkpoint error) {
		s := &Solution{Layout: Layout{R: []float64{0, 1}, Unknowns: []Unknown{{Name: "n", Kind: Radial, Components: cells}}}}
		for i := range states {
			s.Times, s.States = append(s.Times, float64(i)), append(s.States, slices.Repeat([]float64{float64(i)}, cells))
		}
		output = WriteOutput(t.Context(), segment, s, Atomic())
		k := &Checkpoint{Layout: s.Layout, Time: float64(states), State: s.States[states-1]}
		return output, WriteCheckpoint(t.Context(), dir, "run", k)
	}
	for states := 1; states <= 2; states++ {
		if output, checkpoint := write(1, states); output != nil || checkpoint != nil {
			t.Fatal(output, checkpoint)
		}
	}
	limit()
	output, checkpoint := write(1<<16, 2)
	for _, err := range []error{output, checkpoint} {
		if !errors.Is(err, want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("no room: %v", err)
		}
		// What HDF5 says of it is said once.
		if text := fmt.Sprint(err); strings.Contains(text, "\n") || strings.Count(text, want.Error()) > 1 {
			t.Errorf("no room, said twice: %s", text)
		}
	}
	s, err := ReadOutput(t.Context(), []string{segment}, noWarnings(t))
	if err != nil || len(s.Times) != 2 || len(s.States[0]) != 1 {
		t.Errorf("the segment is %+v, %v", s, err)
	}
	if last, previous, read := checkpointTimes(t, dir); last != 2 || previous != 1 || read != 2 {
		t.Errorf("the last checkpoint is of %v, the previous of %v, read is %v", last, previous, read)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil || left != nil {
		t.Errorf("what is left: %v, %v", left, err)
	}
	// There is room again for what is small.
	if output, checkpoint := write(1, 3); output != nil || checkpoint != nil {
		t.Error(output, checkpoint)
	}
}
