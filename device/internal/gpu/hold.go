package gpu

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fieldstone-io/fieldstone/device"
)

var _ device.Holder = (*Space)(nil)

// held are the holds of all spaces, by the number of the OS thread. A thread has the
// one that began last, which knows those that began before it.
var held = struct {
	sync.RWMutex
	threads map[int]*hold
	count   atomic.Int64 // calls don't look for holds while there are none
}{threads: map[int]*hold{}}

// hold keeps a space's context current on a thread. Only that thread changes it.
type hold struct {
	space *Space
	// current says that the context is current because of the hold, or was before:
	// otherwise each call has to see to it.
	current bool
	before  Context // to be restored
	depth   int     // holds of the same space that began meanwhile
	outer   *hold
}

var holdPool = sync.Pool{New: func() any { return new(hold) }}

func holdOf(thread int) *hold {
	held.RLock()
	defer held.RUnlock()
	return held.threads[thread]
}

func setHold(thread int, h *hold) {
	held.Lock()
	defer held.Unlock()
	if h == nil {
		delete(held.threads, thread)
	} else {
		held.threads[thread] = h
	}
}

// Hold implements [device.Holder].
func (s *Space) Hold() {
	if !canHold {
		return
	}
	runtime.LockOSThread()
	thread := threadNumber()
	outer := holdOf(thread)
	if outer != nil && outer.space == s {
		outer.depth++
		return
	}
	h := holdPool.Get().(*hold)
	*h = hold{space: s, before: s.config.Context, outer: outer}
	s.open.RLock()
	if s.usable() == nil {
		before, c := s.api.Current()
		if c == Success && before != s.config.Context {
			c = s.api.SetCurrent(s.config.Context)
		}
		if c == Success {
			h.before, h.current = before, true
		}
	}
	s.open.RUnlock()
	setHold(thread, h)
	held.count.Add(1)
}

// Release implements [device.Holder].
func (s *Space) Release() {
	if !canHold {
		return
	}
	thread := threadNumber()
	h := holdOf(thread)
	if h == nil || h.space != s {
		return
	}
	defer runtime.UnlockOSThread()
	if h.depth > 0 {
		h.depth--
		return
	}
	setHold(thread, h.outer)
	held.count.Add(-1)
	if h.current && h.before != s.config.Context {
		s.restore(h.before)
	}
	*h = hold{}
	holdPool.Put(h)
}

// holds reports whether the space's context is current on this OS thread, which the
// caller has locked, because of a hold.
func (s *Space) holds() bool {
	if held.count.Load() == 0 {
		return false
	}
	h := holdOf(threadNumber())
	return h != nil && h.space == s && h.current
}
