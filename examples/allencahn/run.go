package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
)

// run is the solver. It is collective: every rank calls it with the same settings.
func run(ctx context.Context, c *comm.Comm, set settings, out io.Writer) (err error) {
	end := deadline{c, time.Now(), set.wallTime}
	say := newReporter(out, c.Rank(), set)
	sim, err := newSimulation(ctx, c, set)
	if err != nil {
		return err
	}
	defer func() {
		// After a failure of the run that of the clean-up says nothing new.
		if failed := sim.close(); err == nil {
			err = c.Agree(ctx, failed)
		}
	}()
	saves, err := newCheckpoints(ctx, sim, set.saves, say)
	if err != nil {
		return err
	}
	defer saves.close()
	if err := saves.restore(ctx); err != nil {
		return err
	}

	say.begin(sim)
	stop := ""
	for sim.increment < set.steps && stop == "" {
		if err := sim.advance(ctx); err != nil {
			return err
		}
		if err := say.stepped(ctx, sim); err != nil {
			return err
		}
		if stop, err = saves.maybeSave(ctx); err != nil {
			return err
		}
		if stop == "" {
			if stop, err = end.reached(ctx); err != nil {
				return err
			}
		}
	}
	if err := saves.saveLast(ctx); err != nil {
		return err
	}
	say.finished(sim, saves.last, stop)
	return nil
}

// A deadline is the end of the wall time that a run has, by the clock of rank 0.
type deadline struct {
	c     *comm.Comm
	begin time.Time
	limit time.Duration // 0: none
}

// reached says why the run has to stop, if it has. It is collective.
func (d deadline) reached(ctx context.Context) (string, error) {
	if d.limit == 0 {
		return "", nil
	}
	over := make([]int64, 1)
	if d.c.Rank() == 0 && time.Since(d.begin) >= d.limit {
		over[0] = 1
	}
	if err := d.c.AllReduceInt64(ctx, comm.Max, over); err != nil || over[0] == 0 {
		return "", err
	}
	return fmt.Sprintf("the wall time of %v is over", d.limit), nil
}
