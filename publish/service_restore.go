package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Restore starts the solver as the configuration's restart_from says. It is
// collective, and called once, before the first step. It returns nil without an
// error for a fresh start.
//
//   - Empty: a fresh start.
//   - [Latest]: the bundle of the highest increment that verifies. Damaged ones
//     above it are named in the log and renamed to step_N.damaged. A directory
//     without any bundle is a fresh start; bundles of which none is good are an
//     error, and so is one of another grid or method, which is not passed over.
//   - A path: that bundle.
//
// A start below good bundles of the checkpoint directory is refused, with their
// names, since later saves would find their paths taken; with [SetAside] they are
// renamed to step_N.superseded instead. An error leaves the solver as it was,
// unless its chain has [ErrFieldsUndefined].
func (s *Service) Restore(ctx context.Context, v Solver) (*Loaded, error) {
	var loaded *Loaded
	// All ranks come before rank 0 looks at what is there, which may take long.
	err := s.c.Meet(ctx)
	if err == nil {
		work, end := s.o.atWork(ctx, s.c, "restart from", s.cfg.RestartFrom)
		defer end()
		if s.cfg.RestartFrom == Latest {
			loaded, err = s.restoreLatest(work, v)
		} else {
			loaded, err = s.restoreFrom(work, v, s.cfg.RestartFrom)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("restart: %w", err)
	}
	if loaded != nil {
		s.last = loaded.Metadata.AcceptedIncrement
	}
	s.since = s.now()
	return loaded, nil
}

// bundleState is a bundle of the checkpoint directory as rank 0 judges it.
type bundleState struct {
	Increment int64
	Reason    string // why it is damaged; empty: it is good
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
	var bad []bundleState
	for _, n := range steps {
		look := waiting.Step(ctx, "look at", StepName(n), func() error { return s.ownName(n) })
		if err := s.c.OnRoot(ctx, nil, look); err != nil {
			return nil, err
		}
		loaded, err := s.loadVerified(ctx, s.dir.path(n), v)
		switch {
		case err == nil:
			loaded.Path = filepath.Join(s.cfg.Checkpoint.Directory, StepName(n))
			return loaded, s.setAside(ctx, bad, loaded)
		case errors.Is(err, ErrFieldsUndefined) || !damaged(err):
			return nil, err
		}
		bad = append(bad, bundleState{n, err.Error()})
	}
	if len(bad) > 0 {
		var names []string
		for _, b := range bad {
			names = append(names, fmt.Sprintf("%s (%s)", StepName(b.Increment), b.Reason))
		}
		return nil, fmt.Errorf("%w: none of the %d bundles in %s is good: %s",
			ErrDamaged, len(bad), s.dir.dir, strings.Join(names, "; "))
	}
	return nil, nil
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
		if err := s.verify(ctx, path); err != nil {
			return nil, err
		}
	}
	return s.Load(s.c.Watched(ctx), path, v)
}

// verify compares all fields of a bundle with their checksums, read by all ranks
// together. What is small is verified by every load.
func (s *Service) verify(ctx context.Context, path string) error {
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
	paths := make([]string, len(todo.Files))
	for i, f := range todo.Files {
		paths[i] = filepath.Join(path, filepath.FromSlash(f.Path))
	}
	crcs, err := brick.Checksums(ctx, s.c, s.o.fs, paths, todo.Size)
	if err != nil {
		return err
	}
	for i, f := range todo.Files {
		if err := checkSum(path, f.Path, crcs[i], f.CRC); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) restoreFrom(ctx context.Context, v Solver, path string) (*Loaded, error) {
	var above []bundleState
	err := s.fromRoot(ctx, &above, func() error {
		start := int64(0)
		if path != "" {
			m, _, err := readMetadata(s.o.fs, path)
			if err != nil {
				return err
			}
			start = m.AcceptedIncrement
		}
		var err error
		above, err = s.above(start)
		return err
	})
	if err != nil {
		return nil, err
	}
	var good []string
	for _, b := range above {
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
			ErrExists, from, strings.Join(good, ", "), SetAside)
	}
	if path == "" {
		return nil, s.setAside(ctx, above, nil)
	}
	loaded, err := s.Load(s.c.Watched(ctx), path, v)
	if err != nil {
		return nil, err
	}
	return loaded, s.setAside(ctx, above, loaded)
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
			if !damaged(err) && !errors.Is(err, ErrVersion) {
				return nil, err
			}
			if damaged(err) {
				b.Reason = err.Error()
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
			if err != nil {
				return err
			}
			if b.Reason != "" {
				s.o.log.Warn("passed over a damaged bundle", "bundle", s.dir.path(b.Increment), "reason", b.Reason, "now", to)
			} else {
				s.o.log.Warn("set aside a newer bundle", "bundle", s.dir.path(b.Increment), "now", to)
			}
		}
		return nil
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
