package brick_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/minio/crc64nvme"
	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/brick/bricktest"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// onDrivers runs the body on ranks for each driver, and for each library that
// the driver can use.
func onDrivers(t *testing.T, drivers []brick.Driver, ranks []int, body func(t *mpitest.T, c *comm.Comm, d brick.Driver)) {
	for _, d := range drivers {
		components := mpitest.Components()
		if d != brick.MPIIO {
			components = components[:1] // none of them is used
		}
		for _, component := range components {
			t.Run(fmt.Sprintf("%s-%s", d, component.Name), func(t *testing.T) {
				mpitest.Run(t, ranks, func(t *mpitest.T, c *comm.Comm) { body(t, c, d) }, component.Options...)
			})
		}
	}
}

func TestDriversConform(t *testing.T) {
	for _, d := range drivers() {
		ranks := []int{1, 2, 3, 4}
		if d == brick.POSIX && mpi.Enabled {
			ranks = []int{3} // the others without MPI
		}
		onDrivers(t, []brick.Driver{d}, ranks, conform)
	}
}

func conform(t *mpitest.T, c *comm.Comm, d brick.Driver) {
	cfg := bricktest.Config{Options: []brick.Option{brick.Using(d)}, Dir: filepath.Join(t.TempDir(), "d"), Layouts: 100}
	if mpi.Enabled {
		cfg.Layouts = 25
	}
	if d == brick.MPIIO && slow(c) {
		cfg.Layouts, cfg.Few = 5, true
	}
	cfg.Full, cfg.FullBytes = smallDisk(t, c, t.TempDir(), "tmpfs")
	makeDir(t, c, cfg.Dir)
	bricktest.Run(t, c, cfg)
	stillOpen(t, cfg.Dir)
}

// slow says that a blocking collective takes tens of milliseconds, as it does in
// MPICH with more ranks than cores.
func slow(c *comm.Comm) bool {
	return strings.HasPrefix(mpi.Implementation(), "mpich") && c.Size() > runtime.NumCPU()
}

// More ranks than planes, rows or cores.
func TestDriversConformOnSevenRanks(t *testing.T) {
	onDrivers(t, drivers()[:1], []int{7}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		dir := filepath.Join(t.TempDir(), "d")
		makeDir(t, c, dir)
		cfg := bricktest.Config{Options: []brick.Option{brick.Using(d)}, Dir: dir, Layouts: 10}
		if d == brick.MPIIO && slow(c) {
			cfg.Layouts = 3
		}
		bricktest.Layouts(t, c, cfg)
	})
}

// In memory, space for the full disk can be had anywhere.
func TestPOSIXConformsInMemory(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("ranks=%d", ranks), func(t *testing.T) {
			m := vfs.NewMem()
			small := vfs.NewMem(vfs.Capacity(2 << 20))
			for _, fsys := range []*vfs.Mem{m, small} {
				if err := fsys.Mkdir("/d", 0o777); err != nil {
					t.Fatal(err)
				}
			}
			err := comm.Run(ranks, func(c *comm.Comm) error {
				bricktest.Run(t, c, bricktest.Config{Options: []brick.Option{brick.Filesystem(m)}, FS: m, Dir: "/d"})
				bricktest.Run(t, c, bricktest.Config{Options: []brick.Option{brick.Filesystem(small)}, FS: small, Dir: "/d",
					Full: "/d", FullBytes: 2 << 20, Layouts: 1})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func makeDir(t *mpitest.T, c *comm.Comm, dir string) {
	t.Helper()
	var err error
	if c.Rank() == 0 {
		err = os.Mkdir(dir, 0o777)
	}
	if err := c.Agree(t.Context(), err); err != nil {
		t.Fatal(err)
	}
}

// smallDisk mounts a filesystem with room for bytes, for the length of the test:
// "tmpfs" and "ramfs" in memory, "ext2" in a file. Only root can, and not
// everywhere; then dir is "".
func smallDisk(t *mpitest.T, c *comm.Comm, parent, kind string) (dir string, bytes int64) {
	t.Helper()
	dir = filepath.Join(parent, kind)
	makeDir(t, c, dir)
	var err error
	if c.Rank() == 0 {
		err = mount(dir, kind)
	}
	if err := c.Agree(t.Context(), err); err != nil {
		t.Logf("no %s of a limited size here: %v", kind, err)
		return "", 0
	}
	if c.Rank() == 0 {
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	return dir, 2 << 20
}

func mount(dir, kind string) error {
	if kind != "ext2" {
		return unix.Mount(kind, dir, kind, 0, "size=2m")
	}
	image := dir + ".img"
	if err := os.WriteFile(image, make([]byte, 2<<20), 0o666); err != nil {
		return err
	}
	for _, args := range [][]string{{"mke2fs", "-q", "-F", "-t", "ext2", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// stillOpen looks for descriptors that a driver forgot.
func stillOpen(t *mpitest.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, dir+"/") {
			t.Errorf("still open: %s", target)
		}
	}
}

// Shares of several chunks per rank, and a last chunk that is not whole.
func TestChecksumsOfLargeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	data := make([]byte, 5<<20+3)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	want := crc64nvme.Checksum(data)
	for ranks := 1; ranks <= 8; ranks++ {
		err := comm.Run(ranks, func(c *comm.Comm) error {
			got, err := brick.Checksums(t.Context(), c, vfs.OS, []string{path, path}, int64(len(data)))
			if err == nil && !slices.Equal(got, []brick.Sum{{CRC: want}, {CRC: want}}) {
				err = fmt.Errorf("sums are %x, want %x", got, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Something that is no regular file is an error, not a wait for its other end.
func TestAFIFOIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	c := comm.Self()
	p, err := brick.NewPlan(t.Context(), c, [3]int{1, 1, 1}, grid.Box{Size: [3]int{1, 1, 1}}, brick.Float64)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, werr := p.Write(t.Context(), []brick.WriteJob{{Name: "it", Path: path, Source: make(cells, 1)}})
	_, rerr := p.Read(t.Context(), []brick.ReadJob{{Name: "it", Path: path, Sink: brick.SinkFunc(func([]byte, int64) error { return nil })}})
	_, cerr := brick.Checksums(t.Context(), c, vfs.OS, []string{path}, 8)
	if !errors.Is(werr, syscall.ENXIO) { // nobody reads
		t.Errorf("write: %v", werr)
	}
	for _, err := range []error{rerr, cerr} {
		if !strings.Contains(fmt.Sprint(err), vfs.ErrNotRegular.Error()) {
			t.Errorf("read: %v", err)
		}
	}
	_, werr = p.Write(t.Context(), []brick.WriteJob{{Name: "it", Path: os.DevNull, Source: make(cells, 1)}})
	if !strings.Contains(fmt.Sprint(werr), vfs.ErrNotRegular.Error()) {
		t.Errorf("write to a device: %v", werr)
	}
}
