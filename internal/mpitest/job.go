package mpitest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
)

// An Option changes how ranks are launched.
type Option func(*Job)

// Limit is how long a launch may take before the watchdog ends it; the default
// is 5 minutes, which only a launch that hangs takes.
func Limit(d time.Duration) Option { return func(j *Job) { j.limit = d } }

// Env adds variables "NAME=value" to the environment of the ranks. It has no
// effect on ranks that are goroutines.
func Env(vars ...string) Option { return func(j *Job) { j.env = append(j.env, vars...) } }

// Watch is comm.Watch of the world communicator.
func Watch(d time.Duration) Option {
	return func(j *Job) {
		j.commOptions = append(j.commOptions, comm.Watch(d))
		j.env = append(j.env, envWatch+"="+d.String())
	}
}

// Apart makes a rank see a directory of its own where the others see the directory name
// of TempDir, as on a node on which a path is local: an empty one, in memory. It takes
// Linux, root and MPI; [T.IsApart] reports whether it has come so.
func Apart(rank int, name string) Option {
	return func(j *Job) { j.env = append(j.env, fmt.Sprintf("%s=%d %s", envApart, rank, name)) }
}

// apartDone is in place of the rank when its process has the directory.
const apartDone = "done"

// WorkLimit is comm.WorkLimit of the world communicator.
func WorkLimit(d time.Duration) Option {
	return func(j *Job) {
		j.commOptions = append(j.commOptions, comm.WorkLimit(d))
		j.env = append(j.env, envWorkLimit+"="+d.String())
	}
}

// A Component is a library for collective files that a test can choose.
type Component struct {
	Name    string
	Options []Option
}

// Components are those of the MPI in use: both of Open MPI's, MPICH's one, or
// none, by the name "none", where the ranks are goroutines.
func Components() []Component {
	switch {
	case !mpi.Enabled:
		return []Component{{Name: "none"}}
	case isOpenMPI():
		return []Component{
			{Name: "ompio", Options: []Option{Env("OMPI_MCA_io=ompio")}},
			{Name: "romio", Options: []Option{Env("OMPI_MCA_io=romio321")}},
		}
	}
	return []Component{{Name: "mpich"}}
}

func isOpenMPI() bool { return strings.HasPrefix(mpi.Implementation(), "openmpi") }

// The environment of a rank.
const (
	envJob     = "FIELDSTONE_MPITEST_JOB"     // directory of the launch
	envShared  = "FIELDSTONE_MPITEST_SHARED"  // directory that TempDir gives
	envCall    = "FIELDSTONE_MPITEST_CALL"    // the call of Run that the rank is for
	envProgram = "FIELDSTONE_MPITEST_PROGRAM" // or the program
	envRanks   = "FIELDSTONE_MPITEST_RANKS"   // of a program without MPI: its goroutines
	envWatch   = "FIELDSTONE_MPITEST_WATCH"

	envWorkLimit = "FIELDSTONE_MPITEST_WORK_LIMIT"
	envApart     = "FIELDSTONE_MPITEST_APART" // rank and directory
)

func isRank() bool { return os.Getenv(envJob) != "" }

// A Job is one launch of ranks.
type Job struct {
	ranks       int
	args        []string
	env         []string
	limit       time.Duration
	commOptions []comm.Option

	t     testing.TB
	dir   string // its own files: process numbers, shared memory of the library
	cmd   *exec.Cmd
	ended chan struct{}
	hung  bool

	mu     sync.Mutex
	output bytes.Buffer
	news   chan struct{} // closed and replaced when output grows
}

func newLaunch(opts []Option) *Job {
	j := &Job{limit: 5 * time.Minute}
	for _, opt := range opts {
		opt(j)
	}
	return j
}

func (j *Job) file(rank int, kind string) string { return rankFile(j.dir, rank, kind) }

// grace is ample for what has every reason to happen soon, on a busy machine too.
const grace = time.Minute

// launch starts the ranks. The job ends with the test at the latest.
func (j *Job) launch(t testing.TB) {
	t.Helper()
	j.t = t
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("find the test's own program: %v", err)
	}
	// Shared memory is where Open MPI keeps its segments, which killed ranks
	// leave behind: with all of it in one directory they go with the job. Paths
	// of sockets in it must be short.
	if j.dir, err = os.MkdirTemp("/dev/shm", "fs-mpitest-"); err != nil {
		j.dir, err = os.MkdirTemp("", "fs-mpitest-")
	}
	if err != nil {
		t.Fatalf("directory of the job: %v", err)
	}
	argv, err := j.launcher()
	if err != nil {
		t.Fatal(err)
	}
	argv = append(append(argv, self), j.args...)
	j.cmd = exec.Command(argv[0], argv[1:]...)
	j.cmd.Env = append(os.Environ(), envJob+"="+j.dir)
	j.cmd.Env = append(j.cmd.Env,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		// Blocking calls give their core away, as Open MPI makes them do by itself
		// only where it knows of more ranks than cores: other tests want it.
		"OMPI_MCA_mpi_yield_when_idle=1",
		"OMPI_MCA_btl_vader_backing_directory="+j.dir, "OMPI_MCA_orte_tmpdir_base="+j.dir)
	j.cmd.Env = append(j.cmd.Env, quickStart()...)
	// Both launchers end the job by themselves some time after the watchdog, in
	// case that this process does not live so long.
	j.cmd.Env = append(j.cmd.Env, fmt.Sprintf("MPIEXEC_TIMEOUT=%d", int(j.limit.Seconds())+30))
	j.cmd.Env = append(j.cmd.Env, j.env...)
	ownGroup(j.cmd)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatalf("pipe for the job's output: %v", err)
	}
	j.cmd.Stdout, j.cmd.Stderr = w, w
	j.news = make(chan struct{})
	j.ended = make(chan struct{})
	if err := j.cmd.Start(); err != nil {
		r.Close()
		w.Close()
		os.RemoveAll(j.dir)
		t.Fatalf("launch ranks: %v", err)
	}
	w.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		j.read(r)
	}()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		j.cmd.Wait() // its status is read from ProcessState
	}()
	go func() {
		defer close(j.ended)
		watchdog := time.After(j.limit)
		select {
		case <-exited:
		case <-watchdog:
			j.hung = true
			j.showStacks()
			j.kill()
			<-exited
		}
		// The pipe stays open while a rank lives on. What the dead have written is read
		// to its end, for which a busy machine gets its time.
		select {
		case <-read:
		case <-time.After(grace / 4):
			j.kill()
			select {
			case <-read:
			case <-time.After(grace):
			}
		}
		r.Close()
		<-read
	}()
	t.Cleanup(func() {
		j.kill()
		<-j.ended
		j.settle()
		os.RemoveAll(j.dir)
	})
}

// quickStart are the settings that save Open MPI a quarter of a second at the start of ranks and a
// second at the end of a job that fails. A caller's own settings stay.
func quickStart() (env []string) {
	for name, value := range map[string]string{
		// The transport that Open MPI takes within a node, without a search for network cards.
		"OMPI_MCA_pml": "ob1",
		// When one rank fails, the launcher ends the others at once: by default it
		// leaves a second between SIGTERM and SIGKILL.
		"OMPI_MCA_odls_base_sigkill_timeout": "0",
	} {
		if _, set := os.LookupEnv(name); !set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// launcher is the command line up to the program.
func (j *Job) launcher() ([]string, error) {
	n := strconv.Itoa(j.ranks)
	if !mpi.Enabled {
		j.env = append(j.env, envRanks+"="+n)
		return nil, nil
	}
	name, args := "mpirun.mpich", []string{"-prepend-rank", "-n", n}
	if isOpenMPI() {
		name, args = "mpirun.openmpi", []string{"--oversubscribe", "--bind-to", "none", "--tag-output", "-n", n}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("launcher of %s: %w", mpi.Implementation(), err)
	}
	return append([]string{path}, args...), nil
}

// Both launchers put the rank before each line, in their ways.
var rankTag = regexp.MustCompile(`^\[(?:1,)?(\d+)\](?:<std(?:out|err)>:| )`)

func (j *Job) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			line = rankTag.ReplaceAllString(line, "rank $1: ")
			j.mu.Lock()
			j.output.WriteString(line)
			close(j.news)
			j.news = make(chan struct{})
			j.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// Output is what the ranks wrote so far, each line after its rank.
func (j *Job) Output() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.output.String()
}

// wait waits for the end and gives the launcher's exit status, -1 if it was
// killed, and whether that was the watchdog.
func (j *Job) wait() (exit int, hung bool) {
	<-j.ended
	return j.cmd.ProcessState.ExitCode(), j.hung
}

// process is the process number of a rank, if it has one and is alive.
func (j *Job) process(rank int) (int, bool) {
	text, err := os.ReadFile(j.file(rank, "pid"))
	if err != nil {
		return 0, false
	}
	var pid int
	var started string
	if _, err := fmt.Sscan(string(text), &pid, &started); err != nil {
		return 0, false
	}
	// Numbers are used again, but not with the same time.
	state, since, err := processState(strconv.Itoa(pid))
	if err != nil || since != started {
		return 0, false
	}
	// The first thread becomes a zombie while others still hold files and their
	// locks.
	if state == "Z" || state == "X" {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		return pid, err == nil && len(threads) > 1
	}
	return pid, true
}

func (j *Job) signal(rank int, sig syscall.Signal) error {
	pid, ok := j.process(rank)
	if !ok {
		return fmt.Errorf("rank %d has no live process", rank)
	}
	return send(pid, sig)
}

// kill ends the launcher and every rank with SIGKILL.
func (j *Job) kill() {
	for rank := range j.ranks {
		if pid, ok := j.process(rank); ok {
			send(pid, syscall.SIGKILL)
		}
	}
	select {
	case <-j.ended: // the group may be another's by now
	default:
		send(-j.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// settle waits until no rank is alive.
func (j *Job) settle() {
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		alive := false
		for rank := range j.ranks {
			_, ok := j.process(rank)
			alive = alive || ok
		}
		if !alive {
			return
		}
		j.kill()
	}
	j.t.Error("ranks live on after SIGKILL")
}

// showStacks adds every rank's goroutines to the output.
func (j *Job) showStacks() {
	for rank := range j.ranks {
		j.signal(rank, syscall.SIGQUIT)
	}
	deadline := time.Now().Add(grace / 4) // of all ranks together: one may be stuck in C
	for rank := range j.ranks {
		stack := []byte("no stack")
		for wait := true; wait; time.Sleep(20 * time.Millisecond) {
			_, alive := j.process(rank)
			wait = alive && time.Now().Before(deadline)
			if text, err := os.ReadFile(j.file(rank, "stack")); err == nil {
				stack = text
				break
			}
		}
		j.mu.Lock()
		fmt.Fprintf(&j.output, "rank %d: goroutines at the limit:\n%s\n", rank, stack)
		j.mu.Unlock()
	}
}

func asPanic(err error) (*comm.PanicError, bool) { return errors.AsType[*comm.PanicError](err) }

// tempName is beside name, to be renamed to it when complete.
func tempName(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name))
}
