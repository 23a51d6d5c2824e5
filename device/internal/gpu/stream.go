package gpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

type stream struct{ *object }

// NewStream implements [device.Space].
func (s *Space) NewStream() (device.Stream, error) {
	o := s.newObject(streamKind, s.api.CloseStream)
	if err := o.create(s.api.NewStream); err != nil {
		return nil, s.fail("new stream", err)
	}
	return &stream{o}, nil
}

// perThread is the handle, of both vendors, of the default stream of the calling OS
// thread.
const perThread = 2

var errPerThread = fmt.Errorf("%w: handle %d is another stream on each OS thread, and goroutines move between those; "+
	"use the default stream of all threads, 0, or one that was made", device.ErrInvalid, perThread)

// WrapStream implements [device.Space]. The driver is asked whether it knows
// the handle, which it only does for streams that aren't being captured.
func (s *Space) WrapStream(handle uintptr) (device.Stream, error) {
	err := errPerThread
	if handle != perThread {
		err = s.call(func() Code { return queried(s.api.QueryStream(handle)) })
	}
	if err != nil {
		return nil, s.fail(fmt.Sprintf("wrap stream %#x", handle), err)
	}
	return &stream{&object{space: s, kind: streamKind, handle: handle}}, nil
}

func (s *stream) Space() device.Space { return s.space }
func (s *stream) Handle() uintptr     { return s.handle }

func (s *stream) Close() error { return s.free("close stream") }

// queried turns the result of a query into one of a call.
func queried(c Code) Code {
	if c == NotReady {
		return Success
	}
	return c
}

func (s *stream) Query() (bool, error) {
	var c Code
	err := s.use(nil, func() Code {
		c = s.space.api.QueryStream(s.handle)
		return queried(c)
	})
	if err != nil {
		return false, s.space.fail("query stream", err)
	}
	return c == Success, nil
}

func (s *stream) Synchronize() error {
	err := s.use(nil, func() Code { return s.space.api.SynchronizeStream(s.handle) })
	if err != nil {
		return s.space.fail("synchronize stream", err)
	}
	return nil
}

func (s *stream) Fill(dst device.Ptr, value byte, bytes int64) error {
	err := errNegative(bytes)
	if err == nil {
		err = s.use(nil, func() Code {
			if bytes == 0 {
				return Success
			}
			return s.space.api.Fill(dst, value, bytes, s.handle)
		})
	}
	if err != nil {
		return s.space.fail(fmt.Sprintf("fill %d bytes at %#x", bytes, uintptr(dst)), err)
	}
	return nil
}

func errNegative(bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("%w: negative length", device.ErrInvalid)
	}
	return nil
}

func (s *stream) CopyToDevice(dst device.Ptr, src []byte) error {
	err := s.transfer(src, func() Code {
		return s.space.api.CopyToDevice(dst, unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), s.handle)
	})
	if err != nil {
		return s.space.fail(fmt.Sprintf("copy %d bytes to device at %#x", len(src), uintptr(dst)), err)
	}
	return nil
}

func (s *stream) CopyToHost(dst []byte, src device.Ptr) error {
	err := s.transfer(dst, func() Code {
		return s.space.api.CopyToHost(unsafe.Pointer(unsafe.SliceData(dst)), src, int64(len(dst)), s.handle)
	})
	if err != nil {
		return s.space.fail(fmt.Sprintf("copy %d bytes from device at %#x", len(dst), uintptr(src)), err)
	}
	return nil
}

func (s *stream) CopyOnDevice(dst, src device.Ptr, bytes int64) error {
	err := errNegative(bytes)
	if err == nil && dst < src.Add(bytes) && src < dst.Add(bytes) {
		err = fmt.Errorf("%w: the two places overlap", device.ErrInvalid)
	}
	if err == nil {
		err = s.use(nil, func() Code {
			if bytes == 0 {
				return Success
			}
			return s.space.api.CopyOnDevice(dst, src, bytes, s.handle)
		})
	}
	if err != nil {
		return s.space.fail(fmt.Sprintf("copy %d bytes on device from %#x to %#x", bytes, uintptr(src), uintptr(dst)), err)
	}
	return nil
}

// transfer makes a copy between host memory and the device. Host memory that
// isn't pinned may be reused by its owner, or collected as garbage, sooner than
// a driver is done with it: what drivers do with such memory differs. So the
// copy is over when transfer returns, which costs nothing where the driver had
// to wait anyway.
func (s *stream) transfer(host []byte, do func() Code) error {
	if len(host) == 0 {
		return s.use(nil, func() Code { return Success })
	}
	defer runtime.KeepAlive(host)
	return s.use(nil, func() Code {
		pinned, c := s.space.isPinned(host)
		if c != Success {
			return c
		}
		c = do()
		if c != Success || pinned {
			return c
		}
		c = s.space.api.SynchronizeStream(s.handle)
		if c != Success {
			s.space.keep(host)
		}
		return c
	})
}

// keep holds host memory, which a copy that couldn't be waited for may still
// use, as long as the space.
func (s *Space) keep(host []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, host)
}
