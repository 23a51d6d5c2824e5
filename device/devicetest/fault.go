package devicetest

import (
	"errors"

	"github.com/fieldstone-io/fieldstone/device"
)

// nowhere is an address that no device has given out.
const nowhere = device.Ptr(4096)

var faultChecks = []Check{
	{Name: "a kernel that goes astray loses the space", fault: true, run: func(c *checker) {
		s, k, e := c.stream(), c.kernels(), c.event()
		p, host := c.memory(8000), c.pinned(8000, 1)
		c.goAstray(s, k, p)

		err := s.Synchronize()
		c.wantError("synchronize", err, device.ErrLost)
		c.wantError("synchronize", err, device.ErrAddress)

		_, allocate := c.space.Allocate(8)
		_, allocateHost := c.space.AllocateHost(8)
		_, register := c.space.RegisterHost(make([]byte, 100))
		_, stream := c.space.NewStream()
		_, event := c.space.NewEvent()
		_, load := c.space.LoadModule(c.image)
		_, info := c.space.MemoryInfo()
		_, queryStream := s.Query()
		_, queryEvent := e.Query()
		var args device.Args
		for what, err := range map[string]error{
			"allocate":           allocate,
			"allocate host":      allocateHost,
			"register host":      register,
			"new stream":         stream,
			"new event":          event,
			"load module":        load,
			"memory info":        info,
			"query stream":       queryStream,
			"query event":        queryEvent,
			"copy to device":     s.CopyToDevice(p, host),
			"copy to host":       s.CopyToHost(host, p),
			"fill":               s.Fill(p, 0, 8),
			"launch":             s.Launch(k.pack, astray.config(), astray.args(&args, p, p.Add(4000))),
			"record":             s.Record(e),
			"wait":               s.Wait(e),
			"synchronize stream": s.Synchronize(),
			"synchronize event":  e.Synchronize(),
			"synchronize space":  c.space.Synchronize(),
		} {
			c.wantError(what, err, device.ErrLost)
			c.wantError(what, err, device.ErrAddress)
		}
	}},
	{Name: "a failure that nobody waits for is reported once", fault: true, run: func(c *checker) {
		s, err := c.space.NewStream()
		c.must(err)
		m, err := c.space.LoadModule(c.image)
		c.must(err)
		pack, err := m.Kernel("pack3d")
		c.must(err)
		c.goAstray(s, testKernels{pack: pack}, nowhere)

		c.closed = true
		var reports []error
		for _, free := range []func() error{s.Close, m.Close, c.space.Close} {
			if err := free(); err != nil {
				reports = append(reports, err)
			}
		}
		if len(reports) != 1 {
			c.failf("%d reports: %v", len(reports), errors.Join(reports...))
		}
		c.wantError("report", reports[0], device.ErrLost)
		c.wantError("report", reports[0], device.ErrAddress)
	}},
	{Name: "after a loss a new space works", fault: true, run: func(c *checker) {
		s, k := c.stream(), c.kernels()
		p := c.memory(8000)
		c.goAstray(s, k, p)
		c.wantError("synchronize", s.Synchronize(), device.ErrLost)
		c.free()
		c.must(c.space.Close())
		c.closed = true

		c.another(func(other *checker) {
			other.packAndUnpack(other.stream(), other.kernels(), astray)
		})
	}},
}

var astray = kernelBox{padded: [3]int64{10, 10, 10}, size: [3]int64{5, 5, 5}}

// goAstray queues a kernel that reads memory which isn't there.
func (c *checker) goAstray(s device.Stream, k testKernels, p device.Ptr) {
	var args device.Args
	c.must(s.Launch(k.pack, astray.config(), astray.args(&args, p, nowhere)))
}
