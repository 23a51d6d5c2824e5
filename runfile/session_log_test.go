package runfile

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
)

// events keeps what is logged.
type events struct {
	mu   sync.Mutex
	list []event
}

type event struct {
	level slog.Level
	name  string
	keys  []string
	value map[string]slog.Value
}

func (e *events) Enabled(context.Context, slog.Level) bool { return true }
func (e *events) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e *events) WithGroup(string) slog.Handler            { return e }

func (e *events) Handle(_ context.Context, r slog.Record) error {
	got := event{level: r.Level, name: r.Message, value: map[string]slog.Value{}}
	r.Attrs(func(a slog.Attr) bool {
		got.keys = append(got.keys, a.Key)
		got.value[a.Key] = a.Value
		return true
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, got)
	return nil
}

func (e *events) names() (names []string) {
	for _, got := range e.list {
		names = append(names, got.name)
	}
	return names
}

// A checkpoint, a resume and a stop are one line each, of rank 0.
func TestEventsAreOneLineEach(t *testing.T) {
	m := newMemory()
	layout := decayLayout()
	size := int64(8 * (1 + layout.Size())) // of a state, with its time
	segment := func(stop int64) *events {
		t.Helper()
		var log events
		before := m.bytes
		m.trace = nil
		err := comm.Run(3, func(c *comm.Comm) error {
			cfg := decayConfig()
			cfg.Resume = true
			cfg.Stop.Steps = stop
			if c.Rank() == 0 {
				cfg.Logger = slog.New(&log)
			} else {
				cfg.Logger = slog.New(failing{t})
			}
			_, err := runSegment(t.Context(), c, cfg, m)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var bytes, written int64
		for _, got := range log.list {
			if got.level != slog.LevelInfo || !slices.Equal(got.keys[:6], []string{"run", "segment", "time", "states", "bytes", "seconds"}) {
				t.Fatalf("%s at level %v with %q", got.name, got.level, got.keys)
			}
			if got.value["run"].String() != "run" || !(got.value["seconds"].Float64() > 0) {
				t.Errorf("%s: %v", got.name, got.value)
			}
			switch got.name {
			case "checkpoint":
				written++
				bytes += got.value["bytes"].Int64()
			case "stopped":
				if n := got.value["bytes"].Int64(); n != bytes || n != m.bytes-before {
					t.Errorf("%d bytes until the stop, %d at the checkpoints, %d in all", n, bytes, m.bytes-before)
				}
			}
		}
		if n := strings.Count(strings.Join(m.trace, "\n"), "checkpoint"); int64(n) != written || n < 2 {
			t.Errorf("%d lines for %d checkpoints", written, n)
		}
		return &log
	}
	first := segment(5)
	if names := first.names(); !slices.Equal(names, []string{"checkpoint", "checkpoint", "stopped"}) {
		t.Fatalf("the lines are %q", names)
	}
	k := first.list[0].value
	if k["segment"].Int64() != 1 || k["bytes"].Int64() != size*(1+k["states"].Int64()) || k["accepted"].Int64() != 3 {
		t.Errorf("the first checkpoint is %v", k)
	}
	stop := first.list[2].value
	if stop["reason"].String() != "limit of 5 steps" || stop["time"].Float64() != m.last.Time || int(stop["states"].Int64()) != m.last.SavedCount {
		t.Errorf("the stop is %v", stop)
	}
	at, saved := m.last.Time, m.last.SavedCount

	second := segment(0)
	if names := second.names(); names[0] != "resumed" || slices.Contains(names[1:], "resumed") || slices.Contains(names, "stopped") {
		t.Fatalf("the lines are %q", names)
	}
	resume := second.list[0].value
	if resume["segment"].Int64() != 2 || resume["time"].Float64() != at || int(resume["states"].Int64()) != saved ||
		resume["bytes"].Int64() != size-8 || resume["file"].String() != "last" || resume["from_segment"].Int64() != 1 {
		t.Errorf("the resume is %v", resume)
	}
}

// failing takes no line.
type failing struct{ t *testing.T }

func (f failing) Enabled(context.Context, slog.Level) bool { return true }
func (f failing) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f failing) WithGroup(string) slog.Handler            { return f }
func (f failing) Handle(_ context.Context, r slog.Record) error {
	f.t.Errorf("another rank than 0 logs %q", r.Message)
	return nil
}

// A stop without checkpoints is a line too, and one whose checkpoint can't be written is
// none before it is.
func TestStopIsLoggedOnce(t *testing.T) {
	for name, off := range map[string]bool{"without checkpoints": true, "when its checkpoint is written": false} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			var log events
			cfg := decayConfig()
			cfg.Checkpoint = CheckpointConfig{Off: off}
			cfg.Stop.Steps = 1
			cfg.Logger = slog.New(&log)
			s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			m.fail = func(n int, after bool) error {
				if n == 0 {
					return errKilled
				}
				return nil
			}
			out, err := advance(t.Context(), s)
			for tries := 0; err != nil && tries < 2; tries++ {
				if slices.Contains(log.names(), "stopped") {
					t.Error("it is said to have stopped before its checkpoint is written")
				}
				out, err = s.Checkpoint(t.Context(), slices.Repeat([]float64{1}, s.cfg.Layout.Size()), nil)
			}
			if err != nil || !out.Stop {
				t.Fatal(out, err)
			}
			if n := len(slices.DeleteFunc(log.names(), func(name string) bool { return name != "stopped" })); n != 1 {
				t.Errorf("%d lines of a stop: %q", n, log.names())
			}
		})
	}
}

// The time is that of the session's clock.
func TestEventsTakeTheTimeOfTheClock(t *testing.T) {
	var log events
	cfg := decayConfig()
	cfg.Logger = slog.New(&log)
	clock := newClock()
	clock.step = time.Minute
	s, err := open(t.Context(), comm.Self(), cfg, newMemory(), clock.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := advance(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := log.list[0].value["seconds"].Float64(); got != 60 {
		t.Errorf("the first checkpoint took %v s, the clock has gone on by 60 s", got)
	}
}
