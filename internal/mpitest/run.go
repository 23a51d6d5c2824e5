package mpitest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
)

// T is a test on one rank. Its messages name the rank.
type T struct {
	testing.TB
	rank      int
	dir       string
	goroutine bool // the rank is a goroutine among others, not the test's own
}

// TempDir is a directory that all ranks share and that goes with the test. It is
// the same one at every call.
func (t *T) TempDir() string { return t.dir }

// IsApart reports whether this rank sees a directory of its own; see [Apart].
func (t *T) IsApart() bool { return !t.goroutine && os.Getenv(envApart) == apartDone }

func (t *T) prefix(text string) string {
	return fmt.Sprintf("rank %d: %s", t.rank, strings.TrimSuffix(text, "\n"))
}

// Log is testing's Log with the rank.
func (t *T) Log(args ...any) {
	t.Helper()
	t.TB.Log(t.prefix(fmt.Sprintln(args...)))
}

// Logf is testing's Logf with the rank.
func (t *T) Logf(format string, args ...any) {
	t.Helper()
	t.TB.Log(t.prefix(fmt.Sprintf(format, args...)))
}

// Error is testing's Error with the rank.
func (t *T) Error(args ...any) {
	t.Helper()
	t.TB.Error(t.prefix(fmt.Sprintln(args...)))
}

// Errorf is testing's Errorf with the rank.
func (t *T) Errorf(format string, args ...any) {
	t.Helper()
	t.TB.Error(t.prefix(fmt.Sprintf(format, args...)))
}

// Fatal is Error and then FailNow.
func (t *T) Fatal(args ...any) {
	t.Helper()
	t.TB.Error(t.prefix(fmt.Sprintln(args...)))
	t.FailNow()
}

// Fatalf is Errorf and then FailNow.
func (t *T) Fatalf(format string, args ...any) {
	t.Helper()
	t.TB.Error(t.prefix(fmt.Sprintf(format, args...)))
	t.FailNow()
}

// FailNow fails the test and ends this rank, on any rank: the others fail in
// their next collective call, or are ended with the job.
func (t *T) FailNow() {
	t.TB.Fail()
	if t.goroutine {
		runtime.Goexit()
	}
	t.TB.FailNow()
}

// Run calls body on every rank of a group of n ranks for each n in ranks, as
// subtests "ranks=n".
func Run(t *testing.T, ranks []int, body func(t *T, c *comm.Comm), opts ...Option) {
	t.Helper()
	call := nextCall(t)
	if isRank() {
		if os.Getenv(envCall) == callID(t, call) {
			runBody(t, body, newLaunch(opts))
		}
		return
	}
	for _, n := range ranks {
		t.Run(fmt.Sprintf("ranks=%d", n), func(sub *testing.T) {
			sub.Helper()
			l := newLaunch(opts)
			if !mpi.Enabled {
				runGoroutines(sub, n, body, l)
				return
			}
			l.ranks = n
			l.env = append(l.env, envCall+"="+callID(t, call), envShared+"="+sub.TempDir())
			l.args = []string{"-test.run=" + exactly(t.Name()), "-test.v=true", "-test.count=1",
				fmt.Sprintf("-test.timeout=%v", 2*l.limit), fmt.Sprintf("-test.short=%v", testing.Short())}
			l.launch(sub)
			exit, hung := l.wait()
			failed := hung || exit != 0
			if hung {
				sub.Errorf("no end after %v", l.limit)
			} else if exit != 0 {
				sub.Errorf("launcher ended with status %d", exit)
			}
			for rank := range n {
				if _, err := os.Stat(l.file(rank, "done")); err != nil {
					sub.Errorf("rank %d did not run the test to its end", rank)
					failed = true
				}
			}
			if failed || testing.Verbose() {
				sub.Logf("output of the ranks:\n%s", l.Output())
			}
		})
	}
}

// runGoroutines is Run without MPI.
func runGoroutines(t *testing.T, ranks int, body func(t *T, c *comm.Comm), l *Job) {
	t.Helper()
	dir := t.TempDir()
	err := comm.Run(ranks, func(c *comm.Comm) error {
		body(&T{TB: t, rank: c.Rank(), dir: dir, goroutine: true}, c)
		return nil
	}, l.commOptions...)
	if err != nil && !t.Failed() {
		t.Error(err)
	}
	if p, ok := asPanic(err); ok {
		t.Errorf("%v\n%s", p, p.Stack)
	}
}

// runBody is Run on a rank under the launcher. What follows Run in the test
// function is not for the ranks, so it does not return.
func runBody(t *testing.T, body func(t *T, c *comm.Comm), l *Job) {
	goApart()
	c, err := comm.World(l.commOptions...)
	if err != nil {
		t.Fatal(err)
	}
	body(&T{TB: t, rank: c.Rank(), dir: os.Getenv(envShared)}, c)
	if err := comm.Finalize(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rankFile(os.Getenv(envJob), c.Rank(), "done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	t.SkipNow()
}

// calls counts the calls of Run in each test, as a test may make several.
var calls = struct {
	sync.Mutex
	of map[*testing.T]int
}{of: make(map[*testing.T]int)}

func nextCall(t *testing.T) int {
	calls.Lock()
	defer calls.Unlock()
	if _, known := calls.of[t]; !known {
		t.Cleanup(func() {
			calls.Lock()
			defer calls.Unlock()
			delete(calls.of, t)
		})
	}
	calls.of[t]++
	return calls.of[t]
}

func callID(t *testing.T, call int) string { return fmt.Sprintf("%s %d", t.Name(), call) }

// exactly is the pattern for -test.run that selects one test or subtest.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

func rankFile(jobDir string, rank int, kind string) string {
	return filepath.Join(jobDir, fmt.Sprintf("rank-%d.%s", rank, kind))
}
