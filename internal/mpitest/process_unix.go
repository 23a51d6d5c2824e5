//go:build unix

package mpitest

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command, when it is started, the first of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// send sends a signal to a process, or to the group of a negative number.
func send(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }
