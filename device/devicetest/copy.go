package devicetest

import (
	"fmt"
	"runtime"

	"github.com/fieldstone-io/fieldstone/device"
)

var copyChecks = []Check{
	{Name: "linear copies move every byte", run: func(c *checker) {
		s := c.stream()
		for _, n := range []int{1, 7, 256, 4096, 100_003} {
			c.roundTrip(s, n)
		}
	}},
	{Name: "linear copies move nothing else", run: func(c *checker) {
		s := c.stream()
		const size = 1000
		want := patterned(size, 1)
		p := c.load(s, want)
		c.must(s.CopyToDevice(p.Add(10), patterned(20, 2)))
		copy(want[10:30], patterned(20, 2))
		q := c.load(s, patterned(100, 3))
		c.must(s.CopyOnDevice(p.Add(500), q.Add(5), 50))
		copy(want[500:550], patterned(100, 3)[5:])
		c.must(s.Fill(p.Add(700), 0xa5, 33))
		for i := range 33 {
			want[700+i] = 0xa5
		}
		c.wantDevice(s, "device memory", p, want)

		got := patterned(size, 4)
		c.must(s.CopyToHost(got[100:200], p.Add(50)))
		c.must(s.Synchronize())
		wantHost := patterned(size, 4)
		copy(wantHost[100:200], want[50:])
		c.wantBytes("host memory", got, wantHost)
	}},
	{Name: "ordinary host memory can be copied too", run: func(c *checker) {
		s, p := c.stream(), c.memory(5000)
		c.must(s.CopyToDevice(p, patterned(5000, 1)))
		got := make([]byte, 5000)
		c.must(s.CopyToHost(got, p))
		c.must(s.Synchronize())
		c.wantBytes("host memory", got, patterned(5000, 1))
	}},
	{Name: "box copies move the box and nothing else", run: func(c *checker) {
		for _, b := range boxes {
			c.boxToDevice(b)
			c.boxToHost(b)
			c.boxOnDevice(b)
		}
	}},
	{Name: "copies of nothing do nothing", run: func(c *checker) {
		s := c.stream()
		want := patterned(100, 1)
		p := c.load(s, want)
		host := patterned(100, 2)
		c.must(s.CopyToDevice(p, nil))
		c.must(s.CopyToHost(nil, p))
		c.must(s.CopyOnDevice(p, p.Add(50), 0))
		c.must(s.Fill(p, 0, 0))
		pitch := device.Pitch{Row: 10, Rows: 2}
		for _, e := range []device.Extent{{}, {Row: 10, Rows: 0, Slices: 2}, {Row: 0, Rows: 2, Slices: 2}, {Row: 10, Rows: 2, Slices: 0}} {
			c.must(s.CopyBoxToDevice(p, pitch, host, pitch, e))
			c.must(s.CopyBoxToHost(host, pitch, p, pitch, e))
			c.must(s.CopyBoxOnDevice(p, pitch, p.Add(50), pitch, e))
		}
		c.wantDevice(s, "device memory", p, want)
		c.wantBytes("host memory", host, patterned(100, 2))
	}},
	{Name: "lengths and places that make no sense are refused", run: func(c *checker) {
		s, p := c.stream(), c.memory(1000)
		c.wantError("a negative copy", s.CopyOnDevice(p, p.Add(500), -1), device.ErrInvalid)
		c.wantError("places that overlap", s.CopyOnDevice(p, p.Add(499), 500), device.ErrInvalid)
		c.wantError("places that overlap", s.CopyOnDevice(p.Add(499), p, 500), device.ErrInvalid)
		if s.Fill(p, 0, -1) == nil {
			c.failf("a negative fill is accepted")
		}
		c.must(s.Synchronize())
	}},
	{Name: "ordinary host memory may be dropped at once", run: func(c *checker) {
		s, p := c.stream(), c.memory(bulk)
		for round := range rounds {
			c.must(s.CopyToDevice(p, patterned(bulk, byte(round))))
			runtime.GC()
			got := c.pinned(bulk, 0)
			c.must(s.CopyToHost(got, p))
			c.must(s.Synchronize())
			c.wantBytes("device memory", got, patterned(bulk, byte(round)))
		}
	}},
	{Name: "boxes that make no sense are refused", run: func(c *checker) {
		s, p, host := c.stream(), c.memory(1000), make([]byte, 1000)
		ok := device.Pitch{Row: 10, Rows: 5}
		extent := device.Extent{Row: 10, Rows: 5, Slices: 20}
		for _, bad := range []struct {
			what   string
			pitch  device.Pitch
			extent device.Extent
		}{
			{"rows that overlap", device.Pitch{Row: 9, Rows: 5}, extent},
			{"slices that overlap", device.Pitch{Row: 10, Rows: 4}, extent},
			{"a negative extent", ok, device.Extent{Row: -1, Rows: 5, Slices: 1}},
			{"more bytes than an int64 counts", device.Pitch{Row: 1 << 40, Rows: 1 << 40}, device.Extent{Row: 1, Rows: 1, Slices: 3}},
		} {
			c.wantError("to device: "+bad.what, s.CopyBoxToDevice(p, bad.pitch, host, ok, bad.extent), device.ErrInvalid)
			c.wantError("to host: "+bad.what, s.CopyBoxToHost(host, bad.pitch, p, ok, bad.extent), device.ErrInvalid)
			c.wantError("on device: "+bad.what, s.CopyBoxOnDevice(p, ok, p, bad.pitch, bad.extent), device.ErrInvalid)
		}
		c.wantError("host memory that is too short", s.CopyBoxToDevice(p, ok, host[:999], ok, extent), device.ErrInvalid)
		c.wantError("host memory that is too short", s.CopyBoxToHost(host[:999], ok, p, ok, extent), device.ErrInvalid)
		c.must(s.Synchronize())
	}},
}

// load returns device memory with the given content.
func (c *checker) load(s device.Stream, content []byte) device.Ptr {
	p := c.memory(int64(len(content)))
	c.must(s.CopyToDevice(p, content))
	c.must(s.Synchronize())
	return p
}

// wantDevice compares device memory.
func (c *checker) wantDevice(s device.Stream, what string, p device.Ptr, want []byte) {
	got := make([]byte, len(want))
	c.must(s.CopyToHost(got, p))
	c.must(s.Synchronize())
	c.wantBytes(what, got, want)
}

// boxCopy is a copy between two arrays with their own strides.
type boxCopy struct {
	extent   device.Extent
	from, to device.Pitch
	// fromAt and toAt are the places of the box's first bytes.
	fromAt, toAt int64
}

var boxes = []boxCopy{
	{device.Extent{Row: 1, Rows: 1, Slices: 1}, device.Pitch{Row: 1, Rows: 1}, device.Pitch{Row: 5, Rows: 3}, 3, 4},
	{device.Extent{Row: 80, Rows: 6, Slices: 7}, device.Pitch{Row: 80, Rows: 6}, device.Pitch{Row: 80, Rows: 6}, 0, 0},
	{device.Extent{Row: 80, Rows: 6, Slices: 7}, device.Pitch{Row: 112, Rows: 10}, device.Pitch{Row: 80, Rows: 6}, 2*112*10 + 2*112 + 16, 0},
	{device.Extent{Row: 80, Rows: 6, Slices: 7}, device.Pitch{Row: 80, Rows: 6}, device.Pitch{Row: 96, Rows: 8}, 0, 96*8 + 96 + 8},
	{device.Extent{Row: 24, Rows: 1, Slices: 5}, device.Pitch{Row: 24, Rows: 3}, device.Pitch{Row: 40, Rows: 1}, 48, 8},
	{device.Extent{Row: 8, Rows: 2, Slices: 3}, device.Pitch{Row: 8, Rows: 5}, device.Pitch{Row: 8, Rows: 2}, 8, 0},
	{device.Extent{Row: 8, Rows: 2, Slices: 3}, device.Pitch{Row: 8, Rows: 2}, device.Pitch{Row: 8, Rows: 3}, 0, 16},
	{device.Extent{Row: 3, Rows: 4, Slices: 1}, device.Pitch{Row: 7, Rows: 4}, device.Pitch{Row: 3, Rows: 9}, 1, 2},
}

func (b boxCopy) String() string {
	return fmt.Sprintf("box %+v from pitch %+v to pitch %+v", b.extent, b.from, b.to)
}

// sizes returns the lengths of the two arrays, with room behind the box.
func (b boxCopy) sizes() (from, to int) {
	length := func(p device.Pitch, at int64) int {
		return int(at + (b.extent.Slices*p.Rows+p.Rows)*p.Row)
	}
	return length(b.from, b.fromAt), length(b.to, b.toAt)
}

// apply does the copy by index arithmetic.
func (b boxCopy) apply(to, from []byte) {
	for z := range b.extent.Slices {
		for y := range b.extent.Rows {
			for x := range b.extent.Row {
				to[b.toAt+(z*b.to.Rows+y)*b.to.Row+x] = from[b.fromAt+(z*b.from.Rows+y)*b.from.Row+x]
			}
		}
	}
}

func (c *checker) boxToDevice(b boxCopy) {
	s := c.stream()
	nf, nt := b.sizes()
	from, want := c.pinned(nf, 1), patterned(nt, 2)
	p := c.load(s, want)
	c.must(s.CopyBoxToDevice(p.Add(b.toAt), b.to, from[b.fromAt:], b.from, b.extent))
	b.apply(want, from)
	c.wantDevice(s, "to device: "+b.String(), p, want)
}

func (c *checker) boxToHost(b boxCopy) {
	s := c.stream()
	nf, nt := b.sizes()
	from, want := patterned(nf, 1), patterned(nt, 2)
	p, got := c.load(s, from), c.pinned(nt, 2)
	c.must(s.CopyBoxToHost(got[b.toAt:], b.to, p.Add(b.fromAt), b.from, b.extent))
	c.must(s.Synchronize())
	b.apply(want, from)
	c.wantBytes("to host: "+b.String(), got, want)
}

func (c *checker) boxOnDevice(b boxCopy) {
	s := c.stream()
	nf, nt := b.sizes()
	from, want := patterned(nf, 1), patterned(nt, 2)
	p, q := c.load(s, from), c.load(s, want)
	c.must(s.CopyBoxOnDevice(q.Add(b.toAt), b.to, p.Add(b.fromAt), b.from, b.extent))
	b.apply(want, from)
	c.wantDevice(s, "on device: "+b.String(), q, want)
}
