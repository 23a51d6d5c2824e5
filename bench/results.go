package main

import (
	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/bench/stats"
)

// A cell of the results: one contestant in one case under one component.
type key struct {
	Component  string
	Case       string
	Contestant string
}

// results collects the lines of all launches. The same case in several launches of a
// component is one series.
type results struct {
	cases      []plan.Case // in the order of their first launch
	components []string
	lines      map[key]*plan.Line
}

func newResults() *results { return &results{lines: make(map[key]*plan.Line)} }

// note makes the cases of a launch known.
func (r *results) note(l plan.Launch) {
	for _, c := range l.Cases {
		known := false
		for _, k := range r.cases {
			known = known || k.Name == c.Name
		}
		if !known {
			r.cases = append(r.cases, c)
		}
	}
	for _, c := range r.components {
		if c == l.Component {
			return
		}
	}
	r.components = append(r.components, l.Component)
}

func (r *results) add(component string, l plan.Line) {
	k := key{component, l.Case, l.Contestant}
	have := r.lines[k]
	if have == nil {
		r.lines[k] = &l
		return
	}
	have.Seconds = append(have.Seconds, l.Seconds...)
	have.Checked += l.Checked
	have.Bytes = max(have.Bytes, l.Bytes)
	if l.Error != "" {
		have.Error = l.Error
	}
	if l.Missing != "" {
		have.Missing = l.Missing
	}
}

// seconds are the times of a contestant, nil when it has none that count.
func (r *results) seconds(component, name, contestant string) []float64 {
	l := r.lines[key{component, name, contestant}]
	if l == nil || l.Error != "" || l.Missing != "" {
		return nil
	}
	return l.Seconds
}

// ratio is that of the rates of ours and theirs, and whether both were measured.
func (r *results) ratio(component, name, ours, theirs string) (ratio, spread float64, ok bool) {
	a, b := r.seconds(component, name, ours), r.seconds(component, name, theirs)
	if len(a) == 0 || len(b) == 0 {
		return 0, 0, false
	}
	ratio, spread = stats.Ratio(a, b)
	return ratio, spread, true
}
