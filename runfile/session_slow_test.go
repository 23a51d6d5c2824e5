package runfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
)

// tooLong is for one rank more than the others wait for it to come to a call. The tests
// here run in the time of package synctest, which costs none.
const tooLong = 11 * time.Minute

// journal is what a rank logs.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// slowMemory is a memory on a slow disk.
type slowMemory struct{ *memory }

func (m slowMemory) lock() (func() error, error) {
	time.Sleep(tooLong)
	release, err := m.memory.lock()
	return func() error { time.Sleep(tooLong); return release() }, err
}

func (m slowMemory) checkpoint(ctx context.Context) (*Checkpoint, error) {
	time.Sleep(tooLong)
	return m.memory.checkpoint(ctx)
}

func (m slowMemory) exists(file string) (bool, error) {
	time.Sleep(tooLong)
	return m.memory.exists(file)
}

// Rank 0 takes longer for each of its steps than the others wait for it to come to a
// call. They wait, and it warns.
func TestASlowDiskOfASessionIsWaitedFor(t *testing.T) {
	for _, fail := range []int{-1, 1} { // a write that fails
		t.Run(fmt.Sprintf("write %d fails", fail), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				m.fail = func(n int, after bool) error {
					if !after {
						time.Sleep(tooLong)
					}
					if n == fail {
						return errKilled
					}
					return nil
				}
				var logs [2]journal
				cfg := decayConfig()
				cfg.Stop.File = "stop"
				cfg.Resume = true
				start := time.Now()
				err := comm.Run(2, func(c *comm.Comm) error {
					cfg := cfg
					cfg.Logger = logs[c.Rank()].logger()
					s, err := open(t.Context(), c, cfg, slowMemory{m}, time.Now)
					if err != nil {
						return err
					}
					if _, err := advance(t.Context(), s); fail >= 0 != errors.Is(err, errKilled) {
						return err
					}
					if err := s.Close(t.Context()); err != nil {
						return err
					}
					return c.Meet(t.Context()) // none is left at work
				})
				if err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took < 4*tooLong {
					t.Errorf("it took %v: what is to be slow is not", took)
				}
				for _, want := range []string{
					`msg="slow step" call="open run run" rank=0 step="read the files of the run" for=1m0s`,
					`msg="slow step" call="checkpoint of run run" rank=0 step="write the segment"`,
					`step="write the checkpoint" for=8m0s`,
					`call="close run run" rank=0 step="remove the lock"`,
					`msg="the look for the stop file takes long`,
				} {
					if !strings.Contains(logs[0].String(), want) && !(fail >= 0 && strings.Contains(want, "look for")) {
						t.Errorf("rank 0 doesn't tell\n%s\nbut\n%s", want, logs[0].String())
					}
				}
				if text := logs[1].String(); text != "" {
					t.Errorf("rank 1 tells\n%s", text)
				}
			})
		})
	}
}

// A stop file that a slow filesystem shows late stops the run late.
func TestAStopFileThatIsSeenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		var file journal
		cfg := decayConfig()
		cfg.Stop.File, cfg.Logger = "stop", file.logger()
		s, err := open(t.Context(), comm.Self(), cfg, m, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		m.there["stop"] = true
		s.store = slowMemory{m}
		start := time.Now()
		out, err := advanceWith(t.Context(), s, func() { time.Sleep(time.Minute) })
		if err != nil || !out.Stop || out.Done {
			t.Errorf("the outcome is %+v, %v", out, err)
		}
		if took := time.Since(start); took < tooLong || took > tooLong+3*time.Minute {
			t.Errorf("it stopped after %v", took)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A rank that hangs in a callback of the solver, or in its own loop, doesn't come.
func TestARankOfASessionThatHangsIsMissing(t *testing.T) {
	const absentee = 1
	for _, where := range []string{"Open", "its own loop", "stepper", "bundle", "Close", "load bundle"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var hung bool
				var found error
				m := newMemory()
				err := comm.Run(2, func(c *comm.Comm) error {
					hang := func(at string) {
						if at == where && c.Rank() == absentee && !hung {
							hung = true
							time.Sleep(tooLong)
						}
					}
					err := hangingRun(t.Context(), c, m, hang)
					if c.Rank() != absentee {
						found = err
					}
					return nil
				})
				if err != nil || !hung || !errors.Is(found, comm.ErrDead) {
					t.Errorf("rank %d has hung: %v; the other one got %v; %v", absentee, hung, found, err)
				}
			})
		})
	}
}

// hangingRun lets hang be called in each callback.
func hangingRun(ctx context.Context, c *comm.Comm, m *memory, hang func(where string)) error {
	cfg := decayConfig()
	cfg.Updates = nil
	cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, Unknown{Name: "psi", Kind: Field, Domain: grid.Domain{
		Size: [3]int{2, 2, 2}, Spacing: [3]float64{1, 1, 1}}})
	cfg.SaveTimes = []float64{}
	cfg.Bundle = func(context.Context) (string, error) { hang("bundle"); return "step_1", nil }
	hang("Open")
	s, err := open(ctx, c, cfg, m, newClock().now)
	if err != nil {
		return err
	}
	for i := range 3 {
		s.Attempt(Attempt{Time: 0.01 * float64(i+1), Accepted: true})
	}
	hang("its own loop")
	if _, err := s.Checkpoint(ctx, s.Start().State, func() (record.Record, error) {
		hang("stepper")
		return record.Record{}, nil
	}); err != nil {
		return err
	}
	hang("Close")
	if err := s.Close(ctx); err != nil {
		return err
	}
	cfg.Resume = true
	cfg.LoadBundle = func(context.Context, Start) error { hang("load bundle"); return nil }
	if s, err = open(ctx, c, cfg, m, newClock().now); err != nil {
		return err
	}
	return s.Close(ctx)
}
