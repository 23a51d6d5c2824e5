//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// runAsOther runs the tool as a user to whom permissions apply, which is another one if
// the test runs as root. The current directory must be open to that user.
func runAsOther(t *testing.T, args ...string) outcome {
	t.Helper()
	if os.Geteuid() != 0 {
		return run(t, args...)
	}
	program := openProgram(t)
	// The way to the current directory must be open too.
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for at := here; at != filepath.Dir(at); at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o005 != 0o005 {
			if err := os.Chmod(at, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(at, info.Mode().Perm()) })
		}
	}
	const nobody = 65534
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), runAsTool+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out, errout bytes.Buffer
	c.Stdout, c.Stderr = &out, &errout
	err = c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{c.ProcessState.ExitCode(), out.String(), errout.String()}
}

// openProgram is a copy of the test binary that every user may run.
func openProgram(t *testing.T) string {
	t.Helper()
	const name = "program for all users"
	if prepared[name] == "" {
		dir, err := os.MkdirTemp("", "fieldstone")
		if err != nil {
			t.Fatal(err)
		}
		prepared[name] = dir
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(self)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := os.OpenFile(filepath.Join(dir, "fieldstone"), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(out, in)
		if err := errors.Join(err, out.Close(), os.Chmod(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(prepared[name], "fieldstone")
}
