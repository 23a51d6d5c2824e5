package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/plan"
)

// A launcher runs jobs of MPI.
type launcher struct {
	build       string // the folder with <mpi>/bench/worker and the libraries
	tmpfs, disk string
	limit       time.Duration // of one launch
	bind        string        // what Open MPI binds ranks to
}

// command is the launcher's command line of a program on all ranks of a launch.
func (r *launcher) command(l plan.Launch, program ...string) []string {
	args := []string{"mpirun." + l.MPI, "-n", strconv.Itoa(l.Ranks)}
	if l.MPI == "openmpi" {
		component := map[string]string{"romio": "romio321", plan.H5py: "ompio"}[l.Component]
		if component == "" {
			component = l.Component
		}
		args = append(args, "--oversubscribe", "--bind-to", r.bind, "--mca", "io", component)
	}
	return append(args, program...)
}

// python is Debian's interpreter, to which its h5py belongs; another python3 on the path
// would not find it.
const python = "/usr/bin/python3"

// run launches the worker, or the Python peer, and hands over each line that it prints.
func (r *launcher) run(ctx context.Context, l plan.Launch, use func(plan.Line)) error {
	path := filepath.Join(r.tmpfs, "job.json")
	folder := filepath.Join(r.build, l.MPI, "bench")
	job, err := json.Marshal(plan.Job{Launch: l, Libraries: folder, Tmpfs: r.tmpfs, Disk: r.disk})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, job, 0o666); err != nil {
		return err
	}
	program := []string{filepath.Join(folder, "worker"), path}
	if l.Component == plan.H5py {
		program = []string{python, filepath.Join("bench", "peers", "h5py_peer.py"), path}
	}
	command := r.command(l, program...)
	if l.Component == plan.RunFiles {
		command = []string{filepath.Join(r.build, "bench-runfile"), path}
	}
	return r.start(ctx, command, func(line []byte) error {
		var parsed plan.Line
		if err := json.Unmarshal(line, &parsed); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		use(parsed)
		return nil
	})
}

// hasH5py says whether the Python peer can run.
func (r *launcher) hasH5py(ctx context.Context) bool {
	program := "import mpi4py, h5py, sys; sys.exit(not h5py.get_config().mpi)"
	return r.start(ctx, []string{"mpirun.openmpi", "-n", "1", python, "-c", program}, func([]byte) error { return nil }) == nil
}

// grace is what a launcher gets to end its ranks, which are not all in its process group,
// before it is killed.
const grace = 5 * time.Second

// start runs a command in a process group of its own, and hands over each line that it
// prints. It ends the command when the context or the launcher's limit does.
func (r *launcher) start(ctx context.Context, args []string, use func(line []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	ownGroup(cmd)
	var kill *time.Timer
	cmd.Cancel = func() error {
		kill = time.AfterFunc(grace, func() { _ = signalGroup(cmd, syscall.SIGKILL) })
		return signalGroup(cmd, syscall.SIGTERM)
	}
	// Open MPI refuses to run as root, as in containers, unless told twice.
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	var bad error
	for lines.Scan() {
		bad = errors.Join(bad, use(lines.Bytes()))
	}
	bad = errors.Join(bad, lines.Err())
	err = cmd.Wait()
	if kill != nil {
		kill.Stop()
	}
	if err != nil {
		if cause := ctx.Err(); errors.Is(cause, context.DeadlineExceeded) {
			err = fmt.Errorf("%w after %v", cause, r.limit)
		} else if cause != nil {
			return cause
		}
		return fmt.Errorf("%v: %w\n%s", args, errors.Join(err, bad), messages.Bytes())
	}
	return bad
}
