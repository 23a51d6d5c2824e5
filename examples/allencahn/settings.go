package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/publish"
)

// settings are what a run is told.
type settings struct {
	device    string
	grid      [3]int  // cells along x, y and z
	periodic  [3]bool // otherwise walls
	processes [3]int  // ranks along x, y and z; zeros choose themselves
	steps     int64   // number of the last step
	model     phasefield.Model
	start     string
	radius    float64 // of the sphere; 0 chooses itself
	seed      uint64  // of the random start
	saves     publish.Config
	wallTime  time.Duration // after which the run stops; 0: never
	progress  bool
}

// The states to start from.
const (
	startSphere = "sphere"
	startPlane  = "plane"
	startRandom = "random"
)

// onHost is the device that is none.
const onHost = "host"

func defaults() settings {
	set := settings{
		device:   onHost,
		grid:     [3]int{128, 128, 128},
		steps:    1000,
		model:    phasefield.Standard(),
		start:    startSphere,
		seed:     1979,
		progress: true,
	}
	set.saves.Checkpoint.Every = 200
	return set
}

// parse reads the command line. usage is where the help goes, when asked for.
func parse(args []string, usage io.Writer) (settings, error) {
	set := defaults()
	flags := flag.NewFlagSet("allencahn", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is enough, without all the help
	flags.StringVar(&set.device, "device", set.device, "`memory` for the cells: host, or a kind of device ("+strings.Join(device.Kinds(), ", ")+
		"), alone for one for each rank of a node, or with a number, like "+device.Kinds()[0]+":0, for this one")
	for axis, name := range axes {
		flags.IntVar(&set.grid[axis], "n"+name, set.grid[axis], "cells along "+name)
		flags.IntVar(&set.processes[axis], "p"+name, 0, "ranks along "+name+" (all three or none: chosen)")
	}
	flags.Func("periodic", "`axes` that are periodic, like xy or xyz, or none (default none: walls)", func(s string) error {
		if s != "none" && (s == "" || strings.Trim(s, "xyz") != "") {
			return fmt.Errorf("want some of x, y and z, or none")
		}
		for axis, name := range axes {
			set.periodic[axis] = s != "none" && strings.Contains(s, name)
		}
		return nil
	})
	flags.Int64Var(&set.steps, "steps", set.steps, "number of the last step")
	flags.Float64Var(&set.model.Mobility, "mobility", set.model.Mobility, "mobility of the interfaces")
	flags.Float64Var(&set.model.Kappa, "kappa", set.model.Kappa, "coefficient of the gradient energy")
	flags.Float64Var(&set.model.Width, "width", set.model.Width, "width of the interfaces")
	flags.Float64Var(&set.model.Spacing, "spacing", set.model.Spacing, "distance of two cells")
	flags.Float64Var(&set.model.Step, "dt", set.model.Step, "time step")
	flags.StringVar(&set.start, "start", set.start, "`state` at time 0: sphere, plane (across x), random")
	flags.Float64Var(&set.radius, "radius", set.radius, "of the sphere (0: three eighths of the shortest edge)")
	flags.Uint64Var(&set.seed, "seed", set.seed, "of the random start")
	flags.StringVar(&set.saves.Checkpoint.Directory, "out", "", "`directory` of the checkpoints (none: nothing is saved)")
	flags.Int64Var(&set.saves.Checkpoint.Every, "every", set.saves.Checkpoint.Every, "steps between two checkpoints (0: only at the end)")
	flags.IntVar(&set.saves.Checkpoint.Keep, "keep", 0, "number of newest checkpoints to keep (0: all)")
	flags.StringVar(&set.saves.RestartFrom, "restart", "", "`bundle` to go on from, or latest: the newest good one in the directory of the checkpoints")
	flags.Func("on-signal", "`signals` at which to save and stop, like SIGTERM,SIGUSR1", func(s string) error {
		set.saves.Checkpoint.OnSignal = strings.Split(s, ",")
		return nil
	})
	flags.DurationVar(&set.wallTime, "wall-time", 0, "`time`, like 3h50m, after which to save and stop (0: none)")
	flags.BoolVar(&set.progress, "progress", set.progress, "tell how the run goes on")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(usage, "Usage of allencahn:")
			flags.SetOutput(usage)
			flags.PrintDefaults()
		}
		return set, err
	}
	if flags.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return set, set.validate()
}

var axes = [3]string{"x", "y", "z"}

// validate checks all that can be wrong with a command line alone, so that every
// rank comes to the same verdict. Errors name the flag and its value.
func (set settings) validate() error {
	for axis, n := range set.grid {
		if n < 1 {
			return fmt.Errorf("-n%s is %d, must be 1 or more", axes[axis], n)
		}
		if p := set.processes[axis]; p < 0 || (p == 0) != (set.processes[0] == 0) {
			return fmt.Errorf("-px, -py, -pz are %v, must all be given, 1 or more, or none", set.processes)
		}
	}
	kind, _, _ := strings.Cut(set.device, ":")
	saves := set.saves.Checkpoint
	switch {
	case set.device != onHost && !slices.Contains(device.Kinds(), kind):
		return fmt.Errorf("-device is %q, must be %s, or %s with or without a number, like %s:0",
			set.device, onHost, strings.Join(device.Kinds(), " or "), device.Kinds()[0])
	case set.steps < 1:
		return fmt.Errorf("-steps is %d, must be 1 or more", set.steps)
	case !slices.Contains([]string{startSphere, startPlane, startRandom}, set.start):
		return fmt.Errorf("-start is %q, must be %s, %s or %s", set.start, startSphere, startPlane, startRandom)
	case set.start == startPlane && set.periodic[0]:
		return fmt.Errorf("-start is %q, which needs walls along x, but -periodic has x", set.start)
	case !(set.radius >= 0) || math.IsInf(set.radius, 0):
		return fmt.Errorf("-radius is %v, must be finite and 0 or more", set.radius)
	case saves.Every < 0:
		return fmt.Errorf("-every is %d, must be 0 or more", saves.Every)
	case saves.Keep < 0:
		return fmt.Errorf("-keep is %d, must be 0 or more", saves.Keep)
	case set.wallTime < 0:
		return fmt.Errorf("-wall-time is %v, must be 0 or more", set.wallTime)
	}
	if saves.Directory == "" {
		switch {
		case set.saves.RestartFrom == publish.Latest:
			return fmt.Errorf("-restart is %s, which is looked for in the directory of -out, but there is none", publish.Latest)
		case set.wallTime > 0:
			return fmt.Errorf("-wall-time is %v, but nothing is saved then without -out", set.wallTime)
		case len(saves.OnSignal) > 0:
			return fmt.Errorf("-on-signal is %s, but nothing is saved then without -out", strings.Join(saves.OnSignal, ","))
		}
	}
	if err := set.model.Validate(); err != nil {
		return fmt.Errorf("-%w", err) // it begins with the name of the flag
	}
	if err := set.saves.Validate(); err != nil {
		return fmt.Errorf("-on-signal is %s: %w", strings.Join(saves.OnSignal, ","), err) // what is left to find
	}
	return nil
}
