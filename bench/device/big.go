package main

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// big moves cells of a box that has more than s.big of them, where their indices need
// more than 32 bits. Of the float32 cells in the same memory there are twice as many.
func big(ctx context.Context, s settings, space device.Space, r *report) error {
	p, err := newPacker(space)
	if errors.Is(err, device.ErrUnsupported) {
		r.say("big boxes: left out: %v", err)
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(
		bigBox[float64](ctx, p, r, s.big, s.big),
		bigBox[float32](ctx, p, r, 2*s.big, s.big, 2*s.big))
}

// bigLayout is one of more cells than given, with sides that are no powers of two.
func bigLayout(cells int64) pack.Layout {
	side := int64(1) << (bits.Len64(uint64(cells)) / 3)
	nx, ny := side+1, side+3
	return pack.Layout{Size: [3]int{int(nx), int(ny), int(cells/(nx*ny)) + 3}, Halo: [3]int{1, 1, 1}}
}

func bigBox[T float32 | float64](ctx context.Context, p packer, r *report, least int64, beyond ...int64) (err error) {
	l, element := bigLayout(least), elementSize[T]()
	what := fmt.Sprintf("float%d, %d cells", 8*element, l.Cells())
	bytes := l.PaddedCells() * element
	const most = 1 << 20 // cells of a range
	if ok, err := r.room(p.space, what, bytes+8*most); !ok {
		return err
	}
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	stream, err := p.space.NewStream()
	if err != nil {
		return err
	}
	undo.add(stream.Close)
	array, err := p.space.Allocate(bytes)
	if err != nil {
		return err
	}
	undo.add(array.Free)
	packed, err := p.space.Allocate(8 * most)
	if err != nil {
		return err
	}
	undo.add(packed.Free)
	if err := errors.Join(stream.Fill(array.Ptr(), fill, bytes), stream.Synchronize()); err != nil {
		return err
	}
	b := &bigArray[T]{p: p, l: l, stream: stream, array: array.Ptr(), packed: packed.Ptr()}
	for _, n := range beyond {
		around := min(3000, n/4) // more than a block, whichever way the range is cut
		for _, first := range []int64{n - around, n + 1, l.Cells() - 2*around} {
			if err := ctx.Err(); err != nil {
				return err
			}
			count := min(2*around, l.Cells()-first, most)
			if err := b.check(first, count); err != nil {
				return fmt.Errorf("%s: %d cells from %d on: %w", what, count, first, err)
			}
			if err := b.checkField(first, count); err != nil {
				return fmt.Errorf("%s: a field: %d cells from %d on: %w", what, count, first, err)
			}
		}
		r.say("%s, %.1f GB: right around and beyond index %d", what, float64(bytes)/1e9, n)
	}
	return nil
}

// bigArray is an array on the device, of which the host has parts.
type bigArray[T float32 | float64] struct {
	p             packer
	l             pack.Layout
	stream        device.Stream
	array, packed device.Ptr
}

// place is where the storage has an owned cell.
func (b *bigArray[T]) place(cell int64) int64 {
	nx, ny := int64(b.l.Size[0]), int64(b.l.Size[1])
	box := rangeOf(b.l)
	row := cell / nx
	return int64(b.l.Index(0, 0, 0)) + cell%nx + row%ny*box.SY + row/ny*box.SZ
}

// region is the storage that has a range of cells.
func (b *bigArray[T]) region(first, count int64) (at device.Ptr, from int64, elements []T) {
	from = b.place(first)
	elements = make([]T, b.place(first+count-1)-from+1)
	return b.array.Add(from * elementSize[T]()), from, elements
}

func (b *bigArray[T]) check(first, count int64) error {
	packs, unpacks := of[T](b.p)
	at, from, elements := b.region(first, count)
	box := rangeOf(b.l)
	box.First, box.Count = first, count
	corner := b.array.Add(int64(b.l.Index(0, 0, 0)) * elementSize[T]())

	for i := range elements {
		elements[i] = number[T](i)
	}
	cells := make([]float64, count)
	if err := errors.Join(
		b.stream.CopyToDevice(at, pack.Bytes(elements)), device.LaunchBox(b.stream, packs, b.packed, corner, box),
		b.stream.CopyToHost(pack.Bytes(cells), b.packed), b.stream.Synchronize(),
	); err != nil {
		return err
	}
	for i, c := range cells {
		if want := float64(elements[b.place(first+int64(i))-from]); c != want {
			return fmt.Errorf("cell %d is packed as %v, want %v", first+int64(i), c, want)
		}
	}

	for i := range cells {
		cells[i] = float64(number[T](-i))
	}
	if err := errors.Join(
		b.stream.Fill(at, fill, int64(len(elements))*elementSize[T]()), b.stream.CopyToDevice(b.packed, pack.Bytes(cells)),
		device.LaunchBox(b.stream, unpacks, corner, b.packed, box),
		b.stream.CopyToHost(pack.Bytes(elements), at), b.stream.Synchronize(),
	); err != nil {
		return err
	}
	owned := 0
	for i, e := range elements {
		want := filled[T]()
		if owned < len(cells) && b.place(first+int64(owned)) == from+int64(i) {
			want = T(cells[owned])
			owned++
		}
		if e != want {
			return fmt.Errorf("element %d is %v after unpacking, want %v", from+int64(i), e, want)
		}
	}
	return b.stream.Fill(at, fill, int64(len(elements))*elementSize[T]())
}

// checkField reads the cells as a publication does, through the ring of a field.
func (b *bigArray[T]) checkField(first, count int64) (err error) {
	at, from, elements := b.region(first, count)
	for i := range elements {
		elements[i] = number[T](3 * i)
	}
	if err := errors.Join(b.stream.CopyToDevice(at, pack.Bytes(elements)), b.stream.Synchronize()); err != nil {
		return err
	}
	domain := grid.Domain{Size: b.l.Size, Spacing: [3]float64{1, 1, 1}}
	f, err := field.WrapDevice[T](domain, domain.Box(), b.array, b.stream, nil, field.Halo(1), field.Transfer(field.Direct))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Free()) }()
	src, err := f.Source()
	if err != nil {
		return err
	}
	cells := make([]float64, count)
	if err := src.ReadCells(pack.Bytes(cells), first); err != nil {
		return err
	}
	for i, c := range cells {
		if want := float64(elements[b.place(first+int64(i))-from]); c != want {
			return fmt.Errorf("cell %d is read as %v, want %v", first+int64(i), c, want)
		}
	}
	return errors.Join(b.stream.Fill(at, fill, int64(len(elements))*elementSize[T]()), b.stream.Synchronize())
}
