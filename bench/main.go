package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
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
	quick := flag.Bool("quick", false, "the short form")
	build := flag.String("build", "build", "folder of the workers and the peers' libraries")
	only := flag.String("case", "", "only cases whose name matches this regular expression")
	who := flag.String("contestants", "", "only these contestants of each case, by comma; the first is the yardstick")
	component := flag.String("component", "", "only launches of this component: ompio, romio, mpich")
	repeats := flag.Int("repeats", 0, "repetitions of each case, instead of its own number")
	bind := flag.String("bind", "none", "what Open MPI binds ranks to")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
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
	r := &launcher{build: *build, tmpfs: tmpfs, disk: disk, scratch: tmpfs, limit: 5 * time.Minute, bind: *bind, cores: runtime.NumCPU()}
	all := newResults()
	for _, l := range launches(*quick) {
		if *component != "" && l.Component != *component {
			continue
		}
		var kept []plan.Case
		for _, c := range l.Cases {
			if c.Kind != plan.Bundle && !match.MatchString(c.Name) {
				continue
			}
			if *who != "" && c.Kind != plan.Bundle && c.Kind != plan.Memory {
				c.Contestants = strings.Split(*who, ",")
			}
			if *repeats > 0 {
				c.Repeats, c.Seconds = *repeats, 1e9
			}
			kept = append(kept, c)
		}
		if l.Cases = kept; len(kept) == 0 {
			continue
		}
		all.note(l)
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%v: %d cases", l, len(kept))
		err := r.run(ctx, l, func(line plan.Line) { all.add(l.Component, line) })
		fmt.Fprintf(os.Stderr, ", %.1f s\n", time.Since(began).Seconds())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	print(all)
	return nil
}
