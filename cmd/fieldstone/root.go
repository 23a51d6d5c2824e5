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

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		Short: withHDF5("Look at checkpoint bundles and the files of runs", "Look at checkpoint bundles"),
		Long: withHDF5(`fieldstone shows, lists, verifies and compares checkpoint bundles, and shows,
verifies, compares and joins the files of runs. It changes none of them, and needs no
MPI.
`, `fieldstone shows, lists, verifies and compares checkpoint bundles. It changes none of
them, and needs no MPI. This one was built without HDF5, so that it can't read the files
of runs.
`) + `
Exit status: 0 when all is well, 1 when something is damaged or differs, 2 for wrong
usage or when something can't be read or written, 130 when interrupted, 141 when the
reader of the output has gone.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misused(c, unknownCommand(c, args[0]))
			}
			return nil
		},
		// Who asks for nothing is shown what there is.
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return misused(c, unknownFlag(c, err)) })
	root.AddCommand(newShow(a), newLs(a), newVerify(a), newDiff(a), newVersion(a))
	if h5.Enabled {
		root.AddCommand(newSegments(a), newSettings(a), newJoin(a), newXDMF(a))
	} else {
		for _, name := range []string{"segments", "settings", "join", "xdmf"} {
			root.AddCommand(newLacking(name))
		}
	}
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, helpAbout
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, helpAboutShells
		}
	}
	return root
}

// helpAbout is the help about a command, which must be one.
func helpAbout(c *cobra.Command, args []string) error {
	about, rest, err := c.Root().Find(args)
	switch {
	case about.Hidden: // it only says why it is lacking
		return about.RunE(about, nil)
	case len(rest) > 0:
		return misused(c.Root(), unknownCommand(about, rest[0]))
	case err != nil:
		return misused(c.Root(), err)
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}

func helpAboutShells(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misused(c, unknownCommand(c, args[0]))
	}
	return c.Help()
}

// newLacking is in place of a command that needs HDF5, in a tool without it. It isn't
// listed, and says why when it is called all the same.
func newLacking(name string) *cobra.Command {
	err := fmt.Errorf("%s: %w", name, errNoHDF5)
	return &cobra.Command{
		Use:                name,
		Short:              err.Error(),
		Hidden:             true,
		DisableFlagParsing: true,
		ValidArgsFunction:  completeBundles(0),
		RunE:               func(*cobra.Command, []string) error { return err },
	}
}

// withHDF5 is the text of a tool with HDF5, or of one without.
func withHDF5(with, without string) string {
	if h5.Enabled {
		return with
	}
	return without
}

func misused(c *cobra.Command, err error) error {
	return usageError{error: err, command: c.CommandPath()}
}

func unknownCommand(c *cobra.Command, name string) error {
	return fmt.Errorf("unknown command %q%s", name, suggestion(suggested(c, name)))
}

// suggested are the commands below one whose names are near a word.
func suggested(c *cobra.Command, word string) []string {
	c.SuggestionsMinimumDistance = 2
	return c.SuggestionsFor(word)
}

func suggestion(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(words, " or ") + "?"
}

// unknownFlag adds to the error of a flag that doesn't exist the ones of similar names.
func unknownFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	// The names of flags are compared as those of commands are.
	names := new(cobra.Command)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return fmt.Errorf("%w%s", err, suggestion(suggested(names, "--"+unknown.GetSpecifiedName())))
}

// arguments makes a number of arguments, what they are called, a condition of a
// command.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return misused(c, fmt.Errorf("%s: want %s", c.Name(), what))
		case len(args) > most:
			text := fmt.Sprintf("%s: want %s, got %s", c.Name(), what, count(int64(len(args)), "argument"))
			return misused(c, errors.New(text+suggestion(suggested(c, args[0]))))
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
