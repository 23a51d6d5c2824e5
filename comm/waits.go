package comm

import (
	"context"
	"fmt"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

const defaultWatch = 10 * time.Minute

// Watch limits the waits for ranks that don't come to a call; the default is 10
// minutes. It must be longer than the ranks' work between two collective calls may
// differ.
//
// It doesn't limit the calls of this module themselves: once all ranks have come to
// one that reads or writes files, a rank whose disk is slow is waited for, however
// long that takes, with a warning in the log every so often; see [WorkLimit].
//
// Time in which the rank that waits was stopped itself doesn't count, as when the
// whole job is suspended.
func Watch(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("watch: limit %v is not positive", d)
		}
		s.watch = d
		return nil
	}
}

// WorkLimit limits the waits for ranks that have come to a call and are at work in
// it, such as writing, syncing or removing files: those under [Comm.AtWork]. There is
// no limit by default. With one, a rank whose disk hangs is an error on the others
// after that time, as with [Watch].
func WorkLimit(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("work limit: %v is not positive", d)
		}
		s.work = d
		return nil
	}
}

// HangLimit ends the job when a call of the MPI library on a file, which can't be left, has
// not returned on this rank after d. What hangs is on standard error then. There is no
// limit by default: a parallel filesystem may stall for many minutes and come back. The
// log has a warning about such a call every so often in any case. Time in which the rank
// was stopped itself doesn't count.
func HangLimit(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("hang limit: %v is not positive", d)
		}
		s.hang = d
		return nil
	}
}

// workKey is the key of what a context says of the waits on a communicator: whether
// its ranks are known to be at work.
type workKey struct{ c *Comm }

// AtWork returns a context under which this rank's waits on c have the limit of
// [WorkLimit] instead of [Watch], including those under contexts that are made from
// it. It is for a collective call that does slow work between its agreements, when
// the first of them has shown that all ranks have come. All ranks do alike. It is not
// collective.
//
// A call that runs a callback of someone else, who may hang in it, passes the context of
// [Comm.Watched] to it, and uses that for the agreement that follows.
func (c *Comm) AtWork(ctx context.Context) context.Context {
	return context.WithValue(ctx, workKey{c}, true)
}

// Watched takes back what [Comm.AtWork] said: under the context that it returns the
// waits on c have the limit of [Watch].
func (c *Comm) Watched(ctx context.Context) context.Context {
	if c.atWork(ctx) {
		ctx = context.WithValue(ctx, workKey{c}, false)
	}
	return waiting.Apart(ctx)
}

func (c *Comm) atWork(ctx context.Context) bool {
	if ctx == nil {
		return false
	}
	at, _ := ctx.Value(workKey{c}).(bool)
	return at
}

// WatchLimit is how long this communicator waits for ranks to come to a call; see
// [Watch].
func (c *Comm) WatchLimit() time.Duration { return c.watch }

// WaitLimit is how long a wait on this communicator under ctx lasts at most: the
// limit of [Watch], or that of [WorkLimit] under [Comm.AtWork].
func (c *Comm) WaitLimit(ctx context.Context) time.Duration {
	if c.atWork(ctx) {
		return c.work
	}
	return c.watch
}
