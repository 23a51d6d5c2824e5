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
func bundles(ctx context.Context, s settings, space device.Space, r *report) (err error) {
	bytes := int64(s.fields) * int64(s.size) * int64(s.size) * int64(s.size) * 8
	padded := int64(s.size+4) * int64(s.size+4) * int64(s.size+4)
	if ok, err := r.room(space, "bundles", 2*int64(s.fields)*padded*8+128<<20); !ok {
		return err
	}
	var undo undoList
	defer func() { err = errors.Join(err, undo.all()) }()
	folder, err := s.scratch(3*bytes, &undo, r)
	if err != nil {
		return err
	}
	var dirs []string
	var saves, loads []way
	for _, place := range []struct {
		name string
		opts []field.Option
	}{
		{"host", nil},
		{"direct", []field.Option{field.In(space), field.Transfer(field.Direct), field.Logger(r.logger())}},
		{"mirror", []field.Option{field.In(space), field.Transfer(field.Mirror), field.Logger(r.logger())}},
	} {
		b := &bundle{dir: filepath.Join(folder, place.name)}
		undo.add(b.free)
		for i := range s.fields {
			if err := b.addNew(s, i, place.opts...); err != nil {
				return err
			}
		}
		dirs = append(dirs, b.dir)
		saves = append(saves, b.saving(ctx, place.name))
		loads = append(loads, b.loading(ctx, place.name))
	}
	if err := r.add(ctx, "save", bytes, s.repeats, saves...); err != nil {
		return err
	}
	if err := sameBundles(ctx, dirs...); err != nil {
		return err
	}
	if err := r.add(ctx, "load", bytes, s.repeats, loads...); err != nil {
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

// bundle is fields and the folder that they are saved to.
type bundle struct {
	dir    string
	fields []*field.Field[float64]
	named  []field.Named
	plans  *publish.Plans
	undo   undoList
}

// addNew adds the i-th field, with cells of its own.
func (b *bundle) addNew(s settings, i int, opts ...field.Option) error {
	f, err := newField[float64](s, i+1, opts...)
	if err != nil {
		return err
	}
	b.join(i, f)
	return nil
}

func (b *bundle) join(i int, f *field.Field[float64]) {
	if b.plans == nil {
		b.plans = publish.NewPlans()
		b.undo.add(func() error { b.plans.Close(); return nil })
	}
	b.undo.add(f.Free)
	b.fields = append(b.fields, f)
	b.named = append(b.named, field.Named{ID: fmt.Sprintf("f%d", i), Field: f})
}

func (b *bundle) free() error   { return b.undo.all() }
func (b *bundle) remove() error { return os.RemoveAll(b.dir) }

func (b *bundle) each(do func(*field.Field[float64]) error) error {
	for _, f := range b.fields {
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

// note is called as after a step.
func (b *bundle) note() error {
	return b.each(func(f *field.Field[float64]) error { return f.NoteDeviceWrite() })
}

func (b *bundle) upload() error {
	return b.each(func(f *field.Field[float64]) error { return f.Upload() })
}

func (b *bundle) state() publish.State {
	return publish.State{Fields: b.named, Time: 1, Increment: 1, Method: method}
}

// saving is a save to a folder that isn't there, without fsync.
func (b *bundle) saving(ctx context.Context, name string) way {
	return way{name: name,
		prepare: func() error { return errors.Join(b.remove(), b.note()) },
		run: func() error {
			return publish.SaveBundle(ctx, comm.Self(), b.dir, b.state(), publish.WithDurability(publish.None), publish.Reuse(b.plans))
		}}
}

// loading is a load into fields that hold something else.
func (b *bundle) loading(ctx context.Context, name string) way {
	return way{name: name, prepare: func() error { return b.each(spoil) }, run: func() error {
		_, err := publish.LoadBundle(ctx, comm.Self(), b.dir, publish.Request{Fields: b.named, Method: method}, publish.Reuse(b.plans))
		return err
	}}
}

// scratch makes a folder for so many bytes of bundles.
func (s settings) scratch(bytes int64, undo *undoList, r *report) (string, error) {
	parent := s.parent(bytes)
	folder, err := os.MkdirTemp(parent, "fieldstone-device-")
	if err != nil {
		return "", err
	}
	undo.add(func() error { return os.RemoveAll(folder) })
	r.say("bundles are written to %s", parent)
	return folder, nil
}

// parent returns a folder with space for the bundles.
func (s settings) parent(bytes int64) string {
	if s.folder != "" {
		return s.folder
	}
	const shared = "/dev/shm"
	use, err := vfs.OS.Usage(shared)
	if err == nil && int64(use.Free) > 2*bytes {
		return shared
	}
	return os.TempDir()
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
