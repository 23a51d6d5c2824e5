package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/bench/plan"
)

// An entry is one line of summary.json. Ratio is the rate of Fieldstone over that of
// the yardstick: 1 is as fast, 2 twice as fast.
type entry struct {
	Name   string  `json:"name"`
	Ratio  float64 `json:"ratio"`
	Target float64 `json:"target"`
	Aim    float64 `json:"aim,omitempty"`
	OK     bool    `json:"ok"`
	Spread float64 `json:"spread"` // of the ratios within the repetitions
	Noisy  bool    `json:"noisy"`  // the machine was too busy to tell
	Note   string  `json:"note,omitempty"`
}

// evaluate makes the entry of a measure: the worst of its ratios.
func evaluate(m plan.Measure, r *results) entry {
	e := entry{Name: m.Name, Target: m.Must, Aim: m.Aim, Ratio: math.Inf(1)}
	consider := func(ratio, spread float64, noisy bool, note string) {
		e.Noisy = e.Noisy || noisy
		if ratio < e.Ratio {
			e.Ratio, e.Spread, e.Note = ratio, spread, note
		}
	}
	count := cmp.Or(m.Component, plan.DefaultComponent)
	for _, name := range m.Cases {
		if l := r.lines[key{plan.DefaultComponent, name, m.Ours}]; l != nil && l.Limit > 0 && l.Bytes > 0 {
			consider(float64(l.Limit)/float64(l.Bytes), 0, false, fmt.Sprintf("%.1f MiB", float64(l.Bytes)/(1<<20)))
		}
		for _, component := range r.components {
			if !m.Best && component != count {
				continue
			}
			for _, theirs := range m.Theirs {
				ratio, spread, ok := r.ratio(component, name, m.Ours, theirs)
				if !ok {
					continue
				}
				consider(ratio, spread, r.noisy(component, name), which(m, component, theirs, name))
			}
		}
	}
	if math.IsInf(e.Ratio, 1) {
		return entry{Name: m.Name, Target: m.Must, Aim: m.Aim, Note: "not measured"}
	}
	// What is shown as the target has reached it.
	e.OK = math.Round(e.Ratio*100) >= math.Round(e.Target*100)
	return e
}

// which says which of several yardsticks the ratio is of.
func which(m plan.Measure, component, theirs, name string) (note string) {
	if len(m.Theirs) > 1 {
		note = theirs
	}
	if m.Best {
		note += " " + component
	}
	if len(m.Cases) > 1 {
		note += " " + name
	}
	return note
}

// summarise evaluates all measures.
func summarise(measures []plan.Measure, r *results) []entry {
	entries := make([]entry, len(measures))
	for i, m := range measures {
		entries[i] = evaluate(m, r)
	}
	return entries
}

// writeJSON writes v as a file of the results' folder.
func writeJSON(folder, name string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name), append(data, '\n'), 0o666)
}

// raw is what results.json holds.
type raw struct {
	Machine machine     `json:"machine"`
	Jobs    []jobRecord `json:"jobs"`
	Series  []rawSeries `json:"series"`
}

type rawSeries struct {
	Component string `json:"component"`
	plan.Line
	Median float64
	Spread float64
}
