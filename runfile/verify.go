package runfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/internal/h5"
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
// it, each with the file and the object. All values are compared with their checksums, and
// [Info.Unsummed] names those that have none; the cells of fields without are not read,
// but their shapes are checked, and in files of ours that the file has them all. It is
// by this judgement that [Open] goes on from a checkpoint or doesn't.
//
// Of a file that this package wrote the coordinates of axes are compared with the layout, and
// the hashes of the settings are computed again, unless they are those of another writer
// that were carried into it: see [Info.HashesBy]. A file
// that has the name of a run's must be what the name says. A checkpoint of a run must be of
// the session and the setup of the segment that it names, and that must have the states and
// the steps that it counts, where there are segments of the run and as far as they can be
// read: what is wrong with the segment is no fault of the checkpoint. The bundles that a
// checkpoint names are another matter, see [Info.LostBundles].
//
// The error says that the file can't be judged, as one that can't be opened or has an
// unknown version. The result is never nil, and has what could be read.
func Faults(ctx context.Context, path string, opts ...Option) (*Info, []error, error) {
	i, faults, err := judge(ctx, path, opts)
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
			wrong = append(wrong, ofFile(file, h5.Join("settings", section), err))
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
