package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/publish"
)

// usage is a command line, and what it comes to.
type usage struct {
	args   []string
	status int
	out    string // what standard output begins with; empty: nothing
	errors string // likewise
}

func TestUsage(t *testing.T) {
	checkUsage(t, []usage{
		{nil, 0, "fieldstone shows, lists, verifies and compares", ""},
		{[]string{"--help"}, 0, "fieldstone shows, lists, verifies and compares", ""},
		{[]string{"help", "diff"}, 0, "Compare the fields of two bundles", ""},
		{[]string{"show", "-h"}, 0, "Show what a bundle", ""},
		{[]string{"frobnicate"}, 2, "", "fieldstone: unknown command \"frobnicate\"\ntry 'fieldstone --help'\n"},
		{[]string{"verfy", "x"}, 2, "", "fieldstone: unknown command \"verfy\", did you mean verify?\n"},
		{[]string{"--frob"}, 2, "", "fieldstone: unknown flag: --frob\n"},
		{[]string{"ls", "--frob"}, 2, "", "fieldstone: unknown flag: --frob\ntry 'fieldstone ls --help'\n"},
		{[]string{"ls", "a", "b"}, 2, "", "fieldstone: ls: want one directory of bundles, got 2 arguments\n"},
		{[]string{"show"}, 2, "", "fieldstone: show: want a bundle"},
		{[]string{"show", "a", "b"}, 2, "", "fieldstone: show: want a bundle"},
		{[]string{"show", "--json=maybe", "a"}, 2, "", "fieldstone: invalid argument \"maybe\" for \"--json\" flag"},
		{[]string{"verify"}, 2, "", "fieldstone: verify: want a bundle"},
		{[]string{"verify", ""}, 2, "", "fieldstone: verify: an argument is empty\n"},
		{[]string{"version", "now"}, 2, "", "fieldstone: version: want no arguments, got 1 argument\n"},
		{[]string{"help"}, 0, "fieldstone shows, lists, verifies and compares", ""},
		{[]string{"help", "frobnicate"}, 2, "", "fieldstone: unknown command \"frobnicate\"\ntry 'fieldstone --help'\n"},
		{[]string{"help", "vrify"}, 2, "", "fieldstone: unknown command \"vrify\", did you mean verify?\n"},
		{[]string{"completion"}, 0, "Generate the autocompletion script", ""},
		{[]string{"completion", "bsh"}, 2, "", "fieldstone: unknown command \"bsh\", did you mean bash or zsh or fish?\n"},
		{[]string{"show", "--jsno", "a"}, 2, "", "fieldstone: unknown flag: --jsno, did you mean --json?\ntry 'fieldstone show --help'\n"},
		{[]string{"show", "--stat", "a"}, 2, "", "fieldstone: unknown flag: --stat, did you mean --stats?\n"},
		{[]string{"ls", "--verfiy"}, 2, "", "fieldstone: unknown flag: --verfiy, did you mean --verify?\n"},
		{[]string{"show", "-x", "a"}, 2, "", "fieldstone: unknown shorthand flag: 'x' in -x\n"},
		{[]string{"diff", "--rtol", "-1", "a", "b"}, 2, "", "fieldstone: diff: the relative tolerance is -1, want a finite number of at least 0\n"},
		{[]string{"diff", "--atol", "NaN", "a", "b"}, 2, "", "fieldstone: diff: the absolute tolerance is NaN, want"},
		{[]string{"diff", "--atol", "Inf", "a", "b"}, 2, "", "fieldstone: diff: the absolute tolerance is +Inf, want"},
		{[]string{"diff", "--rtol", "small", "a", "b"}, 2, "", "fieldstone: invalid argument \"small\" for \"--rtol\" flag"},
	})
}

func checkUsage(t *testing.T, list []usage) {
	t.Helper()
	for _, c := range list {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			o := run(t, c.args...)
			if o.status != c.status {
				t.Errorf("exit status %d, want %d", o.status, c.status)
			}
			for _, s := range []struct{ what, got, want string }{
				{"standard output", o.out, c.out}, {"standard error", o.errors, c.errors},
			} {
				if s.want == "" && s.got != "" || !strings.HasPrefix(s.got, s.want) {
					t.Errorf("%s is %q, want %q", s.what, s.got, s.want)
				}
			}
		})
	}
}

func TestHelpOfEachCommandSaysTheExitStatuses(t *testing.T) {
	names := []string{"show", "ls", "verify", "diff"}
	if h5.Enabled {
		names = append(names, "settings", "settings diff", "segments", "join", "xdmf")
	}
	for _, name := range names {
		o := mustRun(t, 0, append(strings.Fields(name), "--help")...)
		for _, want := range []string{"Exit status:", "Examples:", "--json"} {
			if !strings.Contains(o.out, want) && !(name == "xdmf" && want == "--json") { // XDMF is its output
				t.Errorf("%s --help has no %q", name, want)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if o := mustRun(t, 0, "completion", shell); !strings.Contains(o.out, "fieldstone") {
			t.Errorf("%s: %q", shell, o.out)
		}
	}
	// The last line of the hidden command has the directive to the shell:
	// directories, or no files.
	const directories, nothing, anything, runFiles = ":16\n", ":4\n", ":0\n", ":8\n"
	type completion struct {
		args []string
		want string
	}
	list := []completion{
		{[]string{"show", ""}, anything},
		{[]string{"show", "a", ""}, nothing},
		{[]string{"ls", ""}, directories},
		{[]string{"verify", "a", "b", ""}, anything},
		{[]string{"diff", "a", ""}, anything},
		{[]string{"diff", "a", "b", ""}, nothing},
		{[]string{"version", ""}, nothing},
		{[]string{""}, nothing},
	}
	if h5.Enabled {
		list = append(list, []completion{
			{[]string{"settings", ""}, runFiles},
			{[]string{"settings", "a", ""}, nothing},
			{[]string{"settings", "diff", "a", ""}, runFiles},
			{[]string{"join", "a", ""}, runFiles},
			{[]string{"xdmf", "a", ""}, runFiles},
			{[]string{"segments", ""}, directories},
			{[]string{"segments", "a", ""}, nothing},
		}...)
	}
	for _, c := range list {
		o := mustRun(t, 0, append([]string{"__complete"}, c.args...)...)
		if !strings.HasSuffix(o.out, c.want) {
			t.Errorf("completing %q: %q, want the directive %q", c.args, o.out, c.want)
		}
	}
	if o := mustRun(t, 0, "__complete", "ver"); !strings.Contains(o.out, "verify\t") || !strings.Contains(o.out, "version\t") {
		t.Errorf("completing ver: %q", o.out)
	}
}

// failing refuses to write.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		errors string
	}{
		{"a full disk is an error", &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}, 2, "fieldstone: write output: no space left on device\n"},
		{"a reader that has gone is none", &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, 141, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			results(t)
			remove(t, "results/ckpt/step_40") // or standard error would speak of it
			remove(t, "results/ckpt/step_30")
			for _, args := range [][]string{
				{"show", "results/ckpt/step_9"}, {"show", "--json", "results/ckpt"}, {"ls", "results/ckpt"}, {"ls", "--json", "results/ckpt"},
				{"verify", "results/ckpt/step_9"}, {"verify", "--json", "results/ckpt/step_9"},
				{"diff", "results/ckpt/step_9", "results/ckpt/step_10"}, {"version"}, {"completion", "bash"}, {"--help"},
				{}, {"help", "ls"}, {"completion"}, {"show", "results/ckpt"}, {"ls", "--verify", "results/ckpt"},
				{"diff", "results/ckpt", "results/ckpt"}, {"diff", "--json", "--rtol", "1", "results/ckpt", "results/ckpt"},
			} {
				var errors bytes.Buffer
				if got := execute(t.Context(), args, failing{c.err}, &errors); got != c.status || errors.String() != c.errors {
					t.Errorf("%q: exit status %d, %q; want %d, %q", args, got, errors.String(), c.status, c.errors)
				}
			}
		})
	}
}

func TestInterruption(t *testing.T) {
	results(t)
	remove(t, "results/ckpt/step_40") // or standard error would speak of it
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"verify", "results/ckpt"}, {"ls", "--verify", "results/ckpt"}, {"show", "--stats", "results/ckpt"},
		{"diff", "results/ckpt/step_9", "results/ckpt/step_10"},
	} {
		o := runContext(t, ctx, args...)
		if o.status != 130 || o.errors != "fieldstone: interrupted\n" || o.out != "" {
			t.Errorf("%q: exit status %d, %q and %q", args, o.status, o.out, o.errors)
		}
	}
}

// tool starts the test binary as the tool.
func tool(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), runAsTool+"=1")
	return c
}

// hole makes a bundle of 64 GiB of nothing, which takes long to read.
func hole(t *testing.T, dir string) {
	t.Helper()
	d := grid.Domain{Size: [3]int{2048, 2048, 2048}, Spacing: [3]float64{1, 1, 1}}
	text, err := publish.EncodeMetadata(publish.Metadata{Domain: d, Fields: []string{"f"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "metadata.json"), text)
	write(t, filepath.Join(dir, "checksums.txt"), fmt.Appendf(nil, "%016x  metadata.json\n%016x  fields/f.bin\n", pack.Sum(text), 0))
	write(t, filepath.Join(dir, "fields/f.bin"), nil)
	if err := os.Truncate(filepath.Join(dir, "fields/f.bin"), d.Cells()*8); err != nil {
		t.Fatal(err)
	}
}

func TestInterruptSignal(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{}.save(t, "small")
	hole(t, "large")
	c := tool(t, "verify", "small", "large")
	var errout bytes.Buffer
	c.Stderr = &errout
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The line of the first bundle comes while the second one is still read.
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "small: good") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v, want the exit status 130", err)
	}
	if len(rest) > 0 || errout.String() != "fieldstone: interrupted\n" {
		t.Errorf("%q and %q", rest, errout.String())
	}
}

func TestClosedPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{}.save(t, "b")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	c := tool(t, "show", "b")
	var errout bytes.Buffer
	c.Stdout, c.Stderr = w, &errout
	err = c.Run()
	if cerr := w.Close(); cerr != nil {
		t.Fatal(cerr)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%v, want an exit status", err)
	}
	if !strings.Contains(err.Error(), "broken pipe") && exit.ExitCode() != 141 {
		t.Errorf("%v, want the end by a broken pipe", err)
	}
	if errout.Len() > 0 {
		t.Errorf("standard error: %s", errout.String())
	}
}

func TestExitStatusOfTheProcess(t *testing.T) {
	results(t)
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"diff", "results/ckpt/step_9", "results/ckpt/step_10"}, 0},
		{[]string{"verify", "results/ckpt/step_40"}, 1},
		{[]string{"verify"}, 2},
	} {
		cmd := tool(t, c.args...)
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != c.want {
			t.Errorf("%q: exit status %d, want %d", c.args, got, c.want)
		}
	}
}
