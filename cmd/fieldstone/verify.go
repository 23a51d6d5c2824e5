package main

import (
	"context"
	"errors"
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
	v := verification{app: a, quiet: quiet || asJSON, bundles: []verdict{}, runs: []runVerdict{}}
	for _, path := range paths {
		if err := v.path(ctx, path); err != nil {
			return err
		}
	}
	if asJSON {
		if err := writeJSON(a.out, map[string]any{"bundles": v.bundles, "run_files": v.runs}); err != nil {
			return err
		}
	}
	if v.status != statusGood {
		return statusError(v.status)
	}
	return nil
}

// verification is one call of the command.
type verification struct {
	*app
	quiet   bool
	status  int
	bundles []verdict
	runs    []runVerdict
}

// failed says that nothing at a path could be verified.
func (v *verification) failed(path string, err error) {
	v.report("verify", path, err)
	v.status = statusFailed
}

// path verifies what is at a path. It returns an error only when it was interrupted, or
// the output can't be written.
func (v *verification) path(ctx context.Context, path string) error {
	switch w, err := lookAt(path); {
	case isInPlaceOfRunFile(path):
		return v.runFile(ctx, path, false)
	case err != nil:
		v.failed(path, err)
		return nil
	case w == aRunFile:
		return v.runFile(ctx, path, false)
	}
	bundles, directory, err := bundlesAt(path)
	var files []string
	if directory && (err == nil || errors.Is(err, errNoBundles)) {
		var listing error
		if files, listing = runFilesIn(path); listing != nil {
			err = listing
		}
	}
	if err != nil && (!errors.Is(err, errNoBundles) || len(files) == 0) {
		v.failed(path, err)
		return nil
	}
	if len(bundles) == 0 && len(files) == 0 {
		v.failed(path, errors.New("no bundles but such that were set aside"))
	}
	for _, e := range bundles {
		if err := v.bundle(ctx, e, directory); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := v.runFile(ctx, file, true); err != nil {
			return err
		}
	}
	return nil
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
