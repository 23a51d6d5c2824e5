package mpitest

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
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
	rank := processRank()
	_, started, err := processState("self")
	if err != nil {
		started = "unknown" // no /proc here
	}
	if err := publishFile(rankFile(dir, rank, "pid"), fmt.Sprint(os.Getpid(), " ", started)); err != nil {
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

// processRank is the number of this rank before MPI says so.
func processRank() int {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK"} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
	}
	return 0
}

// publishFile writes a file that is complete when it appears.
func publishFile(name, text string) error {
	temp := tempName(name)
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, name)
}

// processState is the state of a process, such as "R" or "Z", and the time at
// which it was started.
func processState(pid string) (state, started string, err error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", "", err
	}
	// The name before, in parentheses, may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", "", fmt.Errorf("/proc/%s/stat is %q", pid, stat)
	}
	return fields[0], fields[19], nil
}
