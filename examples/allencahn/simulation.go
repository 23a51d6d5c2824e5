package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/stepper"
	"github.com/fieldstone-io/fieldstone/grid"
)

// A simulation is the solver's state on this rank: the owned cells of phi, and the
// number of steps that were made.
type simulation struct {
	comm      *comm.Comm
	model     phasefield.Model
	cut       grid.Decomposition
	space     device.Space // nil: the host
	stepper   stepper.Stepper
	halo      *exchange
	increment int64
}

// newSimulation makes the state at time 0. It is collective, and fails on all ranks
// if it fails on one.
func newSimulation(ctx context.Context, c *comm.Comm, set settings) (*simulation, error) {
	s := &simulation{comm: c, model: set.model}
	space, err := openDevice(ctx, c, set.device)
	if err == nil {
		s.space = space
		err = s.begin(set)
	}
	if err := c.Agree(ctx, err); err != nil {
		_ = s.close() // what is wrong was said
		return nil, err
	}
	return s, nil
}

func (s *simulation) begin(set settings) error {
	h := set.model.Spacing
	domain := grid.Domain{Size: set.grid, Spacing: [3]float64{h, h, h}, Periodic: set.periodic}
	var opts []grid.Option
	if p := set.processes; p != [3]int{} {
		opts = append(opts, grid.ProcessGrid(p[0], p[1], p[2]))
	}
	var err error
	if s.cut, err = grid.Decompose(domain, s.comm.Size(), opts...); err != nil {
		return err
	}
	box := s.cut.Box(s.comm.Rank())
	s.halo = newExchange(s.comm, s.cut)
	if s.stepper, err = stepper.New(s.space, set.model, domain, box, s.halo.sides()); err != nil {
		return err
	}
	phi, err := s.stepper.Phi().MutableView()
	if err != nil {
		return err
	}
	phasefield.Fill(phi, s.stepper.Phi().Layout(), box, set.shape(domain))
	return nil
}

// shape is the state at time 0.
func (set settings) shape(d grid.Domain) phasefield.Shape {
	var center, edge [3]float64
	for axis, n := range d.Size {
		center[axis] = float64(n-1) / 2 * d.Spacing[axis]
		edge[axis] = float64(n) * d.Spacing[axis]
	}
	switch set.start {
	case startPlane:
		return set.model.Plane(d, center[0])
	case startRandom:
		return phasefield.Random(d, set.seed)
	}
	radius := set.radius
	if radius == 0 {
		radius = 3 * min(edge[0], edge[1], edge[2]) / 8
	}
	return set.model.Sphere(d, center, radius)
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
	err := s.halo.refresh(ctx, s.stepper)
	if err == nil {
		err = s.stepper.Step()
	}
	if err != nil {
		return fmt.Errorf("step %d: %w", s.increment+1, err)
	}
	s.increment++
	return nil
}

// measure returns the free energy, and the part of the domain that is of the phase
// 1. It is collective, and brings the whole field to the host.
func (s *simulation) measure(ctx context.Context) (energy, share float64, err error) {
	if err := s.halo.refresh(ctx, s.stepper); err != nil {
		return 0, 0, err
	}
	phi, err := s.stepper.Phi().View()
	if err != nil {
		return 0, 0, err
	}
	stencil := s.stepper.Stencil()
	sums := []float64{s.model.Energy(phi, stencil), phasefield.Share(phi, stencil)}
	if err := s.comm.AllReduceFloat64(ctx, comm.Sum, sums); err != nil {
		return 0, 0, err
	}
	return sums[0], sums[1] / float64(s.cut.Domain().Cells()), nil
}

// close gives back memory and device. It is not collective.
func (s *simulation) close() error {
	var errs []error
	if s.stepper != nil {
		errs = append(errs, s.stepper.Close())
	}
	if s.space != nil {
		errs = append(errs, s.space.Close())
	}
	return errors.Join(errs...)
}
