package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fieldstone-io/fieldstone/device"
)

// Config tells what a space is made of.
type Config struct {
	API        API
	Properties device.Properties
	Context    Context
	// Release gives the context back; nil if it is somebody else's.
	Release func() Code
	// RegistersNothing says that the driver isn't told of memory that is
	// registered, so that it counts as any other memory.
	RegistersNothing bool
	// BoxImage returns the module of device.BoxKernels.
	BoxImage func() ([]byte, error)
}

// Space implements [device.Space] and [device.BoxKernels].
type Space struct {
	api    API
	config Config
	name   string

	lost     atomic.Pointer[lostError]
	launched atomic.Pointer[kernel]
	pinned   *pins

	// open is held for reading by every call, and for writing by Close.
	open   sync.RWMutex
	closed bool

	mu      sync.Mutex
	objects map[*object]struct{} // what isn't freed
	leaked  device.Live          // what Close has freed
	kept    [][]byte             // host memory that a copy may still use

	box struct {
		sync.Mutex
		module *module
		err    error
	}
}

var (
	_ device.Space      = (*Space)(nil)
	_ device.BoxKernels = (*Space)(nil)
)

// New returns a space. Its name is the kind and the ordinal of the properties.
func New(c Config) *Space {
	return &Space{
		api:     c.API,
		config:  c,
		name:    fmt.Sprintf("%s:%d", c.Properties.Kind, c.Properties.Ordinal),
		pinned:  pinsOf(c.Properties.Kind),
		objects: map[*object]struct{}{},
	}
}

// Name implements [device.Space].
func (s *Space) Name() string { return s.name }

// Properties implements [device.Space].
func (s *Space) Properties() device.Properties { return s.config.Properties }

// MemoryInfo implements [device.Space].
func (s *Space) MemoryInfo() (device.MemoryInfo, error) {
	var m device.MemoryInfo
	err := s.call(func() (c Code) {
		m, c = s.api.MemoryInfo()
		return c
	})
	if err != nil {
		return device.MemoryInfo{}, s.fail("memory info", err)
	}
	return m, nil
}

// Synchronize implements [device.Space].
func (s *Space) Synchronize() error {
	if err := s.call(s.api.Synchronize); err != nil {
		return s.fail("synchronize", err)
	}
	return nil
}

// Close implements [device.Space]. It waits for all work of the context,
// reports work that failed unnoticed, frees what is left and reports that with a
// [device.LeakError], and gives the context back. If the driver refuses one of
// these steps, the space stays open, and Close may be called again.
func (s *Space) Close() error {
	const op = "close"
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return s.fail(op, device.ErrClosed)
	}
	var failed []error
	// try reports whether to go on: after success, and on a lost device,
	// where only the error that loses it is of interest.
	try := func(do func() Code) bool {
		wasLost := s.isLost()
		if err := s.check(do()); err != nil && !wasLost {
			failed = append(failed, s.fail(op, err))
		}
		return len(failed) == 0 || s.isLost()
	}
	if !s.isLost() && !try(func() Code { return s.current(s.api.Synchronize) }) {
		return failed[0]
	}
	for o := range s.objects {
		var c Code
		if !try(func() Code {
			c = s.current(func() Code { return o.destroy(o.handle) })
			return c
		}) {
			return failed[0]
		}
		o.closed = true
		s.forget(o)
		o.release(c == Success)
		if !o.internal {
			*o.kind.count(&s.leaked)++
		}
	}
	if s.config.Release != nil && !try(s.config.Release) {
		return failed[0]
	}
	s.closed = true
	if s.leaked != (device.Live{}) {
		failed = append(failed, s.fail(op, &device.LeakError{Live: s.leaked}))
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

func (s *Space) isLost() bool { return s.lost.Load() != nil }

// usable returns why nothing can be done any more. The caller holds open.
func (s *Space) usable() error {
	if s.closed {
		return device.ErrClosed
	}
	if lost := s.lost.Load(); lost != nil {
		return lost
	}
	return nil
}

// ready is usable for a caller that doesn't hold open.
func (s *Space) ready() error {
	s.open.RLock()
	defer s.open.RUnlock()
	return s.usable()
}

// call makes a call on the driver.
func (s *Space) call(do func() Code) error {
	s.open.RLock()
	defer s.open.RUnlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.check(s.current(do))
}

// current runs do with the space's context current on the OS thread.
func (s *Space) current(do func() Code) Code {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if s.holds() {
		return do()
	}
	before, c := s.api.Current()
	if c != Success {
		return c
	}
	if before != s.config.Context {
		if c := s.api.SetCurrent(s.config.Context); c != Success {
			return c | refused
		}
		defer s.restore(before)
	}
	return do()
}

// restore makes current again what was before. It may be tried twice because
// it doesn't matter whether the first attempt had worked. A thread that stays
// with the wrong context would mislead the solver, so no further call is made.
func (s *Space) restore(before Context) {
	c := s.api.SetCurrent(before)
	if c != Success {
		c = s.api.SetCurrent(before)
	}
	if c != Success {
		s.lose("restore the current context", &driverError{code: c, meaning: s.api.Meaning(c)})
	}
}
