//go:build !unix

package main

import (
	"os/exec"
	"syscall"
	"time"
)

// ownGroup does nothing: this system has no process groups.
func ownGroup(*exec.Cmd) {}

// signalGroup ends a started command: there are no signals that could ask it to.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }

// childTime is not known here.
func childTime() time.Duration { return 0 }
