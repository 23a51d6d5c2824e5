package field

import (
	"fmt"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/pack"
)

// place puts the field on a device, with a stream.
func (f *Field[T]) place(o options) error {
	ring := joinRing(o.space, f.layout.Cells()*int64(f.Kind().DiskSize()), o.ring)
	f.own = append(f.own, ring.leave)
	f.dev = &residence{direct: direct{ring: ring, path: o.path, log: o.log, kind: f.Kind(), layout: f.layout}}
	if f.dev.stream = o.stream; o.stream != nil {
		return nil
	}
	var err error
	if f.dev.stream, err = o.space.NewStream(); err != nil {
		return ring.note(err)
	}
	f.own = append(f.own, f.dev.stream.Close)
	f.waits = true
	return nil
}

// allocate makes storage on the device that is 0.
func (f *Field[T]) allocate(o options) error {
	if err := f.place(o); err != nil {
		return err
	}
	if f.box.Empty() {
		f.host = []T{}
		return nil
	}
	bytes := f.storageBytes()
	memory, err := o.space.Allocate(bytes)
	if err != nil {
		return f.dev.ring.note(err)
	}
	f.own = append(f.own, memory.Free)
	f.waits = true
	f.dev.ptr, f.dev.size = memory.Ptr(), bytes
	err = f.dev.stream.Fill(f.dev.ptr, 0, bytes)
	if err == nil {
		err = f.dev.stream.Synchronize()
	}
	return f.dev.ring.note(err)
}

// wrap takes storage on the device, and a mirror unless that is nil.
func (f *Field[T]) wrap(o options, p device.Ptr, mirror []T) error {
	if err := f.place(o); err != nil {
		return err
	}
	if f.box.Empty() {
		f.host = []T{}
		return nil
	}
	// A kernel that meets such an address costs the solver its context. What the device wants
	// may be more than the host does.
	var v T
	if align := device.Ptr(min(unsafe.Sizeof(v), 8)); p%align != 0 {
		return fmt.Errorf("%s: %w: cells at %#x, which is no multiple of %d", o.space.Name(), device.ErrAddress, uintptr(p), align)
	}
	if _, err := o.space.WrapMemory(p, f.storageBytes()); err != nil {
		return f.dev.ring.note(err)
	}
	f.dev.ptr, f.dev.size = p, f.storageBytes()
	if mirror != nil {
		f.host, f.dev.mirror = mirror, pack.Bytes(mirror)
	}
	f.dev.markMirrorStale()
	return nil
}

// needMirror makes the mirror unless it is there. What isn't on the device yet is 0.
func (f *Field[T]) needMirror() error {
	d := f.dev
	if d.nowhere() || d.mirror != nil {
		return nil
	}
	d.ring.mu.Lock()
	bytes, pinned, err := d.ring.hostMemory(d.log, d.size)
	d.ring.mu.Unlock()
	if err != nil {
		return d.ring.note(err)
	}
	if pinned != nil {
		f.own = append(f.own, pinned.Free)
		f.waits = true
	}
	if f.host, err = pack.View[T](bytes); err != nil {
		return fmt.Errorf("pinned memory of %s: %w", d.ring.space.Name(), err)
	}
	clear(f.host)
	d.mirror = bytes
	return nil
}

func (f *Field[T]) storageBytes() int64 {
	var v T
	return f.layout.PaddedCells() * int64(unsafe.Sizeof(v))
}

// Residency tells which copy of the cells is newer.
func (f *Field[T]) Residency() Residency {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dev == nil {
		return InSync
	}
	return f.dev.state
}

// Transfers returns what was moved between device and host since the field was
// made.
func (f *Field[T]) Transfers() Transfers {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dev == nil {
		return Transfers{}
	}
	return f.dev.count
}

// DevicePtr returns the address of the padded storage on the device. It is 0
// for a field in host memory, with an empty box, or after Free. It marks
// nothing stale: report writes by [Field.NoteDeviceWrite], and call
// [Field.Upload] before kernels read.
func (f *Field[T]) DevicePtr() device.Ptr {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dev == nil {
		return 0
	}
	return f.dev.ptr
}

// Stream returns the stream that the field's copies run on, nil for a field in
// host memory or after Free.
func (f *Field[T]) Stream() device.Stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dev == nil {
		return nil
	}
	return f.dev.stream
}

// NoteDeviceWrite tells the field that kernels have written, or will write
// with what is in the field's stream already, to its storage on the device:
// the mirror is stale from now on, and what was written to it and not uploaded
// is lost. Kernels on other streams are reported by an event recorded after
// each, which the field's stream then waits for; the streams of the events are still
// there during the call. For fields in host memory
// there is nothing to note. What happens without it is in the package documentation.
func (f *Field[T]) NoteDeviceWrite(after ...device.Event) error {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		return fmt.Errorf("note device write: %w", ErrFreed)
	}
	if f.dev == nil {
		return nil
	}
	// Before anything can fail: a stale mirror must never be taken for valid.
	f.dev.markMirrorStale()
	for _, e := range after {
		if err := f.dev.stream.Wait(e); err != nil {
			return f.dev.ring.note(fmt.Errorf("note device write: %w", err))
		}
	}
	return nil
}

// Upload copies the mirror to the device if the device's storage is stale, and
// waits for the copy, and for cells that a sink has sent past the mirror: without an
// error, the device has everything. Otherwise, and for fields in host memory, it does
// nothing. Copies run on the field's stream; kernels on other streams that
// still use the storage must be waited for before.
func (f *Field[T]) Upload() error {
	defer f.dev.say()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		return fmt.Errorf("upload field: %w", ErrFreed)
	}
	err := f.dev.uploadMirror()
	if err == nil {
		err = f.dev.flush()
	}
	if err != nil {
		return fmt.Errorf("upload field: %w", err)
	}
	return nil
}
