package devicetest

import (
	"strings"

	"github.com/fieldstone-io/fieldstone/device"
)

var lifeChecks = []Check{
	{Name: "streams and events can't be closed twice, nor used afterwards", run: func(c *checker) {
		s, err := c.space.NewStream()
		c.must(err)
		e, err := c.space.NewEvent()
		c.must(err)
		c.must(e.Close())
		c.wantError("event", e.Close(), device.ErrClosed)
		c.wantError("record of a closed event", s.Record(e), device.ErrClosed)
		c.wantError("wait for a closed event", s.Wait(e), device.ErrClosed)
		c.wantError("synchronize of a closed event", e.Synchronize(), device.ErrClosed)
		_, err = e.Query()
		c.wantError("query of a closed event", err, device.ErrClosed)
		c.must(s.Close())
		c.wantError("stream", s.Close(), device.ErrClosed)
		c.wantError("copy on a closed stream", s.CopyToDevice(c.memory(8), make([]byte, 8)), device.ErrClosed)
		c.wantError("synchronize of a closed stream", s.Synchronize(), device.ErrClosed)
	}},
	{Name: "a closed space can't be used", run: func(c *checker) {
		c.must(c.space.Close())
		c.closed = true
		_, err := c.space.Allocate(8)
		c.wantError("allocate", err, device.ErrClosed)
		_, err = c.space.NewStream()
		c.wantError("new stream", err, device.ErrClosed)
		c.wantError("synchronize", c.space.Synchronize(), device.ErrClosed)
		c.wantError("second close", c.space.Close(), device.ErrClosed)
	}},
	{Name: "things of another space are refused", run: func(c *checker) {
		c.another(func(other *checker) {
			e, k := other.event(), other.kernels()
			s := c.stream()
			c.wantError("record", s.Record(e), device.ErrInvalid)
			c.wantError("wait", s.Wait(e), device.ErrInvalid)
			c.wantError("launch", s.Launch(k.pack, device.LaunchConfig{}, nil), device.ErrInvalid)
			c.wantError("launch of nothing", s.Launch(nil, device.LaunchConfig{}, nil), device.ErrInvalid)
			c.wantError("record of nothing", s.Record(nil), device.ErrInvalid)
			c.must(s.Synchronize())
		})
	}},
	{Name: "what isn't freed is reported", run: func(c *checker) {
		_, err := c.space.Allocate(8)
		c.must(err)
		for range 2 {
			_, err = c.space.NewEvent()
			c.must(err)
		}
		_, err = c.space.NewStream()
		c.must(err)
		_, err = c.space.AllocateHost(8)
		c.must(err)
		_, err = c.space.WrapStream(0)
		c.must(err)
		_, err = c.space.LoadModule(c.image)
		c.must(err)
		c.closed = true
		err = c.space.Close()
		if err == nil || !strings.Contains(err.Error(), "not freed: 1 memory, 1 host memory, 1 streams, 2 events, 1 modules") {
			c.failf("close reports %v", err)
		}
		c.wantError("second close", c.space.Close(), device.ErrClosed)
	}},
}
