package stepper

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// An onDevice is a Stepper in the memory of a device. All its work is in one
// stream, so that only faces that come to the host have to be waited for.
type onDevice struct {
	pair
	rates  phasefield.Rates
	stream device.Stream
	kernel device.Kernel
	blocks int
	faces  Faces
	movers []mover
	args   device.Args
	own    []func() error // gives back what was made, the last one first
}

// The shape of a block of the kernel, as in allencahn.cu: threads along x and y,
// and the planes that they go through.
const (
	tileX, tileY = 32, 8
	planes       = 16
)

func newOnDevice(space device.Space, m phasefield.Model, domain grid.Domain, box grid.Box, sides phasefield.Sides) (*onDevice, error) {
	d := &onDevice{rates: m.Rates()}
	if err := d.make(space, domain, box, sides); err != nil {
		// What is wrong was said; a device that is lost can't free much.
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func (d *onDevice) make(space device.Space, domain grid.Domain, box grid.Box, sides phasefield.Sides) (err error) {
	if d.stream, err = space.NewStream(); err != nil {
		return err
	}
	d.own = append(d.own, d.stream.Close)

	code, err := image(space.Properties())
	if err != nil {
		return err
	}
	module, err := space.LoadModule(code)
	if err != nil {
		return err
	}
	d.own = append(d.own, module.Close)
	if d.kernel, err = module.Kernel(kernelName); err != nil {
		return err
	}

	if d.pair, err = newPair(domain, box, sides, field.OnStream(d.stream)); err != nil {
		return err
	}
	d.own = append(d.own, d.free)
	if d.blocks, err = blocks(box.Size); err != nil {
		return err
	}
	for _, s := range seams(d.phi.Layout(), sides) {
		face, err := d.newFace(space, s)
		if err != nil {
			return err
		}
		d.faces[s.axis][s.side] = face
	}
	return nil
}

// blocks returns how many blocks the kernel runs in.
func blocks(size [3]int) (int, error) {
	n := int64(1)
	const most = 1<<31 - 1 // of drivers
	for axis, part := range [3]int{tileX, tileY, planes} {
		n *= (int64(size[axis]) + int64(part) - 1) / int64(part)
		if n > most {
			return 0, fmt.Errorf("%w: a box of %v cells needs more than %d blocks", device.ErrInvalid, size, int64(most))
		}
	}
	return int(n), nil
}

func (d *onDevice) Faces() Faces { return d.faces }

func (d *onDevice) Gather() error {
	if len(d.movers) == 0 {
		return nil
	}
	if err := d.phi.Upload(); err != nil {
		return err
	}
	for _, m := range d.movers {
		if err := m.toHost(d.stream, d.phi.DevicePtr()); err != nil {
			return err
		}
	}
	return d.stream.Synchronize()
}

func (d *onDevice) Scatter() error {
	if len(d.movers) == 0 {
		return nil
	}
	for _, m := range d.movers {
		if err := m.toDevice(d.stream, d.phi.DevicePtr()); err != nil {
			return err
		}
	}
	// The mirror's ghost cells are older than the device's now.
	return d.phi.NoteDeviceWrite()
}

func (d *onDevice) Step() error {
	if err := d.phi.Upload(); err != nil {
		return err
	}
	if d.blocks > 0 {
		s := d.stencil
		a := d.args.Reset().Ptr(d.next.DevicePtr()).Ptr(d.phi.DevicePtr())
		for _, n := range []int{s.First, s.Size[0], s.Size[1], s.Size[2], s.Row, s.Slice} {
			a.Int64(int64(n))
		}
		for _, sides := range s.Beyond {
			a.Int64(int64(sides[0])).Int64(int64(sides[1]))
		}
		a.Float64(d.rates.Diffusion).Float64(d.rates.Reaction)
		config := device.LaunchConfig{Grid: [3]int{d.blocks}, Block: [3]int{tileX * tileY}}
		if err := d.stream.Launch(d.kernel, config, a); err != nil {
			return err
		}
	}
	if err := d.next.NoteDeviceWrite(); err != nil {
		return err
	}
	d.swap()
	return nil
}

// Close waits for what is queued, which uses what it frees.
func (d *onDevice) Close() error {
	if d.stream == nil {
		return nil
	}
	errs := []error{d.stream.Synchronize()}
	for _, free := range slices.Backward(d.own) {
		errs = append(errs, free())
	}
	d.own, d.stream = nil, nil
	return errors.Join(errs...)
}

// newFace makes the buffers of a face, and what moves its cells.
func (d *onDevice) newFace(space device.Space, s seam) (Face, error) {
	m := mover{seam: s, stencil: d.stencil}
	var face Face
	for _, b := range []struct {
		bytes *[]byte
		cells *[]float64
	}{{&m.out, &face.Out}, {&m.in, &face.In}} {
		memory, err := space.AllocateHost(8 * int64(s.cells()))
		if err != nil {
			return Face{}, err
		}
		d.own = append(d.own, memory.Free)
		*b.bytes = memory.Bytes()
		if *b.cells, err = pack.View[float64](*b.bytes); err != nil {
			return Face{}, err
		}
	}
	if s.axis == 0 {
		c, free, err := newColumn(space, s.cells())
		if err != nil {
			return Face{}, err
		}
		if c != nil {
			d.own = append(d.own, free)
		}
		m.column = c
	}
	d.movers = append(d.movers, m)
	return face, nil
}
