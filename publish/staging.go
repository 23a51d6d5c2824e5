package publish

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// What stands beside a bundle while it is published or removed. A name with a
// nonce at its end is known to one job only, so nobody else changes what is in it.
const (
	suffixStaging = ".publishing"
	suffixLock    = ".publishing.lock"
	ownerName     = ".owner" // in staging: the nonce of its owner

	nonceDigits   = 2 * len(onedir.Nonce{})
	longestSuffix = len(suffixStaging) + 1 + nonceDigits
)

// leftover reports whether name is what a publication or a removal of bundle
// base may leave behind; its lock is another matter.
func leftover(name, base string) bool {
	for _, suffix := range []string{suffixStaging, suffixRemoving} {
		rest, ok := strings.CutPrefix(name, base+suffix)
		if ok && (rest == "" || isNonce(rest)) {
			return true
		}
	}
	return false
}

// isNonce reports whether s is a dot and a nonce.
func isNonce(s string) bool {
	if len(s) != 1+nonceDigits || s[0] != '.' {
		return false
	}
	_, err := hex.DecodeString(s[1:])
	return err == nil
}

// claim takes the lock of the final path and makes a fresh staging directory. It
// runs on rank 0, like all of this file but checkNonce.
func (p *publication) claim() error {
	if err := p.mustNotExist(); err != nil {
		return err
	}
	lock, err := p.o.fs.Lock(p.final + suffixLock)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("%w: %w", ErrBeingPublished, err)
	case errors.Is(err, vfs.ErrNoLocks):
		p.o.log.Warn("no file locks here: jobs that publish to one path are told apart by a nonce only", "path", p.final)
	case err != nil:
		return fmt.Errorf("lock: %w", vfs.NoDir(p.o.fs, p.final, err))
	default:
		p.lock = lock
		p.step(StepLocked, p.final)
	}
	// Another job may have published between the first look and the lock.
	if err := p.mustNotExist(); err != nil {
		return err
	}
	if p.nonce, err = onedir.NewNonce(); err != nil {
		return err
	}
	if err := p.clear(); err != nil {
		return fmt.Errorf("clear staging: %w", err)
	}
	if err := p.o.fs.Mkdir(p.staging, 0o777); err != nil {
		return fmt.Errorf("make staging: %w", err)
	}
	p.where = p.staging
	if err := p.o.fs.Mkdir(p.fields, 0o777); err != nil {
		return fmt.Errorf("make staging: %w", err)
	}
	if err := vfs.WriteFile(p.o.fs, filepath.Join(p.staging, ownerName), []byte(p.nonce.String()), 0o666, false); err != nil {
		return fmt.Errorf("make staging: %w", err)
	}
	p.marked = true
	return nil
}

// clear removes what dead publications to this path left. It moves staging away
// in one step before it removes it: should its owner be alive after all, it finds
// nothing instead of a half.
//
// A leftover that can't be removed, since it is another user's, is in nobody's way any more.
func (p *publication) clear() error {
	doomed := p.final + suffixRemoving + "." + p.nonce.String()
	err := vfs.Move(p.o.fs, p.staging, doomed)
	switch {
	case err == nil:
		p.removeLeftover(doomed)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if p.lock == nil {
		return nil // what has a nonce in its name may be in use
	}
	parent, base := filepath.Split(p.final)
	entries, err := p.o.fs.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if leftover(e.Name(), base) {
			p.removeLeftover(filepath.Join(parent, e.Name()))
		}
	}
	return nil
}

func (p *publication) removeLeftover(path string) {
	if err := vfs.RemoveAll(p.o.fs, path); err != nil {
		p.o.log.Warn("a leftover of a publication that ended early can't be removed", "path", path, "error", err)
	}
}

// checkNonce looks whether dir is ours.
func (p *publication) checkNonce(dir string) error {
	got, err := vfs.ReadFile(p.o.fs, filepath.Join(dir, ownerName), 1<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: %w", dir, ErrTakenOver, err)
	case err != nil:
		return err
	case string(got) != p.nonce.String():
		return fmt.Errorf("%s: %w", dir, ErrTakenOver)
	}
	return nil
}

// setApart moves the complete staging directory to a name that only this
// publication knows, and makes it what the bundle will be: from here on nobody
// else can change it by mistake.
func (p *publication) setApart() error {
	if err := p.checkNonce(p.staging); err != nil {
		return err
	}
	if err := p.moveApart(); err != nil {
		return err
	}
	if err := p.o.fs.Remove(filepath.Join(p.where, ownerName)); err != nil {
		return err
	}
	if p.o.durability == Full {
		if err := p.o.fs.SyncDir(p.where); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
	}
	return nil
}

// moveApart renames staging, and gives it back if it turns out to be another
// job's.
func (p *publication) moveApart() error {
	apart := p.staging + "." + p.nonce.String()
	err := vfs.Move(p.o.fs, p.staging, apart)
	if err != nil && p.checkNonce(apart) == nil {
		err = nil // a try before this one was carried out
	}
	if errors.Is(err, fs.ErrNotExist) {
		p.where = ""
		return fmt.Errorf("%s: %w: %w", p.staging, ErrTakenOver, err)
	}
	if err != nil {
		return fmt.Errorf("rename: %w", err)
	}
	err = p.checkNonce(apart)
	if errors.Is(err, ErrTakenOver) {
		p.where = ""
		if back := vfs.MoveNoReplace(p.o.fs, apart, p.staging); back != nil {
			return fmt.Errorf("%w (and %s can't be given back: %w)", err, apart, back)
		}
		return err
	}
	p.where = apart
	return err
}

// discard removes the directory that this publication made, if it still is ours.
func (p *publication) discard() error {
	if p.where == p.staging && p.marked {
		if err := p.moveApart(); err != nil && p.where != "" {
			return err
		}
	}
	switch {
	case p.where == "":
		return nil
	case p.where == p.staging && p.lock == nil:
		return fmt.Errorf("%s has no mark of its owner", p.staging)
	case p.tried:
		// A client of a network filesystem may remember the name for a directory that is
		// the bundle by now: only the server can rename it.
		doomed := p.final + suffixRemoving + "." + p.nonce.String()
		if err := vfs.Move(p.o.fs, p.where, doomed); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: %w", ErrMaybePublished, err)
			}
			return err
		}
		p.where = doomed
	}
	return vfs.RemoveAll(p.o.fs, p.where)
}

// unlock lets the lock go. That it fails changes nothing for the bundle: the
// lock dies with this process.
func (p *publication) unlock() {
	if p.lock == nil {
		return
	}
	if err := p.lock.Release(); err != nil {
		p.o.log.Warn("release the lock of a publication", "path", p.final, "error", err)
	}
	p.lock = nil
}
