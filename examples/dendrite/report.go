package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/fieldstone-io/fieldstone/publish"
)

// A reporter tells how the run goes on: rank 0 to people, by a bar on a terminal
// and lines elsewhere; and with -events every rank to a program that watches the
// run, by lines that begin with "@ ".
type reporter struct {
	out    io.Writer
	rank   int
	mode   string // of settings.progress, decided
	events bool
	hold   hold
	log    *slog.Logger // of the checkpoint service

	bar   *progressbar.ProgressBar
	end   int64 // the last step
	first int64 // the step that the clock started at
	start time.Time
}

// How progress is shown.
const (
	progressAuto  = "auto" // a bar on a terminal, else lines
	progressBar   = "bar"
	progressLines = "lines"
	progressNone  = "none"
)

// portions is the number of reports of a whole run.
const portions = 20

func newReporter(out io.Writer, rank int, set settings) *reporter {
	r := &reporter{out: out, rank: rank, mode: set.progress, events: set.events, hold: set.hold, end: set.Steps}
	if r.mode == progressAuto {
		r.mode = progressLines
		if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			r.mode = progressBar
		}
	}
	if rank != 0 {
		r.mode = progressNone
	}
	level := slog.LevelInfo
	if r.mode == progressNone {
		level = slog.LevelWarn
	}
	r.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("rank", rank)
	r.event("rank=%d pid=%d", rank, os.Getpid())
	return r
}

// begin starts the clock of the steps.
func (r *reporter) begin(sim *simulation) {
	r.first, r.start = sim.increment, time.Now()
	if r.mode == progressBar {
		r.bar = progressbar.NewOptions64(r.end-r.first, progressbar.OptionSetWriter(r.out), progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("steps"), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionOnCompletion(func() { fmt.Fprintln(r.out) }))
	}
}

// stepped is called after every step. It is collective, since the size of the
// crystal is a number that the ranks have in common.
func (r *reporter) stepped(ctx context.Context, sim *simulation) error {
	now := sim.increment
	if now%max(1, r.end/portions) == 0 || now == r.end {
		solid, err := sim.solid(ctx)
		if err != nil {
			return err
		}
		if r.mode == progressLines {
			rate := float64(now-r.first) / time.Since(r.start).Seconds()
			fmt.Fprintf(r.out, "step %d of %d (%d %%): time %.4f, %.1f %% solid, %.0f steps/s\n",
				now, r.end, 100*now/r.end, sim.TimeAt(now), 100*solid, rate)
		}
		if r.bar != nil {
			r.bar.Describe(fmt.Sprintf("%.1f %% solid", 100*solid))
		}
	}
	if r.bar != nil {
		_ = r.bar.Set64(now - r.first) // a display that fails is no reason to stop
	}
	return nil
}

func (r *reporter) restarted(from string, sim *simulation) {
	if r.mode != progressNone {
		fmt.Fprintf(r.out, "restarted from %s at step %d\n", from, sim.increment)
	}
	if r.rank == 0 {
		r.event("restart=%d bundle=%s", sim.increment, from)
	}
}

// segment tells which segment of a run begins.
func (r *reporter) segment(run string, number int, sim *simulation) {
	if r.mode != progressNone {
		fmt.Fprintf(r.out, "segment %d of run %s begins at step %d\n", number, run, sim.increment)
	}
	if r.rank == 0 {
		r.event("segment=%d start=%d", number, sim.increment)
	}
}

func (r *reporter) saved(path string, sim *simulation, took time.Duration) {
	if r.rank == 0 {
		r.event("saved=%d nanoseconds=%d bundle=%s", sim.increment, took.Nanoseconds(), path)
	}
}

// finished says where the result is, and why it is not the one of the last step
// if it isn't.
func (r *reporter) finished(sim *simulation, last, stopped string) {
	if r.mode == progressNone {
		return
	}
	if stopped != "" {
		fmt.Fprintf(r.out, "stopped at step %d: %s\n", sim.increment, stopped)
	}
	if last != "" {
		fmt.Fprintf(r.out, "the last bundle is %s\n", last)
	}
}

func (r *reporter) event(format string, args ...any) {
	if r.events {
		// One write for each line, so that the ranks' lines don't mix.
		fmt.Fprintf(r.out, "@ "+format+"\n", args...)
	}
}

// A hold is a point of a publication at which rank 0 waits for somebody to kill
// the job: what the demo does in the middle of a file could not be hit otherwise.
type hold struct {
	increment int64
	at        string // step of publish.OnStep, "field:ID" for a field
}

// holdLimit is when a hold ends if nobody comes.
const holdLimit = 2 * time.Minute

// publishing is called at the steps of a publication.
func (r *reporter) publishing(increment int64, step publish.Step, detail string) {
	at := string(step)
	if step == publish.StepField {
		at += ":" + detail
	}
	if r.rank == 0 && r.hold.at == at && r.hold.increment == increment {
		r.event("holding=%d at=%s", increment, at)
		time.Sleep(holdLimit)
	}
}
