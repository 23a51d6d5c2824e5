// Package nonfinite has what packages publish and runfile have in common about numbers
// that are NaN or infinite: which policy is in force for what is saved.
package nonfinite

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The policies, as configurations have them.
const (
	Warn   = "warn"
	Refuse = "refuse"
	Ignore = "ignore"
)

// Policies are those for all names, of fields or of unknowns. The zero value warns.
type Policies[P ~string] struct {
	Rest    P            // for names that aren't in ByName; empty for Warn
	ByName  map[string]P // never empty ones
	What    string       // what a name is of, such as "field"
	Numbers string       // what a number is called, such as "cell"
	Keys    Keys
}

// Keys are what the policies are called where they are given, for errors.
type Keys struct{ Rest, ByName string }

// Of returns the policy for a name.
func (p Policies[P]) Of(name string) P {
	policy, ok := p.ByName[name]
	if !ok {
		policy = p.Rest
	}
	if policy == "" {
		return Warn
	}
	return policy
}

// Validate looks for policies that there aren't.
func (p Policies[P]) Validate() error {
	if p.Rest != "" && !known(p.Rest) {
		return unknown(p.Keys.Rest, p.Rest)
	}
	for _, name := range slices.Sorted(maps.Keys(p.ByName)) {
		if policy := p.ByName[name]; !known(policy) {
			return unknown(fmt.Sprintf("%s: %s %q", p.Keys.ByName, p.What, name), policy)
		}
	}
	return nil
}

func known[P ~string](p P) bool { return p == Warn || p == Refuse || p == Ignore }

func unknown[P ~string](key string, p P) error {
	return fmt.Errorf("%s: %.64q: want %q, %q or %q", key, string(p), Warn, Refuse, Ignore)
}

// Check looks for names with a policy that what is saved doesn't have.
func (p Policies[P]) Check(names []string) error {
	for _, name := range slices.Sorted(maps.Keys(p.ByName)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s: %s %q is not one of %q", p.Keys.ByName, p.What, name, names)
		}
	}
	return nil
}

// String is what ranks must have alike.
func (p Policies[P]) String() string {
	text := []string{string(p.Of(""))}
	for _, name := range slices.Sorted(maps.Keys(p.ByName)) {
		text = append(text, fmt.Sprintf("%q %s", name, p.Of(name)))
	}
	return strings.Join(text, ", ")
}

// Describe returns the names, in their order, that have a count and one of the given
// policies: `12 cells of field "phi", 1 cell of field "T"`. It is empty if there are none.
func (p Policies[P]) Describe(names []string, counts map[string]int64, policies ...P) string {
	var list []string
	for _, name := range names {
		n := counts[name]
		if n == 0 || !slices.Contains(policies, p.Of(name)) {
			continue
		}
		many := "s"
		if n == 1 {
			many = ""
		}
		list = append(list, fmt.Sprintf("%d %s%s of %s %q", n, p.Numbers, many, p.What, name))
	}
	return strings.Join(list, ", ")
}

// NotFinite is Describe of what makes a state count as one that is not finite: all but what
// is ignored.
func (p Policies[P]) NotFinite(names []string, counts map[string]int64) string {
	return p.Describe(names, counts, Warn, Refuse)
}

// Risen returns the counts that are greater than they were before.
func Risen(before, now map[string]int64) map[string]int64 {
	risen := map[string]int64{}
	for name, n := range now {
		if n > before[name] {
			risen[name] = n
		}
	}
	return risen
}

// Finite reports whether a number is neither NaN nor infinite.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
