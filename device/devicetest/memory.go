package devicetest

import (
	"math"
	"strings"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

var memoryChecks = []Check{
	{Name: "name is kind and number", run: func(c *checker) {
		kind, which, ok := strings.Cut(c.space.Name(), ":")
		if p := c.space.Properties(); !ok || kind == "" || which == "" || p.Kind != kind {
			c.failf("name %q, kind %q", c.space.Name(), p.Kind)
		}
	}},
	{Name: "free memory is part of the total", run: func(c *checker) {
		m, err := c.space.MemoryInfo()
		c.must(err)
		if m.Total <= 0 || m.Free < 0 || m.Free > m.Total {
			c.failf("memory info %+v", m)
		}
	}},
	{Name: "free memory is less while memory is allocated", run: func(c *checker) {
		const size = 16 << 20
		free := func() int64 {
			m, err := c.space.MemoryInfo()
			c.must(err)
			return m.Free
		}
		// Others may use the device too, so once is enough.
		var before, during, after int64
		for range 5 {
			before = free()
			m, err := c.space.Allocate(size)
			c.must(err)
			during = free()
			c.must(m.Free())
			after = free()
			if during <= before-size && after >= during+size {
				return
			}
		}
		c.failf("%d bytes are free before, %d with %d allocated, %d after", before, during, size, after)
	}},
	{Name: "device memory is aligned to 256 bytes", run: func(c *checker) {
		for _, n := range []int64{1, 100, 4096, 5000} {
			if p := c.memory(n); p == 0 || p%256 != 0 {
				c.failf("%d bytes are at %#x", n, uintptr(p))
			}
		}
	}},
	{Name: "allocations don't overlap", run: func(c *checker) {
		s := c.stream()
		const n, size = 20, 3000
		var ptrs [n]device.Ptr
		for i := range ptrs {
			ptrs[i] = c.memory(size)
			c.must(s.CopyToDevice(ptrs[i], patterned(size, byte(i))))
		}
		got := make([]byte, size)
		for i, p := range ptrs {
			c.must(s.CopyToHost(got, p))
			c.must(s.Synchronize())
			c.wantBytes("memory", got, patterned(size, byte(i)))
		}
	}},
	{Name: "memory knows its size and address", run: func(c *checker) {
		m, err := c.space.Allocate(1000)
		c.must(err)
		c.later(m.Free)
		if m.Size() != 1000 {
			c.failf("size %d, want 1000", m.Size())
		}
		base, size, err := c.space.AddressRange(m.Ptr().Add(999))
		c.must(err)
		if base > m.Ptr() || base.Add(size) < m.Ptr().Add(1000) {
			c.failf("range of %d bytes at %#x for 1000 bytes at %#x", size, uintptr(base), uintptr(m.Ptr()))
		}
	}},
	{Name: "host addresses are no device memory", run: func(c *checker) {
		host := make([]byte, 100)
		p := device.Ptr(unsafe.Pointer(&host[0]))
		_, _, err := c.space.AddressRange(p)
		c.wantError("address range", err, device.ErrAddress)
		_, err = c.space.WrapMemory(p, 100)
		c.wantError("wrap memory", err, device.ErrAddress)
		_, err = c.space.WrapMemory(0, 100)
		c.wantError("wrap address 0", err, device.ErrAddress)
	}},
	{Name: "freed memory is no device memory", run: func(c *checker) {
		m, err := c.space.Allocate(1 << 20)
		c.must(err)
		c.must(m.Free())
		_, err = c.space.WrapMemory(m.Ptr(), 1<<20)
		c.wantError("wrap memory", err, device.ErrAddress)
	}},
	{Name: "wrapped memory is left alone", run: func(c *checker) {
		s, p := c.stream(), c.memory(1000)
		w, err := c.space.WrapMemory(p, 1000)
		c.must(err)
		if w.Ptr() != p || w.Size() != 1000 {
			c.failf("wrapped %d bytes at %#x, want 1000 at %#x", w.Size(), uintptr(w.Ptr()), uintptr(p))
		}
		want := patterned(1000, 1)
		c.must(s.CopyToDevice(w.Ptr(), want))
		c.must(s.Synchronize())
		c.must(w.Free())
		got := make([]byte, 1000)
		c.must(s.CopyToHost(got, p))
		c.must(s.Synchronize())
		c.wantBytes("memory after the wrapper's Free", got, want)
		c.wantError("second free", w.Free(), device.ErrClosed)
	}},
	{Name: "sizes that make no sense are refused", run: func(c *checker) {
		for _, n := range []int64{0, -1, math.MinInt64} {
			_, err := c.space.Allocate(n)
			c.wantError("allocate", err, device.ErrInvalid)
			_, err = c.space.AllocateHost(n)
			c.wantError("allocate host", err, device.ErrInvalid)
			_, err = c.space.WrapMemory(c.memory(8), n)
			c.wantError("wrap", err, device.ErrInvalid)
		}
		_, err := c.space.RegisterHost(nil)
		c.wantError("register nothing", err, device.ErrInvalid)
	}},
	{Name: "too large an allocation fails and nothing else does", run: func(c *checker) {
		m, err := c.space.MemoryInfo()
		c.must(err)
		_, err = c.space.Allocate(m.Total + 1)
		c.wantError("allocate more than there is", err, device.ErrOutOfMemory)
		_, err = c.space.Allocate(math.MaxInt64)
		c.wantError("allocate the largest size", err, device.ErrOutOfMemory)
		c.roundTrip(c.stream(), 1000)
	}},
	{Name: "memory can't be freed twice", run: func(c *checker) {
		m, err := c.space.Allocate(8)
		c.must(err)
		c.must(m.Free())
		c.wantError("device memory", m.Free(), device.ErrClosed)
		h, err := c.space.AllocateHost(8)
		c.must(err)
		c.must(h.Free())
		c.wantError("host memory", h.Free(), device.ErrClosed)
	}},
	{Name: "pinned host memory has its size and is aligned", run: func(c *checker) {
		for _, n := range []int{1, 100, 5000} {
			b := c.pinned(n, 0)
			if len(b) != n || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
				c.failf("%d bytes at %p, want %d", len(b), &b[0], n)
			}
		}
	}},
	{Name: "ordinary host memory isn't pinned, as the driver says", run: func(c *checker) {
		asked, ok := c.space.(interface{ HostIsPinned([]byte) (bool, error) })
		if !ok {
			return // there is no driver to ask
		}
		want := func(what string, mem []byte, want bool) {
			got, err := asked.HostIsPinned(mem)
			c.must(err)
			if got != want {
				c.failf("the driver says of %s that it is pinned: %t", what, got)
			}
		}
		own := make([]byte, 1<<20)
		want("memory of Go's", own, false)
		want("a little of it", own[1000:1008], false)
		want("constants", unsafe.Slice(unsafe.StringData("constants"), 9), false)
		pinned := c.pinned(1<<20, 1)
		want("allocated memory", pinned, true)
		want("a part of it", pinned[1001:4000], true)
		r, err := c.space.RegisterHost(own)
		c.must(err)
		if c.space.Properties().Kind != "mumax" { // which doesn't tell the driver
			want("registered memory", own, true)
			want("a part of it", own[1001:4000], true)
		}
		c.must(r.Free())
		want("memory that was registered", own, false)
	}},
	{Name: "registered host memory can be anywhere", run: func(c *checker) {
		s, p := c.stream(), c.memory(20000)
		all := patterned(20000, 1)
		mine := all[4099:15001]
		r, err := c.space.RegisterHost(mine)
		c.must(err)
		c.must(s.CopyToDevice(p, mine))
		c.must(s.Synchronize())
		clear(mine[7:5000])
		c.must(s.CopyToHost(mine[7:5000], p.Add(7)))
		c.must(s.Synchronize())
		c.wantBytes("registered memory and around", all, patterned(20000, 1))
		c.must(r.Free())
	}},
	{Name: "registered host memory keeps its bytes", run: func(c *checker) {
		s, p := c.stream(), c.memory(10000)
		mine := patterned(10000, 1)
		r, err := c.space.RegisterHost(mine)
		c.must(err)
		if b := r.Bytes(); len(b) != len(mine) || &b[0] != &mine[0] {
			c.failf("registered memory is %d bytes at %p, want %d at %p", len(b), &b[0], len(mine), &mine[0])
		}
		_, err = c.space.RegisterHost(mine[100:200])
		c.wantError("second registration", err, device.ErrInvalid)
		c.must(s.CopyToDevice(p, mine))
		c.must(s.Synchronize())
		clear(mine)
		c.must(s.CopyToHost(mine, p))
		c.must(s.Synchronize())
		c.must(r.Free())
		c.wantBytes("registered memory", mine, patterned(10000, 1))
		c.wantError("second free", r.Free(), device.ErrClosed)
		again, err := c.space.RegisterHost(mine)
		c.must(err)
		c.must(again.Free())
	}},
}

// roundTrip copies to the device and back.
func (c *checker) roundTrip(s device.Stream, bytes int) {
	p, up, down := c.memory(int64(bytes)), c.pinned(bytes, 1), c.pinned(bytes, 2)
	c.must(s.CopyToDevice(p, up))
	c.must(s.CopyToHost(down, p))
	c.must(s.Synchronize())
	c.wantBytes("round trip", down, up)
}
