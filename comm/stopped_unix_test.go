//go:build unix

package comm_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func init() { mpitest.Register("be stopped", beStopped) }

// beStopped is a program whose last rank comes late to what the others wait for: some
// time after it notices that it was stopped. The first rank says what came of it.
func beStopped(c *comm.Comm, args []string) error {
	ctx := context.Background()
	call, watch, dir := args[0], c.WatchLimit(), args[1]
	if err := c.Meet(ctx); err != nil {
		return err
	}
	last := time.Now() // of what may be stopped at once
	if err := say(dir, "together", c.Rank()); err != nil {
		return err
	}
	if c.Rank() == c.Size()-1 {
		for {
			time.Sleep(5 * time.Millisecond)
			now := time.Now()
			if now.Sub(last) > watch {
				break
			}
			last = now
		}
		time.Sleep(watch / 4) // the others are running again, and have not waited for long
	}
	var err error
	switch call {
	case "Agree":
		err = c.Agree(ctx, nil)
	case "SendRecv":
		other := c.Size() - 1 - c.Rank()
		err = c.SendRecv(ctx, other, make([]byte, 100), other, make([]byte, 100), 0)
	}
	switch {
	case err == nil:
		return say(dir, "all well", c.Rank())
	case errors.Is(err, comm.ErrDead):
		if err := say(dir, "dead", c.Rank()); err != nil {
			return err
		}
		c.Abort(7)
	}
	return fmt.Errorf("%s: %w", call, err)
}

// A job whose ranks were all stopped for longer than they wait, as by a batch system that
// suspends it, goes on. A rank that alone was stopped is missing.
func TestAStoppedJobGoesOn(t *testing.T) {
	const ranks = 2
	cases := []struct {
		call  string
		alone bool // the last rank is stopped alone
	}{{"Agree", false}, {"SendRecv", false}, {"Agree", true}}
	for _, tc := range cases {
		name, word := tc.call, "all well"
		if tc.alone {
			if !mpi.Enabled { // the ranks are one process
				continue
			}
			name, word = name+", one rank is stopped", "dead"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time nothing runs
			// On a busy machine ranks may be late for other reasons: it is tried again with
			// more patience.
			for _, watch := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
				dir := t.TempDir()
				j := mpitest.Start(t, ranks, "be stopped", []string{tc.call, dir}, mpitest.Watch(watch))
				for said(dir, "together", ranks) < ranks {
					time.Sleep(5 * time.Millisecond)
				}
				time.Sleep(50 * time.Millisecond)
				stopped := []int{0, 1}
				if tc.alone {
					stopped = stopped[1:]
				}
				if !mpi.Enabled {
					stopped = stopped[:1]
				}
				for _, rank := range stopped {
					j.Signal(rank, syscall.SIGSTOP)
				}
				time.Sleep(watch + watch/2)
				if !tc.alone { // otherwise the launcher ends it
					for _, rank := range stopped {
						j.Signal(rank, syscall.SIGCONT)
					}
				}
				output, _ := j.Wait()
				count := said(dir, word, ranks)
				if want := map[bool]int{false: ranks, true: 1}[tc.alone]; count == want {
					return
				}
				t.Logf("with a watch of %v %d ranks say %q:\n%s", watch, count, word, output)
			}
			t.Errorf("no rank, or not all of them, said %q", word)
		})
	}
}
