package emulated

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
)

// NewEvent implements [device.Space].
func (d *Device) NewEvent() (device.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallNewEvent); err != nil {
		return nil, d.fail("new event", err)
	}
	d.live.Events++
	return &event{d: d}, nil
}

type event struct {
	d      *Device
	at     point // zero: never recorded
	closed bool
}

func (e *event) enter(c Call) error {
	if err := e.d.enter(c); err != nil {
		return err
	}
	if e.closed {
		return fmt.Errorf("%w: event", device.ErrClosed)
	}
	return e.orphaned()
}

// orphaned is the error of whoever asks for an event whose stream is closed: a driver may
// follow a pointer to what is left of the stream.
func (e *event) orphaned() error {
	if e.at.q != nil && e.at.q.closing {
		return fmt.Errorf("%w: event was recorded on a stream that is closed since", device.ErrInvalid)
	}
	return nil
}

func (e *event) Query() (bool, error) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if err := e.enter(CallEventQuery); err != nil {
		return false, e.d.fail("query event", err)
	}
	return e.d.query(e.at), nil
}

func (e *event) Synchronize() error {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if err := e.enter(CallEventSynchronize); err != nil {
		return e.d.fail("synchronize event", err)
	}
	if at := e.at; at.q != nil {
		at.q.waitFor(at.number)
	}
	if e.d.lost != nil {
		return e.d.fail("synchronize event", e.d.lost)
	}
	return nil
}

func (e *event) Close() error {
	const op = "close event"
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if err := e.d.enterFree(CallCloseEvent); err != nil {
		return e.d.fail(op, err)
	}
	if e.closed {
		return e.d.fail(op, device.ErrClosed)
	}
	e.closed = true
	e.d.live.Events--
	return nil
}

func (s *stream) Record(ev device.Event) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	e, err := s.event(CallRecord, ev)
	if err != nil {
		return s.d.fail("record event", err)
	}
	e.at = point{s.q, s.q.added}
	return nil
}

func (s *stream) Wait(ev device.Event) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	e, err := s.event(CallWait, ev)
	if err == nil {
		err = e.orphaned()
	}
	if err != nil {
		return s.d.fail("wait for event", err)
	}
	if !e.at.passed() {
		s.q.add(func() error { return nil }, e.at)
	}
	return nil
}

// event begins a call with an event, which must be this device's.
func (s *stream) event(c Call, ev device.Event) (*event, error) {
	if err := s.enter(c); err != nil {
		return nil, err
	}
	e, ok := ev.(*event)
	if !ok || e.d != s.d {
		return nil, fmt.Errorf("%w: event is not one of this device", device.ErrInvalid)
	}
	if e.closed {
		return nil, fmt.Errorf("%w: event", device.ErrClosed)
	}
	return e, nil
}
