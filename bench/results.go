package main

import (
	"fmt"

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
	busy       map[key]bool // component and case: something else ran meanwhile
	jobs       []jobRecord
}

func newResults() *results {
	return &results{lines: make(map[key]*plan.Line), busy: make(map[key]bool)}
}

// note makes the cases of a launch known.
func (r *results) note(l plan.Launch) {
	for _, c := range l.Cases {
		known := false
		for i, k := range r.cases {
			if k.Name == c.Name {
				r.cases[i].Contestants = plan.Union(k.Contestants, c.Contestants)
				known = true
			}
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

// end notes how a launch went.
func (r *results) end(l plan.Launch, j jobRecord) {
	for _, c := range l.Cases {
		j.Cases = append(j.Cases, c.Name)
		if j.Others > othersLimit {
			r.busy[key{Component: l.Component, Case: c.Name}] = true
		}
	}
	j.Job = l.String()
	r.jobs = append(r.jobs, j)
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

// series are all lines, for results.json.
func (r *results) series() (all []rawSeries) {
	for _, component := range r.components {
		for _, c := range r.cases {
			for _, name := range c.Contestants {
				l := r.lines[key{component, c.Name, name}]
				if l == nil {
					continue
				}
				s := rawSeries{Component: component, Line: *l}
				if len(l.Seconds) > 0 {
					s.Median, s.Spread = stats.Median(l.Seconds), stats.Spread(l.Seconds)
				}
				all = append(all, s)
			}
		}
	}
	return all
}

// failed are the errors of Fieldstone itself: they fail the run. A peer's only take it
// out.
func (r *results) failed() (errs []error) {
	for k, l := range r.lines {
		if l.Error != "" && plan.OfFieldstone(k.Contestant) {
			errs = append(errs, fmt.Errorf("%s, %s, %s: %s", k.Component, k.Case, k.Contestant, l.Error))
		}
	}
	return errs
}
