package bricktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Config says what is tested and where. All ranks give the same.
type Config struct {
	// Options are those of every plan. They choose the driver.
	Options []brick.Option

	// FS is what the options' Filesystem is, the operating system's by default.
	FS vfs.FS

	// Dir is an empty directory that all ranks see.
	Dir string

	// Full is a directory of a filesystem that has room for FullBytes and for
	// little more. Without one the suite doesn't fill a disk.
	Full      string
	FullBytes int64

	// Layouts is the number of random layouts, by default that of rapid's flags.
	Layouts int

	// Few leaves out what differs from the rest only in place and number, for
	// libraries that are slow with more ranks than cores.
	Few bool
}

// suite is Run on one rank.
type suite struct {
	Config
	t   testing.TB
	c   *comm.Comm
	ctx context.Context
}

// Run runs the whole suite. It is collective.
func Run(t testing.TB, c *comm.Comm, cfg Config) {
	t.Helper()
	Layouts(t, c, cfg)
	Faults(t, c, cfg)
}

// Layouts is the part of the suite in which all goes well. It is collective.
func Layouts(t testing.TB, c *comm.Comm, cfg Config) {
	t.Helper()
	newSuite(t, c, cfg).run([]part{
		{"random layouts", (*suite).layouts},
	})
}

// Faults is the part in which something fails, or should. It is collective.
func Faults(t testing.TB, c *comm.Comm, cfg Config) {
	t.Helper()
	newSuite(t, c, cfg).run([]part{
		{"layouts that are none", (*suite).badLayouts},
		{"plans and calls that disagree", (*suite).disagreements},
		{"paths that are bad", (*suite).badPaths},
		{"sources that fail", (*suite).failingSources},
		{"sinks that fail", (*suite).failingSinks},
		{"contexts that are cancelled", (*suite).cancellation},
		{"files of another size", (*suite).otherSizes},
		{"collective calls", (*suite).constantCalls},
		{"parts of files", (*suite).badParts},
		{"a full disk", (*suite).fullDisk},
	})
}

func newSuite(t testing.TB, c *comm.Comm, cfg Config) *suite {
	s := &suite{Config: cfg, t: t, c: c, ctx: t.Context()}
	if s.FS == nil {
		s.FS = vfs.OS
	}
	return s
}

type part struct {
	what string
	test func(*suite) error
}

// run runs the parts one after the other, as long as the ranks are in step.
func (s *suite) run(parts []part) {
	s.t.Helper()
	for _, p := range parts {
		if err := s.together(p.what, func() error { return p.test(s) }); err != nil {
			return
		}
	}
}

// together reports the errors of all ranks. It returns one when the ranks can't
// go on together.
func (s *suite) together(what string, test func() error) error {
	s.t.Helper()
	start := time.Now()
	err := comm.Protect(test)
	if s.c.Rank() == 0 {
		s.t.Logf("%s: %v", what, time.Since(start).Round(time.Millisecond))
	}
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
		if p, ok := errors.AsType[*comm.PanicError](err); ok {
			s.t.Logf("%s", p.Stack)
		}
	}
	if err := s.c.Meet(s.ctx); err != nil {
		s.t.Errorf("%s: ranks are out of step: %v", what, err)
		return err
	}
	return nil
}

func (s *suite) path(name string) string { return filepath.Join(s.Dir, name) }

// agreed gathers this call's errors: they must be there, on all ranks, with the
// same text, and that must contain the given ones.
func (s *suite) agreed(err error, contains ...string) error {
	text := "no error"
	if err != nil {
		text = err.Error()
	}
	all, gerr := s.c.AllGather(s.ctx, []byte(text))
	if gerr != nil {
		return gerr
	}
	for r, other := range all {
		if string(other) != string(all[0]) {
			return fmt.Errorf("errors differ: rank 0 has %q, rank %d has %q", all[0], r, other)
		}
	}
	if err == nil {
		return errors.New("no error")
	}
	for _, want := range contains {
		if !strings.Contains(text, want) {
			return fmt.Errorf("error %q lacks %q", text, want)
		}
	}
	return nil
}

// each runs test once per case, on all ranks together, and joins the errors.
func each[C any](s *suite, cases []C, name func(C) string, test func(C) error) error {
	var errs []error
	for _, tc := range cases {
		if err := comm.Protect(func() error { return test(tc) }); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name(tc), err))
		}
		if err := s.c.Meet(s.ctx); err != nil {
			return errors.Join(append(errs, fmt.Errorf("%s: ranks are out of step: %w", name(tc), err))...)
		}
	}
	return errors.Join(errs...)
}

// A fixture is an array that is cut along z over all ranks, with rounds so small
// that every rank takes several.
type fixture struct {
	a    array
	box  grid.Box
	plan *brick.Plan
}

const fixtureChunk = 64 // bytes of staging: 8 cells

func (s *suite) fixture(seed uint64) (*fixture, error) {
	f := &fixture{a: array{Seed: seed, Size: [3]int{3, 5, 2 * s.c.Size()}}}
	f.box = grid.Box{Low: [3]int{0, 0, 2 * s.c.Rank()}, Size: [3]int{3, 5, 2}}
	var err error
	f.plan, err = brick.NewPlan(s.ctx, s.c, f.a.Size, f.box, f.a.Elem, s.options(brick.Staging(fixtureChunk))...)
	return f, err
}

func (s *suite) options(more ...brick.Option) []brick.Option {
	return append(slices.Clone(s.Options), more...)
}

// write makes jobs for the files a and b of the fixture.
func (s *suite) write(f *fixture) []brick.WriteJob {
	return []brick.WriteJob{
		{Name: `field "a"`, Path: s.path("a.bin"), Source: newSource(f.a, 0, f.box)},
		{Name: `field "b"`, Path: s.path("b.bin"), Source: newSource(f.a, 1, f.box)},
	}
}

// place puts the files a and b where they belong without a driver.
func (s *suite) place(f *fixture) error {
	if err := s.put("a.bin", f.a.bytes(0)); err != nil {
		return err
	}
	return s.put("b.bin", f.a.bytes(1))
}

func (s *suite) read(f *fixture) ([]brick.ReadJob, []*sink) {
	a, b := newSink(f.a, 0, f.box), newSink(f.a, 1, f.box)
	return []brick.ReadJob{
		{Name: `field "a"`, Path: s.path("a.bin"), Sink: a},
		{Name: `field "b"`, Path: s.path("b.bin"), Sink: b},
	}, []*sink{a, b}
}

// works writes and reads with the plan and compares everything: whatever failed
// before, the plan is as good as new.
func (s *suite) works(f *fixture) error {
	sums, err := f.plan.Write(s.ctx, s.write(f))
	if err == nil {
		err = s.compare(f.a, []string{"a.bin", "b.bin"}, sums)
	}
	if err := s.c.Agree(s.ctx, err); err != nil {
		return fmt.Errorf("a write after that: %w", err)
	}
	jobs, sinks := s.read(f)
	got, err := f.plan.Read(s.ctx, jobs)
	if err == nil {
		err = checksums(f.a, []string{"a.bin", "b.bin"}, got)
	}
	for _, k := range sinks {
		err = errors.Join(err, k.complete())
	}
	if err := s.c.Agree(s.ctx, err); err != nil {
		return fmt.Errorf("a read after that: %w", err)
	}
	return nil
}

// compare checks files byte by byte, on rank 0, and their sums, on all.
func (s *suite) compare(a array, names []string, sums []brick.Sum) error {
	if err := written(a, names, sums); err != nil {
		return err
	}
	for i, name := range names {
		if err := s.holds(name, a.bytes(i)); err != nil {
			return err
		}
	}
	return nil
}

// written compares the sums of arrays.
func written(a array, names []string, sums []brick.Sum) error {
	crcs := make([]uint64, len(sums))
	for i, s := range sums {
		crcs[i] = s.CRC
	}
	if err := checksums(a, names, crcs); err != nil {
		return err
	}
	for i, name := range names {
		if n := nonFinite(a.bytes(i)); sums[i].NonFinite != n {
			return fmt.Errorf("%s: %d numbers aren't finite, want %d", name, sums[i].NonFinite, n)
		}
	}
	return nil
}

// checksums compares those of arrays.
func checksums(a array, names []string, crcs []uint64) error {
	if len(crcs) != len(names) {
		return fmt.Errorf("%d checksums for %d files", len(crcs), len(names))
	}
	for i, name := range names {
		if crc := checksum(a.bytes(i)); crcs[i] != crc {
			return fmt.Errorf("%s: checksum %016x, want %016x", name, crcs[i], crc)
		}
	}
	return nil
}

// holds checks a file byte by byte, on rank 0.
func (s *suite) holds(name string, want []byte) error {
	if s.c.Rank() != 0 {
		return nil
	}
	got, err := vfs.ReadFile(s.FS, s.path(name), 1<<30)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
	}
	for at := range got {
		if got[at] != want[at] {
			return fmt.Errorf("%s: byte %d is %#x, want %#x", name, at, got[at], want[at])
		}
	}
	return nil
}

// clear empties the directory, on rank 0, and waits until that is done.
func (s *suite) clear(dir string) error {
	var err error
	if s.c.Rank() == 0 {
		err = func() error {
			entries, err := s.FS.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := vfs.RemoveAll(s.FS, filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
			return nil
		}()
	}
	return s.c.Agree(s.ctx, err)
}

// put writes a file on rank 0.
func (s *suite) put(name string, data []byte) error {
	var err error
	if s.c.Rank() == 0 {
		var f vfs.File
		f, err = s.FS.OpenFile(s.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err == nil {
			_, err = f.Write(data)
			err = errors.Join(err, f.Close())
		}
	}
	return s.c.Agree(s.ctx, err)
}

// absent checks, on rank 0, that nothing is at the paths.
func (s *suite) absent(names ...string) error {
	var err error
	if s.c.Rank() == 0 {
		for _, name := range names {
			if there, lerr := vfs.Exists(s.FS, s.path(name)); lerr != nil || there {
				err = errors.Join(err, fmt.Errorf("%s exists: %t, %v", name, there, lerr))
			}
		}
	}
	return s.c.Agree(s.ctx, err)
}

// longer is what stands in a file before a write that must truncate it.
func longer(n int64) []byte { return bytes.Repeat([]byte{0xA5}, int(n)+1000) }
