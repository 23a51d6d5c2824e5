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
// A field on a device has padded storage there and, from the first time that it is
// needed, a mirror of all of it in pinned host memory. At any time both are in sync, or
// one of them is newer:
//
//	method             needs                          leaves behind
//	View               mirror (copied if stale)       the same as before, or in sync
//	MutableView        mirror (copied if stale)       host newer
//	NoteDeviceWrite    nothing                        device newer
//	Upload             device (copied if stale)       the same as before, or in sync
//
//	reading from a Source, writing to a Sink, by way of the mirror:
//	read cells         mirror (copied if stale)       the same as before, or in sync
//	write cells        mirror (copied if stale)       host newer
//	past the mirror:
//	read cells         device, though in sync         the same as before
//	write cells        device                         device newer
//
// Each copy between mirror and device moves the whole padded array once, and is over
// when the method returns. What can't be seen from here, kernels that the solver
// launches, it reports by NoteDeviceWrite: a view shows old cells otherwise. For fields in host memory all of this is free
// of cost and they are always in sync, so that a program can treat all fields alike.
//
// # Past the mirror
//
// To save and to load, only owned cells are needed. Kernels pack them on the device into
// a ring of four chunks, from where they are copied to four chunks of pinned memory, 1 MiB
// each or less; [Ring] asks for more. All fields of a space share the ring; it is made at
// the first use and freed with the last field. While one chunk is packed another one is copied, and the
// reader sums up and writes others: a [pack.LendSource] lends the pinned chunks
// themselves. So exactly the owned cells move, in each pass over them, and neither mirror
// nor residency change. A load is the reverse: ghost cells on the device keep their bits,
// and the mirror is stale.
//
// [Transfer] chooses. By default cells are read and written past the mirror, even when
// that is valid: it is so only as far as all writes of kernels were noted, and a state
// that is saved doesn't depend on that. While the host is newer the mirror has the truth,
// so there everything goes to it, even if [Direct] is forced: what is written must not
// lose ghost cells that were not uploaded. [Mirror] never goes past it. On a host that
// isn't little-endian, as files are, nothing does.
//
// # Writes that nobody noted
//
// A kernel has written to the field's storage, and NoteDeviceWrite was forgotten:
//
//	the field was               what happens
//	in sync, device newer       sources and captures have the device's cells; a view shows
//	                            the cells from before
//	in sync, by [Mirror]        sources and captures have the cells from before, too
//	host newer                  the mirror is what is read, and an upload overwrites what
//	                            the kernel wrote: Upload was forgotten before the kernel
//
// A solver that swaps two buffers has a field around each, and saves the one that has the
// last result. That a field's own buffer wasn't written can't be known here either.
//
// Kernels run on the field's stream, in order with what the solver does there and with
// the events that it has reported; copies of packed cells run on a stream of the
// ring's. A write may be under way when the sink returns. It is over, and what failed on
// the way is reported, when Flush of the sink ([pack.FlushSink]) or Upload return, which
// package brick, package publish and [State.Restore] see to.
//
// # What a device can't do
//
// Some things have a slower way, which is taken with one warning to [Logger] for each
// space and reason:
//
//	what fails                               what is done instead
//	the space has no box kernels, or its     owned cells are copied in boxes, straight
//	driver refuses them, or has no memory    from the storage to pinned memory; float32
//	for the ring                             is converted by the host
//	pinned memory, for ring or mirror        pageable memory
//
// All else is an error of the call, after which the field is as it was, but for a load:
// then the owned cells on the device are undefined. A device that is lost stays so: each
// call has an error that is [device.ErrLost], with the first cause. Free gives back
// everything all the same, and has no error if any call on the space has said it before.
//
// # Concurrency
//
// Methods may be called from several goroutines: a stale mirror is copied
// once. The cells themselves aren't protected. Whoever writes to a view, or
// lets a device write, must not do so while somebody else reads the cells, and
// all views end with Free. Use after Free is an error, [ErrFreed], where it
// can be detected. A field may be freed while a source of it is read: Free waits for
// the call that is under way, later ones are ErrFreed, and cells that are lent stay as
// they are until they are returned; the ring, if this was the last field, goes only
// then. A [device.Space] is the key to the ring, so it must be comparable, as pointers
// are.
package field
