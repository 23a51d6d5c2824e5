package main

import (
	"context"
	"math"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/examples/dendrite/internal/exact"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// binCells is the width of a radial bin in cells.
const binCells = 2

// Names of the unknowns in run files.
const (
	namePhi    = "phi"
	nameSolid  = "solid_fraction"
	nameEnergy = "free_energy"
	nameRadial = "phi_radial"
)

// An observer works out what the output of a run says of the crystal: the part of the
// domain that is solid, the free energy, and phi averaged over the cells at about the
// same distance from the nucleus. Sums over the cells are exact, and rounded once, so
// that the result has the same bits however the cells are shared among the ranks.
type observer struct {
	sim    *simulation
	layout runfile.Layout

	cells   []int64     // of each bin, on all ranks
	sums    []exact.Sum // of the energy, and of phi in each bin
	density []float64   // of the energy in a row
	state   []float64
	at      int64 // increment that state is of; -1: none
}

// newObserver is collective.
func newObserver(ctx context.Context, sim *simulation) (*observer, error) {
	domain := sim.phi.Domain()
	// The bins reach as far as full circles do: so none is empty. The first may reach
	// farther, in a domain that is all but a line.
	bins := max(1, min(domain.Size[0], domain.Size[1])/(2*binCells))
	faces := make([]float64, bins+1)
	for k := range faces {
		faces[k] = float64(k*binCells) * sim.model.Spacing
	}
	o := &observer{
		sim: sim,
		layout: runfile.Layout{R: faces, Unknowns: []runfile.Unknown{
			{Name: namePhi, Kind: runfile.Field, Domain: domain},
			{Name: nameSolid, Kind: runfile.Scalar},
			{Name: nameEnergy, Kind: runfile.Scalar},
			{Name: nameRadial, Kind: runfile.Radial, Components: 1},
		}},
		cells:   make([]int64, bins),
		sums:    make([]exact.Sum, 1+bins),
		density: make([]float64, sim.phi.Box().Size[0]),
		at:      -1,
	}
	o.state = make([]float64, o.layout.Size())
	box := sim.phi.Box()
	for j := range box.Size[1] {
		for i := range box.Size[0] {
			if k := o.bin(i, j); k < bins {
				o.cells[k]++
			}
		}
	}
	return o, sim.comm.AllReduceInt64(ctx, comm.Sum, o.cells)
}

// bin is the number of the radial bin of an owned cell, by the distance of its centre
// from that of the domain, which may be beyond the last one. A bin has its inner face.
func (o *observer) bin(i, j int) int {
	size, low := o.sim.phi.Domain().Size, o.sim.phi.Box().Low
	// In halves of a cell distances are roots of integers: exact.
	x, y := 2*(low[0]+i)-(size[0]-1), 2*(low[1]+j)-(size[1]-1)
	return int(math.Sqrt(float64(x*x+y*y))) / (2 * binCells)
}

// observe brings the state up to the present increment. It is collective, and the
// state is the same on all ranks.
func (o *observer) observe(ctx context.Context) error {
	s := o.sim
	if o.at == s.increment {
		return nil
	}
	phi, temp, err := s.mutable()
	if err != nil {
		return err
	}
	if err := s.halo.refresh(ctx, phi); err != nil {
		return err
	}
	clear(o.sums)
	layout := s.phi.Layout()
	size := s.phi.Box().Size
	if s.phi.Box().Empty() {
		size = [3]int{}
	}
	for j := range size[1] {
		s.stepper.Energy(phi, temp, j, o.density)
		row := layout.Index(0, j, 0)
		for i, p := range phi[row : row+size[0]] {
			o.sums[0].Add(o.density[i])
			if k := o.bin(i, j); k < len(o.cells) {
				o.sums[1+k].Add(p)
			}
		}
	}
	if err := exact.Reduce(ctx, s.comm, o.sums); err != nil {
		return err
	}
	solid, err := s.solid(ctx)
	if err != nil {
		return err
	}
	h := s.model.Spacing
	o.state[0], o.state[1] = solid, o.sums[0].Float64()*h*h
	for k, n := range o.cells {
		o.state[2+k] = o.sums[1+k].Float64() / float64(n)
	}
	o.at = s.increment
	return nil
}
