package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/fieldstone-io/fieldstone/bench/stats"
)

func print(r *results) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, component := range r.components {
		for _, c := range r.cases {
			first := true
			for _, name := range c.Contestants {
				l := r.lines[key{component, c.Name, name}]
				if l == nil {
					continue
				}
				if first {
					fmt.Fprintf(w, "\n%s: %s\n", component, c.Name)
					first = false
				}
				if l.Error != "" || l.Missing != "" {
					fmt.Fprintf(w, "  %s\t%s%s\n", name, l.Error, l.Missing)
					continue
				}
				ratio, spread, _ := r.ratio(component, c.Name, name, c.Contestants[0])
				m := stats.Median(l.Seconds)
				fmt.Fprintf(w, "  %s\t%.1f ms\t%.2f GB/s\tspread %.0f %%\t%.2f of %s\t(spread %.0f %%)\n", name, m*1e3, float64(l.Bytes)/m*1e-9, 100*stats.Spread(l.Seconds), ratio, c.Contestants[0], 100*spread)
			}
		}
	}
	w.Flush()
}
