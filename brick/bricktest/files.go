package bricktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/grid"
)

type pathCase struct {
	name string
	path string
	is   error
}

// badPaths are paths that no rank can use, for the second of two files.
func (s *suite) badPaths() error {
	f, err := s.fixture(6)
	if err != nil {
		return err
	}
	defer f.plan.Close()
	if err := s.clear(s.Dir); err != nil {
		return err
	}
	if s.c.Rank() == 0 {
		err = s.FS.Mkdir(s.path("directory"), 0o777)
	}
	if err := s.c.Agree(s.ctx, err); err != nil {
		return err
	}
	if err := s.put("file", []byte("no directory")); err != nil {
		return err
	}
	cases := []pathCase{
		{"a parent that is missing", s.path("missing/b.bin"), fs.ErrNotExist},
		{"a parent that is a file", s.path("file/b.bin"), syscall.ENOTDIR},
		{"a directory", s.path("directory"), nil},
		{"a name that is too long", s.path(strings.Repeat("b", 300)), syscall.ENAMETOOLONG},
		{"an empty path", "", fs.ErrNotExist},
	}
	fails := func(op string, tc pathCase, err error) error {
		aerr := s.agreed(err, ": "+op+` field "b": `) // of any rank: several may have found it
		if tc.is != nil && !errors.Is(err, tc.is) {
			aerr = errors.Join(aerr, fmt.Errorf("%v is not %q", err, tc.is))
		}
		return aerr
	}
	return each(s, cases, func(tc pathCase) string { return tc.name }, func(tc pathCase) error {
		jobs := s.write(f)
		jobs[1].Path = tc.path
		_, err := f.plan.Write(s.ctx, jobs)
		err = fails("write", tc, err)
		// Now the first file is there, and the second one can't be read either.
		reads, sinks := s.read(f)
		reads[1].Path = tc.path
		_, rerr := f.plan.Read(s.ctx, reads)
		return errors.Join(err, fails("read", tc, rerr), untouched(sinks))
	})
}

func untouched(sinks []*sink) error {
	for _, k := range sinks {
		if k.next != 0 {
			return fmt.Errorf("the sink of file %d was called before all files were looked at", k.file)
		}
	}
	return nil
}

type sizeCase struct {
	name string
	size int64
}

// otherSizes are files that are too short or too long.
func (s *suite) otherSizes() error {
	f, err := s.fixture(7)
	if err != nil {
		return err
	}
	defer f.plan.Close()
	size := f.a.fileSize()
	cases := []sizeCase{
		{"an empty file", 0},
		{"a file that lacks a byte", size - 1},
		{"a file with one byte more", size + 1},
		{"a file of twice the size", 2 * size},
	}
	err = each(s, cases, func(tc sizeCase) string { return tc.name }, func(tc sizeCase) error {
		if err := s.place(f); err != nil {
			return err
		}
		if err := s.put("b.bin", make([]byte, tc.size)); err != nil {
			return err
		}
		jobs, sinks := s.read(f)
		_, err := f.plan.Read(s.ctx, jobs)
		_, cerr := brick.Checksums(s.ctx, s.c, s.FS, []string{s.path("a.bin"), s.path("b.bin")}, size)
		for _, err := range []error{err, cerr} {
			if !errors.Is(err, brick.ErrSize) {
				return fmt.Errorf("%v is not brick.ErrSize", err)
			}
		}
		text := fmt.Sprintf("%s has %d bytes: want %d", s.path("b.bin"), tc.size, size)
		return errors.Join(s.agreed(err, `rank 0: read field "b": `+text), s.agreed(cerr, text), untouched(sinks))
	})
	return errors.Join(err, s.shrinks(f, false), s.shrinks(f, true), s.works(f))
}

// shrinks lets a file, or the part of one, lose its end while it is read: an error,
// never zeros.
func (s *suite) shrinks(f *fixture, part bool) error {
	if err := s.place(f); err != nil {
		return err
	}
	jobs, sinks := s.read(f)
	if part {
		if err := s.put("b.bin", overlay(around(partStart), partStart, f.a.bytes(1))); err != nil {
			return err
		}
		jobs[1].Within, jobs[1].Offset = true, partStart
	}
	if s.c.Rank() == 0 {
		sinks[1].before = func(first, n int64) error {
			if first > 0 {
				return nil
			}
			// The file keeps what this rank has had.
			file, err := s.FS.OpenFile(s.path("b.bin"), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			return errors.Join(file.Truncate(jobs[1].Offset+n*int64(f.a.Elem.Size())), file.Close())
		}
	}
	// What is read of the file that is too short is not its content.
	jobs[1].Sink = brick.SinkFunc(func(src []byte, first int64) error {
		_ = sinks[1].WriteCells(src, first)
		return nil
	})
	_, err := f.plan.Read(s.ctx, jobs)
	if !errors.Is(err, brick.ErrSize) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("a file that gets shorter: %v is neither brick.ErrSize nor io.ErrUnexpectedEOF", err)
	}
	return s.agreed(err, `read field "b": `)
}

// calls is a log handler that keeps the number of collective calls.
type calls struct {
	slog.Handler
	mu     sync.Mutex
	counts map[string]int64
}

func (h *calls) Enabled(context.Context, slog.Level) bool { return true }

func (h *calls) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "collectives" {
			h.counts[r.Message] = a.Value.Int64()
		}
		return true
	})
	return nil
}

const batch = 128 // files that a rank keeps open between creating and writing them

// counts are those of one write and one read.
type counts struct{ write, read int64 }

// countCalls counts the collective calls for files, or for parts of one.
func (s *suite) countCalls(files int, staging int64, parts bool, more ...brick.Option) (counts, error) {
	h := &calls{Handler: slog.DiscardHandler, counts: make(map[string]int64)}
	a := array{Seed: 8, Size: [3]int{2, 2, 2 * s.c.Size()}}
	box := grid.Box{Low: [3]int{0, 0, 2 * s.c.Rank()}, Size: [3]int{2, 2, 2}}
	p, err := brick.NewPlan(s.ctx, s.c, a.Size, box, a.Elem, s.options(
		append(more, brick.Staging(staging), brick.Logger(slog.New(h)))...)...)
	if err != nil {
		return counts{}, err
	}
	defer p.Close()
	var writes []brick.WriteJob
	var reads []brick.ReadJob
	for i := range files {
		name := fmt.Sprintf("%d.bin", i)
		w := brick.WriteJob{Name: name, Path: s.path(name), Source: newSource(a, i, box)}
		if parts {
			w.Path, w.Within, w.Offset = s.path("parts.bin"), true, partStart+int64(i)*a.fileSize()
		}
		writes = append(writes, w)
		reads = append(reads, brick.ReadJob{Name: name, Path: w.Path, Sink: newSink(a, i, box), Within: w.Within, Offset: w.Offset})
	}
	if parts {
		if err := s.put("parts.bin", nil); err != nil {
			return counts{}, err
		}
	}
	if _, err := p.Write(s.ctx, writes); err != nil {
		return counts{}, err
	}
	if _, err := p.Read(s.ctx, reads); err != nil {
		return counts{}, err
	}
	return counts{h.counts["brick write"], h.counts["brick read"]}, nil
}

// constantCalls checks that what the ranks say to each other does not become more
// with the number of files, or with that of rounds.
func (s *suite) constantCalls() error {
	cases := []struct {
		name    string
		files   int
		staging int64
		more    []brick.Option
	}{
		{"more files and rounds", 12, 16, []brick.Option{brick.Sync(), brick.ReadBack()}},
		{"more files than a rank keeps open", batch + 1, 1 << 20, nil},
	}
	if s.Few {
		cases[0].files = 3
		cases = cases[:1]
	}
	for _, tc := range cases {
		one, err := s.countCalls(1, 1<<20, false, tc.more...)
		if err != nil {
			return err
		}
		if one.write < 3 || one.read < 3 {
			return fmt.Errorf("%s: collective calls are %+v for one file", tc.name, one)
		}
		many, err := s.countCalls(tc.files, tc.staging, false, tc.more...)
		if err != nil {
			return err
		}
		if many.write > one.write || many.read > one.read {
			return fmt.Errorf("%s: collective calls are %+v for 1 file, %+v for %d", tc.name, one, many, tc.files)
		}
	}
	return s.clear(s.Dir)
}

type fullCase struct {
	name   string
	tenths int64 // size of each of the two files, of what the filesystem has room for
	fails  bool
}

// fullDisk fills a small filesystem with the first or the second of two files,
// and checks that all ranks say so, and that a write works when there is room.
func (s *suite) fullDisk() error {
	if s.Full == "" {
		return nil
	}
	cases := []fullCase{
		{"not one file fits", 15, true},
		{"one of two fits", 6, true},
		{"both fit", 3, false},
	}
	err := each(s, cases, func(tc fullCase) string { return tc.name }, func(tc fullCase) error {
		if err := s.clear(s.Full); err != nil {
			return err
		}
		const plane = 2 * 4 * 8 // bytes
		planes := int(tc.tenths*s.FullBytes/10/plane)/s.c.Size() + 1
		a := array{Seed: 9, Size: [3]int{2, 4, planes * s.c.Size()}}
		box := grid.Box{Low: [3]int{0, 0, planes * s.c.Rank()}, Size: [3]int{2, 4, planes}}
		p, err := brick.NewPlan(s.ctx, s.c, a.Size, box, a.Elem, s.options(brick.Staging(64<<10))...)
		if err != nil {
			return err
		}
		defer p.Close()
		paths := []string{filepath.Join(s.Full, "0.bin"), filepath.Join(s.Full, "1.bin")}
		sums, err := p.Write(s.ctx, []brick.WriteJob{
			{Name: "field 0", Path: paths[0], Source: newSource(a, 0, box)},
			{Name: "field 1", Path: paths[1], Source: newSource(a, 1, box)},
		})
		if tc.fails {
			aerr := s.agreed(err, ": write field ", syscall.ENOSPC.Error())
			if !errors.Is(err, syscall.ENOSPC) {
				aerr = errors.Join(aerr, fmt.Errorf("%v is not ENOSPC", err))
			}
			return aerr
		}
		if err != nil {
			return err
		}
		got, err := brick.Checksums(s.ctx, s.c, s.FS, paths, a.fileSize())
		if err == nil && !slices.Equal(got, sums) {
			err = fmt.Errorf("sums %x, want %x", got, sums)
		}
		return errors.Join(err, s.clear(s.Full))
	})
	return errors.Join(err, s.fullPart())
}
