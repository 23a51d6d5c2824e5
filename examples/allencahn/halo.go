package main

import (
	"context"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/stepper"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// An exchange fills ghost cells from the neighbours' owned cells. The stencil needs
// none at edges and corners, so every face is exchanged for itself.
type exchange struct {
	c         *comm.Comm
	neighbors [3][2]int // by axis and side: rank, this one or none
}

// none is the partner of [comm.Comm.SendRecv] at a wall.
const none = -1

func newExchange(c *comm.Comm, cut grid.Decomposition) *exchange {
	e := &exchange{c: c}
	for axis := range e.neighbors {
		for side := range e.neighbors[axis] {
			e.neighbors[axis][side] = none
			if rank, ok := cut.Neighbor(c.Rank(), axis, 2*side-1); ok {
				e.neighbors[axis][side] = rank
			}
		}
	}
	return e
}

// sides tells where there are ghost cells.
func (e *exchange) sides() (s phasefield.Sides) {
	for axis := range s {
		for side, rank := range e.neighbors[axis] {
			switch rank {
			case none:
				s[axis][side] = phasefield.Wall
			case e.c.Rank():
				s[axis][side] = phasefield.Wrap
			default:
				s[axis][side] = phasefield.Ghost
			}
		}
	}
	return s
}

// refresh fills the ghost cells. It is collective.
func (e *exchange) refresh(ctx context.Context, s stepper.Stepper) error {
	if err := s.Gather(); err != nil {
		return err
	}
	faces := s.Faces()
	for axis := range faces {
		for side := range faces[axis] {
			// Everybody sends to one side and receives from the other.
			to, out := e.partner(axis, side), faces[axis][side].Out
			from, in := e.partner(axis, 1-side), faces[axis][1-side].In
			if to == none && from == none {
				continue
			}
			if err := e.c.SendRecv(ctx, to, pack.Bytes(out), from, pack.Bytes(in), 2*axis+side); err != nil {
				return err
			}
		}
	}
	return s.Scatter()
}

// partner is the other rank at a side, none where there is a wall or this rank's
// own other end.
func (e *exchange) partner(axis, side int) int {
	if rank := e.neighbors[axis][side]; rank != e.c.Rank() {
		return rank
	}
	return none
}
