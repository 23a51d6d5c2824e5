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
	// Ours says that this package wrote the file: hashes of others can't be checked.
	Ours   bool
	Hashes int // that were checked
	States int // saved states
}

// Verify reads all of a file, output or checkpoint, but the values of its fields, whose
// shapes it checks. Of a file that this package wrote it recomputes the hashes of the
// settings.
func Verify(ctx context.Context, path string, opts ...Option) (Verified, error) {
	o, err := newOptions(opts)
	if err != nil {
		return Verified{}, fmt.Errorf("verify %s: %w", path, err)
	}
	var v Verified
	var settings record.Record
	err = withFile(ctx, path, func(f *h5.File, r root) error {
		v.Version, v.Checkpoint, v.Ours = r.version, r.checkpoint, r.ours
		if r.checkpoint {
			k, err := readCheckpoint(ctx, f, r, o)
			if err != nil {
				return err
			}
			settings, v.States = k.Settings, 1
			return nil
		}
		s, err := readOutput(ctx, f, r, o)
		if err != nil {
			return err
		}
		settings, v.States = s.Settings, len(s.Times)
		return nil
	})
	if err == nil && v.Ours {
		if v.Hashes, err = checkHashes(settings); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		return Verified{}, fmt.Errorf("verify: %w", err)
	}
	return v, nil
}

// checkHashes recomputes the hashes that settings have of their sections.
func checkHashes(settings record.Record) (checked int, err error) {
	if !settings.Has("hashes") {
		return 0, nil
	}
	hashes, err := settings.Record("hashes")
	if err != nil {
		return 0, fmt.Errorf("settings: %w", err)
	}
	for section := range hashes.All() {
		content, err := settings.Record(section)
		if err == nil {
			err = sameHash(hashes, section, content.Hash())
		}
		if err != nil {
			return 0, fmt.Errorf("settings: section %s: %w", section, err)
		}
		checked++
	}
	if settings.Has("setup_hash") {
		if err := sameHash(settings, "setup_hash", hashes.Hash()); err != nil {
			return 0, fmt.Errorf("settings: setup_hash: %w", err)
		}
		checked++
	}
	return checked, nil
}

func sameHash(r record.Record, key, want string) error {
	stored, err := r.Text(key)
	if err == nil && stored != want {
		err = fmt.Errorf("%w: stored is %s, it is %s", ErrHash, stored, want)
	}
	return err
}
