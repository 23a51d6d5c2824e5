package main

import (
	"context"
	"errors"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
)

// captures compares a capture of fields on the device, and going back to it, with copies
// of as many bytes between the device and pinned memory.
func captures(ctx context.Context, s settings, space device.Space, r *report) (err error) {
	cells := int64(s.size) * int64(s.size) * int64(s.size)
	padded := int64(s.size+4) * int64(s.size+4) * int64(s.size+4)
	if ok, err := r.room(space, "capture", int64(s.fields)*padded*8+cells*8+128<<20); !ok {
		return err
	}
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	stream, err := space.NewStream()
	if err != nil {
		return err
	}
	undo.add(stream.Close)
	memory, err := space.Allocate(cells * 8)
	if err != nil {
		return err
	}
	undo.add(memory.Free)
	pinned, err := space.AllocateHost(cells * 8)
	if err != nil {
		return err
	}
	undo.add(pinned.Free)
	b := &bundle{}
	undo.add(b.free)
	for i := range s.fields {
		if err := b.addNew(s, i, field.In(space), field.Logger(r.logger())); err != nil {
			return err
		}
	}
	state, err := field.Capture(b.named...)
	if err != nil {
		return err
	}
	many := func(copy func() error) func() error {
		return func() error {
			for range s.fields {
				if err := copy(); err != nil {
					return err
				}
			}
			return stream.Synchronize()
		}
	}
	bytes := int64(s.fields) * cells * 8
	if err := r.add(ctx, "capture", bytes, s.repeats,
		way{name: "plain copy", run: many(func() error { return stream.CopyToHost(pinned.Bytes(), memory.Ptr()) })},
		way{name: "again", prepare: b.note, run: func() error { return state.Recapture(b.named...) }},
		way{name: "new memory", prepare: b.note, run: func() error { _, err := field.Capture(b.named...); return err }},
	); err != nil {
		return err
	}
	return r.add(ctx, "capture", bytes, s.repeats,
		way{name: "plain copy", run: many(func() error { return stream.CopyToDevice(memory.Ptr(), pinned.Bytes()) })},
		way{name: "restore, as far as the device", prepare: b.note, run: func() error { return errors.Join(state.Restore(b.named...), b.upload()) }})
}
