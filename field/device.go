package field

import (
	"fmt"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/pack"
)

// allocate makes storage on the device and a mirror, both 0.
func (f *Field[T]) allocate(o options) error {
	stream := o.stream
	if stream == nil {
		var err error
		if stream, err = o.space.NewStream(); err != nil {
			return err
		}
		f.own = append(f.own, stream.Close)
	}
	f.dev = &residence{stream: stream}
	if f.box.Empty() {
		f.host = []T{}
		return nil
	}
	bytes := f.storageBytes()
	memory, err := o.space.Allocate(bytes)
	if err != nil {
		return err
	}
	f.own = append(f.own, memory.Free)
	if err := f.allocateMirror(o.space); err != nil {
		return err
	}
	clear(f.host)
	f.dev.ptr = memory.Ptr()
	f.dev.mirror = pack.Bytes(f.host)
	if err := stream.Fill(f.dev.ptr, 0, bytes); err != nil {
		return err
	}
	return stream.Synchronize()
}

// wrap takes storage on the device, and a mirror unless that is nil.
func (f *Field[T]) wrap(o options, p device.Ptr, mirror []T) error {
	f.dev = &residence{stream: o.stream}
	if f.box.Empty() {
		f.host = []T{}
		return nil
	}
	if _, err := o.space.WrapMemory(p, f.storageBytes()); err != nil {
		return err
	}
	f.host = mirror
	if mirror == nil {
		if err := f.allocateMirror(o.space); err != nil {
			return err
		}
	}
	f.dev.ptr = p
	f.dev.mirror = pack.Bytes(f.host)
	f.dev.markMirrorStale()
	return nil
}

func (f *Field[T]) allocateMirror(space device.Space) error {
	pinned, err := space.AllocateHost(f.storageBytes())
	if err != nil {
		return err
	}
	f.own = append(f.own, pinned.Free)
	if f.host, err = pack.View[T](pinned.Bytes()); err != nil {
		return fmt.Errorf("pinned memory of %s: %w", space.Name(), err)
	}
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

// Transfers returns how often the cells were copied between mirror and device
// since the field was made.
func (f *Field[T]) Transfers() Transfers {
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
// each, which the field's stream then waits for. For fields in host memory
// there is nothing to note.
func (f *Field[T]) NoteDeviceWrite(after ...device.Event) error {
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
			return fmt.Errorf("note device write: %w", err)
		}
	}
	return nil
}

// Upload copies the mirror to the device if the device's storage is stale, and
// waits for the copy. Otherwise, and for fields in host memory, it does
// nothing. The copy runs on the field's stream; kernels on other streams that
// still use the storage must be waited for before.
func (f *Field[T]) Upload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		return fmt.Errorf("upload field: %w", ErrFreed)
	}
	if err := f.dev.uploadMirror(); err != nil {
		return fmt.Errorf("upload field: %w", err)
	}
	return nil
}
