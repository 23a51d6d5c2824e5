package main

import (
	"context"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/examples/dendrite/internal/kobayashi"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
)

// A simulation is the solver's state on this rank: the owned cells of two
// fields, and the number of steps that were made.
type simulation struct {
	comm      *comm.Comm
	model     kobayashi.Model
	phi, temp *field.Field[float64]
	stepper   *kobayashi.Stepper
	halo      *exchange
	increment int64
}

// newSimulation makes the state at time 0. It is not collective, and fails on
// all ranks or on none unless memory runs out.
func newSimulation(c *comm.Comm, set settings) (*simulation, error) {
	h := set.Model.Spacing
	domain := grid.Domain{
		Size:    [3]int{set.Grid[0], set.Grid[1], 1},
		Spacing: [3]float64{h, h, h},
		// The plane is its own neighbour above and below.
		Periodic: [3]bool{set.Periodic[0], set.Periodic[1], true},
	}
	var opts []grid.Option
	if set.processes != [2]int{} {
		opts = append(opts, grid.ProcessGrid(set.processes[0], set.processes[1], 1))
	}
	cut, err := grid.Decompose(domain, c.Size(), opts...)
	if err != nil {
		return nil, err
	}
	box := cut.Box(c.Rank())

	s := &simulation{comm: c, model: set.Model}
	for _, f := range []**field.Field[float64]{&s.phi, &s.temp} {
		*f, err = field.New[float64](domain, box, field.HaloXYZ(set.halo, set.halo, 0))
		if err != nil {
			return nil, err
		}
	}
	s.stepper, err = kobayashi.NewStepper(set.Model, domain, box, s.phi.Layout())
	if err != nil {
		return nil, err
	}
	s.halo = newExchange(c, cut, s.phi.Layout())

	phi, temp, err := s.mutable()
	if err != nil {
		return nil, err
	}
	s.stepper.Start(phi, temp)
	return s, nil
}

// mutable returns the padded storage of both fields.
func (s *simulation) mutable() (phi, temp []float64, err error) {
	if phi, err = s.phi.MutableView(); err == nil {
		temp, err = s.temp.MutableView()
	}
	return phi, temp, err
}

// A simulation is its own clock, a publish.DerivedClock: the time follows from the
// number of steps alone, so that a restart can't change it.

// TimeAt returns the simulated time after so many steps.
func (s *simulation) TimeAt(increment int64) float64 { return float64(increment) * s.model.Step }

// Accepted returns the number of steps and the simulated time.
func (s *simulation) Accepted() (int64, float64) { return s.increment, s.TimeAt(s.increment) }

// Restore sets the number of steps; the service has compared the time.
func (s *simulation) Restore(increment int64, _ float64) error {
	s.increment = increment
	return nil
}

// advance makes one step. It is collective.
func (s *simulation) advance(ctx context.Context) error {
	phi, temp, err := s.mutable()
	if err != nil {
		return err
	}
	if err := s.halo.refresh(ctx, phi, temp); err != nil {
		return fmt.Errorf("step %d: %w", s.increment, err)
	}
	s.stepper.Step(phi, temp, s.increment)
	s.increment++
	return nil
}

// solid is the part of the domain that is crystal. It is collective.
func (s *simulation) solid(ctx context.Context) (float64, error) {
	phi, err := s.phi.View()
	if err != nil {
		return 0, err
	}
	cells := []int64{s.stepper.Solid(phi)}
	if err := s.comm.AllReduceInt64(ctx, comm.Sum, cells); err != nil {
		return 0, err
	}
	return float64(cells[0]) / float64(s.phi.Domain().Cells()), nil
}
