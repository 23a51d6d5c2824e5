package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// The names in a checkpoint directory. Whatever doesn't match is left alone.
const (
	stepPrefix       = "step_"
	suffixRemoving   = ".removing"
	suffixDamaged    = ".damaged"
	suffixSuperseded = ".superseded"
)

// StepName returns the name of the bundle of an increment: step_<increment>.
func StepName(increment int64) string { return stepPrefix + strconv.FormatInt(increment, 10) }

// ParseStepName returns the increment of a bundle's name, as [StepName] writes it.
func ParseStepName(name string) (increment int64, ok bool) {
	digits, ok := strings.CutPrefix(name, stepPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || StepName(n) != name {
		return 0, false
	}
	return n, true
}

// checkpoints is a checkpoint directory, as rank 0 sees it.
type checkpoints struct {
	o      *options
	dir    string
	stuck  map[int64]bool    // bundles that can't be removed: tried once, and told once
	judged map[int64]verdict // of the bundles that prune has looked at
}

func (d checkpoints) path(increment int64) string {
	return filepath.Join(d.dir, StepName(increment))
}

// steps returns the increments of all bundles, good or bad, highest first. A
// directory that doesn't exist has none; a link to one that doesn't is an error.
func (d checkpoints) steps() ([]int64, error) {
	entries, err := d.o.fs.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, vfs.CheckLink(d.o.fs, d.dir)
	}
	if err != nil {
		return nil, err
	}
	var list []int64
	for _, e := range entries {
		if n, ok := ParseStepName(e.Name()); ok {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list, nil
}

// makeDir makes the directory with its parents, each synced into its own parent.
// One that exists is synced too: whoever made it may have been killed before.
func (d checkpoints) makeDir(dir string) error {
	return vfs.MakeDir(d.o.fs, dir, func(dir string) {
		if err := d.o.fs.SyncDir(filepath.Dir(dir)); err != nil {
			// Its parent may well be closed to us.
			d.o.log.Warn("the entry of a directory can't be synced", "directory", dir, "error", err)
		}
	})
}

// clean removes the leftovers of dead publications and removals. A lock that is
// held protects its owner's work, and where there are no locks nothing can be
// told, so nothing is removed. A leftover that can't be removed is a warning: it is in
// nobody's way.
func (d checkpoints) clean() error {
	entries, err := d.o.fs.ReadDir(d.dir)
	if err != nil {
		return err
	}
	leftovers := map[string][]string{} // bundle: what stands beside it
	for _, e := range entries {
		if base, ok := besideStep(e.Name()); ok {
			leftovers[base] = append(leftovers[base], e.Name())
		}
	}
	for base, names := range leftovers {
		if err := d.cleanOne(base, names); err != nil {
			d.o.log.Warn("leftovers of a run that ended early can't be removed", "bundle", filepath.Join(d.dir, base), "files", names, "error", err)
		}
	}
	return nil
}

// besideStep returns the bundle that a leftover or a lock belongs to.
func besideStep(name string) (base string, ok bool) {
	base, _, _ = strings.Cut(name, ".")
	if _, ok := ParseStepName(base); !ok {
		return "", false
	}
	return base, leftover(name, base) || name == base+suffixLock
}

func (d checkpoints) cleanOne(base string, names []string) error {
	lock, err := d.o.fs.Lock(filepath.Join(d.dir, base+suffixLock))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		d.o.log.Info("left alone: another job is at work on it", "bundle", base, "files", names)
		return nil
	case errors.Is(err, vfs.ErrNoLocks):
		d.o.log.Warn("left alone: no file locks here, so its owner may be alive", "bundle", base, "files", names)
		return nil
	case err != nil:
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, suffixLock) {
			continue // released below
		}
		if rerr := vfs.RemoveAll(d.o.fs, filepath.Join(d.dir, name)); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		d.o.log.Info("removed a leftover of a run that ended early", "path", filepath.Join(d.dir, name))
	}
	return errors.Join(err, lock.Release())
}

// setAside renames a bundle out of the way, under a name that is free. The caller syncs the
// directory.
func (d checkpoints) setAside(increment int64, suffix string) (string, error) {
	from := d.path(increment)
	for k := 1; ; k++ {
		to := from + suffix
		if k > 1 {
			to += "." + strconv.Itoa(k)
		}
		err := vfs.MoveNoReplace(d.o.fs, from, to)
		if errors.Is(err, fs.ErrExist) && !errors.Is(err, vfs.ErrUnclear) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("set aside %s: %w", from, err)
		}
		return to, nil
	}
}

// remove renames a bundle, syncs, and only then removes it. One that can't be removed
// gets its name back, whole: so it is tried first whether it can.
func (d checkpoints) remove(increment int64) (err error) {
	path := d.path(increment)
	lock, err := d.o.fs.Lock(path + suffixLock)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, lock.Release()) }()
	case errors.Is(err, vfs.ErrLocked):
		return nil // someone is at work on it: a later save comes by again
	case !errors.Is(err, vfs.ErrNoLocks):
		return err
	}
	gone := path + suffixRemoving
	if err := vfs.RemoveAll(d.o.fs, gone); err != nil {
		n, err := onedir.NewNonce()
		if err != nil {
			return err
		}
		gone += "." + n.String()
	}
	if err := vfs.Move(d.o.fs, path, gone); err != nil {
		return fmt.Errorf("%s stays: %w", path, err)
	}
	if err := d.o.fs.SyncDir(d.dir); err != nil {
		return err
	}
	// From here on a crash leaves it under this name: no change in it harms a bundle.
	tried, err := d.tryRemoval(gone)
	if err != nil {
		return d.giveBack(gone, path, tried, err)
	}
	if err := vfs.RemoveAll(d.o.fs, gone); err != nil {
		return fmt.Errorf("a part of %s stays: %w", gone, err)
	}
	d.o.log.Info("removed an old bundle", "bundle", path)
	return nil
}

// errTried says that an attempt to remove a bundle was not undone.
var errTried = errors.New("has changed")

// tryRemoval looks whether the entries of a directory, and of those below it, can be
// removed: one entry of each gets another name and its own back, for which the same
// rights are needed. It returns the directories in which that went well.
func (d checkpoints) tryRemoval(dir string) (tried []string, err error) {
	entries, err := d.o.fs.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		below, err := d.tryRemoval(filepath.Join(dir, e.Name()))
		tried = append(tried, below...)
		if err != nil {
			return tried, err
		}
	}
	entry, other := filepath.Join(dir, entries[0].Name()), filepath.Join(dir, suffixRemoving)
	err = vfs.Move(d.o.fs, entry, other)
	if errors.Is(err, vfs.ErrUnclear) {
		return tried, fmt.Errorf("%s %w: %w", dir, errTried, err)
	}
	if err != nil {
		return tried, err
	}
	if err := vfs.Move(d.o.fs, other, entry); err != nil {
		return tried, fmt.Errorf("%s %w: %w", dir, errTried, err)
	}
	return append(tried, dir), nil
}

// giveBack restores the name of a bundle that can't be removed, once a crash can't leave
// anything of the attempt in it. One that isn't whole keeps the other name.
func (d checkpoints) giveBack(gone, path string, tried []string, cause error) error {
	if errors.Is(cause, errTried) {
		return cause
	}
	for _, dir := range tried {
		if err := d.o.fs.SyncDir(dir); err != nil {
			return fmt.Errorf("%s can't be removed (%w), and is now %s: %w", path, cause, gone, err)
		}
	}
	if err := vfs.MoveNoReplace(d.o.fs, gone, path); err != nil {
		return fmt.Errorf("%s can't be removed (%w), and is now %s: %w", path, cause, gone, err)
	}
	if err := d.o.fs.SyncDir(d.dir); err != nil {
		return fmt.Errorf("%s stays, since it can't be removed: %w (after a crash it may be %s: %w)", path, cause, gone, err)
	}
	return fmt.Errorf("%s stays, since it can't be removed: %w", path, cause)
}

// damaged reports whether the error says that a bundle is no good, as opposed to
// one that can't be looked at just now or that this version can't judge.
func damaged(err error) bool {
	return !errors.Is(err, onedir.ErrNotSeen) && (errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotABundle))
}
