package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/bench/stats"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/pack"
)

// rings saves and loads a bundle over rings of several sizes. The yardsticks are the same
// bundle of fields in pinned memory of the host, and a plain copy of as many bytes.
func rings(ctx context.Context, s settings, space device.Space, r *report) (err error) {
	cells := int64(s.size) * int64(s.size) * int64(s.size)
	padded := int64(s.size+4) * int64(s.size+4) * int64(s.size+4)
	bytes := int64(s.fields) * cells * 8
	if ok, err := r.room(space, "rings", int64(s.fields)*padded*8+cells*8+128<<20); !ok {
		return err
	}
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	folder, err := s.scratch(2*bytes, &undo, r)
	if err != nil {
		return err
	}

	// What a plain copy moves: as many bytes, a field at a time.
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
	plain := func(name string, copy func() error) way {
		return way{name: name, run: func() error {
			for range s.fields {
				if err := copy(); err != nil {
					return err
				}
			}
			return stream.Synchronize()
		}}
	}
	toHost := plain("plain copy", func() error { return stream.CopyToHost(pinned.Bytes(), memory.Ptr()) })
	toDevice := plain("plain copy", func() error { return stream.CopyToDevice(memory.Ptr(), pinned.Bytes()) })

	onHost := &bundle{dir: filepath.Join(folder, "pinned")}
	undo.add(onHost.free)
	for i := range s.fields {
		if err := onHost.addPinned(s, i, space); err != nil {
			return err
		}
	}
	var saves, loads best
	for _, bytesOfChunk := range []int64{1 << 20, 2 << 20, 4 << 20, 8 << 20} {
		for _, chunks := range []int{4, 8} {
			name := fmt.Sprintf("ring of %d x %d MiB", chunks, bytesOfChunk>>20)
			save, load, err := ringContest(ctx, s, space, r, name, bytes, onHost, filepath.Join(folder, "device"), toHost, toDevice,
				field.Ring(bytesOfChunk, chunks))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			isDefault := bytesOfChunk == field.DefaultRingChunk && chunks == field.DefaultRingChunks
			saves.note(name, save, isDefault)
			loads.note(name, load, isDefault)
		}
	}
	saves.say(r, "saves")
	loads.say(r, "loads")
	return nil
}

// ringContest returns the seconds of a save and of a load.
func ringContest(ctx context.Context, s settings, space device.Space, r *report, name string, bytes int64, onHost *bundle, dir string,
	toHost, toDevice way, ring field.Option) (save, load float64, err error) {
	// The ring is made for the first field and goes with the last.
	onDevice := &bundle{dir: dir}
	defer func() { err = errors.Join(err, onDevice.free()) }()
	for i := range s.fields {
		if err := onDevice.addNew(s, i, field.In(space), field.Transfer(field.Direct), field.Logger(r.logger()), ring); err != nil {
			return 0, 0, err
		}
	}
	seconds, err := r.compare(ctx, name+", save", bytes, s.repeats, 2, onHost.saving(ctx, "host, pinned"), toHost, onDevice.saving(ctx, ""))
	if err != nil {
		return 0, 0, err
	}
	save = stats.Median(seconds[2])
	if err := sameBundles(ctx, onHost.dir, onDevice.dir); err != nil {
		return 0, 0, err
	}
	if seconds, err = r.compare(ctx, name+", load", bytes, s.repeats, 2, onHost.loading(ctx, "host, pinned"), toDevice, onDevice.loading(ctx, "")); err != nil {
		return 0, 0, err
	}
	load = stats.Median(seconds[2])
	// What was loaded is right if it is saved again as it was.
	again := onDevice.saving(ctx, "")
	if err := errors.Join(again.prepare(), again.run()); err != nil {
		return 0, 0, err
	}
	return save, load, sameBundles(ctx, onHost.dir, onDevice.dir)
}

// addPinned adds a field in pinned memory of the host.
func (b *bundle) addPinned(s settings, i int, space device.Space) error {
	domain := cube(s.size)
	l := pack.Layout{Size: domain.Size, Halo: [3]int{2, 2, 2}}
	pinned, err := space.AllocateHost(l.PaddedCells() * 8)
	if err != nil {
		return err
	}
	b.undo.add(pinned.Free)
	cells, err := pack.View[float64](pinned.Bytes())
	if err != nil {
		return err
	}
	fillCells(cells, i+1)
	f, err := field.WrapHost(domain, domain.Box(), cells, field.Halo(2))
	if err != nil {
		return err
	}
	b.join(i, f)
	return nil
}

// best remembers the shortest time.
type best struct {
	name              string
	seconds, standard float64 // of the best, and of the default
}

func (b *best) note(name string, seconds float64, isDefault bool) {
	if b.name == "" || seconds < b.seconds {
		b.name, b.seconds = name, seconds
	}
	if isDefault {
		b.standard = seconds
	}
}

func (b *best) say(r *report, what string) {
	r.say("best for %s: the %s, %.2f times as fast as the default of %d x %d MiB", what, b.name, b.standard/b.seconds,
		field.DefaultRingChunks, field.DefaultRingChunk>>20)
}
