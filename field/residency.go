package field

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
)

// Residency tells which copy of a field's cells is the newer one.
type Residency int

const (
	// InSync says that mirror and device hold the same. Fields in host memory
	// are always in sync.
	InSync Residency = iota
	// HostNewer says that the device's storage is stale.
	HostNewer
	// DeviceNewer says that the mirror is stale.
	DeviceNewer
)

// String returns "in sync", "host newer" or "device newer".
func (r Residency) String() string {
	switch r {
	case InSync:
		return "in sync"
	case HostNewer:
		return "host newer"
	case DeviceNewer:
		return "device newer"
	}
	return fmt.Sprintf("Residency(%d)", int(r))
}

// Transfers counts what was moved between a field's device storage and the host.
type Transfers struct {
	// Refreshes were from the device to the mirror, Uploads from the mirror
	// to the device. Each moves the whole padded array.
	Refreshes, Uploads int64

	// ReadCells and WrittenCells are the owned cells that went past the mirror,
	// from the device and to it; ReadBytes and WrittenBytes are the bytes that
	// were copied for it.
	ReadCells, ReadBytes, WrittenCells, WrittenBytes int64
}

// residence keeps a device's storage and its mirror coherent. Its methods are
// the transitions of the residency. A nil residence is that of a field in host
// memory, where they do nothing, as they do without any cells. The field's
// lock is held for all of them.
type residence struct {
	direct
	state  Residency
	stream device.Stream
	ptr    device.Ptr
	size   int64  // bytes of the padded storage
	mirror []byte // nil until it is needed: in sync, both are 0 then
	count  Transfers
}

func (r *residence) nowhere() bool { return r == nil || r.size == 0 }

// refreshMirror makes the mirror valid: device newer → in sync. If it fails,
// the device stays newer, so that what the mirror holds is never taken for the
// field's cells.
func (r *residence) refreshMirror() error {
	if r.nowhere() || r.state != DeviceNewer {
		return nil
	}
	if err := r.stream.CopyToHost(r.mirror, r.ptr); err != nil {
		return r.ring.note(fmt.Errorf("refresh mirror: %w", err))
	}
	if err := r.stream.Synchronize(); err != nil {
		return r.ring.note(fmt.Errorf("refresh mirror: %w", err))
	}
	r.count.Refreshes++
	r.state = InSync
	r.writing = false
	return nil
}

// uploadMirror makes the device's storage valid: host newer → in sync. It
// waits for the copy, because the caller may write to the mirror right
// afterwards.
func (r *residence) uploadMirror() error {
	if r.nowhere() || r.state != HostNewer {
		return nil
	}
	r.version++
	if err := r.stream.CopyToDevice(r.ptr, r.mirror); err != nil {
		return r.ring.note(err)
	}
	if err := r.stream.Synchronize(); err != nil {
		return r.ring.note(err)
	}
	r.count.Uploads++
	r.state = InSync
	r.writing = false
	return nil
}

// markDeviceStale notes a write to the mirror, which must be valid.
func (r *residence) markDeviceStale() {
	if !r.nowhere() {
		r.state = HostNewer
	}
}

// markMirrorStale notes a write to the device's storage.
func (r *residence) markMirrorStale() {
	if !r.nowhere() {
		r.state = DeviceNewer
		r.version++
	}
}
