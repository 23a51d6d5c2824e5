package gpu

import (
	"fmt"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
)

// kind is what an object is.
type kind int

const (
	memoryKind kind = iota
	hostKind
	streamKind
	eventKind
	moduleKind
)

func (k kind) String() string {
	return [...]string{"memory", "host memory", "stream", "event", "module"}[k]
}

// count returns the place of a kind in the counts.
func (k kind) count(l *device.Live) *int {
	return [...]*int{&l.Memory, &l.HostMemory, &l.Streams, &l.Events, &l.Modules}[k]
}

// object is something of the driver that is used, and freed once.
type object struct {
	space  *Space
	kind   kind
	handle uintptr
	// destroy frees the object; nil if it is somebody else's.
	destroy func(handle uintptr) Code
	// gone is called when the object is freed, if it isn't nil.
	gone func()
	// internal objects are nobody's leak.
	internal bool
	// image is that of a module. HIP reads it as long as the module is loaded.
	image []byte

	// mu is held for reading by calls that use the object, and for writing
	// by the one that frees it.
	mu     sync.RWMutex
	closed bool
}

// remember adds an object to those that aren't freed.
func (s *Space) remember(o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[o] = struct{}{}
}

func (s *Space) forget(o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, o)
	if o.gone != nil {
		o.gone()
	}
}

// images are those of modules that a lost device hasn't unloaded: its driver may still
// have pointers to them.
var images struct {
	sync.Mutex
	kept [][]byte
}

// release lets go of what the driver had to be able to read, once it has destroyed the
// object.
func (o *object) release(destroyed bool) {
	if !destroyed && o.image != nil {
		images.Lock()
		defer images.Unlock()
		images.kept = append(images.kept, o.image)
	}
	o.image = nil
}

func (s *Space) newObject(k kind, destroy func(handle uintptr) Code) *object {
	return &object{space: s, kind: k, destroy: destroy}
}

// create makes the object by a call on the driver.
func (o *object) create(do func() (handle uintptr, c Code)) error {
	s := o.space
	s.open.RLock()
	defer s.open.RUnlock()
	if err := s.usable(); err != nil {
		return err
	}
	err := s.check(s.current(func() (c Code) {
		o.handle, c = do()
		return c
	}))
	if err != nil {
		return err
	}
	s.remember(o)
	return nil
}

// use makes a call on the driver that uses one or two objects.
func (o *object) use(other *object, do func() Code) error {
	s := o.space
	s.open.RLock()
	defer s.open.RUnlock()
	if err := s.usable(); err != nil {
		return err
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.closed {
		return fmt.Errorf("%w: %v", device.ErrClosed, o.kind)
	}
	if other != nil {
		other.mu.RLock()
		defer other.mu.RUnlock()
		if other.closed {
			return fmt.Errorf("%w: %v", device.ErrClosed, other.kind)
		}
	}
	return s.check(s.current(do))
}

// free frees the object. On a lost device that always succeeds, except for the
// call that loses it. If the driver refuses, the object is as before.
func (o *object) free(op string) error {
	s := o.space
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return s.fail(op, device.ErrClosed)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return s.fail(op, device.ErrClosed)
	}
	var failed error
	destroyed := true
	if o.destroy != nil {
		wasLost := s.isLost()
		err := s.check(s.current(func() Code { return o.destroy(o.handle) }))
		destroyed = err == nil
		if err != nil && !wasLost {
			failed = s.fail(op, err)
			if !s.isLost() {
				return failed
			}
		}
	}
	o.closed = true
	s.forget(o)
	o.release(destroyed)
	return failed
}
