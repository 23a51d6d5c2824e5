package main

import (
	"github.com/spf13/cobra"
)

func newLs(a *app) *cobra.Command {
	var verify, asJSON bool
	c := &cobra.Command{
		Use:   "ls [DIR]",
		Short: "List a directory of bundles, with what is good and what is left over",
		Long: `List a directory of bundles (by default the current one), newest first: the
bundles, good or bad by structure and size or, with --verify, by checksum; those
that were set aside (.damaged, .superseded); what is being published or removed,
and what dead jobs left over. A line says what "restart_from": "latest" would do.
Of runs that have files in the directory the names are listed` + withHDF5(`: 'fieldstone segments'
has the rest.`, ".") + `

Exit status: 0, whatever the state of the bundles; 2 for wrong usage or when the
directory can't be read.`,
		Example: `  fieldstone ls results/ckpt
  fieldstone ls --verify results/ckpt`,
		Args:              arguments(0, 1, "one directory of bundles"),
		ValidArgsFunction: completeBundles(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return a.ls(c.Context(), dir, verify, asJSON)
		},
	}
	c.Flags().BoolVar(&verify, "verify", false, "read the bundles and compare their checksums")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}
