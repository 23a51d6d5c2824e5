package runfile

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
)

// NonFinitePolicy says what becomes of a checkpoint whose state has numbers that are NaN
// or infinite.
type NonFinitePolicy string

// The policies.
const (
	// WarnNonFinite writes the checkpoint, with a warning, and is the default. A
	// checkpoint that is finite is not given up for one that isn't.
	WarnNonFinite NonFinitePolicy = "warn"
	// RefuseNonFinite writes no checkpoint; the error matches [ErrNonFinite].
	RefuseNonFinite NonFinitePolicy = "refuse"
	// IgnoreNonFinite takes such numbers for values like any other.
	IgnoreNonFinite NonFinitePolicy = "ignore"
)

type unknownPolicies = nonfinite.Policies[NonFinitePolicy]

func newUnknownPolicies(rest NonFinitePolicy, byName map[string]NonFinitePolicy) unknownPolicies {
	return unknownPolicies{Rest: rest, ByName: maps.Clone(byName), What: "unknown", Numbers: "number",
		Keys: nonfinite.Keys{Rest: "Checkpoint.NonFinite", ByName: "Checkpoint.NonFiniteUnknowns"}}
}

func (l *Layout) names() []string {
	names := make([]string, len(l.Unknowns))
	for i, u := range l.Unknowns {
		names[i] = u.Name
	}
	return names
}

// nonFinite counts the numbers of a state that are NaN or infinite, by unknown.
func (l *Layout) nonFinite(state []float64) map[string]int64 {
	counts := map[string]int64{}
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		n := l.length(u)
		for _, v := range state[:n] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				counts[u.Name]++
			}
		}
		state = state[n:]
	}
	return counts
}

// nonFiniteGroup has the counts of a checkpoint. It is beside the groups that other
// readers know.
const nonFiniteGroup = "non_finite"

// writeNonFinite adds counts to those of the file.
func writeNonFinite(f *h5.File, counts map[string]int64) error {
	has, err := f.Exists(nonFiniteGroup)
	if err == nil && !has {
		err = f.CreateGroup(nonFiniteGroup)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if err == nil && counts[name] > 0 {
			err = h5.Write(f, h5.Join(nonFiniteGroup, name), []int64{counts[name]})
		}
	}
	return err
}

// readNonFinite returns nil where nobody has counted.
func readNonFinite(f *h5.File, r root) (map[string]int64, error) {
	has, err := f.Exists(nonFiniteGroup)
	if err != nil || !has || !r.ours {
		return nil, err
	}
	entries, err := members(f, nonFiniteGroup)
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, e := range entries {
		path := h5.Join(nonFiniteGroup, e.Name)
		n, err := readScalar[int64](f, path)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, in(f.Name(), path, ErrMismatch, "it is %d", n)
		}
		counts[e.Name] = n
	}
	return counts, nil
}

// checkNonFinite looks for counts of unknowns that the layout doesn't have.
func (k *Checkpoint) checkNonFinite() error {
	for _, name := range slices.Sorted(maps.Keys(k.NonFinite)) {
		if k.Layout.Unknown(name) == nil || k.NonFinite[name] < 0 {
			return fmt.Errorf("%w: %d numbers of %q are NaN or infinite, of the unknowns %q", ErrInput, k.NonFinite[name], name, k.Layout.names())
		}
	}
	return nil
}
