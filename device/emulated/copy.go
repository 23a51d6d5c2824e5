package emulated

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
)

// side is one end of a copy, in host or in device memory.
type side struct {
	host  []byte
	ptr   device.Ptr
	onDev bool
	pitch device.Pitch
}

func hostSide(mem []byte, p device.Pitch) side   { return side{host: mem, pitch: p} }
func devSide(p device.Ptr, pi device.Pitch) side { return side{ptr: p, onDev: true, pitch: pi} }

func linear(bytes int64) (device.Pitch, device.Extent) {
	return device.Pitch{Row: max(bytes, 0), Rows: 1}, device.Extent{Row: bytes, Rows: 1, Slices: 1}
}

// check reports whether the side has the memory for a copy. The device's lock
// is held.
func (s side) check(d *Device, what string, e device.Extent) error {
	span, err := s.pitch.Span(e)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if s.onDev {
		if _, err := d.arena.bytes(s.ptr, span); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	if span > int64(len(s.host)) {
		return fmt.Errorf("%s: %w: host memory has %d bytes, the copy needs %d", what, device.ErrInvalid, len(s.host), span)
	}
	return nil
}

// pageable reports whether the side is host memory that isn't pinned. The
// device's lock is held, and check has found nothing wrong.
func (s side) pageable(d *Device, e device.Extent) bool {
	span, err := s.pitch.Span(e)
	return err == nil && span > 0 && !s.onDev && !d.isPinned(s.host[:span])
}

// bytes returns the memory of the side when the copy runs.
func (s side) bytes(d *Device, e device.Extent) ([]byte, error) {
	if !s.onDev {
		return s.host, nil
	}
	span, err := s.pitch.Span(e)
	if err != nil {
		return nil, err
	}
	return d.resolve(s.ptr, span)
}

func (s *stream) copy(c Call, op string, dst, src side, e device.Extent) error {
	return s.queued(c, op, func() error {
		if err := dst.check(s.d, "destination", e); err != nil {
			return err
		}
		if err := src.check(s.d, "source", e); err != nil {
			return err
		}
		if dst.pageable(s.d, e) || src.pageable(s.d, e) {
			s.d.transfers.Pageable++
		}
		switch {
		case !src.onDev:
			s.d.transfers.ToDevice.add(e.Bytes())
		case !dst.onDev:
			s.d.transfers.ToHost.add(e.Bytes())
		default:
			s.d.transfers.OnDevice.add(e.Bytes())
		}
		return nil
	}, func() error {
		to, err := dst.bytes(s.d, e)
		if err != nil {
			return fmt.Errorf("destination: %w", err)
		}
		from, err := src.bytes(s.d, e)
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		copyBox(to, dst.pitch, from, src.pitch, e)
		return nil
	})
}

func copyBox(to []byte, tp device.Pitch, from []byte, fp device.Pitch, e device.Extent) {
	if e.Row == 0 {
		return
	}
	for z := range e.Slices {
		for y := range e.Rows {
			t := (z*tp.Rows + y) * tp.Row
			f := (z*fp.Rows + y) * fp.Row
			copy(to[t:t+e.Row], from[f:f+e.Row])
		}
	}
}

func (s *stream) CopyToDevice(dst device.Ptr, src []byte) error {
	p, e := linear(int64(len(src)))
	op := fmt.Sprintf("copy %d bytes to device at %#x", len(src), uintptr(dst))
	return s.copy(CallCopyToDevice, op, devSide(dst, p), hostSide(src, p), e)
}

func (s *stream) CopyToHost(dst []byte, src device.Ptr) error {
	p, e := linear(int64(len(dst)))
	op := fmt.Sprintf("copy %d bytes from device at %#x", len(dst), uintptr(src))
	return s.copy(CallCopyToHost, op, hostSide(dst, p), devSide(src, p), e)
}

func (s *stream) CopyOnDevice(dst, src device.Ptr, bytes int64) error {
	p, e := linear(bytes)
	op := fmt.Sprintf("copy %d bytes on device from %#x to %#x", bytes, uintptr(src), uintptr(dst))
	if dst < src.Add(bytes) && src < dst.Add(bytes) {
		return s.d.fail(op, fmt.Errorf("%w: the two places overlap", device.ErrInvalid))
	}
	return s.copy(CallCopyOnDevice, op, devSide(dst, p), devSide(src, p), e)
}

func (s *stream) CopyBoxToDevice(dst device.Ptr, dstPitch device.Pitch, src []byte, srcPitch device.Pitch, extent device.Extent) error {
	op := fmt.Sprintf("copy box %+v to device at %#x", extent, uintptr(dst))
	return s.copy(CallCopyToDevice, op, devSide(dst, dstPitch), hostSide(src, srcPitch), extent)
}

func (s *stream) CopyBoxToHost(dst []byte, dstPitch device.Pitch, src device.Ptr, srcPitch device.Pitch, extent device.Extent) error {
	op := fmt.Sprintf("copy box %+v from device at %#x", extent, uintptr(src))
	return s.copy(CallCopyToHost, op, hostSide(dst, dstPitch), devSide(src, srcPitch), extent)
}

func (s *stream) CopyBoxOnDevice(dst device.Ptr, dstPitch device.Pitch, src device.Ptr, srcPitch device.Pitch, extent device.Extent) error {
	op := fmt.Sprintf("copy box %+v on device from %#x to %#x", extent, uintptr(src), uintptr(dst))
	return s.copy(CallCopyOnDevice, op, devSide(dst, dstPitch), devSide(src, srcPitch), extent)
}
