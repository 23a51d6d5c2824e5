package publish

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// copyTree copies a directory.
func copyTree(t testing.TB, fsys vfs.FS, from, to string) {
	t.Helper()
	entries, err := fsys.ReadDir(from)
	if err == nil {
		err = fsys.Mkdir(to, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.IsDir() {
			copyTree(t, fsys, source, target)
			continue
		}
		data, err := vfs.ReadFile(fsys, source, 1<<20)
		if err == nil {
			err = vfs.WriteFile(fsys, target, data, 0o666, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// manyBundles is a checkpoint directory with the bundles step_1 to step_n.
func manyBundles(t testing.TB, n int) *vfs.Mem {
	t.Helper()
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.Every = 1
	if err := withService(t, fsys, 1, cfg, nil, steps(1)); err != nil {
		t.Fatal(err)
	}
	for k := 2; k <= n; k++ {
		copyTree(t, fsys, "/data/ckpt/step_1", fmt.Sprintf("/data/ckpt/step_%d", k))
	}
	return fsys
}

// ticking is a clock that goes on by a step at each call of the filesystem.
func ticking(inject *vfs.Inject, step time.Duration) func() time.Time {
	var ticks atomic.Int64
	inject.Before(func(vfs.Op) { ticks.Add(1) })
	return func() time.Time { return time.Unix(0, 0).Add(time.Duration(ticks.Load()) * step) }
}

func frozen() time.Time { return time.Unix(0, 0) }

// save saves some states whether they are due or not.
func save(s session, increments ...int64) error {
	for _, n := range increments {
		if err := s.c.Agree(context.Background(), s.solver.advance(n)); err != nil {
			return err
		}
		if _, err := s.service.Save(context.Background(), s.solver.solver()); err != nil {
			return err
		}
	}
	return nil
}

// A directory of many bundles, of which few are to be kept, keeps no save for long: each
// removes some of the oldest, and more than it adds, until all are gone.
func TestASaveRemovesABoundedNumberOfBundles(t *testing.T) {
	const many = 60
	for _, tc := range []struct {
		name        string
		step        time.Duration // of the clock, at each call
		least, most int           // bundles that a save removes
	}{
		{"slow disk", time.Second, pruneLeast, pruneLeast},
		{"busy disk", 5 * time.Millisecond, pruneLeast, 10},
		{"fast disk", 0, many, many},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := manyBundles(t, many)
			inject := vfs.NewInject(base)
			cfg := unwaiting("")
			cfg.Checkpoint.Keep = 2
			var log logs
			before := many
			clock := ticking(inject, tc.step)
			err := withService(t, inject, 2, unsaved(cfg), &log, func(s session) error {
				s.service.now = clock
				for n := int64(many + 1); n <= many+3; n++ {
					if err := save(s, n); err != nil {
						return err
					}
					if s.c.Rank() > 0 {
						continue
					}
					left := bundles(t, base)
					gone := before + 1 - len(left)
					if before = len(left); before > 2 && gone < tc.least || gone > tc.most {
						t.Errorf("step %d: %d bundles were removed, want %d to %d", n, gone, tc.least, tc.most)
					}
					if want := n - int64(len(left)) + 1; left[0] != want {
						t.Errorf("step %d: the oldest of %d bundles is step %d, want %d", n, len(left), left[0], want)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(log.String(), "left for the next saves"); said != (tc.most < many) {
				t.Errorf("it tells of bundles that are left: %t\n%s", said, log.String())
			}
		})
	}
}

// unsaved makes a service that restores nothing.
func unsaved(cfg Config) Config {
	cfg.RestartFrom = ""
	cfg.Checkpoint.Every = 0 // it is off until its first Save
	return cfg
}

// bundles are the increments of a directory's bundles, lowest first.
func bundles(t testing.TB, fsys vfs.FS) []int64 {
	t.Helper()
	o, _ := newOptions([]Option{Filesystem(fsys)})
	list, err := checkpoints{o: &o, dir: "/data/ckpt"}.steps()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(list)
	return list
}

// However many bundles are kept, a save looks at few of them.
func TestManyKeptBundlesCostASaveNothing(t *testing.T) {
	looks := func(many int) int {
		base := manyBundles(t, many)
		inject := vfs.NewInject(base)
		cfg := unwaiting("")
		cfg.Checkpoint.Keep = many - 2
		n := 0
		err := withService(t, inject, 1, unsaved(cfg), nil, func(s session) error {
			s.service.now = frozen
			// The first saves look at all of them.
			if err := save(s, int64(many+1), int64(many+2)); err != nil {
				return err
			}
			before := inject.Count()
			err := save(s, int64(many+3))
			n = inject.Count() - before
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if left := bundles(t, base); len(left) != many-2 {
			t.Errorf("%d bundles are left, want %d", len(left), many-2)
		}
		return n
	}
	if few, many := looks(20), looks(120); many > few {
		t.Errorf("a save makes %d calls in a directory of 120 bundles, %d in one of 20", many, few)
	}
}

// A bundle that can't be judged stays, and keeps no other one from being removed.
func TestPruningGoesOnAfterABundleThatItCanNotJudge(t *testing.T) {
	base := manyBundles(t, 6)
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Pattern: "/data/ckpt/step_4/metadata.json", Err: syscall.EIO}); err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting("")
	cfg.Checkpoint.Keep = 2
	var log logs
	if err := withService(t, inject, 2, unsaved(cfg), &log, func(s session) error { return save(s, 7, 8) }); err != nil {
		t.Fatal(err)
	}
	wantNames(t, base, "step_4", "step_7", "step_8")
	if n := strings.Count(log.String(), "step_4 can't be judged"); n != 1 || !strings.Contains(log.String(), "input/output error") {
		t.Errorf("it is told %d times:\n%s", n, log.String())
	}
}

// An error, and a line of the log, names few of thousands.
func TestOfManyBundlesFewAreNamed(t *testing.T) {
	base := manyBundles(t, 40)
	err := withService(t, base, 1, unwaiting(""), nil, nil)
	wantError(t, err, ErrExists, "step_40", "and 35 more")
	if len(err.Error()) > 500 {
		t.Errorf("%d bytes: %v", len(err.Error()), err)
	}
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Pattern: "metadata.json", Err: syscall.EIO, Match: func(op vfs.Op) bool { return !strings.Contains(op.Name, "step_41") }}); err != nil {
		t.Fatal(err)
	}
	cfg := unwaiting("")
	cfg.Checkpoint.Keep = 1
	var log logs
	if err := withService(t, inject, 1, unsaved(cfg), &log, func(s session) error {
		s.service.now = frozen
		return save(s, 41)
	}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "and 35 more") {
		t.Errorf("the log doesn't say that there are more:\n%s", log.String())
	}
}
