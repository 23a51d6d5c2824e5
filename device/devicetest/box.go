package devicetest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/fieldstone-io/fieldstone/device"
)

// A space without box kernels passes these checks: it need not have them.
var boxChecks = []Check{
	{Name: "box kernels move the range and nothing else", run: func(c *checker) {
		s := c.stream()
		for _, k := range c.boxKernels() {
			for _, b := range kernelBoxes {
				c.moveRanges(s, k, b, b.ranges())
			}
		}
	}},
	{Name: "box kernels keep every kind of number", run: func(c *checker) {
		s, n := c.stream(), int64(len(narrowKinds))
		for _, k := range c.boxKernels() {
			c.moveRanges(s, k, boxArray{nx: n, ny: 1, nz: 1, sy: n, sz: n}, []cellRange{{0, n}})
		}
	}},
	{Name: "box kernels round to nearest", run: func(c *checker) {
		k, ok := c.boxKernel(device.UnpackFloat32)
		if !ok {
			return
		}
		tie := math.Float64bits(1 + 1.0/(1<<24))
		packed := []uint64{tie, tie + 1, math.Float64bits(1 + 3.0/(1<<24)), math.Float64bits(1e300), math.Float64bits(-0x1p-150), 0x7ff0000000000001}
		want := []uint32{0x3f800000, 0x3f800001, 0x3f800002, 0x7f800000, 1 << 31, 0x7fc00000}
		n := int64(len(packed))
		s, p := c.stream(), c.memory(4*n)
		q := c.load(s, words(packed))
		c.must(device.LaunchBox(s, k, p, q, device.BoxRange{Count: n, NX: n, NY: 1, SY: n, SZ: n}))
		c.wantDevice(s, "cells", p, halfWords(want))
	}},
	{Name: "box kernels aren't launched at addresses that aren't aligned", run: func(c *checker) {
		s, array, packed := c.stream(), c.memory(4096), c.memory(4096)
		r := device.BoxRange{Count: 4, NX: 4, NY: 1, SY: 4, SZ: 4}
		for _, name := range []device.BoxKernel{device.PackFloat64, device.UnpackFloat64, device.PackFloat32, device.UnpackFloat32} {
			k, ok := c.boxKernel(name)
			if !ok {
				return
			}
			launch := func(array, packed device.Ptr) error {
				if name == device.PackFloat64 || name == device.PackFloat32 {
					return device.LaunchBox(s, k, packed, array, r)
				}
				return device.LaunchBox(s, k, array, packed, r)
			}
			c.wantError("packed cells", launch(array, packed.Add(4)), device.ErrAddress)
			c.wantError("cells at 2", launch(array.Add(2), packed), device.ErrAddress)
			if name == device.PackFloat64 || name == device.UnpackFloat64 {
				c.wantError("cells at 4", launch(array.Add(4), packed), device.ErrAddress)
			} else {
				c.must(launch(array.Add(4), packed))
			}
			c.must(s.Synchronize())
		}
	}},
	{Name: "box kernels belong to the space", run: func(c *checker) {
		boxes, ok := c.space.(device.BoxKernels)
		if !ok {
			return
		}
		m, err := boxes.BoxModule()
		c.must(err)
		again, err := boxes.BoxModule()
		c.must(err)
		_, err = again.Kernel(string(device.PackFloat64))
		c.must(err)
		c.wantError("close", again.Close(), device.ErrInvalid)
		_, err = m.Kernel("fieldstone_pack_f16")
		c.wantError("kernel", err, device.ErrNotFound)
		// What is left of the module is nobody's leak.
		c.must(c.space.Close())
		c.closed = true
		_, err = boxes.BoxModule()
		c.wantError("module of a closed space", err, device.ErrClosed)
	}},
}

// boxKernel is a kernel and what it does.
type boxKernel struct {
	device.Kernel
	narrow bool // the array is float32
	unpack bool
}

func (k boxKernel) cellBytes() int64 {
	if k.narrow {
		return 4
	}
	return 8
}

func (c *checker) boxKernel(name device.BoxKernel) (device.Kernel, bool) {
	boxes, ok := c.space.(device.BoxKernels)
	if !ok {
		return nil, false
	}
	m, err := boxes.BoxModule()
	c.must(err)
	k, err := m.Kernel(string(name))
	c.must(err)
	return k, true
}

// boxKernels returns all kernels, or none of a space that has none.
func (c *checker) boxKernels() []boxKernel {
	var all []boxKernel
	for _, k := range []struct {
		name           device.BoxKernel
		narrow, unpack bool
	}{
		{device.PackFloat64, false, false},
		{device.PackFloat32, true, false},
		{device.UnpackFloat64, false, true},
		{device.UnpackFloat32, true, true},
	} {
		if found, ok := c.boxKernel(k.name); ok {
			all = append(all, boxKernel{found, k.narrow, k.unpack})
		}
	}
	return all
}

// boxArray is a box of nx by ny by nz cells, at an index of an array with rows
// of sy and slices of sz elements.
type boxArray struct{ nx, ny, nz, sy, sz, at int64 }

// kernelBoxes have rows shorter and longer than a block of threads, halos or
// none, and more cells than one block moves.
var kernelBoxes = []boxArray{
	{nx: 1, ny: 1, nz: 1, sy: 1, sz: 1},
	{nx: 3, ny: 4, nz: 2, sy: 5, sz: 35, at: 11},
	{nx: 7, ny: 13, nz: 13, sy: 11, sz: 11 * 17, at: 2 + 2*11 + 2*11*17},
	{nx: 64, ny: 20, nz: 1, sy: 64, sz: 64 * 20},
	{nx: 2, ny: 300, nz: 2, sy: 3, sz: 1000, at: 1},
	{nx: 600, ny: 1, nz: 2, sy: 601, sz: 601 * 2, at: 1},
	{nx: 1, ny: 1, nz: 1100, sy: 3, sz: 9, at: 4},
}

func (b boxArray) cells() int64 { return b.nx * b.ny * b.nz }

// index returns the element of a cell.
func (b boxArray) index(cell int64) int64 {
	return b.at + cell%b.nx + cell/b.nx%b.ny*b.sy + cell/b.nx/b.ny*b.sz
}

// stored returns the length of the array, with room behind the box.
func (b boxArray) stored() int64 { return b.index(b.cells()-1) + b.sy + 1 }

func (b boxArray) String() string {
	return fmt.Sprintf("box of %d by %d by %d cells in rows of %d and slices of %d", b.nx, b.ny, b.nz, b.sy, b.sz)
}

type cellRange struct{ first, count int64 }

// ranges returns some that begin and end anywhere, and one with all cells.
func (b boxArray) ranges() []cellRange {
	n := b.cells()
	all := []cellRange{{0, n}}
	if n > device.BoxCells {
		return append(all, cellRange{n - device.BoxCells - 1, device.BoxCells})
	}
	for first := range n {
		all = append(all, cellRange{first, 1 + first*5%(n-first)})
	}
	return all
}

// narrowKinds are float32 numbers that differ in kind, as bits: zeros, subnormal
// and ordinary numbers, infinities, and NaNs, quiet and signalling.
var narrowKinds = []uint32{
	0, 1 << 31, 1, 0x807fffff, 0x00800000, 0x3f800001, 0xc0490fdb, 0x7f7fffff,
	0x7f800000, 0xff800000, 0x7fc00abc, 0xffc00000, 0x7f800001, 0xffbfffff,
}

// widened returns the float64 with the value, or the NaN with the bits, of a
// float32.
func widened(b uint32) uint64 {
	if b&0x7fffffff > 0x7f800000 {
		return uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&0x7fffff)<<29
	}
	return math.Float64bits(float64(math.Float32frombits(b)))
}

// moveRanges launches a kernel for each range.
func (c *checker) moveRanges(s device.Stream, k boxKernel, b boxArray, ranges []cellRange) {
	array, packed := c.memory(b.stored()*k.cellBytes()), c.memory(8*(b.cells()+2))
	for _, r := range ranges {
		c.moveRange(s, k, b, r, array, packed)
	}
}

// moveRange launches a kernel on numbers of every kind, and compares what it
// should write, and what it should not, with index arithmetic.
func (c *checker) moveRange(s device.Stream, k boxKernel, b boxArray, r cellRange, p, q device.Ptr) {
	array, cells := make([]uint32, b.stored()), make([]uint32, r.count)
	for i := range array {
		array[i] = narrowKinds[i%len(narrowKinds)] ^ uint32(i)<<8&0x3f00
	}
	for i := range cells {
		cells[i] = narrowKinds[(i+3)%len(narrowKinds)] ^ uint32(i)<<9&0x7e00
	}
	// The packed side has a cell before the first and one after the last.
	packed := make([]uint64, r.count+2)
	for i := range packed {
		packed[i] = math.Float64bits(math.Pi)
	}
	if k.unpack {
		for i, v := range cells {
			packed[i+1] = widened(v)
		}
	}
	c.must(s.CopyToDevice(p, k.encode(array)))
	c.must(s.CopyToDevice(q, words(packed)))

	dst, src := q.Add(8), p.Add(b.at*k.cellBytes())
	if k.unpack {
		dst, src = src, dst
	}
	c.must(device.LaunchBox(s, k.Kernel, dst, src, device.BoxRange{First: r.first, Count: r.count, NX: b.nx, NY: b.ny, SY: b.sy, SZ: b.sz}))
	for i := range r.count {
		j := b.index(r.first + i)
		if k.unpack {
			array[j] = cells[i]
		} else {
			packed[i+1] = widened(array[j])
		}
	}
	what := fmt.Sprintf("%s: cells %d to %d of a %v", k.Name(), r.first, r.first+r.count, b)
	c.wantDevice(s, what+": array", p, k.encode(array))
	c.wantDevice(s, what+": packed cells", q, words(packed))
}

// encode returns the bytes of an array.
func (k boxKernel) encode(array []uint32) []byte {
	if k.narrow {
		return halfWords(array)
	}
	wide := make([]uint64, len(array))
	for i, v := range array {
		wide[i] = widened(v)
	}
	return words(wide)
}

func words(v []uint64) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func halfWords(v []uint32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}
