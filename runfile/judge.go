package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A file of a run is judged here, for all who ask: Faults, by which the tool verifies, lists
// and joins, and Open, which goes on from no checkpoint that is bad.
//
// What is wrong with a file is a fault of that file alone. A checkpoint is none the worse
// because its segment can't be read: that is said of the segment.

// errOverwritten is in the chain of errors about a checkpoint in whose directory another
// run of the name has begun since, which wrote no checkpoint yet.
var errOverwritten = errors.New("the run was overwritten")

// segmentGone is the error of a checkpoint whose segment is not there, as a run leaves it
// that is killed while it goes back to the checkpoint before.
type segmentGone struct{ error }

func (e segmentGone) Unwrap() error { return e.error }

// judge inspects a file, and compares it with those beside it.
func judge(ctx context.Context, path string, opts []Option) (*Info, []error, error) {
	o, err := newOptions(opts)
	if err != nil {
		return &Info{File: path}, nil, ofFile(path, "", err)
	}
	i, faults, err := judgeAlone(ctx, path, !o.noValues, opts)
	if err != nil {
		return i, faults, err
	}
	if i.State == nil {
		return i, faults, nil
	}
	dir, name, ok := runOf(path)
	if !ok {
		return i, faults, nil // it was put elsewhere
	}
	segments, err := SegmentFiles(dir, name)
	if err == nil {
		look := func(g Segment) (*Info, []error, error) {
			return judgeAlone(ctx, g.File, false, []Option{Warn(func(string) {})})
		}
		if wrong := i.State.misfit(path, segments, look); wrong != nil {
			faults = append(faults, wrong)
		}
	}
	return i, faults, ctx.Err()
}

// judgeAlone inspects a file, and looks at nothing beside it.
func judgeAlone(ctx context.Context, path string, values bool, opts []Option) (*Info, []error, error) {
	i, faults, err := look(ctx, path, values, opts)
	if err == nil && i.Ours && i.HashesBy == "" {
		var wrong []error
		i.Hashes, wrong = checkHashes(path, i.Settings)
		faults = append(faults, wrong...)
	}
	if wrong := i.judgeName(); err == nil && wrong != nil {
		faults = append(faults, wrong)
	}
	return i, faults, err
}

// judgeName compares what a file is with what its name says.
func (i *Info) judgeName() error {
	if i.Version == "" || i.Settings.Len() == 0 && i.Layout.Unknowns == nil {
		return nil // nothing could be read of it
	}
	if _, _, ok := runOf(i.File); ok && !i.asCheckpoint {
		return in(i.File, "", ErrNotCheckpoint, "it has the name of one")
	}
	_, number, ok := segmentName(i.File)
	if !ok {
		return nil
	}
	if i.asCheckpoint {
		return in(i.File, "", ErrNotOutput, "it has the name of a segment")
	}
	index, err := intAt(i.Settings, "segment/index")
	if err == nil && index != int64(number) {
		return in(i.File, "settings/segment/index", ErrMismatch, "it is %d, and the file has the name of segment %d", index, number)
	}
	return nil
}

// segmentName returns of which run, and which segment of it, a file is by its name.
func segmentName(file string) (name string, number int, ok bool) {
	base := filepath.Base(file)
	at := strings.LastIndex(base, ".segment")
	if at <= 0 {
		return "", 0, false
	}
	number, ok = segmentNumber(base, base[:at])
	return base[:at], number, ok
}

// misfit compares a checkpoint with the segment that it names, of the segments that there
// are of its run. Segments are written first, so that it holds whenever a run was killed.
// What can't be read of the segment is not compared.
func (k *Checkpoint) misfit(file string, segments []Segment, look func(Segment) (*Info, []error, error)) error {
	if k.Segment == 0 || len(segments) == 0 {
		return nil // it was put elsewhere, without the output
	}
	at := slices.IndexFunc(segments, func(g Segment) bool { return g.Number == k.Segment })
	if at < 0 {
		dir, name := filepath.Split(segments[0].File)
		name, _, _ = segmentName(name)
		return segmentGone{in(file, "checkpoint/segment", ErrMismatch, "it is %d, and there is no %s", k.Segment, SegmentFile(dir, name, k.Segment))}
	}
	path := segments[at].File
	i, faults, err := look(segments[at])
	if err != nil || !i.Settings.Has("segment") && len(faults) > 0 {
		return nil
	}
	other := func(format string, args ...any) error {
		return in(file, "checkpoint/segment", ErrMismatch, "it is %d, but %s "+format+": they are of different runs",
			append([]any{k.Segment, path}, args...)...)
	}
	wrote, err1 := sessionOf(k.Settings)
	there, err2 := sessionOf(i.Settings)
	if err1 == nil && err2 == nil && there != "" && wrote != there {
		// One that has written a checkpoint would have its own.
		if written, err := i.Settings.Bool("segment/checkpoint_written"); err == nil && !written {
			return ofFile(file, "checkpoint/segment", fmt.Errorf("%w: it is %d, but %s is of the session %s, this of %s: %w",
				ErrMismatch, k.Segment, path, there, orNone(wrote), errOverwritten))
		}
		return other("is of the session %s, this of %s", there, orNone(wrote))
	}
	hash, err1 := optional(textAt(k.Settings, "setup_hash"))
	setup, err2 := optional(textAt(i.Settings, "setup_hash"))
	damaged := slices.ContainsFunc(faults, func(f error) bool { return errors.Is(f, ErrHash) })
	if err1 == nil && err2 == nil && knownHash(hash) && knownHash(setup) && *hash != *setup && !damaged {
		return other("is of the setup %s, this of %s", *setup, *hash)
	}
	if end, err := optional(floatAt(i.Settings, "segment/end_time")); err == nil && end != nil && *end < k.Time {
		return other("ends at %v s, this is at %v s", *end, k.Time)
	}
	return k.miscount(file, path, i, faults)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// miscount compares the counts of a checkpoint with those of its segment.
func (k *Checkpoint) miscount(file, path string, i *Info, faults []error) error {
	before, err := orElse(intAt, i.Settings, "segment/saved_before", 0)
	if err != nil {
		return nil // that is said of the segment
	}
	times := int64(len(i.Times))
	n := int64(k.SavedCount) - before // states of the segment
	switch {
	case times == 0 && len(faults) > 0: // they can't be read
	case n < 0:
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d, %s has %d before it", k.SavedCount, path, before)
	case n > times:
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d, %s has %d and %d before it", k.SavedCount, path, times, before)
	case n > 0 && i.Times[n-1] > k.Time:
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d at %v s, and that state of %s is of %v s", k.SavedCount, k.Time, path, i.Times[n-1])
	case n < times && i.Times[n] < k.Time:
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d at %v s, and the next state of %s is of %v s", k.SavedCount, k.Time, path, i.Times[n])
	}
	attempts := int64(i.Statistics.Attempts())
	first, err := optional(intAt(i.Settings, "segment/attempts_before"))
	if err != nil || first == nil || attempts == 0 && len(faults) > 0 {
		return nil
	}
	if n := k.Summary.Attempted; n > *first+attempts {
		return in(file, "checkpoint/summary/attempted", ErrMismatch, "it is %d, %s has %d and %d before it", n, path, attempts, *first)
	}
	return nil
}

// LostBundles returns what is wrong with the bundles that a checkpoint names: they must be
// there, with their files in full size. A relative path is one from the directory of the
// file, or from the working directory. What is in the files is not read.
func (i *Info) LostBundles() []error {
	if i.State == nil {
		return nil
	}
	return i.State.lostBundles(vfs.OS, filepath.Dir(i.File), "")
}

// lostBundles returns what is wrong with the bundles that a checkpoint names. A relative path
// is one from dir, the directory of the run, or from the working directory, which is empty
// where it is that of the process.
func (k *Checkpoint) lostBundles(fsys vfs.FS, dir, work string) (faults []error) {
	known := map[string]error{} // by path
	for _, name := range slices.Sorted(maps.Keys(k.Bundles)) {
		path := k.Bundles[name]
		err, ok := known[path]
		if !ok {
			_, err = readBundle(fsys, dir, work, path, true)
			known[path] = err
		}
		if err != nil {
			faults = append(faults, ofFile(k.File, h5.Join("checkpoint/bundles", name), fmt.Errorf("the bundle %s: %w", path, err)))
		}
	}
	return faults
}

// bundleMetadata is what is read here of the metadata of a bundle.
type bundleMetadata struct {
	Version int64 `json:"format_version"`
	Domain  struct {
		Cells []int64 `json:"global_dimensions"`
	} `json:"domain"`
	Fields     []string `json:"fields"`
	Fieldstone *struct {
		NonFinite map[string]int64 `json:"non_finite"`
	} `json:"fieldstone"`
}

// readBundle reads the metadata of a bundle, as a checkpoint names it, and looks whether its
// files are there, each of its size, if it is to be whole.
func readBundle(fsys vfs.FS, dir, work, path string, whole bool) (*bundleMetadata, error) {
	const mostBytes = 16 << 20
	places := []string{path} // as Service.Save returns it, relative to where the run began
	if !filepath.IsAbs(path) {
		places = []string{filepath.Join(dir, path), filepath.Join(work, path)}
	}
	var text []byte
	var bundle string
	err := fs.ErrNotExist
	for n := 0; n < len(places) && errors.Is(err, fs.ErrNotExist); n++ {
		bundle = places[n]
		text, err = vfs.ReadFile(fsys, filepath.Join(bundle, "metadata.json"), mostBytes)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s", fs.ErrNotExist, filepath.Join(places[0], "metadata.json"))
	}
	if err != nil {
		return nil, err
	}
	m := &bundleMetadata{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(bundle, "metadata.json"), err)
	}
	if !whole {
		return m, nil
	}
	return m, m.complete(fsys, bundle)
}

// complete looks whether the files of a bundle are there.
func (m *bundleMetadata) complete(fsys vfs.FS, bundle string) error {
	if m.Fieldstone != nil {
		if there, err := vfs.Exists(fsys, filepath.Join(bundle, "checksums.txt")); err != nil || !there {
			return errors.Join(err, fmt.Errorf("%w: there is no %s", fs.ErrNotExist, filepath.Join(bundle, "checksums.txt")))
		}
	}
	bytes := int64(8)
	for _, n := range m.Domain.Cells {
		bytes *= n
	}
	for _, id := range m.Fields {
		file := filepath.Join(bundle, "fields", id+".bin")
		info, err := fsys.Stat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: there is no %s", fs.ErrNotExist, file)
		case err != nil:
			return err
		case info.Size() != bytes:
			return fmt.Errorf("%w: %s has %d bytes, its domain takes %d", ErrMismatch, file, info.Size(), bytes)
		}
	}
	return nil
}
