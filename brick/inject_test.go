package brick_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Three ranks, each with faults of its own over one filesystem in memory, write
// two files, sync them, read them back, and read them.
const injectRanks = 3

type injected struct {
	mem   *vfs.Mem
	fs    [injectRanks]*vfs.Inject
	parts bool // of one file that is there, not two files
}

// The parts in that file, and what is in it.
const (
	injectedAt   = 377
	injectedNext = injectedAt + 2*injectRanks*2*2*8 + 3
)

func injectedFile() []byte { return bytes.Repeat([]byte{0xA5}, 2*injectedNext) }

func newInjected() *injected {
	in := &injected{mem: vfs.NewMem()}
	for r := range in.fs {
		in.fs[r] = vfs.NewInject(in.mem)
	}
	return in
}

// run gives the ranks' errors of the write and, if that went well, of the read.
func (in *injected) run(t *testing.T, opts ...brick.Option) (write, read []error) {
	t.Helper()
	write, read = make([]error, injectRanks), make([]error, injectRanks)
	pathA, pathB := "/a.bin", "/b.bin"
	var atA, atB int64
	if in.parts {
		pathA, pathB, atA, atB = "/parts.h5", "/parts.h5", injectedAt, injectedNext
		if err := vfs.WriteFile(in.mem, pathA, injectedFile(), 0o666, true); err != nil {
			t.Fatal(err)
		}
	}
	err := comm.Run(injectRanks, func(c *comm.Comm) error {
		r := c.Rank()
		box := grid.Box{Low: [3]int{2 * r, 0, 0}, Size: [3]int{2, 2, 2}}
		p, err := brick.NewPlan(t.Context(), c, [3]int{2 * injectRanks, 2, 2}, box, brick.Float64,
			append(opts, brick.Filesystem(in.fs[r]))...)
		if err != nil {
			return err
		}
		defer p.Close()
		_, write[r] = p.Write(t.Context(), []brick.WriteJob{
			{Name: `field "a"`, Path: pathA, Source: make(cells, 8), Within: in.parts, Offset: atA},
			{Name: `field "b"`, Path: pathB, Source: make(cells, 8), Within: in.parts, Offset: atB},
		})
		if write[r] != nil {
			return nil
		}
		sink := brick.SinkFunc(func(src []byte, first int64) error { return nil })
		_, read[r] = p.Read(t.Context(), []brick.ReadJob{
			{Name: `field "a"`, Path: pathA, Sink: sink, Within: in.parts, Offset: atA},
			{Name: `field "b"`, Path: pathB, Sink: sink, Within: in.parts, Offset: atB},
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return write, read
}

// around checks what lies outside of the parts.
func (in *injected) around() error {
	got, err := vfs.ReadFile(in.mem, "/parts.h5", 1<<20)
	if err != nil {
		return err
	}
	const size = injectedNext - 3 - injectedAt
	for _, at := range []int{injectedAt, injectedNext} {
		if len(got) >= at+size {
			copy(got[at:at+size], injectedFile())
		}
	}
	if !bytes.Equal(got, injectedFile()) {
		return fmt.Errorf("the file has changed around the parts: %x", got)
	}
	return nil
}

// leaks lists what is still open.
func (in *injected) leaks() []string {
	var list []string
	for r, fsys := range in.fs {
		open := make(map[string]int)
		lines := fsys.Trace()
		for i, op := range fsys.Ops() {
			failed := !strings.HasSuffix(lines[i], op.String())
			switch {
			case (op.Kind == vfs.OpOpen || op.Kind == vfs.OpCreate) && !failed:
				open[op.Name]++
			case op.Kind == vfs.OpClose:
				open[op.Name]--
			}
		}
		for name, n := range open {
			if n != 0 {
				list = append(list, fmt.Sprintf("rank %d: %s %+d", r, name, n))
			}
		}
	}
	return list
}

// same checks that all ranks have one error and returns it.
func same(errs []error) (error, error) {
	for r, err := range errs {
		if fmt.Sprint(err) != fmt.Sprint(errs[0]) {
			return nil, fmt.Errorf("rank 0 has %v, rank %d has %v", errs[0], r, err)
		}
	}
	return errs[0], nil
}

// In the window any rank may write and read any part of a file: here all of them have
// the fault.
func TestAFaultInTheWindowIsTheErrorOfAll(t *testing.T) {
	cases := []struct {
		name  string
		rule  vfs.Rule
		match func() func(vfs.Op) bool // makes the rule's Match, of each rank's own
		want  string                   // the whole error, but for the rank
		read  bool                     // of the read, not of the write
	}{
		{"create", vfs.Rule{Kinds: []vfs.Kind{vfs.OpCreate}, Pattern: "b.bin", Err: syscall.EROFS}, nil,
			`write field "b": create: read-only file system`, false},
		{"allocate: the disk is full", vfs.Rule{Kinds: []vfs.Kind{vfs.OpAllocate}, Pattern: "a.bin", Err: syscall.ENOSPC}, nil,
			`write field "a": allocate: no space left on device`, false},
		{"close after creating", vfs.Rule{Kinds: []vfs.Kind{vfs.OpClose}, Pattern: "a.bin", Times: 1, Err: syscall.EIO}, nil,
			`write field "a": close: input/output error`, false},
		{"open", vfs.Rule{Kinds: []vfs.Kind{vfs.OpOpen}, Pattern: "b.bin", Times: 1, Err: syscall.EACCES}, nil,
			// Who writes a file has it open already, unless it helps another rank.
			`sync field "b": open: permission denied or write field "b": open: permission denied`, false},
		{"write: quota", vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Pattern: "b.bin", Times: 1, Err: syscall.EDQUOT}, nil,
			`write field "b": writeat: disk quota exceeded`, false},
		{"short write", vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Pattern: "a.bin", Short: 5, Err: syscall.ENOSPC}, nil,
			`write field "a": writeat: no space left on device`, false},
		{"write and close", vfs.Rule{Pattern: "b.bin", Err: syscall.EIO}, closing(vfs.OpWriteAt, true),
			`write field "b": writeat: input/output error (then write field "b": close: input/output error)`, false},
		{"sync", vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync}, Pattern: "b.bin", Err: syscall.EIO}, nil,
			`sync field "b": input/output error`, false},
		{"size", vfs.Rule{Kinds: []vfs.Kind{vfs.OpStat}, Pattern: "b.bin", Err: syscall.ESTALE}, nil,
			`read field "b": stat: stale file handle`, true},
		{"read", vfs.Rule{Kinds: []vfs.Kind{vfs.OpReadAt}, Pattern: "b.bin", Err: syscall.EIO}, nil,
			`read field "b": readat: input/output error`, true},
		{"close after reading", vfs.Rule{Pattern: "a.bin", Err: syscall.EIO}, closing(vfs.OpReadAt, false),
			`read field "a": close: input/output error`, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := newInjected()
			for _, fsys := range in.fs {
				rule := tc.rule
				if tc.match != nil {
					rule.Match = tc.match()
				}
				if err := fsys.Fail(rule); err != nil {
					t.Fatal(err)
				}
			}
			write, read := in.run(t, brick.Using(brick.Node), brick.Sync())
			errs := write
			if tc.read {
				errs = read
			}
			err, differ := same(errs)
			if differ != nil {
				t.Fatal(differ)
			}
			_, text, _ := strings.Cut(fmt.Sprint(err), ": ")
			if !slices.Contains(strings.Split(tc.want, " or "), text) || !errors.Is(err, tc.rule.Err) {
				t.Errorf("error is %q, want %q", fmt.Sprint(err), tc.want)
			}
			if leaks := in.leaks(); leaks != nil {
				t.Errorf("left open: %v", leaks)
			}
		})
	}
}

// closing matches the close that follows an operation of the same rank, and that
// operation too.
func closing(after vfs.Kind, too bool) func() func(vfs.Op) bool {
	return func() func(vfs.Op) bool {
		var seen atomic.Bool
		return func(op vfs.Op) bool {
			if op.Kind == after {
				seen.Store(true)
				return too
			}
			return op.Kind == vfs.OpClose && seen.Load()
		}
	}
}

// A rank keeps what it has created open until it writes it, but not without limit,
// and doesn't open it again.
func TestFewFilesAreKeptOpen(t *testing.T) {
	const files, most = 300, 128 // mostKept
	for _, driver := range []brick.Driver{brick.POSIX, brick.Node} {
		t.Run(driver.String(), func(t *testing.T) {
			fsys := vfs.NewInject(vfs.NewMem())
			p, err := brick.NewPlan(t.Context(), comm.Self(), [3]int{2, 2, 2}, grid.Box{Size: [3]int{2, 2, 2}}, brick.Float64,
				brick.Filesystem(fsys), brick.Using(driver))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			jobs := make([]brick.WriteJob, files)
			for i := range jobs {
				name := fmt.Sprintf("/%d.bin", i)
				jobs[i] = brick.WriteJob{Name: name, Path: name, Source: make(cells, 8)}
			}
			if _, err := p.Write(t.Context(), jobs); err != nil {
				t.Fatal(err)
			}
			var open, peak, again int
			for _, op := range fsys.Ops() {
				switch op.Kind {
				case vfs.OpCreate:
					open++
				case vfs.OpOpen:
					open++
					again++
				case vfs.OpClose:
					open--
				}
				peak = max(peak, open)
			}
			// One more while it is created, one per worker while it is written.
			if limit := most + 1 + runtime.GOMAXPROCS(0); peak > limit || peak < most {
				t.Errorf("%d files were open at the same time, want %d to %d", peak, most, limit)
			}
			if want := files - most; again != want {
				t.Errorf("%d files were opened again, want %d", again, want)
			}
			if open != 0 {
				t.Errorf("%d files were left open", open)
			}
		})
	}
}

func TestAFaultOfOneRankIsTheErrorOfAll(t *testing.T) {
	cases := []struct {
		name string
		rank int
		rule vfs.Rule
		want string // the whole error
		read bool   // of the read, not of the write
	}{
		{"create", 0, vfs.Rule{Kinds: []vfs.Kind{vfs.OpCreate}, Pattern: "b.bin", Err: syscall.EROFS},
			`rank 0: write field "b": create: read-only file system`, false},
		{"allocate: the disk is full", 0, vfs.Rule{Kinds: []vfs.Kind{vfs.OpAllocate}, Pattern: "b.bin", Err: syscall.ENOSPC},
			`rank 0: write field "b": allocate: no space left on device`, false},
		{"close after creating", 0, vfs.Rule{Kinds: []vfs.Kind{vfs.OpClose}, Pattern: "a.bin", Times: 1, Err: syscall.EIO},
			`rank 0: write field "a": close: input/output error`, false},
		{"open on one rank", 1, vfs.Rule{Kinds: []vfs.Kind{vfs.OpOpen}, Pattern: "a.bin", Times: 1, Err: syscall.EACCES},
			`rank 1: write field "a": open: permission denied`, false},
		{"first write: quota", 2, vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Pattern: "a.bin", Times: 1, Err: syscall.EDQUOT},
			`rank 2: write field "a": writeat: disk quota exceeded`, false},
		{"write of the second file", 1, vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Pattern: "b.bin", Err: syscall.EIO},
			`rank 1: write field "b": writeat: input/output error`, false},
		{"short write", 2, vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Pattern: "b.bin", Short: 5, Err: syscall.ENOSPC},
			`rank 2: write field "b": writeat: no space left on device`, false},
		{"close after writing", 1, vfs.Rule{Kinds: []vfs.Kind{vfs.OpClose}, Pattern: "a.bin", Times: 1, Err: syscall.EDQUOT},
			`rank 1: write field "a": close: disk quota exceeded`, false},
		{"write and close", 1, vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt, vfs.OpClose}, Pattern: "a.bin", Err: syscall.EIO},
			`rank 1: write field "a": writeat /a.bin: input/output error (then close /a.bin: input/output error)`, false},
		{"sync", 1, vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync}, Err: syscall.EIO},
			`rank 1: sync field "b": input/output error`, false},
		{"sync on rank 0", 0, vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync}, Err: syscall.EIO},
			`rank 0: sync field "a": input/output error`, false},
		{"reading back", 2, vfs.Rule{Kinds: []vfs.Kind{vfs.OpReadAt}, Pattern: "b.bin", Err: syscall.EIO},
			`rank 2: read back field "b": readat: input/output error`, false},
		{"size", 0, vfs.Rule{Kinds: []vfs.Kind{vfs.OpStat}, Pattern: "b.bin", Err: syscall.ESTALE},
			`rank 0: read field "b": stat: stale file handle`, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := newInjected()
			if err := in.fs[tc.rank].Fail(tc.rule); err != nil {
				t.Fatal(err)
			}
			write, read := in.run(t, brick.Using(brick.POSIX), brick.Sync(), brick.ReadBack())
			errs := write
			if tc.read {
				errs = read
			}
			err, differ := same(errs)
			if differ != nil {
				t.Fatal(differ)
			}
			if fmt.Sprint(err) != tc.want {
				t.Errorf("error is %q, want %q", fmt.Sprint(err), tc.want)
			}
			for r, err := range errs {
				if !errors.Is(err, tc.rule.Err) {
					t.Errorf("rank %d: %v is not %q", r, err, tc.rule.Err)
				}
			}
			if leaks := in.leaks(); leaks != nil {
				t.Errorf("left open: %v", leaks)
			}
		})
	}
}

// drivers are those that work on the communicators of this build.
func drivers() []brick.Driver {
	if mpi.Enabled {
		return []brick.Driver{brick.MPIIO, brick.POSIX, brick.Node}
	}
	return []brick.Driver{brick.POSIX, brick.Node}
}

// Each operation of each rank fails in turn: one error on all ranks, with the
// errno, and nothing stays open.
func TestEachOperationFailsInTurn(t *testing.T) {
	for _, d := range drivers() {
		if d != brick.MPIIO { // which has files of its own
			t.Run(d.String(), func(t *testing.T) { failInTurn(t, d, false) })
			t.Run(d.String()+" parts", func(t *testing.T) { failInTurn(t, d, true) })
		}
	}
}

func failInTurn(t *testing.T, d brick.Driver, parts bool) {
	for rank := range injectRanks {
		t.Run(fmt.Sprintf("rank %d", rank), func(t *testing.T) {
			for i := 1; ; i++ {
				in := newInjected()
				in.parts = parts
				in.fs[rank].FailAt(i, syscall.EIO)
				write, read := in.run(t, brick.Using(d), brick.Sync(), brick.ReadBack())
				if in.fs[rank].Count() < i {
					// Of one rank they may be few, for in the window the others take what
					// it comes too late for.
					all := 0
					for _, fsys := range in.fs {
						all += fsys.Count()
					}
					if all < 25 {
						t.Errorf("only %d operations of all ranks", all)
					}
					if !slices.Equal(write, make([]error, injectRanks)) || !slices.Equal(read, make([]error, injectRanks)) {
						t.Errorf("without a fault: %v %v", write, read)
					}
					return
				}
				op := in.fs[rank].Trace()[i-1]
				werr, wdiffer := same(write)
				rerr, rdiffer := same(read)
				if err := errors.Join(wdiffer, rdiffer); err != nil {
					t.Fatalf("%s: %v", op, err)
				}
				err := werr
				if err == nil {
					err = rerr
				}
				if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), fmt.Sprintf("rank %d: ", rank)) {
					t.Errorf("%s: error is %v", op, err)
				}
				if leaks := in.leaks(); leaks != nil {
					t.Errorf("%s: left open: %v", op, leaks)
				}
				if err := in.around(); parts && err != nil {
					t.Errorf("%s: %v", op, err)
				}
			}
		})
	}
}

// The reports of the functions that stand alone name files by their paths.
func TestDurableAndChecksumsNameThePath(t *testing.T) {
	in := newInjected()
	if write, read := in.run(t); write[0] != nil || read[0] != nil {
		t.Fatal(write, read)
	}
	if err := in.fs[1].Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync, vfs.OpReadAt}, Err: syscall.EIO}); err != nil {
		t.Fatal(err)
	}
	// Of 3 ranks, the second has the second file to sync.
	paths := []string{"/a.bin", "/b.bin"}
	err := comm.Run(injectRanks, func(c *comm.Comm) error {
		return brick.Durable(context.Background(), c, in.fs[c.Rank()], paths)
	})
	if want := `rank 1: sync "/b.bin": input/output error`; !strings.Contains(fmt.Sprint(err), want) || !errors.Is(err, syscall.EIO) {
		t.Errorf("error is %v, want %q", err, want)
	}
	err = comm.Run(injectRanks, func(c *comm.Comm) error {
		_, err := brick.Checksums(context.Background(), c, in.fs[c.Rank()], append(paths, "/c.bin"), 192)
		return err
	})
	if want := `rank 0: read "/c.bin": open: no such file or directory`; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("error is %v, want %q", err, want)
	}
}

func TestAnotherFilesystemOnOneRank(t *testing.T) {
	mem := vfs.NewMem()
	err := comm.Run(2, func(c *comm.Comm) error {
		box := grid.Box{Low: [3]int{c.Rank(), 0, 0}, Size: [3]int{1, 1, 1}}
		var opts []brick.Option
		if c.Rank() == 1 {
			opts = append(opts, brick.Filesystem(mem))
		}
		_, err := brick.NewPlan(t.Context(), c, [3]int{2, 1, 1}, box, brick.Float64, opts...)
		if want := "the filesystem is vfs.osFS on rank 0 and *vfs.Mem on rank 1"; !errors.Is(err, brick.ErrDisagree) || !strings.Contains(fmt.Sprint(err), want) {
			return fmt.Errorf("error is %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A disk that promises nothing fails in the write itself.
func TestAFullDiskWithoutPromises(t *testing.T) {
	in := &injected{mem: vfs.NewMem(vfs.Capacity(2*4096), vfs.NoAllocate())}
	for r := range in.fs {
		in.fs[r] = vfs.NewInject(in.mem)
	}
	full, err := in.mem.OpenFile("/other", 0o102, 0o666) // O_CREAT|O_RDWR
	if err != nil {
		t.Fatal(err)
	}
	if _, err := full.Write(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	write, _ := in.run(t)
	got, differ := same(write)
	if differ != nil {
		t.Fatal(differ)
	}
	if !errors.Is(got, syscall.ENOSPC) || !strings.Contains(fmt.Sprint(got), `: no space left on device`) {
		t.Errorf("error is %v", got)
	}
}
