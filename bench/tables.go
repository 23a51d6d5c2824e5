package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/bench/stats"
)

// A table is a part of the report.
type table struct {
	title, note string
	header      []string
	rows        [][]string
}

// text is the table in columns, the first to the left and the others to the right.
func (t table) text() string {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, s := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(s))
		}
	}
	var b strings.Builder
	b.WriteString(t.title + "\n")
	for _, row := range append([][]string{t.header}, t.rows...) {
		line := ""
		for i, s := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
			if i == 0 {
				line += s + pad
			} else {
				line += "  " + pad + s
			}
		}
		b.WriteString("  " + strings.TrimRight(line, " ") + "\n")
	}
	if t.note != "" {
		b.WriteString("  " + t.note + "\n")
	}
	return b.String()
}

func (t table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", t.title)
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	line := func(row []string) {
		b.WriteString("|")
		for _, s := range row {
			b.WriteString(" " + cell(s) + " |")
		}
		b.WriteString("\n")
	}
	line(t.header)
	b.WriteString("|---|" + strings.Repeat("---:|", len(t.header)-1) + "\n")
	for _, row := range t.rows {
		line(row)
	}
	if t.note != "" {
		b.WriteString("\n" + t.note + "\n")
	}
	return b.String()
}

func twoPlaces(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

func percent(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

// summaryTable shows the measures and their targets.
func summaryTable(entries []entry) table {
	t := table{title: "Targets", note: "Ratio of rates, 1.00 = as fast as the yardstick. Spread: quartile distance of the ratios within the repetitions.",
		header: []string{"measure", "ratio", "must", "aim", "spread", "", "worst with"}}
	for _, e := range entries {
		verdict := "missed"
		if e.OK {
			verdict = "ok"
		}
		if e.Noisy {
			verdict += ", noisy"
		}
		aim := ""
		if e.Aim > 0 {
			aim = twoPlaces(e.Aim)
		}
		t.rows = append(t.rows, []string{e.Name, twoPlaces(e.Ratio), twoPlaces(e.Target), aim, percent(e.Spread), verdict, e.Note})
	}
	return t
}

// ratioTable shows all cases of a kind: the rate of the first contestant, and the
// others' rates relative to it.
func ratioTable(title string, r *results, belongs func(plan.Case) bool) (table, bool) {
	var contestants []string
	for _, c := range r.cases {
		if belongs(c) {
			contestants = plan.Union(contestants, c.Contestants)
		}
	}
	if len(contestants) == 0 {
		return table{}, false
	}
	yardstick := contestants[0]
	t := table{title: title, header: append([]string{"case", "component", yardstick + ", GB/s", "spread"}, contestants[1:]...),
		note: "Rates relative to " + yardstick + "; medians."}
	for _, c := range r.cases {
		if !belongs(c) {
			continue
		}
		for _, component := range r.components {
			l := r.lines[key{component, c.Name, yardstick}]
			s := r.seconds(component, c.Name, yardstick)
			if len(s) == 0 {
				continue
			}
			row := []string{c.Name, component, twoPlaces(float64(l.Bytes) / stats.Median(s) * 1e-9), percent(stats.Spread(s))}
			for _, name := range contestants[1:] {
				ratio, _, ok := r.ratio(component, c.Name, name, yardstick)
				switch l := r.lines[key{component, c.Name, name}]; {
				case ok:
					row = append(row, twoPlaces(ratio))
				case l != nil && l.Error != "":
					row = append(row, "failed")
				default:
					row = append(row, "")
				}
			}
			t.rows = append(t.rows, row)
		}
	}
	return t, len(t.rows) > 0
}

// growthTable shows how the times grow, with the exponent p of t ~ x^p.
func growthTable(g plan.Growth, r *results) (table, bool) {
	t := table{title: "Growth with " + g.Name, header: []string{"contestant"}, note: "Times in ms. The exponent p is that of t ~ x^p, fitted to all points."}
	for _, x := range g.X {
		t.header = append(t.header, fmt.Sprintf("%.4g", x))
	}
	t.header = append(t.header, "p")
	for _, name := range []string{"floor", "fieldstone", "common", "hdf5"} {
		row := []string{name}
		var xs, ys []float64
		for i, c := range g.Cases {
			s := r.seconds(plan.DefaultComponent, c, name)
			if len(s) == 0 {
				row = append(row, "")
				continue
			}
			m := stats.Median(s)
			row = append(row, fmt.Sprintf("%.3g", 1e3*m))
			xs, ys = append(xs, g.X[i]), append(ys, m)
		}
		if len(xs) < 2 {
			continue
		}
		t.rows = append(t.rows, append(row, twoPlaces(stats.Exponent(xs, ys))))
	}
	return t, len(t.rows) > 0
}

// absences are the contestants that didn't take part or were taken out.
func absences(r *results) (table, bool) {
	t := table{title: "Left out", header: []string{"contestant", "component", "cases", "why"}}
	type group struct{ contestant, component, why string }
	count := make(map[group]int)
	var order []group
	for _, component := range r.components {
		for _, c := range r.cases {
			for _, name := range c.Contestants {
				l := r.lines[key{component, c.Name, name}]
				if l == nil || l.Error+l.Missing == "" {
					continue
				}
				g := group{name, component, l.Error + l.Missing}
				if count[g] == 0 {
					order = append(order, g)
				}
				count[g]++
			}
		}
	}
	for _, g := range order {
		t.rows = append(t.rows, []string{g.contestant, g.component, fmt.Sprint(count[g]), g.why})
	}
	return t, len(t.rows) > 0
}

func jobsTable(jobs []jobRecord) table {
	t := table{title: "Jobs", header: []string{"job", "s", "others"}, note: "Others: share of the processors that went to other processes or virtual machines."}
	for _, j := range jobs {
		t.rows = append(t.rows, []string{j.Job, fmt.Sprintf("%.1f", j.Seconds), percent(j.Others)})
	}
	return t
}

// tables are all parts of the report.
func tables(s *plan.Suite, r *results, entries []entry) []table {
	all := []table{summaryTable(entries)}
	add := func(t table, ok bool) {
		if ok {
			all = append(all, t)
		}
	}
	kind := func(k plan.Kind, chunks bool) func(plan.Case) bool {
		return func(c plan.Case) bool {
			return c.Kind == k && (k != plan.Kernel || (c.Contestants[0] == "pwrite-chunks") == chunks)
		}
	}
	add(ratioTable("Packing, one core", r, kind(plan.Kernel, false)))
	add(ratioTable("Packing in chunks, one core", r, kind(plan.Kernel, true)))
	add(ratioTable("Saving", r, kind(plan.Save, false)))
	add(ratioTable("Restarting", r, kind(plan.Restart, false)))
	add(ratioTable("Files of a run", r, func(c plan.Case) bool {
		return c.Kind == plan.WriteRun || c.Kind == plan.ReadRun || c.Kind == plan.ReadRunField
	}))
	for _, g := range s.Growth {
		add(growthTable(g, r))
	}
	add(absences(r))
	return append(all, jobsTable(r.jobs))
}
