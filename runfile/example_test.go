//go:build hdf5

package runfile_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// temporary makes a directory for an example.
func temporary() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

func ExampleWriteOutput() {
	dir, remove := temporary()
	defer remove()
	settings, err := record.Of("run", must(record.Of("description", "decay")))
	if err != nil {
		log.Fatal(err)
	}
	s := &runfile.Solution{
		Settings: settings,
		Layout: runfile.Layout{
			R: []float64{0, 0.5, 1},
			Unknowns: []runfile.Unknown{
				{Name: "current", Kind: runfile.Scalar, Unit: "A"},
				{Name: "density", Kind: runfile.Radial, Unit: "m^-3", Components: 1},
			},
		},
		Times:  []float64{0, 0.1},
		States: [][]float64{{2, 1, 1}, {1.5, 0.9, 0.8}},
	}
	path := filepath.Join(dir, "decay.h5")
	if err := runfile.WriteOutput(context.Background(), path, s, runfile.Atomic()); err != nil {
		log.Fatal(err)
	}

	got, err := runfile.ReadOutput(context.Background(), []string{path})
	if err != nil {
		log.Fatal(err)
	}
	from, to := got.Layout.Range("density")
	fmt.Println(got.Times, got.States[1][from:to], got.Layout.Unknown("density").Unit)
	// Output: [0 0.1] [0.9 0.8] m^-3
}

func must(r record.Record, err error) record.Record {
	if err != nil {
		log.Fatal(err)
	}
	return r
}

// A field is given and read box by box, never as a whole.
func ExampleFields() {
	dir, remove := temporary()
	defer remove()
	domain := grid.Domain{Size: [3]int{4, 4, 2}, Spacing: [3]float64{1, 1, 1}}
	s := &runfile.Solution{
		Layout: runfile.Layout{Unknowns: []runfile.Unknown{{Name: "phi", Kind: runfile.Field, Domain: domain}}},
		Times:  []float64{0},
		States: [][]float64{{}},
	}
	plane := func(_ context.Context, _ string, _ int, box grid.Box, dst []float64) error {
		for i := range dst {
			dst[i] = float64(box.Low[2] + i/(box.Size[0]*box.Size[1]))
		}
		return nil
	}
	path := filepath.Join(dir, "phi.h5")
	if err := runfile.WriteOutput(context.Background(), path, s, runfile.Fields(plane)); err != nil {
		log.Fatal(err)
	}

	got, err := runfile.ReadOutput(context.Background(), []string{path})
	if err != nil {
		log.Fatal(err)
	}
	column := make([]float64, 2)
	err = got.ReadField(context.Background(), "phi", 0, grid.Box{Low: [3]int{3, 3, 0}, Size: [3]int{1, 1, 2}}, column)
	fmt.Println(column, err)
	// Output: [0 1] <nil>
}

func ExampleReadCheckpoint() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	k, err := runfile.ReadCheckpoint(ctx, dir, "decay")
	fmt.Println("at first:", k == nil, err)

	layout := runfile.Layout{Unknowns: []runfile.Unknown{{Name: "current", Kind: runfile.Scalar, Unit: "A"}}}
	for i := range 2 {
		k := &runfile.Checkpoint{
			Layout: layout, Time: float64(i), State: []float64{2}, Segment: 1,
			Stepper: must(record.Of("step_length", 0.25)), HasStepper: true,
		}
		if err := runfile.WriteCheckpoint(ctx, dir, "decay", k); err != nil {
			log.Fatal(err)
		}
	}
	// Whatever happens to the last one, there is the one before.
	if err := os.Truncate(runfile.CheckpointFile(dir, "decay"), 1000); err != nil {
		log.Fatal(err)
	}
	k, err = runfile.ReadCheckpoint(ctx, dir, "decay", runfile.Warn(func(string) {}))
	if err != nil {
		log.Fatal(err)
	}
	step, err := k.Stepper.Float("step_length")
	fmt.Println("previous:", k.Previous, k.Time, step, err)

	// A run that can read neither must not start over.
	if err := os.Truncate(runfile.PreviousFile(dir, "decay"), 1000); err != nil {
		log.Fatal(err)
	}
	_, err = runfile.ReadCheckpoint(ctx, dir, "decay")
	fmt.Println("neither:", err != nil)
	// Output:
	// at first: true <nil>
	// previous: true 0 0.25 <nil>
	// neither: true
}

func ExampleReadState() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	s := &runfile.Solution{
		Layout: runfile.Layout{Unknowns: []runfile.Unknown{{Name: "current", Kind: runfile.Scalar}}},
		Times:  []float64{0, 1, 2},
		States: [][]float64{{3}, {2}, {1}},
	}
	path := filepath.Join(dir, "decay.h5")
	if err := runfile.WriteOutput(ctx, path, s); err != nil {
		log.Fatal(err)
	}
	last, err := runfile.ReadState(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	first, err := runfile.ReadState(ctx, path, runfile.State(0))
	if err != nil {
		log.Fatal(err)
	}
	_, err = runfile.ReadState(ctx, path, runfile.State(3))
	fmt.Println(last.State, first.State, errors.Is(err, runfile.ErrNoState))
	// Output: [1] [3] true
}
