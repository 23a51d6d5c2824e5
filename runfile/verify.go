package runfile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fieldstone-io/fieldstone/record"
)

// ErrHash says that a hash is not that of what it stands beside.
var ErrHash = errors.New("the hash does not match")

// Verified is what [Verify] found.
type Verified struct {
	Version    string
	Checkpoint bool // it is a checkpoint, and no output file
	// Ours says that this package wrote the file. Hashes of others can't be checked.
	Ours   bool
	Hashes int // that were checked
	States int // saved states
}

// Verify is [Faults] of which the first is an error.
func Verify(ctx context.Context, path string, opts ...Option) (Verified, error) {
	i, faults, err := Faults(ctx, path, opts...)
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("verify: %w", faults[0])
	}
	if err != nil {
		return Verified{}, err
	}
	return Verified{Version: i.Version, Checkpoint: i.State != nil, Ours: i.Ours, Hashes: i.Hashes, States: len(i.Times)}, nil
}

// Faults is [Inspect] that reads all of a file, and returns everything that is wrong with
// it, each with the file and the object. The values of fields are not read,
// but their shapes are checked, and in files of ours that the file has them all. Of a
// file that this package wrote the coordinates of axes are compared with the layout, and
// the hashes of the settings are computed again, unless they are those of another writer
// that were carried into it: see [Info.HashesBy]. Of a
// checkpoint that has the name of a run's, the state that it counts must be in a
// segment, where there are segments of the run.
//
// The error says that the file can't be judged, as one that can't be opened or has an
// unknown version. The result is never nil, and has what could be read.
func Faults(ctx context.Context, path string, opts ...Option) (*Info, []error, error) {
	i, faults, err := look(ctx, path, true, opts)
	if err == nil && i.Ours && i.HashesBy == "" {
		var wrong []error
		i.Hashes, wrong = checkHashes(path, i.Settings)
		faults = append(faults, wrong...)
	}
	if err == nil && i.State != nil {
		if wrong := checkSaved(ctx, path, i.State); wrong != nil {
			faults = append(faults, wrong)
		}
		err = ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	return i, faults, err
}

// checkHashes recomputes the hashes that settings have of their sections, and counts
// those that are right.
func checkHashes(file string, settings record.Record) (checked int, wrong []error) {
	check := func(section string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: settings/%s: %w", file, section, err))
			return
		}
		checked++
	}
	if !settings.Has("hashes") {
		return 0, nil
	}
	hashes, err := settings.Record("hashes")
	if err != nil {
		check("hashes", err)
		return 0, wrong
	}
	for section := range hashes.All() {
		content, err := settings.Record(section)
		if err == nil {
			err = sameHash(hashes, section, content.Hash())
		}
		check(section, err)
	}
	if settings.Has("setup_hash") {
		check("setup_hash", sameHash(settings, "setup_hash", hashes.Hash()))
	}
	return checked, wrong
}

func sameHash(r record.Record, key, want string) error {
	stored, err := r.Text(key)
	if err == nil && stored != want {
		err = fmt.Errorf("%w: stored is %s, it is %s", ErrHash, stored, want)
	}
	return err
}

// checkSaved tells whether the last state that a checkpoint counts as saved is in its
// segment. Segments are written first, so it must be, whenever a run was killed.
func checkSaved(ctx context.Context, file string, k *Checkpoint) error {
	dir, name, ok := runOf(file)
	if !ok || k.Segment == 0 {
		return nil
	}
	segments, err := SegmentFiles(dir, name)
	if err != nil || len(segments) == 0 {
		return nil // it was put elsewhere, without the output
	}
	path := SegmentFile(dir, name, k.Segment)
	if !slices.ContainsFunc(segments, func(s Segment) bool { return s.Number == k.Segment }) {
		return in(file, "checkpoint/segment", ErrMismatch, "it is %d, and there is no %s", k.Segment, path)
	}
	segment, faults, err := Inspect(ctx, path, Warn(func(string) {}))
	switch {
	case err != nil:
		return nil // that is said of the segment itself
	case len(faults) > 0 && len(segment.Times) == 0:
		return in(file, "checkpoint/segment", ErrMismatch, "it is %d, which can't be read: %v", k.Segment, faults[0])
	case len(faults) > 0 && !segment.Settings.Has("segment"):
		return nil
	}
	before, err := record.Default(segment.Settings.Int, "segment/saved_before", 0)
	if err != nil {
		return in(file, "checkpoint/segment", ErrMismatch, "it is %d: %s: settings: %v", k.Segment, path, err)
	}
	n := int64(k.SavedCount) - before // states of the segment
	switch {
	case n < 0:
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d, %s has %d before it", k.SavedCount, path, before)
	case n > int64(len(segment.Times)):
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d, %s has %d and %d before it", k.SavedCount, path, len(segment.Times), before)
	case n > 0 && segment.Times[n-1] > k.Time:
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d at %v s, and that state of %s is of %v s", k.SavedCount, k.Time, path, segment.Times[n-1])
	case n < int64(len(segment.Times)) && segment.Times[n] < k.Time:
		return in(file, "checkpoint/saved_count", ErrMismatch, "it is %d at %v s, and the next state of %s is of %v s", k.SavedCount, k.Time, path, segment.Times[n])
	}
	return nil
}
