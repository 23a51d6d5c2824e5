package device

import (
	"fmt"
	"sync"
)

// BoxKernels is a [Space] that brings the kernels which pack a box of an array
// into contiguous memory of the device, and unpack it. A caller that finds none,
// or whose module the driver refuses, can copy boxes instead, see
// [Stream.CopyBoxToHost].
type BoxKernels interface {
	// BoxModule returns the module with the kernels named by [BoxKernel]. It
	// is loaded by the first call and unloaded when the space is closed: the
	// caller doesn't close it. What the driver has against it is the error
	// of every call.
	BoxModule() (Module, error)
}

// BoxKernel is the name of a kernel of [BoxKernels]. All have the parameters
//
//	(void *dst, const void *src, int64 first, int64 count,
//	 int64 nx, int64 ny, int64 sy, int64 sz)
//
// and move the cells [first, first+count) of a box of nx by ny by any number of
// cells, counted with x fastest, then y. One side is the array: its pointer is
// the address of the box's first cell, and rows are sy, slices sz elements apart.
// The other side is packed: its pointer is the address of cell first. The two
// don't overlap. Complex cells are moved as two float64 cells along x.
type BoxKernel string

// The packed side is float64 in all of them.
const (
	// PackFloat64 and PackFloat32 read the array; the latter widens.
	PackFloat64 BoxKernel = "fieldstone_pack_f64"
	PackFloat32 BoxKernel = "fieldstone_pack_f32"
	// UnpackFloat64 and UnpackFloat32 write the array; the latter rounds to
	// nearest, so whoever wants no bit lost checks the values before.
	UnpackFloat64 BoxKernel = "fieldstone_unpack_f64"
	UnpackFloat32 BoxKernel = "fieldstone_unpack_f32"
)

// Each block of a box kernel has BoxThreads threads, which move BoxCells cells.
const (
	BoxThreads = 256
	BoxCells   = 1024
)

// BoxRange are the cells that a launch of a box kernel moves, and where the
// array has them; see [BoxKernel].
type BoxRange struct {
	First, Count   int64
	NX, NY, SY, SZ int64
}

// mostBlocks is how many blocks are launched at once: with 2^32 threads or more, HIP
// refuses a launch.
const mostBlocks = 1<<32/BoxThreads - 1

// LaunchBox queues a box kernel on a stream, in parts if the range is very long. A range
// without cells queues nothing. Addresses that aren't multiples of the sizes of what the
// kernel moves there are ErrAddress: the device would be lost.
func LaunchBox(s Stream, k Kernel, dst, src Ptr, r BoxRange) error {
	name := BoxKernel(k.Name())
	if err := r.check(name, dst, src); err != nil {
		return &Error{Space: s.Space().Name(), Op: "launch " + k.Name(), Err: err}
	}
	args := boxArgs.Get().(*Args)
	defer boxArgs.Put(args) // a launch copies them
	for r.Count > 0 {
		n := min(r.Count, mostBlocks*BoxCells)
		args.Reset().Ptr(dst).Ptr(src).Int64(r.First).Int64(n).Int64(r.NX).Int64(r.NY).Int64(r.SY).Int64(r.SZ)
		blocks := (n + BoxCells - 1) / BoxCells
		if err := s.Launch(k, LaunchConfig{Grid: [3]int{int(blocks), 1, 1}, Block: [3]int{BoxThreads, 1, 1}}, args); err != nil {
			return err
		}
		r.First, r.Count = r.First+n, r.Count-n
		if name.packs() {
			dst = dst.Add(8 * n)
		} else {
			src = src.Add(8 * n)
		}
	}
	return nil
}

// packs reports whether the kernel reads the array.
func (k BoxKernel) packs() bool { return k == PackFloat64 || k == PackFloat32 }

// check reports what the device would do wrong, or not survive.
func (r BoxRange) check(k BoxKernel, dst, src Ptr) error {
	if r.First < 0 || r.Count < 0 || r.NX <= 0 || r.NY <= 0 || r.SY < 0 || r.SZ < 0 {
		return fmt.Errorf("%w: %+v", ErrInvalid, r)
	}
	if r.Count == 0 {
		return nil // the addresses aren't used
	}
	array, packed := dst, src
	if k.packs() {
		array, packed = src, dst
	}
	size := Ptr(8)
	if k == PackFloat32 || k == UnpackFloat32 {
		size = 4
	}
	if packed%8 != 0 {
		return fmt.Errorf("%w: packed cells at %#x, which is no multiple of 8", ErrAddress, uintptr(packed))
	}
	if array%size != 0 {
		return fmt.Errorf("%w: cells at %#x, which is no multiple of %d", ErrAddress, uintptr(array), size)
	}
	return nil
}

// boxArgs saves a launch from allocating.
var boxArgs = sync.Pool{New: func() any { return new(Args) }}
