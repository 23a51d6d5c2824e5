package main

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/internal/samerun"
	"github.com/spf13/cobra"
)

// diffOptions are the flags of diff.
type diffOptions struct {
	metadata, sidecar, quiet, json bool
	tolerance                      *samerun.Tolerance // nil: all bits count
	misused                        func(error) error  // what a kind says of a flag that isn't for it
}

func newDiff(a *app) *cobra.Command {
	var o diffOptions
	var t samerun.Tolerance
	c := &cobra.Command{
		Use:   "diff A B",
		Short: withHDF5("Compare two bundles, two run files or two directories of them", "Compare two bundles or two directories of them"),
		Long: withHDF5(`Compare the fields of two bundles, or what two files of runs hold: bit for bit, or within
a tolerance.
`, `Compare the fields of two bundles: bit for bit, or within a tolerance.
`) + `
Of each field that differs the output has the number of differing cells, the
largest absolute difference, the root mean square of the difference over all
cells, the largest difference in units in the last place (ULP), and the first
differing cell in the order of the file (x fastest) with both values. NaNs of the
same bits are equal; a NaN is infinitely far from everything else. -0 and +0 are
different, at the distance 0.

A field that only one bundle has is a difference. Grids of different dimensions
are a difference, and their fields aren't compared. Origin, spacing and periodicity
count with --metadata only. Checksums are not verified.

With --atol or --rtol, or both, two numbers a and b are equal if

    |a - b| <= atol + rtol max(|a|, |b|)

where the one that isn't given is 0. All NaNs are then equal, and infinities of one sign.
Of each field the output has the number of cells beyond the tolerance, the largest
absolute and the largest relative difference, |a - b| / max(|a|, |b|), and where these
are. Metadata, integers and texts are compared exactly all the same.

` + withHDF5(`Of two outputs or two checkpoints of runs the times, the unknowns, the states of interval
updates and the statistics are compared, but no wall times, and the setup hash with
--metadata only ('fieldstone settings diff' compares the settings). Of each that differs
the output has the number of differing values, and the first one with both values. Saved
states are compared by their numbers, as many as both files have.

`, "") + `Of two directories the bundles are compared by their names` + withHDF5(`, and the files of runs by the
name of the run and the number of the segment, or as its checkpoints; not what was set
aside.`, `, not those that were set
aside.`) + ` What only one directory has is a difference. A line tells of each pair.

Exit status: 0 when everything that is compared is equal, or within the tolerance, 1 when
not, 2 for wrong usage or when something can't be read.`,
		Example: `  fieldstone diff a/step_40 b/step_40
  fieldstone diff --metadata a/step_40 b/step_40
  fieldstone diff -q a/step_40 b/step_40 && echo equal
` + withHDF5(`  fieldstone diff a/decay.h5 b/decay.h5
`, "") + `  fieldstone diff --rtol 1e-9 a/results b/results`,
		Args:              arguments(2, 2, withHDF5("two bundles, two run files or two directories of them", "two bundles or two directories of them")),
		ValidArgsFunction: completePaths(2),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("atol") || c.Flags().Changed("rtol") {
				if err := t.Check(); err != nil {
					return misused(c, fmt.Errorf("diff: %w", err))
				}
				o.tolerance = &t
			}
			x, y, err := a.identifyBoth(args[0], args[1])
			if err != nil {
				return err
			}
			o.misused = func(err error) error { return misused(c, err) }
			return x.diff(c.Context(), y, o)
		},
	}
	c.Flags().Float64Var(&t.Absolute, "atol", 0, "the absolute part of a tolerance")
	c.Flags().Float64Var(&t.Relative, "rtol", 0, "the relative part of a tolerance")
	c.Flags().BoolVar(&o.metadata, "metadata", false, "compare metadata.json too, except creation time, writer and decomposition"+withHDF5("; of run files the setup hash", ""))
	c.Flags().BoolVar(&o.sidecar, "sidecar", false, "compare sidecar.json too, as a JSON value")
	c.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "write nothing: the exit status is the answer")
	c.Flags().BoolVar(&o.json, "json", false, "write JSON")
	c.MarkFlagsMutuallyExclusive("quiet", "json")
	return c
}

type toleranceJSON struct {
	Absolute number `json:"atol"`
	Relative number `json:"rtol"`
}

func newToleranceJSON(t *samerun.Tolerance) *toleranceJSON {
	if t == nil {
		return nil
	}
	return &toleranceJSON{number(t.Absolute), number(t.Relative)}
}

// String is the condition that numbers must meet.
func (t *toleranceJSON) String() string {
	return samerun.Tolerance{Absolute: float64(t.Absolute), Relative: float64(t.Relative)}.String()
}

// sideState says how what both bundles could have compares.
type sideState string

const (
	sideEqual       sideState = "equal"
	sideWithin      sideState = "within tolerance"
	sideDifferent   sideState = "different"
	sideOnlyA       sideState = "only in A"
	sideOnlyB       sideState = "only in B"
	sideNotCompared sideState = "not compared" // the grids differ
)

// ofTwoKinds says why what is at two paths isn't compared.
func ofTwoKinds(pathA, kindA, pathB, kindB string) string {
	return fmt.Sprintf("A, %s, is %s, and B, %s, is %s", pathA, kindA, pathB, kindB)
}

// reportSides reports the errors of the two sides, once where these are one path, and
// whether there are any.
func (a *app) reportSides(pathA, pathB string, errA, errB error) bool {
	return reportBoth(a.report, pathA, pathB, errA, errB)
}

func reportBoth(report func(command, path string, err error), pathA, pathB string, errA, errB error) bool {
	if errA != nil {
		report("diff", pathA, errA)
	}
	if errB != nil && (errA == nil || pathA != pathB) {
		report("diff", pathB, errB)
	}
	return errA != nil || errB != nil
}
