package publish_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

func ExampleOpenBundle() {
	b, err := publish.OpenBundle("testdata/golden-v1")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	m := b.Metadata()
	fmt.Printf("time %v, increment %d, %v cells, fields %q\n", m.AcceptedTime, m.AcceptedIncrement, m.Domain.Size, b.Fields())

	// The cells with y index 1 of the lowest two planes, x fastest.
	box := grid.Box{Low: [3]int{0, 1, 0}, Size: [3]int{5, 1, 2}}
	cells := make([]float64, box.Cells())
	if err := b.ReadBox("temperature", box, cells); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cells)

	stats, err := b.Stats(context.Background(), "temperature", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v to %v, mean %v\n", stats.Min, stats.Max, stats.Mean)
	// Output:
	// time 12.375, increment 99, [5 4 3] cells, fields ["psi" "temperature"]
	// [100 101 102 103 104 10100 10101 10102 10103 10104]
	// 0 to 20304, mean 10152
}

func ExampleBundle_Verify() {
	b, err := publish.OpenBundle("testdata/golden-v2")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	file := ""
	err = b.Verify(context.Background(), func(now string, done, total int64) {
		if now != file {
			file = now
			fmt.Println("reading", file)
		}
	})
	fmt.Println(err)
	// Output:
	// reading metadata.json
	// reading sidecar.json
	// reading fields/phi.bin
	// reading fields/heat flux µ.bin
	// <nil>
}

func ExampleParseMetadata() {
	_, err := publish.ParseMetadata([]byte(`{"format_version": 2, "accepted_time": "soon"}`))
	fmt.Println(err)
	// Output:
	// accepted_time: want a number, got a string
}

// The counter is a condition of its own: it tells how often it was applied.
type counter struct{ applied int }

func (b *counter) Config() (json.RawMessage, error) {
	return json.RawMessage(`{"type":"counter"}`), nil
}

func (b *counter) CheckpointState(context.Context, *comm.Comm) (json.RawMessage, error) {
	return json.Marshal(b.applied)
}

func (b *counter) RestoreCheckpointState(state json.RawMessage) error {
	if state == nil {
		return fmt.Errorf("counter: the saved state is missing")
	}
	var n int
	if err := json.Unmarshal(state, &n); err != nil {
		return fmt.Errorf("counter: %w", err)
	}
	b.applied = n
	return nil
}

func ExampleBoundary() {
	ctx, c := context.Background(), comm.Self()
	records, err := publish.BoundaryRecords(ctx, c, []publish.Boundary{&counter{applied: 40}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s\n", records[0].Config, records[0].State)

	restarted := &counter{}
	if err := publish.RestoreBoundaries(ctx, c, records, []publish.Boundary{restarted}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(restarted.applied)
	fmt.Println(publish.RestoreBoundaries(ctx, c, nil, []publish.Boundary{restarted}))
	// Output:
	// {"type":"counter"} 40
	// 40
	// rank 0: boundary conditions don't fit: boundary condition 0: counter: the saved state is missing (the bundle has no boundary_conditions)
}

func ExampleMoving() {
	domain := grid.Domain{Size: [3]int{100, 1, 1}, Spacing: [3]float64{0.5, 1, 1}, Periodic: [3]bool{true, true, true}}
	front, err := publish.NewMoving(domain, publish.MovingConfig{Level: 0.5, Distance: 10, Width: 5, Value: -1})
	if err != nil {
		log.Fatal(err)
	}
	// In a solver Observe, Advance and Apply follow each step.
	state, err := front.CheckpointState(context.Background(), comm.Self())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(state))
	// Output:
	// {"xpos":0,"idx":0,"first":true}
}
