package brick_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// scenario is something that two ranks go through with a driver.
type scenario struct {
	name string
	run  func(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string)

	// processes: it changes what a whole process has, so each rank must be one.
	// Where they are goroutines, faults of one rank's filesystem stand for it.
	processes bool

	mpiio bool // it is about MPI-IO only
}

// All scenarios share one launch, since that takes longer than most of them.
var scenarios = []scenario{
	{name: "the driver is chosen by the communicator", run: choice},
	{name: "many strided rounds", run: stridedRounds},
	{name: "hints reach the library", run: hintsInForce, mpiio: true},
	{name: "files are read back where space is not promised", run: readBackOnRamfs},
	{name: "a full disk that promises nothing", run: fullExt2},
	{name: "parts beyond 4 GiB", run: farParts},
	{name: "a failure in one of many files", run: oneOfMany},
	{name: "a path that is bad on rank 0 only", run: badPath(0), processes: true},
	{name: "a path that is bad on rank 1 only", run: badPath(1), processes: true},
	{name: "working directories that differ", run: workingDirectories, processes: true},
	{name: "a lack of descriptors on one rank", run: noDescriptors, processes: true, mpiio: true},
}

func TestScenariosOnTwoRanks(t *testing.T) {
	onDrivers(t, drivers(), []int{2}, func(t *mpitest.T, c *comm.Comm, d brick.Driver) {
		for i, s := range scenarios {
			if s.processes && !mpi.Enabled || s.mpiio && d != brick.MPIIO {
				continue
			}
			if c.Rank() == 0 {
				t.Logf("scenario: %s", s.name)
			}
			dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
			makeDir(t, c, dir)
			s.run(t, c, d, dir)
			if err := c.Meet(t.Context()); err != nil {
				t.Fatal(err)
			}
			stillOpen(t, dir)
		}
	})
}

// slab cuts two planes for each rank.
func slab(c *comm.Comm) (size [3]int, box grid.Box) {
	return [3]int{3, 2, 2 * c.Size()}, grid.Box{Low: [3]int{0, 0, 2 * c.Rank()}, Size: [3]int{3, 2, 2}}
}

func slabPlan(t *mpitest.T, c *comm.Comm, opts ...brick.Option) *brick.Plan {
	t.Helper()
	size, box := slab(c)
	p, err := brick.NewPlan(t.Context(), c, size, box, brick.Float64, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// slabs makes jobs of one call.
func slabs(dir string, n int) []brick.WriteJob {
	jobs := make([]brick.WriteJob, n)
	for i := range jobs {
		jobs[i] = brick.WriteJob{Name: fmt.Sprintf("field %d", i), Path: filepath.Join(dir, fmt.Sprintf("%d.bin", i)), Source: make(cells, 12)}
	}
	return jobs
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

// What is taken without a word from the user.
func choice(t *mpitest.T, c *comm.Comm, _ brick.Driver, _ string) {
	log := newRecords()
	p := slabPlan(t, c, brick.Logger(slog.New(log)))
	defer p.Close()
	want, why := brick.Node, "2 ranks on one node"
	if d, w := p.Driver(); d != want || w != why {
		t.Errorf("driver is %s: %s; want %s: %s", d, w, want, why)
	}
	if got := log.last["brick plan"]["why"].String(); got != why {
		t.Errorf("logged reason is %q, want %q", got, why)
	}
}

// Those that the library knows are in force, and a hint that it can't take is an
// error on all ranks.
func hintsInForce(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	log := newRecords()
	write := func(hints map[string]string) error {
		p := slabPlan(t, c, brick.Using(d), brick.Hints(hints), brick.Logger(slog.New(log)))
		defer p.Close()
		_, err := p.Write(t.Context(), slabs(dir, 1))
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
	if want := `rank 0: write field 0: hint "` + long; !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("error is %v, want %s", err, want)
	}
}

// MPI-IO reads its files again; the posix driver sees every error where it
// happens.
func readBackOnRamfs(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	calls := func(dir string) int64 {
		log := newRecords()
		p := slabPlan(t, c, brick.Using(d), brick.Logger(slog.New(log)))
		defer p.Close()
		if _, err := p.Write(t.Context(), slabs(dir, 1)); err != nil {
			t.Fatal(err)
		}
		return log.last["brick write"]["collectives"].Int64()
	}
	tmpfs, _ := smallDisk(t, c, dir, "tmpfs")
	ramfs, _ := smallDisk(t, c, dir, "ramfs")
	if tmpfs == "" || ramfs == "" {
		return
	}
	more := int64(0)
	if d == brick.MPIIO {
		more = 2
	}
	if promised, not := calls(tmpfs), calls(ramfs); not != promised+more {
		t.Errorf("%d collective calls on tmpfs, %d on ramfs: want %d more", promised, not, more)
	}
}

// ext2 promises no space, and MPI-IO says of a full disk that something went wrong,
// or that nothing did: still all ranks get ENOSPC.
func fullExt2(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	disk, bytes := smallDisk(t, c, dir, "ext2")
	if disk == "" {
		return
	}
	planes := int(bytes) / 8 / c.Size()
	box := grid.Box{Low: [3]int{0, 0, planes * c.Rank()}, Size: [3]int{2, 1, planes}}
	path := filepath.Join(disk, "a.bin")
	for _, staging := range []int64{16 << 10, 32 << 20} {
		p, err := brick.NewPlan(t.Context(), c, [3]int{2, 1, planes * c.Size()}, box, brick.Float64, brick.Using(d), brick.Staging(staging))
		if err != nil {
			t.Fatal(err)
		}
		for _, within := range []bool{false, true} { // the second one takes the file that the first one leaves
			_, err = p.Write(t.Context(), []brick.WriteJob{{Name: `field "a"`, Path: path, Source: ones{}, Within: within}})
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(fmt.Sprint(err), `field "a": `) {
				t.Errorf("staging %d, part %t: error is %v", staging, within, err)
			}
		}
		p.Close()
	}
}

// ones is a source that is no hole.
type ones struct{}

func (ones) ReadCells(dst []byte, first int64) error {
	for i := range dst {
		dst[i] = 1
	}
	return nil
}

func oneOfMany(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	p := slabPlan(t, c, brick.Using(d))
	defer p.Close()
	jobs := slabs(dir, 130)
	if c.Rank() == 1 {
		jobs[3].Source = broken{}
	}
	_, err := p.Write(t.Context(), jobs)
	if want := "rank 1: write field 3: out of order"; fmt.Sprint(err) != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

type broken struct{}

func (broken) ReadCells(dst []byte, first int64) error { return errors.New("out of order") }

// elsewhere leads to another directory in each process, as a path does that is local to
// a node: a relative path doesn't.
const elsewhere = "/proc/self/cwd/"

// Ranks that see different files under one path: an error, where some implementations of
// MPI_File_open wait for ever.
func badPath(bad int) func(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	return func(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
		for _, sub := range []string{"sub", "other"} {
			makeDir(t, c, filepath.Join(dir, sub))
		}
		chdir := func(to string) {
			if err := os.Chdir(to); err != nil {
				t.Fatal(err)
			}
		}
		p := slabPlan(t, c, brick.Using(d))
		defer p.Close()
		chdir(dir)
		defer chdir(t.TempDir())
		write := func() error {
			_, err := p.Write(t.Context(), slabs(elsewhere+"sub", 2))
			return err
		}
		read := func() error {
			_, err := p.Read(t.Context(), []brick.ReadJob{{Name: "field 0", Path: elsewhere + "sub/0.bin",
				Sink: brick.SinkFunc(func(src []byte, first int64) error { return nil })}})
			return err
		}
		fails := func(err error, op, call string) {
			// A driver decides with which of the fields a rank begins.
			want := fmt.Sprintf(`^rank %d: %s field [01]: %s: no such file or directory$`, bad, op, call)
			if !regexp.MustCompile(want).MatchString(fmt.Sprint(err)) || !errors.Is(err, syscall.ENOENT) {
				t.Errorf("error is %v, want %s", err, want)
			}
		}
		if err := errors.Join(write(), read()); err != nil {
			t.Fatal(err)
		}
		if c.Rank() == bad {
			chdir("other")
		}
		fails(write(), "write", "open")
		if d == brick.Node && bad != 0 {
			// So small a file is read by one rank for both: whichever takes it first.
			if err := read(); err != nil {
				fails(err, "read", "open")
			}
		} else {
			fails(read(), "read", map[bool]string{true: "stat", false: "open"}[bad == 0])
		}
		chdir(dir)
		if err := c.Meet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(write(), read()); err != nil {
			t.Errorf("after that: %v", err)
		}
	}
}

// A relative path is relative to rank 0's working directory, on all ranks.
func workingDirectories(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	own := filepath.Join(dir, fmt.Sprint("cwd", c.Rank()))
	if err := os.MkdirAll(filepath.Join(own, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(own); err != nil {
		t.Fatal(err)
	}
	defer os.Chdir(t.TempDir())
	p := slabPlan(t, c, brick.Using(d))
	defer p.Close()
	jobs := slabs("sub", 2)
	paths := []string{jobs[0].Path, jobs[1].Path}
	wrote, err := p.Write(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	if jobs[0].Path != paths[0] {
		t.Errorf("the caller's path is %s now", jobs[0].Path)
	}
	reads := make([]brick.ReadJob, 2)
	for i := range reads {
		reads[i] = brick.ReadJob{Path: paths[i], Sink: brick.SinkFunc(func([]byte, int64) error { return nil })}
	}
	read, err := p.Read(t.Context(), reads)
	same := func(s brick.Sum, crc uint64) bool { return s.CRC == crc }
	if err != nil || !slices.EqualFunc(wrote, read, same) {
		t.Errorf("read %x, %v: wrote %x", read, err, wrote)
	}
	sums, err := brick.Checksums(t.Context(), c, vfs.OS, paths, p.FileSize())
	if err != nil || !slices.Equal(sums, wrote) {
		t.Errorf("checksums %x, %v: wrote %x", sums, err, wrote)
	}
	if err := brick.Durable(t.Context(), c, vfs.OS, paths); err != nil {
		t.Error(err)
	}
	there, err := os.ReadDir("sub")
	if err != nil || len(there) != map[bool]int{true: 2, false: 0}[c.Rank() == 0] {
		t.Errorf("rank %d has %v, %v", c.Rank(), there, err)
	}
}

// One rank can open no file any more: some implementations of a collective MPI_File_open
// wait for ever then.
func noDescriptors(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	p := slabPlan(t, c, brick.Using(d))
	defer p.Close()
	write := func() error {
		_, err := p.Write(t.Context(), slabs(dir, 3))
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if c.Rank() == 1 {
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		// What is open stays so.
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
	}
	err := write()
	if c.Rank() == 1 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, syscall.EMFILE) || !strings.HasPrefix(fmt.Sprint(err), "rank 1: write field ") {
		t.Errorf("error is %v", err)
	}
	if err := write(); err != nil {
		t.Errorf("after that: %v", err)
	}
}
