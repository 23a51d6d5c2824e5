package bricktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/grid"
)

// somewhere is where a rank fails: at the first, a middle or the last chunk of
// the first or the second file.
type somewhere struct {
	rank, file int
	chunk      string
	how        string
}

func (w somewhere) String() string {
	return fmt.Sprintf("%s on rank %d in the %s chunk of file %d", w.how, w.rank, w.chunk, w.file)
}

func (s *suite) places() []somewhere {
	if s.Few {
		return []somewhere{{0, 0, "first", "panic"}, {s.c.Size() - 1, 1, "middle", "error"}}
	}
	var list []somewhere
	for _, rank := range slices.Compact([]int{0, s.c.Size() - 1}) {
		for file := range 2 {
			for _, chunk := range []string{"first", "middle", "last"} {
				for _, how := range []string{"error", "panic"} {
					list = append(list, somewhere{rank, file, chunk, how})
				}
			}
		}
	}
	return list
}

// trip fails when the range of cells has the one that the place means.
func (w somewhere) trip(box grid.Box) func(first, n int64) error {
	cells := box.Cells()
	at := map[string]int64{"first": 0, "middle": cells / 2, "last": cells - 1}[w.chunk]
	return func(first, n int64) error {
		if first > at || at >= first+n {
			return nil
		}
		if w.how == "panic" {
			panic("boom")
		}
		return fmt.Errorf("boom: %w", syscall.EIO)
	}
}

// check checks the error that all ranks must have after a failure there.
func (s *suite) check(w somewhere, op string, err error) error {
	prefix := fmt.Sprintf("rank %d: %s field %q: ", w.rank, op, string(rune('a'+w.file)))
	if w.how == "panic" {
		return s.agreed(err, prefix+"panic: boom")
	}
	if !errors.Is(err, syscall.EIO) {
		return errors.Join(fmt.Errorf("%v is not EIO", err), s.agreed(err, prefix+"boom"))
	}
	return s.agreed(err, prefix+"boom: input/output error")
}

func (s *suite) failingSources() error {
	return s.failing("write", func(f *fixture, w somewhere) (results int, err error) {
		jobs := s.write(f)
		if s.c.Rank() == w.rank {
			jobs[w.file].Source.(*source).before = w.trip(f.box)
		}
		sums, err := f.plan.Write(s.ctx, jobs)
		return len(sums), err
	})
}

func (s *suite) failingSinks() error {
	return s.failing("read", func(f *fixture, w somewhere) (results int, err error) {
		jobs, sinks := s.read(f)
		if s.c.Rank() == w.rank {
			sinks[w.file].before = w.trip(f.box)
		}
		crcs, err := f.plan.Read(s.ctx, jobs)
		return len(crcs), err
	})
}

func (s *suite) failing(op string, call func(f *fixture, w somewhere) (results int, err error)) error {
	f, err := s.fixture(1)
	if err != nil {
		return err
	}
	defer f.plan.Close()
	if err := s.place(f); err != nil {
		return err
	}
	err = each(s, s.places(), somewhere.String, func(w somewhere) error {
		results, err := call(f, w)
		err = s.check(w, op, err)
		if results > 0 {
			err = errors.Join(err, fmt.Errorf("%d results beside an error", results))
		}
		return err
	})
	return errors.Join(err, s.works(f))
}

type cancelCase struct {
	name string
	call func(ctx context.Context, cancel func()) error
}

// cancellation cancels the context of one rank only.
func (s *suite) cancellation() error {
	f, err := s.fixture(3)
	if err != nil {
		return err
	}
	defer f.plan.Close()
	cause := errors.New("enough")
	cancelled := func(err error) error {
		aerr := s.agreed(err, fmt.Sprintf("rank %d: ", s.c.Size()-1), "context canceled", "enough")
		if !errors.Is(err, context.Canceled) {
			aerr = errors.Join(aerr, fmt.Errorf("%v is not context.Canceled", err))
		}
		return aerr
	}
	cases := []cancelCase{
		{"before a plan", func(ctx context.Context, cancel func()) error {
			cancel()
			p, err := brick.NewPlan(ctx, s.c, f.a.Size, f.box, f.a.Elem, s.options()...)
			if p != nil {
				return errors.New("a plan beside an error")
			}
			return err
		}},
		{"before a write", func(ctx context.Context, cancel func()) error {
			cancel()
			_, err := f.plan.Write(ctx, s.write(f))
			return errors.Join(err, s.absent("a.bin", "b.bin"))
		}},
		{"in the middle of a write", func(ctx context.Context, cancel func()) error {
			jobs := s.write(f)
			src := jobs[0].Source.(*source)
			src.before = func(first, n int64) error { cancel(); return nil }
			_, err := f.plan.Write(ctx, jobs)
			return errors.Join(err, s.stopped(&src.brickOf))
		}},
		{"in the last chunk of a write", func(ctx context.Context, cancel func()) error {
			jobs := s.write(f)
			jobs[1].Source.(*source).before = func(first, n int64) error {
				if first+n == f.box.Cells() {
					cancel()
				}
				return nil
			}
			_, err := f.plan.Write(ctx, jobs)
			return err
		}},
		{"in the middle of a read", func(ctx context.Context, cancel func()) error {
			if err := s.place(f); err != nil {
				return err
			}
			jobs, sinks := s.read(f)
			sinks[0].before = func(first, n int64) error { cancel(); return nil }
			_, err := f.plan.Read(ctx, jobs)
			return errors.Join(err, s.stopped(&sinks[0].brickOf))
		}},
		{"before syncing", func(ctx context.Context, cancel func()) error {
			cancel()
			return brick.Durable(ctx, s.c, s.FS, []string{s.path("a.bin"), s.path("b.bin")})
		}},
		{"before checksums", func(ctx context.Context, cancel func()) error {
			cancel()
			_, err := brick.Checksums(ctx, s.c, s.FS, []string{s.path("a.bin")}, f.a.fileSize())
			return err
		}},
	}
	if err := s.clear(s.Dir); err != nil {
		return err
	}
	return each(s, cases, func(tc cancelCase) string { return tc.name }, func(tc cancelCase) error {
		ctx, cancel := context.WithCancelCause(s.ctx)
		defer cancel(nil)
		return cancelled(tc.call(ctx, func() {
			if s.c.Rank() == s.c.Size()-1 {
				cancel(cause)
			}
		}))
	})
}

// stopped checks that the rank whose context was cancelled in the first chunk got
// no second one.
func (s *suite) stopped(b *brickOf) error {
	if s.c.Rank() == s.c.Size()-1 && b.next > fixtureChunk/int64(b.a.Elem.Size()) {
		return fmt.Errorf("went on to cell %d", b.next)
	}
	return nil
}

type badLayout struct {
	name     string
	box      func(r int) grid.Box
	size     func(r int) [3]int
	ranks    int // that the case needs
	contains []string
	as       func(error) bool
}

// badLayouts checks what grid.Tile finds, through a plan: on all ranks, typed,
// with the ranks' names, and before anything happens.
func (s *suite) badLayouts() error {
	n := s.c.Size()
	last := n - 1
	size := [3]int{4, 3, 2 * n}
	good := func(r int) grid.Box { return grid.Box{Low: [3]int{0, 0, 2 * r}, Size: [3]int{4, 3, 2}} }
	cases := []badLayout{
		{
			name: "a gap",
			box: func(r int) grid.Box {
				b := good(r)
				if r == last {
					b.Size[2] = 1
				}
				return b
			},
			contains: []string{"gap", fmt.Sprintf("[0:4, 0:3, %d:%d]", 2*n-1, 2*n)},
			as:       is[*grid.GapError],
		},
		{
			name: "an overlap",
			box: func(r int) grid.Box {
				b := good(r)
				if r == last {
					b.Low[2], b.Size[2] = b.Low[2]-1, 3
				}
				return b
			},
			ranks:    2,
			contains: []string{"overlap", fmt.Sprintf("ranks %d and %d", last-1, last), fmt.Sprintf("[0:4, 0:3, %d:%d]", 2*last-1, 2*last)},
			as:       is[*grid.OverlapError],
		},
		{
			name: "a cell outside",
			box: func(r int) grid.Box {
				b := good(r)
				if r == last {
					b.Size[0] = 5
				}
				return b
			},
			contains: []string{"outside", fmt.Sprintf("rank %d", last), fmt.Sprintf("[0:5, 0:3, %d:%d]", 2*last, 2*n)},
			as:       is[*grid.OutsideError],
		},
		{
			name: "an index below zero",
			box: func(r int) grid.Box {
				b := good(r)
				if r == last {
					b.Low[1] = -1
				}
				return b
			},
			contains: []string{"outside", fmt.Sprintf("rank %d", last)},
			as:       is[*grid.OutsideError],
		},
		{
			name:     "no cells at all",
			box:      func(r int) grid.Box { return grid.Box{} },
			contains: []string{"gap", fmt.Sprintf("[0:4, 0:3, 0:%d]", 2*n)},
			as:       is[*grid.GapError],
		},
		{
			name: "another size on one rank",
			size: func(r int) [3]int {
				if r == last {
					return [3]int{4, 3, 2*n + 1}
				}
				return size
			},
			ranks:    2,
			contains: []string{fmt.Sprintf("the size is %v on rank 0 and %v on rank %d", size, [3]int{4, 3, 2*n + 1}, last)},
			as:       func(err error) bool { return true },
		},
	}
	return each(s, cases, func(tc badLayout) string { return tc.name }, func(tc badLayout) error {
		if n < tc.ranks {
			return nil
		}
		box, whole := good(s.c.Rank()), size
		if tc.box != nil {
			box = tc.box(s.c.Rank())
		}
		if tc.size != nil {
			whole = tc.size(s.c.Rank())
		}
		p, err := brick.NewPlan(s.ctx, s.c, whole, box, brick.Float64, s.options()...)
		if p != nil {
			return errors.New("there is a plan")
		}
		aerr := s.agreed(err, append(tc.contains, "plan bricks: ", brick.ErrLayout.Error())...)
		if !errors.Is(err, brick.ErrLayout) || !tc.as(err) {
			aerr = errors.Join(aerr, fmt.Errorf("error %v is of another type", err))
		}
		return aerr
	})
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// disagreements are calls that are different on one rank.
func (s *suite) disagreements() error {
	f, err := s.fixture(4)
	if err != nil {
		return err
	}
	defer f.plan.Close()
	n := s.c.Size()
	last := n - 1
	plan := func(mine ...brick.Option) func() error {
		return func() error {
			opts := s.options()
			if s.c.Rank() == last {
				opts = append(opts, mine...)
			}
			p, err := brick.NewPlan(s.ctx, s.c, f.a.Size, f.box, f.a.Elem, opts...)
			if p != nil {
				return errors.New("there is a plan")
			}
			return err
		}
	}
	write := func(change func(jobs []brick.WriteJob) []brick.WriteJob) func() error {
		return func() error {
			jobs := s.write(f)
			if s.c.Rank() == last {
				jobs = change(jobs)
			}
			_, err := f.plan.Write(s.ctx, jobs)
			return err
		}
	}
	cases := []disagreement{
		{"an option that is invalid", 1, nil, fmt.Sprintf("rank %d: staging of 1 bytes", last), plan(brick.Staging(1))},
		{"no option", 1, nil, fmt.Sprintf("rank %d: an option is nil", last), plan(nil)},
		{"other staging", 2, brick.ErrDisagree, "the staging limit is", plan(brick.Staging(4096))},
		{"other rounds", 2, brick.ErrDisagree, fmt.Sprintf("the round limit is 1073741824 on rank 0 and 4096 on rank %d", last), plan(brick.Round(4096))},
		{"other hints", 2, brick.ErrDisagree, "the set of hints is", plan(brick.Hints(map[string]string{"cb_nodes": "1"}))},
		{"sync on one rank", 2, brick.ErrDisagree, fmt.Sprintf("sync is false on rank 0 and true on rank %d", last), plan(brick.Sync())},
		{"reading back on one rank", 2, brick.ErrDisagree, "reading back is", plan(brick.ReadBack())},
		{"another element on one rank", 2, brick.ErrLayout, "the element is", func() error {
			elem := brick.Float64
			if s.c.Rank() == last {
				elem = brick.Complex128
			}
			_, err := brick.NewPlan(s.ctx, s.c, f.a.Size, f.box, elem, s.options()...)
			return err
		}},
		{"no element", 1, nil, "element(7) is not an element of files", func() error {
			_, err := brick.NewPlan(s.ctx, s.c, f.a.Size, f.box, 7, s.options()...)
			return err
		}},
		{"another path", 2, brick.ErrDisagree,
			fmt.Sprintf("rank %d: the ranks disagree: file 1 is field \"b\" at %q, on rank 0 it is field \"b\" at %q", last, s.path("c.bin"), s.path("b.bin")),
			write(func(jobs []brick.WriteJob) []brick.WriteJob { jobs[1].Path = s.path("c.bin"); return jobs })},
		{"another name", 2, brick.ErrDisagree, "file 0 is x at", write(func(jobs []brick.WriteJob) []brick.WriteJob { jobs[0].Name = "x"; return jobs })},
		{"another order", 2, brick.ErrDisagree, "file 0 is", write(func(jobs []brick.WriteJob) []brick.WriteJob { slices.Reverse(jobs); return jobs })},
		{"fewer files", 2, brick.ErrDisagree, "1 files, 2 on rank 0", write(func(jobs []brick.WriteJob) []brick.WriteJob { return jobs[:1] })},
		{"no files on one rank", 2, brick.ErrDisagree, "0 files, 2 on rank 0", write(func(jobs []brick.WriteJob) []brick.WriteJob { return nil })},
		{"more files", 2, brick.ErrDisagree, "3 files, 2 on rank 0", write(func(jobs []brick.WriteJob) []brick.WriteJob {
			return append(jobs, brick.WriteJob{Path: s.path("c.bin"), Source: jobs[0].Source})
		})},
		{"no source", 1, nil, fmt.Sprintf("rank %d: write field \"b\": no source", last),
			write(func(jobs []brick.WriteJob) []brick.WriteJob { jobs[1].Source = nil; return jobs })},
		{"one path twice", 1, nil, "is the path of field \"a\" too", func() error {
			jobs := s.write(f)
			jobs[1].Path = jobs[0].Path
			_, err := f.plan.Write(s.ctx, jobs)
			return err
		}},
		{"no sink", 1, nil, fmt.Sprintf("rank %d: read field \"a\": no sink", last), func() error {
			jobs, _ := s.read(f)
			if s.c.Rank() == last {
				jobs[0].Sink = nil
			}
			_, err := f.plan.Read(s.ctx, jobs)
			return err
		}},
		{"a plan that is closed on one rank", 1, brick.ErrClosed, fmt.Sprintf("rank %d: write bricks: the plan is closed", last), func() error {
			other, err := s.fixture(5)
			if err != nil {
				return err
			}
			if s.c.Rank() == last {
				other.plan.Close()
			}
			_, err = other.plan.Write(s.ctx, s.write(other))
			other.plan.Close()
			other.plan.Close()
			return err
		}},
		{"checksums of other files", 2, brick.ErrDisagree, "file 0 is", func() error {
			path := s.path("a.bin")
			if s.c.Rank() == last {
				path = s.path("b.bin")
			}
			_, err := brick.Checksums(s.ctx, s.c, s.FS, []string{path}, 8)
			return err
		}},
		{"checksums of a negative size", 1, nil, "their size is -1", func() error {
			_, err := brick.Checksums(s.ctx, s.c, s.FS, nil, -1)
			return err
		}},
	}
	if err := s.clear(s.Dir); err != nil {
		return err
	}
	err = each(s, cases, func(d disagreement) string { return d.name }, func(d disagreement) error {
		if n < d.ranks {
			return nil
		}
		err := d.call()
		aerr := s.agreed(err, d.contains)
		if d.is != nil && !errors.Is(err, d.is) {
			aerr = errors.Join(aerr, fmt.Errorf("%v is not %q", err, d.is))
		}
		return errors.Join(aerr, s.absent("a.bin", "b.bin", "c.bin"))
	})
	// No files at all are no error, and neither are ranks with loggers of their own.
	var opts []brick.Option
	if s.c.Rank() == last {
		opts = append(opts, brick.Logger(slog.Default()))
	}
	p, perr := brick.NewPlan(s.ctx, s.c, f.a.Size, f.box, f.a.Elem, s.options(opts...)...)
	if perr != nil {
		return errors.Join(err, perr)
	}
	defer p.Close()
	wrote, werr := p.Write(s.ctx, nil)
	read, rerr := p.Read(s.ctx, nil)
	sums, serr := brick.Checksums(s.ctx, s.c, s.FS, nil, 8)
	derr := brick.Durable(s.ctx, s.c, s.FS, nil)
	if len(wrote)+len(read)+len(sums) != 0 || werr != nil || rerr != nil || serr != nil || derr != nil {
		err = errors.Join(err, fmt.Errorf("no files: %v %v %v, errors %v %v %v %v", wrote, read, sums, werr, rerr, serr, derr))
	}
	return err
}

type disagreement struct {
	name     string
	ranks    int // that the case needs
	is       error
	contains string
	call     func() error
}
