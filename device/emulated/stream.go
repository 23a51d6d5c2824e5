package emulated

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
)

// NewStream implements [device.Space].
func (d *Device) NewStream() (device.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallNewStream); err != nil {
		return nil, d.fail("new stream", err)
	}
	d.live.Streams++
	return &stream{d: d, q: d.startQueue(), own: true}, nil
}

// WrapStream implements [device.Space]. Handles are those that
// [device.Stream.Handle] returns, for streams that aren't closed.
func (d *Device) WrapStream(handle uintptr) (device.Stream, error) {
	op := fmt.Sprintf("wrap stream %d", handle)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallWrapStream); err != nil {
		return nil, d.fail(op, err)
	}
	for _, q := range d.queues {
		if q.handle == handle && !q.closing {
			return &stream{d: d, q: q}, nil
		}
	}
	return nil, d.fail(op, fmt.Errorf("%w: no such stream", device.ErrInvalid))
}

type stream struct {
	d      *Device
	q      *queue
	own    bool
	closed bool
}

func (s *stream) Space() device.Space { return s.d }
func (s *stream) Handle() uintptr     { return s.q.handle }

func (s *stream) enter(c Call) error {
	if err := s.d.enter(c); err != nil {
		return err
	}
	if s.closed || s.q.closing {
		return fmt.Errorf("%w: stream", device.ErrClosed)
	}
	return nil
}

// queued begins a call that queues work, calls check, and queues run unless
// the call was told to fail later.
func (s *stream) queued(c Call, op string, check func() error, run func() error) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.enter(c); err != nil {
		return s.d.fail(op, err)
	}
	if err := check(); err != nil {
		return s.d.fail(op, err)
	}
	late := s.d.injectLate(c)
	s.q.add(func() error {
		err := late
		if err == nil {
			err = run()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		return nil
	})
	return nil
}

func (s *stream) Fill(dst device.Ptr, value byte, bytes int64) error {
	op := fmt.Sprintf("fill %d bytes at %#x", bytes, uintptr(dst))
	return s.queued(CallFill, op, func() error {
		_, err := s.d.arena.bytes(dst, bytes)
		if err == nil {
			s.d.transfers.Fills++
		}
		return err
	}, func() error {
		mem, err := s.d.resolve(dst, bytes)
		fill(mem, value)
		return err
	})
}

// resolve is arena.bytes for running tasks.
func (d *Device) resolve(p device.Ptr, bytes int64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arena.bytes(p, bytes)
}

func (s *stream) Query() (bool, error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.enter(CallStreamQuery); err != nil {
		return false, s.d.fail("query stream", err)
	}
	return s.d.query(point{s.q, s.q.added}), nil
}

// query reports whether a point is passed. Asking counts as a demand, or a
// program that asks again and again would never come to an end.
func (d *Device) query(p point) bool {
	if p.passed() {
		return true
	}
	p.q.want(p.number)
	return false
}

func (s *stream) Synchronize() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.enter(CallStreamSynchronize); err != nil {
		return s.d.fail("synchronize stream", err)
	}
	s.q.waitFor(s.q.added)
	if s.d.lost != nil {
		return s.d.fail("synchronize stream", s.d.lost)
	}
	return nil
}

func (s *stream) Close() error {
	const op = "close stream"
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.enterFree(CallCloseStream); err != nil {
		return s.d.fail(op, err)
	}
	if s.closed {
		return s.d.fail(op, device.ErrClosed)
	}
	s.closed = true
	if s.own {
		s.d.live.Streams--
		s.q.closing = true
		s.d.changed.Broadcast()
	}
	return nil
}
