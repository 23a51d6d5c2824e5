package main

import (
	"context"
	"io"

	"github.com/fieldstone-io/fieldstone/comm"
)

// run is the solver. It is collective: every rank calls it with the same
// settings.
func run(ctx context.Context, c *comm.Comm, set settings, out io.Writer) (err error) {
	say := newReporter(out, c.Rank(), set)
	sim, err := newSimulation(c, set)
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	var files *runFiles
	var saves *checkpoints
	if set.Run.Name != "" {
		if files, err = openRun(ctx, sim, set, say); err != nil {
			return err
		}
		defer func() { err = files.close(ctx, err) }()
		saves = files.saves
	} else if saves, err = startCheckpoints(ctx, sim, set.Config, false, say); err != nil {
		return err
	}
	defer saves.close()
	stepped := saves.maybeSave
	if files != nil {
		if err := files.begin(ctx); err != nil {
			return err
		}
		stepped = files.stepped
	}

	say.begin(sim)
	stop := ""
	for sim.increment < set.Steps && stop == "" {
		if err := sim.advance(ctx); err != nil {
			return err
		}
		if err := say.stepped(ctx, sim); err != nil {
			return err
		}
		if stop, err = stepped(ctx); err != nil {
			return err
		}
	}
	if err := saves.saveLast(ctx); err != nil {
		return err
	}

	if set.picture != "" {
		if c.Rank() == 0 {
			err = writePicture(saves.last, set.picture)
		}
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
	}
	say.finished(sim, saves.last, stop)
	return nil
}
