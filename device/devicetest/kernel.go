package devicetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
)

var kernelChecks = []Check{
	{Name: "kernels run by name with packed arguments", run: func(c *checker) {
		s, k := c.stream(), c.kernels()
		for _, b := range []kernelBox{
			{padded: [3]int64{14, 10, 11}, at: [3]int64{2, 2, 2}, size: [3]int64{10, 6, 7}},
			{padded: [3]int64{300, 5, 1}, at: [3]int64{1, 0, 0}, size: [3]int64{299, 5, 1}},
			{padded: [3]int64{1, 1, 1}, at: [3]int64{0, 0, 0}, size: [3]int64{1, 1, 1}},
		} {
			c.packAndUnpack(s, k, b)
		}
	}},
	{Name: "arguments are copied at launch", run: func(c *checker) {
		s, k := c.stream(), c.kernels()
		in := numbers(100, 1)
		p, q := c.load(s, in), c.load(s, numbers(100, 2))
		var args device.Args
		b := kernelBox{padded: [3]int64{100, 1, 1}, size: [3]int64{100, 1, 1}}
		c.must(s.Launch(k.pack, b.config(), b.args(&args, q, p)))
		args.Reset()
		for range 10 {
			args.Ptr(0)
		}
		c.wantDevice(s, "packed", q, in)
	}},
	{Name: "kernels run in the order of their stream", run: func(c *checker) {
		s, k := c.stream(), c.kernels()
		b := kernelBox{padded: [3]int64{1000, 1, 1}, size: [3]int64{1000, 1, 1}}
		p, q := c.memory(8000), c.memory(8000)
		var args device.Args
		for round := range rounds {
			in, got := numbers(1000, byte(round)), c.pinned(8000, 3)
			c.must(s.CopyToDevice(p, in))
			c.must(s.Launch(k.pack, b.config(), b.args(args.Reset(), q, p)))
			c.must(s.CopyToHost(got, q))
			c.must(s.Synchronize())
			c.wantBytes("packed", got, in)
		}
	}},
	{Name: "an event orders kernels of two streams", run: func(c *checker) {
		a, b, e, k := c.stream(), c.stream(), c.event(), c.kernels()
		box := kernelBox{padded: [3]int64{1000, 1, 1}, size: [3]int64{1000, 1, 1}}
		p, q := c.memory(8000), c.memory(8000)
		var args device.Args
		for round := range rounds {
			in, got := numbers(1000, byte(round)), c.pinned(8000, 3)
			c.must(a.CopyToDevice(p, in))
			c.must(a.Launch(k.pack, box.config(), box.args(args.Reset(), q, p)))
			c.must(a.Record(e))
			c.must(b.Wait(e))
			c.must(b.CopyToHost(got, q))
			c.must(b.Synchronize())
			c.wantBytes("packed", got, in)
		}
	}},
	{Name: "an image isn't needed once it is loaded", run: func(c *checker) {
		s, image := c.stream(), bytes.Clone(c.image)
		m, err := c.space.LoadModule(image)
		c.must(err)
		c.later(m.Close)
		clear(image)
		pack, err := m.Kernel("pack3d")
		c.must(err)
		unpack, err := m.Kernel("unpack3d")
		c.must(err)
		c.packAndUnpack(s, testKernels{pack, unpack}, kernelBox{padded: [3]int64{7, 5, 4}, at: [3]int64{1, 1, 1}, size: [3]int64{5, 3, 2}})
	}},
	{Name: "a kernel that doesn't exist isn't found", run: func(c *checker) {
		m, err := c.space.LoadModule(c.image)
		c.must(err)
		c.later(m.Close)
		_, err = m.Kernel("there is no such kernel")
		c.wantError("kernel", err, device.ErrNotFound)
		k, err := m.Kernel("pack3d")
		c.must(err)
		if k.Name() != "pack3d" {
			c.failf("kernel's name is %q", k.Name())
		}
	}},
	{Name: "an image that is none isn't loaded", run: func(c *checker) {
		for _, image := range [][]byte{nil, {}, []byte("this is not a module")} {
			_, err := c.space.LoadModule(image)
			if err == nil {
				c.failf("image %q is loaded", image)
			}
		}
		c.roundTrip(c.stream(), 100)
	}},
	{Name: "launches that make no sense are refused", run: func(c *checker) {
		s, k := c.stream(), c.kernels()
		for _, config := range []device.LaunchConfig{
			{Grid: [3]int{1, -1, 1}},
			{Block: [3]int{-1}},
			{SharedBytes: -1},
		} {
			c.wantError("launch", s.Launch(k.pack, config, nil), device.ErrInvalid)
		}
		c.must(s.Synchronize())
	}},
	{Name: "kernels of a closed module are refused", run: func(c *checker) {
		m, err := c.space.LoadModule(c.image)
		c.must(err)
		k, err := m.Kernel("pack3d")
		c.must(err)
		c.must(m.Close())
		c.wantError("launch", c.stream().Launch(k, device.LaunchConfig{}, nil), device.ErrClosed)
		_, err = m.Kernel("pack3d")
		c.wantError("kernel", err, device.ErrClosed)
	}},
	{Name: "goroutines on threads of their own can use everything at once", run: func(c *checker) {
		const goroutines = 16
		errs := make([]error, goroutines)
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				// The thread ends with the goroutine.
				runtime.LockOSThread()
				own := &checker{space: c.space, image: c.image}
				errs[g] = own.run(Check{run: func(own *checker) {
					own.packAndUnpack(own.stream(), own.kernels(), kernelBox{padded: [3]int64{7, 5, 4}, at: [3]int64{1, 1, 1}, size: [3]int64{5, 3, 2}})
					_, err := own.space.MemoryInfo()
					own.must(err)
					own.roundTrip(own.stream(), 1000+g)
					own.must(own.space.Synchronize())
				}})
			})
		}
		wg.Wait()
		c.must(errors.Join(errs...))
	}},
	{Name: "a module can't be closed twice", run: func(c *checker) {
		m, err := c.space.LoadModule(c.image)
		c.must(err)
		c.must(m.Close())
		c.wantError("module", m.Close(), device.ErrClosed)
	}},
}

type testKernels struct{ pack, unpack device.Kernel }

func (c *checker) kernels() testKernels {
	m, err := c.space.LoadModule(c.image)
	c.must(err)
	c.later(m.Close)
	pack, err := m.Kernel("pack3d")
	c.must(err)
	unpack, err := m.Kernel("unpack3d")
	c.must(err)
	return testKernels{pack, unpack}
}

// kernelBox is a box within a padded array of doubles.
type kernelBox struct{ padded, at, size [3]int64 }

func (b kernelBox) args(a *device.Args, out, in device.Ptr) *device.Args {
	a.Ptr(out).Ptr(in)
	for _, v := range [][3]int64{b.at, b.size} {
		a.Int64(v[0]).Int64(v[1]).Int64(v[2])
	}
	return a.Int64(b.padded[0]).Int64(b.padded[0] * b.padded[1])
}

func (b kernelBox) config() device.LaunchConfig {
	n := b.size[0] * b.size[1] * b.size[2]
	return device.LaunchConfig{Grid: [3]int{int(n+255) / 256}, Block: [3]int{256}}
}

// each calls fn with the places in the packed and in the padded array.
func (b kernelBox) each(fn func(packed, padded int64)) {
	var n int64
	for z := range b.size[2] {
		for y := range b.size[1] {
			for x := range b.size[0] {
				fn(n, x+b.at[0]+b.padded[0]*(y+b.at[1]+b.padded[1]*(z+b.at[2])))
				n++
			}
		}
	}
}

func (c *checker) packAndUnpack(s device.Stream, k testKernels, b kernelBox) {
	cells, stored := b.size[0]*b.size[1]*b.size[2], b.padded[0]*b.padded[1]*b.padded[2]
	padded, packed := numbers(stored, 1), make([]byte, 8*cells)
	b.each(func(i, j int64) { copy(packed[8*i:8*i+8], padded[8*j:]) })

	p, q := c.load(s, padded), c.load(s, numbers(cells, 2))
	var args device.Args
	c.must(s.Launch(k.pack, b.config(), b.args(&args, q, p)))
	c.wantDevice(s, "packed", q, packed)

	want := numbers(stored, 3)
	r := c.load(s, want)
	b.each(func(i, j int64) { copy(want[8*j:8*j+8], packed[8*i:]) })
	c.must(s.Launch(k.unpack, b.config(), b.args(args.Reset(), r, q)))
	c.wantDevice(s, "unpacked", r, want)
}

// numbers returns the bytes of doubles, all different.
func numbers(n int64, seed byte) []byte {
	b := make([]byte, 0, 8*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)+float64(seed)/256))
	}
	return b
}
