package bricktest

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/grid"
)

// around is what stands in a file in which arrays are placed.
func around(n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 1)
	}
	return b
}

// overlay puts a part into the content of a file, which grows if need be.
func overlay(b []byte, offset int64, part []byte) []byte {
	if end := offset + int64(len(part)); end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[offset:], part)
	return b
}

// partStart is where a part begins in a file of cells, at no multiple of anything.
const partStart = 2<<10 + 377

type partCase struct {
	name  string
	ranks int                           // that the case needs
	is    error                         // in the chain
	read  bool                          // the error is that of a read
	alter func(last bool, jobs []parts) // on all ranks: last says that this is the last one
	want  []string                      // in the text
}

// parts is a job of a case, to write or to read.
type parts struct {
	path   string
	within bool
	offset int64
}

// badParts are parts that can't be: nothing is written for any of them, neither in
// the file of the parts nor in one that comes before it.
func (s *suite) badParts() error {
	f, err := s.fixture(10)
	if err != nil {
		return err
	}
	defer f.plan.Close()
	size := f.a.fileSize()
	first, second := int64(partStart), partStart+size+1
	last := s.c.Size() - 1
	path := s.path("parts.bin")
	start := around(first + size + 17) // ends in the second part
	put := func(k int, j parts) func(bool, []parts) {
		return func(_ bool, jobs []parts) { jobs[k] = j }
	}
	onLast := func(k int, j parts) func(bool, []parts) {
		return func(last bool, jobs []parts) {
			if last {
				jobs[k] = j
			}
		}
	}
	cases := []partCase{
		{"a file that is missing", 1, fs.ErrNotExist, false, put(1, parts{s.path("missing.bin"), true, 0}),
			[]string{`: write field "b": `, s.path("missing.bin"), syscall.ENOENT.Error()}},
		{"a directory", 1, syscall.EISDIR, false, put(1, parts{s.Dir, true, 0}), []string{`: write field "b": `, s.Dir}},
		{"an offset below 0", 1, nil, false, put(1, parts{path, true, -1}),
			[]string{fmt.Sprintf("rank 0: write field \"b\": the array begins at byte -1 of %q", path)}},
		{"an offset below 0 on the last rank", 1, nil, false, onLast(1, parts{path, true, math.MinInt64}),
			[]string{fmt.Sprintf("rank %d: write field \"b\": the array begins at byte %d", last, int64(math.MinInt64))}},
		{"an end that no file has", 1, nil, false, put(1, parts{path, true, math.MaxInt64 - size + 1}), []string{"don't fit a file", path}},
		{"an offset in a file of its own", 1, nil, false, put(1, parts{s.path("own.bin"), false, 8}), []string{"offset 8", s.path("own.bin")}},
		{"parts that overlap in one byte", 1, nil, false, put(1, parts{path, true, first + size - 1}),
			[]string{fmt.Sprintf("rank 0: write field \"b\": bytes %d to %d of %q overlap those of field \"a\", %d to %d",
				first+size-1, first+2*size-1, path, first, first+size)}},
		{"parts in the wrong order that overlap", 1, nil, false, put(1, parts{path, true, first - size + 1}),
			[]string{`rank 0: write field "a": `, `overlap those of field "b"`}},
		{"the same part twice", 1, nil, false, put(1, parts{path, true, first}), []string{`overlap those of field "a"`}},
		{"a part and the whole of one file", 1, nil, false, put(1, parts{path, false, 0}), []string{`is the path of field "a" too`}},
		{"the whole and a part of one file", 1, nil, false, put(0, parts{path, false, 0}), []string{`is the path of field "a" too`}},
		{"another offset on one rank", 2, brick.ErrDisagree, false, onLast(1, parts{path, true, second + 1}),
			[]string{fmt.Sprintf("rank %d: the ranks disagree: file 1 is field \"b\" at byte %d of %q, on rank 0 it is field \"b\" at byte %d of %q",
				last, second+1, path, second, path)}},
		{"a part on one rank only", 2, brick.ErrDisagree, false, onLast(1, parts{s.path("own.bin"), false, 0}), []string{"the ranks disagree: file 1 is"}},
		{"reading at an offset that differs", 2, brick.ErrDisagree, true, onLast(0, parts{path, true, first + 1}), []string{"the ranks disagree: file 0 is"}},
		{"reading a part on one rank only", 2, brick.ErrDisagree, true, onLast(0, parts{path, false, 0}), []string{"the ranks disagree: file 0 is"}},
		{"reading from below 0", 1, nil, true, put(0, parts{path, true, -8}), []string{`rank 0: read field "a": the array begins at byte -8`, path}},
		{"reading a file that is missing", 1, fs.ErrNotExist, true, put(0, parts{s.path("missing.bin"), true, 0}),
			[]string{`rank 0: read field "a": `, s.path("missing.bin"), syscall.ENOENT.Error()}},
		{"reading beyond the end", 1, brick.ErrSize, true, put(0, parts{path, true, first + 18}),
			[]string{fmt.Sprintf("rank 0: read field \"a\": %s has %d bytes: want at least %d", path, len(start), first+18+size)}},
		{"reading where there is nothing", 1, brick.ErrSize, true, put(0, parts{path, true, 1 << 40}), []string{path, "want at least"}},
	}
	err = each(s, cases, func(tc partCase) string { return tc.name }, func(tc partCase) error {
		if s.c.Size() < tc.ranks {
			return nil
		}
		if err := s.clear(s.Dir); err != nil {
			return err
		}
		if err := s.put("parts.bin", start); err != nil {
			return err
		}
		jobs := []parts{{path, true, first}, {path, true, second}}
		if tc.read { // both of what is there
			jobs[1].offset = first
		}
		tc.alter(s.c.Rank() == last, jobs)
		var err error
		if tc.read {
			var sinks []*sink
			_, sinks, err = s.readParts(f, jobs)
			err = errors.Join(err, untouched(sinks))
		} else {
			_, err = f.plan.Write(s.ctx, s.writeParts(f, jobs))
		}
		aerr := s.agreed(err, tc.want...)
		if tc.is != nil && !errors.Is(err, tc.is) {
			aerr = errors.Join(aerr, fmt.Errorf("%v is not %q", err, tc.is))
		}
		return errors.Join(aerr, s.stands("parts.bin", start), s.absent("missing.bin", "own.bin"))
	})
	return errors.Join(err, s.goodParts(f), s.partCalls())
}

func (s *suite) writeParts(f *fixture, parts []parts) []brick.WriteJob {
	jobs := s.write(f)
	for i, p := range parts {
		jobs[i].Path, jobs[i].Within, jobs[i].Offset = p.path, p.within, p.offset
	}
	return jobs
}

func (s *suite) readParts(f *fixture, parts []parts) ([]uint64, []*sink, error) {
	jobs, sinks := s.read(f)
	for i, p := range parts {
		jobs[i].Path, jobs[i].Within, jobs[i].Offset = p.path, p.within, p.offset
	}
	crcs, err := f.plan.Read(s.ctx, jobs)
	return crcs, sinks, err
}

// stands checks that a file has what it had, on rank 0. It may have become longer:
// then it has zeros there.
func (s *suite) stands(name string, start []byte) error {
	var err error
	if s.c.Rank() == 0 {
		var info fs.FileInfo
		if info, err = s.FS.Stat(s.path(name)); err == nil {
			err = s.holds(name, overlay(make([]byte, max(info.Size(), int64(len(start)))), 0, start))
		}
	}
	return s.c.Agree(s.ctx, err)
}

// goodParts writes a part beside a file of its own with the plan of the cases: as
// good as new. A rank whose source fails changes nothing outside of the parts.
func (s *suite) goodParts(f *fixture) error {
	if err := s.clear(s.Dir); err != nil {
		return err
	}
	start := around(partStart + 3*f.a.fileSize())
	if err := s.put("parts.bin", start); err != nil {
		return err
	}
	jobs := []parts{{s.path("parts.bin"), true, partStart}, {s.path("own.bin"), false, 0}}
	broken := s.writeParts(f, jobs)
	if s.c.Rank() == s.c.Size()-1 {
		broken[0].Source.(*source).before = func(int64, int64) error { return errors.New("boom") }
	}
	_, err := f.plan.Write(s.ctx, broken)
	if err := s.agreed(err, fmt.Sprintf(`rank %d: write field "a": boom`, s.c.Size()-1)); err != nil {
		return err
	}
	sums, err := f.plan.Write(s.ctx, s.writeParts(f, jobs))
	if err == nil {
		err = written(f.a, []string{"parts.bin", "own.bin"}, sums)
	}
	if err == nil {
		err = errors.Join(s.holds("parts.bin", overlay(start, partStart, f.a.bytes(0))), s.holds("own.bin", f.a.bytes(1)))
	}
	if err := s.c.Agree(s.ctx, err); err != nil {
		return fmt.Errorf("a part and a file: %w", err)
	}
	// The same part may be read twice.
	reads, sinks := s.read(f)
	for i := range reads {
		reads[i].Path, reads[i].Within, reads[i].Offset = s.path("parts.bin"), true, partStart
		sinks[i].file = 0
	}
	got, err := f.plan.Read(s.ctx, reads)
	if err == nil && (got[0] != sums[0].CRC || got[1] != sums[0].CRC) {
		err = fmt.Errorf("checksums are %x, written %x", got, sums[0].CRC)
	}
	for _, k := range sinks {
		err = errors.Join(err, k.complete())
	}
	return s.c.Agree(s.ctx, err)
}

// partCalls checks that parts take no more agreements than files do.
func (s *suite) partCalls() error {
	n := batch + 1
	if s.Few {
		n = 3
	}
	files, err := s.countCalls(n, 1<<20, false, brick.Sync(), brick.ReadBack())
	if err != nil {
		return err
	}
	parts, err := s.countCalls(n, 1<<20, true, brick.Sync(), brick.ReadBack())
	if err == nil && parts != files {
		err = fmt.Errorf("collective calls are %+v for files, %+v for parts", files, parts)
	}
	return errors.Join(err, s.clear(s.Dir))
}

// fullPart lets a part be too large for what its file has left of the disk: all
// ranks say so, and the rest of the file is as it was.
func (s *suite) fullPart() error {
	if err := s.clear(s.Full); err != nil {
		return err
	}
	const plane = 2 * 4 * 8 // bytes
	planes := int(6*s.FullBytes/10/plane)/s.c.Size() + 1
	a := array{Seed: 11, Size: [3]int{2, 4, planes * s.c.Size()}}
	box := grid.Box{Low: [3]int{0, 0, planes * s.c.Rank()}, Size: [3]int{2, 4, planes}}
	p, err := brick.NewPlan(s.ctx, s.c, a.Size, box, a.Elem, s.options(brick.Staging(64<<10))...)
	if err != nil {
		return err
	}
	defer p.Close()
	full := *s
	full.Dir = s.Full
	start := around(5000)
	if err := full.put("parts.bin", start); err != nil {
		return err
	}
	jobs := []brick.WriteJob{
		{Name: "field 0", Path: filepath.Join(s.Full, "parts.bin"), Source: newSource(a, 0, box), Within: true, Offset: partStart},
		{Name: "field 1", Path: filepath.Join(s.Full, "parts.bin"), Source: newSource(a, 1, box), Within: true, Offset: partStart + a.fileSize()},
	}
	_, err = p.Write(s.ctx, jobs)
	aerr := s.agreed(err, ": write field ", jobs[0].Path, syscall.ENOSPC.Error())
	if !errors.Is(err, syscall.ENOSPC) {
		aerr = errors.Join(aerr, fmt.Errorf("%v is not ENOSPC", err))
	}
	for _, j := range jobs {
		if next := j.Source.(*source).next; next != 0 {
			aerr = errors.Join(aerr, fmt.Errorf("%s: the source was called before there was space", j.Name))
		}
	}
	return errors.Join(aerr, full.stands("parts.bin", start), s.clear(s.Full))
}
