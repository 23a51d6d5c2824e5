package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/bench/stats"
	"github.com/fieldstone-io/fieldstone/comm"
)

// lead is the time between the agreement on a start and the start: the ranks have to
// learn of it, and then sleep, so that none of them is in the way of another.
const lead = 2 * time.Millisecond

// Of a contestant that takes slow times as long as the yardstick, enough repetitions
// are enough: the time is better spent on the others.
const (
	slow   = 4
	enough = 3
)

// compete lets the contestants of a case take turns and reports their times.
func (w *worker) compete(ctx context.Context, s *state) error {
	began := time.Now()
	place := w.job.Tmpfs
	if s.Place == plan.Disk {
		place = w.job.Disk
	}
	s.dir = filepath.Join(place, "files")
	if err := w.emptied(ctx, s); err != nil {
		return err
	}
	var (
		lines = make([]plan.Line, len(s.Contestants))
		turns = make([]turn, len(s.Contestants))
		out   = make([]bool, len(s.Contestants))
	)
	for i, name := range s.Contestants {
		lines[i] = plan.Line{Case: s.Name, Contestant: name, Bytes: s.Bytes()}
		prepare := w.all[name]
		if prepare == nil {
			return errors.New("unknown contestant " + name)
		}
		var err error
		turns[i], err = prepare(w, s)
		missing := err != nil && errors.Is(err, errMissing)
		if err := w.c.Agree(ctx, err); err != nil {
			out[i] = true
			if missing {
				lines[i].Missing = err.Error()
			} else {
				lines[i].Error = err.Error()
			}
		}
	}
	defer func() {
		for _, t := range turns {
			if t.close != nil {
				t.close()
			}
		}
	}()
	var since time.Time // the repetitions that must be were over
	for repetition := 0; repetition <= s.Repeats; repetition++ {
		if stop, err := w.agreeOn(ctx, repetition > enough && time.Since(since).Seconds() > s.Seconds); stop || err != nil {
			if err != nil {
				return err
			}
			break
		}
		for _, i := range plan.Order(len(turns), repetition) {
			if out[i] || repetition > enough && rests(lines[i].Seconds, lines[0].Seconds) {
				continue
			}
			seconds, err := w.take(ctx, s, turns[i])
			if err != nil && errors.Is(err, comm.ErrDead) {
				return err
			}
			if err != nil {
				out[i] = true
				lines[i].Error = err.Error()
				continue
			}
			lines[i].Checked++
			if repetition > 0 {
				lines[i].Seconds = append(lines[i].Seconds, seconds)
			}
		}
		if repetition == enough {
			since = time.Now()
		}
	}
	if err := w.emptied(ctx, s); err != nil {
		return err
	}
	for _, l := range lines {
		l.Took = time.Since(began).Seconds()
		if err := w.report(l); err != nil {
			return err
		}
	}
	return w.c.Agree(ctx, w.libraries.release())
}

// rests tells who is slow. The times are the same on all ranks.
func rests(seconds, yardstick []float64) bool {
	return len(yardstick) > 0 && stats.Median(seconds) > slow*stats.Median(yardstick)
}

// take is one turn: prepare, time, check. The error is the same on all ranks.
//
// What the one before wrote is removed only now, right before the start. A virtual
// machine gives memory that is free for a while back to its host, and to get it again
// takes longer than to fill it; so everybody finds pages that were in use just now.
func (w *worker) take(ctx context.Context, s *state, t turn) (seconds float64, err error) {
	switch s.Kind {
	case plan.Restart:
		s.scramble()
	case plan.Save:
		if err := w.emptied(ctx, s); err != nil {
			return 0, err
		}
	}
	if t.spoil != nil {
		if err := w.c.Agree(ctx, t.spoil()); err != nil {
			return 0, err
		}
	}
	if seconds, err = w.timed(ctx, t.run); err != nil {
		return 0, err
	}
	return seconds, w.c.Agree(ctx, t.check())
}

// timed runs f on all ranks from one point of time on, and returns how long it took
// until the last of them was back.
func (w *worker) timed(ctx context.Context, f func() error) (seconds float64, err error) {
	start := []int64{w.now() + int64(lead)}
	if err := w.c.AllReduceInt64(ctx, comm.Max, start); err != nil {
		return 0, err
	}
	w.sleepUntil(start[0])
	err = f()
	end := []int64{w.now()}
	if err := w.c.Agree(ctx, err); err != nil {
		return 0, err
	}
	if err := w.c.AllReduceInt64(ctx, comm.Max, end); err != nil {
		return 0, err
	}
	return float64(end[0]-start[0]) * 1e-9, nil
}

// agreeOn is rank 0's answer on all ranks.
func (w *worker) agreeOn(ctx context.Context, yes bool) (bool, error) {
	v := []int64{0}
	if yes && w.c.Rank() == 0 {
		v[0] = 1
	}
	err := w.c.AllReduceInt64(ctx, comm.Max, v)
	return v[0] != 0, err
}

// emptied makes dir an empty directory. On a disk the removal is over then, so that
// nobody's fsync has to wait for it.
func (w *worker) emptied(ctx context.Context, s *state) error {
	dir := s.dir
	var err error
	if w.c.Rank() == 0 {
		if err = os.RemoveAll(dir); err == nil {
			err = os.Mkdir(dir, 0o777)
		}
		if err == nil && s.Place == plan.Disk {
			err = syncDir(filepath.Dir(dir))
		}
	}
	return w.c.Agree(ctx, err)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
