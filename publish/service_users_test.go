//go:build unix

package publish

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

const (
	stranger    = 54321 // the id of another user, and of the group of the directory
	strangerEnv = "FIELDSTONE_PUBLISH_TEST_STRANGER"
)

// TestTheOtherUser is what TestAnotherUserOfTheGroupGoesOn runs in a process of its own.
func TestTheOtherUser(t *testing.T) {
	dir := os.Getenv(strangerEnv)
	if dir == "" {
		return
	}
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(stranger), syscall.Setuid(stranger)); err != nil {
			t.Fatal(err)
		}
	}
	var log logs
	if err := withService(t, vfs.OS, 2, keepOneIn(dir), &log, steps(30, 40)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"step_20 stays", "step_5.removing", "step_30.removing."} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log doesn't say %q:\n%s", want, log.String())
		}
	}
}

func keepOneIn(dir string) Config {
	cfg := unwaiting(Latest)
	cfg.Checkpoint.Directory, cfg.Checkpoint.Keep = dir, 1
	return cfg
}

// A killed job of one user leaves locks, staging and bundles that others of the group
// can't write: as root these are another user's, otherwise what this one may not write.
func TestAnotherUserOfTheGroupGoesOn(t *testing.T) {
	dir, err := os.MkdirTemp("", "group")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { return os.Chmod(path, 0o777) })
		os.RemoveAll(dir)
	})
	if os.Getuid() == 0 {
		err = os.Chown(dir, -1, stranger)
	}
	if err := errors.Join(err, os.Chmod(dir, 0o2775)); err != nil {
		t.Fatal(err)
	}
	if err := withService(t, vfs.OS, 1, keepOneIn(dir), nil, steps(20)); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"step_30.publishing/fields/T.bin", "step_5.removing/fields/T.bin"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path(name)), 0o755), os.WriteFile(path(name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{directoryLock, "step_30" + suffixLock, "step_5" + suffixLock} {
		if err := errors.Join(os.WriteFile(path(name), nil, 0o644), os.Chmod(path(name), 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"step_20", "step_30.publishing", "step_5.removing"} {
		if err := errors.Join(os.Chmod(path(name+"/fields"), 0o555), os.Chmod(path(name), 0o555)); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestTheOtherUser$", "-test.v")
	cmd.Env = append(os.Environ(), strangerEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	var bundles []string
	for _, name := range names(t, vfs.OS, dir) {
		if _, ok := ParseStepName(name); ok {
			bundles = append(bundles, name)
		} else if strings.HasSuffix(name, ".lock") {
			t.Errorf("%s is left", name)
		}
	}
	if want := []string{"step_20", "step_40"}; !slices.Equal(bundles, want) {
		t.Errorf("the bundles are %q, want %q", bundles, want)
	}
	for _, n := range []int64{20, 40} {
		if err := loadStep(t, vfs.OS, 1, path(StepName(n)), n); err != nil {
			t.Error(fmt.Errorf("step %d: %w", n, err))
		}
	}
}
