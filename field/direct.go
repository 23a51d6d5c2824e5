package field

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/pack"
)

// direct is what the direct path knows of a field. The field's lock is held for all
// of its methods.
type direct struct {
	ring   *ring
	path   Path
	log    *slog.Logger
	kind   Kind
	layout pack.Layout
	// version changes with the device's storage: what was packed before is no
	// longer what is there.
	version uint64
	// writing says that cells are on their way to the device that nobody has
	// waited for.
	writing bool
}

// bytes is the size of one packed cell.
func (d *direct) bytes() int64 { return int64(d.kind.DiskSize()) }

// stored is the size of one cell on the device.
func (d *direct) stored() int64 {
	if d.kind == Float32 {
		return 4
	}
	return d.bytes()
}

// fit is the number of cells that fit a slot.
func (d *direct) fit(s *slot) int64 { return int64(len(s.host)) / d.bytes() }

var littleEndian = *(*byte)(unsafe.Pointer(&[]uint16{1}[0])) == 1

// past reports whether cells are read and written past the mirror. A mirror that is valid
// isn't read: it is valid only as far as the solver has reported what its kernels wrote,
// and what a save reads must not rest on that. One that is newer has the truth, and its
// ghost cells would be lost. Files are little-endian, so on another host cells have to pass
// by the processor.
func (r *residence) past() bool {
	return !r.nowhere() && r.path != Mirror && r.state != HostNewer && littleEndian
}

// owned is the address of the first owned cell.
func (r *residence) owned() device.Ptr {
	return r.ptr.Add(int64(r.layout.Index(0, 0, 0)) * r.stored())
}

// launch queues a kernel between the array and a slot's memory on the device.
func (r *residence) launch(name device.BoxKernel, dst, src device.Ptr, first, count int64) error {
	p := r.layout.PaddedSize()
	b := device.BoxRange{First: first, Count: count, NX: int64(r.layout.Size[0]), NY: int64(r.layout.Size[1]),
		SY: int64(p[0]), SZ: int64(p[0]) * int64(p[1])}
	if r.kind == Complex128 {
		b.First, b.Count, b.NX, b.SY, b.SZ = 2*b.First, 2*b.Count, 2*b.NX, 2*b.SY, 2*b.SZ
	}
	return device.LaunchBox(r.stream, r.ring.kernels[name], dst, src, b)
}

// fetch queues that cells come into a slot that is in use.
func (r *residence) fetch(s *slot, first, count int64) error {
	err := s.await() // whoever had it before
	if err != nil {
		return err
	}
	r.ring.begin(s, r)
	s.first, s.end = first, first+count
	if r.ring.memory == nil {
		err = r.fetchRows(s)
	} else {
		err = r.fetchPacked(s)
	}
	if err != nil {
		r.settle(s)
		return err
	}
	r.count.ReadCells += count
	return nil
}

func (r *residence) fetchPacked(s *slot) error {
	g, count := r.ring, s.end-s.first
	kernel := device.PackFloat64
	if r.kind == Float32 {
		kernel = device.PackFloat32
	}
	if err := r.launch(kernel, s.ptr, r.owned(), s.first, count); err != nil {
		return err
	}
	if err := r.stream.Record(s.moved); err != nil {
		return err
	}
	if err := g.stream.Wait(s.moved); err != nil {
		return err
	}
	if err := g.stream.CopyToHost(s.host[:count*r.bytes()], s.ptr); err != nil {
		return err
	}
	r.count.ReadBytes += count * r.bytes()
	s.busy = true
	return g.stream.Record(s.done)
}

// fetchRows does without kernels, and lets the host widen.
func (r *residence) fetchRows(s *slot) error {
	to := s.host
	if r.kind == Float32 {
		to = s.raw
	}
	err := r.eachBox(s.first, s.end-s.first, func(at int64, p device.Ptr, e device.Extent, dense, padded device.Pitch) error {
		if err := r.stream.CopyBoxToHost(to[at:at+e.Bytes()], dense, p, padded, e); err != nil {
			return err
		}
		r.count.ReadBytes += e.Bytes()
		s.busy, s.widen = true, r.kind == Float32
		return nil
	})
	if err != nil {
		return err
	}
	return r.stream.Record(s.done)
}

// deliver queues that the cells in a slot that is in use go to the device, and
// leaves the slot.
func (r *residence) deliver(s *slot) error {
	var err error
	r.ring.begin(s, r)
	if r.ring.memory == nil {
		err = r.deliverRows(s)
	} else {
		err = r.deliverPacked(s)
	}
	if err != nil {
		r.settle(s)
		return err
	}
	r.count.WrittenCells += s.end - s.first
	return nil
}

func (r *residence) deliverPacked(s *slot) error {
	g, count := r.ring, s.end-s.first
	kernel := device.UnpackFloat64
	if r.kind == Float32 {
		kernel = device.UnpackFloat32
	}
	if err := g.stream.CopyToDevice(s.ptr, s.host[:count*r.bytes()]); err != nil {
		return err
	}
	s.busy = true
	r.count.WrittenBytes += count * r.bytes()
	if err := g.stream.Record(s.moved); err != nil {
		return err
	}
	if err := r.stream.Wait(s.moved); err != nil {
		return err
	}
	if err := r.launch(kernel, r.owned(), s.ptr, s.first, count); err != nil {
		return err
	}
	return r.stream.Record(s.done)
}

func (r *residence) deliverRows(s *slot) error {
	count, from := s.end-s.first, s.host
	if r.kind == Float32 {
		raw, err := pack.View[float32](s.raw)
		if err != nil {
			return err
		}
		if err := pack.NarrowBytes(raw[:count], s.host[:8*count], flat(int(count)), 0); err != nil {
			return err
		}
		from = s.raw
	}
	err := r.eachBox(s.first, count, func(at int64, p device.Ptr, e device.Extent, dense, padded device.Pitch) error {
		if err := r.stream.CopyBoxToDevice(p, padded, from[at:at+e.Bytes()], dense, e); err != nil {
			return err
		}
		s.busy = true
		r.count.WrittenBytes += e.Bytes()
		return nil
	})
	if err != nil {
		return err
	}
	return r.stream.Record(s.done)
}

// settle waits for what was queued for a slot before something failed, as no event
// stands for it. What it finds isn't more than the failure, which the caller has.
func (r *residence) settle(s *slot) {
	_ = r.stream.Synchronize()
	if r.ring.stream != nil {
		_ = r.ring.stream.Synchronize()
	}
	s.busy, s.widen = false, false
}

// eachBox cuts a range of owned cells into boxes: what is left of a row, of a slice,
// whole slices, rows, a part of a row. at counts bytes of the packed cells.
func (r *residence) eachBox(first, count int64, do func(at int64, p device.Ptr, e device.Extent, dense, padded device.Pitch) error) error {
	nx, ny := int64(r.layout.Size[0]), int64(r.layout.Size[1])
	p, size := r.layout.PaddedSize(), r.stored()
	padded := device.Pitch{Row: int64(p[0]) * size, Rows: int64(p[1])}
	for at := int64(0); count > 0; {
		x, y, z := first%nx, first/nx%ny, first/nx/ny
		e := device.Extent{Row: nx, Rows: 1, Slices: 1}
		switch {
		case x > 0 || count < nx:
			e.Row = min(nx-x, count)
		case y > 0 || count < nx*ny:
			e.Rows = min(ny-y, count/nx)
		default:
			e.Rows, e.Slices = ny, count/(nx*ny)
		}
		n := e.Bytes() // cells, as yet
		e.Row *= size
		from := r.ptr.Add(int64(r.layout.Index(int(x), int(y), int(z))) * size)
		if err := do(at, from, e, device.Pitch{Row: e.Row, Rows: e.Rows}, padded); err != nil {
			return err
		}
		at, first, count = at+n*size, first+n, count-n
	}
	return nil
}

// say logs the warnings of the ring, where the field is on a device.
func (r *residence) say() {
	if r != nil {
		r.ring.say()
	}
}

// prepare finds out what would fail for all cells, while none has changed: that there
// is no memory for them, or that the device is lost.
func (r *residence) prepare() error {
	g := r.ring
	g.mu.Lock()
	err := g.ready(r.log)
	g.mu.Unlock()
	if err == nil {
		_, err = r.stream.Query()
	}
	return g.note(err)
}

// write sends cells to the device: fill puts those from number first on into a chunk.
func (r *residence) write(first, count int64, fill func(chunk []byte, first int64) error) error {
	g := r.ring
	g.hold()
	defer g.release()
	for end := first + count; first < end; {
		s, _, err := g.take(r.log, nil, false, true)
		if err != nil {
			return g.note(err)
		}
		if err = s.await(); err == nil {
			s.first, s.end = first, min(first+r.fit(s), end)
			err = fill(s.host[:(s.end-s.first)*r.bytes()], first)
		}
		if err == nil {
			// Before anything can fail: a stale mirror must never be taken for valid.
			r.markMirrorStale()
			r.writing = true
			err = r.deliver(s)
			first = s.end
		}
		g.leaveSlot(s, false)
		if err != nil {
			return g.note(err)
		}
	}
	return nil
}

// flush waits for cells that are on their way to the device.
func (r *residence) flush() error {
	if r == nil || !r.writing {
		return nil
	}
	if err := r.stream.Synchronize(); err != nil {
		return r.ring.note(fmt.Errorf("write to device: %w", err))
	}
	r.writing = false
	return nil
}

// retire ends the use of the ring, and waits for what it still does for this field, so
// that nothing is left in it that is of the field's stream. sync says that the stream has
// to be waited for in any case.
func (r *residence) retire(sync bool) error {
	left, lost := r.ring.part(r)
	var err error
	for _, s := range left {
		s.widen = false
		err = cmp.Or(err, s.await())
		s.busy = false // if that failed, too: there won't be anything to wait for
	}
	r.ring.parted(left)
	if sync || r.writing {
		err = cmp.Or(r.stream.Synchronize(), err)
	}
	if err != nil && !(lost && errors.Is(err, device.ErrLost)) {
		return r.ring.note(err)
	}
	return nil
}
