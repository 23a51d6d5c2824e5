//go:build linux

// Command demo shows what a bundle is good for. It runs the dendrite solver on
// several ranks, kills all of them in the middle of a publication, restarts from
// what is left on fewer ranks with another decomposition and another halo, and
// compares the result, bit for bit, with that of a run that nobody disturbed. With
// HDF5 it goes on to show what run files are good for: a chain of two jobs, stopped
// by its wall time and resumed on other ranks, whose output joins to that of the
// undisturbed run.
//
// It looks for its processes in /proc, and so is for Linux. It exits with 0 when
// everything was as it must be, 1 when something differs,
// 2 for a wrong command line.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	o := options{}
	flag.StringVar(&o.solver, "solver", "", "the dendrite `program`")
	flag.StringVar(&o.mpi, "mpi", "openmpi", "`openmpi`, mpich, or none: one rank each time")
	flag.StringVar(&o.mpirun, "mpirun", "", "the launcher (default mpirun.openmpi or mpirun.mpich)")
	flag.StringVar(&o.tool, "tool", "", "the fieldstone `program`, built with HDF5, that describes run files to ParaView (default: the one in the directory of the solver, or that above, if there is one)")
	flag.StringVar(&o.dir, "dir", filepath.Join("build", "demo"), "working `directory`")
	flag.IntVar(&o.cells, "cells", 256, "cells along x and y")
	flag.Int64Var(&o.steps, "steps", 3000, "time steps")
	flag.Int64Var(&o.every, "every", 500, "steps between two checkpoints")
	flag.IntVar(&o.killAt, "kill", 4, "the `publication` in which the first run is killed, from 2")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute, "time after which a run counts as hanging")
	flag.Parse()
	if err := o.complete(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type options struct {
	solver, tool, mpi, mpirun, dir string

	cells        int
	steps, every int64
	killAt       int
	limit        time.Duration
}

func (o *options) complete() error {
	switch o.mpi {
	case "openmpi", "mpich":
		if o.mpirun == "" {
			o.mpirun = "mpirun." + o.mpi
		}
	case "none":
	default:
		return fmt.Errorf("-mpi is %q, must be openmpi, mpich or none", o.mpi)
	}
	switch killed := int64(o.killAt) * o.every; {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case o.solver == "":
		return fmt.Errorf("-solver is missing")
	case o.every < 1 || o.killAt < 2 || killed >= o.steps:
		return fmt.Errorf("a checkpoint every %d of %d steps has no publication %d with one before and one after it", o.every, o.steps, o.killAt)
	}
	var err error
	if o.solver, err = filepath.Abs(o.solver); err != nil {
		return err
	}
	if o.tool == "" {
		o.tool = toolNear(o.solver)
	}
	o.solver, err = filepath.EvalSymlinks(o.solver) // as /proc shows it
	return err
}

// toolNear looks for the tool where builds put it: beside the solver of an MPI, or in
// the directory above. It returns an empty path if there is none.
func toolNear(solver string) string {
	dir := filepath.Dir(solver)
	for _, dir := range []string{dir, filepath.Dir(dir)} {
		tool := filepath.Join(dir, "fieldstone")
		if info, err := os.Stat(tool); err == nil && info.Mode().IsRegular() {
			return tool
		}
	}
	return ""
}
