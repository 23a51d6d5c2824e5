package mpitest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
)

// A Program runs on every rank of a Job. Its error is printed and makes the
// rank's exit status 1.
type Program func(c *comm.Comm, args []string) error

var programs = make(map[string]Program)

var mainRan bool

// Register makes a program known to Command by name. Call it before Main.
func Register(name string, p Program) {
	if programs[name] != nil {
		panic("mpitest: program " + name + " is registered twice")
	}
	programs[name] = p
}

// Main runs the tests, or the program that this process is a rank of. A package
// that uses Command calls it from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }
func Main(m *testing.M) int {
	mainRan = true
	name := os.Getenv(envProgram)
	if name == "" {
		return m.Run()
	}
	if err := runProgram(name, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "program "+name+":", err)
		return 1
	}
	return 0
}

func runProgram(name string, args []string) error {
	p := programs[name]
	if p == nil {
		return fmt.Errorf("not registered")
	}
	var opts []comm.Option
	if d, err := time.ParseDuration(os.Getenv(envWatch)); err == nil {
		opts = append(opts, comm.Watch(d))
	}
	if d, err := time.ParseDuration(os.Getenv(envWorkLimit)); err == nil {
		opts = append(opts, comm.WorkLimit(d))
	}
	if !mpi.Enabled {
		ranks, err := strconv.Atoi(os.Getenv(envRanks))
		if err != nil {
			return err
		}
		return comm.Run(ranks, func(c *comm.Comm) error { return p(c, args) }, opts...)
	}
	c, err := comm.World(opts...)
	if err != nil {
		return err
	}
	if err := p(c, args); err != nil {
		return err // the launcher ends the others
	}
	return comm.Finalize()
}

// Start launches a registered program on ranks, without waiting for its end:
// under MPI's launcher, or, without the tag mpi, as goroutines of one process.
// The job is killed at the end of the test if it lives that long.
func Start(t testing.TB, ranks int, name string, args []string, opts ...Option) *Job {
	t.Helper()
	if !mainRan {
		t.Fatal("mpitest: TestMain does not call mpitest.Main")
	}
	if programs[name] == nil {
		t.Fatalf("mpitest: program %s is not registered", name)
	}
	j := newLaunch(opts)
	j.ranks = ranks
	j.args = args
	j.env = append(j.env, envProgram+"="+name)
	j.launch(t)
	return j
}

// Command is Start and Wait.
func Command(t testing.TB, ranks int, name string, args ...string) (output string, exit int) {
	t.Helper()
	return Start(t, ranks, name, args).Wait()
}

// Wait waits for the end of the job and of all its processes. It gives the
// output and the launcher's exit status, -1 if that was killed. It fails the
// test if the watchdog had to end the job.
func (j *Job) Wait() (output string, exit int) {
	j.t.Helper()
	exit, hung := j.wait()
	j.settle()
	if hung {
		j.t.Fatalf("no end after %v:\n%s", j.limit, j.Output())
	}
	return j.Output(), exit
}

// WaitFor waits until the output contains the text count times, say once from
// each rank. It fails the test if the job ends before.
func (j *Job) WaitFor(text string, count int) {
	j.t.Helper()
	for {
		j.mu.Lock()
		seen, news := strings.Count(j.output.String(), text), j.news
		j.mu.Unlock()
		if seen >= count {
			return
		}
		select {
		case <-news:
		case <-j.ended:
			if strings.Count(j.Output(), text) < count {
				j.t.Fatalf("job ended without %d times %q:\n%s", count, text, j.Output())
			}
		}
	}
}

// Kill sends SIGKILL to one rank's process. Where the ranks are goroutines that
// is the process of all.
func (j *Job) Kill(rank int) {
	j.t.Helper()
	if !mpi.Enabled {
		rank = 0
	}
	if err := j.signal(rank, syscall.SIGKILL); err != nil {
		j.t.Fatal(err)
	}
}

// Signal sends a signal to one rank's process.
func (j *Job) Signal(rank int, sig syscall.Signal) {
	j.t.Helper()
	if !mpi.Enabled {
		rank = 0
	}
	if err := j.signal(rank, sig); err != nil {
		j.t.Fatal(err)
	}
}

// ShowStacks adds the goroutines of every rank to the output. A rank that is stuck in C
// shows where Go called it.
func (j *Job) ShowStacks() { j.showStacks() }

// Ended is closed when the job and its output have ended.
func (j *Job) Ended() <-chan struct{} { return j.ended }

// KillAll sends SIGKILL to every rank and to the launcher, as a machine does
// that loses its power.
func (j *Job) KillAll() { j.kill() }
