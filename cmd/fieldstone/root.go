package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses. docs/cli.md has what they mean for each subcommand.
const (
	statusGood        = 0
	statusBad         = 1 // damaged, or different
	statusFailed      = 2 // wrong usage, or something can't be read
	statusInterrupted = 130
	statusBrokenPipe  = 141
)

// statusError ends a command with an exit status. Everything there is to say
// has been said already.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError is a mistake on the command line.
type usageError struct {
	error
	command string // "fieldstone diff"
}

// app is what the subcommands share.
type app struct {
	out *bufio.Writer
	err io.Writer
	// bars tells whether standard error is a terminal that can show progress.
	bars bool
}

// execute runs the command line and returns the exit status of the process.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := bufio.NewWriter(stdout)
	a := &app{out: out, err: stderr, bars: isTerminal(stderr)}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if ferr := out.Flush(); ferr != nil && !errors.Is(err, context.Canceled) {
		err = outputError(ferr)
	}
	return a.finish(err)
}

// outputError leaves out the name of standard output.
func outputError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("write output: %w", err)
}

// finish reports the outcome of a command and returns its exit status.
func (a *app) finish(err error) int {
	var status statusError
	var usage usageError
	switch {
	case err == nil:
		return statusGood
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, context.Canceled):
		a.complain("interrupted")
		return statusInterrupted
	case errors.Is(err, syscall.EPIPE):
		return statusBrokenPipe
	case errors.As(err, &usage):
		a.complain("%v", usage.error)
		fmt.Fprintf(a.err, "try '%s --help'\n", usage.command)
		return statusFailed
	}
	a.complain("%v", err)
	return statusFailed
}

// complain writes a line to standard error.
func (a *app) complain(format string, args ...any) {
	fmt.Fprintf(a.err, "fieldstone: %s\n", oneLine(fmt.Sprintf(format, args...)))
}

// report writes an error about a path to standard error.
func (a *app) report(command, path string, err error) {
	a.complain("%s %s: %s", command, path, reason(path, err))
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "fieldstone",
		Short: "Look at checkpoint bundles and the files of runs",
		Long: `fieldstone shows, lists, verifies and compares checkpoint bundles, and shows,
verifies, compares and joins the files of runs, if it was built with HDF5. It changes
none of them, and needs no MPI.

Exit status: 0 when all is well, 1 when something is damaged or differs,
2 for wrong usage or when something can't be read, 130 when interrupted.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misused(c, unknownCommand(c, args[0]))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return misused(c, errors.New("a command is missing"))
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return misused(c, err) })
	root.AddCommand(newShow(a), newLs(a), newVerify(a), newDiff(a),
		newSegments(a), newSettings(a), newJoin(a), newXDMF(a), newVersion(a))
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	return root
}

func misused(c *cobra.Command, err error) error {
	return usageError{error: err, command: c.CommandPath()}
}

func unknownCommand(c *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q", name)
	c.SuggestionsMinimumDistance = 2
	if s := c.SuggestionsFor(name); len(s) > 0 {
		text += ", did you mean " + strings.Join(s, " or ") + "?"
	}
	return errors.New(text)
}

// arguments makes a number of arguments, what they are called, a condition of a
// command.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return misused(c, fmt.Errorf("%s: want %s", c.Name(), what))
		case len(args) > most:
			return misused(c, fmt.Errorf("%s: want %s, got %s", c.Name(), what, count(int64(len(args)), "argument")))
		}
		for _, arg := range args {
			if arg == "" {
				return misused(c, fmt.Errorf("%s: an argument is empty", c.Name()))
			}
		}
		return nil
	}
}

// anyNumber is more arguments than a system takes.
const anyNumber = math.MaxInt

// completeBundles makes the shell offer directories for up to most arguments.
func completeBundles(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}

// completePaths makes the shell offer anything for up to most arguments.
func completePaths(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}
