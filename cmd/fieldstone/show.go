package main

import (
	"github.com/spf13/cobra"
)

// showOptions are the flags of show.
type showOptions struct{ stats, json bool }

func newShow(a *app) *cobra.Command {
	var o showOptions
	c := &cobra.Command{
		Use:   "show PATH",
		Short: withHDF5("Show what a bundle, each bundle of a directory, or a run file holds", "Show what a bundle, or each bundle of a directory, holds"),
		Long: withHDF5(`Show what a bundle, each bundle of a directory, or a file of a run holds.
`, `Show what a bundle, or each bundle of a directory, holds.
`) + `
Of a directory of bundles each is shown in a line, newest first, but not those
that were set aside (.damaged, .superseded).` + withHDF5(` A file of a run is known by its content,
whatever its name.`, "") + ` The contents are not verified.

Exit status: 0, or 1 when a bundle or a file is damaged as far as its structure and
sizes tell, or 2 for wrong usage, when something can't be read, or when there is nothing
of ours at the path.`,
		Example: `  fieldstone show results/ckpt/step_40
  fieldstone show --stats results/ckpt
  fieldstone show --json results/ckpt/step_40` + withHDF5(`
  fieldstone show results/decay.segment0001.h5`, ""),
		Args:              arguments(1, 1, withHDF5("a bundle, a directory of bundles or a run file", "a bundle or a directory of bundles")),
		ValidArgsFunction: completePaths(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.identify(args[0])
			if err != nil {
				a.report("show", args[0], err)
				return statusError(statusFailed)
			}
			return s.show(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.stats, "stats", false, "read the values: smallest, largest and mean one, number of NaNs")
	c.Flags().BoolVar(&o.json, "json", false, "write JSON")
	return c
}
