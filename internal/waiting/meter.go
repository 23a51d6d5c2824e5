package waiting

import (
	"math"
	"time"
)

// None is the limit of a wait that may take for ever.
const None = time.Duration(math.MaxInt64)

const (
	// mostCounted is the most that counts of the time between two looks. A wait looks
	// several times in this span; if it didn't, its process was not running.
	mostCounted = time.Second

	// leastCounted keeps waits with a tiny limit going.
	leastCounted = time.Millisecond

	// slices is how often a wait looks at least until its limit is over.
	slices = 8
)

// A Meter measures a wait for the one who waits. Between two looks only a small part of
// the limit counts, and never more than a second.
type Meter struct {
	limit  time.Duration
	slice  time.Duration // the most that counts between two looks
	last   time.Time
	waited time.Duration
}

// NewMeter makes the meter of a wait that begins with the first look.
func NewMeter(limit time.Duration) Meter {
	return Meter{limit: limit, slice: max(min(limit/slices, mostCounted), leastCounted)}
}

// Waited looks at the clock and returns how long the wait has lasted.
func (m *Meter) Waited(now time.Time) time.Duration {
	if !m.last.IsZero() {
		m.waited += max(0, min(now.Sub(m.last), m.slice))
	}
	m.last = now
	return m.waited
}

// Over looks at the clock and reports whether the wait has lasted for longer than its
// limit.
func (m *Meter) Over(now time.Time) bool { return m.Waited(now) > m.limit }

// Nap is how long a wait may sleep between two looks, so that all of it counts.
func (m *Meter) Nap() time.Duration { return m.slice / 2 }

// Wait waits until done is closed, and reports whether that came before the limit was
// over. It may be called again, to go on with the same wait.
func (m *Meter) Wait(done <-chan struct{}) bool {
	if m.limit == None {
		<-done
		return true
	}
	nap := time.NewTimer(m.Nap())
	defer nap.Stop()
	for !m.Over(time.Now()) {
		select {
		case <-done:
			return true
		case <-nap.C:
			nap.Reset(m.Nap())
		}
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}
