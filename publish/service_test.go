package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

func TestParseConfig(t *testing.T) {
	got, err := ParseConfig([]byte(`{"dt": 0.1, "restart_from": "results/ckpt/step_10",
		"checkpoint": {"every": 10, "directory": "results/ckpt", "keep": 3, "every_seconds": 600.5,
		"on_signal": ["SIGTERM", "SIGUSR1"], "superseded": "set_aside"}}`))
	want := Config{RestartFrom: "results/ckpt/step_10", Checkpoint: CheckpointConfig{
		Every: 10, EverySeconds: 600.5, Directory: "results/ckpt", OnSignal: []string{"SIGTERM", "SIGUSR1"}, Keep: 3, Superseded: SetAside}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v: want %+v", got, err, want)
	}
	for text, off := range map[string]bool{
		`{}`:                            true,
		`{"checkpoint": {}}`:            true,
		`{"checkpoint": {"every": 10}}`: true,
		`{"checkpoint": {"every": 0, "directory": "a"}}`:               true,
		`{"checkpoint": {"every": -1, "directory": "a"}}`:              true,
		`{"checkpoint": {"every": 1, "directory": ""}}`:                true,
		`{"checkpoint": {"every": 1, "directory": "a"}}`:               false,
		`{"checkpoint": {"every_seconds": 1, "directory": "a"}}`:       false,
		`{"checkpoint": {"on_signal": ["SIGTERM"], "directory": "a"}}`: false,
	} {
		c, err := ParseConfig([]byte(text))
		if err != nil || c.Checkpoint.off() != off {
			t.Errorf("%s: off is %t, %v: want %t", text, c.Checkpoint.off(), err, off)
		}
	}
}

func TestParseConfigNamesTheKeyThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "",
		`[]`:                               "object",
		`{"a": 1} x`:                       "after",
		`{"restart_from": 5}`:              "restart_from",
		`{"checkpoint": 5}`:                "checkpoint",
		`{"checkpoint": {"every": "ten"}}`: "checkpoint.every",
		`{"checkpoint": {"every": 1.5}}`:   "checkpoint.every",
		`{"checkpoint": {"evry": 1}}`:      "checkpoint.evry",
		`{"checkpoint": {"every": 1, "every": 2}}`:               "every",
		`{"checkpoint": {"keep": -1}}`:                           "checkpoint.keep",
		`{"checkpoint": {"on_signal": ["SIGKILL"]}}`:             "checkpoint.on_signal[0]",
		`{"checkpoint": {"on_signal": "SIGTERM"}}`:               "checkpoint.on_signal",
		`{"checkpoint": {"superseded": "delete"}}`:               "checkpoint.superseded",
		`{"checkpoint": {"every_seconds": 1e300}}`:               "checkpoint.every_seconds",
		`{"checkpoint": {"directory": "a\u0000"}}`:               "checkpoint.directory",
		`{"restart_from": "latest"}`:                             "checkpoint.directory",
		`{"restart_from": "latest", "checkpoint": {"every": 1}}`: "checkpoint.directory",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want an error about %q", text, err, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"restart_from": "latest", "checkpoint": {"every": 1, "directory": "a", "on_signal": ["SIGTERM"]}}`))
	f.Add([]byte(`{"checkpoint": {"every": 1e400}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := ParseConfig(data); err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("taken, but not valid: %v", err)
			}
		}
	})
}

// logs collects what all ranks log.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// session is a rank that has a service and a solver.
type session struct {
	c       *comm.Comm
	service *Service
	solver  *testSolver
	loaded  *Loaded
}

// withService starts a service with a restart on some ranks, and runs f.
func withService(t testing.TB, fsys vfs.FS, ranks int, cfg Config, log *logs, f func(s session) error, opts ...Option) error {
	t.Helper()
	return onRanks(t, ranks, func(c *comm.Comm) error {
		ctx := context.Background()
		solver, err := newTestSolver(c, 1, "phi", "T")
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		opts := append([]Option{Filesystem(fsys)}, opts...)
		if log != nil {
			opts = append(opts, Logger(slog.New(slog.NewTextHandler(log, nil))))
		}
		service, err := NewService(ctx, c, cfg, opts...)
		if err != nil {
			return err
		}
		defer service.Close()
		loaded, err := service.Restore(ctx, solver.solver())
		if err != nil {
			if loaded != nil {
				return fmt.Errorf("test: loaded and %w", err)
			}
			return err
		}
		if f == nil {
			return nil
		}
		return f(session{c, service, solver, loaded})
	})
}

func steps(n ...int64) func(s session) error {
	return func(s session) error {
		for _, i := range n {
			if err := s.c.Agree(context.Background(), s.solver.advance(i)); err != nil {
				return err
			}
			if _, err := s.service.MaybeSave(context.Background(), s.solver.solver()); err != nil {
				return err
			}
		}
		return nil
	}
}

func names(t testing.TB, fsys vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func wantNames(t testing.TB, fsys vfs.FS, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := names(t, fsys, "/data/ckpt"); !slices.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

func serviceConfig(restart string) Config {
	return Config{RestartFrom: restart, Checkpoint: CheckpointConfig{Every: 10, Directory: "/data/ckpt"}}
}

func TestTheServiceSavesMultiplesAndNeverIncrementZero(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 3, serviceConfig(""), nil, steps(0, 1, 9, 10, 11, 20, 25)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10", "step_20")
	if err := loadStep(t, fsys, 2, "/data/ckpt/step_10", 10); err != nil {
		t.Error(err)
	}
}

func TestLatestRestoresTheHighestIncrementByNumber(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.Every = 1
	if err := withService(t, fsys, 2, cfg, nil, steps(8, 9, 10)); err != nil {
		t.Fatal(err)
	}
	err := withService(t, fsys, 3, serviceConfig(Latest), nil, func(s session) error {
		if s.loaded == nil || s.loaded.Metadata.AcceptedIncrement != 10 || s.loaded.Path != "/data/ckpt/step_10" {
			return fmt.Errorf("loaded %+v", s.loaded)
		}
		return s.c.Agree(context.Background(), s.solver.check(10))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLatestRefusesABundleUnderTheNameOfAnotherIncrement(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Rename("/data/ckpt/step_10", "/data/ckpt/step_100"); err != nil {
		t.Fatal(err)
	}
	before := fsys.Dump()
	wantError(t, withService(t, fsys, 2, serviceConfig(Latest), nil, nil), ErrMismatch, "step_100", "increment 10")
	sameFiles(t, fsys, before)
}

func TestLatestInAnEmptyDirectoryIsAFreshStart(t *testing.T) {
	fsys := newFS(t)
	err := withService(t, fsys, 2, serviceConfig(Latest), nil, func(s session) error {
		if s.loaded != nil {
			return fmt.Errorf("loaded %+v", s.loaded)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	wantNames(t, fsys)
}

// damage spoils a bundle in one way.
func damage(t testing.TB, fsys vfs.FS, file string, change func(data []byte) []byte) {
	t.Helper()
	data, err := vfs.ReadFile(fsys, file, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if err := fsys.Remove(file); err != nil {
		t.Fatal(err)
	}
	if data = change(data); data == nil {
		return
	}
	if err := vfs.WriteFile(fsys, file, data, 0o666, true); err != nil {
		t.Fatal(err)
	}
}

var damages = map[string]func(t testing.TB, fsys vfs.FS, bundle string){
	"a bit of a field flipped": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/fields/T.bin", func(d []byte) []byte { d[77] ^= 4; return d })
	},
	"a field too short": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/fields/phi.bin", func(d []byte) []byte { return d[:len(d)-1] })
	},
	"a field too long": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/fields/phi.bin", func(d []byte) []byte { return append(d, 0) })
	},
	"a field missing": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/fields/phi.bin", func([]byte) []byte { return nil })
	},
	"a digit of the time flipped": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/metadata.json", func(d []byte) []byte {
			i := bytes.Index(d, []byte("accepted_time")) + len(`accepted_time": `)
			d[i] = '0' + (d[i]-'0'+1)%10
			return d
		})
	},
	"a digit of the version flipped": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/metadata.json", func(d []byte) []byte {
			return bytes.Replace(d, []byte(`"format_version": 2`), []byte(`"format_version": 3`), 1)
		})
	},
	"a digit of a dimension flipped": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/metadata.json", func(d []byte) []byte {
			return bytes.Replace(d, []byte(`[5, 7, 3]`), []byte(`[5, 7, 2]`), 1)
		})
	},
	"metadata truncated": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/metadata.json", func(d []byte) []byte { return d[:len(d)/2] })
	},
	"metadata missing": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/metadata.json", func([]byte) []byte { return nil })
	},
	"checksums cut short": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/checksums.txt", func(d []byte) []byte { return d[:len(d)-30] })
	},
	"checksums missing": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/checksums.txt", remove)
	},
	"a checksum changed": func(t testing.TB, fsys vfs.FS, b string) {
		damage(t, fsys, b+"/checksums.txt", func(d []byte) []byte { d[0] = "10"[d[0]&1]; return d })
	},
}

func TestLatestPassesOverDamagedBundlesAndSetsThemAside(t *testing.T) {
	for name, spoil := range damages {
		for _, opts := range [][]Option{nil, {InPlace()}} {
			t.Run(fmt.Sprintf("%s, %d options", name, len(opts)), func(t *testing.T) {
				fsys := newFS(t)
				if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10, 20, 30)); err != nil {
					t.Fatal(err)
				}
				spoil(t, fsys, "/data/ckpt/step_30")
				if err := fsys.Mkdir("/data/ckpt/step_30.damaged", 0o777); err != nil {
					t.Fatal(err)
				}
				var log logs
				err := withService(t, fsys, 3, serviceConfig(Latest), &log, func(s session) error {
					if err := s.c.Agree(context.Background(), s.solver.check(20)); err != nil {
						return err
					}
					return steps(30)(s)
				}, opts...)
				if err != nil {
					t.Fatal(err)
				}
				wantNames(t, fsys, "step_10", "step_20", "step_30", "step_30.damaged", "step_30.damaged.2")
				if !strings.Contains(log.String(), "step_30") || !strings.Contains(log.String(), "damaged") {
					t.Errorf("the log doesn't name the damaged bundle:\n%s", log.String())
				}
				if err := loadStep(t, fsys, 1, "/data/ckpt/step_30", 30); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestNoGoodBundleIsAnErrorAndChangesNothing(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	damages["a bit of a field flipped"](t, fsys, "/data/ckpt/step_10")
	damages["metadata truncated"](t, fsys, "/data/ckpt/step_20")
	before := fsys.Dump()
	err := withService(t, fsys, 2, serviceConfig(Latest), nil, nil)
	wantError(t, err, ErrDamaged, "step_10", "step_20", "none of the 2")
	sameFiles(t, fsys, before)
}

func TestAnotherGridOrMethodOrVersionIsNotPassedOver(t *testing.T) {
	for name, change := range map[string]func(s *Solver){
		"method": func(s *Solver) { s.Method = "rk4" },
		"field":  func(s *Solver) { s.Fields[0].ID = "psi" },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10)); err != nil {
				t.Fatal(err)
			}
			before := fsys.Dump()
			err := onRanks(t, 2, func(c *comm.Comm) error {
				ctx := context.Background()
				solver, err := newTestSolver(c, 1, "phi", "T")
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				service, err := NewService(ctx, c, serviceConfig(Latest), Filesystem(fsys))
				if err != nil {
					return err
				}
				defer service.Close()
				v := solver.solver()
				if c.Rank() == 1 || name == "field" {
					change(&v)
				}
				_, err = service.Restore(ctx, v)
				if solver.clock != (testClock{}) || solver.results != 0 {
					return errors.New("test: clock or counter changed")
				}
				return err
			})
			wantError(t, err, ErrMismatch)
			sameFiles(t, fsys, before)
		})
	}
	t.Run("format version", func(t *testing.T) {
		fsys := newFS(t)
		if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
			t.Fatal(err)
		}
		var old, changed uint64
		damage(t, fsys, "/data/ckpt/step_20/metadata.json", func(d []byte) []byte {
			old = pack.Sum(d)
			d = bytes.Replace(d, []byte(`"format_version": 2`), []byte(`"format_version": 3`), 1)
			changed = pack.Sum(d)
			return d
		})
		damage(t, fsys, "/data/ckpt/step_20/checksums.txt", func(d []byte) []byte {
			return bytes.Replace(d, fmt.Appendf(nil, "%016x", old), fmt.Appendf(nil, "%016x", changed), 1)
		})
		before := fsys.Dump()
		wantError(t, withService(t, fsys, 2, serviceConfig(Latest), nil, nil), ErrVersion, "step_20", "3")
		sameFiles(t, fsys, before)
	})
}

func TestAStartBelowGoodBundlesIsRefusedOrSetsThemAside(t *testing.T) {
	for _, from := range []string{"", "/data/ckpt/step_10"} {
		t.Run("from "+path.Base(from), func(t *testing.T) {
			fsys := newFS(t)
			if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10, 20, 30, 40)); err != nil {
				t.Fatal(err)
			}
			damages["metadata missing"](t, fsys, "/data/ckpt/step_40")
			before := fsys.Dump()
			err := withService(t, fsys, 2, serviceConfig(from), nil, nil)
			wantError(t, err, ErrExists, "/data/ckpt/step_20", "/data/ckpt/step_30", "set_aside")
			sameFiles(t, fsys, before)

			cfg := serviceConfig(from)
			cfg.Checkpoint.Superseded = SetAside
			if err := withService(t, fsys, 3, cfg, nil, steps(20)); err != nil {
				t.Fatal(err)
			}
			want := []string{"step_20", "step_20.superseded", "step_30.superseded", "step_40.damaged"}
			if from == "" {
				want = append(want, "step_10.superseded")
			} else {
				want = append(want, "step_10")
			}
			wantNames(t, fsys, want...)
			if err := loadStep(t, fsys, 2, "/data/ckpt/step_20.superseded", 20); err != nil {
				t.Errorf("a bundle that was set aside: %v", err)
			}
		})
	}
}

func TestKeepRemovesTheOldestGoodBundles(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.Keep = 2
	if err := withService(t, fsys, 2, cfg, nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	damages["a field too short"](t, fsys, "/data/ckpt/step_20")
	cfg.RestartFrom = "/data/ckpt/step_10"
	// Whatever else lies in the directory isn't the service's to remove.
	for _, dir := range []string{"step_5.mine", "step_007", "notes", "step_5.superseded"} {
		if err := fsys.Mkdir("/data/ckpt/"+dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := withService(t, fsys, 2, cfg, nil, steps(20)); err != nil {
		t.Fatal(err)
	}
	others := []string{"step_5.mine", "step_007", "notes", "step_5.superseded", "step_20.damaged"}
	wantNames(t, fsys, append(others, "step_10", "step_20")...)
	cfg.RestartFrom = Latest
	if err := withService(t, fsys, 2, cfg, nil, steps(30, 40)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, append(others, "step_30", "step_40")...)
}

// A copy that isn't complete is no good bundle, so it is none of those that are kept.
func TestKeepDoesNotCountABundleWithoutItsChecksums(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.Keep = 2
	err := withService(t, fsys, 1, cfg, nil, func(s session) error {
		if err := steps(10, 20)(s); err != nil {
			return err
		}
		damages["checksums missing"](t, fsys, "/data/ckpt/step_20")
		return steps(30)(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10", "step_20", "step_30")
}

func TestKeepNeverRemovesWhatARunRestartedFromBeforeANewerIsDurable(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	cfg := serviceConfig(Latest)
	cfg.Checkpoint.Keep = 1
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync}, Pattern: "/data/ckpt/step_30.publishing/fields/*", Err: syscall.EIO}); err != nil {
		t.Fatal(err)
	}
	wantError(t, withService(t, inject, 2, cfg, nil, steps(30)), syscall.EIO)
	wantNames(t, base, "step_10", "step_20")
	inject.ClearRules()
	if err := withService(t, inject, 2, cfg, nil, steps(30)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, base, "step_30")
}

func TestKeepWithoutDurabilityIsRefused(t *testing.T) {
	cfg := serviceConfig("")
	cfg.Checkpoint.Keep = 1
	wantError(t, withService(t, newFS(t), 2, cfg, nil, nil, WithDurability(None)), ErrInput, "checkpoint.keep")
}

func TestLeftoversOfDeadJobsAreClearedAndThoseOfLivingOnesStay(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"step_20.publishing", "step_20.publishing/fields", "step_5.removing", "step_30.publishing", "notes.publishing"} {
		if err := fsys.Mkdir("/data/ckpt/"+dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"step_20.publishing/fields/T.bin", "step_5.removing/metadata.json", "step_40.publishing.lock"} {
		if err := vfs.WriteFile(fsys, "/data/ckpt/"+file, []byte("x"), 0o666, true); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := fsys.Lock("/data/ckpt/step_30.publishing.lock")
	if err != nil {
		t.Fatal(err)
	}
	var log logs
	if err := withService(t, fsys, 2, serviceConfig(Latest), &log, nil); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10", "step_30.publishing", "step_30.publishing.lock", "notes.publishing")
	for _, want := range []string{"step_20.publishing", "step_5.removing", "another job"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log doesn't say %q:\n%s", want, log.String())
		}
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestEverySecondsSavesByTheClockOfRankZero(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.Every, cfg.Checkpoint.EverySeconds = 0, 60
	err := withService(t, fsys, 3, cfg, nil, func(s session) error {
		now := s.service.since
		s.service.now = func() time.Time { return now }
		for n := range int64(10) {
			// Only rank 0's clock counts; the others' are far ahead.
			now = now.Add(25 * time.Second)
			if s.c.Rank() > 0 {
				now = now.Add(time.Hour)
			}
			if err := steps(n + 1)(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_3", "step_6", "step_9")
}

func TestASignalOnOneRankSavesAndStopsAllRanks(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.OnSignal = []string{"SIGTERM", "SIGUSR1"}
	usr1 := signalNamed(t, "SIGUSR1")
	err := withService(t, fsys, 3, cfg, nil, func(s session) error {
		ctx := context.Background()
		for n := int64(1); n <= 4; n++ {
			if err := s.c.Agree(ctx, s.solver.advance(n)); err != nil {
				return err
			}
			if n == 3 && s.c.Rank() == 2 {
				s.service.inbox <- usr1
			}
			out, err := s.service.MaybeSave(ctx, s.solver.solver())
			if err != nil {
				return err
			}
			want := Outcome{}
			if n == 3 {
				want = Outcome{Saved: true, Path: "/data/ckpt/step_3", Stop: true, Reason: "signal SIGUSR1"}
			}
			if out != want {
				return fmt.Errorf("step %d: outcome %+v, want %+v", n, out, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_3")
}

func TestARealSignalReachesTheService(t *testing.T) {
	cfg := serviceConfig("")
	cfg.Checkpoint.OnSignal = []string{"SIGUSR1"}
	usr1 := signalNamed(t, "SIGUSR1")
	err := withService(t, newFS(t), 1, cfg, nil, func(s session) error {
		if err := raise(usr1); err != nil {
			return err
		}
		deadline := time.Now().Add(patience)
		for n := int64(1); time.Now().Before(deadline); n++ {
			if err := s.solver.advance(n); err != nil {
				return err
			}
			out, err := s.service.MaybeSave(context.Background(), s.solver.solver())
			if err != nil {
				return err
			}
			if out.Stop && out.Reason == "signal SIGUSR1" {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return errors.New("the signal never came")
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAStopWithoutANewStepSavesNothingTwice(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.OnSignal = []string{"SIGTERM"}
	err := withService(t, fsys, 2, cfg, nil, func(s session) error {
		if err := steps(10)(s); err != nil {
			return err
		}
		if s.c.Rank() == 0 {
			s.service.inbox <- os.Signal(syscall.SIGTERM)
		}
		out, err := s.service.MaybeSave(context.Background(), s.solver.solver())
		if err == nil && (!out.Stop || out.Saved) {
			err = fmt.Errorf("outcome %+v: want a stop without a save", out)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// derivedClock has a time that follows from the increment.
type derivedClock struct {
	testClock
	step float64
}

func (c *derivedClock) TimeAt(n int64) float64 { return float64(n) * c.step }

func TestADerivedClockMustAgreeWithTheSavedTime(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		step float64
		ok   bool
	}{
		"the same up to rounding": {1. / 3 * (1 + 2e-10), true},
		"another step length":     {1. / 3 * (1 + 2e-9), false},
		"NaN":                     {nan(), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := onRanks(t, 2, func(c *comm.Comm) error {
				ctx := context.Background()
				solver, err := newTestSolver(c, 1, "phi", "T")
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				service, err := NewService(ctx, c, serviceConfig(Latest), Filesystem(fsys))
				if err != nil {
					return err
				}
				defer service.Close()
				clock := &derivedClock{step: tc.step}
				v := solver.solver()
				v.Clock = clock
				_, err = service.Restore(ctx, v)
				if err == nil && clock.time != testTime(10) {
					return fmt.Errorf("test: the clock has %v", clock.time)
				}
				if err != nil && clock.testClock != (testClock{}) {
					return fmt.Errorf("test: the clock changed")
				}
				return err
			})
			if tc.ok && err != nil {
				t.Error(err)
			}
			if !tc.ok {
				wantError(t, err, ErrMismatch, "accepted_time")
			}
		})
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestAWarningWhenTheNextBundleWillNotFit(t *testing.T) {
	fsys := newFS(t, vfs.Capacity(256<<10))
	var log logs
	save := func(n int64) func(s session) error {
		return func(s session) error {
			if err := s.solver.advance(n); err != nil {
				return err
			}
			v := s.solver.solver()
			v.Sidecar = func() (any, error) { return strings.Repeat("large ", 5000), nil }
			_, err := s.service.Save(context.Background(), v)
			return err
		}
	}
	if err := withService(t, fsys, 1, serviceConfig(""), &log, save(10)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "will not fit") {
		t.Fatalf("a warning too early:\n%s", log.String())
	}
	u, err := fsys.Usage("/")
	if err != nil {
		t.Fatal(err)
	}
	room := u.Total - u.Free + 8192
	if err := vfs.WriteFile(fsys, "/ballast", make([]byte, u.Free-room), 0o666, true); err != nil {
		t.Fatal(err)
	}
	if err := withService(t, fsys, 1, serviceConfig(Latest), &log, save(20)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "will not fit") {
		t.Errorf("no warning:\n%s", log.String())
	}
}

func TestRanksWithDifferentConfigurationsAreRefused(t *testing.T) {
	err := onRanks(t, 2, func(c *comm.Comm) error {
		cfg := serviceConfig("")
		cfg.Checkpoint.Every += int64(c.Rank())
		_, err := NewService(context.Background(), c, cfg, Filesystem(newFS(t)))
		return err
	})
	wantError(t, err, ErrInput, "configuration", "rank 1")
}
