package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// unreadableFiles are rules that make a part of step_30 unreadable.
func unreadableFiles(errno syscall.Errno) map[string]vfs.Rule {
	reads := []vfs.Kind{vfs.OpOpen, vfs.OpRead, vfs.OpReadAt}
	return map[string]vfs.Rule{
		"a field":       {Pattern: "/data/ckpt/step_30/fields/T.bin", Kinds: reads, Err: errno},
		"its metadata":  {Pattern: "/data/ckpt/step_30/metadata.json", Kinds: reads, Err: errno},
		"its checksums": {Pattern: "/data/ckpt/step_30/checksums.txt", Kinds: reads, Err: errno},
		"its directory": {Pattern: "/data/ckpt/step_30", Kinds: []vfs.Kind{vfs.OpStat, vfs.OpLstat}, Err: errno},
	}
}

// The newest bundle can't be read: the run goes on from the one before, says so, and has
// the place for its saves.
func TestLatestPassesOverABundleThatCanNotBeRead(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EACCES} {
		for name, rule := range unreadableFiles(errno) {
			for _, opts := range [][]Option{nil, {InPlace()}} {
				t.Run(fmt.Sprintf("%s, %v, %d options", name, errno, len(opts)), func(t *testing.T) {
					base := newFS(t)
					if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20, 30)); err != nil {
						t.Fatal(err)
					}
					inject := vfs.NewInject(base)
					if err := inject.Fail(rule); err != nil {
						t.Fatal(err)
					}
					var log logs
					err := withService(t, inject, 3, unwaiting(Latest), &log, func(s session) error {
						return s.c.Agree(context.Background(), s.solver.check(20))
					}, opts...)
					if err != nil {
						t.Fatal(err)
					}
					if said := log.String(); !strings.Contains(said, "passed over a bundle that can't be read") || !strings.Contains(said, errno.Error()) {
						t.Errorf("the log doesn't say so:\n%s", said)
					}
					// A rename needs no more of the bundle than its name.
					if name != "its directory" {
						wantNames(t, base, "step_10", "step_20", "step_30.damaged")
					}
					if err := loadStep(t, base, 2, "/data/ckpt/step_20", 20); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// One that can be read at the second try is taken.
func TestABundleThatCanBeReadAtTheSecondTryIsTaken(t *testing.T) {
	for name, rule := range unreadableFiles(syscall.EIO) {
		base := newFS(t)
		if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20, 30)); err != nil {
			t.Fatal(err)
		}
		inject := vfs.NewInject(base)
		rule.Times = 1
		if err := inject.Fail(rule); err != nil {
			t.Fatal(err)
		}
		err := withService(t, inject, 2, unwaiting(Latest), nil, func(s session) error {
			return s.c.Agree(context.Background(), s.solver.check(30))
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantNames(t, base, "step_10", "step_20", "step_30")
	}
}

// When nothing is left it is an error with the errno, no fresh start, and nothing changes.
func TestLatestWithoutABundleThatCanBeReadIsAnError(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	damages["a field missing"](t, base, "/data/ckpt/step_10")
	before := base.Dump()
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Pattern: "/data/ckpt/step_20/fields/*", Kinds: []vfs.Kind{vfs.OpOpen}}); err != nil {
		t.Fatal(err)
	}
	err := withService(t, inject, 2, unwaiting(Latest), nil, nil)
	wantError(t, err, syscall.EIO, "none of the 2 bundles in /data/ckpt is good", "step_20", "step_10", "input/output error")
	if errors.Is(err, ErrDamaged) {
		t.Errorf("%v: a bundle that can't be read is no damaged one", err)
	}
	sameFiles(t, base, before)
}

// What a process lacks says nothing of a bundle.
func TestALackOfDescriptorsPassesOverNothing(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	before := base.Dump()
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Pattern: "/data/ckpt/step_20/fields/*", Kinds: []vfs.Kind{vfs.OpOpen}, Err: syscall.EMFILE}); err != nil {
		t.Fatal(err)
	}
	wantError(t, withService(t, inject, 2, unwaiting(Latest), nil, nil), syscall.EMFILE, "step_20")
	sameFiles(t, base, before)
}

// A service that is off passes over it and leaves it where it is; when it saves, it sets it
// aside. One that can't be set aside keeps its name.
func TestABundleThatCanNotBeReadIsInNoSavesWay(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		base := newFS(t)
		if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20, 30)); err != nil {
			t.Fatal(err)
		}
		inject := vfs.NewInject(base)
		rules := []vfs.Rule{unreadableFiles(syscall.EIO)["a field"]}
		if stuck {
			rules = append(rules, vfs.Rule{Pattern: "/data/ckpt/step_30", Kinds: []vfs.Kind{vfs.OpRename, vfs.OpRenameNoReplace}})
		}
		for _, r := range rules {
			if err := inject.Fail(r); err != nil {
				t.Fatal(err)
			}
		}
		cfg := unwaiting(Latest)
		cfg.Checkpoint.Every = 0
		var log logs
		err := withService(t, inject, 2, cfg, &log, func(s session) error {
			wantNames(t, base, "step_10", "step_20", "step_30")
			return save(s, 25)
		})
		if err != nil {
			t.Errorf("stuck=%t: %v", stuck, err)
		}
		if stuck {
			wantNames(t, base, "step_10", "step_20", "step_25", "step_30")
		} else {
			wantNames(t, base, "step_10", "step_20", "step_25", "step_30.damaged")
		}
		if said := strings.Contains(log.String(), "nor be set aside"); said != stuck {
			t.Errorf("stuck=%t: the log says %s", stuck, log.String())
		}
	}
}

// A bundle above the wanted one that can't be read may be good: it is in the way as such.
func TestABundleThatCanNotBeReadIsInTheWay(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, serviceConfig(""), nil, steps(10, 20, 30)); err != nil {
		t.Fatal(err)
	}
	inject := vfs.NewInject(base)
	if err := inject.Fail(unreadableFiles(syscall.EIO)["its metadata"]); err != nil {
		t.Fatal(err)
	}
	wantError(t, withService(t, inject, 2, unwaiting("/data/ckpt/step_20"), nil, nil), ErrExists, "step_30")
	cfg := unwaiting("/data/ckpt/step_20")
	cfg.Checkpoint.Superseded = SetAside
	if err := withService(t, inject, 2, cfg, nil, nil); err != nil {
		t.Error(err)
	}
	wantNames(t, base, "step_10", "step_20", "step_30.superseded")
}
