package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Restore starts the solver as the configuration's restart_from says. It is
// collective, and called once, before the first step. It returns nil without an
// error for a fresh start.
//
//   - Empty: a fresh start.
//   - [Latest]: the bundle of the highest increment that verifies and is finite, or
//     else the highest one that verifies, with a warning. Damaged ones, and ones that
//     the system doesn't let be read,
//     above it are named in the log and renamed to step_N.damaged, those that aren't
//     finite to step_N.superseded. A directory
//     without any bundle is a fresh start; bundles of which none is good are an
//     error, and so is one of another grid or method, which is not passed over.
//   - A path: that bundle.
//
// A service that is off changes nothing in the directory: damaged bundles keep their
// names, until its first Save. A start of one that saves below good bundles of the checkpoint directory is refused, with their
// names, since later saves would find their paths taken; with [SetAside] they are
// renamed to step_N.superseded instead. An error leaves the solver as it was,
// unless its chain has [ErrFieldsUndefined].
func (s *Service) Restore(ctx context.Context, v Solver) (*Loaded, error) {
	ctx = waiting.Named(ctx, "Service.Restore")
	var loaded *Loaded
	err := s.agreePolicies(ctx, v)
	if err != nil {
		return nil, fmt.Errorf("restart: %w", err)
	}
	work, end := s.o.atWork(ctx, s.c, "restart from", s.cfg.RestartFrom)
	defer end()
	if s.cfg.RestartFrom == Latest {
		loaded, err = s.restoreLatest(work, v)
	} else {
		loaded, err = s.restoreFrom(work, v, s.cfg.RestartFrom)
	}
	if err != nil {
		s.last = savedState{increment: -1}
		return nil, fmt.Errorf("restart: %w", err)
	}
	if loaded != nil {
		s.last.increment, s.last.time, s.last.method = loaded.Metadata.AcceptedIncrement, loaded.Metadata.AcceptedTime, v.Method
		// A clock that computes its time has one of its own.
		_ = comm.Protect(func() error {
			if n, t := v.Clock.Accepted(); n == s.last.increment {
				s.last.time = t
			}
			return nil
		})
		s.noteRestored(loaded)
	}
	s.since = s.now()
	return loaded, nil
}

// bundleState is a bundle of the checkpoint directory as rank 0 judges it.
type bundleState struct {
	Increment int64
	Reason    string // why it is damaged, or can't be read; empty: it is good
	NotFinite string // its cells that aren't finite, if that is why it is passed over
	unread    error  // that it can't be read, if that is the reason; the same on all ranks
}

func (s *Service) restoreLatest(ctx context.Context, v Solver) (*Loaded, error) {
	var steps []int64
	err := s.fromRoot(ctx, &steps, func() (err error) {
		steps, err = s.dir.steps()
		return err
	})
	if err != nil {
		return nil, err
	}
	var bad, notFinite []bundleState
	for _, n := range steps {
		b := bundleState{Increment: n}
		err := s.fromRoot(ctx, &b, func() error {
			b.NotFinite = s.dir.notFinite(n)
			return s.ownName(n)
		})
		if err != nil {
			return nil, err
		}
		if b.NotFinite != "" {
			notFinite = append(notFinite, b)
			continue
		}
		loaded, err := s.tryLatest(ctx, n, v, &bad)
		if loaded != nil {
			err = s.passOver(ctx, append(bad, notFinite...), loaded)
		}
		if loaded != nil || err != nil {
			return loaded, err
		}
	}
	for _, b := range notFinite {
		loaded, err := s.tryLatest(ctx, b.Increment, v, &bad)
		if loaded != nil {
			bad = slices.DeleteFunc(bad, func(d bundleState) bool { return d.Increment < b.Increment })
			err = s.passOver(ctx, bad, loaded)
		}
		if loaded != nil || err != nil {
			return loaded, err
		}
	}
	if len(bad) > 0 {
		return nil, s.noneGood(bad)
	}
	return nil, nil
}

// noneGood is the error of a restart that has passed over all bundles.
func (s *Service) noneGood(bad []bundleState) error {
	var names []string
	why := ErrDamaged
	for _, b := range bad {
		names = append(names, fmt.Sprintf("%s (%s)", StepName(b.Increment), b.Reason))
		if why == ErrDamaged && b.unread != nil {
			why = b.unread // it may be good
		}
	}
	text := fmt.Sprintf("none of the %d bundles in %s is good: %s", len(bad), s.dir.dir, shortList(names, "; "))
	if why == ErrDamaged {
		return fmt.Errorf("%w: %s", why, text)
	}
	return &saidError{text, why}
}

// saidError is an error whose text says already what it wraps.
type saidError struct {
	text string
	err  error
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.err }

// mostNamed is how many of a list an error or a line of the log has: a directory may have
// thousands of bundles.
const mostNamed = 5

// shortList joins the first names of a list.
func shortList(names []string, separator string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], separator)
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf("%sand %d more", separator, more)
	}
	return text
}

// tryLatest loads the bundle of an increment, or adds it to those that are damaged or
// can't be read.
func (s *Service) tryLatest(ctx context.Context, n int64, v Solver, bad *[]bundleState) (*Loaded, error) {
	loaded, err := s.loadVerified(ctx, s.dir.path(n), v)
	if err != nil && unreadable(err) {
		if s.c.Rank() == 0 {
			s.o.log.Warn("a bundle can't be read: it is tried once more", "bundle", s.dir.path(n), "error", err)
		}
		waiting.Rest(ctx, readAgainAfter)
		loaded, err = s.loadVerified(ctx, s.dir.path(n), v)
	}
	switch {
	case err == nil:
		loaded.Path = filepath.Join(s.cfg.Checkpoint.Directory, StepName(n))
		s.last.here = true
		return loaded, nil
	case errors.Is(err, ErrFieldsUndefined) || !damaged(err) && !unreadable(err):
		return nil, err
	}
	b := bundleState{Increment: n, Reason: err.Error()}
	if !damaged(err) {
		b.unread = err
	}
	*bad = append(*bad, b)
	return nil, nil
}

// readAgainAfter is the pause before a bundle that can't be read is tried once more.
var readAgainAfter = 300 * time.Millisecond

// unreadable reports whether the system doesn't let a bundle be read: its disk, its rights,
// its server. What this process lacks, what has to do with the solver, and a link to nothing
// are other matters.
// An agreed error has the same answer on all ranks.
func unreadable(err error) bool {
	for _, other := range []error{
		comm.ErrDead, context.Canceled, context.DeadlineExceeded, onedir.ErrNotSeen,
		ErrInput, ErrMismatch, ErrBoundary, ErrVersion, ErrFieldsUndefined,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, fs.ErrNotExist,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	_, system := errors.AsType[syscall.Errno](err)
	return system || errors.Is(err, io.ErrUnexpectedEOF)
}

// ownName refuses a bundle that was renamed to the name of another increment: the
// run would go on below it, and meet the bundles in between.
func (s *Service) ownName(n int64) error {
	m, _, err := readMetadata(s.o.fs, s.dir.path(n))
	if err != nil || m.AcceptedIncrement == n {
		return nil // whether it can be read is for the load to say
	}
	return fmt.Errorf("%w: %s holds increment %d: rename it, or name it as restart_from",
		ErrMismatch, filepath.Join(s.cfg.Checkpoint.Directory, StepName(n)), m.AcceptedIncrement)
}

// loadVerified loads a bundle. In place, its checksums are verified beforehand,
// for a damaged one must not touch the fields when there are others to try.
func (s *Service) loadVerified(ctx context.Context, path string, v Solver) (*Loaded, error) {
	if s.o.inPlace {
		if err := s.verify(ctx, path, v.Fields); err != nil {
			return nil, err
		}
	}
	return s.Load(s.c.Watched(ctx), path, v)
}

// verify compares all fields of a bundle with their checksums, read by all ranks
// together. What is small is verified by every load.
func (s *Service) verify(ctx context.Context, path string, fields []field.Named) error {
	var todo struct {
		Size  int64
		Files []fileChecksum
	}
	err := s.fromRoot(ctx, &todo, func() error {
		b, err := readStructure(s.o.fs, path)
		if err != nil {
			return err
		}
		todo.Size = b.info.Metadata.Domain.Cells() * 8
		for _, f := range b.sums {
			if f.Path != metadataFile && f.Path != sidecarFile {
				todo.Files = append(todo.Files, f)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	several, _, err := s.o.look.Nodes(ctx, s.c)
	if err == nil && several { // or a sum of two bundles would call one of them damaged
		err = s.o.sameBundle(ctx, s.c, nil, path, fields)
	}
	if err != nil {
		return err
	}
	paths := make([]string, len(todo.Files))
	for i, f := range todo.Files {
		paths[i] = filepath.Join(path, filepath.FromSlash(f.Path))
	}
	sums, err := brick.Checksums(onedir.Checked(ctx), s.c, s.o.fs, paths, todo.Size)
	if err != nil {
		return err
	}
	for i, f := range todo.Files {
		if err := checkSum(path, f.Path, sums[i].CRC, f.CRC); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) restoreFrom(ctx context.Context, v Solver, path string) (*Loaded, error) {
	var seen struct {
		Above []bundleState
		Here  bool // the bundle is in the checkpoint directory
	}
	err := s.fromRoot(ctx, &seen, func() error {
		start := int64(0)
		if path != "" {
			m, _, err := readMetadata(s.o.fs, s.from)
			if err != nil {
				return meantLatest(path, err)
			}
			start = m.AcceptedIncrement
			seen.Here = s.sameDirectory(s.from, s.dir.path(start))
		}
		var err error
		seen.Above, err = s.above(start)
		return err
	})
	if err != nil {
		return nil, err
	}
	var good []string
	for _, b := range seen.Above {
		if b.Reason == "" {
			good = append(good, filepath.Join(s.cfg.Checkpoint.Directory, StepName(b.Increment)))
		}
	}
	if len(good) > 0 && s.cfg.Checkpoint.Superseded != SetAside {
		from := path
		if from == "" {
			from = "the beginning"
		}
		return nil, fmt.Errorf("%w: newer bundles than %s are in the way: %s (restart from them, or set checkpoint.superseded to %q)",
			ErrExists, from, shortList(good, ", "), SetAside)
	}
	if path == "" {
		return nil, s.setAside(ctx, seen.Above, nil)
	}
	loaded, err := s.Load(s.c.Watched(ctx), s.from, v)
	if err != nil {
		return nil, err
	}
	loaded.Path = path
	s.last.here = seen.Here
	return loaded, s.setAside(ctx, seen.Above, loaded)
}

// sameDirectory reports whether two paths lead to one directory, as far as rank 0 sees.
func (s *Service) sameDirectory(a, b string) bool {
	if a == b {
		return true
	}
	x, xerr := s.o.fs.Stat(a)
	y, yerr := s.o.fs.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// passOver sets the bundles that were passed over for the loaded one aside. A service that
// is off only names them: it is a reader, and may have no right to rename them.
func (s *Service) passOver(ctx context.Context, bad []bundleState, loaded *Loaded) error {
	if !s.cfg.Checkpoint.off() {
		return s.setAside(ctx, bad, loaded)
	}
	s.passed = bad
	if s.c.Rank() == 0 {
		for _, b := range bad {
			what, key, why := "a damaged bundle", "reason", b.Reason
			switch {
			case b.NotFinite != "":
				what, key, why = "a bundle that is not finite", "non_finite", b.NotFinite
			case b.unread != nil:
				what = "a bundle that can't be read"
			}
			s.o.log.Warn("passed over "+what+", which keeps its name since this service doesn't save",
				"bundle", s.dir.path(b.Increment), key, why)
		}
	}
	return nil
}

// setAsidePassed sets those that a service passed over while it was off aside, now that
// it saves and they would be in the way. Somebody may have put others in their places.
func (s *Service) setAsidePassed(ctx context.Context) error {
	var still []bundleState
	for _, b := range s.passed {
		if b.NotFinite != "" {
			err := s.fromRoot(ctx, &b, func() error {
				b.NotFinite = s.dir.notFinite(b.Increment)
				return nil
			})
			if err != nil {
				return err
			}
			if b.NotFinite != "" {
				still = append(still, b)
			}
		} else if err := s.verify(ctx, s.dir.path(b.Increment), nil); err != nil && (damaged(err) || unreadable(err)) {
			still = append(still, b)
		}
	}
	s.passed = nil
	return s.setAside(ctx, still, nil)
}

// above judges, by structure, the bundles of the directory with increments above
// start.
func (s *Service) above(start int64) ([]bundleState, error) {
	if s.cfg.Checkpoint.off() {
		return nil, nil // no save will find its path taken
	}
	steps, err := s.dir.steps()
	if err != nil {
		return nil, err
	}
	var list []bundleState
	for _, n := range steps {
		if n <= start {
			break
		}
		b := bundleState{Increment: n}
		if _, err := readStructure(s.o.fs, s.dir.path(n)); err != nil {
			if !damaged(err) && !errors.Is(err, ErrVersion) && !unreadable(err) {
				return nil, err
			}
			if damaged(err) {
				b.Reason = err.Error() // the others may be good
			}
		}
		list = append(list, b)
	}
	return list, nil
}

// setAside renames bundles out of the way of later saves: nothing is deleted. When
// it fails after a load, the solver isn't as it was.
func (s *Service) setAside(ctx context.Context, list []bundleState, loaded *Loaded) error {
	if len(list) == 0 {
		return nil
	}
	err := s.c.OnRoot(context.WithoutCancel(ctx), nil, waiting.Step(ctx, "set aside", "bundles", func() error {
		for _, b := range list {
			suffix := suffixSuperseded
			if b.Reason != "" {
				suffix = suffixDamaged
			}
			to, err := s.dir.setAside(b.Increment, suffix)
			if err != nil && b.unread != nil {
				s.o.log.Warn("passed over a bundle that can't be read, nor be set aside: nothing can be saved in its place",
					"bundle", s.dir.path(b.Increment), "reason", b.Reason, "error", err)
				continue
			}
			if err != nil {
				return err
			}
			switch {
			case b.unread != nil:
				s.o.log.Warn("passed over a bundle that can't be read", "bundle", s.dir.path(b.Increment), "reason", b.Reason, "now", to)
			case b.Reason != "":
				s.o.log.Warn("passed over a damaged bundle", "bundle", s.dir.path(b.Increment), "reason", b.Reason, "now", to)
			case b.NotFinite != "":
				s.o.log.Warn("passed over a bundle that is not finite", "bundle", s.dir.path(b.Increment), "non_finite", b.NotFinite, "now", to)
			default:
				s.o.log.Warn("set aside a newer bundle", "bundle", s.dir.path(b.Increment), "now", to)
			}
		}
		return s.o.fs.SyncDir(s.dir.dir)
	}))
	if err != nil && loaded != nil {
		return fmt.Errorf("%w: %s is loaded, but: %w", ErrFieldsUndefined, loaded.Path, err)
	}
	return err
}

// fromRoot runs f on rank 0 and gives what it put into v to all ranks.
func (s *Service) fromRoot(ctx context.Context, v any, f func() error) error {
	var text []byte
	err := s.c.OnRoot(ctx, nil, waiting.Step(ctx, "look at", "the bundles", func() (err error) {
		if err := f(); err != nil {
			return err
		}
		text, err = json.Marshal(v)
		return err
	}))
	if err != nil {
		return err
	}
	if text, err = s.c.Broadcast(ctx, 0, text); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
