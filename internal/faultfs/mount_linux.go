package faultfs

import (
	"bytes"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed csrc/faultfs.c
var source []byte

// patience is ample for what happens at once, on a busy machine too.
const patience = time.Minute

// Mount shows the directory base at the directory at, until the end of the test. Both
// must exist. The test is skipped where that can't be had.
func Mount(tb testing.TB, base, at string, options ...Option) {
	tb.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		tb.Skipf("FUSE isn't to be had here: %v", err)
	} else {
		f.Close()
	}
	var output bytes.Buffer
	args := []string{base, at}
	for _, o := range options {
		args = append(args, string(o))
	}
	cmd := exec.Command(build(tb), args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait() // what it says is in the output
	}()
	tb.Cleanup(func() {
		// With what still has files open it would go on.
		unix.Unmount(at, unix.MNT_DETACH)
		cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			cmd.Process.Kill()
			<-ended
			tb.Errorf("the filesystem at %s didn't end by itself", at)
		}
		unmount(at)
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(Control(at).file()); err == nil {
			return
		}
		select {
		case <-ended:
			tb.Skipf("FUSE can't mount here: %s", bytes.TrimSpace(output.Bytes()))
		default:
		}
		if time.Now().After(deadline) {
			tb.Fatalf("nothing is mounted at %s", at)
		}
	}
}

// unmount takes away a mount whose process has ended. Who isn't root asks the helper of
// FUSE. Mostly there is none any more.
func unmount(at string) {
	if errors.Is(unix.Unmount(at, unix.MNT_DETACH), unix.EPERM) {
		_ = exec.Command("fusermount3", "-u", "-z", "-q", at).Run()
	}
}

// build compiles the filesystem.
func build(tb testing.TB) string {
	tb.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "fuse3").Output()
	if err != nil {
		tb.Skipf("libfuse3 isn't installed (libfuse3-dev and pkg-config are names of Debian 12): %v", err)
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		tb.Skipf("the filesystem needs a C compiler: %v", err)
	}
	dir := tb.TempDir()
	file, program := filepath.Join(dir, "faultfs.c"), filepath.Join(dir, "faultfs")
	if err := os.WriteFile(file, source, 0o666); err != nil {
		tb.Fatal(err)
	}
	args := []string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-o", program, file}
	if out, err := exec.Command("gcc", append(args, strings.Fields(string(flags))...)...).CombinedOutput(); err != nil {
		tb.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}
