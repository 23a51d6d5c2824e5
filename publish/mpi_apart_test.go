package publish

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// Ranks that are in different calls of the package find out, get one text, and leave the
// bundle that is there as it was.
func TestRanksInDifferentCallsOfThePackage(t *testing.T) {
	dir := sharedDir(t, nil)
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		ctx := context.Background()
		good, next := filepath.Join(dir, "good"), filepath.Join(dir, "next")
		must(t, c, saveSized(c, good, 0, 0, 2))
		calls := []struct {
			name string
			call func(c *comm.Comm) error
		}{
			{"in SaveBundle", func(c *comm.Comm) error { return saveSized(c, next, 0, 0, 3) }},
			{"in LoadBundle", func(c *comm.Comm) error { return loadSized(c, good, 0, 0, 2) }},
			{"in Directory", func(c *comm.Comm) error {
				return Directory(ctx, c, next, Metadata{}, func(context.Context, string) error { return nil })
			}},
			{"in BoundaryRecords", func(c *comm.Comm) error {
				_, err := BoundaryRecords(ctx, c, []Boundary{&fakeBoundary{config: `{"kind": "fake"}`, state: `1`}})
				return err
			}},
			{"AllReduceInt64 (sum of 2)", func(c *comm.Comm) error { return c.AllReduceInt64(ctx, comm.Sum, []int64{1, 2}) }},
			{"AllGather", func(c *comm.Comm) error { _, err := c.AllGather(ctx, make([]byte, 3000)); return err }},
		}
		for i, a := range calls {
			for k, b := range calls {
				if i == k {
					continue
				}
				part, err := c.Split(0, 0)
				must(t, c, err)
				mine := a.call
				if c.Rank() > 0 {
					mine = b.call
				}
				err = mine(part)
				if !errors.Is(err, comm.ErrMismatch) {
					t.Errorf("%s beside %s: %v", a.name, b.name, err)
				}
				// Each rank's call comes before what both are told.
				_, common, _ := strings.Cut(err.Error(), comm.ErrDead.Error())
				_ = sameOutcome(t, c, errors.New(common))
				if !strings.Contains(common, a.name) || !strings.Contains(common, b.name) {
					t.Errorf("%s beside %s: %q", a.name, b.name, common)
				}
				must(t, c, part.Free())
			}
		}
		onRankZero(t, c, func() error { return wantEntries(dir, "good") })
		must(t, c, loadSized(c, good, 0, 0, 2))
	})
}
