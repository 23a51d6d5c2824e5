package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }

func init() {
	mpitest.Register("dendrite", func(c *comm.Comm, args []string) error {
		set, err := parse(args, os.Stderr)
		if err != nil {
			return err
		}
		return run(context.Background(), c, set, os.Stdout)
	})
}

// observed returns the state of a run's output after some steps.
func observed(ctx context.Context, c *comm.Comm, set settings) ([]float64, error) {
	sim, err := newSimulation(c, set)
	if err != nil {
		return nil, err
	}
	o, err := newObserver(ctx, sim)
	if err != nil {
		return nil, err
	}
	for sim.increment < set.Steps {
		if err := sim.advance(ctx); err != nil {
			return nil, err
		}
		// What is observed on the way has no influence.
		if sim.increment%7 == int64(set.halo) {
			if err := o.observe(ctx); err != nil {
				return nil, err
			}
		}
	}
	err = o.observe(ctx)
	return o.state, err
}

// By MPI, where it is there.
func TestObservedNumbersHaveTheSameBitsOnAnyRanks(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3, 4}, func(t *mpitest.T, c *comm.Comm) {
		set := crossing([2]bool{true, false})
		want, err := observed(t.Context(), comm.Self(), set)
		if err != nil {
			t.Fatal(err)
		}
		for _, processes := range [][2]int{{c.Size(), 1}, {1, c.Size()}, {2, c.Size() / 2}} {
			if processes[0]*processes[1] != c.Size() {
				continue
			}
			set.processes = processes
			got, err := observed(t.Context(), c, set)
			if err != nil {
				t.Fatal(err)
			}
			if err := sameBits(got, want); err != nil {
				t.Errorf("%d x %d ranks: %v", processes[0], processes[1], err)
			}
		}
	})
}

func sameBits(got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d numbers, want %d", len(got), len(want))
	}
	for i := range want {
		if bits(got[i]) != bits(want[i]) {
			return fmt.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}
