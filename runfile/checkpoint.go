package runfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// WriteCheckpoint writes a checkpoint of the run of a name in a directory. The last one
// becomes the previous one, and what was that is removed. When it returns, the
// checkpoint is on the disk.
//
// A failure before the new checkpoint has its name changes neither of the two. If the
// program is killed, the last checkpoint or the previous one can be read at any time.
// One that can't be read doesn't become the previous one, nor does one that is not finite
// replace a previous one that is, by what [Checkpoint.NonFinite] of the two says.
//
// The file and the version of the checkpoint play no part.
func WriteCheckpoint(ctx context.Context, dir, name string, k *Checkpoint, opts ...Option) error {
	o, err := newOptions(opts)
	if err == nil {
		err = CheckName(name)
	}
	if err == nil {
		err = k.check()
	}
	if err == nil {
		err = writeRotating(ctx, dir, name, k, o)
	}
	if err != nil {
		return fmt.Errorf("write checkpoint of run %q: %w", name, err)
	}
	return nil
}

// solution is the root of the file that the checkpoint becomes.
func (k *Checkpoint) solution() *Solution {
	return &Solution{Settings: k.Settings, Layout: k.Layout, Times: []float64{k.Time}, States: [][]float64{k.State}, carried: k.carried}
}

func (k *Checkpoint) check() error {
	if err := k.solution().check(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, u := range k.Updates {
		if err := checkUpdateName(u.Name, seen); err != nil {
			return err
		}
	}
	if err := k.carried.check(k.Stepper); err != nil {
		return fmt.Errorf("%w: stepper: %w", ErrInput, err)
	}
	for name := range k.Bundles {
		if u := k.Layout.Unknown(name); u == nil || u.Kind != Field {
			return fmt.Errorf("%w: a bundle is named for %q, which is no field", ErrInput, name)
		}
	}
	return k.checkNonFinite()
}

func writeRotating(ctx context.Context, dir, name string, k *Checkpoint, o *options) error {
	tmp, err := writeTemporary(o, CheckpointFile(dir, name), func(f *h5.File) error {
		if err := writeCheckpoint(ctx, f, k, o); err != nil {
			return err
		}
		_, err := writeCheckpointSums(f, k, nil, o)
		return err
	})
	if err != nil {
		return err
	}
	return publishCheckpoint(ctx, dir, name, tmp, k.policies, o)
}

// publishCheckpoint makes the temporary file, which is complete, the last checkpoint.
func publishCheckpoint(ctx context.Context, dir, name, tmp string, p unknownPolicies, o *options) error {
	last, previous := CheckpointFile(dir, name), PreviousFile(dir, name)
	err := rotate(o.fsys, tmp, last, previous, func() (bool, error) { return worthKeeping(ctx, last, previous, p, o) })
	if err != nil {
		return errors.Join(err, remove(o.fsys, tmp))
	}
	return o.fsys.SyncDir(filepath.Dir(last))
}

// rotate makes last the previous file, if it is worth it, and the temporary one last.
// Until that has happened, the previous one is set aside, so that a failure can put
// everything back.
func rotate(fsys vfs.FS, tmp, last, previous string, worth func() (bool, error)) error {
	aside := temporary(previous)
	if err := remove(fsys, aside); err != nil {
		return err
	}
	there, err := vfs.Exists(fsys, last)
	if err != nil {
		return err
	}
	if there {
		if there, err = worth(); err != nil {
			return err
		}
	}
	if !there {
		return vfs.Move(fsys, tmp, last)
	}
	if there, err = vfs.Exists(fsys, previous); err != nil {
		return err
	}
	if there {
		if err := vfs.Move(fsys, previous, aside); err != nil {
			return err
		}
	}
	// From here on nothing may be replaced: each of the files may be the only copy.
	restore := func(err error) error {
		if there && !errors.Is(err, vfs.ErrUnclear) {
			err = errors.Join(err, vfs.MoveNoReplace(fsys, aside, previous))
		}
		return err
	}
	if err := vfs.MoveNoReplace(fsys, last, previous); err != nil {
		return restore(err)
	}
	if err := vfs.MoveNoReplace(fsys, tmp, last); err != nil {
		if errors.Is(err, vfs.ErrUnclear) {
			return err // either may be the last one, and both are found
		}
		if back := vfs.MoveNoReplace(fsys, previous, last); back != nil {
			// The last checkpoint stays under the other name, where it is found.
			return errors.Join(err, back)
		}
		return restore(err)
	}
	if there {
		return remove(fsys, aside)
	}
	return nil
}

// isCheckpoint looks whether a file is a checkpoint that was finished, of any version.
// It is an error that the system doesn't tell.
func isCheckpoint(ctx context.Context, path string) (bool, error) {
	err := withFile(context.WithoutCancel(ctx), path, func(f *h5.File, r root) error {
		if !r.checkpoint {
			return in(path, "", ErrNotCheckpoint, "")
		}
		return nil
	})
	var system syscall.Errno
	switch {
	case err == nil, errors.Is(err, ErrVersion):
		return true, nil
	case errors.As(err, &system):
		return false, err
	}
	return false, nil
}

// writeCheckpoint writes all but the checksums.
func writeCheckpoint(ctx context.Context, f *h5.File, k *Checkpoint, o *options) error {
	own := *o
	own.extendible = false
	if err := writeRoot(ctx, f, k.solution(), &own, k.Bundles); err != nil {
		return err
	}
	if k.NonFinite != nil {
		if err := writeNonFinite(f, k.NonFinite); err != nil {
			return err
		}
	}
	if err := f.CreateGroup("checkpoint"); err != nil {
		return err
	}
	if err := h5.Write(f, "checkpoint/time", []float64{k.Time}); err != nil {
		return err
	}
	if err := h5.Write(f, "checkpoint/segment", []int64{int64(k.Segment)}); err != nil {
		return err
	}
	if err := h5.Write(f, "checkpoint/saved_count", []int64{int64(k.SavedCount)}); err != nil {
		return err
	}
	summary, err := k.Summary.record()
	if err != nil {
		return err
	}
	if err := writeRecord(f, "checkpoint/summary", summary); err != nil {
		return err
	}
	if k.HasStepper {
		if err := k.carried.write(f, "checkpoint/stepper", k.Stepper); err != nil {
			return err
		}
	}
	if err := f.CreateGroup("checkpoint/update_states"); err != nil {
		return err
	}
	for _, u := range k.Updates {
		if err := h5.Write(f, h5.Join("checkpoint/update_states", u.Name), u.State, len(u.State)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Bundles)) {
		if err := f.WriteString(h5.Join("checkpoint/bundles", name), k.Bundles[name]); err != nil {
			return err
		}
	}
	return nil
}

func readCheckpoint(ctx context.Context, f *h5.File, r root, o *options) (*Checkpoint, error) {
	if !r.checkpoint {
		return nil, in(f.Name(), "", ErrNotCheckpoint, "it has no group checkpoint")
	}
	s, err := readCommon(ctx, f, r, o)
	if err != nil {
		return nil, err
	}
	if len(s.Times) != 1 {
		return nil, in(f.Name(), "time", ErrMismatch, "%d times, a checkpoint has one", len(s.Times))
	}
	bundles, err := readBundles(f, &s.Layout)
	if err != nil {
		return nil, err
	}
	if err := s.readStates(ctx, f, r.sums, 0, 1, bundles); err != nil {
		return nil, err
	}
	k := s.stored(0)
	k.Bundles = bundles
	if k.NonFinite, err = readNonFinite(f, r); err != nil {
		return nil, err
	}
	time, err := readScalar[float64](f, "checkpoint/time")
	if err != nil {
		return nil, err
	}
	if time != k.Time {
		return nil, in(f.Name(), "checkpoint/time", ErrMismatch, "%v s, the state is of %v s", time, k.Time)
	}
	for path, to := range map[string]*int{"checkpoint/segment": &k.Segment, "checkpoint/saved_count": &k.SavedCount} {
		n, err := readScalar[int64](f, path)
		if err != nil {
			return nil, err
		}
		if n < 0 || n > min(1<<40, math.MaxInt) {
			return nil, in(f.Name(), path, ErrMismatch, "it is %d", n)
		}
		*to = int(n)
	}
	if k.Summary, err = readSummary(f, r); err != nil {
		return nil, err
	}
	if k.HasStepper, err = f.Exists("checkpoint/stepper"); err != nil {
		return nil, err
	}
	if k.HasStepper {
		if k.Stepper, err = k.carried.read(f, "checkpoint/stepper"); err != nil {
			return nil, err
		}
	}
	entries, err := members(f, "checkpoint/update_states")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		state, err := readVector[float64](f, h5.Join("checkpoint/update_states", e.Name))
		if err != nil {
			return nil, err
		}
		k.Updates = append(k.Updates, UpdateState{e.Name, state})
	}
	return k, r.sums.checkpoint(k)
}

func readBundles(f *h5.File, l *Layout) (map[string]string, error) {
	const group = "checkpoint/bundles"
	entries, err := members(f, group)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	bundles := map[string]string{}
	for _, e := range entries {
		path := h5.Join(group, e.Name)
		if u := l.Unknown(e.Name); u == nil || u.Kind != Field {
			return nil, in(f.Name(), path, ErrMismatch, "the layout has no field %q", e.Name)
		}
		if bundles[e.Name], err = f.ReadString(path); err != nil {
			return nil, err
		}
	}
	return bundles, nil
}

func readSummary(f *h5.File, of root) (s Summary, err error) {
	const path = "checkpoint/summary"
	r, err := readRecord(f, path)
	if err == nil {
		err = of.sums.record(path, r)
	}
	if err != nil {
		return s, err
	}
	missing := int64(0) // other writers leave out what is 0
	if of.ours {
		missing = notKnown
	}
	for _, c := range s.counts() {
		if *c.n, err = orElse(intAt, r, c.key, missing); err != nil {
			return s, ofFile(f.Name(), path, err)
		}
	}
	if s.WallTime, err = orElse(floatAt, r, "wall_time", float64(missing)); err != nil {
		return s, ofFile(f.Name(), path, err)
	}
	return s, nil
}

// ReadCheckpoint returns the last checkpoint of a run, or the previous one if the last
// is missing or can't be read, which is a warning. It returns nil if neither exists, and
// an error if files exist and none can be read: a run that takes this for none would
// start over and replace its files.
func ReadCheckpoint(ctx context.Context, dir, name string, opts ...Option) (*Checkpoint, error) {
	o, err := newOptions(opts)
	if err == nil {
		err = CheckName(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint of run %q: %w", name, err)
	}
	files := []string{CheckpointFile(dir, name), PreviousFile(dir, name)}
	// Whoever writes meanwhile renames the last one to the previous one, so in this order
	// one of the two is found.
	var failed []error
	for i, path := range files {
		k, err := o.checkpointAt(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			k, err = o.checkpointAt(ctx, path) // it was renamed between two looks at it
		}
		switch {
		case err == nil && k == nil:
		case err == nil:
			k.Previous = i > 0
			for _, err := range failed {
				o.warn(fmt.Sprintf("the last checkpoint can't be read, the previous one is taken: %v", err))
			}
			return k, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("read checkpoint of run %q: %w", name, err)
		default:
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("read checkpoint of run %q: %w", name, errors.Join(failed...))
	}
	return nil, nil
}

// checkpointAt reads a checkpoint, or returns nil where there is nothing at the path.
func (o *options) checkpointAt(ctx context.Context, path string) (k *Checkpoint, err error) {
	there, err := vfs.Exists(o.fsys, path)
	if err != nil || !there {
		return nil, err
	}
	err = withFile(ctx, path, func(f *h5.File, r root) (err error) {
		k, err = readCheckpoint(ctx, f, r, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}
