package main

import (
	"context"
	"errors"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
)

// costs are those of calls that move next to nothing. The first three happen once in a
// process, so there is one time of each.
func costs(ctx context.Context, s settings, space device.Space, r *report) (err error) {
	r.took("open the library and the device, once", s.opening.Seconds())
	start := time.Now()
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	memory, err := space.Allocate(1 << 20)
	if err != nil {
		return err
	}
	undo.add(memory.Free)
	r.took("first allocation, 1 MiB of device memory", time.Since(start).Seconds())
	start = time.Now()
	p, err := newPacker(space)
	switch {
	case errors.Is(err, device.ErrUnsupported):
		r.say("kernels of boxes: left out: %v", err)
	case err != nil:
		return err
	default:
		r.took("load the module of the box kernels, once", time.Since(start).Seconds())
	}

	stream, err := space.NewStream()
	if err != nil {
		return err
	}
	undo.add(stream.Close)
	event, err := space.NewEvent()
	if err != nil {
		return err
	}
	undo.add(event.Close)
	pinned, err := space.AllocateHost(1 << 20)
	if err != nil {
		return err
	}
	undo.add(pinned.Free)

	// The rest is that of one call when many are queued, unless it waits.
	const often = 200
	wait := func(do func() error) func() error {
		return func() error { return errors.Join(do(), stream.Synchronize()) }
	}
	small := device.BoxRange{Count: 1, NX: 1, NY: 1, SY: 1, SZ: 1}
	launch := func() error {
		return device.LaunchBox(stream, p.kernel[device.PackFloat64], memory.Ptr(), memory.Ptr().Add(4096), small)
	}
	type call struct {
		what  string
		often int
		do    func() error
	}
	list := []call{
		{"space: memory that is free", often, func() error { _, err := space.MemoryInfo(); return err }},
		{"stream: query, nothing is queued", often, func() error { _, err := stream.Query(); return err }},
		{"event: record and wait", often, func() error { return errors.Join(stream.Record(event), event.Synchronize()) }},
		{"copy 8 bytes to the host and wait", often, wait(func() error { return stream.CopyToHost(pinned.Bytes()[:8], memory.Ptr()) })},
		{"copy 1 MiB to the host and wait", often / 4, wait(func() error { return stream.CopyToHost(pinned.Bytes(), memory.Ptr()) })},
		{"copy 1 MiB to the device and wait", often / 4, wait(func() error { return stream.CopyToDevice(memory.Ptr(), pinned.Bytes()) })},
		{"make and close a stream", often / 20, func() error {
			other, err := space.NewStream()
			if err != nil {
				return err
			}
			return other.Close()
		}},
		{"allocate and free 1 MiB of device memory", often / 20, func() error {
			m, err := space.Allocate(1 << 20)
			if err != nil {
				return err
			}
			return m.Free()
		}},
		{"allocate and free 1 MiB of pinned memory", often / 20, func() error {
			m, err := space.AllocateHost(1 << 20)
			if err != nil {
				return err
			}
			return m.Free()
		}},
	}
	if p.kernel[device.PackFloat64] != nil {
		if err := errors.Join(stream.Fill(memory.Ptr(), 0, 1<<20), stream.Synchronize()); err != nil {
			return err
		}
		list = append(list, call{"launch a kernel and wait", often, wait(launch)}, call{"launch 100 kernels and wait", often / 20, wait(func() error {
			for range 100 {
				if err := launch(); err != nil {
					return err
				}
			}
			return nil
		})})
	}
	for _, c := range list {
		if err := r.cost(ctx, c.what, s.repeats, c.often, c.do); err != nil {
			return err
		}
	}
	return nil
}
