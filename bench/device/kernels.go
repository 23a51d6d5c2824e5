package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/pack"
)

// kernels compares the kernels of boxes with a copy that reads and writes as much.
func kernels(ctx context.Context, s settings, space device.Space, found *table) error {
	box, ok := space.(device.BoxKernels)
	if !ok {
		found.logger().Warn("the device has no kernels for boxes")
		return nil
	}
	module, err := box.BoxModule()
	if err != nil {
		return err
	}
	n := s.size
	cube := pack.Layout{Size: [3]int{n, n, n}, Halo: [3]int{2, 2, 2}}
	rows := pack.Layout{Size: [3]int{16, n, max(1, n*n/16)}, Halo: [3]int{2, 2, 2}}
	return errors.Join(
		kernelContests[float64](ctx, s, space, module, found, cube, "float64 cube"),
		kernelContests[float64](ctx, s, space, module, found, rows, "float64, rows of 16"),
		kernelContests[float32](ctx, s, space, module, found, cube, "float32 cube"),
	)
}

func kernelContests[T float32 | float64](ctx context.Context, s settings, space device.Space, module device.Module, found *table, l pack.Layout, what string) (err error) {
	packName, unpackName := device.PackFloat64, device.UnpackFloat64
	if elementSize[T]() == 4 {
		packName, unpackName = device.PackFloat32, device.UnpackFloat32
	}
	packer, err := module.Kernel(string(packName))
	if err != nil {
		return err
	}
	unpacker, err := module.Kernel(string(unpackName))
	if err != nil {
		return err
	}
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	stream, err := space.NewStream()
	if err != nil {
		return err
	}
	undo.add(stream.Close)
	cells, element := l.Cells(), elementSize[T]()
	memory := func(bytes int64) device.Ptr {
		if err != nil {
			return 0
		}
		var m device.Memory
		if m, err = space.Allocate(bytes); err != nil {
			return 0
		}
		undo.add(m.Free)
		return m.Ptr()
	}
	array, packed, other := memory(l.PaddedCells()*element), memory(cells*8), memory(cells*8)
	if err != nil {
		return err
	}

	size := l.PaddedSize()
	r := device.BoxRange{Count: cells, NX: int64(l.Size[0]), NY: int64(l.Size[1]), SY: int64(size[0]), SZ: int64(size[0]) * int64(size[1])}
	corner := array.Add(int64(l.Index(0, 0, 0)) * element)
	runPack := func() error { return device.LaunchBox(stream, packer, packed, corner, r) }
	runUnpack := func() error { return device.LaunchBox(stream, unpacker, corner, packed, r) }
	if err := checkKernels[T](stream, l, array, packed, runPack, runUnpack); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	// As many bytes read, and as many written.
	moved := cells * (8 + element) / 2
	runCopy := func() error { return stream.CopyOnDevice(other, packed, moved) }
	times, err := repeatsFor(stream, runCopy)
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
	return found.add(ctx, what, moved, s.repeats, way{name: "device copy", run: many(runCopy), times: times},
		way{name: "pack", run: many(runPack), times: times}, way{name: "unpack", run: many(runUnpack), times: times})
}

// repeatsFor returns how often something has to be queued so that the time of the
// launches doesn't count.
func repeatsFor(stream device.Stream, queue func() error) (int, error) {
	const enough, most = 10 * time.Millisecond, 100
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

// checkKernels compares what the kernels do with what the host does.
func checkKernels[T float32 | float64](stream device.Stream, l pack.Layout, array, packed device.Ptr, runPack, runUnpack func() error) error {
	cells := make([]T, l.PaddedCells())
	for i := range cells {
		cells[i] = T(math.Sin(float64(i)))
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
	if !bytes.Equal(pack.Bytes(got), pack.Bytes(want)) {
		return errors.New("the packed cells are wrong")
	}
	whole := make([]T, l.PaddedCells())
	if err := errors.Join(
		stream.Fill(array, 0x7f, int64(len(whole))*elementSize[T]()), runUnpack(), stream.CopyToHost(pack.Bytes(whole), array), stream.Synchronize(),
	); err != nil {
		return err
	}
	const filled = 0x7f7f7f7f7f7f7f7f
	ghost := pack.Bytes([]float64{math.Float64frombits(filled)})[:elementSize[T]()]
	clear(got)
	if err := packAny(got, whole, l); err != nil {
		return err
	}
	if !bytes.Equal(pack.Bytes(got), pack.Bytes(want)) {
		return errors.New("the unpacked cells are wrong")
	}
	untouched := 0
	for i := range whole {
		if bytes.Equal(pack.Bytes(whole[i:i+1]), ghost) {
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
