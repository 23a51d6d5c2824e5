package stepper

import (
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
)

// A mover copies the two layers of a seam between a device and pinned memory.
type mover struct {
	seam
	stencil phasefield.Stencil
	out, in []byte
	column  *column // nil: by copies of boxes
}

// A column moves layers whose rows are single cells, those across x. Engines that
// copy boxes are slow at rows of eight bytes, so a kernel packs the cells into
// contiguous memory of the device first.
type column struct {
	pack, unpack device.Kernel
	packed       device.Ptr // used by one copy after the other of a stream
}

// newColumn returns nil where there are no such kernels, or the driver refuses
// them.
func newColumn(space device.Space, cells int) (c *column, free func() error, err error) {
	kernels, ok := space.(device.BoxKernels)
	if !ok {
		return nil, nil, nil
	}
	module, err := kernels.BoxModule()
	if err != nil {
		return nil, nil, nil
	}
	pack, err := module.Kernel(string(device.PackFloat64))
	if err != nil {
		return nil, nil, nil
	}
	unpack, err := module.Kernel(string(device.UnpackFloat64))
	if err != nil {
		return nil, nil, nil
	}
	memory, err := space.Allocate(8 * int64(cells))
	if err != nil {
		return nil, nil, err
	}
	return &column{pack, unpack, memory.Ptr()}, memory.Free, nil
}

// toHost queues the copy of the outermost owned cells.
func (m *mover) toHost(s device.Stream, phi device.Ptr) error {
	at := phi.Add(8 * int64(m.inner))
	if m.column == nil {
		padded, packed, extent := m.box()
		return s.CopyBoxToHost(m.out, packed, at, padded, extent)
	}
	if err := device.LaunchBox(s, m.column.pack, m.column.packed, at, m.boxCells()); err != nil {
		return err
	}
	return s.CopyToHost(m.out, m.column.packed)
}

// toDevice queues the copy of what came to the ghost cells.
func (m *mover) toDevice(s device.Stream, phi device.Ptr) error {
	at := phi.Add(8 * int64(m.ghosts))
	if m.column == nil {
		padded, packed, extent := m.box()
		return s.CopyBoxToDevice(at, padded, m.in, packed, extent)
	}
	if err := s.CopyToDevice(m.column.packed, m.in); err != nil {
		return err
	}
	return device.LaunchBox(s, m.column.unpack, at, m.column.packed, m.boxCells())
}

// box describes a layer in bytes: in the padded storage and packed.
func (m *mover) box() (padded, packed device.Pitch, extent device.Extent) {
	row := 8 * int64(m.size[0])
	padded = device.Pitch{Row: 8 * int64(m.stencil.Row), Rows: int64(m.stencil.Slice / m.stencil.Row)}
	packed = device.Pitch{Row: row, Rows: int64(m.size[1])}
	return padded, packed, device.Extent{Row: row, Rows: int64(m.size[1]), Slices: int64(m.size[2])}
}

// boxCells describes a layer to a kernel.
func (m *mover) boxCells() device.BoxRange {
	return device.BoxRange{
		Count: int64(m.cells()),
		NX:    int64(m.size[0]), NY: int64(m.size[1]),
		SY: int64(m.stencil.Row), SZ: int64(m.stencil.Slice),
	}
}
