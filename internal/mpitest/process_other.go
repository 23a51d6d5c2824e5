//go:build !unix

package mpitest

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup does nothing: this system has no process groups.
func ownGroup(*exec.Cmd) {}

// send sends a signal to a process, or to the first of the group of a negative number.
func send(pid int, sig syscall.Signal) error {
	p, err := os.FindProcess(max(pid, -pid))
	if err != nil {
		return err
	}
	return p.Signal(sig)
}
