package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

// A reporter tells people how the run goes on: rank 0 does.
type reporter struct {
	out   io.Writer
	quiet bool         // on all ranks
	loud  bool         // on this one
	log   *slog.Logger // of the checkpoint service
	end   int64        // the last step
	first int64        // the step that the clock started at
	start time.Time
}

// portions is the number of reports of a whole run.
const portions = 20

func newReporter(out io.Writer, rank int, set settings) *reporter {
	r := &reporter{out: out, quiet: !set.progress, loud: set.progress && rank == 0, end: set.steps}
	level := slog.LevelWarn
	if r.loud {
		level = slog.LevelInfo
	}
	r.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("rank", rank)
	return r
}

func (r *reporter) printf(format string, args ...any) {
	if r.loud {
		fmt.Fprintf(r.out, format+"\n", args...)
	}
}

// begin starts the clock of the steps.
func (r *reporter) begin(sim *simulation) {
	n, p := sim.cut.Domain().Size, sim.cut.Processes()
	r.printf("%d x %d x %d cells on %d x %d x %d ranks, rank 0 on %s", n[0], n[1], n[2], p[0], p[1], p[2], describe(sim.space))
	r.first, r.start = sim.increment, time.Now()
}

// stepped is called after every step. It is collective.
func (r *reporter) stepped(ctx context.Context, sim *simulation) error {
	now := sim.increment
	if r.quiet || now%max(1, r.end/portions) != 0 && now != r.end {
		return nil
	}
	energy, share, err := sim.measure(ctx)
	if err != nil {
		return err
	}
	rate := float64(now-r.first) / time.Since(r.start).Seconds()
	r.printf("step %d of %d (%d %%): time %.4g, free energy %.6g, %.2f %% of the phase 1, %.3g steps/s, %.3g cells/s",
		now, r.end, 100*now/r.end, sim.TimeAt(now), energy, 100*share, rate, rate*float64(sim.cut.Domain().Cells()))
	return nil
}

func (r *reporter) restarted(from string, sim *simulation) {
	r.printf("restarted from %s at step %d", from, sim.increment)
}

// finished says where the result is, and why it is not the one of the last step if
// it isn't.
func (r *reporter) finished(sim *simulation, last, stopped string) {
	if stopped != "" {
		r.printf("stopped at step %d: %s", sim.increment, stopped)
	}
	if last != "" {
		r.printf("the last bundle is %s", last)
	}
}
