package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/pack"
)

// kernels compares the kernels of boxes with a copy that reads and writes as much.
func kernels(ctx context.Context, s settings, space device.Space, r *report) error {
	packer, err := newPacker(space)
	if errors.Is(err, device.ErrUnsupported) {
		r.say("kernels of boxes: left out: %v", err)
		return nil
	} else if err != nil {
		return err
	}
	n := s.size
	cube := func(halo int) pack.Layout { return pack.Layout{Size: [3]int{n, n, n}, Halo: [3]int{halo, halo, halo}} }
	var errs []error
	for halo := range 5 {
		what := fmt.Sprintf("float64 cube, halo %d", halo)
		if halo == 0 {
			what = "float64 contiguous"
		}
		errs = append(errs, kernelContests[float64](ctx, s, packer, r, cube(halo), what))
	}
	for row := 16; row <= 512; row *= 2 {
		rows := max(1, n*n/row)
		l := pack.Layout{Size: [3]int{row, n, rows}, Halo: [3]int{2, 2, 2}}
		errs = append(errs, kernelContests[float64](ctx, s, packer, r, l, fmt.Sprintf("float64, rows of %d", row)))
	}
	errs = append(errs,
		kernelContests[float32](ctx, s, packer, r, cube(0), "float32 contiguous"),
		kernelContests[float32](ctx, s, packer, r, cube(2), "float32 cube, halo 2"))
	return errors.Join(errs...)
}

// packer has the kernels of boxes of a space.
type packer struct {
	space  device.Space
	kernel map[device.BoxKernel]device.Kernel
}

func newPacker(space device.Space) (packer, error) {
	p := packer{space, map[device.BoxKernel]device.Kernel{}}
	box, ok := space.(device.BoxKernels)
	if !ok {
		return p, fmt.Errorf("%s has no kernels for boxes: %w", space.Name(), device.ErrUnsupported)
	}
	module, err := box.BoxModule()
	if err != nil {
		return p, err
	}
	for _, name := range []device.BoxKernel{device.PackFloat64, device.PackFloat32, device.UnpackFloat64, device.UnpackFloat32} {
		if p.kernel[name], err = module.Kernel(string(name)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// of returns the kernels for arrays of a type of elements.
func of[T float32 | float64](p packer) (packs, unpacks device.Kernel) {
	if elementSize[T]() == 4 {
		return p.kernel[device.PackFloat32], p.kernel[device.UnpackFloat32]
	}
	return p.kernel[device.PackFloat64], p.kernel[device.UnpackFloat64]
}

func kernelContests[T float32 | float64](ctx context.Context, s settings, p packer, r *report, l pack.Layout, what string) (err error) {
	cells, element := l.Cells(), elementSize[T]()
	if ok, err := r.room(p.space, what, l.PaddedCells()*element+2*cells*8); !ok {
		return err
	}
	packs, unpacks := of[T](p)
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	stream, err := p.space.NewStream()
	if err != nil {
		return err
	}
	undo.add(stream.Close)
	memory := func(bytes int64) device.Ptr {
		if err != nil {
			return 0
		}
		var m device.Memory
		if m, err = p.space.Allocate(bytes); err != nil {
			return 0
		}
		undo.add(m.Free)
		return m.Ptr()
	}
	array, packed, other := memory(l.PaddedCells()*element), memory(cells*8), memory(cells*8)
	if err != nil {
		return err
	}

	box := rangeOf(l)
	corner := array.Add(int64(l.Index(0, 0, 0)) * element)
	runPack := func() error { return device.LaunchBox(stream, packs, packed, corner, box) }
	runUnpack := func() error { return device.LaunchBox(stream, unpacks, corner, packed, box) }
	if err := checkKernels[T](stream, l, array, packed, runPack, runUnpack); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	// As many bytes read, and as many written.
	moved := cells * (8 + element) / 2
	runCopy := func() error { return stream.CopyOnDevice(other, packed, moved) }
	times, err := repeatsFor(s.batch, stream, runCopy)
	if err != nil {
		return err
	}
	many := func(one func() error) func() error {
		return func() error {
			for range times {
				if err := one(); err != nil {
					return err
				}
			}
			return stream.Synchronize()
		}
	}
	return r.add(ctx, what, moved, s.repeats, way{name: "device copy", run: many(runCopy), times: times},
		way{name: "pack", run: many(runPack), times: times}, way{name: "unpack", run: many(runUnpack), times: times})
}

// rangeOf are all owned cells of an array.
func rangeOf(l pack.Layout) device.BoxRange {
	size := l.PaddedSize()
	return device.BoxRange{Count: l.Cells(), NX: int64(l.Size[0]), NY: int64(l.Size[1]), SY: int64(size[0]), SZ: int64(size[0]) * int64(size[1])}
}

// repeatsFor returns how often something has to be queued so that the time of the
// launches doesn't count.
func repeatsFor(enough time.Duration, stream device.Stream, queue func() error) (int, error) {
	const most = 100
	var took time.Duration
	for range 2 { // the first warms up
		start := time.Now()
		if err := errors.Join(queue(), stream.Synchronize()); err != nil {
			return 0, err
		}
		took = time.Since(start)
	}
	return int(min(most, 1+enough/max(took, 1))), nil
}

// number is what is in a cell: all bits of a float32 that has no fraction.
func number[T float32 | float64](i int) T { return T(int32(uint32(i)*2654435761) >> 7) }

// filled is an element whose bytes are all fill.
const fill = 0x7f

func filled[T float32 | float64]() T {
	if elementSize[T]() == 4 {
		return T(math.Float32frombits(0x7f7f7f7f))
	}
	return T(math.Float64frombits(0x7f7f7f7f7f7f7f7f))
}

// checkKernels compares what the kernels do with what the host does.
func checkKernels[T float32 | float64](stream device.Stream, l pack.Layout, array, packed device.Ptr, runPack, runUnpack func() error) error {
	cells := make([]T, l.PaddedCells())
	for i := range cells {
		cells[i] = number[T](i)
	}
	want := make([]float64, l.Cells())
	if err := packAny(want, cells, l); err != nil {
		return err
	}
	got := make([]float64, l.Cells())
	if err := errors.Join(
		stream.CopyToDevice(array, pack.Bytes(cells)), runPack(), stream.CopyToHost(pack.Bytes(got), packed), stream.Synchronize(),
	); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return errors.New("the packed cells are wrong")
	}
	if err := errors.Join(
		stream.Fill(array, fill, int64(len(cells))*elementSize[T]()), runUnpack(), stream.CopyToHost(pack.Bytes(cells), array), stream.Synchronize(),
	); err != nil {
		return err
	}
	clear(got)
	if err := packAny(got, cells, l); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return errors.New("the unpacked cells are wrong")
	}
	untouched, ghost := 0, filled[T]()
	for _, c := range cells {
		if c == ghost {
			untouched++
		}
	}
	if want := int(l.PaddedCells() - l.Cells()); untouched != want {
		return fmt.Errorf("%d ghost cells are as they were, want %d", untouched, want)
	}
	return nil
}

func packAny[T float32 | float64](dst []float64, src []T, l pack.Layout) error {
	switch src := any(src).(type) {
	case []float64:
		return pack.Pack(dst, src, l, 0)
	case []float32:
		return pack.Widen(dst, src, l, 0)
	}
	return errors.ErrUnsupported
}

func elementSize[T pack.Number]() int64 { return int64(len(pack.Bytes(make([]T, 1)))) }

// undoList frees what was made, the last first.
type undoList []func() error

func (u *undoList) add(f func() error) { *u = append(*u, f) }

func (u *undoList) all() error {
	var err error
	for i := len(*u) - 1; i >= 0; i-- {
		err = errors.Join(err, (*u)[i]())
	}
	*u = nil
	return err
}
