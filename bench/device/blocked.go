package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/stats"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/publish"
)

// A saver is one way in which a solver has its state saved. What begin takes keeps the
// solver from its next step; after end the bundle is there.
type saver struct {
	name  string
	begin func(ctx context.Context, b *bundle, durability publish.Durability) (end func() error, err error)
}

// savers are all there are. One that works in the background is another line.
var savers = []saver{
	{"save", func(ctx context.Context, b *bundle, durability publish.Durability) (func() error, error) {
		err := publish.SaveBundle(ctx, comm.Self(), b.dir, b.state(), publish.WithDurability(durability), publish.Reuse(b.plans))
		return func() error { return nil }, err
	}},
}

// blocked measures for how long a save keeps the solver.
func blocked(ctx context.Context, s settings, space device.Space, r *report) (err error) {
	cells := int64(s.size) * int64(s.size) * int64(s.size)
	padded := int64(s.size+4) * int64(s.size+4) * int64(s.size+4)
	bytes := int64(s.fields) * cells * 8
	if ok, err := r.room(space, "blocked time of a save", int64(s.fields)*padded*8+128<<20); !ok {
		return err
	}
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	b := &bundle{}
	undo.add(b.free)
	for i := range s.fields {
		if err := b.addNew(s, i, field.In(space), field.Logger(r.logger())); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		name       string
		durability publish.Durability
	}{{"without fsync", publish.None}, {"with fsync", publish.Full}} {
		place := s
		if kind.durability == publish.Full && s.folder == "" {
			place.folder = os.TempDir() // memory is never durable
		}
		folder, err := place.scratch(bytes, &undo, r)
		if err != nil {
			return err
		}
		b.dir = filepath.Join(folder, "blocked")
		for _, saver := range savers {
			var kept, whole []float64
			for round := range s.repeats + 1 {
				if err := errors.Join(ctx.Err(), b.remove(), b.note()); err != nil {
					return err
				}
				start := time.Now()
				end, err := saver.begin(ctx, b, kind.durability)
				if err != nil {
					return err
				}
				begun := time.Since(start)
				if err := end(); err != nil {
					return err
				}
				if round > 0 {
					kept, whole = append(kept, begun.Seconds()), append(whole, time.Since(start).Seconds())
				}
			}
			r.say("%s of %d MiB, %s: the solver is blocked for %.3f ms of %.3f", saver.name, bytes>>20, kind.name,
				1e3*stats.Median(kept), 1e3*stats.Median(whole))
		}
	}
	if len(savers) == 1 {
		r.say("background save: not measured, this version has none")
	}
	return nil
}
