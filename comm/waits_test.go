package comm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
)

// Which limit a wait has is said by its context. One rank comes late, by the time of
// package synctest, to every call that waits.
func TestTheLimitOfAWait(t *testing.T) {
	const watch, work = 10 * time.Minute, 2 * time.Hour
	calls := map[string]func(ctx context.Context, c *comm.Comm) error{
		"Agree":          func(ctx context.Context, c *comm.Comm) error { return c.Agree(ctx, nil) },
		"AgreeMax":       func(ctx context.Context, c *comm.Comm) error { return c.AgreeMax(ctx, nil, []int64{1}) },
		"Meet":           func(ctx context.Context, c *comm.Comm) error { return c.Meet(ctx) },
		"Broadcast":      func(ctx context.Context, c *comm.Comm) error { _, err := c.Broadcast(ctx, 1, nil); return err },
		"AllGather":      func(ctx context.Context, c *comm.Comm) error { _, err := c.AllGather(ctx, nil); return err },
		"AllReduceInt64": func(ctx context.Context, c *comm.Comm) error { return c.AllReduceInt64(ctx, comm.Sum, []int64{1}) },
		"AllReduceFloat64": func(ctx context.Context, c *comm.Comm) error {
			return c.AllReduceFloat64(ctx, comm.Sum, []float64{1})
		},
		"SendRecv": func(ctx context.Context, c *comm.Comm) error {
			other := 1 - c.Rank()
			return c.SendRecv(ctx, other, []byte("x"), other, make([]byte, 1), 0)
		},
		"Node": func(ctx context.Context, c *comm.Comm) error { _, _, err := c.Node(ctx); return err },
	}
	contexts := []struct {
		name      string
		of        func(ctx context.Context, c *comm.Comm) context.Context
		watched   bool
		unlimited bool // WorkLimit isn't given
	}{
		{"a context of the caller", func(ctx context.Context, c *comm.Comm) context.Context { return ctx }, true, false},
		{"at work", func(ctx context.Context, c *comm.Comm) context.Context { return c.AtWork(ctx) }, false, false},
		{"at work without a limit", func(ctx context.Context, c *comm.Comm) context.Context { return c.AtWork(ctx) }, false, true},
		{"made from one at work", func(ctx context.Context, c *comm.Comm) context.Context {
			return context.WithoutCancel(c.AtWork(ctx))
		}, false, false},
		{"watched again", func(ctx context.Context, c *comm.Comm) context.Context { return c.Watched(c.AtWork(ctx)) }, true, false},
		{"at work again", func(ctx context.Context, c *comm.Comm) context.Context {
			return c.AtWork(c.Watched(c.AtWork(ctx)))
		}, false, false},
		{"at work on another communicator", func(ctx context.Context, c *comm.Comm) context.Context {
			return comm.Self().AtWork(ctx)
		}, true, false},
	}
	for name, call := range calls {
		for _, tc := range contexts {
			for _, late := range []time.Duration{watch - time.Minute, watch + time.Minute, work + time.Minute} {
				want := late > work && !tc.unlimited || tc.watched && late > watch
				t.Run(fmt.Sprintf("%s, %s, %v late", name, tc.name, late), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						opts := []comm.Option{comm.WorkLimit(work)}
						if tc.unlimited {
							opts = nil
						}
						var err error
						if rerr := comm.Run(2, func(c *comm.Comm) error {
							if c.Rank() == 1 {
								time.Sleep(late)
								return ignore(call(tc.of(t.Context(), c), c), comm.ErrDead)
							}
							err = call(tc.of(t.Context(), c), c)
							return nil
						}, opts...); rerr != nil {
							t.Error(rerr)
						}
						if dead := errors.Is(err, comm.ErrDead); dead != want || !dead && err != nil {
							t.Errorf("got %v; want a dead communicator: %v", err, want)
						}
					})
				})
			}
		}
	}
}

// ignore is err unless that is what a rank is to get.
func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

func TestLimitsAreThoseOfTheOptions(t *testing.T) {
	ctx := t.Context()
	err := comm.Run(2, func(c *comm.Comm) error {
		part, err := c.Split(0, 0)
		if err != nil {
			return err
		}
		for _, c := range []*comm.Comm{c, part} {
			watch, work := c.WaitLimit(ctx), c.WaitLimit(c.AtWork(ctx))
			if watch != time.Second || work != time.Hour || c.WatchLimit() != watch {
				return fmt.Errorf("limits are %v and %v", watch, work)
			}
		}
		if limit := part.WaitLimit(c.AtWork(ctx)); limit != time.Second {
			return fmt.Errorf("the limit of a part is %v when the whole is at work", limit)
		}
		return nil
	}, comm.Watch(time.Second), comm.WorkLimit(time.Hour))
	if err != nil {
		t.Error(err)
	}
	c := comm.Self()
	if watch, work := c.WaitLimit(ctx), c.WaitLimit(c.AtWork(ctx)); watch != 10*time.Minute || work < 24*365*time.Hour {
		t.Errorf("by default the limits are %v and %v", watch, work)
	}
	if c.Watched(ctx) != ctx {
		t.Error("a context that needs no change is another one")
	}
	for _, d := range []time.Duration{0, -time.Second} {
		if err := comm.Run(1, func(*comm.Comm) error { return nil }, comm.WorkLimit(d)); err == nil {
			t.Errorf("a work limit of %v", d)
		}
	}
}
