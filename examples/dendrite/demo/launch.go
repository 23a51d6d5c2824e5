//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A launch is one run of the solver.
type launch struct {
	name  string
	ranks int
	args  []string
	log   string      // file for all that the run prints
	event func(event) // called for each line that is meant for programs
	line  func(string)

	cmd   *exec.Cmd
	took  time.Duration
	hit   chan struct{} // closed when kill was called
	mu    sync.Mutex
	procs []proc // the ranks
}

// A proc is a rank as the system sees it.
type proc struct {
	rank, pid int
	shared    []string // its files in shared memory
}

// An event is a line of the solver like "@ saved=500 bundle=out/step_500".
type event map[string]string

func parseEvent(line string) (event, bool) {
	text, ok := strings.CutPrefix(line, "@ ")
	if !ok {
		return nil, false
	}
	e := event{}
	for text != "" {
		key, rest, _ := strings.Cut(text, "=")
		if key == "bundle" { // the last one; a path may have spaces
			e[key] = rest
			break
		}
		e[key], text, _ = strings.Cut(rest, " ")
	}
	return e, true
}

// number returns the value of a key, -1 if there is none.
func (e event) number(key string) int64 {
	n, err := strconv.ParseInt(e[key], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// grace is how long processes may take to end that have every reason to.
const grace = time.Minute

// command puts the launcher before the solver.
func (o options) command(l *launch) *exec.Cmd {
	args := append([]string{o.solver, "-events", "-progress", "lines"}, l.args...)
	switch o.mpi {
	case "openmpi":
		args = append([]string{o.mpirun, "--oversubscribe", "--bind-to", "none", "-n", strconv.Itoa(l.ranks)}, args...)
	case "mpich":
		args = append([]string{o.mpirun, "-n", strconv.Itoa(l.ranks)}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	// A group of its own: an interrupt from the terminal is for the demo, which
	// then ends the run.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run returns when the run is over and nothing of it is left. The error is that
// of its exit status, or says why it was ended: a cancelled context, or the limit
// that every run has.
func (l *launch) run(ctx context.Context, o options) error {
	log, err := os.Create(l.log)
	if err != nil {
		return err
	}
	defer log.Close()
	// Not exec's pipe, since Wait would wait for everybody who holds it.
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()

	l.hit = make(chan struct{})
	l.cmd = o.command(l)
	l.cmd.Stdout, l.cmd.Stderr = w, w
	fmt.Fprintln(log, l.cmd)
	began := time.Now()
	err = errors.Join(l.cmd.Start(), w.Close())
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(io.TeeReader(r, log)); s.Scan(); {
			l.take(strings.TrimRight(s.Text(), "\r")) // Open MPI makes a terminal of it
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = l.cmd.Wait()
	}()

	var why error
	select {
	case <-ended:
	case <-l.hit:
		await(ended)
	case <-ctx.Done():
		why = ctx.Err()
	case <-time.After(o.limit):
		why = fmt.Errorf("no end within %v", o.limit)
	}
	l.took = time.Since(began)
	l.end(ended)
	<-ended
	if !await(read) {
		// A process that we don't know of holds the other end.
		why = errors.Join(why, errors.New("processes are left"), r.SetReadDeadline(time.Now()))
		<-read
	}
	if err = errors.Join(why, err); err != nil {
		err = fmt.Errorf("%s: %w (all that it printed is in %s)", l.name, err, l.log)
	}
	return errors.Join(err, l.clean(o))
}

// await waits up to the grace for a channel to be closed.
func await(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(grace):
		return false
	}
}

// take sorts out a line of the run.
func (l *launch) take(text string) {
	e, ok := parseEvent(text)
	if !ok {
		l.line(text)
		return
	}
	if pid := e.number("pid"); pid > 0 {
		p := proc{rank: int(e.number("rank")), pid: int(pid)}
		p.shared = sharedFiles(p.pid)
		l.mu.Lock()
		l.procs = append(l.procs, p)
		l.mu.Unlock()
		return
	}
	l.event(e)
}

// kill ends all ranks at once, without a chance to do anything about it, and
// returns their number. The launcher finds out by itself.
func (l *launch) kill() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, p := range l.procs {
		err = errors.Join(err, syscall.Kill(p.pid, syscall.SIGKILL))
	}
	close(l.hit)
	return len(l.procs), err
}

// end ends the launcher, if it is still there: politely, for it can clean up
// behind its ranks.
func (l *launch) end(ended <-chan struct{}) {
	select {
	case <-ended:
		return
	default:
	}
	_ = l.cmd.Process.Signal(syscall.SIGTERM) // it may have ended just now
	if !await(ended) {
		_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// clean makes sure that no rank lives on, and removes what the ranks had in
// shared memory: after a SIGKILL nobody else does.
func (l *launch) clean(o options) error {
	var left []string
	for deadline := time.Now().Add(grace); ; time.Sleep(10 * time.Millisecond) {
		left = left[:0]
		for _, p := range l.procs {
			if p.alive(o.solver) {
				left = append(left, fmt.Sprintf("rank %d (process %d)", p.rank, p.pid))
				if time.Now().After(deadline) {
					_ = syscall.Kill(p.pid, syscall.SIGKILL)
				}
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	var err error
	if len(left) > 0 {
		err = fmt.Errorf("%s: still running after the end: %s", l.name, strings.Join(left, ", "))
	}
	for _, p := range l.procs {
		for _, name := range p.shared {
			if rerr := os.Remove(name); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
	}
	return err
}

// alive reports whether the process runs the solver, and is not another one that
// got its number, nor one that is dead and only not yet waited for.
func (p proc) alive(solver string) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid))
	return err == nil && exe == solver
}

// sharedFiles lists the files in shared memory that a process has mapped.
func sharedFiles(pid int) []string {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil // it has ended
	}
	seen := make(map[string]bool)
	var list []string
	for line := range strings.Lines(string(maps)) {
		at := strings.Index(line, "/dev/shm/")
		name := strings.TrimRight(line[max(at, 0):], "\n")
		if at < 0 || seen[name] || strings.HasSuffix(name, " (deleted)") {
			continue
		}
		seen[name] = true
		list = append(list, name)
	}
	return list
}
