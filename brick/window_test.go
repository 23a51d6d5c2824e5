package brick

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/shm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// numbered yields the file's byte for each byte, of a box of whole columns.
type numbered struct {
	size [3]int
	box  grid.Box
}

func (s numbered) ReadCells(dst []byte, first int64) error {
	r := newRuns(s.size, s.box, Float64)
	return r.each(first, int64(len(dst)/8), func(offset, from, to int64) error {
		for i := from; i < to; i++ {
			dst[i] = byte((offset + i - from) * 7 >> 3)
		}
		return nil
	})
}

// The window goes, comes and grows with what calls need; where none can be had, the
// files are the same.
func TestWithAndWithoutAWindow(t *testing.T) {
	cases := []struct {
		name  string
		kinds []shm.Kind
		slot  [3]int64 // of the window after one file, after five, and after one again
		warns int
	}{
		{"a window", []shm.Kind{shm.Process}, [3]int64{12288, 28672, 28672}, 0},
		{"the second kind works", []shm.Kind{9, shm.Process}, [3]int64{12288, 28672, 28672}, 2},
		{"no kind works", []shm.Kind{9, 9}, [3]int64{}, 3},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			var log safeBuffer
			err := comm.Run(2, func(c *comm.Comm) error {
				size := [3]int{16, 8, 9}
				box := grid.Box{Low: [3]int{8 * c.Rank(), 0, 0}, Size: [3]int{8, 8, 9}}
				p, err := NewPlan(t.Context(), c, size, box, Float64, Logger(slog.New(slog.NewTextHandler(&log, nil))))
				if err != nil {
					return err
				}
				defer p.Close()
				p.kinds = tc.kinds
				for k, files := range []int{1, 5, 1} {
					jobs := make([]WriteJob, files)
					for i := range jobs {
						jobs[i] = WriteJob{Name: fmt.Sprint(i), Path: filepath.Join(dir, fmt.Sprintf("%d-%d", k, i)), Source: numbered{size, box}}
					}
					if _, err := p.Write(t.Context(), jobs); err != nil {
						return err
					}
					if p.slot != tc.slot[k] {
						return fmt.Errorf("%d files: slots of %d bytes, want %d", files, p.slot, tc.slot[k])
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, 16*8*9*8)
			for i := range want {
				want[i] = byte(i * 7 >> 3)
			}
			for k, files := range []int{1, 5, 1} {
				for i := range files {
					got, err := vfs.ReadFile(vfs.OS, filepath.Join(dir, fmt.Sprintf("%d-%d", k, i)), 1<<20)
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("call %d, file %d: %d bytes that differ: %v", k, i, len(got), err)
					}
				}
			}
			if got := strings.Count(log.String(), "level=WARN"); got != tc.warns {
				t.Errorf("%d warnings, want %d:\n%s", got, tc.warns, log.String())
			}
		})
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A rank whose context is cancelled while the window is made has no say in how it is
// made: it is the error of all, later.
func TestACancelledContextWhileTheWindowIsMade(t *testing.T) {
	dir := t.TempDir()
	for looks := range 12 { // so often the context is asked before it is cancelled
		err := comm.Run(3, func(c *comm.Comm) error {
			size := [3]int{9, 4, 4}
			box := grid.Box{Low: [3]int{3 * c.Rank(), 0, 0}, Size: [3]int{3, 4, 4}}
			p, err := NewPlan(t.Context(), c, size, box, Float64)
			if err != nil {
				return err
			}
			defer p.Close()
			p.kinds = []shm.Kind{9, shm.Process}
			ctx := t.Context()
			if c.Rank() == 1 {
				ctx = &flipping{Context: ctx, looks: looks}
			}
			path := filepath.Join(dir, "a.bin")
			_, err = p.Write(ctx, []WriteJob{{Name: "a", Path: path, Source: numbered{size, box}}})
			if err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			_, err = p.Write(t.Context(), []WriteJob{{Name: "a", Path: path, Source: numbered{size, box}}})
			return err
		})
		if err != nil {
			t.Errorf("cancelled after %d looks: %v", looks, err)
		}
	}
}

// flipping is cancelled after some looks.
type flipping struct {
	context.Context
	mu    sync.Mutex
	looks int
}

func (f *flipping) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looks--; f.looks < 0 {
		return context.Canceled
	}
	return nil
}

// Slots whose last unit is a part of one, a file that is no multiple of anything.
func TestLargeFilesThroughAWindow(t *testing.T) {
	dir := t.TempDir()
	size := [3]int{251, 61, 63}
	err := comm.Run(3, func(c *comm.Comm) error {
		cuts := []int{0, 83, 170, 251}
		box := grid.Box{Low: [3]int{cuts[c.Rank()], 0, 0}, Size: [3]int{cuts[c.Rank()+1] - cuts[c.Rank()], 61, 63}}
		p, err := NewPlan(t.Context(), c, size, box, Float64)
		if err != nil {
			return err
		}
		defer p.Close()
		jobs := make([]WriteJob, 4)
		for i := range jobs {
			jobs[i] = WriteJob{Name: fmt.Sprint(i), Path: filepath.Join(dir, fmt.Sprint(i)), Source: numbered{size, box}}
		}
		sums, err := p.Write(t.Context(), jobs)
		if err != nil {
			return err
		}
		reads := make([]ReadJob, len(jobs))
		moved := int64(0)
		for i, j := range jobs {
			reads[i] = ReadJob{Name: j.Name, Path: j.Path, Sink: SinkFunc(func(src []byte, first int64) error {
				want := make([]byte, len(src))
				if err := (numbered{size, box}).ReadCells(want, first); err != nil || !bytes.Equal(src, want) {
					return fmt.Errorf("other cells from %d on: %v", first, err)
				}
				moved += int64(len(src))
				return nil
			})}
		}
		again, err := p.Read(t.Context(), reads)
		same := slices.EqualFunc(sums, again, func(s Sum, crc uint64) bool { return s.CRC == crc })
		if err == nil && (!same || moved != 4*box.Cells()*8) {
			err = fmt.Errorf("sums %x and %x, %d bytes", sums, again, moved)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 251*61*63*8)
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	for i := range 4 {
		got, err := vfs.ReadFile(vfs.OS, filepath.Join(dir, fmt.Sprint(i)), 1<<30)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("file %d: %d bytes that differ: %v", i, len(got), err)
		}
	}
}

// A schedule with a hole is found out by all ranks.
func TestAHoleIsFoundOut(t *testing.T) {
	err := comm.Run(2, func(c *comm.Comm) error {
		p := &Plan{c: &ranks{Comm: c}, size: [3]int{4, 1, 1}, drv: node{}, shortest: 8}
		tl := newTally(1, 8)
		tl.files[0] = share{summed: int64(8 + 8*c.Rank()), due: int64(8 + 8*c.Rank()), moved: 16}
		p.box = grid.Box{Size: [3]int{2, 1, 1}}
		_, err := p.finish(t.Context(), "write", []job{{Name: "it"}}, tl, nil)
		if want := "write it: the ranks moved 24 of 32 bytes"; fmt.Sprint(err) != want {
			return fmt.Errorf("error is %v, want %s", err, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Workers that share a file hand its cells on in order, whichever of them is faster;
// and one that waits for another that fails does not wait for ever.
func TestWorkersHandCellsOnInOrder(t *testing.T) {
	for _, fails := range []bool{false, true} {
		err := comm.Run(1, func(c *comm.Comm) error {
			size := [3]int{1 << 15, 1, 8}
			mem := vfs.NewMem()
			inject := vfs.NewInject(mem)
			p, err := NewPlan(t.Context(), c, size, grid.Box{Size: size}, Float64, Filesystem(slowFirst{inject, fails}), Staging(1<<20))
			if err != nil {
				return err
			}
			defer p.Close()
			p.workers = 2
			if workers, chunk := p.cut(); workers != 2 || chunk > p.FileSize()/4 {
				return fmt.Errorf("%d workers with chunks of %d bytes", workers, chunk)
			}
			if _, err := p.Write(t.Context(), []WriteJob{{Name: "a", Path: "/a", Source: numbered{size, grid.Box{Size: size}}}}); err != nil {
				return err
			}
			next := int64(0)
			_, err = p.Read(t.Context(), []ReadJob{{Name: "a", Path: "/a", Sink: SinkFunc(func(src []byte, first int64) error {
				if first != next {
					return fmt.Errorf("cells from %d on, want %d", first, next)
				}
				next += int64(len(src) / 8)
				return nil
			})}})
			if fails {
				if !errors.Is(err, syscall.EIO) {
					return fmt.Errorf("error is %v", err)
				}
				return nil
			}
			return err
		})
		if err != nil {
			t.Errorf("fails %v: %v", fails, err)
		}
	}
}

// slowFirst is a filesystem that takes its time to read the first bytes of a file.
type slowFirst struct {
	vfs.FS
	fails bool
}

func (s slowFirst) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	return slowFile{f, s.fails}, err
}

type slowFile struct {
	vfs.File
	fails bool
}

func (f slowFile) ReadAt(b []byte, offset int64) (int, error) {
	if offset == 0 {
		time.Sleep(50 * time.Millisecond)
		if f.fails {
			return 0, syscall.EIO
		}
	}
	return f.File.ReadAt(b, offset)
}

// counting is a source that counts the cells that it was asked for.
type counting struct {
	numbered
	fails bool
	cells *int64
}

func (c counting) ReadCells(dst []byte, first int64) error {
	if *c.cells += int64(len(dst) / 8); c.fails {
		return syscall.EIO
	}
	return c.numbered.ReadCells(dst, first)
}

// Once a rank has failed, the others stop at the next meeting: of many steps they
// take part in no more than two.
func TestOthersStopSoonAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	const staging = 1024 // two slots of 64 cells, for 3 ranks: 192 cells a step
	err := comm.Run(3, func(c *comm.Comm) error {
		size := [3]int{6, 32, 32}
		box := grid.Box{Low: [3]int{2 * c.Rank(), 0, 0}, Size: [3]int{2, 32, 32}}
		p, err := NewPlan(t.Context(), c, size, box, Float64, Staging(staging))
		if err != nil {
			return err
		}
		defer p.Close()
		var asked int64
		source := counting{numbered{size, box}, c.Rank() == 1, &asked}
		_, err = p.Write(t.Context(), []WriteJob{{Name: "a", Path: filepath.Join(dir, "a"), Source: source}})
		if !errors.Is(err, syscall.EIO) {
			return fmt.Errorf("error is %v", err)
		}
		if asked > 2*64 {
			return fmt.Errorf("asked for %d cells of %d", asked, box.Cells())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Without a window the chunks of a stream are needed, which may be more.
func TestNoWindowAndLargeChunks(t *testing.T) {
	for _, ranks := range []int{2, 33} {
		dir := t.TempDir()
		err := comm.Run(ranks, func(c *comm.Comm) error {
			size := [3]int{8 * ranks, 64, 256}
			box := grid.Box{Low: [3]int{8 * c.Rank(), 0, 0}, Size: [3]int{8, 64, 256}}
			p, err := NewPlan(t.Context(), c, size, box, Float64, Staging(1<<20))
			if err != nil {
				return err
			}
			defer p.Close()
			p.kinds = nil
			p.workers = 4
			_, err = p.Write(t.Context(), []WriteJob{{Name: "a", Path: filepath.Join(dir, "a.bin"), Source: numbered{size, box}}})
			return err
		})
		if err != nil {
			t.Errorf("%d ranks: %v", ranks, err)
		}
	}
}

// Where the ranks' memory is bounded: two halves of a slot for each rank, and no more
// than the limit of a node.
func TestSlotsAreBounded(t *testing.T) {
	cases := []struct {
		name    string
		ranks   int
		size    [3]int
		staging int64
		files   int
		want    int64
	}{
		{"large files", 2, [3]int{256, 256, 256}, 0, 4, 2 << 20},
		{"many ranks", 64, [3]int{256, 256, 256}, 0, 4, 512 << 10},
		{"very many ranks", 8192, [3]int{256, 256, 256}, 0, 4, 4096},
		{"a small file", 2, [3]int{16, 16, 1}, 0, 1, 4096},
		{"small files of one rank", 2, [3]int{32, 32, 32}, 0, 5, 3 * 256 << 10},
		{"many small files", 2, [3]int{32, 32, 32}, 0, 100, 2 << 20},
		{"a limit", 2, [3]int{32, 32, 32}, 100, 3, 48},
		{"a limit of one element", 2, [3]int{32, 32, 32}, 16, 3, 8},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := comm.Run(1, func(c *comm.Comm) error {
				p := &Plan{c: &ranks{Comm: c}, size: tc.size, opt: options{staging: tc.staging}, drv: node{}}
				if got := p.slotFor(tc.files, tc.ranks); got != tc.want {
					return fmt.Errorf("slots of %d bytes, want %d", got, tc.want)
				}
				if all := 2 * p.slotFor(tc.files, tc.ranks) * int64(tc.ranks); all > windowLimit {
					return fmt.Errorf("a window of %d bytes", all)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A rank that knows no more than that another one failed has no error to tell.
func TestStoppedRanksHaveNoErrorOfTheirOwn(t *testing.T) {
	err := comm.Run(2, func(c *comm.Comm) error {
		p := &Plan{c: &ranks{Comm: c}, size: [3]int{1, 1, 1}}
		err := error(errStopped)
		if c.Rank() == 1 {
			err = errors.New("boom")
		}
		if _, err := p.finish(t.Context(), "write", make([]job, 1), newTally(1, 0), err); fmt.Sprint(err) != "rank 1: boom" {
			return fmt.Errorf("error is %v", err)
		}
		if _, err := p.finish(t.Context(), "write", make([]job, 1), newTally(1, 0), errStopped); !errors.Is(err, errStopped) {
			return fmt.Errorf("all stopped: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
