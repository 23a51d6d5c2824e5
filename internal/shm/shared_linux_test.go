package shm_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/internal/shm"
)

// Another process opens the window by its name, and the two meet.
func TestProcessesShareAWindow(t *testing.T) {
	if name := os.Getenv("FIELDSTONE_TEST_WINDOW"); name != "" {
		kind := shm.Anonymous
		if strings.Contains(name, "/dev/shm") {
			kind = shm.Named
		}
		w, err := shm.Open(kind, name, 4096, 2)
		if err != nil {
			t.Fatal(err)
		}
		w.Bytes[1] = 2
		for range 100 {
			if _, err := w.Meet(time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if w.Bytes[0] != 1 {
			t.Errorf("byte 0 is %d", w.Bytes[0])
		}
		w.Fail()
		if failed, err := w.Meet(time.Minute); !failed || err != nil {
			t.Errorf("failed %v, %v", failed, err)
		}
		return
	}
	for _, kind := range []shm.Kind{shm.Anonymous, shm.Named} {
		w, name, err := shm.Create(kind, 4096, 2)
		if err != nil {
			t.Fatal(err)
		}
		w.Bytes[0] = 1
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcessesShareAWindow$")
		cmd.Env = append(os.Environ(), "FIELDSTONE_TEST_WINDOW="+name)
		out := new(strings.Builder)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := w.Meet(time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if w.Bytes[1] != 2 {
			t.Errorf("%v: byte 1 is %d", kind, w.Bytes[1])
		}
		if failed, err := w.Meet(time.Minute); !failed || err != nil {
			t.Errorf("%v: failed %v, %v", kind, failed, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", kind, err, out)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A directory of shared memory that is too small is an error when the window is
// made, not a signal when it is used; and nothing stays in it.
func TestASmallDirectoryOfSharedMemory(t *testing.T) {
	if os.Getenv("FIELDSTONE_TEST_SMALL") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestASmallDirectoryOfSharedMemory$", "-test.v")
		cmd.Env = append(os.Environ(), "FIELDSTONE_TEST_SMALL=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		switch {
		case errors.Is(err, syscall.EPERM) || strings.Contains(string(out), "cannot mount"):
			t.Logf("no filesystem can be mounted here: %v", err)
		case err != nil:
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("cannot mount: %v", err)
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("cannot mount: %v", err)
	}
	if _, _, err := shm.Create(shm.Named, 4<<20, 2); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error is %v, want ENOSPC", err)
	}
	if left, err := os.ReadDir("/dev/shm"); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	w, _, err := shm.Create(shm.Anonymous, 4<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Bytes {
		w.Bytes[i] = 1
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
