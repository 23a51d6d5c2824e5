package publish_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

// A field is published by three ranks and restarted on two, which cut the domain
// in another way and use another halo.
func Example() {
	dir, err := os.MkdirTemp("", "fieldstone")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bundle := filepath.Join(dir, "step_40")
	domain := grid.Domain{Size: [3]int{64, 48, 1}, Spacing: [3]float64{0.1, 0.1, 0.1}, Periodic: [3]bool{true, true, true}}
	newField := func(c *comm.Comm, halo int) (*field.Field[float64], error) {
		cut, err := grid.Decompose(domain, c.Size())
		if err != nil {
			return nil, err
		}
		return field.New[float64](domain, cut.Box(c.Rank()), field.Halo(halo))
	}
	ctx := context.Background()

	err = comm.Run(3, func(c *comm.Comm) error { // under mpirun: c, err := comm.World()
		psi, err := newField(c, 2)
		if err != nil {
			return err
		}
		data, err := psi.MutableView()
		if err != nil {
			return err
		}
		for cell := range psi.Owned().Cells() {
			data[psi.Index(cell[0], cell[1], cell[2])] = float64(psi.Global(cell[0], cell[1], cell[2])[0])
		}
		return publish.SaveBundle(ctx, c, bundle, publish.State{
			Fields: []field.Named{{ID: "psi", Field: psi}}, Time: 0.4, Increment: 40, Method: "euler"})
	})
	if err != nil {
		log.Fatal(err)
	}

	err = comm.Run(2, func(c *comm.Comm) error {
		psi, err := newField(c, 1)
		if err != nil {
			return err
		}
		loaded, err := publish.LoadBundle(ctx, c, bundle, publish.Request{
			Fields: []field.Named{{ID: "psi", Field: psi}}, Method: "euler"})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("restarted at time", loaded.Metadata.AcceptedTime, "verified:", loaded.Verified)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: restarted at time 0.4 verified: true
}

// A solver that saves by itself keeps the plan, with its memory, from one bundle to
// the next.
func ExampleReuse() {
	dir, err := os.MkdirTemp("", "fieldstone")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, c := context.Background(), comm.Self()
	domain := grid.Domain{Size: [3]int{8, 8, 8}, Spacing: [3]float64{1, 1, 1}}
	psi, err := field.New[float64](domain, domain.Box(), field.Halo(1))
	if err != nil {
		log.Fatal(err)
	}

	plans := publish.NewPlans() // each rank has its own
	defer plans.Close()
	for step := range int64(3) {
		path := filepath.Join(dir, publish.StepName(step))
		state := publish.State{Fields: []field.Named{{ID: "psi", Field: psi}}, Time: float64(step), Increment: step}
		if err := publish.SaveBundle(ctx, c, path, state, publish.Reuse(plans)); err != nil {
			log.Fatal(err)
		}
		fmt.Println("saved", publish.StepName(step))
	}
	// Output:
	// saved step_0
	// saved step_1
	// saved step_2
}

// Nothing is ever overwritten.
func ExampleSaveBundle() {
	dir, err := os.MkdirTemp("", "fieldstone")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	domain := grid.Domain{Size: [3]int{8, 8, 8}, Spacing: [3]float64{1, 1, 1}}
	phi, err := field.New[float64](domain, domain.Box())
	if err != nil {
		log.Fatal(err)
	}
	state := publish.State{Fields: []field.Named{{ID: "phi", Field: phi}}, Increment: 1}
	for range 2 {
		err := publish.SaveBundle(context.Background(), comm.Self(), filepath.Join(dir, "step_1"), state)
		fmt.Println(err == nil, errors.Is(err, publish.ErrExists))
	}
	// Output:
	// true false
	// false true
}

// A service saves every 10 steps and restarts from the newest good bundle.
func ExampleService() {
	dir, err := os.MkdirTemp("", "fieldstone")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cfg, err := publish.ParseConfig(fmt.Appendf(nil,
		`{"restart_from": "latest", "checkpoint": {"every": 10, "directory": %q, "keep": 2}}`, filepath.Join(dir, "ckpt")))
	if err != nil {
		log.Fatal(err)
	}
	ctx, c := context.Background(), comm.Self()
	domain := grid.Domain{Size: [3]int{8, 8, 8}, Spacing: [3]float64{1, 1, 1}}
	for range 2 {
		phi, err := field.New[float64](domain, domain.Box())
		if err != nil {
			log.Fatal(err)
		}
		clock := &stepClock{dt: 0.5}
		solver := publish.Solver{Fields: []field.Named{{ID: "phi", Field: phi}}, Clock: clock, Method: "euler"}
		service, err := publish.NewService(ctx, c, cfg)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := service.Restore(ctx, solver); err != nil {
			log.Fatal(err)
		}
		fmt.Println("from step", clock.step)
		for range 25 {
			clock.step++ // and one step of the solver
			out, err := service.MaybeSave(ctx, solver)
			if err != nil {
				log.Fatal(err)
			}
			if out.Saved {
				fmt.Println("saved", filepath.Base(out.Path))
			}
		}
		service.Close()
	}
	// Output:
	// from step 0
	// saved step_10
	// saved step_20
	// from step 20
	// saved step_30
	// saved step_40
}

// stepClock is a clock with steps of equal length.
type stepClock struct {
	step int64
	dt   float64
}

func (c *stepClock) Accepted() (int64, float64) { return c.step, c.TimeAt(c.step) }
func (c *stepClock) TimeAt(step int64) float64  { return float64(step) * c.dt }
func (c *stepClock) Restore(n int64, _ float64) error {
	c.step = n
	return nil
}

// Two fields are dumped as one series; the run then goes on from an earlier state.
func ExampleNewDumps() {
	dir, err := os.MkdirTemp("", "fieldstone")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	domain := grid.Domain{Size: [3]int{16, 16, 1}, Spacing: [3]float64{0.1, 0.1, 0.1}}
	phi, err := field.New[float64](domain, domain.Box())
	if err != nil {
		log.Fatal(err)
	}
	heat, err := field.New[float32](domain, domain.Box())
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	dumps, err := publish.NewDumps(ctx, comm.Self(), filepath.Join(dir, "melt_%s_%04d.bin"),
		[]field.Named{{ID: "phi", Field: phi}, {ID: "T", Field: heat}})
	if err != nil {
		log.Fatal(err)
	}
	defer dumps.Close()
	for increment := int64(0); increment <= 20; increment += 10 {
		if _, err := dumps.Write(ctx, increment, 0.01*float64(increment)); err != nil {
			log.Fatal(err)
		}
	}
	// The state of increment 10 was loaded: what was dumped after it leaves the series.
	if err := dumps.Rewind(ctx, 10); err != nil {
		log.Fatal(err)
	}
	paths, err := dumps.Write(ctx, 15, 0.125)
	if err != nil {
		log.Fatal(err)
	}
	for _, path := range append(paths, filepath.Join(dir, "melt.xmf")) {
		fmt.Println(filepath.Base(path))
	}
	// Output:
	// melt_phi_0015.bin
	// melt_T_0015.bin
	// melt.xmf
}
