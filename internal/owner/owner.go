// Package owner keeps a directory, or the files of one name in it, to one job at a
// time: by a lock whose file says which job that is, and for which the next one waits.
package owner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// DefaultWait is how long the next job waits where its configuration says nothing: a
// job that is started again meets its dying predecessor, and a network filesystem returns
// the lock of a dead machine late.
const DefaultWait = 60 * time.Second

// Take takes the lock at name and writes into its file who has it. While another one
// has it the error wraps inUse and quotes the file. Where locks don't work it
// wraps vfs.ErrNoLocks.
func Take(fsys vfs.FS, name string, inUse error) (vfs.Lock, error) {
	lock, err := fsys.Lock(name)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("%w%s (%w)", inUse, quote(fsys, name), err)
	}
	if err != nil {
		return nil, err
	}
	// The lock holds without its text, on a full disk say.
	_ = lock.Describe(Self(os.Getenv) + ", since " + time.Now().UTC().Format(time.RFC3339) + "\n")
	return lock, nil
}

// maxText bounds how much of a lock file is read: anybody may have written it.
const maxText = 1 << 10

// quote returns the first line of a lock file, after a colon.
func quote(fsys vfs.FS, name string) string {
	data, err := vfs.ReadFile(fsys, name, maxText)
	line, _, _ := strings.Cut(string(data), "\n")
	if err != nil || line == "" {
		return ""
	}
	return fmt.Sprintf(": %q", line)
}

// jobs are the variables in which batch systems put the id of a job, inner ones first.
var jobs = []struct{ variable, system string }{
	{"FLUX_JOB_ID", "Flux"},
	{"SLURM_JOB_ID", "Slurm"},
	{"PBS_JOBID", "PBS"},
	{"LSB_JOBID", "LSF"},
	{"JOB_ID", "Grid Engine"},
	{"COBALT_JOBID", "Cobalt"},
	{"OAR_JOB_ID", "OAR"},
	{"PJM_JOBID", "PJM"},
	{"LOADL_STEP_ID", "LoadLeveler"},
}

// Self describes this process: its number, its machine and the jobs that it belongs to.
func Self(getenv func(string) string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed machine"
	}
	text := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	for _, job := range jobs {
		if id := getenv(job.variable); id != "" {
			text += fmt.Sprintf(", %s job %s", job.system, id)
		}
	}
	return text
}

// probeName is an entry that is made and removed to see that it can be.
const probeName = ".fieldstone.probe"

// Writable reports, as an error, that entries of a directory can't be made and removed.
// That two do this at once is no error.
func Writable(fsys vfs.FS, dir string) error {
	probe := filepath.Join(dir, probeName)
	err := fsys.Mkdir(probe, 0o777)
	if err == nil || errors.Is(err, fs.ErrExist) {
		if err = fsys.Remove(probe); errors.Is(err, fs.ErrNotExist) {
			err = nil // the other one removed it
		}
	}
	if err != nil {
		return fmt.Errorf("the directory can't be written: %w", err)
	}
	return nil
}

// Wait calls take on rank 0 as long as its error wraps inUse, up to limit: not again
// where that isn't greater than 0. inVain is called on rank 0 when the first try was in
// vain. It is collective, and returns the same error on all ranks; a context that is
// cancelled on any rank ends it. Time in which rank 0 was stopped itself doesn't count.
// After an error the lock may be taken.
func Wait(ctx context.Context, c *comm.Comm, limit time.Duration, inUse error, take func() error, inVain func(err error)) error {
	wait, pause := waiting.NewMeter(limit), 10*time.Millisecond
	for tries := 0; ; tries++ {
		again := []int64{0}
		var left time.Duration
		var err error
		if c.Rank() == 0 {
			err = comm.Protect(take)
			left = limit - wait.Waited(time.Now())
			switch {
			case !errors.Is(err, inUse):
			case left > 0:
				if tries == 0 {
					inVain(err)
				}
				again[0], err = 1, nil
			case limit > 0:
				err = fmt.Errorf("%w; it was waited for during %v", err, limit)
			}
		}
		if err := c.AgreeMax(ctx, err, again); err != nil || again[0] == 0 {
			return err
		}
		if c.Rank() == 0 {
			waiting.Rest(ctx, min(pause, left, wait.Nap(), c.WatchLimit()/4))
			pause = min(2*pause, time.Second)
		}
	}
}
