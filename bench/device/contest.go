package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/stats"
	"github.com/fieldstone-io/fieldstone/device"
)

// A way moves bytes.
type way struct {
	name    string
	prepare func() error // outside of the time; may be nil
	run     func() error // ends when the bytes have arrived
	times   int          // that it moves them in one run; 0 is once
}

// race lets the ways take turns, each as often as first as last, and returns the
// seconds of each. A round before those that count is dropped.
func race(ctx context.Context, repeats int, ways ...way) ([][]float64, error) {
	seconds := make([][]float64, len(ways))
	for round := range repeats + 1 {
		for i := range ways {
			n := (i + round) % len(ways)
			w := ways[n]
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if w.prepare != nil {
				if err := w.prepare(); err != nil {
					return nil, fmt.Errorf("%s: %w", w.name, err)
				}
			}
			start := time.Now()
			if err := w.run(); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				seconds[n] = append(seconds[n], time.Since(start).Seconds()/float64(max(w.times, 1)))
			}
		}
	}
	return seconds, nil
}

// report writes what is found as soon as it is found, a line at a time, for whoever
// measures may be stopped at any time.
type report struct {
	out io.Writer

	mu     sync.Mutex // fields warn from any goroutine
	headed bool
	err    error // of the first write that failed
}

// say writes a line.
func (r *report) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := fmt.Fprintf(r.out, format+"\n", args...); err != nil && r.err == nil {
		r.err = err
	}
}

// Write is for the logger, which writes whole lines.
func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *report) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// room reports whether the device has so much free memory, and says so if it hasn't.
// Others may use it too, so some is left.
func (r *report) room(space device.Space, what string, bytes int64) (bool, error) {
	memory, err := space.MemoryInfo()
	if err != nil {
		return false, err
	}
	const rest = 32 << 20
	if memory.Free < bytes+rest {
		r.say("%s: left out, for it needs %d MiB of the device's memory, and %d are free", what, (bytes+rest)>>20, memory.Free>>20)
		return false, nil
	}
	return true, nil
}

// add runs a contest and writes a line for each way: the first is the yardstick.
func (r *report) add(ctx context.Context, what string, bytes int64, repeats int, ways ...way) error {
	_, err := r.compare(ctx, what, bytes, repeats, 1, ways...)
	return err
}

// compare is add for several yardsticks, the first of the ways, and returns the seconds of
// all.
func (r *report) compare(ctx context.Context, what string, bytes int64, repeats, yardsticks int, ways ...way) ([][]float64, error) {
	seconds, err := race(ctx, repeats, ways...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if !r.headed {
		r.headed = true
		r.say("%-40s %9s %10s %8s  %-14s %10s %8s %6s %6s", "what", "MiB", "ms", "GB/s", "yardstick", "ms", "GB/s", "ratio", "spread")
	}
	for i, w := range ways[yardsticks:] {
		for j, y := range ways[:yardsticks] {
			name := what + ": " + w.name
			if w.name == "" {
				name = what
			}
			ours, theirs := seconds[yardsticks+i], seconds[j]
			ratio, spread := stats.Ratio(ours, theirs)
			a, b := stats.Median(ours), stats.Median(theirs)
			r.say("%-40s %9.2f %10.3f %8.2f  %-14s %10.3f %8.2f %6.2f %6.2f", name, float64(bytes)/(1<<20),
				1e3*a, float64(bytes)/a/1e9, y.name, 1e3*b, float64(bytes)/b/1e9, ratio, spread)
		}
	}
	return seconds, nil
}

// cost measures something that moves nothing to speak of, and writes a line. Each time it
// is done often.
func (r *report) cost(ctx context.Context, what string, repeats, often int, do func() error) error {
	seconds, err := race(ctx, repeats, way{name: what, times: often, run: func() error {
		for range often {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	r.took(what, stats.Median(seconds[0]))
	return nil
}

func (r *report) took(what string, seconds float64) { r.say("%-60s %12.2f us", what, 1e6*seconds) }
