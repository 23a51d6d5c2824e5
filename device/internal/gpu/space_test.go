package gpu_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// driver is an API whose streams and events can be used until they are closed. A call
// that uses one afterwards, or without the context, is noted.
type driver struct {
	gpu.API // nil: the tests don't call the other methods

	mu      sync.Mutex
	alive   map[uintptr]bool
	last    uintptr
	misused error
	fail    gpu.Code // of the next synchronisation
	lost    gpu.Code // of all calls from then on
	closed  atomic.Int64
	meet    *sync.WaitGroup // of all that are to meet the loss, if it isn't nil

	hostFails gpu.Code // of the next call for host memory
	freeing   func()   // is called while host memory is freed
	waits     int      // for streams
}

func newDriver() *driver { return &driver{alive: map[uintptr]bool{}} }

func (d *driver) Meaning(c gpu.Code) gpu.Meaning {
	return gpu.Meaning{Name: fmt.Sprintf("ERROR_%d", c), Err: device.ErrDriver, Sticky: c >= 700}
}

// Current lets others run between what a call checks and what it does.
func (d *driver) Current() (gpu.Context, gpu.Code) {
	if d.meet != nil {
		d.meet.Done()
		d.meet.Wait()
	}
	runtime.Gosched()
	return 7, gpu.Success
}

func (d *driver) make() (uintptr, gpu.Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	d.alive[d.last] = true
	return d.last, d.lost
}

func (d *driver) use(handles ...uintptr) gpu.Code {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range handles {
		if !d.alive[h] {
			d.misused = fmt.Errorf("object %d is used after it was freed", h)
		}
	}
	return d.lost
}

func (d *driver) free(h uintptr) gpu.Code {
	c := d.use(h)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.alive, h)
	d.closed.Add(1)
	return c
}

func (d *driver) NewStream() (uintptr, gpu.Code) { return d.make() }
func (d *driver) CloseStream(s uintptr) gpu.Code { return d.free(s) }
func (d *driver) NewEvent() (uintptr, gpu.Code)  { return d.make() }
func (d *driver) CloseEvent(e uintptr) gpu.Code  { return d.free(e) }
func (d *driver) Record(e, s uintptr) gpu.Code   { return d.use(e, s) }
func (d *driver) Wait(s, e uintptr) gpu.Code     { return d.use(e, s) }
func (d *driver) QueryEvent(e uintptr) gpu.Code  { return d.use(e) }
func (d *driver) SynchronizeStream(s uintptr) gpu.Code {
	d.mu.Lock()
	d.waits++
	d.mu.Unlock()
	return d.use(s)
}

func (d *driver) Allocate(int64) (device.Ptr, gpu.Code) {
	h, c := d.make()
	return device.Ptr(h), c
}
func (d *driver) Free(p device.Ptr) gpu.Code { return d.free(uintptr(p)) }
func (d *driver) Fill(p device.Ptr, _ byte, _ int64, s uintptr) gpu.Code {
	return d.use(uintptr(p), s)
}

func (d *driver) Synchronize() gpu.Code {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.fail
	d.fail = gpu.Success
	return max(c, d.lost)
}

func (d *driver) CopyToDevice(device.Ptr, unsafe.Pointer, int64, uintptr) gpu.Code {
	return gpu.Success
}

func (d *driver) HostIsPinned(unsafe.Pointer) (bool, gpu.Code) { return false, gpu.Success }

func (d *driver) host() gpu.Code {
	c := d.hostFails
	d.hostFails = gpu.Success
	return c
}

func (d *driver) RegisterHost(unsafe.Pointer, int64) gpu.Code { return d.host() }

func (d *driver) UnregisterHost(unsafe.Pointer) gpu.Code {
	if d.freeing != nil {
		d.freeing()
	}
	return d.host()
}

func newSpace(d *driver, release func() gpu.Code) *gpu.Space {
	return gpu.New(gpu.Config{API: d, Properties: device.Properties{Kind: "test", Ordinal: 3}, Context: 7, Release: release})
}

// Whatever is closed while it is used, the driver never sees what it has freed, and
// everybody but one gets an error.
func TestClosingWhatIsUsed(t *testing.T) {
	for range 50 {
		d := newDriver()
		s := newSpace(d, func() gpu.Code { return gpu.Success })
		stream, err := s.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		event, err := s.NewEvent()
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var freed [3]atomic.Int64
		for range 4 {
			wg.Go(func() {
				for range 20 {
					for _, err := range []error{stream.Record(event), stream.Wait(event), stream.Synchronize()} {
						if err != nil && !errors.Is(err, device.ErrClosed) {
							t.Error(err)
						}
					}
				}
			})
			for i, free := range []func() error{stream.Close, event.Close, s.Close} {
				wg.Go(func() {
					err := free()
					if _, leak := errors.AsType[*device.LeakError](err); err == nil || leak {
						freed[i].Add(1)
					} else if !errors.Is(err, device.ErrClosed) {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if d.misused != nil {
			t.Fatal(d.misused)
		}
		if n := d.closed.Load(); n != 2 {
			t.Fatalf("%d objects are freed, want 2", n)
		}
		if freed[0].Load() > 1 || freed[1].Load() > 1 || freed[2].Load() != 1 {
			t.Fatalf("%d, %d and %d calls of close succeed", freed[0].Load(), freed[1].Load(), freed[2].Load())
		}
	}
}

func TestCloseCanBeTriedAgain(t *testing.T) {
	d := newDriver()
	refuse := gpu.Code(304)
	s := newSpace(d, func() gpu.Code { return refuse })
	if _, err := s.NewStream(); err != nil {
		t.Fatal(err)
	}
	d.fail = 304
	for _, what := range []string{"synchronize", "release"} {
		if err := s.Close(); !errors.Is(err, device.ErrDriver) {
			t.Errorf("%s fails: close returns %v", what, err)
		}
	}
	refuse = gpu.Success
	leak, ok := errors.AsType[*device.LeakError](s.Close())
	if !ok || leak.Live != (device.Live{Streams: 1}) {
		t.Errorf("leaks: %v", leak)
	}
	if err := s.Close(); !errors.Is(err, device.ErrClosed) {
		t.Errorf("close after success: %v", err)
	}
	if d.closed.Load() != 1 {
		t.Errorf("%d streams are closed", d.closed.Load())
	}
}

// Many goroutines meet the error at once. One of them reports it as its own, the
// others report that one.
func TestALossHasOneOrigin(t *testing.T) {
	d := newDriver()
	s := newSpace(d, nil)
	stream, err := s.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	d.lost = 719
	errs := make([]error, 8)
	d.meet = new(sync.WaitGroup)
	d.meet.Add(len(errs))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			if i%2 == 0 {
				errs[i] = stream.Synchronize()
			} else {
				_, errs[i] = s.NewEvent()
			}
		})
	}
	wg.Wait()
	d.meet = nil
	firsts := 0
	var origin string
	for _, err := range errs {
		switch err.Error() {
		case "test:3: synchronize stream: device lost: driver error: ERROR_719 (code 719)":
			firsts, origin = firsts+1, "synchronize stream"
		case "test:3: new event: device lost: driver error: ERROR_719 (code 719)":
			firsts, origin = firsts+1, "new event"
		}
	}
	if firsts != 1 {
		t.Fatalf("%d first reports: %v", firsts, errors.Join(errs...))
	}
	_, err = s.Allocate(8)
	want := fmt.Sprintf("test:3: allocate 8 bytes: device lost since %s: driver error: ERROR_719 (code 719)", origin)
	if err == nil || err.Error() != want {
		t.Errorf("later error %v\nwant %s", err, want)
	}
	if err := stream.Close(); err != nil {
		t.Errorf("close of a stream: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// What is known as pinned is what the driver has pinned, also after it has refused
// something, and while it frees.
func TestPinnedMemoryIsWhatTheDriverHasPinned(t *testing.T) {
	d := newDriver()
	s := newSpace(d, nil)
	stream, err := s.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 100)
	pinned := func() bool {
		before := d.waits
		if err := stream.CopyToDevice(1, mem); err != nil {
			t.Fatal(err)
		}
		return d.waits == before
	}

	d.hostFails = 2
	if _, err := s.RegisterHost(mem); !errors.Is(err, device.ErrDriver) {
		t.Fatalf("a registration that the driver refuses: %v", err)
	}
	if pinned() {
		t.Error("memory is pinned after a refusal")
	}
	r, err := s.RegisterHost(mem)
	if err != nil {
		t.Fatal(err)
	}
	if !pinned() {
		t.Error("registered memory isn't pinned")
	}
	d.hostFails = 2
	if err := r.Free(); !errors.Is(err, device.ErrDriver) {
		t.Fatalf("an end that the driver refuses: %v", err)
	}
	if !pinned() {
		t.Error("memory isn't pinned any more, after a refusal")
	}
	// Its addresses may be given out again before the call is back.
	other := newSpace(newDriver(), nil)
	var again device.HostMemory
	d.freeing = func() {
		if again, err = other.RegisterHost(mem); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(r.Free(), err); err != nil {
		t.Fatal(err)
	}
	if !pinned() {
		t.Error("the end of one registration ends another")
	}
	if err := errors.Join(again.Free(), other.Close(), stream.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
