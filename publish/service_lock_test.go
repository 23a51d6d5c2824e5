package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/owner"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

const lockFile = "/data/ckpt/" + directoryLock

// unwaiting is serviceConfig for a service that doesn't wait.
func unwaiting(restart string) Config {
	cfg := serviceConfig(restart)
	cfg.Checkpoint.WaitSeconds = -1
	return cfg
}

func newService(t testing.TB, fsys vfs.FS, ranks int, cfg Config, opts ...Option) error {
	t.Helper()
	return withService(t, fsys, ranks, cfg, nil, nil, opts...)
}

func TestOneServiceThatSavesHasTheDirectory(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "987654")
	fsys := newFS(t)
	cfg := unwaiting("")
	cfg.Checkpoint.Keep = 1
	err := withService(t, fsys, 2, cfg, nil, func(s session) error {
		if err := steps(10)(s); err != nil {
			return err
		}
		if s.c.Rank() == 0 {
			host, _ := os.Hostname()
			before := fsys.Dump()
			wantError(t, newService(t, fsys, 3, cfg), ErrInUse, "/data/ckpt", lockFile,
				fmt.Sprintf("process %d on %s", os.Getpid(), host), "Slurm job 987654")
			sameFiles(t, fsys, before)
			// Other directories are other services'.
			other := cfg
			other.Checkpoint.Directory = "/data/other"
			if err := newService(t, fsys, 1, other); err != nil {
				t.Errorf("another directory: %v", err)
			}
			before = fsys.Dump()
			// Readers need no lock, and take none.
			reader := unwaiting(Latest)
			reader.Checkpoint.Every = 0
			err := withService(t, fsys, 2, reader, nil, func(r session) error {
				if r.loaded == nil || r.loaded.Metadata.AcceptedIncrement != 10 {
					return fmt.Errorf("a reader loaded %+v", r.loaded)
				}
				return nil
			})
			if err != nil {
				t.Errorf("a reader: %v", err)
			}
			sameFiles(t, fsys, before)
		}
		return steps(20)(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_20")
	// Closed, it has given the directory back.
	if err := newService(t, fsys, 2, unwaiting(Latest)); err != nil {
		t.Error(err)
	}
}

// A lock file without its process, as a kill leaves it, stops nobody.
func TestTheLockOfADeadServiceStopsNobody(t *testing.T) {
	fsys := newFS(t)
	if err := fsys.Mkdir("/data/ckpt", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(fsys, lockFile, []byte("process 1 on nowhere\n"), 0o666, true); err != nil {
		t.Fatal(err)
	}
	if err := withService(t, fsys, 2, unwaiting(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10")
}

// waitingFor runs do when somebody has tried to lock the directory in vain that many times.
func waitingFor(fsys *vfs.Mem, times int, do func()) *vfs.Inject {
	inject := vfs.NewInject(fsys)
	inject.After(func(op vfs.Op, err error) {
		if op.Kind == vfs.OpLock && op.Name == lockFile && errors.Is(err, vfs.ErrLocked) {
			if times--; times == 0 {
				do()
			}
		}
	})
	return inject
}

func TestAServiceWaitsForItsDyingPredecessor(t *testing.T) {
	fsys := newFS(t)
	if err := fsys.Mkdir("/data/ckpt", 0o777); err != nil {
		t.Fatal(err)
	}
	dying, err := owner.Take(fsys, lockFile, ErrInUse)
	if err != nil {
		t.Fatal(err)
	}
	inject := waitingFor(fsys, 3, func() {
		if err := dying.Release(); err != nil {
			t.Error(err)
		}
	})
	var log logs
	cfg := serviceConfig("")
	if err := withService(t, inject, 2, cfg, &log, steps(10)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10")
	if n := strings.Count(log.String(), "waiting for the checkpoint directory"); n != 1 {
		t.Errorf("%d warnings that it waits, want 1:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), "process ") || !strings.Contains(log.String(), "1m0s") {
		t.Errorf("the log doesn't say for whom and how long:\n%s", log.String())
	}
}

func TestAServiceDoesNotWaitForever(t *testing.T) {
	fsys := newFS(t)
	if err := fsys.Mkdir("/data/ckpt", 0o777); err != nil {
		t.Fatal(err)
	}
	other, err := owner.Take(fsys, lockFile, ErrInUse)
	if err != nil {
		t.Fatal(err)
	}
	cfg := serviceConfig("")
	cfg.Checkpoint.WaitSeconds = 0.02
	wantError(t, newService(t, fsys, 2, cfg), ErrInUse, "waited for during 20ms")
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	for seconds, want := range map[float64]time.Duration{0: time.Minute, 2.5: 2500 * time.Millisecond, -1: 0} {
		if got := (CheckpointConfig{WaitSeconds: seconds}).wait(); got != want {
			t.Errorf("wait_seconds %v is %v, want %v", seconds, got, want)
		}
	}
	for _, seconds := range []float64{math.NaN(), math.Inf(1)} {
		if err := (Config{Checkpoint: CheckpointConfig{WaitSeconds: seconds}}).Validate(); err == nil || !strings.Contains(err.Error(), "checkpoint.wait_seconds") {
			t.Errorf("wait_seconds %v returns %v", seconds, err)
		}
	}
}

// A context that ends on any rank ends the wait of all.
func TestAContextEndsTheWait(t *testing.T) {
	for _, rank := range []int{0, 2} {
		fsys := newFS(t)
		if err := fsys.Mkdir("/data/ckpt", 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.Take(fsys, lockFile, ErrInUse); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		inject := waitingFor(fsys, 2, cancel)
		err := onRanks(t, 3, func(c *comm.Comm) error {
			own := context.Background()
			if c.Rank() == rank {
				own = ctx
			}
			_, err := NewService(own, c, serviceConfig(""), Filesystem(inject))
			return err
		})
		wantError(t, err, context.Canceled, fmt.Sprintf("rank %d", rank))
		if errors.Is(err, ErrInUse) {
			t.Errorf("%v is ErrInUse", err)
		}
	}
}

// A service that nothing tells when to save holds the directory from its first Save on.
func TestTheFirstSaveOfAServiceThatIsOffTakesTheDirectory(t *testing.T) {
	fsys := newFS(t)
	off := unwaiting("")
	off.Checkpoint.Every = 0
	save := func(s session, n int64) error {
		if err := s.c.Agree(context.Background(), s.solver.advance(n)); err != nil {
			return err
		}
		_, err := s.service.Save(context.Background(), s.solver.solver())
		return err
	}
	err := withService(t, fsys, 2, off, nil, func(s session) error {
		if s.c.Rank() == 0 {
			other := withService(t, fsys, 2, off, nil, func(r session) error { return save(r, 10) })
			if other != nil {
				t.Errorf("nobody has the directory yet: %v", other)
			}
		}
		if err := save(s, 20); err != nil {
			return err
		}
		if s.c.Rank() == 0 {
			wantError(t, newService(t, fsys, 1, unwaiting("")), ErrInUse)
			other := withService(t, fsys, 2, off, nil, func(r session) error { return save(r, 30) })
			wantError(t, other, ErrInUse, "checkpoint in /data/ckpt")
		}
		if err := s.c.Meet(context.Background()); err != nil {
			return err
		}
		return save(s, 40)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10", "step_20", "step_40")
}

// Somebody removes the file of a lock that is held: the service takes it anew, unless
// another job was faster.
func TestALockFileThatWasRemovedIsTakenAnewBeforeTheNextSave(t *testing.T) {
	fsys := newFS(t)
	var log logs
	err := withService(t, fsys, 2, unwaiting(""), &log, func(s session) error {
		if err := steps(10)(s); err != nil {
			return err
		}
		if s.c.Rank() == 0 {
			if err := fsys.Remove(lockFile); err != nil {
				t.Error(err)
			}
		}
		if err := steps(20)(s); err != nil {
			return err
		}
		var other vfs.Lock
		if s.c.Rank() == 0 {
			wantError(t, newService(t, fsys, 1, unwaiting("")), ErrInUse)
			if err := fsys.Remove(lockFile); err != nil {
				t.Error(err)
			}
			var err error
			if other, err = owner.Take(fsys, lockFile, ErrInUse); err != nil {
				t.Error(err)
			}
		}
		err := steps(30)(s)
		wantError(t, err, ErrInUse, "checkpoint in /data/ckpt")
		if s.c.Rank() == 0 {
			if err := other.Release(); err != nil {
				t.Error(err)
			}
		}
		return steps(30)(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10", "step_20", "step_30")
	if !strings.Contains(log.String(), "taken anew") {
		t.Errorf("no warning:\n%s", log.String())
	}
}

// noLocks is a filesystem without locks.
func noLocks(t testing.TB, base vfs.FS) vfs.FS {
	t.Helper()
	inject := vfs.NewInject(base)
	err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpLock}, Err: fmt.Errorf("%w: %w", vfs.ErrNoLocks, syscall.ENOLCK)})
	if err != nil {
		t.Fatal(err)
	}
	return inject
}

func TestWithoutLocksOneWarningSaysThatNothingKeepsJobsApart(t *testing.T) {
	fsys := newFS(t)
	var log logs
	if err := withService(t, noLocks(t, fsys), 2, unwaiting(""), &log, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "nothing keeps another job out"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
}

func TestADirectoryThatCanNotBeWrittenIsFoundAtTheStart(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.OpMkdir, vfs.OpRemove} {
		base := newFS(t)
		if err := withService(t, base, 2, unwaiting(""), nil, steps(10)); err != nil {
			t.Fatal(err)
		}
		// The lock file of a killed job can be locked in such a directory.
		if err := vfs.WriteFile(base, lockFile, nil, 0o666, true); err != nil {
			t.Fatal(err)
		}
		inject := vfs.NewInject(base)
		if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{kind}, Err: syscall.EACCES}); err != nil {
			t.Fatal(err)
		}
		wantError(t, newService(t, inject, 2, unwaiting(Latest)), fs.ErrPermission, "checkpoint service in /data/ckpt", "can't be written", "permission denied")
		wantError(t, newService(t, inject, 1, unwaiting(Latest)), syscall.EACCES)
		// A reader doesn't mind.
		reader := unwaiting(Latest)
		reader.Checkpoint.Every = 0
		if err := newService(t, inject, 2, reader); err != nil {
			t.Errorf("a reader: %v", err)
		}
	}
}

// As in a directory of a group, whose members may make and remove entries, but not in
// what others have made there.
func TestWhatAnotherUsersJobLeftStopsNoSave(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, unwaiting(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"step_20.publishing", "step_20.publishing/fields", "step_20.removing", "step_5.removing", "step_5.removing/fields"} {
		if err := base.Mkdir("/data/ckpt/"+dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"step_20.publishing/fields/T.bin", "step_20.removing/metadata.json", "step_5.removing/fields/T.bin"} {
		if err := vfs.WriteFile(base, "/data/ckpt/"+file, []byte("x"), 0o666, true); err != nil {
			t.Fatal(err)
		}
	}
	inject := vfs.NewInject(base)
	err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRemove}, Err: syscall.EACCES, Match: func(op vfs.Op) bool {
		return strings.HasSuffix(op.Name, "/fields/T.bin") || strings.HasSuffix(op.Name, ".removing/metadata.json")
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var log logs
		if err := withService(t, inject, 2, unwaiting(Latest), &log, nil); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"step_20.publishing", "step_5.removing", "permission denied"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log doesn't say %q:\n%s", want, log.String())
			}
		}
	}
	if err := withService(t, inject, 2, unwaiting(Latest), nil, steps(20)); err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, base, 1, "/data/ckpt/step_20", 20); err != nil {
		t.Error(err)
	}
}

// denyIn makes entries of directories unremovable, as for those who may not write these.
func denyIn(t testing.TB, base vfs.FS, kinds []vfs.Kind, dirs ...string) *vfs.Inject {
	t.Helper()
	inject := vfs.NewInject(base)
	err := inject.Fail(vfs.Rule{Kinds: kinds, Err: syscall.EACCES, Match: func(op vfs.Op) bool {
		for _, dir := range dirs {
			if filepath.Dir(op.Name) == dir {
				return true
			}
		}
		return false
	}})
	if err != nil {
		t.Fatal(err)
	}
	return inject
}

// A bundle that can't be removed, since it is read-only or another user's, keeps its
// name and its files. Others are removed, and the next start goes on.
func TestABundleThatCanNotBeRemovedKeepsItsName(t *testing.T) {
	removal := []vfs.Kind{vfs.OpRemove, vfs.OpRename, vfs.OpRenameNoReplace}
	for name, dirs := range map[string][]string{
		"nothing in it":    {"/data/ckpt/step_20.removing", "/data/ckpt/step_20.removing/fields"},
		"none of its data": {"/data/ckpt/step_20.removing/fields"},
		"all but its data": {"/data/ckpt/step_20.removing"},
	} {
		t.Run(name, func(t *testing.T) {
			base := newFS(t)
			if err := withService(t, base, 2, unwaiting(""), nil, steps(10, 20)); err != nil {
				t.Fatal(err)
			}
			before := fmt.Sprint(base.Dump())
			inject := denyIn(t, base, removal, dirs...)
			cfg := unwaiting(Latest)
			cfg.Checkpoint.Keep = 1
			var log logs
			if err := withService(t, inject, 2, cfg, &log, steps(30, 40, 50)); err != nil {
				t.Fatal(err)
			}
			wantNames(t, base, "step_20", "step_50")
			if err := loadStep(t, base, 2, "/data/ckpt/step_20", 20); err != nil {
				t.Errorf("%v\nbefore: %v\nafter: %v", err, before, base.Dump())
			}
			if n := strings.Count(log.String(), "step_20 stays"); n != 1 {
				t.Errorf("%d warnings, want 1 of this job:\n%s", n, log.String())
			}
			// It is no obstacle to the next start, which warns again, nor to its restart.
			var next logs
			if err := withService(t, inject, 2, cfg, &next, steps(60)); err != nil {
				t.Fatal(err)
			}
			wantNames(t, base, "step_20", "step_60")
			if !strings.Contains(next.String(), "step_20 stays") {
				t.Errorf("the next job doesn't warn:\n%s", next.String())
			}
		})
	}
}

// A machine that crashes while a removal is tried and undone has the bundle whole, or
// under a name of which nobody restarts.
func TestACrashWhileARemovalIsUndoneHarmsNoBundle(t *testing.T) {
	base := newFS(t)
	if err := base.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting("")
	cfg.Checkpoint.Keep = 1
	if err := withService(t, base, 1, cfg, nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	inject := denyIn(t, base, []vfs.Kind{vfs.OpRemove, vfs.OpRename}, "/data/ckpt/step_10.removing")
	crashes := 0
	inject.After(func(op vfs.Op, err error) {
		if op.Kind.Reads() {
			return
		}
		for _, o := range crashStates() {
			crashes++
			fsys := base.CrashClone(o)
			entries, err := fsys.ReadDir("/data/ckpt")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if _, ok := ParseStepName(e.Name()); !ok {
					continue
				}
				b, err := openBundle(fsys, "/data/ckpt/"+e.Name())
				if err == nil {
					err = errors.Join(b.Verify(context.Background(), nil), b.Close())
				}
				if err != nil {
					t.Fatalf("after %v, %v: %v", op, o, err)
				}
			}
		}
	})
	cfg.RestartFrom = Latest
	if err := withService(t, inject, 1, cfg, nil, steps(20)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, base, "step_10", "step_20")
	if crashes < 20 {
		t.Errorf("only %d crash states", crashes)
	}
}

// Another process has a field open on a network filesystem: its file stays under
// another name, and so does the directory, of which most is gone by then.
func TestAHalfRemovedBundleGetsNoGoodNameBack(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, unwaiting(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRemove}, Pattern: "/data/ckpt/step_*.removing/fields", Err: syscall.ENOTEMPTY}); err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting(Latest)
	cfg.Checkpoint.Keep = 1
	for i, n := range []int64{20, 30} {
		var log logs
		if err := withService(t, inject, 2, cfg, &log, steps(n)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "step_10.removing") {
			t.Errorf("start %d: no warning:\n%s", i, log.String())
		}
	}
	wantNames(t, base, "step_30", "step_10.removing", "step_20.removing")
	// When the other process has closed it, the next start clears up.
	if err := withService(t, base, 2, cfg, nil, nil); err != nil {
		t.Fatal(err)
	}
	wantNames(t, base, "step_30")
}

// A bundle that can't be looked at is no reason to keep all others.
func TestPruningGoesOnPastABundleThatCanNotBeRead(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, unwaiting(""), nil, steps(10, 20, 30)); err != nil {
		t.Fatal(err)
	}
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpOpen}, Pattern: "/data/ckpt/step_20/metadata.json", Err: syscall.EACCES}); err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting(Latest)
	cfg.Checkpoint.Keep = 1
	var log logs
	if err := withService(t, inject, 2, cfg, &log, steps(40, 50)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, base, "step_20", "step_50")
	if n := strings.Count(log.String(), "old bundles stay"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
}

// A reader names what is damaged and leaves it, whether it may write or not.
func TestAServiceThatIsOffChangesNothing(t *testing.T) {
	for name, opts := range map[string][]Option{"": nil, "in place": {InPlace()}} {
		t.Run(name, func(t *testing.T) {
			base := newFS(t)
			if err := withService(t, base, 2, unwaiting(""), nil, steps(10, 20, 30)); err != nil {
				t.Fatal(err)
			}
			damages["a bit of a field flipped"](t, base, "/data/ckpt/step_30")
			for _, dir := range []string{"step_40.publishing", "step_5.removing"} {
				if err := base.Mkdir("/data/ckpt/"+dir, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			inject := vfs.NewInject(base)
			err := inject.Fail(vfs.Rule{Err: syscall.EROFS, Match: func(op vfs.Op) bool { return !op.Kind.Reads() }})
			if err != nil {
				t.Fatal(err)
			}
			before := base.Dump()
			cfg := unwaiting(Latest)
			cfg.Checkpoint.Every = 0
			var log logs
			err = withService(t, inject, 3, cfg, &log, func(s session) error {
				return s.c.Agree(context.Background(), s.solver.check(20))
			}, opts...)
			if err != nil {
				t.Fatal(err)
			}
			sameFiles(t, base, before)
			if text := log.String(); strings.Count(text, "damaged bundle") != 1 || !strings.Contains(text, "step_30") || !strings.Contains(text, "checksum") {
				t.Errorf("the log doesn't name the damaged bundle once:\n%s", text)
			}
		})
	}
}

// A program that calls Save itself sets aside what it passed over when it begins to
// save: the bundles would be in its way.
func TestTheFirstSaveSetsAsideWhatTheRestartPassedOver(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, unwaiting(""), nil, steps(10, 20, 30)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"step_20", "step_30"} {
		damages["a bit of a field flipped"](t, fsys, "/data/ckpt/"+name)
	}
	cfg := unwaiting(Latest)
	cfg.Checkpoint.Every = 0
	err := withService(t, fsys, 2, cfg, nil, func(s session) error {
		ctx := context.Background()
		if s.c.Rank() == 0 { // meanwhile another job has put a good one in one's place
			other := unwaiting(Latest)
			if err := withService(t, fsys, 2, other, nil, steps(20)); err != nil {
				t.Error(err)
			}
			if err := fsys.Rename("/data/ckpt/step_30.damaged", "/data/ckpt/step_30"); err != nil {
				t.Error(err)
			}
		}
		if err := s.c.Agree(ctx, s.solver.advance(30)); err != nil {
			return err
		}
		_, err := s.service.Save(ctx, s.solver.solver())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10", "step_20", "step_20.damaged", "step_30", "step_30.damaged")
	for n := int64(20); n <= 30; n += 10 {
		if err := loadStep(t, fsys, 1, "/data/ckpt/"+StepName(n), n); err != nil {
			t.Error(err)
		}
	}
}

// The first Save of a service that was off clears up as the start of another one does.
func TestTheFirstSaveOfAServiceThatIsOffClearsUp(t *testing.T) {
	fsys := newFS(t)
	for _, dir := range []string{"/data/ckpt", "/data/ckpt/step_20.publishing", "/data/ckpt/step_5.removing"} {
		if err := fsys.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cfg := unwaiting("")
	cfg.Checkpoint.Every = 0
	err := withService(t, fsys, 2, cfg, nil, func(s session) error {
		if s.c.Rank() == 0 {
			wantNames(t, fsys, "step_20.publishing", "step_5.removing")
		}
		_, err := saveAs(s, 10, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10")
}

// Bundles above the one that was saved are not counted: that one would be removed.
func TestPruningLeavesWhatIsAboveTheSavedBundle(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, unwaiting(""), nil, steps(10, 40, 50)); err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting("/data/ckpt/step_10")
	cfg.Checkpoint.Every, cfg.Checkpoint.Keep = 0, 1
	err := withService(t, fsys, 2, cfg, nil, func(s session) error {
		_, err := saveAs(s, 20, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_20", "step_40", "step_50")
}

// Somebody who copies a bundle may hold its lock: it is removed when he is done.
func TestPruningComesBackToABundleThatSomebodyHolds(t *testing.T) {
	fsys := newFS(t)
	cfg := unwaiting("")
	cfg.Checkpoint.Keep = 1
	var log logs
	err := withService(t, fsys, 2, cfg, &log, func(s session) error {
		if err := steps(10)(s); err != nil {
			return err
		}
		var lock vfs.Lock
		if s.c.Rank() == 0 {
			var err error
			if lock, err = fsys.Lock("/data/ckpt/step_10" + suffixLock); err != nil {
				t.Error(err)
			}
		}
		if err := steps(20)(s); err != nil {
			return err
		}
		if s.c.Rank() == 0 {
			wantNames(t, fsys, "step_10", "step_10"+suffixLock, "step_20", directoryLock)
			if err := lock.Release(); err != nil {
				t.Error(err)
			}
		}
		return steps(30)(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_30")
	if got := warnings(&log); got != nil {
		t.Errorf("warnings %q", got)
	}
}

func TestPruningWithoutLocksRemovesBundles(t *testing.T) {
	fsys := newFS(t)
	cfg := unwaiting("")
	cfg.Checkpoint.Keep = 1
	if err := withService(t, noLocks(t, fsys), 2, cfg, nil, steps(10, 20, 30)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_30")
}

// An attempt of a removal that can't be undone leaves a bundle that isn't whole: it gets
// no good name.
func TestAnAttemptThatCanNotBeUndoneGivesNoNameBack(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, unwaiting(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	inject := vfs.NewInject(base)
	err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRename}, Err: syscall.EIO, Match: func(op vfs.Op) bool {
		return op.Name == "/data/ckpt/step_10.removing/fields/.removing"
	}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting(Latest)
	cfg.Checkpoint.Keep = 1
	var log logs
	if err := withService(t, inject, 2, cfg, &log, steps(20)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, base, "step_10.removing", "step_20")
	if got := warnings(&log); len(got) != 1 || !strings.Contains(got[0], "step_10.removing") {
		t.Errorf("warnings %q", got)
	}
}

// A leftover of another user's removal has the name under which bundles are removed.
func TestPruningGetsPastWhatAnotherRemovalLeft(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, unwaiting(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	if err := base.Mkdir("/data/ckpt/step_10.removing", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(base, "/data/ckpt/step_10.removing/T.bin", nil, 0o666, true); err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting(Latest)
	cfg.Checkpoint.Keep = 1
	if err := withService(t, denyIn(t, base, []vfs.Kind{vfs.OpRemove}, "/data/ckpt/step_10.removing"), 2, cfg, nil, steps(20)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, base, "step_10.removing", "step_20")
}

func TestStepNames(t *testing.T) {
	for name, want := range map[string]int64{"step_0": 0, "step_10": 10, "step_9223372036854775807": math.MaxInt64} {
		if n, ok := ParseStepName(name); !ok || n != want || StepName(n) != name {
			t.Errorf("%s is %d, %t", name, n, ok)
		}
	}
	for _, name := range []string{"", "step_", "step_-1", "step_01", "step_+1", "step_1.removing", "Step_1", "step_9223372036854775808", "step_1e3"} {
		if n, ok := ParseStepName(name); ok {
			t.Errorf("%s is %d", name, n)
		}
	}
}

// Where there are no locks, the owner of a leftover may be alive.
func TestWithoutLocksLeftoversStay(t *testing.T) {
	fsys := newFS(t)
	for _, dir := range []string{"/data/ckpt", "/data/ckpt/step_20.publishing"} {
		if err := fsys.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var log logs
	if err := withService(t, noLocks(t, fsys), 2, unwaiting(""), &log, nil); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_20.publishing")
	if !strings.Contains(log.String(), "left alone: no file locks here") {
		t.Errorf("the log is\n%s", log.String())
	}
}

func TestACheckpointDirectoryThatIsAFileIsRefused(t *testing.T) {
	fsys := newFS(t)
	if err := vfs.WriteFile(fsys, "/data/ckpt", nil, 0o666, true); err != nil {
		t.Fatal(err)
	}
	wantError(t, newService(t, fsys, 2, unwaiting("")), nil, "/data/ckpt is not a directory")
}

// A bundle that a later version wrote may be good: it is in the way as such.
func TestAStartBelowABundleOfAnotherVersionIsRefused(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, unwaiting(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	damages["a digit of the version flipped"](t, fsys, "/data/ckpt/step_20")
	if err := fsys.Remove("/data/ckpt/step_20/checksums.txt"); err != nil {
		t.Fatal(err)
	}
	wantError(t, newService(t, fsys, 2, unwaiting("/data/ckpt/step_10")), ErrExists, "step_20")
}

// A bundle that changes between the look at it and the load in place leaves undefined
// fields: nothing is loaded over them without a word.
func TestLatestStopsWhenTheFieldsAreUndefined(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 1, unwaiting(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	const file = "/data/ckpt/step_20/fields/T.bin"
	inject := vfs.NewInject(base)
	opens := 0
	inject.Before(func(op vfs.Op) {
		if op.Kind != vfs.OpOpen || op.Name != file {
			return
		}
		if opens++; opens == 2 {
			damages["a bit of a field flipped"](t, base, "/data/ckpt/step_20")
		}
	})
	err := newService(t, inject, 1, unwaiting(Latest), InPlace())
	wantError(t, err, ErrFieldsUndefined, "step_20/fields/T.bin", "checksum")
	wantNames(t, base, "step_10", "step_20")
}
