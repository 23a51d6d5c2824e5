//go:build mumax

package mumax

import (
	"sync"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// queue is a stream and how far it is known to have come. cu has no events: the
// records of events are counted, and once the stream has been found empty, all
// records of before are over.
type queue struct {
	handle cu.Stream

	// life is held for reading by calls that use the stream because of an
	// event, and for writing by the one that closes it.
	life sync.RWMutex

	// What follows is guarded by the bindings' lock.

	records, over uint64
	// claims counts who knows that cu has made the stream, so that it
	// synchronises with the default stream. The default stream itself has one.
	claims int
}

// event is the record that it stands for, none if queue is nil.
type event struct {
	queue  *queue
	record uint64
}

// queue returns the queue of a stream, whoever made it.
func (b *bindings) queue(stream uintptr) *queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[stream]
	if q == nil {
		q = &queue{handle: cu.Stream(stream)}
		b.queues[stream] = q
	}
	return q
}

// claim changes how many know that cu has made a stream.
func (b *bindings) claim(q *queue, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.claims += n
}

// pending reports whether an event stands for something that isn't known to be
// over.
func (b *bindings) pending(e event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.queue != nil && e.queue.over < e.record
}

func (b *bindings) event(handle uintptr) event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.events[handle]
}

// settle asks or waits for a stream to be empty.
func (b *bindings) settle(q *queue, ask func() cu.Result) gpu.Code {
	b.mu.Lock()
	records := q.records
	b.mu.Unlock()
	r := ask()
	if r == cu.SUCCESS {
		b.mu.Lock()
		q.over = max(q.over, records)
		b.mu.Unlock()
	}
	return gpu.Code(r)
}

func (b *bindings) query(q *queue) gpu.Code { return b.settle(q, q.handle.Query) }

func (b *bindings) synchronize(q *queue) gpu.Code {
	return b.settle(q, func() cu.Result { return attempt(q.handle.Synchronize) })
}

// unlessOver calls fn with the queue of an event that isn't over, nor its stream
// closed meanwhile.
func (b *bindings) unlessOver(e event, fn func(*queue) gpu.Code) gpu.Code {
	if !b.pending(e) {
		return gpu.Success
	}
	e.queue.life.RLock()
	defer e.queue.life.RUnlock()
	if !b.pending(e) {
		return gpu.Success
	}
	return fn(e.queue)
}

func (b *bindings) NewStream() (uintptr, gpu.Code) {
	q := &queue{claims: 1}
	if c := try(func() { q.handle = cu.StreamCreate() }); c != gpu.Success {
		return 0, c
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues[uintptr(q.handle)] = q
	return uintptr(q.handle), gpu.Success
}

// CloseStream waits for the stream if an event may be asked for later, which
// would have no stream to ask then.
func (b *bindings) CloseStream(stream uintptr) gpu.Code {
	q := b.queue(stream)
	q.life.Lock()
	defer q.life.Unlock()
	b.mu.Lock()
	last := event{q, q.records}
	b.mu.Unlock()
	waited := gpu.Success
	if b.pending(last) {
		if waited = b.synchronize(q); waited != gpu.Success && !b.Meaning(waited).Sticky {
			return waited
		}
	}
	handle := q.handle
	if c := try(handle.Destroy); c != gpu.Success {
		return c
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queues, stream)
	q.over = q.records
	return waited
}

func (b *bindings) QueryStream(stream uintptr) gpu.Code { return b.query(b.queue(stream)) }

func (b *bindings) SynchronizeStream(stream uintptr) gpu.Code { return b.synchronize(b.queue(stream)) }

func (b *bindings) NewEvent() (uintptr, gpu.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newest++
	b.events[b.newest] = &event{}
	return b.newest, gpu.Success
}

func (b *bindings) CloseEvent(handle uintptr) gpu.Code {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.events, handle)
	return gpu.Success
}

func (b *bindings) QueryEvent(handle uintptr) gpu.Code {
	return b.unlessOver(b.event(handle), b.query)
}

func (b *bindings) SynchronizeEvent(handle uintptr) gpu.Code {
	return b.unlessOver(b.event(handle), b.synchronize)
}

func (b *bindings) Record(handle, stream uintptr) gpu.Code {
	q := b.queue(stream)
	b.mu.Lock()
	defer b.mu.Unlock()
	q.records++
	*b.events[handle] = event{q, q.records}
	return gpu.Success
}

// Wait puts an empty piece of work into the default stream, which all streams that
// cu makes synchronise with. For others the host waits.
func (b *bindings) Wait(stream, handle uintptr) gpu.Code {
	q, e := b.queue(stream), b.event(handle)
	if !b.pending(e) || e.queue == q {
		return gpu.Success
	}
	b.mu.Lock()
	made := e.queue.claims > 0 && q.claims > 0
	b.mu.Unlock()
	switch {
	case !made:
		return b.unlessOver(e, b.synchronize)
	case e.queue.handle == 0 || q.handle == 0:
		return gpu.Success
	}
	return try(func() { cu.MemsetD8Async(b.word, 0, 1, 0) })
}
