package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/plan"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	short := flag.Bool("quick", false, "the short form")
	build := flag.String("build", "build", "folder of the workers and the peers' libraries")
	results := flag.String("results", "bench/results", "folder for tables and figures")
	only := flag.String("case", "", "only cases whose name matches this regular expression")
	who := flag.String("contestants", "", "only these contestants of each case, by comma; the first is the yardstick")
	var sel selection
	flag.StringVar(&sel.component, "component", "", "only launches of this component: ompio, romio, mpich, h5py, run files")
	flag.IntVar(&sel.repeats, "repeats", 0, "repetitions of each case, instead of its own number")
	bind := flag.String("bind", "none", "what Open MPI binds ranks to")
	flag.Parse()
	var err error
	if sel.match, err = regexp.Compile(*only); err != nil {
		return err
	}
	if *who != "" {
		sel.contestants = strings.Split(*who, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	tmpfs, err := os.MkdirTemp("/dev/shm", "fieldstone-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmpfs)
	disk, err := os.MkdirTemp(*build, "bench-disk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(disk)
	if disk, err = filepath.Abs(disk); err != nil {
		return err
	}
	if err := os.MkdirAll(*results, 0o777); err != nil {
		return err
	}
	form := plan.Full
	if *short {
		form = plan.Quick
	}
	s := plan.NewSuite(form)
	r := &launcher{build: *build, tmpfs: tmpfs, disk: disk, limit: 10 * time.Minute, bind: *bind}
	found := newResults()
	about := thisMachine()
	var errs []error
	for _, l := range sel.choose(s.Launches) {
		if l.Component == plan.H5py && !r.hasH5py(ctx) {
			found.note(l)
			for _, c := range l.Cases {
				found.add(l.Component, plan.Line{Case: c.Name, Contestant: "h5py", Missing: "no h5py with MPI for " + python})
			}
			continue
		}
		if err := r.record(ctx, l, found); err != nil {
			fmt.Fprintln(os.Stderr, err)
			if l.Component != plan.H5py { // a peer that fails is left out
				errs = append(errs, err)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	errs = append(errs, found.failed()...)
	return errors.Join(append(errs, report(*results, s, found, about))...)
}

// A selection is what the command line leaves of a suite.
type selection struct {
	match       *regexp.Regexp // on the names of cases
	component   string         // empty: all
	contestants []string       // nil: each case's own
	repeats     int            // 0: each case's own
}

// choose returns the selected cases, in their launches. A bundle is written if it is read.
func (sel selection) choose(launches []plan.Launch) (chosen []plan.Launch) {
	wanted := func(c plan.Case) bool { return sel.match.MatchString(c.Name) }
	reads := false
	for _, l := range launches {
		for _, c := range l.Cases {
			reads = reads || c.Kind == plan.Restart && wanted(c)
		}
	}
	for _, l := range launches {
		if sel.component != "" && l.Component != sel.component {
			continue
		}
		var kept []plan.Case
		for _, c := range l.Cases {
			if c.Kind == plan.Bundle {
				if reads {
					kept = append(kept, c)
				}
				continue
			}
			if !wanted(c) {
				continue
			}
			if c.Kind != plan.Memory && sel.contestants != nil {
				c.Contestants = sel.contestants
			}
			if sel.repeats > 0 {
				c.Repeats, c.Seconds = sel.repeats, math.MaxInt32
			}
			kept = append(kept, c)
		}
		if len(kept) > 0 {
			l.Cases = kept
			chosen = append(chosen, l)
		}
	}
	return chosen
}

// record runs a launch and keeps what it says.
func (r *launcher) record(ctx context.Context, l plan.Launch, found *results) error {
	found.note(l)
	before, began, ours := readUsage(), time.Now(), childTime()
	err := r.run(ctx, l, func(line plan.Line) { found.add(l.Component, line) })
	j := jobRecord{Seconds: time.Since(began).Seconds(), Others: before.others(readUsage(), childTime()-ours)}
	if err != nil {
		j.Error = err.Error()
	}
	found.end(l, j)
	fmt.Fprintf(os.Stderr, "%v: %d cases, %.1f s\n", l, len(l.Cases), j.Seconds)
	return err
}

// report writes what was found: tables to the terminal and, with everything else, to
// the folder.
func report(folder string, s *plan.Suite, found *results, about machine) error {
	entries := summarise(s.Measures, found)
	said := verdict(about, found.jobs, entries)
	head := fmt.Sprintf("%s, %d cores, Linux %s, load average %.1f at the start", about.Processor, about.Cores, about.Kernel, about.Load)
	if s.Scaled != "" {
		said += "\n" + s.Scaled + "."
	}
	text, markdown := head+"\n"+said+"\n", "# Fieldstone and the floors\n\n"+head+"\n\n"+said+"\n"
	for _, t := range tables(s, found, entries) {
		text += "\n" + t.text()
		markdown += "\n" + t.markdown()
	}
	fmt.Print(text)
	return errors.Join(
		writeJSON(folder, "summary.json", entries),
		writeJSON(folder, "results.json", raw{about, found.jobs, found.series()}),
		os.WriteFile(filepath.Join(folder, "tables.txt"), []byte(text), 0o666),
		os.WriteFile(filepath.Join(folder, "tables.md"), []byte(markdown), 0o666),
		plots(folder, s, found),
	)
}
