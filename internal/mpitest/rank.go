package mpitest

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
)

// In a process that is a rank of a Job, init makes its number known, so that it
// can be signalled from the first moment, and lets SIGQUIT write its goroutines
// to a file: what it would print might be lost when the launcher ends the job.
func init() {
	dir := os.Getenv(envJob)
	if dir == "" {
		return
	}
	rank := 0
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK"} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			rank = n
			break
		}
	}
	if err := publishFile(rankFile(dir, rank, "pid"), strconv.Itoa(os.Getpid())); err != nil {
		fmt.Fprintln(os.Stderr, "mpitest:", err)
		os.Exit(1)
	}
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		for range quit {
			stack := make([]byte, 1<<20)
			stack = stack[:runtime.Stack(stack, true)]
			if err := publishFile(rankFile(dir, rank, "stack"), string(stack)); err != nil {
				fmt.Fprintln(os.Stderr, "mpitest:", err)
			}
		}
	}()
}

// publishFile writes a file that is complete when it appears.
func publishFile(name, text string) error {
	temp := tempName(name)
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
