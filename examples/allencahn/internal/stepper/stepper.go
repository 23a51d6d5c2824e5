package stepper

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
)

// A Stepper holds the cells of one box. One goroutine uses it at a time.
type Stepper interface {
	// Phi returns the field with the cells of now, which is another one after
	// a step. Cells may be written to it at any time.
	Phi() *field.Field[float64]
	// Stencil is that of the field's storage.
	Stencil() phasefield.Stencil
	// Faces returns the buffers of Gather and Scatter, the same ones at every
	// call.
	Faces() Faces
	// Gather copies the outermost owned cells at the sides with ghost cells to
	// the faces' Out, and has done so when it returns.
	Gather() error
	// Scatter copies the faces' In to the ghost cells. They must not be changed
	// before the next Gather has returned.
	Scatter() error
	// Step advances the owned cells by one time step. The ghost cells become
	// stale.
	Step() error
	// Close gives back all memory, that of the fields too.
	Close() error
}

// Faces are buffers on the host by axis and side, the lower one first.
type Faces [3][2]Face

// A Face is a layer of cells, x fastest. At sides without ghost cells there are
// none.
type Face struct{ Out, In []float64 }

// New returns a stepper for a box, which may be empty, with all cells 0. Without a
// space it works on the host. The space stays the caller's, to be closed after the
// stepper.
func New(space device.Space, m phasefield.Model, domain grid.Domain, box grid.Box, sides phasefield.Sides) (Stepper, error) {
	if space == nil {
		return newHost(m, domain, box, sides)
	}
	s, err := newOnDevice(space, m, domain, box, sides)
	if err != nil {
		return nil, fmt.Errorf("stepper on %s: %w", space.Name(), err)
	}
	return s, nil
}

// ghosts is the width of the halo.
const ghosts = 1

// A pair is the field of now and the one of the step to come.
type pair struct {
	phi, next *field.Field[float64]
	stencil   phasefield.Stencil
}

func newPair(domain grid.Domain, box grid.Box, sides phasefield.Sides, opts ...field.Option) (p pair, err error) {
	opts = append(opts, field.Halo(ghosts))
	if p.phi, err = field.New[float64](domain, box, opts...); err != nil {
		return p, err
	}
	if p.next, err = field.New[float64](domain, box, opts...); err != nil {
		return p, errors.Join(err, p.phi.Free())
	}
	if p.stencil, err = phasefield.NewStencil(p.phi.Layout(), sides); err != nil {
		return p, errors.Join(err, p.free())
	}
	return p, nil
}

func (p *pair) Phi() *field.Field[float64] { return p.phi }

func (p *pair) Stencil() phasefield.Stencil { return p.stencil }

func (p *pair) swap() { p.phi, p.next = p.next, p.phi }

func (p *pair) free() error { return errors.Join(p.phi.Free(), p.next.Free()) }
