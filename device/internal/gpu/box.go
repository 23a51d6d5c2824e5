package gpu

import (
	"fmt"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

func (s *stream) CopyBoxToDevice(dst device.Ptr, dstPitch device.Pitch, src []byte, srcPitch device.Pitch, extent device.Extent) error {
	host, err := hostBox(src, srcPitch, dstPitch, extent)
	if err == nil {
		p := unsafe.Pointer(unsafe.SliceData(src))
		err = s.transfer(host, func() Code {
			if n, ok := contiguous(extent, srcPitch, dstPitch); ok {
				return s.space.api.CopyToDevice(dst, p, n, s.handle)
			}
			return s.space.api.CopyBox(Side{Ptr: dst, Pitch: dstPitch}, Side{Host: p, Pitch: srcPitch}, extent, s.handle)
		})
	}
	if err != nil {
		return s.space.fail(fmt.Sprintf("copy box %+v to device at %#x", extent, uintptr(dst)), err)
	}
	return nil
}

func (s *stream) CopyBoxToHost(dst []byte, dstPitch device.Pitch, src device.Ptr, srcPitch device.Pitch, extent device.Extent) error {
	host, err := hostBox(dst, dstPitch, srcPitch, extent)
	if err == nil {
		p := unsafe.Pointer(unsafe.SliceData(dst))
		err = s.transfer(host, func() Code {
			if n, ok := contiguous(extent, srcPitch, dstPitch); ok {
				return s.space.api.CopyToHost(p, src, n, s.handle)
			}
			return s.space.api.CopyBox(Side{Host: p, Pitch: dstPitch}, Side{Ptr: src, Pitch: srcPitch}, extent, s.handle)
		})
	}
	if err != nil {
		return s.space.fail(fmt.Sprintf("copy box %+v from device at %#x", extent, uintptr(src)), err)
	}
	return nil
}

func (s *stream) CopyBoxOnDevice(dst device.Ptr, dstPitch device.Pitch, src device.Ptr, srcPitch device.Pitch, extent device.Extent) error {
	span, err := spans(srcPitch, dstPitch, extent)
	if err == nil {
		err = s.use(nil, func() Code {
			if span == 0 {
				return Success
			}
			if n, ok := contiguous(extent, srcPitch, dstPitch); ok {
				return s.space.api.CopyOnDevice(dst, src, n, s.handle)
			}
			return s.space.api.CopyBox(Side{Ptr: dst, Pitch: dstPitch}, Side{Ptr: src, Pitch: srcPitch}, extent, s.handle)
		})
	}
	if err != nil {
		return s.space.fail(fmt.Sprintf("copy box %+v on device from %#x to %#x", extent, uintptr(src), uintptr(dst)), err)
	}
	return nil
}

// spans checks both sides of a copy and returns the span of the first.
func spans(first, second device.Pitch, e device.Extent) (int64, error) {
	span, err := first.Span(e)
	if err != nil {
		return 0, err
	}
	_, err = second.Span(e)
	return span, err
}

// hostBox returns the part of host memory that a copy touches.
func hostBox(host []byte, hostPitch, devicePitch device.Pitch, e device.Extent) ([]byte, error) {
	span, err := spans(hostPitch, devicePitch, e)
	if err != nil {
		return nil, err
	}
	if span > int64(len(host)) {
		return nil, fmt.Errorf("%w: host memory has %d bytes, the copy needs %d", device.ErrInvalid, len(host), span)
	}
	return host[:span], nil
}

// contiguous reports whether a box has no gaps on either side, and its bytes:
// then a linear copy does, which is what drivers do best.
func contiguous(e device.Extent, a, b device.Pitch) (int64, bool) {
	dense := func(p device.Pitch) bool {
		return (e.Rows == 1 && e.Slices == 1) || (p.Row == e.Row && (p.Rows == e.Rows || e.Slices == 1))
	}
	return e.Bytes(), dense(a) && dense(b)
}
