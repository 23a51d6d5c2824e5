package stepper

import (
	"iter"

	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/grid"
)

// A host is a Stepper in host memory.
type host struct {
	pair
	rates phasefield.Rates
	seams []seam
	faces Faces
}

func newHost(m phasefield.Model, domain grid.Domain, box grid.Box, sides phasefield.Sides) (*host, error) {
	p, err := newPair(domain, box, sides)
	if err != nil {
		return nil, err
	}
	h := &host{pair: p, rates: m.Rates(), seams: seams(p.phi.Layout(), sides)}
	for _, s := range h.seams {
		n := s.cells()
		h.faces[s.axis][s.side] = Face{Out: make([]float64, n), In: make([]float64, n)}
	}
	return h, nil
}

func (h *host) Faces() Faces { return h.faces }

func (h *host) Gather() error {
	phi, err := h.phi.View()
	if err != nil {
		return err
	}
	for _, s := range h.seams {
		out := h.faces[s.axis][s.side].Out
		for row := range h.rows(s.inner, s.size) {
			out = out[copy(out, phi[row:row+s.size[0]]):]
		}
	}
	return nil
}

func (h *host) Scatter() error {
	phi, err := h.phi.MutableView()
	if err != nil {
		return err
	}
	for _, s := range h.seams {
		in := h.faces[s.axis][s.side].In
		for row := range h.rows(s.ghosts, s.size) {
			in = in[copy(phi[row:row+s.size[0]], in):]
		}
	}
	return nil
}

// rows yields the places of the first cells of a layer's rows along x.
func (h *host) rows(first int, size [3]int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := range size[2] {
			for j := range size[1] {
				if !yield(first + j*h.stencil.Row + k*h.stencil.Slice) {
					return
				}
			}
		}
	}
}

func (h *host) Step() error {
	phi, err := h.phi.View()
	if err != nil {
		return err
	}
	next, err := h.next.MutableView()
	if err != nil {
		return err
	}
	h.rates.Step(next, phi, h.stencil)
	h.swap()
	return nil
}

func (h *host) Close() error { return h.free() }
