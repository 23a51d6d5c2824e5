//go:build hdf5 && linux

package h5_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// apart is set in the process that runs a test of a disk that fills up: the library
// may keep objects that it could not write.
const apart = "FIELDSTONE_H5_FULL"

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
func TestAFailedWriteIsKept(t *testing.T) {
	inProcess(t, func(t *testing.T) {
		signal.Ignore(syscall.SIGXFSZ)
		limit := unix.Rlimit{Cur: 256 << 10, Max: unix.RLIM_INFINITY}
		must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		fill(t, t.TempDir(), syscall.EFBIG)
	})
}

func TestAFullDiskIsKept(t *testing.T) {
	inProcess(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
			t.Skip("a small filesystem needs root; the limit on file sizes is tested instead:", err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		fill(t, dir, syscall.ENOSPC)
		var after unix.Statfs_t
		must(t, unix.Statfs(dir, &after))
		if after.Bfree != after.Blocks {
			t.Errorf("%d of %d blocks are still in use", after.Blocks-after.Bfree, after.Blocks)
		}
	})
}

// fill writes files of many parts and of one until it can't, and then some.
func fill(t *testing.T, dir string, want syscall.Errno) {
	parts := func(f *h5.File) error {
		if err := h5.CreateDataset[float64](f, "x", h5.Layout{Shape: []int{0, 1000}, Chunk: []int{1, 1000}, Extendible: true}); err != nil {
			return err
		}
		for n := range 100 {
			if err := f.Extend("x", n+1); err != nil {
				return err
			}
			if err := h5.WriteSlab(f, "x", make([]float64, 1000), []int{n, 0}, []int{1, 1000}); err != nil {
				return err
			}
		}
		return nil
	}
	small := func(f *h5.File) error {
		for n := range 4000 {
			if err := h5.Write(f, "a/"+strings.Repeat("n", 100)+string(rune('a'+n%26))+string(rune('a'+n/26%26))+string(rune('a'+n/676)), []float64{1}); err != nil {
				return err
			}
		}
		return nil
	}
	list := func(f *h5.File) error {
		if err := f.CreateStrings("x", nil); err != nil {
			return err
		}
		for range 500 {
			// The library keeps text until then.
			err := errors.Join(f.AppendStrings("x", []string{strings.Repeat("s", 1000)}), f.Flush())
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, write := range map[string]func(*h5.File) error{
		"parts": parts,
		"small": small,
		"list":  list,
		"one":   func(f *h5.File) error { return h5.Write(f, "x", make([]float64, 1<<17), 1<<17) },
		"early": func(f *h5.File) error {
			return h5.CreateDataset[float64](f, "x", h5.Layout{Shape: []int{1 << 17}, Early: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := h5.Create(filepath.Join(dir, "f.h5"))
			must(t, err)
			err = write(f)
			synced := f.Sync()
			closed := f.Close()
			must(t, os.Remove(f.Name()))
			t.Logf("write: %v\nsync: %v\nclose: %v", err, synced, closed)
			// What is reserved but not written takes nothing of a sparse file.
			if name == "early" {
				if want == syscall.EFBIG {
					err = synced
				} else {
					return
				}
			}
			for call, err := range map[string]error{"write": err, "sync": synced, "close": closed} {
				if !errors.Is(err, want) {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}
