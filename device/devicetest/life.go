package devicetest

import "github.com/fieldstone-io/fieldstone/device"

var lifeChecks = []Check{
	{"streams and events can't be closed twice, nor used afterwards", func(c *checker) {
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
	{"a closed space can't be used", func(c *checker) {
		c.must(c.space.Close())
		c.closed = true
		_, err := c.space.Allocate(8)
		c.wantError("allocate", err, device.ErrClosed)
		_, err = c.space.NewStream()
		c.wantError("new stream", err, device.ErrClosed)
		c.wantError("synchronize", c.space.Synchronize(), device.ErrClosed)
		c.wantError("second close", c.space.Close(), device.ErrClosed)
	}},
}
