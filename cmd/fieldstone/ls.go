package main

import (
	"github.com/spf13/cobra"
)

// lsOptions are the flags of ls.
type lsOptions struct{ verify, json bool }

func newLs(a *app) *cobra.Command {
	var o lsOptions
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
			s, err := a.identify(dir)
			if err != nil { // a directory need not hold anything
				s = directory{unable{app: a, path: dir}}
			}
			return s.list(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.verify, "verify", false, "read the bundles and compare their checksums")
	c.Flags().BoolVar(&o.json, "json", false, "write JSON")
	return c
}
