package brick_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// drivers are those that work on the communicators of this build.
func drivers() []brick.Driver {
	if mpi.Enabled {
		return []brick.Driver{brick.MPIIO, brick.POSIX}
	}
	return []brick.Driver{brick.POSIX}
}

// yield makes Open MPI's blocking calls give their core away, as it does by itself
// only where it knows of more ranks than cores: other tests want it.
var yield = mpitest.Env("OMPI_MCA_mpi_yield_when_idle=1")

// onDrivers runs the body on ranks for each driver, and for each library that
// the driver can use.
func onDrivers(t *testing.T, drivers []brick.Driver, ranks []int, body func(t *mpitest.T, c *comm.Comm, d brick.Driver)) {
	for _, d := range drivers {
		components := mpitest.Components()
		if d == brick.POSIX {
			components = components[:1] // none of them is used
		}
		for _, component := range components {
			t.Run(fmt.Sprintf("%s-%s", d, component.Name), func(t *testing.T) {
				mpitest.Run(t, ranks, func(t *mpitest.T, c *comm.Comm) { body(t, c, d) }, append(component.Options, yield)...)
			})
		}
	}
}

func TestDriversConform(t *testing.T) {
	onDrivers(t, drivers(), []int{1, 2, 3, 4}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		cfg := bricktest.Config{Options: []brick.Option{brick.Using(d)}, Dir: filepath.Join(t.TempDir(), "d"), Layouts: 100}
		if mpi.Enabled {
			cfg.Layouts = 25
		}
		if d == brick.MPIIO && slow(c) {
			cfg.Layouts, cfg.Few = 5, true
		}
		cfg.Full, cfg.FullBytes = smallDisk(t, c, "tmpfs")
		makeDir(t, c, cfg.Dir)
		bricktest.Run(t, c, cfg)
		stillOpen(t, cfg.Dir)
	})
}

// slow says that a blocking collective takes tens of milliseconds, as it does in
// MPICH with more ranks than cores.
func slow(c *comm.Comm) bool {
	return strings.HasPrefix(mpi.Implementation(), "mpich") && c.Size() > runtime.NumCPU()
}

// More ranks than planes, rows or cores.
func TestDriversConformOnSevenRanks(t *testing.T) {
	onDrivers(t, drivers(), []int{7}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
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
func smallDisk(t *mpitest.T, c *comm.Comm, kind string) (dir string, bytes int64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), kind)
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

// records is a log handler that keeps the attributes of the last record of each
// message.
type records struct {
	slog.Handler
	mu   sync.Mutex
	last map[string]map[string]slog.Value
}

func newRecords() *records {
	return &records{Handler: slog.DiscardHandler, last: make(map[string]map[string]slog.Value)}
}

func (h *records) Enabled(context.Context, slog.Level) bool { return true }

func (h *records) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	attrs := make(map[string]slog.Value)
	r.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value; return true })
	h.last[r.Message] = attrs
	return nil
}

// slab cuts two planes for each rank.
func slab(c *comm.Comm) (size [3]int, box grid.Box) {
	return [3]int{3, 2, 2 * c.Size()}, grid.Box{Low: [3]int{0, 0, 2 * c.Rank()}, Size: [3]int{3, 2, 2}}
}

// What the choice of driver is without a word from the user.
func TestAutoTakesMPIIOForSeveralRanksOfMPI(t *testing.T) {
	mpitest.Run(t, []int{1, 2}, func(t *mpitest.T, c *comm.Comm) {
		log := newRecords()
		size, box := slab(c)
		p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, brick.Logger(slog.New(log)))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		want, why := brick.POSIX, "the ranks share a process"
		switch {
		case c.Size() == 1:
			why = "one rank"
		case mpi.Enabled:
			want, why = brick.MPIIO, "2 ranks of MPI"
		}
		if d, w := p.Driver(); d != want || w != why {
			t.Errorf("driver is %s: %s; want %s: %s", d, w, want, why)
		}
		if got := log.last["brick plan"]["why"].String(); got != why {
			t.Errorf("logged reason is %q, want %q", got, why)
		}
	})
}

// Ranks with different working directories see different files under one relative
// path: an error, where some implementations of MPI_File_open wait for ever.
func TestAPathThatIsBadOnOneRankOnly(t *testing.T) {
	if !mpi.Enabled {
		// Ranks that are goroutines share the working directory: there the
		// faults of one rank's filesystem stand for this.
		return
	}
	onDrivers(t, drivers(), []int{2, 3}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		for _, bad := range []int{0, c.Size() - 1} {
			here := filepath.Join(t.TempDir(), fmt.Sprint("here", bad))
			makeDir(t, c, here)
			makeDir(t, c, filepath.Join(here, "other"))
			makeDir(t, c, filepath.Join(here, "sub"))
			size, box := slab(c)
			p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, brick.Using(d))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chdir(here); err != nil {
				t.Fatal(err)
			}
			write := func() error {
				_, err := p.Write(t.Context(), []brick.WriteJob{{Name: `field "a"`, Path: "sub/a.bin", Source: make(cells, 12)}})
				return err
			}
			read := func() error {
				_, err := p.Read(t.Context(), []brick.ReadJob{{Name: `field "a"`, Path: "sub/a.bin",
					Sink: func(src []byte, first int64) error { return nil }}})
				return err
			}
			if err := errors.Join(write(), read()); err != nil {
				t.Fatal(err)
			}
			if c.Rank() == bad {
				if err := os.Chdir("other"); err != nil {
					t.Fatal(err)
				}
			}
			want := fmt.Sprintf(`rank %d: write field "a": open: no such file or directory`, bad)
			if err := write(); fmt.Sprint(err) != want || !errors.Is(err, syscall.ENOENT) {
				t.Errorf("error is %v, want %s", err, want)
			}
			want = strings.Replace(want, "write", "read", 1)
			if bad == 0 {
				want = strings.Replace(want, "open", "stat", 1)
			}
			if err := read(); fmt.Sprint(err) != want || !errors.Is(err, syscall.ENOENT) {
				t.Errorf("error is %v, want %s", err, want)
			}
			if err := os.Chdir(here); err != nil {
				t.Fatal(err)
			}
			if err := c.Meet(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(write(), read()); err != nil {
				t.Errorf("after that: %v", err)
			}
			p.Close()
			stillOpen(t, here)
		}
	})
}

// many makes jobs of one call; the sources of one rank may be others.
func many(dir string, n int) []brick.WriteJob {
	jobs := make([]brick.WriteJob, n)
	for i := range jobs {
		jobs[i] = brick.WriteJob{Name: fmt.Sprintf("field %d", i), Path: filepath.Join(dir, fmt.Sprintf("%d.bin", i)), Source: make(cells, 12)}
	}
	return jobs
}

// One rank may open fewer files than the others: some implementations of
// MPI_File_open wait for ever then.
func TestALackOfDescriptorsOnOneRank(t *testing.T) {
	if !mpi.Enabled {
		return // the ranks share the process, and its limit is that of all tests
	}
	// The posix driver has one file open at a time.
	onDrivers(t, []brick.Driver{brick.MPIIO}, []int{2}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		size, box := slab(c)
		p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, brick.Using(d))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		write := func(n int) error {
			_, err := p.Write(t.Context(), many(t.TempDir(), n))
			return err
		}
		if err := write(1); err != nil { // the library has now opened what it needs for itself
			t.Fatal(err)
		}
		if c.Rank() == 1 {
			open, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			limit := uint64(len(open) + 30)
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(60); !errors.Is(err, syscall.EMFILE) || !strings.HasPrefix(fmt.Sprint(err), "rank 1: write field ") {
			t.Errorf("error is %v", err)
		}
		if err := write(10); err != nil {
			t.Errorf("after that: %v", err)
		}
		stillOpen(t, t.TempDir())
	})
}

// After a failure among the first files those of the next batch are closed again,
// on all ranks.
func TestAFailureInAnEarlierBatch(t *testing.T) {
	onDrivers(t, drivers(), []int{2}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		size, box := slab(c)
		p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, brick.Using(d))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		jobs := many(t.TempDir(), 130)
		if c.Rank() == 1 {
			jobs[3].Source = broken{}
		}
		_, err = p.Write(t.Context(), jobs)
		if want := "rank 1: write field 3: out of order"; fmt.Sprint(err) != want {
			t.Errorf("error is %v, want %s", err, want)
		}
		if err := c.Meet(t.Context()); err != nil {
			t.Fatal(err)
		}
		stillOpen(t, t.TempDir())
	})
}

type broken struct{}

func (broken) ReadCells(dst []byte, first int64) error { return errors.New("out of order") }

// Hints reach the library: those that it knows are in force, and a hint that it
// can't take is an error on all ranks.
func TestHintsReachTheLibrary(t *testing.T) {
	if !mpi.Enabled {
		return // the posix driver takes hints and needs none: TestDriversConform
	}
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) {
			mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
				log := newRecords()
				size, box := slab(c)
				write := func(hints map[string]string) error {
					p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, brick.Using(brick.MPIIO),
						brick.Hints(hints), brick.Logger(slog.New(log)))
					if err != nil {
						return err
					}
					defer p.Close()
					_, err = p.Write(t.Context(), []brick.WriteJob{{Name: `field "a"`,
						Path: filepath.Join(t.TempDir(), "a.bin"), Source: make(cells, 12)}})
					return err
				}
				if err := write(map[string]string{"cb_buffer_size": "1048576", "no_such_hint": "1"}); err != nil {
					t.Error(err)
				}
				if c.Rank() == 0 {
					force, _ := log.last["brick hints"]["in_force"].Any().(map[string]string)
					if force["cb_buffer_size"] != "1048576" {
						t.Errorf("hints in force are %v", force)
					}
				}
				long := strings.Repeat("k", 255)
				err := write(map[string]string{long: "1"})
				if want := `rank 0: write field "a": hint "` + long; !strings.HasPrefix(fmt.Sprint(err), want) {
					t.Errorf("error is %v, want %s", err, want)
				}
				stillOpen(t, t.TempDir())
			}, component.Options...)
		})
	}
}

// A filesystem that can't promise space makes MPI-IO read its files again; the
// posix driver sees every error where it happens.
func TestFilesAreReadBackWhereSpaceIsNotPromised(t *testing.T) {
	onDrivers(t, drivers(), []int{2}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		calls := func(dir string) int64 {
			log := newRecords()
			size, box := slab(c)
			p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, brick.Using(d), brick.Logger(slog.New(log)))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if _, err := p.Write(t.Context(), []brick.WriteJob{{Path: filepath.Join(dir, "a.bin"), Source: make(cells, 12)}}); err != nil {
				t.Fatal(err)
			}
			return log.last["brick write"]["collectives"].Int64()
		}
		tmpfs, bytes := smallDisk(t, c, "tmpfs")
		if bytes == 0 {
			return
		}
		ramfs, _ := smallDisk(t, c, "ramfs")
		more := int64(0)
		if d == brick.MPIIO {
			more = 2
		}
		if promised, not := calls(tmpfs), calls(ramfs); not != promised+more {
			t.Errorf("%d collective calls on tmpfs, %d on ramfs: want %d more", promised, not, more)
		}
	})
}

// ext2 promises no space, and MPI-IO says of a full disk that something went wrong,
// or that nothing did: still all ranks get ENOSPC.
func TestAFullDiskThatPromisesNothing(t *testing.T) {
	onDrivers(t, drivers(), []int{1, 3}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		dir, bytes := smallDisk(t, c, "ext2")
		if dir == "" {
			return
		}
		planes := int(bytes) / 8 / c.Size()
		box := grid.Box{Low: [3]int{0, 0, planes * c.Rank()}, Size: [3]int{2, 1, planes}}
		for _, staging := range []int64{16 << 10, 32 << 20} {
			p, err := brick.NewPlan(t.Context(), c, [3]int{2, 1, planes * c.Size()}, box, brick.Float64,
				brick.Using(d), brick.Staging(staging))
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Write(t.Context(), []brick.WriteJob{{Name: `field "a"`, Path: filepath.Join(dir, "a.bin"), Source: ones{}}})
			p.Close()
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(fmt.Sprint(err), `field "a": `) {
				t.Errorf("staging %d: error is %v", staging, err)
			}
		}
	})
}

// ones is a source that is no hole.
type ones struct{}

func (ones) ReadCells(dst []byte, first int64) error {
	for i := range dst {
		dst[i] = 1
	}
	return nil
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
			if err == nil && !slices.Equal(got, []uint64{want, want}) {
				err = fmt.Errorf("checksums are %x, want %x", got, want)
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
	_, rerr := p.Read(t.Context(), []brick.ReadJob{{Name: "it", Path: path, Sink: func([]byte, int64) error { return nil }}})
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
