package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// planCount counts the plans that a rank makes, by their log lines.
type planCount struct {
	slog.Handler
	mu   sync.Mutex
	made int
}

func (p *planCount) Enabled(context.Context, slog.Level) bool { return true }

func (p *planCount) Handle(_ context.Context, r slog.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Message == "brick plan" {
		p.made++
	}
	return nil
}

// planRank is a rank whose plans are counted.
type planRank struct {
	c     *comm.Comm
	fsys  vfs.FS
	count *planCount
	log   *slog.Logger
	plans *Plans
	steps int64
}

func newPlanRank(c *comm.Comm, fsys vfs.FS) *planRank {
	r := &planRank{c: c, fsys: fsys, count: &planCount{Handler: slog.DiscardHandler}, plans: NewPlans()}
	r.log = slog.New(r.count)
	return r
}

func (r *planRank) opts(more ...Option) []Option {
	return append([]Option{Filesystem(r.fsys), Logger(r.log), Reuse(r.plans)}, more...)
}

// made gives the number of plans since the last call.
func (r *planRank) made() int {
	n := r.count.made
	r.count.made = 0
	return n
}

// fields are n fields on a domain, cut along z, where the first rank has as many
// planes more as shift says.
func (r *planRank) fields(domain grid.Domain, shift, n int) ([]field.Named, error) {
	planes := domain.Size[2] / r.c.Size()
	low, high := planes*r.c.Rank(), planes*(r.c.Rank()+1)
	if r.c.Rank() > 0 {
		low += shift
	}
	if r.c.Rank() < r.c.Size()-1 {
		high += shift
	} else {
		high = domain.Size[2]
	}
	box := grid.Box{Low: [3]int{0, 0, low}, Size: [3]int{domain.Size[0], domain.Size[1], high - low}}
	var list []field.Named
	for i := range n {
		f, err := field.New[float64](domain, box, field.Halo(1))
		if err != nil {
			return nil, err
		}
		list = append(list, field.Named{ID: fmt.Sprintf("f%d", i), Field: f})
	}
	return list, nil
}

func (r *planRank) save(domain grid.Domain, shift int, more ...Option) error {
	list, err := r.fields(domain, shift, 2)
	if err := r.c.Agree(context.Background(), err); err != nil {
		return err
	}
	r.steps++
	return SaveBundle(context.Background(), r.c, fmt.Sprintf("/data/b%d", r.steps), State{Fields: list}, r.opts(more...)...)
}

func (r *planRank) load(path string, domain grid.Domain, shift int, more ...Option) error {
	list, err := r.fields(domain, shift, 1)
	if err := r.c.Agree(context.Background(), err); err != nil {
		return err
	}
	_, err = LoadBundle(context.Background(), r.c, path, Request{Fields: list}, r.opts(more...)...)
	return err
}

var (
	planDomain  = grid.Domain{Size: [3]int{4, 3, 12}, Spacing: [3]float64{1, 1, 1}}
	otherDomain = grid.Domain{Size: [3]int{4, 3, 18}, Spacing: [3]float64{1, 1, 1}}
)

// TestPlansAreReused: a call makes a plan only when none that fits is kept, and on
// all ranks or on none.
func TestPlansAreReused(t *testing.T) {
	other := Bricks(brick.Staging(1 << 16))
	for _, tc := range []struct {
		name string
		run  func(r *planRank) error // the last call before the plans are counted
		want int
	}{
		{"a second save", func(r *planRank) error { return r.save(planDomain, 0) }, 0},
		{"a load of the same layout", func(r *planRank) error { return r.load("/data/b1", planDomain, 0) }, 0},
		{"a load in place", func(r *planRank) error { return r.load("/data/b1", planDomain, 0, InPlace()) }, 0},
		{"other options that say the same", func(r *planRank) error { return r.save(planDomain, 0, Bricks(brick.Using(brick.Auto))) }, 0},
		{"another decomposition", func(r *planRank) error { return r.save(planDomain, 1) }, 1},
		{"a load in another decomposition", func(r *planRank) error { return r.load("/data/b1", planDomain, -1) }, 1},
		{"another size", func(r *planRank) error { return r.save(otherDomain, 0) }, 1},
		{"another durability", func(r *planRank) error { return r.save(planDomain, 0, WithDurability(None)) }, 1},
		{"other options of the bricks", func(r *planRank) error { return r.save(planDomain, 0, other) }, 1},
		{"another filesystem", func(r *planRank) error {
			r.fsys = vfs.NewInject(r.fsys)
			return r.save(planDomain, 0)
		}, 1},
		{"another logger", func(r *planRank) error {
			r.log = slog.New(r.count)
			return r.save(planDomain, 0)
		}, 1},
		{"another communicator", func(r *planRank) error {
			c, err := r.c.Split(0, r.c.Rank())
			if err != nil {
				return err
			}
			r.c = c
			return r.save(planDomain, 0)
		}, 1},
		{"fresh plans on one rank", func(r *planRank) error {
			if r.c.Rank() == 1 {
				r.plans = NewPlans()
			}
			return r.save(planDomain, 0)
		}, 1},
		{"closed plans on one rank", func(r *planRank) error {
			if r.c.Rank() == 1 {
				r.plans.Close()
			}
			return r.save(planDomain, 0)
		}, 1},
		{"two layouts in turn", func(r *planRank) error {
			err := errors.Join(r.save(otherDomain, 0), r.save(planDomain, 0), r.save(otherDomain, 0), r.save(planDomain, 0))
			return err
		}, 1},
		{"three layouts in turn", func(r *planRank) error {
			return errors.Join(r.save(otherDomain, 0), r.save(planDomain, 1), r.save(planDomain, 0), r.save(otherDomain, 0))
		}, 4},
		{"a plan that one rank has of another call", func(r *planRank) error {
			// Now ranks 0 and 1 keep plans of this layout that are not one.
			mine := r.plans
			r.plans = NewPlans()
			if err := r.save(planDomain, 0); err != nil {
				return err
			}
			if r.c.Rank() == 0 {
				r.plans = mine
			}
			return r.save(planDomain, 0)
		}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys := newFS(t)
			made := make([]int, 3)
			if err := onRanks(t, len(made), func(c *comm.Comm) error {
				r := newPlanRank(c, fsys)
				defer func() { r.plans.Close() }()
				if err := r.save(planDomain, 0); err != nil {
					return err
				}
				if n := r.made(); n != 1 {
					t.Errorf("the first save made %d plans", n)
				}
				err := tc.run(r)
				made[c.Rank()] = r.made()
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for rank, n := range made {
				if n != tc.want {
					t.Errorf("rank %d made %d plans, want %d", rank, n, tc.want)
				}
			}
		})
	}
}

// TestWithoutReuseNoPlanIsKept: each call makes its own.
func TestWithoutReuseNoPlanIsKept(t *testing.T) {
	fsys := newFS(t)
	if err := onRanks(t, 2, func(c *comm.Comm) error {
		r := newPlanRank(c, fsys)
		list, err := r.fields(planDomain, 0, 1)
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		for i := range 3 {
			err := SaveBundle(context.Background(), c, fmt.Sprintf("/data/b%d", i), State{Fields: list}, Filesystem(fsys), Logger(r.log))
			if err != nil {
				return err
			}
		}
		if n := r.made(); n != 3 {
			t.Errorf("3 saves made %d plans", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestAFailedCallsPlanIsNotUsedAgain, nor kept: the next call makes another one.
func TestAFailedCallsPlanIsNotUsedAgain(t *testing.T) {
	base := newFS(t)
	fsys := vfs.NewInject(base)
	if err := onRanks(t, 2, func(c *comm.Comm) error {
		r := newPlanRank(c, fsys)
		defer r.plans.Close()
		if err := r.save(planDomain, 0); err != nil {
			return err
		}
		kept := r.plans.kept[0].plan
		err := r.c.OnRoot(context.Background(), nil, func() error {
			return fsys.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Err: syscall.EIO, Times: 1})
		})
		if err != nil {
			return err
		}
		if err := r.save(planDomain, 0); !errors.Is(err, syscall.EIO) {
			t.Errorf("save: %v, want %v", err, syscall.EIO)
		}
		if len(r.plans.kept) != 0 {
			t.Errorf("%d plans are kept", len(r.plans.kept))
		}
		if _, err := kept.Write(context.Background(), nil); !errors.Is(err, brick.ErrClosed) {
			t.Errorf("the old plan: %v, want %v", err, brick.ErrClosed)
		}
		r.made()
		err = r.save(planDomain, 0)
		if n := r.made(); n != 1 {
			t.Errorf("the save after the failure made %d plans", n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPlansAreFreed: what falls out of the bound and what is kept at Close.
func TestPlansAreFreed(t *testing.T) {
	fsys := newFS(t)
	if err := onRanks(t, 2, func(c *comm.Comm) error {
		r := newPlanRank(c, fsys)
		var all []*brick.Plan
		for shift := range 4 {
			if err := r.save(planDomain, shift); err != nil {
				return err
			}
			all = append(all, r.plans.kept[len(r.plans.kept)-1].plan)
		}
		closed := func() (list []bool) {
			for _, plan := range all {
				_, err := plan.Write(context.Background(), nil)
				list = append(list, errors.Is(err, brick.ErrClosed))
			}
			return list
		}
		if got := fmt.Sprint(closed()); got != "[true true false false]" {
			t.Errorf("closed are %s, of at most %d", got, mostPlans)
		}
		r.plans.Close()
		r.plans.Close()
		if got := fmt.Sprint(closed()); got != "[true true true true]" {
			t.Errorf("after Close, closed are %s", got)
		}
		// What comes later keeps nothing.
		r.made()
		for range 2 {
			if err := r.save(planDomain, 0); err != nil {
				return err
			}
		}
		if n := r.made(); n != 2 || len(r.plans.kept) != 0 {
			t.Errorf("2 saves with closed plans made %d and kept %d", n, len(r.plans.kept))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestReuseOfNothingIsRefused(t *testing.T) {
	err := saveWith(t, newFS(t), 2, "/data/b", nil, Reuse(nil))
	wantError(t, err, ErrInput, "rank 0", "no plans to reuse")
}

// TestServiceKeepsItsPlan over checkpoints, and frees it at Close; plans that the
// caller gave it stay the caller's.
func TestServiceKeepsItsPlan(t *testing.T) {
	for _, given := range []bool{false, true} {
		t.Run(fmt.Sprintf("given plans: %t", given), func(t *testing.T) {
			fsys := newFS(t)
			if err := onRanks(t, 3, func(c *comm.Comm) error {
				ctx := context.Background()
				s, err := newTestSolver(c, 1, "phi", "T")
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				r := newPlanRank(c, fsys)
				opts := []Option{Filesystem(fsys), Logger(r.log)}
				if given {
					opts = append(opts, Reuse(r.plans))
				}
				cfg := Config{Checkpoint: CheckpointConfig{Directory: "/data", Every: 1}}
				service, err := NewService(ctx, c, cfg, opts...)
				if err != nil {
					return err
				}
				for increment := range int64(3) {
					err := s.advance(increment + 1)
					if err := c.Agree(ctx, err); err != nil {
						return err
					}
					if _, err := service.MaybeSave(ctx, s.solver()); err != nil {
						return err
					}
				}
				if _, err := service.Load(ctx, "/data/step_2", s.solver()); err != nil {
					return err
				}
				if n := r.made(); n != 1 {
					t.Errorf("3 saves and a load made %d plans", n)
				}
				plans := r.plans
				if !given {
					plans = service.own
				}
				kept := plans.kept[0].plan
				service.Close()
				service.Close()
				if _, err := kept.Write(ctx, nil); errors.Is(err, brick.ErrClosed) == given {
					t.Errorf("after Close the plan says %v", err)
				}
				plans.Close()
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestDumpsKeepTheirPlan likewise, beside that of bundles where they share.
func TestDumpsKeepTheirPlan(t *testing.T) {
	fsys := newFS(t)
	if err := onRanks(t, 2, func(c *comm.Comm) error {
		ctx := context.Background()
		r := newPlanRank(c, fsys)
		defer r.plans.Close()
		list, err := r.fields(planDomain, 0, 1)
		var f *field.Field[complex128]
		if err == nil {
			f, err = field.New[complex128](planDomain, list[0].Field.Box())
		}
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		dump := func(opts ...Option) (*Dumps, error) {
			d, err := NewDumps(ctx, c, "/data/psi_%04d.bin", []field.Named{{ID: "psi", Field: f}}, opts...)
			for i := range int64(3) {
				if err == nil {
					_, err = d.Write(ctx, i, float64(i))
				}
			}
			return d, err
		}
		d, err := dump(Filesystem(fsys), Logger(r.log))
		if err != nil {
			return err
		}
		if n := r.made(); n != 1 {
			t.Errorf("3 dumps made %d plans", n)
		}
		kept := d.own.kept[0].plan
		d.Close()
		d.Close()
		if _, err := kept.Write(ctx, nil); !errors.Is(err, brick.ErrClosed) {
			t.Errorf("after Close the plan says %v", err)
		}
		for range 2 {
			if err := r.save(planDomain, 0); err != nil {
				return err
			}
			if d, err = dump(r.opts()...); err != nil {
				return err
			}
			d.Close()
		}
		if n := r.made(); n != 2 {
			t.Errorf("bundles and dumps in turn made %d plans", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// costs of a call, on all ranks together but for the collectives.
type costs struct {
	collectives int // of one rank
	ops         map[vfs.Kind]int
}

// costOf saves and loads n fields with kept plans.
func costOf(t *testing.T, n int, call func(r *planRank, list []field.Named) error) costs {
	t.Helper()
	var cost costs
	fsys := vfs.NewInject(newFS(t))
	if err := onRanks(t, 3, func(c *comm.Comm) error {
		ctx := context.Background()
		r := newPlanRank(c, fsys)
		defer r.plans.Close()
		list, err := r.fields(planDomain, 0, n)
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		if err := SaveBundle(ctx, c, "/data/a", State{Fields: list}, r.opts()...); err != nil {
			return err
		}
		from, calls := fsys.Count(), c.Collectives()
		if err := c.Meet(ctx); err != nil {
			return err
		}
		if err := call(r, list); err != nil {
			return err
		}
		calls = c.Collectives() - calls - 1
		if err := c.Meet(ctx); err != nil || c.Rank() > 0 {
			return err
		}
		cost = costs{calls, make(map[vfs.Kind]int)}
		for _, op := range fsys.Ops()[from:] {
			cost.ops[op.Kind]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return cost
}

// TestTheCostOfABundle: the number of collective calls doesn't depend on that of the
// fields, and neither do the calls on the filesystem but for those that each file
// needs.
func TestTheCostOfABundle(t *testing.T) {
	save := func(opts ...Option) func(r *planRank, list []field.Named) error {
		return func(r *planRank, list []field.Named) error {
			return SaveBundle(context.Background(), r.c, "/data/b", State{Fields: list}, r.opts(opts...)...)
		}
	}
	load := func(opts ...Option) func(r *planRank, list []field.Named) error {
		return func(r *planRank, list []field.Named) error {
			_, err := LoadBundle(context.Background(), r.c, "/data/a", Request{Fields: list}, r.opts(opts...)...)
			return err
		}
	}
	for _, tc := range []struct {
		name   string
		call   func(r *planRank, list []field.Named) error
		beside int // collectives that are not the plan's
		each   map[vfs.Kind]int
	}{
		{"save", save(), 4, map[vfs.Kind]int{vfs.OpLstat: 1}},
		{"load", load(), 5, map[vfs.Kind]int{vfs.OpLstat: 1}},
		{"load in place", load(InPlace()), 5, map[vfs.Kind]int{vfs.OpLstat: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			one, some, many := costOf(t, 1, tc.call), costOf(t, 10, tc.call), costOf(t, 100, tc.call)
			plan := planCollectives(t, strings.HasPrefix(tc.name, "save"))
			for n, c := range map[int]costs{1: one, 10: some, 100: many} {
				if got := c.collectives - plan; got != tc.beside {
					t.Errorf("%d fields: %d collective calls beside the %d of the plan, want %d", n, got, plan, tc.beside)
				}
			}
			for _, kind := range []vfs.Kind{vfs.OpLstat, vfs.OpReadDir, vfs.OpMkdir, vfs.OpRename, vfs.OpRenameNoReplace,
				vfs.OpRemove, vfs.OpSyncDir, vfs.OpLock, vfs.OpUnlock, vfs.OpUsage, vfs.OpRead, vfs.OpWrite} {
				if got := many.ops[kind] - some.ops[kind]; got != 90*tc.each[kind] {
					t.Errorf("%s: %d with 10 fields, %d with 100: want %d more for each", kind, some.ops[kind], many.ops[kind], tc.each[kind])
				}
			}
		})
	}
}

// planCollectives counts the calls of a plan of the same layout alone.
func planCollectives(t *testing.T, write bool) (calls int) {
	t.Helper()
	fsys := newFS(t)
	if err := onRanks(t, 3, func(c *comm.Comm) error {
		ctx := context.Background()
		r := newPlanRank(c, fsys)
		list, err := r.fields(planDomain, 0, 1)
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		o, err := newOptions(r.opts())
		if err != nil {
			return err
		}
		plan, err := brick.NewPlan(ctx, c, planDomain.Size, list[0].Field.Box(), brick.Float64, o.bricks()...)
		if err != nil {
			return err
		}
		defer plan.Close()
		path := filepath.Join("/data", "f.bin")
		for range 2 {
			before := c.Collectives()
			source, err := list[0].Field.Source()
			if err != nil {
				return err
			}
			if _, err := plan.Write(ctx, []brick.WriteJob{{Path: path, Source: source}}); err != nil {
				return err
			}
			if c.Rank() == 0 && write {
				calls = c.Collectives() - before
			}
		}
		for range 2 {
			before := c.Collectives()
			sink := brick.SinkFunc(func([]byte, int64) error { return nil })
			if _, err := plan.Read(ctx, []brick.ReadJob{{Path: path, Sink: sink}}); err != nil {
				return err
			}
			if c.Rank() == 0 && !write {
				calls = c.Collectives() - before
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return calls
}
