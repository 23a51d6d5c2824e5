package waiting_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Whatever happens to the process of a wait, its own time is what counts.
func TestWhatCountsOfAWait(t *testing.T) {
	const limit = 10 * time.Minute
	repeat := func(d time.Duration, n int) (gaps []time.Duration) {
		for range n {
			gaps = append(gaps, d)
		}
		return gaps
	}
	for _, tc := range []struct {
		name   string
		limit  time.Duration
		gaps   []time.Duration // between looks
		waited time.Duration
		over   bool
	}{
		{"no look but the first", limit, nil, 0, false},
		{"looks every so often", limit, repeat(time.Millisecond, 1000), time.Second, false},
		{"looks up to the limit", limit, repeat(time.Second, 600), limit, false},
		{"looks beyond the limit", limit, repeat(time.Second, 601), limit + time.Second, true},
		{"stopped for a day", limit, []time.Duration{time.Millisecond, 24 * time.Hour, time.Millisecond}, time.Second + 2*time.Millisecond, false},
		{"stopped every other second, as in gang scheduling", limit, repeat(time.Minute, 20), 20 * time.Second, false},
		{"a clock that goes back", limit, []time.Duration{time.Second, -time.Hour, time.Second}, 2 * time.Second, false},
		{"stopped with a short limit", 2 * time.Second, []time.Duration{time.Hour}, 250 * time.Millisecond, false},
		{"a short limit", 2 * time.Second, repeat(125*time.Millisecond, 17), 2125 * time.Millisecond, true},
		{"a tiny limit", time.Microsecond, []time.Duration{time.Millisecond}, time.Millisecond, true},
		{"no limit", waiting.None, repeat(1000*time.Hour, 3), 3 * time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := waiting.NewMeter(tc.limit)
			now := time.Unix(1_000_000, 0)
			waited := m.Waited(now)
			for _, gap := range tc.gaps {
				now = now.Add(gap)
				waited = m.Waited(now)
			}
			if over := m.Over(now); waited != tc.waited || over != tc.over {
				t.Errorf("waited %v, over: %v; want %v, %v", waited, over, tc.waited, tc.over)
			}
		})
	}
}

// All of a wait counts that sleeps no longer than it may.
func TestAWaitThatNapsIsOverInTime(t *testing.T) {
	for _, limit := range []time.Duration{10 * time.Millisecond, time.Second, 10 * time.Minute} {
		m := waiting.NewMeter(limit)
		start := time.Unix(1_000_000, 0)
		now := start
		for !m.Over(now) {
			now = now.Add(m.Nap())
		}
		if took := now.Sub(start); took > limit+m.Nap() {
			t.Errorf("a wait of %v took %v", limit, took)
		}
	}
}

func TestWaitForAChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, soon := make(chan struct{}), make(chan struct{})
		time.AfterFunc(3*time.Minute, func() { close(soon) })
		for _, tc := range []struct {
			name   string
			done   chan struct{}
			limit  time.Duration
			closed bool
			least  time.Duration
		}{
			{"one that is closed in time", soon, 10 * time.Minute, true, 3 * time.Minute},
			{"one that is closed already", soon, time.Minute, true, 0},
			{"one that stays open", open, 10 * time.Minute, false, 10 * time.Minute},
			{"one that stays open, not long", open, 80 * time.Millisecond, false, 80 * time.Millisecond},
		} {
			m := waiting.NewMeter(tc.limit)
			start := time.Now()
			closed := m.Wait(tc.done)
			if took := time.Since(start); closed != tc.closed || took < tc.least || took > tc.least+m.Nap() {
				t.Errorf("%s: closed: %v after %v, want %v after %v", tc.name, closed, took, tc.closed, tc.least)
			}
		}

		// The same wait goes on in a second call.
		m := waiting.NewMeter(time.Minute)
		start, first := time.Now(), make(chan struct{})
		time.AfterFunc(40*time.Second, func() { close(first) })
		if !m.Wait(first) || m.Wait(open) || time.Since(start) > 61*time.Second {
			t.Errorf("two waits took %v", time.Since(start))
		}

		late := make(chan struct{})
		time.AfterFunc(1000*time.Hour, func() { close(late) })
		m = waiting.NewMeter(waiting.None)
		if !m.Wait(late) {
			t.Error("a wait without a limit is over")
		}
	})
}
