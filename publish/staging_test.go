package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/strictjson"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// otherJob is what a second job does to the staging directory of step_1 while the
// locks of the filesystem don't work.
type otherJob func(t *testing.T, fsys *vfs.Mem)

const stagingPath = "/data/step_1.publishing"

func clearsStaging(t *testing.T, fsys *vfs.Mem) {
	if err := vfs.RemoveAll(fsys, stagingPath); err != nil {
		t.Error(err)
	}
}

func startsItsOwn(t *testing.T, fsys *vfs.Mem) {
	clearsStaging(t, fsys)
	err := errors.Join(fsys.Mkdir(stagingPath, 0o777), fsys.Mkdir(stagingPath+"/fields", 0o777))
	if err == nil {
		err = vfs.WriteFile(fsys, stagingPath+"/.owner", []byte("the other job"), 0o666, true)
	}
	if err == nil {
		err = vfs.WriteFile(fsys, stagingPath+"/fields/phi.bin", []byte("its field"), 0o666, true)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestWithoutLocksATakeoverAtAnyCallTearsNothing lets a second job clear or take
// the staging directory before each filesystem call of a publication, where locks
// don't work. The publication fails, or its bundle is whole; and what the other
// job made stays.
func TestWithoutLocksATakeoverAtAnyCallTearsNothing(t *testing.T) {
	jobs := map[string]otherJob{"clears": clearsStaging, "takes": startsItsOwn}
	for name, job := range jobs {
		t.Run(name, func(t *testing.T) {
			failures, successes := 0, 0
			for i := 1; ; i++ {
				base := newFS(t)
				inject := vfs.NewInject(base)
				if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpLock}, Err: vfs.ErrNoLocks}); err != nil {
					t.Fatal(err)
				}
				struck, cleared := false, false
				inject.Before(func(op vfs.Op) {
					switch {
					case op.Index == i:
						struck = true
						job(t, base)
					case op.Kind == vfs.OpRename && !struck:
						cleared = true
					}
				})
				err := saveStep(t, inject, 2, "/data", 1, impatient)
				if !struck {
					break
				}
				trace := strings.Join(inject.Trace(), "\n")
				if err == nil {
					successes++
					if err := loadStep(t, base, 1, "/data/step_1", 1); err != nil {
						t.Fatalf("call %d: success, but: %v\n%s", i, err, trace)
					}
				} else {
					failures++
					if ok, _ := vfs.Exists(base, "/data/step_1"); ok {
						t.Fatalf("call %d: %v, but the final path exists\n%s", i, err, trace)
					}
				}
				if name != "takes" || !cleared {
					continue // what stood there before is the publication's to clear
				}
				// Fields may meet there, but the checksums tell.
				owner, rerr := vfs.ReadFile(base, stagingPath+"/.owner", 1<<10)
				if rerr != nil || string(owner) != "the other job" {
					t.Fatalf("call %d (%v): the other job's staging directory has the owner %q, %v\n%s", i, err, owner, rerr, trace)
				}
			}
			if failures < 10 || successes < 3 {
				t.Errorf("%d failures and %d successes: the other job was not noticed", failures, successes)
			}
		})
	}
}

func TestADirectoryThatIsGoneOrAnotherJobsIsATakeover(t *testing.T) {
	for name, job := range map[string]otherJob{"gone": clearsStaging, "another job's": startsItsOwn} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			err := saveStep(t, fsys, 2, "/data", 1, OnStep(func(s Step, _ string) {
				if s == StepSynced {
					job(t, fsys)
				}
			}))
			wantError(t, err, ErrTakenOver, "/data/step_1")
			data, rerr := vfs.ReadFile(fsys, stagingPath+"/fields/phi.bin", 1<<10)
			if name != "gone" && (rerr != nil || string(data) != "its field") {
				t.Errorf("the other job's staging directory has %q, %v", data, rerr)
			}
		})
	}
}

func TestLeftoversUnderPrivateNamesAreCleared(t *testing.T) {
	nonce := strings.Repeat("0a", 16)
	left := []string{"step_1.publishing." + nonce, "step_1.removing." + nonce}
	foreign := []string{"step_1.publishing.mine", "step_1.removing.0a", "step_10.publishing." + nonce}
	make := func(t *testing.T) *vfs.Mem {
		fsys := newFS(t)
		for _, name := range append(left, foreign...) {
			if err := errors.Join(fsys.Mkdir("/data/"+name, 0o777), fsys.Mkdir("/data/"+name+"/fields", 0o777)); err != nil {
				t.Fatal(err)
			}
		}
		return fsys
	}
	check := func(t *testing.T, fsys *vfs.Mem, foreign []string) {
		for _, name := range left {
			if ok, _ := vfs.Exists(fsys, "/data/"+name); ok {
				t.Errorf("%s is still there", name)
			}
		}
		for _, name := range foreign {
			if ok, _ := vfs.Exists(fsys, "/data/"+name+"/fields"); !ok {
				t.Errorf("%s is gone", name)
			}
		}
	}
	t.Run("by the next publication", func(t *testing.T) {
		fsys := make(t)
		if err := saveStep(t, fsys, 2, "/data", 1); err != nil {
			t.Fatal(err)
		}
		check(t, fsys, foreign)
	})
	t.Run("by the next service", func(t *testing.T) {
		fsys := make(t)
		cfg := Config{Checkpoint: CheckpointConfig{Every: 1, Directory: "/data"}}
		if err := withService(t, fsys, 2, cfg, nil, nil); err != nil {
			t.Fatal(err)
		}
		check(t, fsys, foreign[:2])
		if ok, _ := vfs.Exists(fsys, "/data/"+foreign[2]); ok {
			t.Errorf("%s is still there", foreign[2])
		}
	})
}

func TestASidecarThatCouldNotBeReadIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		sidecar any
		want    string
	}{
		"panics":            {panicking{}, "no paper"},
		"too deeply nested": {nested(strictjson.MaxDepth + 1), "sidecar"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			before := fsys.Dump()
			err := saveWith(t, fsys, 1, "/data/b", func(_ *comm.Comm, s *State) (string, error) {
				s.Sidecar = tc.sidecar
				return "/data/b", nil
			})
			wantError(t, err, ErrInput, "sidecar", tc.want)
			sameFiles(t, fsys, before)
		})
	}
}

func TestASidecarHasAtMostTheBytesThatAreRead(t *testing.T) {
	text, err := encodeSidecar("four", len(`"four"`)+1)
	if err != nil || string(text) != "\"four\"\n" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := encodeSidecar("fives", len(`"four"`)+1); err == nil {
		t.Errorf("%q is taken", text)
	}
}

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("no paper") }

func nested(depth int) any {
	var v any
	for range depth {
		v = []any{v}
	}
	return v
}

func TestDirectoryPublishesASidecar(t *testing.T) {
	fsys := newFS(t)
	err := onRanks(t, 2, func(c *comm.Comm) error {
		meta := Metadata{Domain: testDomain, Fields: []string{"a"}}
		return Directory(context.Background(), c, "/data/b", meta, func(_ context.Context, dir string) error {
			if c.Rank() != 0 {
				return nil
			}
			return vfs.WriteFile(fsys, filepath.Join(dir, "a.bin"), make([]byte, testDomain.Cells()*8), 0o666, false)
		}, Filesystem(fsys), WithSidecar(map[string]int{"answer": 42}))
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBundle(fsys, "/data/b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	text, ok := b.Sidecar()
	if same, err := SameJSON(text, []byte(`{"answer": 42}`)); !ok || !same || err != nil {
		t.Errorf("the sidecar is %s, %v", text, err)
	}
	if err := b.Verify(context.Background(), nil); err != nil {
		t.Error(err)
	}
}

// What a network filesystem leaves of a removed file doesn't end a publication.
func TestDirectoryTakesWhatOtherProgramsLeave(t *testing.T) {
	fsys := newFS(t)
	meta := Metadata{Domain: testDomain, Fields: []string{"a"}}
	err := Directory(context.Background(), comm.Self(), "/data/b", meta, func(_ context.Context, dir string) error {
		return errors.Join(
			vfs.WriteFile(fsys, filepath.Join(dir, "a.bin"), make([]byte, testDomain.Cells()*8), 0o666, false),
			vfs.WriteFile(fsys, filepath.Join(dir, ".nfs00000000012a"), nil, 0o666, false))
	}, Filesystem(fsys))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := readStructure(fsys, "/data/b"); err != nil || s.info.Unlisted != nil {
		t.Errorf("got %+v, %v", s.info, err)
	}
}

func TestNilOptionsAreErrors(t *testing.T) {
	fsys := newFS(t)
	before := fsys.Dump()
	wantError(t, saveStep(t, fsys, 2, "/data", 1, nil), ErrInput, "option is nil")
	wantError(t, saveStep(t, fsys, 2, "/data", 1, Logger(nil)), ErrInput, "logger is nil")
	sameFiles(t, fsys, before)
}

func TestAServiceThatIsOffLeavesItsDirectoryAlone(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	if err := withService(t, fsys, 2, cfg, nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Mkdir("/data/ckpt/step_20.publishing", 0o777); err != nil {
		t.Fatal(err)
	}
	before := fsys.Dump()
	cfg.Checkpoint.Every = 0
	if err := withService(t, fsys, 2, cfg, nil, steps(10, 20)); err != nil {
		t.Error(err)
	}
	sameFiles(t, fsys, before)

	cfg.Checkpoint.Directory = "/data/other"
	err := withService(t, fsys, 2, cfg, nil, func(s session) error {
		if err := s.solver.advance(7); err != nil {
			return err
		}
		_, err := s.service.Save(context.Background(), s.solver.solver())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, fsys, 1, "/data/other/step_7", 7); err != nil {
		t.Error(err)
	}
}

func TestACallbackOfTheSolverThatFailsOnOneRankFailsTheSaveOnAll(t *testing.T) {
	for name, spoil := range map[string]func(v *Solver){
		"a sidecar that fails":       func(v *Solver) { v.Sidecar = func() (any, error) { return nil, errors.New("boom") } },
		"a sidecar that panics":      func(v *Solver) { v.Sidecar = func() (any, error) { panic("boom") } },
		"a sidecar of one rank only": func(v *Solver) { v.Sidecar = func() (any, error) { return "boom", nil } },
		"a clock that panics":        func(v *Solver) { v.Clock = panickingClock{} },
		"another increment":          func(v *Solver) { v.Clock = &testClock{increment: 0} },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			err := withService(t, fsys, 3, serviceConfig(""), nil, func(s session) error {
				if err := s.solver.advance(10); err != nil {
					return err
				}
				v := s.solver.solver()
				if s.c.Rank() == 1 {
					spoil(&v)
				}
				_, err := s.service.Save(context.Background(), v)
				return err
			})
			wantError(t, err, ErrInput, "rank 1")
			if errors.Is(err, comm.ErrDead) {
				t.Errorf("the ranks lost each other: %v", err)
			}
			wantNames(t, fsys)
		})
	}
}

type panickingClock struct{}

func (panickingClock) Accepted() (int64, float64)   { panic("boom") }
func (panickingClock) Restore(int64, float64) error { return nil }

func TestRanksThatDisagreeAboutInPlaceAreRefused(t *testing.T) {
	fsys := newFS(t)
	err := onRanks(t, 2, func(c *comm.Comm) error {
		opts := []Option{Filesystem(fsys)}
		if c.Rank() == 1 {
			opts = append(opts, InPlace())
		}
		_, err := NewService(context.Background(), c, serviceConfig(Latest), opts...)
		return err
	})
	wantError(t, err, ErrInput, "in place", "rank 1")
}

func TestASetAsideThatFailsAfterTheLoadSaysThatTheSolverChanged(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	damages["a field missing"](t, base, "/data/ckpt/step_20")
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRenameNoReplace, vfs.OpRename}}); err != nil {
		t.Fatal(err)
	}
	wantError(t, withService(t, inject, 2, serviceConfig(Latest), nil, nil), ErrFieldsUndefined, "step_10", "step_20")
}

func TestManyFieldsCostNoMoreCallsOfTheFilesystemThanTheirFiles(t *testing.T) {
	count := func(fields int) int {
		inject := vfs.NewInject(newFS(t))
		err := onRanks(t, 2, func(c *comm.Comm) error {
			var ids []string
			for i := range fields {
				ids = append(ids, fmt.Sprintf("f%03d", i))
			}
			s, err := newTestSolver(c, 1, ids...)
			if err == nil {
				err = s.advance(1)
			}
			if err := c.Agree(context.Background(), err); err != nil {
				return err
			}
			return SaveBundle(context.Background(), c, "/data/b", s.state(), Filesystem(inject))
		})
		if err != nil {
			t.Fatal(err)
		}
		return inject.Count()
	}
	// Create, stat, allocate, two writes and close; open and close by a rank that
	// hasn't created it; open, sync and close; a last look.
	const each = 12
	one, many := count(1), count(41)
	if most := one + 40*each; many > most {
		t.Errorf("1 and 41 fields take %d and %d calls: want at most %d for 41", one, many, most)
	}
}

// TestEveryFieldIsLookedAt before a bundle is published, whichever rank looks: one
// that was cut short after it was written is named, and so is a takeover that shows
// in the fields.
func TestEveryFieldIsLookedAt(t *testing.T) {
	for _, ranks := range []int{1, 2, 3} {
		for _, id := range []string{"phi", "T", ""} {
			t.Run(fmt.Sprintf("%d ranks, field %q", ranks, id), func(t *testing.T) {
				fsys := newFS(t)
				var once sync.Once // whoever comes first, before any rank looks
				err := saveStep(t, fsys, ranks, "/data", 1, OnStep(func(s Step, _ string) {
					if s != StepWritten {
						return
					}
					once.Do(func() {
						if id == "" {
							startsItsOwn(t, fsys)
							return
						}
						f, err := fsys.OpenFile(stagingPath+"/fields/"+id+".bin", os.O_RDWR, 0)
						if err == nil {
							err = errors.Join(f.Truncate(8), f.Close())
						}
						if err != nil {
							t.Error(err)
						}
					})
				}))
				if id == "" {
					wantError(t, err, ErrTakenOver)
				} else {
					wantError(t, err, brick.ErrSize, fmt.Sprintf("field %q", id))
				}
			})
		}
	}
}
