package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/comm"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: worker job.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var job plan.Job
	if err := json.Unmarshal(data, &job); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c, err := comm.World()
	if err != nil {
		return err
	}
	if err := measure(context.Background(), c, job, contestants, os.Stdout); err != nil {
		return err
	}
	return comm.Finalize()
}

// measure works through the cases of a job. It is collective.
func measure(ctx context.Context, c *comm.Comm, job plan.Job, all map[string]contestant, out io.Writer) error {
	memory, err := arenaFor(c, job.Launch.Cases)
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	w := &worker{c: c, job: job, all: all, memory: memory, encoder: json.NewEncoder(out), now: now, sleepUntil: sleepUntil}
	defer unreserve(memory.memory)
	for _, k := range job.Launch.Cases {
		if k.Ranks() != c.Size() {
			return fmt.Errorf("case %q is for %d ranks, not for %d", k.Name, k.Ranks(), c.Size())
		}
		if err := w.run(ctx, k); err != nil {
			return fmt.Errorf("case %q: %w", k.Name, err)
		}
	}
	return nil
}

type worker struct {
	c         *comm.Comm
	job       plan.Job
	all       map[string]contestant
	memory    *arena
	libraries libraries
	before    *resident // see measureMemory
	encoder   *json.Encoder

	now        func() int64 // the clock of all ranks
	sleepUntil func(t int64)
}

func (w *worker) report(l plan.Line) error {
	if w.c.Rank() != 0 {
		return nil
	}
	return w.encoder.Encode(l)
}

func (w *worker) run(ctx context.Context, k plan.Case) error {
	s, err := newState(w.c, k, w.memory)
	if err := w.c.Agree(ctx, err); err != nil {
		return err
	}
	switch k.Kind {
	case plan.Save, plan.Restart, plan.Kernel:
		return w.compete(ctx, s)
	case plan.Bundle:
		return saveBundle(s, w.bundle())
	case plan.Memory:
		return w.measureMemory(ctx, s)
	}
	return errors.New("unknown kind " + string(k.Kind))
}
