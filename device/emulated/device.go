package emulated

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
)

// Device is an emulated device. It implements [device.Space].
type Device struct {
	name string
	opts options

	// running is held for reading while a task runs, and for writing while
	// memory is unmapped.
	running sync.RWMutex
	workers sync.WaitGroup

	boxOnce sync.Mutex // held while box kernels are loaded
	box     device.Module
	boxErr  error

	mu        sync.Mutex
	changed   *sync.Cond // any progress or demand
	arena     *arena
	queues    []*queue // those that may have work; the first is the default stream's
	handles   uintptr
	enqueued  uint64
	rand      *rand.Rand
	pinned    []pinnedRange
	live      Live
	transfers Transfers
	faults    []*Fault
	calls     int64
	lost      error
	closed    bool
}

var _ device.Space = (*Device)(nil)

// New returns a new device. Close must be called to stop its goroutines.
func New(opts ...Option) (*Device, error) {
	o := options{capacity: defaultCapacity, delay: defaultDelay}
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return nil, fmt.Errorf("new emulated device: %w", err)
		}
	}
	a, err := newArena(o.capacity)
	if err != nil {
		return nil, fmt.Errorf("new emulated device: %w: %w", device.ErrUnavailable, err)
	}
	d := &Device{
		name:  "emulated:" + strconv.Itoa(o.ordinal),
		opts:  o,
		arena: a,
		rand:  rand.New(rand.NewPCG(o.seed, 0)),
	}
	d.changed = sync.NewCond(&d.mu)
	d.mu.Lock()
	d.startQueue()
	d.mu.Unlock()
	return d, nil
}

// Name implements [device.Space].
func (d *Device) Name() string { return d.name }

// Properties implements [device.Space].
func (d *Device) Properties() device.Properties {
	return device.Properties{
		Kind:    kind,
		Ordinal: d.opts.ordinal,
		Model:   "Emulated device, " + d.opts.mode.String(),
		Arch:    "go",
		Driver:  "fieldstone",
	}
}

// MemoryInfo implements [device.Space].
func (d *Device) MemoryInfo() (device.MemoryInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallMemoryInfo); err != nil {
		return device.MemoryInfo{}, d.fail("memory info", err)
	}
	return device.MemoryInfo{Free: d.arena.capacity - d.arena.used, Total: d.arena.capacity}, nil
}

// Synchronize implements [device.Space]. The stream that was given work last
// is run first, which is the order that a program without the right events
// expects least.
func (d *Device) Synchronize() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter(CallSynchronize); err != nil {
		return d.fail("synchronize", err)
	}
	d.drain()
	if d.lost != nil {
		return d.fail("synchronize", d.lost)
	}
	return nil
}

// drain waits for all queues as they are now.
func (d *Device) drain() {
	order := slices.Clone(d.queues)
	slices.SortFunc(order, func(a, b *queue) int { return cmp.Compare(b.newest, a.newest) })
	for _, q := range order {
		q.waitFor(q.added)
	}
}

// Close implements [device.Space]. It runs what is in the queues, stops all
// goroutines, and releases everything; what wasn't freed before makes it
// return a [*LeakError]. Work that failed and that nobody has waited for is
// reported too.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return d.fail("close", device.ErrClosed)
	}
	reported := d.lost
	d.closed = true
	d.drain()
	for _, q := range d.queues {
		q.closing = true
	}
	d.changed.Broadcast()
	d.mu.Unlock()
	d.workers.Wait()

	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if reported == nil && d.lost != nil {
		errs = append(errs, d.lost)
	}
	if d.live != (Live{}) {
		errs = append(errs, &LeakError{d.live})
	}
	errs = append(errs, d.arena.close())
	if err := errors.Join(errs...); err != nil {
		return d.fail("close", err)
	}
	return nil
}

// enter begins a call: it fails if the device is closed, lost, or told to.
func (d *Device) enter(c Call) error {
	if err := d.enterFree(c); err != nil {
		return err
	}
	return d.lost
}

// enterFree begins a call that works on a lost device too.
func (d *Device) enterFree(c Call) error {
	if d.closed {
		return device.ErrClosed
	}
	return d.inject(c)
}

func (d *Device) fail(op string, err error) error {
	return &device.Error{Space: d.name, Op: op, Err: err}
}

// setLost notes the first failure of queued work.
func (d *Device) setLost(err error) {
	if d.lost == nil {
		d.lost = fmt.Errorf("%w: %w", device.ErrLost, err)
	}
}

// pause returns how long the next task is delayed.
func (d *Device) pause() time.Duration {
	if d.opts.mode != Delayed {
		return 0
	}
	return time.Duration(d.rand.Int64N(int64(d.opts.delay)))
}

// Live counts what was made on a device and not freed.
type Live struct {
	Memory, HostMemory, Streams, Events, Modules int
}

// Live returns what isn't freed now. Wrapped memory and streams don't count.
func (d *Device) Live() Live {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live
}

// LeakError says that a device was closed before everything was freed.
type LeakError struct{ Live Live }

func (e *LeakError) Error() string {
	return fmt.Sprintf("not freed: %d memory, %d host memory, %d streams, %d events, %d modules",
		e.Live.Memory, e.Live.HostMemory, e.Live.Streams, e.Live.Events, e.Live.Modules)
}

// Transfers counts the work that a device was given. What was queued counts,
// whether it has run or not; calls that failed don't.
type Transfers struct {
	ToDevice, ToHost, OnDevice Count
	Fills, Launches            int64
	// Pageable counts the copies from or to host memory that isn't pinned.
	Pageable int64
}

// Count is a number of copies and their bytes.
type Count struct{ Calls, Bytes int64 }

func (c *Count) add(bytes int64) {
	c.Calls++
	c.Bytes += bytes
}

// Transfers returns the counts since the device was made.
func (d *Device) Transfers() Transfers {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.transfers
}
