// Package field holds the fields of a simulation: arrays over one rank's box
// of a global domain, padded by ghost cells, in host memory or on a device
// with a host mirror.
//
// A [Field] has an element type, a domain, the box of cells that the rank
// owns, and a halo: the number of ghost cells on each side. Its cells have
// local indices, where (0, 0, 0) is the first owned cell and the ghost cells
// have indices below 0 and from the box's size on. x is the fastest axis of
// the storage.
//
//	psi, err := field.New[float64](domain, dec.Box(rank), field.Halo(2))
//	if err != nil {
//		return err
//	}
//	defer psi.Free()
//	data, err := psi.MutableView()
//	if err != nil {
//		return err
//	}
//	for c := range psi.Owned().Cells() {
//		p := psi.Coordinates(c[0], c[1], c[2])
//		data[psi.Index(c[0], c[1], c[2])] = math.Sin(p[0])
//	}
//
// [WrapHost] and [WrapDevice] make a field around memory that the solver owns.
//
// # Residency
//
// A field on a device has padded storage there and a mirror of all of it in
// host memory. At any time both are in sync, or one of them is newer:
//
//	method             needs                          leaves behind
//	View               mirror (copied if stale)       the same as before, or in sync
//	MutableView        mirror (copied if stale)       host newer
//	Source             mirror (copied if stale)       the same as before, or in sync
//	Sink               mirror (copied if stale)       host newer, once cells are written
//	NoteDeviceWrite    nothing                        device newer
//	Upload             device (copied if stale)       the same as before, or in sync
//
// Each copy moves the whole padded array once, and is over when the method
// returns. What can't be seen from here, kernels that the solver launches, it
// reports by NoteDeviceWrite. For fields in host memory all of this is free of
// cost and they are always in sync, so that a program can treat all fields
// alike.
//
// # Concurrency
//
// Methods may be called from several goroutines: a stale mirror is copied
// once. The cells themselves aren't protected. Whoever writes to a view, or
// lets a device write, must not do so while somebody else reads the cells, and
// all views end with Free. Use after Free is an error, [ErrFreed], where it
// can be detected.
package field
