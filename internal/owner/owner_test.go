package owner_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/owner"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

var errBusy = errors.New("busy")

func TestSelfNamesProcessMachineAndJobs(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	process := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	for _, tc := range []struct {
		environment map[string]string
		want        string
	}{
		{nil, ""},
		{map[string]string{"SLURM_JOB_ID": "12"}, ", Slurm job 12"},
		{map[string]string{"PBS_JOBID": "12.server"}, ", PBS job 12.server"},
		{map[string]string{"LSB_JOBID": "7"}, ", LSF job 7"},
		{map[string]string{"JOB_ID": "7"}, ", Grid Engine job 7"},
		{map[string]string{"COBALT_JOBID": "7"}, ", Cobalt job 7"},
		{map[string]string{"OAR_JOB_ID": "7"}, ", OAR job 7"},
		{map[string]string{"PJM_JOBID": "7"}, ", PJM job 7"},
		{map[string]string{"LOADL_STEP_ID": "a.1.0"}, ", LoadLeveler job a.1.0"},
		{map[string]string{"SLURM_JOB_ID": "12", "FLUX_JOB_ID": "f3X"}, ", Flux job f3X, Slurm job 12"},
	} {
		if got := owner.Self(func(name string) string { return tc.environment[name] }); got != process+tc.want {
			t.Errorf("with %v: %q, want %q", tc.environment, got, process+tc.want)
		}
	}
}

// Anybody may have written a lock file.
func TestTakeQuotesWhatTheLockFileSays(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "busy (lock /lock",
		"process 1 on x, since then\n":    `busy: "process 1 on x, since then" (lock /lock`,
		"red \x1b[31m\nand another line":  `busy: "red \x1b[31m" (lock /lock`,
		strings.Repeat("very long ", 200): "busy (lock /lock",
	} {
		fsys := vfs.NewMem()
		lock, err := fsys.Lock("/lock")
		if err == nil {
			err = lock.Describe(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = owner.Take(fsys, "/lock", errBusy)
		if !errors.Is(err, errBusy) || !errors.Is(err, vfs.ErrLocked) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

// On a full disk the lock holds all the same.
func TestTakeNeedsNoRoomForItsText(t *testing.T) {
	fsys := vfs.NewMem(vfs.Capacity(0))
	lock, err := owner.Take(fsys, "/lock", errBusy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Take(fsys, "/lock", errBusy); !errors.Is(err, errBusy) {
		t.Errorf("a second one: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	inject := vfs.NewInject(fsys)
	if err := inject.Fail(vfs.Rule{Err: vfs.ErrNoLocks}); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Take(inject, "/lock", errBusy); !errors.Is(err, vfs.ErrNoLocks) || errors.Is(err, errBusy) {
		t.Errorf("without locks: %v", err)
	}
}

func TestWritable(t *testing.T) {
	fsys := vfs.NewMem()
	if err := owner.Writable(fsys, "/"); err != nil {
		t.Error(err)
	}
	if left := fsys.Dump(); left != nil {
		t.Errorf("it leaves %q", left)
	}
	// One that was killed in between, or is at the same.
	if err := fsys.Mkdir("/.fieldstone.probe", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := owner.Writable(fsys, "/"); err != nil || fsys.Dump() != nil {
		t.Errorf("with what a killed one left: %v, %q", err, fsys.Dump())
	}
	for _, tc := range []struct {
		kind vfs.Kind
		err  error
		ok   bool
	}{
		{vfs.OpMkdir, syscall.EROFS, false},
		{vfs.OpMkdir, syscall.EEXIST, true},
		{vfs.OpRemove, syscall.EACCES, false},
		{vfs.OpRemove, syscall.ENOENT, true},
	} {
		inject := vfs.NewInject(fsys)
		if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{tc.kind}, Err: tc.err}); err != nil {
			t.Fatal(err)
		}
		if err := owner.Writable(inject, "/"); (err == nil) != tc.ok || !tc.ok && !errors.Is(err, tc.err) {
			t.Errorf("%s returns %v: %v", tc.kind, tc.err, err)
		}
	}
	if err := owner.Writable(fsys, "/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a directory that isn't there: %v", err)
	}
}

// Another error is no reason to wait, and a panic is rank 0's error.
func TestWaitEndsWithAnyOtherError(t *testing.T) {
	for _, take := range []func() error{
		func() error { return fs.ErrPermission },
		func() error { panic(fs.ErrPermission) },
	} {
		err := comm.Run(3, func(c *comm.Comm) error {
			err := owner.Wait(context.Background(), c, time.Hour, errBusy, take, func(error) { t.Error("it waits") })
			if !errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// However short the others' patience is, they see that rank 0 is there.
func TestWaitIsNoSilence(t *testing.T) {
	tries := 0
	err := comm.Run(2, func(c *comm.Comm) error {
		return owner.Wait(context.Background(), c, time.Hour, errBusy, func() error {
			if tries++; tries < 8 {
				return errBusy
			}
			return nil
		}, func(error) {})
	}, comm.Watch(500*time.Millisecond))
	if err != nil {
		t.Error(err)
	}
}
