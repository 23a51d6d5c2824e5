package waiting_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// journal is a log with the time since its beginning before each line.
type journal struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func newJournal() *journal { return &journal{start: time.Now()} }

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf("%v: %s", time.Since(j.start), bytes.TrimSpace(line)))
	return len(line), nil
}

func (j *journal) want(t *testing.T, lines ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if got, want := strings.Join(j.lines, "\n"), strings.Join(lines, "\n"); got != want {
		t.Errorf("the log has\n%s\nwant\n%s", got, want)
	}
}

func TestASlowStepIsWarnedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		ctx, end := waiting.Begin(t.Context(), j.logger(), 3, "publish results/step_40")
		quick := waiting.Doing(ctx, "make staging", "")
		time.Sleep(59 * time.Second)
		quick.End()
		slow := waiting.Doing(context.WithoutCancel(ctx), "sync", `field "psi"`)
		time.Sleep(9 * time.Minute)
		slow.End()
		time.Sleep(time.Hour) // in which it does nothing that it told
		end()
		waiting.Doing(ctx, "sync", "something else")
		time.Sleep(time.Hour)
		j.want(t,
			`2m0s: level=WARN msg="slow step" call="publish results/step_40" rank=3 step="sync field \"psi\"" for=1m1s`,
			`3m0s: level=WARN msg="slow step" call="publish results/step_40" rank=3 step="sync field \"psi\"" for=2m1s`,
			`5m0s: level=WARN msg="slow step" call="publish results/step_40" rank=3 step="sync field \"psi\"" for=4m1s`,
			`9m0s: level=WARN msg="slow step" call="publish results/step_40" rank=3 step="sync field \"psi\"" for=8m1s`,
		)
	})
}

// Of several things at a time the one that goes on for longest is told, whatever begins
// and ends beside it.
func TestTheOldestOfSeveralStepsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		ctx, end := waiting.Begin(t.Context(), j.logger(), 0, "save")
		defer end()
		defer waiting.Doing(ctx, "sync", "a").End()
		for range 100 {
			b := waiting.Doing(ctx, "sync", "b")
			time.Sleep(time.Second)
			b.End()
		}
		j.want(t, `1m0s: level=WARN msg="slow step" call=save rank=0 step="sync a" for=1m0s`)
	})
}

// That others are waited for says rank 0 alone: all but one may be waiting.
func TestAWaitForOthersIsToldByRankZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero, one := newJournal(), newJournal()
		for rank, j := range []*journal{zero, one} {
			ctx, end := waiting.Begin(t.Context(), j.logger(), rank, "save")
			defer end()
			waiting.Doing(ctx, "sync", `field "psi"`).End()
			defer waiting.ForOthers(ctx).End()
		}
		time.Sleep(2*time.Minute + time.Second)
		zero.want(t,
			`1m0s: level=WARN msg="waiting for other ranks" call=save rank=0 after="sync field \"psi\"" for=1m0s`,
			`2m0s: level=WARN msg="waiting for other ranks" call=save rank=0 after="sync field \"psi\"" for=2m0s`)
		one.want(t)
	})
}

// At last there is a warning every hour or so.
func TestWarningsDoNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		ctx, end := waiting.Begin(t.Context(), j.logger(), 0, "save")
		defer end()
		defer waiting.Doing(ctx, "sync", "").End()
		time.Sleep(100 * time.Hour)
		if n := len(j.lines); n < 100 || n > 110 {
			t.Errorf("%d warnings in 100 hours", n)
		}
	})
}

func TestCallsWithinCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, inner := newJournal(), newJournal()
		ctx, end := waiting.Begin(t.Context(), outer.logger(), 0, "publish")
		defer end()
		part, endPart := waiting.Begin(ctx, inner.logger(), 0, "write")
		step := waiting.Doing(part, "write", "a")
		endPart() // which the other call goes on without
		time.Sleep(time.Minute + time.Second)
		step.End()

		// What runs apart is a call of its own, and no part of this one.
		apart := waiting.Apart(ctx)
		waiting.Doing(apart, "hang", "")
		time.Sleep(time.Hour)
		own, endOwn := waiting.Begin(apart, inner.logger(), 0, "another")
		defer endOwn()
		waiting.Doing(own, "write", "b")
		time.Sleep(time.Minute + time.Second)

		outer.want(t, `1m0s: level=WARN msg="slow step" call=publish rank=0 step="write a" for=1m0s`)
		inner.want(t, `1h2m1s: level=WARN msg="slow step" call=another rank=0 step="write b" for=1m0s`)
	})
}

// Without a logger that takes warnings nothing is done, nor without a call.
func TestNobodyListens(t *testing.T) {
	ctx := t.Context()
	for _, log := range []*slog.Logger{nil, slog.New(slog.DiscardHandler)} {
		same, end := waiting.Begin(ctx, log, 0, "save")
		if same != ctx {
			t.Error("a context for nobody")
		}
		end()
	}
	if waiting.Apart(ctx) != ctx {
		t.Error("a context for no reason")
	}
	for _, none := range []context.Context{ctx, nil} {
		waiting.Doing(none, "sync", "a").End()
		waiting.ForOthers(none).End()
	}
	if n := testing.AllocsPerRun(100, func() { waiting.Doing(ctx, "sync", "a").End() }); n > 0 {
		t.Errorf("a step outside of a call allocates %v times", n)
	}
}
