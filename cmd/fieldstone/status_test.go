package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The exit statuses are those of the table in docs/cli.md, no more and no less, and the
// help of the tool has them.
func TestExitStatusesAreDocumented(t *testing.T) {
	_, section, _ := strings.Cut(string(read(t, cliPage)), "## Exit statuses")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1])
	}
	var want []string
	help := mustRun(t, 0, "--help").out
	_, help, _ = strings.Cut(help, "Exit status:")
	for _, status := range []int{statusGood, statusBad, statusFailed, statusInterrupted, statusBrokenPipe} {
		want = append(want, fmt.Sprint(status))
		says(t, help, fmt.Sprint(status))
	}
	if !slices.Equal(documented, want) {
		t.Errorf("documented are %v, want %v", documented, want)
	}
}

// fullDisk runs the tool with standard output on a full disk.
func fullDisk(t *testing.T, args ...string) outcome {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no full disk here:", err)
	}
	defer full.Close()
	c := tool(t, args...)
	var errout bytes.Buffer
	c.Stdout, c.Stderr = full, &errout
	err = c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{c.ProcessState.ExitCode(), "", errout.String()}
}

func TestOutputToAFullDisk(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{}.save(t, "a/step_0")
	for _, args := range [][]string{{"show", "a"}, {"verify", "--json", "a"}, {"diff", "a", "a"}, {"ls", "a"}, {}} {
		if o := fullDisk(t, args...); o.status != statusFailed || o.errors != "fieldstone: write output: no space left on device\n" {
			t.Errorf("%q: exit status %d, %q", args, o.status, o.errors)
		}
	}
	// What writes nothing has nothing to fail with.
	if o := fullDisk(t, "diff", "-q", "a", "a"); o.status != statusGood || o.errors != "" {
		t.Errorf("exit status %d, %q", o.status, o.errors)
	}
}

func TestIsLoss(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {os.ErrClosed, false}, {syscall.EBADF, false}, {&os.PathError{Op: "close", Path: "/dev/stdout", Err: syscall.EDQUOT}, true},
		{syscall.ENOSPC, true}, {syscall.EIO, true},
	} {
		if got := isLoss(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}
