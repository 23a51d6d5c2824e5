package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/publish"
)

const method = "none"

// bundles compares publications and loads of fields on the device with those of fields
// of the host that hold the same.
func bundles(ctx context.Context, s settings, space device.Space, found *table) (err error) {
	bytes := int64(s.fields) * int64(s.size) * int64(s.size) * int64(s.size) * 8
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	parent, err := s.parent(bytes)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(parent, "fieldstone-device-")
	if err != nil {
		return err
	}
	undo.add(func() error { return os.RemoveAll(folder) })
	fmt.Fprintf(&found.said, "Bundles are written to %s, without fsync.\n", parent)

	var dirs []string
	var saves, loads []way
	for _, place := range []struct {
		name string
		opts []field.Option
	}{
		{"host", nil},
		{"direct", []field.Option{field.In(space), field.Transfer(field.Direct), field.Logger(found.logger())}},
		{"mirror", []field.Option{field.In(space), field.Transfer(field.Mirror), field.Logger(found.logger())}},
	} {
		var named []field.Named
		var fields []*field.Field[float64]
		for i := range s.fields {
			f, err := newField[float64](s, i+1, place.opts...)
			if err != nil {
				return err
			}
			undo.add(f.Free)
			fields = append(fields, f)
			named = append(named, field.Named{ID: fmt.Sprintf("f%d", i), Field: f})
		}
		plans := publish.NewPlans()
		undo.add(func() error { plans.Close(); return nil })
		dir := filepath.Join(folder, place.name)
		dirs = append(dirs, dir)
		each := func(do func(*field.Field[float64]) error) func() error {
			return func() error {
				for _, f := range fields {
					if err := do(f); err != nil {
						return err
					}
				}
				return nil
			}
		}
		note := each(func(f *field.Field[float64]) error { return f.NoteDeviceWrite() }) // as after a step
		saves = append(saves, way{name: place.name,
			prepare: func() error { return errors.Join(os.RemoveAll(dir), note()) },
			run: func() error {
				return publish.SaveBundle(ctx, comm.Self(), dir, publish.State{Fields: named, Time: 1, Increment: 1, Method: method},
					publish.WithDurability(publish.None), publish.Reuse(plans))
			}})
		loads = append(loads, way{name: place.name, prepare: each(spoil), run: func() error {
			_, err := publish.LoadBundle(ctx, comm.Self(), dir, publish.Request{Fields: named, Method: method}, publish.Reuse(plans))
			return err
		}})
	}
	if err := found.add(ctx, "save", bytes, s.repeats, saves...); err != nil {
		return err
	}
	if err := sameBundles(ctx, dirs...); err != nil {
		return err
	}
	if err := found.add(ctx, "load", bytes, s.repeats, loads...); err != nil {
		return err
	}
	// What was loaded is right if it is saved again as it was.
	before, err := checksums(ctx, dirs[0])
	if err != nil {
		return err
	}
	for _, w := range saves {
		if err := errors.Join(w.prepare(), w.run()); err != nil {
			return err
		}
	}
	if err := sameBundles(ctx, dirs...); err != nil {
		return err
	}
	if after, err := checksums(ctx, dirs[0]); err != nil || !slices.Equal(before, after) {
		return errors.Join(err, errors.New("the cells that were loaded are wrong"))
	}
	return nil
}

// parent returns a folder with space for the bundles.
func (s settings) parent(bytes int64) (string, error) {
	if s.folder != "" {
		return s.folder, nil
	}
	const shared = "/dev/shm"
	use, err := vfs.OS.Usage(shared)
	if err == nil && int64(use.Free) > 4*bytes {
		return shared, nil
	}
	return os.TempDir(), nil
}

// sameBundles says whether bundles hold the same cells: by the checksums of their
// fields, once the files are known to have those.
func sameBundles(ctx context.Context, dirs ...string) error {
	var first []uint64
	for _, dir := range dirs {
		sums, err := checksums(ctx, dir)
		if err != nil {
			return err
		}
		if first == nil {
			first = sums
		}
		if !slices.Equal(sums, first) {
			return fmt.Errorf("%s has other cells than %s", dir, dirs[0])
		}
	}
	return nil
}

func checksums(ctx context.Context, dir string) (sums []uint64, err error) {
	bundle, err := publish.OpenBundle(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bundle.Close()) }()
	for _, id := range bundle.Fields() {
		sum, ok := bundle.Checksum(id)
		if !ok {
			return nil, fmt.Errorf("%s has no checksum of %s", dir, id)
		}
		sums = append(sums, sum)
	}
	return sums, bundle.Verify(ctx, nil)
}
