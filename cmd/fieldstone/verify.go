package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newVerify(a *app) *cobra.Command {
	var quiet, asJSON bool
	c := &cobra.Command{
		Use:   "verify PATH...",
		Short: withHDF5("Check bundles, and the files of runs", "Check bundles"),
		Long: withHDF5(`Check the structure, the sizes and the checksums of bundles, and the files of runs.

A PATH is a bundle, a file of a run, or a directory of them. Of a directory all
bundles are checked, newest first, but not those that were set aside (.damaged,
.superseded), and all files of runs. Every damaged file of a bundle is named, and
every object of a run file with which something is wrong.
`, `Check the structure, the sizes and the checksums of bundles.

A PATH is a bundle or a directory of them. Of a directory all bundles are checked,
newest first, but not those that were set aside (.damaged, .superseded). Every damaged
file is named.
`) + `
A bundle of another writer without checksums is checked by size, and the output says so;
one that fieldstone wrote is incomplete without them. Files of fields that the metadata
don't list are named.` + withHDF5(` Of a run file structure, version, shapes and the mark that it
is complete are checked, that a checkpoint fits its segment, and that its bundles are there.
The hashes of its settings are computed again if fieldstone wrote it; those of other
writers can't be, and the output says so. All values that have a checksum are read and
compared, those of fields too, and the output says what has none.`, "") + `

Exit status: 0 when all is good, 1 when something is damaged, 2 for wrong usage, when
something can't be read, or when there is nothing of ours at a path.`,
		Example: `  fieldstone verify results/ckpt/step_40
` + withHDF5(`  fieldstone verify results/decay.checkpoint.h5
`, "") + `  fieldstone verify results/ckpt results`,
		Args:              arguments(1, anyNumber, withHDF5("a bundle, a run file or a directory of them", "a bundle or a directory of them")),
		ValidArgsFunction: completePaths(anyNumber),
		RunE: func(c *cobra.Command, args []string) error {
			return a.verify(c.Context(), args, quiet, asJSON)
		},
	}
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "write errors only")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func (a *app) verify(ctx context.Context, paths []string, quiet, asJSON bool) error {
	v := &verification{app: a, quiet: quiet || asJSON, verdicts: make(map[string][]verdict)}
	for _, kind := range subjectKinds {
		if kind.verdicts != "" {
			v.verdicts[kind.verdicts] = []verdict{}
		}
	}
	for _, path := range paths {
		if err := v.path(ctx, path); err != nil {
			return err
		}
	}
	if asJSON {
		if err := writeJSON(a.out, v.verdicts); err != nil {
			return err
		}
	}
	if v.status != statusGood {
		return statusError(v.status)
	}
	return nil
}

// verdict is the outcome of verifying something, as JSON and, as a string, in a line.
type verdict interface {
	fmt.Stringer
	state() state
}

// verification is one call of the command.
type verification struct {
	*app
	quiet    bool
	status   int
	verdicts map[string][]verdict // by the keys of the kinds
}

// judged adds the verdict on something, of a kind's key, which has been reported as far as
// it is bad.
func (v *verification) judged(key string, about verdict) error {
	v.status = max(v.status, about.state().status())
	v.verdicts[key] = append(v.verdicts[key], about)
	return v.line(about.String())
}

// failed says that nothing at a path could be verified.
func (v *verification) failed(path string, err error) {
	v.report("verify", path, err)
	v.status = statusFailed
}

// path verifies what is at a path. It returns an error only when it was interrupted, or
// the output can't be written.
func (v *verification) path(ctx context.Context, path string) error {
	s, err := v.identify(path)
	switch {
	case isInPlaceOfRunFile(path): // which is damage, whatever is there
		s = runFile{unable{app: v.app, path: path}}
	case err != nil:
		v.failed(path, err)
		return nil
	}
	return s.verify(ctx, v)
}

// fault writes a line about something in what is verified.
func (v *verification) fault(path, thing, reason string) {
	if thing != "" {
		thing += ": "
	}
	v.complain("verify %s: %s%s", path, thing, reason)
}

// line writes a verdict at once: the next may take long.
func (v *verification) line(text string) error {
	if v.quiet {
		return nil
	}
	fmt.Fprintln(v.out, oneLine(text))
	if err := v.out.Flush(); err != nil {
		return outputError(err)
	}
	return nil
}
