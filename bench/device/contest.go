package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/stats"
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

// table is what was found.
type table struct {
	lines []line
	said  strings.Builder // what else there is to say
}

// A line compares one way with another.
type line struct {
	what         string
	bytes        int64 // that each way moves
	ours, theirs []float64
	yardstick    string
}

// add runs a contest: the first way is the yardstick of all others.
func (t *table) add(ctx context.Context, what string, bytes int64, repeats int, ways ...way) error {
	seconds, err := race(ctx, repeats, ways...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for i, w := range ways[1:] {
		t.lines = append(t.lines, line{what + ": " + w.name, bytes, seconds[i+1], seconds[0], ways[0].name})
	}
	return nil
}

func (t *table) write(out io.Writer) error {
	text := fmt.Sprintf("%-34s %9s %10s %8s  %-12s %10s %8s %6s %6s\n", "what", "MiB", "ms", "GB/s", "yardstick", "ms", "GB/s", "ratio", "spread")
	for _, l := range t.lines {
		ratio, spread := stats.Ratio(l.ours, l.theirs)
		ours, theirs := stats.Median(l.ours), stats.Median(l.theirs)
		text += fmt.Sprintf("%-34s %9.2f %10.3f %8.2f  %-12s %10.3f %8.2f %6.2f %6.2f\n", l.what, float64(l.bytes)/(1<<20),
			1e3*ours, float64(l.bytes)/ours/1e9, l.yardstick, 1e3*theirs, float64(l.bytes)/theirs/1e9, ratio, spread)
	}
	_, err := fmt.Fprint(out, text,
		"Times are medians. The ratio is that of the rates: 1 where the yardstick is reached. The spread is the ratio's.\n", t.said.String())
	return err
}
