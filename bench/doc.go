// Command bench compares Fieldstone with the floors of the machine and with other ways
// of writing the same fields. See README.md.
//
//	make bench          under 20 minutes
//	make bench QUICK=1  under a minute
//
// It launches jobs of MPI (worker) one after another, and writes tables, results.json,
// summary.json and a plot.
package main
