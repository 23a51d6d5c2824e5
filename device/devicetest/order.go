package devicetest

import (
	"runtime"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
)

const (
	// rounds is how often checks of order are repeated, because a device that
	// happens to be quick hides a missing wait.
	rounds = 5
	// bulk is the size of copies that take a device a while.
	bulk = 1 << 18
)

var orderChecks = []Check{
	{Name: "work of one stream runs in order", run: func(c *checker) {
		s, p, q := c.stream(), c.memory(bulk), c.memory(bulk)
		a, b, got := c.pinned(bulk, 1), c.pinned(bulk, 2), c.pinned(bulk, 3)
		for range rounds {
			c.must(s.CopyToDevice(p, a))
			c.must(s.CopyOnDevice(q, p, bulk))
			c.must(s.CopyToDevice(p, b))
			c.must(s.CopyToHost(got, q))
			c.must(s.Fill(q, 0, bulk))
			c.must(s.Synchronize())
			c.wantBytes("copy", got, a)
			clear(got)
		}
	}},
	{Name: "stream synchronize waits for the stream", run: func(c *checker) {
		c.waitBy(func(s device.Stream) { c.must(s.Synchronize()) })
	}},
	{Name: "space synchronize waits for every stream", run: func(c *checker) {
		c.waitBy(func(device.Stream) { c.must(c.space.Synchronize()) })
	}},
	{Name: "event synchronize waits for what was recorded", run: func(c *checker) {
		e := c.event()
		c.waitBy(func(s device.Stream) {
			c.must(s.Record(e))
			c.must(e.Synchronize())
		})
	}},
	{Name: "a stream's query tells the truth", run: func(c *checker) {
		c.waitBy(func(s device.Stream) { c.poll(s.Query) })
	}},
	{Name: "an event's query tells the truth", run: func(c *checker) {
		e := c.event()
		c.waitBy(func(s device.Stream) {
			c.must(s.Record(e))
			c.poll(e.Query)
		})
	}},
	{Name: "an event orders two streams", run: func(c *checker) {
		a, b, e := c.stream(), c.stream(), c.event()
		p, q := c.memory(bulk), c.memory(bulk)
		want, got := c.pinned(bulk, 1), c.pinned(bulk, 2)
		for round := range rounds {
			pattern(want, byte(round))
			c.must(a.CopyToDevice(p, want))
			c.must(a.Record(e))
			c.must(b.Wait(e))
			c.must(b.CopyOnDevice(q, p, bulk))
			c.must(b.CopyToHost(got, q))
			c.must(b.Synchronize())
			c.wantBytes("second stream", got, want)
		}
	}},
	{Name: "an event orders two streams that the space waits for", run: func(c *checker) {
		a, b, e := c.stream(), c.stream(), c.event()
		p, want, got := c.memory(bulk), c.pinned(bulk, 1), c.pinned(bulk, 2)
		for round := range rounds {
			pattern(want, byte(round))
			c.must(a.CopyToDevice(p, want))
			c.must(a.Record(e))
			c.must(b.Wait(e))
			c.must(b.CopyToHost(got, p))
			c.must(c.space.Synchronize())
			c.wantBytes("second stream", got, want)
			// The space may wait for the streams in any order.
			a, b = b, a
		}
	}},
	{Name: "waiting keeps to what the event stood for", run: func(c *checker) {
		// Were the second record waited for, both streams would wait for each
		// other for ever.
		a, b, e, f := c.stream(), c.stream(), c.event(), c.event()
		p, want, got := c.memory(bulk), c.pinned(bulk, 1), c.pinned(bulk, 2)
		c.must(a.CopyToDevice(p, want))
		c.must(a.Record(e))
		c.must(b.Wait(e))
		c.must(b.CopyToHost(got, p))
		c.must(b.Record(f))
		c.must(a.Wait(f))
		c.must(a.Fill(p, 0, bulk))
		c.must(a.Record(e))
		c.must(a.Synchronize())
		c.wantBytes("second stream", got, want)
		c.wantDevice(a, "device memory", p, make([]byte, bulk))
	}},
	{Name: "an event that was never recorded holds nobody up", run: func(c *checker) {
		s, e := c.stream(), c.event()
		done, err := e.Query()
		c.must(err)
		if !done {
			c.failf("query: not done")
		}
		c.must(e.Synchronize())
		c.must(s.Wait(e))
		c.roundTrip(s, 100)
	}},
	{Name: "a closed event still orders the streams that wait", run: func(c *checker) {
		a, b := c.stream(), c.stream()
		e, err := c.space.NewEvent()
		c.must(err)
		p, want, got := c.memory(bulk), c.pinned(bulk, 1), c.pinned(bulk, 2)
		c.must(a.CopyToDevice(p, want))
		c.must(a.Record(e))
		c.must(b.Wait(e))
		c.must(e.Close())
		c.must(b.CopyToHost(got, p))
		c.must(b.Synchronize())
		c.wantBytes("second stream", got, want)
	}},
	{Name: "work of a closed stream still runs", run: func(c *checker) {
		s, err := c.space.NewStream()
		c.must(err)
		p, want := c.memory(bulk), c.pinned(bulk, 1)
		c.must(s.CopyToDevice(p, want))
		c.must(s.Close())
		c.must(c.space.Synchronize())
		c.wantDevice(c.stream(), "device memory", p, want)
	}},
	{Name: "a wrapped stream is the same queue and is left alone", run: func(c *checker) {
		s := c.stream()
		w, err := c.space.WrapStream(s.Handle())
		c.must(err)
		p, want, got := c.memory(bulk), c.pinned(bulk, 1), c.pinned(bulk, 2)
		c.must(s.CopyToDevice(p, want))
		c.must(w.CopyToHost(got, p))
		c.must(s.Synchronize())
		c.wantBytes("copy", got, want)
		c.must(w.Close())
		c.wantError("second close", w.Close(), device.ErrClosed)
		c.roundTrip(s, 100)
	}},
	{Name: "handle 0 is the default stream", run: func(c *checker) {
		s, err := c.space.WrapStream(0)
		c.must(err)
		c.roundTrip(s, 100)
		c.must(s.Close())
	}},
	{Name: "the default stream of a thread is refused", run: func(c *checker) {
		switch c.space.Properties().Kind {
		case "cuda", "hip", "mumax":
			_, err := c.space.WrapStream(2)
			c.wantError("wrap stream 2", err, device.ErrInvalid)
		}
	}},
	{Name: "a space that is held works as it does otherwise", run: func(c *checker) {
		h, ok := c.space.(device.Holder)
		if !ok {
			return
		}
		s := c.stream()
		c.another(func(other *checker) {
			o, own := other.space.(device.Holder), other.stream()
			both := func() {
				c.roundTrip(s, 1000)
				other.roundTrip(own, 1000)
			}
			h.Hold()
			defer h.Release()
			both()
			func() {
				o.Hold()
				defer o.Release()
				both()
				h.Hold()
				defer h.Release()
				both()
			}()
			both()
			var err error
			var wg sync.WaitGroup
			wg.Go(func() {
				err = (&checker{space: c.space}).run(Check{run: func(c *checker) { c.roundTrip(s, 1000) }})
			})
			wg.Wait()
			c.must(err)
		})
		c.roundTrip(s, 1000)
	}},
	{Name: "streams belong to their space", run: func(c *checker) {
		if s := c.stream(); s.Space() != c.space {
			c.failf("a stream of %s says that it belongs to %s", c.space.Name(), s.Space().Name())
		}
	}},
	{Name: "goroutines can use the space at once, and each other's things", run: func(c *checker) {
		const goroutines = 8
		errs := make([]error, goroutines)
		var wg sync.WaitGroup
		s := c.stream()
		p, e := c.memory(goroutines*4096), c.event()
		for g := range goroutines {
			wg.Go(func() {
				// An OS thread of its own, which has seen no context before.
				runtime.LockOSThread()
				own := &checker{space: c.space}
				errs[g] = own.run(Check{run: func(own *checker) {
					for i := range rounds {
						part := p.Add(int64(g) * 4096)
						up, down := own.pinned(4096, byte(g)), own.pinned(4096, byte(i))
						own.must(s.CopyToDevice(part, up))
						own.must(s.Record(e))
						mine := own.stream()
						own.must(mine.Wait(e))
						own.must(mine.CopyToHost(down, part))
						own.must(mine.Synchronize())
						own.wantBytes("part", down, up)
					}
				}})
			})
		}
		wg.Wait()
		for _, err := range errs {
			c.must(err)
		}
	}},
}

// waitBy queues copies, waits in the given way, and checks that they are over.
func (c *checker) waitBy(wait func(s device.Stream)) {
	s, p := c.stream(), c.memory(bulk)
	want, got := c.pinned(bulk, 1), c.pinned(bulk, 2)
	for round := range rounds {
		pattern(want, byte(round))
		c.must(s.CopyToDevice(p, want))
		c.must(s.CopyToHost(got, p))
		wait(s)
		c.wantBytes("copy", got, want)
	}
}

// poll asks until the answer is yes.
func (c *checker) poll(query func() (bool, error)) {
	for {
		done, err := query()
		c.must(err)
		if done {
			return
		}
		runtime.Gosched()
	}
}
