package field

import (
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Any is a field of any element type, in any memory space: what it takes to
// save and to load it. [*Field] implements it.
type Any interface {
	// Domain returns the global grid.
	Domain() grid.Domain
	// Box returns the owned cells in global indices. It may be empty.
	Box() grid.Box
	// Kind returns the element type.
	Kind() Kind
	// Halo returns the number of ghost cells on each side of each axis.
	Halo() [3]int

	// Source returns the owned cells for reading, packed with x fastest, as
	// float64 (float32 is widened) or complex128. It marks nothing stale. It may
	// be any of the extended sources of package pack too.
	Source() (pack.Source, error)
	// Sink returns the owned cells for writing, in the form of Source. Ghost
	// cells keep their bits, the device's too. It may be any of the extended
	// sinks of package pack too.
	Sink() (pack.Sink, error)
	// Upload copies the mirror to the device if the device's storage is stale,
	// and waits until the device has everything. Otherwise, and for fields in
	// host memory, it does nothing.
	Upload() error
}

// Named is a field with its id: its name in a bundle.
type Named struct {
	ID    string
	Field Any
}

var (
	_ Any = (*Field[float64])(nil)
	_ Any = (*Field[float32])(nil)
	_ Any = (*Field[complex128])(nil)
)
