//go:build unix

package shm_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Ranks that were all stopped for longer than they wait at the barrier meet there when
// they go on. The test executes itself, with each kind of window, and stops that.
func TestRanksThatWereStoppedMeet(t *testing.T) {
	const child = "SHM_TEST_STOPPED"
	if limit, err := time.ParseDuration(os.Getenv(child)); err == nil {
		meetAfterAStop(t, limit)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine a rank may be late for other reasons.
	var output string
	for _, limit := range []time.Duration{500 * time.Millisecond, 5 * time.Second, 30 * time.Second} {
		var ok bool
		if output, ok = stopAndGoOn(t, self, child+"="+limit.String(), limit+limit/2); ok {
			return
		}
		t.Logf("with a limit of %v:\n%s", limit, output)
	}
	t.Error("the ranks didn't meet")
}

// stopAndGoOn runs this test in a process that is stopped for some time once it waits.
func stopAndGoOn(t *testing.T, self, env string, stop time.Duration) (output string, ok bool) {
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if lines.Text() != "waiting" {
			continue
		}
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if sig == syscall.SIGSTOP {
				time.Sleep(stop)
			}
		}
	}
	err = cmd.Wait()
	return said.String(), err == nil && strings.Contains(said.String(), "waiting")
}

// meetAfterAStop lets one rank of each window wait for the other, which comes a while
// after it notices that the process was stopped.
func meetAfterAStop(t *testing.T, limit time.Duration) {
	var came, done sync.WaitGroup
	stopped := make(chan struct{})
	for _, k := range kinds(t) {
		list := share(t, k, 1, 2)
		came.Add(1)
		done.Go(func() {
			came.Done()
			if failed, err := list[0].Meet(limit); failed || err != nil {
				t.Errorf("%v: the rank that waits: failed: %v, %v", k, failed, err)
			}
		})
		done.Go(func() {
			<-stopped
			if failed, err := list[1].Meet(limit); failed || err != nil {
				t.Errorf("%v: the rank that comes late: failed: %v, %v", k, failed, err)
			}
		})
	}
	came.Wait()
	time.Sleep(limit / 20)
	last := time.Now() // of what may be stopped at once
	os.Stdout.WriteString("waiting\n")
	for {
		time.Sleep(5 * time.Millisecond)
		now := time.Now()
		if now.Sub(last) > limit {
			break
		}
		last = now
	}
	time.Sleep(limit / 4)
	close(stopped)
	done.Wait()
}
