package comm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Whatever two collective calls ranks are in, they find out: each gets one text that
// names both calls, and no library ends the job.
func TestRanksInDifferentCalls(t *testing.T) {
	mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
		named := waiting.Named(t.Context(), "SaveBundle")
		other := waiting.Named(t.Context(), "Directory")
		calls := []struct {
			name string
			call func(c *comm.Comm) error
		}{
			{"Agree (max of 1)", func(c *comm.Comm) error { return c.Agree(t.Context(), nil) }},
			{"Meet (max of 1)", func(c *comm.Comm) error { return c.Meet(t.Context()) }},
			{"Agree (max of 1) in SaveBundle", func(c *comm.Comm) error { return c.Agree(named, errPaper) }},
			{"Agree (max of 1) in Directory", func(c *comm.Comm) error { return c.Agree(other, nil) }},
			{"AgreeMax (max of 4)", func(c *comm.Comm) error { return c.AgreeMax(t.Context(), nil, make([]int64, 3)) }},
			{"AgreeMax (max of 1001)", func(c *comm.Comm) error { return c.AgreeMax(t.Context(), errPaper, make([]int64, 1000)) }},
			{"AllReduceInt64 (sum of 1)", func(c *comm.Comm) error { return c.AllReduceInt64(t.Context(), comm.Sum, []int64{-1}) }},
			{"AllReduceInt64 (max of 1)", func(c *comm.Comm) error { return c.AllReduceInt64(t.Context(), comm.Max, []int64{-1}) }},
			{"AllReduceInt64 (sum of 1000)", func(c *comm.Comm) error { return c.AllReduceInt64(t.Context(), comm.Sum, make([]int64, 1000)) }},
			{"AllReduceFloat64 (sum of 1)", func(c *comm.Comm) error { return c.AllReduceFloat64(t.Context(), comm.Sum, []float64{1}) }},
			{"AllReduceFloat64 (min of 1000)", func(c *comm.Comm) error { return c.AllReduceFloat64(t.Context(), comm.Min, make([]float64, 1000)) }},
			{"Broadcast from 0", func(c *comm.Comm) error { return second(c.Broadcast(t.Context(), 0, onRoot(c, 0, 5))) }},
			{"Broadcast from 1", func(c *comm.Comm) error { return second(c.Broadcast(t.Context(), 1, onRoot(c, 1, 100_000))) }},
			{"AllGather", func(c *comm.Comm) error { return second(c.AllGather(t.Context(), make([]byte, 100_000))) }},
			{"Split", func(c *comm.Comm) error { return second(c.Split(0, 0)) }},
			{"SplitNode", func(c *comm.Comm) error { return second(c.SplitNode()) }},
		}
		for i, a := range calls {
			for k, b := range calls {
				if i == k || c.Size() > 2 && i > 0 && k > 0 {
					continue
				}
				part, err := c.Split(0, 0)
				if err != nil {
					t.Fatal(err)
				}
				mine := a
				if c.Rank() > 0 {
					mine = b
				}
				err = mine.call(part)
				if !errors.Is(err, comm.ErrMismatch) || !errors.Is(err, comm.ErrDead) {
					t.Errorf("%s beside %s: %v", a.name, b.name, err)
				}
				if again := part.Agree(t.Context(), errPaper); again == nil || !errors.Is(again, comm.ErrMismatch) {
					t.Errorf("%s beside %s: a later call returned %v", a.name, b.name, again)
				}
				texts, gerr := c.AllGather(context.Background(), []byte(errors.Unwrap(err).Error()))
				if gerr != nil {
					t.Fatal(gerr)
				}
				// Ranks of one process notice as soon as two of them have come.
				want := []string{
					fmt.Sprintf("%v: %v: rank 0 called %s, rank 1 called %s", comm.ErrDead, comm.ErrMismatch, a.name, b.name),
					fmt.Sprintf("%v: %v: rank 1 called %s, rank 0 called %s", comm.ErrDead, comm.ErrMismatch, b.name, a.name),
					fmt.Sprintf("%v: %v: rank 2 called %s, rank 0 called %s", comm.ErrDead, comm.ErrMismatch, b.name, a.name),
					fmt.Sprintf("%v: %v: rank 0 called %s, rank 2 called %s", comm.ErrDead, comm.ErrMismatch, a.name, b.name),
				}
				for r, text := range texts {
					if string(text) != string(texts[0]) || !slices.Contains(want, string(text)) {
						t.Errorf("%s beside %s: rank %d has %q, rank 0 %q", a.name, b.name, r, text, texts[0])
					}
				}
				if err := part.Free(); err != nil {
					t.Errorf("free: %v", err)
				}
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func onRoot(c *comm.Comm, root, n int) []byte {
	if c.Rank() == root {
		return make([]byte, n)
	}
	return nil
}

// A call within a named one has the name of that, except in what the caller is let do.
func TestNamesOfCalls(t *testing.T) {
	outer := waiting.Named(t.Context(), "Service.Save")
	for _, tc := range []struct {
		ctx  context.Context
		want string
	}{
		{nil, ""}, {t.Context(), ""}, {outer, "Service.Save"},
		{waiting.Named(outer, "SaveBundle"), "Service.Save"},
		{context.WithoutCancel(outer), "Service.Save"},
		{waiting.Apart(outer), ""},
		{waiting.Named(waiting.Apart(outer), "SaveBundle"), "SaveBundle"},
	} {
		if got := waiting.Name(tc.ctx); got != tc.want {
			t.Errorf("name %q, want %q", got, tc.want)
		}
	}
}
