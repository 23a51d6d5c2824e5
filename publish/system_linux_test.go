package publish

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountEnv is where a test that executes itself in a namespace of its own mounts
// its filesystem.
const mountEnv = "PUBLISH_TEST_MOUNT"

// withMount runs a test that may mount a filesystem of its own at dir: it
// executes the test again in a new mount namespace, a private one, so that
// nothing stays mounted however the test ends. Without being root that takes a
// user namespace. It returns false where there is neither; the caller then must
// test in another way.
//
// test runs in the namespace, and on the ranks that it launches, where mount does
// nothing.
func withMount(t *testing.T, test func(t *testing.T, dir string, mount func(kind, options string))) bool {
	t.Helper()
	switch dir := os.Getenv(mountEnv); {
	case dir == "":
		return inNamespace(t)
	case os.Getenv(sharedEnv) != "": // a rank of a launch in the namespace
		test(t, dir, func(string, string) {})
	default:
		t.Setenv(sharedEnv, dir)
		test(t, dir, func(kind, options string) {
			t.Helper()
			if err := unix.Mount(kind, dir, kind, 0, options); err != nil {
				t.Fatalf("mount a %s of %s: %v", kind, options, err)
			}
			t.Cleanup(func() {
				if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
		})
	}
	return true
}

// inNamespace executes the test in a namespace, and fails it if it fails there.
func inNamespace(t *testing.T) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	var refused []error
	for _, attr := range []*syscall.SysProcAttr{
		{Unshareflags: syscall.CLONE_NEWNS},
		{
			Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings:  []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings:  []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		},
	} {
		cmd := exec.Command(self, "-test.run="+pattern, "-test.v=true", "-test.count=1")
		cmd.Env = append(os.Environ(), mountEnv+"="+dir)
		cmd.SysProcAttr = attr
		output, err := cmd.CombinedOutput()
		if _, started := errors.AsType[*exec.ExitError](err); err != nil && !started {
			refused = append(refused, err)
			continue
		}
		if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()) {
			t.Errorf("in a mount namespace: %v\n%s", err, output)
		} else if testing.Verbose() {
			t.Logf("in a mount namespace:\n%s", output)
		}
		return true
	}
	t.Logf("no namespace for a mount here: %v", refused)
	return false
}

func remountReadOnly(dir string) error {
	return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o666) }
