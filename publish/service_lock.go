package publish

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/owner"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// directoryLock is the name of the lock in a checkpoint directory. No run file has a
// name that begins with a dot.
const directoryLock = ".checkpoint.lock"

// holding is how a service holds its directory: rank 0 by a lock, where there are locks.
type holding struct {
	ready  bool     // the directory stands, and is this service's
	probed bool     // entries can be made in it; rank 0
	lock   vfs.Lock // rank 0; nil where there are none
}

// lost reports whether somebody has removed the lock's file: then it keeps the next job
// out no more.
func (h *holding) lost() bool {
	if h.lock == nil {
		return false
	}
	current, err := h.lock.Current()
	return !current || err != nil
}

// hold makes the directory and takes its lock, for which it waits; then all nodes must see
// the directory. It is collective.
func (s *Service) hold(ctx context.Context) error {
	k := s.cfg.Checkpoint
	err := owner.Wait(ctx, s.c, k.wait(), ErrInUse, waiting.Step(ctx, "take", "the checkpoint directory", s.take), func(err error) {
		s.o.log.Warn("waiting for the checkpoint directory", "directory", s.dir.dir, "at most", k.wait(), "because", err)
	})
	if err == nil {
		err = s.seen(ctx)
	}
	s.holding.ready = err == nil
	return err
}

// seen makes sure that all nodes see the directory.
func (s *Service) seen(ctx context.Context) error {
	several, _, err := s.o.look.Nodes(ctx, s.c)
	if err != nil || !several {
		return err
	}
	return s.o.look.Directory(ctx, s.c, s.o.fs, s.o.log, func() (string, error) { return s.dir.dir, nil })
}

// take is hold's try, on rank 0.
func (s *Service) take() error {
	h := &s.holding
	if h.lock != nil {
		if !h.lost() {
			return nil
		}
		s.o.log.Warn("the lock of the checkpoint directory is gone, and taken anew: nobody should remove it, since it goes with its job",
			"directory", s.dir.dir)
		s.letGo()
		h.probed = false // the directory may be gone too
	}
	if !h.probed {
		if err := s.dir.makeDir(s.dir.dir); err != nil {
			return err
		}
		if err := owner.Writable(s.o.fs, s.dir.dir); err != nil {
			return err
		}
		h.probed = true
	}
	lock, err := owner.Take(s.o.fs, filepath.Join(s.dir.dir, directoryLock), ErrInUse)
	if errors.Is(err, vfs.ErrNoLocks) {
		s.o.log.Warn("no file locks here: nothing keeps another job out of the checkpoint directory", "directory", s.dir.dir, "error", err)
		return nil
	}
	h.lock = lock
	return err
}

// letGo releases the directory. The lock's file stays where it can't be removed, and
// stops nobody.
func (s *Service) letGo() {
	h := &s.holding
	h.ready = false
	if h.lock == nil {
		return
	}
	if err := h.lock.Release(); err != nil {
		s.o.log.Warn("the lock of the checkpoint directory is given up, but not cleanly", "directory", s.dir.dir, "error", err)
	}
	h.lock = nil
}

// closePatience is how long Close waits for the directory to be released: the other ranks
// may be in another call already, and not know what rank 0 is doing.
const closePatience = 10 * time.Second

// letGoSoon is letGo, which goes on by itself where the disk is slow.
func (s *Service) letGoSoon() {
	old := &Service{o: s.o, dir: s.dir, holding: s.holding}
	s.holding.ready, s.holding.lock = false, nil
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		old.letGo()
	}()
	patience := time.NewTimer(min(closePatience, s.c.WatchLimit()/4))
	defer patience.Stop()
	select {
	case <-gone:
	case <-patience.C:
		s.o.log.Warn("releasing the checkpoint directory takes long: it goes on by itself", "directory", s.dir.dir)
	}
}
