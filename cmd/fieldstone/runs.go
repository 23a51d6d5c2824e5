package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
)

// errNoHDF5 is what each command that needs a run file says in a tool without HDF5.
var errNoHDF5 = errors.New("this tool was built without HDF5 (build it with the tag hdf5)")

// completeRunFiles makes the shell offer run files for up to most arguments.
func completeRunFiles(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []cobra.Completion{"h5"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

func orNoSize(n *int64) string {
	if n == nil {
		return "not known"
	}
	return humanSize(*n)
}

// shapeText is a shape as h5dump shows it.
func shapeText(shape []int) string {
	words := make([]string, len(shape))
	for i, n := range shape {
		words[i] = fmt.Sprint(n)
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// span tells of saved times.
func span(times []float64) string {
	switch len(times) {
	case 0:
		return "none"
	case 1:
		return exact(times[0]) + " s"
	}
	return fmt.Sprintf("%s to %s s", exact(times[0]), exact(times[len(times)-1]))
}

// tally is what the values of an unknown come to.
type tally struct {
	min, max float64
	sum      kahan
	n, nans  int64
}

func newTally() *tally { return &tally{min: math.Inf(1), max: math.Inf(-1)} }

func (t *tally) add(values []float64) {
	for _, v := range values {
		if math.IsNaN(v) {
			t.nans++
			continue
		}
		t.n++
		t.min, t.max = min(t.min, v), max(t.max, v)
		t.sum.add(v)
	}
}

func (t *tally) json() *shownStats {
	if t.n == 0 {
		nan := number(math.NaN())
		return &shownStats{nan, nan, nan, t.nans}
	}
	return &shownStats{number(t.min), number(t.max), number(t.sum.sum / float64(t.n)), t.nans}
}
