package gpu

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
)

type event struct{ *object }

// NewEvent implements [device.Space].
func (s *Space) NewEvent() (device.Event, error) {
	o := s.newObject(eventKind, s.api.CloseEvent)
	if err := o.create(s.api.NewEvent); err != nil {
		return nil, s.fail("new event", err)
	}
	return &event{o}, nil
}

func (e *event) Close() error { return e.free("close event") }

func (e *event) Query() (bool, error) {
	var c Code
	err := e.use(nil, func() Code {
		c = e.space.api.QueryEvent(e.handle)
		return queried(c)
	})
	if err != nil {
		return false, e.space.fail("query event", err)
	}
	return c == Success, nil
}

func (e *event) Synchronize() error {
	err := e.use(nil, func() Code { return e.space.api.SynchronizeEvent(e.handle) })
	if err != nil {
		return e.space.fail("synchronize event", err)
	}
	return nil
}

func (s *stream) Record(ev device.Event) error {
	e, err := s.event(ev)
	if err == nil {
		err = s.use(e.object, func() Code { return s.space.api.Record(e.handle, s.handle) })
	}
	if err != nil {
		return s.space.fail("record event", err)
	}
	return nil
}

func (s *stream) Wait(ev device.Event) error {
	e, err := s.event(ev)
	if err == nil {
		err = s.use(e.object, func() Code { return s.space.api.Wait(s.handle, e.handle) })
	}
	if err != nil {
		return s.space.fail("wait for event", err)
	}
	return nil
}

// event returns the event as one of this space.
func (s *stream) event(ev device.Event) (*event, error) {
	e, ok := ev.(*event)
	if !ok || e.space != s.space {
		return nil, fmt.Errorf("%w: event is not one of this device", device.ErrInvalid)
	}
	return e, nil
}
