//go:build hdf5

package runfile_test

import (
	"context"
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// A run in two allocations, each of them the same program with the same configuration.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 {
		if err := halve(context.Background(), comm.Self(), dir); err != nil {
			fmt.Println(err)
		}
	}
	out, err := runfile.ReadRun(context.Background(), dir, "halving")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("times", out.Times)
	fmt.Println("states", out.States)
	// Output:
	// segment 1 begins at 0 s
	// stop: limit of 3 steps
	// segment 2 begins at 3 s
	// done
	// times [0 2 4]
	// states [[1] [0.25] [0.0625]]
}

// halve is a solver with steps of one second.
func halve(ctx context.Context, c *comm.Comm, dir string) (err error) {
	s, err := runfile.Open(ctx, c, runfile.Config{
		Directory: dir, Name: "halving", Resume: true,
		Layout:     runfile.Layout{Unknowns: []runfile.Unknown{{Name: "n", Kind: runfile.Scalar, Unit: "m^-3"}}},
		Initial:    []float64{1},
		TimePoints: []float64{0, 2, 4},
		Stop:       runfile.StopConfig{Steps: 3, Signals: []string{"SIGTERM"}},
	})
	if err != nil {
		return err
	}
	defer func() {
		if closing := s.Close(ctx); err == nil {
			err = closing
		}
	}()
	start := s.Start()
	fmt.Println("segment", start.Segment, "begins at", start.Time, "s")
	state, time := start.State, start.Time
	if err := s.SaveState(ctx, state); err != nil {
		return err
	}
	for !s.Done() {
		next := s.NextStep(1)
		length := next - time
		state[0] /= 2
		time = next
		s.Attempt(runfile.Attempt{Time: time, StepLength: length, Accepted: true})
		if err := s.SaveState(ctx, state); err != nil {
			return err
		}
		out, err := s.Checkpoint(ctx, state, func() (record.Record, error) {
			return record.Of("step_length", length)
		})
		if err != nil {
			return err
		}
		if out.Stop {
			fmt.Println("stop:", out.Reason)
			return nil
		}
	}
	fmt.Println("done")
	return nil
}
