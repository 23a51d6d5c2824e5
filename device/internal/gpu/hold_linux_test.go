package gpu_test

import (
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// threads is what is current on each OS thread, for all drivers of a test.
type threads struct {
	mu      sync.Mutex
	current map[int]gpu.Context
	refuse  bool // to change it
	calls   int  // that ask for it or change it
}

func (th *threads) get() gpu.Context {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.current[syscall.Gettid()]
}

// threaded is a driver that minds what is current.
type threaded struct {
	gpu.API // nil: the tests don't call the other methods
	*threads
	context gpu.Context
	t       *testing.T
}

func (d *threaded) Meaning(gpu.Code) gpu.Meaning {
	return gpu.Meaning{Name: "ERROR", Err: device.ErrDriver}
}

func (d *threaded) Current() (gpu.Context, gpu.Code) {
	d.mu.Lock()
	d.calls++
	d.mu.Unlock()
	return d.get(), gpu.Success
}

func (d *threaded) SetCurrent(c gpu.Context) gpu.Code {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.refuse {
		return 304
	}
	d.current[syscall.Gettid()] = c
	return gpu.Success
}

func (d *threaded) Synchronize() gpu.Code {
	if got := d.get(); got != d.context {
		d.t.Errorf("a call for context %d runs with context %d", d.context, got)
	}
	return gpu.Success
}

func TestHold(t *testing.T) {
	const solvers = 1
	// run runs a test on a thread where the solver has a context, with two spaces.
	run := func(name string, test func(t *testing.T, th *threads, a, b *gpu.Space)) {
		t.Run(name, func(t *testing.T) {
			th := &threads{current: map[int]gpu.Context{}}
			open := func(c gpu.Context) *gpu.Space {
				return gpu.New(gpu.Config{API: &threaded{threads: th, context: c, t: t}, Properties: device.Properties{Kind: "test"}, Context: c})
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			th.current[syscall.Gettid()] = solvers
			test(t, th, open(2), open(3))
			if got := th.get(); got != solvers {
				t.Errorf("the solver finds context %d afterwards", got)
			}
		})
	}
	use := func(t *testing.T, spaces ...*gpu.Space) {
		t.Helper()
		for _, s := range spaces {
			if err := s.Synchronize(); err != nil {
				t.Error(err)
			}
		}
	}

	run("many calls change the context once", func(t *testing.T, th *threads, a, _ *gpu.Space) {
		a.Hold()
		use(t, a, a, a, a, a)
		a.Release()
		if th.calls != 3 {
			t.Errorf("%d calls about the context, want 3", th.calls)
		}
	})
	run("holds of a space nest", func(t *testing.T, th *threads, a, _ *gpu.Space) {
		a.Hold()
		a.Hold()
		use(t, a)
		a.Release()
		use(t, a)
		a.Release()
		if th.calls != 3 {
			t.Errorf("%d calls about the context, want 3", th.calls)
		}
		use(t, a)
		if th.calls != 6 {
			t.Errorf("%d calls about the context once nothing is held, want 3 more", th.calls-3)
		}
	})
	run("holds of two spaces nest", func(t *testing.T, th *threads, a, b *gpu.Space) {
		a.Hold()
		use(t, a, b, a)
		b.Hold()
		use(t, b, a, b)
		a.Hold()
		use(t, a, b, a)
		a.Release()
		use(t, b, a)
		b.Release()
		use(t, a, b)
		a.Release()
	})
	run("other goroutines aren't held", func(t *testing.T, th *threads, a, b *gpu.Space) {
		a.Hold()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				use(t, a, b)
				b.Hold()
				use(t, a, b)
				b.Release()
				use(t, a, b)
			})
		}
		wg.Wait()
		use(t, a)
		a.Release()
		for thread, c := range th.current {
			if c != 0 && c != solvers {
				t.Errorf("thread %d is left with context %d", thread, c)
			}
		}
	})
	run("what the driver refuses is the error of the calls", func(t *testing.T, th *threads, a, _ *gpu.Space) {
		th.refuse = true
		a.Hold()
		if err := a.Synchronize(); !errors.Is(err, device.ErrDriver) {
			t.Errorf("error %v", err)
		}
		th.refuse = false
		use(t, a)
		a.Release()
	})
	run("a space that is closed meanwhile", func(t *testing.T, th *threads, a, _ *gpu.Space) {
		a.Hold()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := a.Synchronize(); !errors.Is(err, device.ErrClosed) {
			t.Errorf("error %v", err)
		}
		a.Release()
		a.Hold()
		a.Release()
	})
	run("a release without a hold", func(t *testing.T, th *threads, a, b *gpu.Space) {
		a.Release()
		b.Hold()
		a.Release()
		use(t, b)
		b.Release()
		if th.calls != 3 {
			t.Errorf("%d calls about the context, want 3", th.calls)
		}
	})
}
