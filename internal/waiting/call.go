package waiting

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// FirstWarning is how long a step takes before there is a warning about it; the next
// ones come after twice that time, four times, and so on, at last every hour or so. A
// variable for tests, which set it before any call begins.
var FirstWarning = time.Minute

// looks is how often a call looks in the time of the first warning.
const looks = 6

// A Call is a collective call that this rank is in and to which all others have come. It
// warns when a step of this rank takes long, and, on rank 0, when the others do.
type Call struct {
	name string
	rank int
	log  *slog.Logger

	looking sync.Mutex // held while the call looks and warns

	mu    sync.Mutex
	next  int       // number of the activity that begins next
	doing []doing   // the oldest one first
	last  [2]string // what ended last, as in doing
	timer *time.Timer
	seen  time.Time // the last look
	ended bool
}

// doing is something that this rank is doing.
type doing struct {
	number     int
	what, with string
	others     bool // it waits for them
	since      time.Time
	due        time.Duration // the next warning
}

type callKey struct{}

func callOf(ctx context.Context) *Call {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Begin begins a call, which the returned context carries, and returns what ends it. The
// name says which one it is: "publish results/step_40". A call within another one is a
// part of that. Warnings go to the rank's own logger.
func Begin(ctx context.Context, log *slog.Logger, rank int, name string) (context.Context, func()) {
	if callOf(ctx) != nil || log == nil || !log.Enabled(ctx, slog.LevelWarn) {
		return ctx, func() {}
	}
	c := &Call{name: name, rank: rank, log: log, seen: time.Now()}
	c.mu.Lock()
	c.timer = time.AfterFunc(FirstWarning/looks, c.look)
	c.mu.Unlock()
	return context.WithValue(ctx, callKey{}, c), c.end
}

// Apart returns a context that carries no call: for what a call lets its caller do.
func Apart(ctx context.Context) context.Context {
	if callOf(ctx) != nil {
		ctx = context.WithValue(ctx, callKey{}, (*Call)(nil))
	}
	if Name(ctx) != "" {
		ctx = context.WithValue(ctx, nameKey{}, "")
	}
	return ctx
}

// An Activity is something that a rank is doing in a call. The zero Activity is none.
type Activity struct {
	call   *Call
	number int
}

// Doing notes the step in which this rank is from now on: in words for a log, and what it does it
// with, which may be empty: "sync", `field "psi"`. It may do several things at a time,
// none of which is a part of another.
func Doing(ctx context.Context, what, with string) Activity {
	return callOf(ctx).begin(what, with, false)
}

// ForOthers says that this rank waits for the others from now on.
func ForOthers(ctx context.Context) Activity { return callOf(ctx).begin("", "", true) }

func (c *Call) begin(what, with string, others bool) Activity {
	if c == nil {
		return Activity{}
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.doing = append(c.doing, doing{c.next, what, with, others, now, FirstWarning})
	return Activity{c, c.next}
}

// End says that it is done.
func (a Activity) End() {
	c := a.call
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.doing {
		if d := &c.doing[i]; d.number == a.number {
			if !d.others {
				c.last = [2]string{d.what, d.with}
			}
			c.doing = append(c.doing[:i], c.doing[i+1:]...)
			return
		}
	}
}

// end returns when no warning comes any more.
func (c *Call) end() {
	c.looking.Lock()
	defer c.looking.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.timer.Stop()
}

// look warns about what takes long, and comes again.
func (c *Call) look() {
	c.looking.Lock()
	defer c.looking.Unlock()
	now := time.Now()
	again := FirstWarning / looks
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	// A process that was stopped has done nothing meanwhile, and hasn't waited either.
	if stopped := now.Sub(c.seen) - again; stopped > again {
		for i := range c.doing {
			c.doing[i].since = c.doing[i].since.Add(min(stopped, now.Sub(c.doing[i].since)))
		}
	}
	c.seen = now
	var late []any
	var text string
	if len(c.doing) > 0 {
		d := &c.doing[0]
		lasted := now.Sub(d.since)
		if lasted >= d.due && !(d.others && c.rank != 0) {
			for d.due <= lasted {
				d.due += min(d.due, time.Hour)
			}
			text, late = c.warning(d, lasted)
		}
	}
	c.mu.Unlock()
	if late != nil {
		c.log.Warn(text, late...)
	}
	c.timer.Reset(again)
}

// warning is the warning about the activity that goes on for longest.
func (c *Call) warning(d *doing, lasted time.Duration) (text string, args []any) {
	step := [2]string{d.what, d.with}
	text = "slow step"
	if d.others {
		step = c.last
		text = "waiting for other ranks"
	}
	args = []any{"call", c.name, "rank", c.rank}
	if step != [2]string{} {
		name := step[0]
		if step[1] != "" {
			name += " " + step[1]
		}
		key := "step"
		if d.others {
			key = "after"
		}
		args = append(args, key, name)
	}
	return text, append(args, "for", lasted.Round(min(time.Second, FirstWarning/looks)))
}

// Step makes a function that says what this rank is doing while f runs; see [Doing].
func Step(ctx context.Context, what, with string, f func() error) func() error {
	return func() error {
		defer Doing(ctx, what, with).End()
		return f()
	}
}
