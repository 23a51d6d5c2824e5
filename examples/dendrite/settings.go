package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/examples/dendrite/internal/kobayashi"
	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// settings are what a run is told. Those with a key can stand in a JSON file;
// flags override it.
type settings struct {
	Grid           [2]int          `json:"grid"`     // cells along x and y
	Periodic       [2]bool         `json:"periodic"` // along x and y; otherwise walls
	Steps          int64           `json:"steps"`    // number of the last step
	Model          kobayashi.Model `json:"model"`
	publish.Config                 // restart_from and checkpoint
	Run            runSettings     `json:"run"`

	processes [2]int // ranks along x and y; zeros choose themselves
	halo      int    // ghost cells of the storage
	picture   string // PNG file
	progress  string
	events    bool
	hold      hold
}

// runSettings say what run files there are, beside the bundles, and what ends this
// segment of the run.
type runSettings struct {
	Name      string `json:"name"`       // begins the names of the files; empty: there are none
	Resume    bool   `json:"resume"`     // go on from the last checkpoint, if there is one
	SaveEvery int64  `json:"save_every"` // steps between two saved states
	WallTime  span   `json:"wall_time"`
	StopAfter int64  `json:"stop_after"` // steps of this segment
	StopFile  string `json:"stop_file"`
}

// A span is a duration that is a text in JSON, such as "23h40m".
type span struct{ time.Duration }

func (s *span) UnmarshalText(text []byte) (err error) {
	s.Duration, err = time.ParseDuration(string(text))
	return err
}

func (s span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func defaults() settings {
	set := settings{
		Grid:     [2]int{320, 320},
		Steps:    4000,
		Model:    kobayashi.Snowflake(),
		halo:     kobayashi.Reach,
		progress: progressAuto,
	}
	set.Checkpoint.Every = 500
	set.Run.SaveEvery = 100
	return set
}

// parse reads the command line. usage is where the help goes, when asked for.
func parse(args []string, usage io.Writer) (settings, error) {
	set := defaults()
	flags := flag.NewFlagSet("dendrite", flag.ContinueOnError)
	flags.SetOutput(usage)
	config := flags.String("config", "", "JSON `file` with grid, periodic, steps, model, restart_from, checkpoint, run; flags override it")
	flags.IntVar(&set.Grid[0], "nx", set.Grid[0], "cells along x")
	flags.IntVar(&set.Grid[1], "ny", set.Grid[1], "cells along y")
	flags.Func("periodic", "`axes` that are periodic: x, y, xy, none (default none: walls)", func(s string) error {
		if s != "none" && strings.Trim(s, "xy") != "" {
			return fmt.Errorf("want x, y, xy or none")
		}
		set.Periodic = [2]bool{strings.Contains(s, "x"), strings.Contains(s, "y")}
		return nil
	})
	flags.Int64Var(&set.Steps, "steps", set.Steps, "number of the last step")
	flags.StringVar(&set.Checkpoint.Directory, "out", "", "`directory` of the checkpoints (none: nothing is saved)")
	flags.Int64Var(&set.Checkpoint.Every, "every", set.Checkpoint.Every, "steps between two checkpoints (0: only at the end)")
	flags.StringVar(&set.RestartFrom, "restart", "", "`bundle` to go on from, or latest: the newest good one in the directory of the checkpoints")
	flags.Func("on-signal", "`signals` at which to save and stop, like SIGUSR1,SIGTERM", func(s string) error {
		set.Checkpoint.OnSignal = strings.Split(s, ",")
		return nil
	})
	flags.StringVar(&set.Run.Name, "run", "", "`name` of a run, whose files are written beside the bundles (needs HDF5)")
	flags.Int64Var(&set.Run.SaveEvery, "save", set.Run.SaveEvery, "steps between two states in the output of the run")
	flags.BoolVar(&set.Run.Resume, "resume", false, "go on from the last checkpoint of the run, where there is one")
	flags.TextVar(&set.Run.WallTime, "wall-time", set.Run.WallTime, "`time` after which this segment of the run stops, like 23h40m (0: no limit)")
	flags.Int64Var(&set.Run.StopAfter, "stop-after", 0, "`steps` after which this segment of the run stops (0: no limit)")
	flags.StringVar(&set.Run.StopFile, "stop-file", "", "`file` that stops the run when it appears")
	flags.IntVar(&set.halo, "halo", set.halo, "width of the ghost cells around the storage; the result does not depend on it")
	flags.IntVar(&set.processes[0], "px", 0, "ranks along x (with -py; 0: chosen)")
	flags.IntVar(&set.processes[1], "py", 0, "ranks along y (with -px; 0: chosen)")
	flags.StringVar(&set.picture, "png", "", "`file` for a picture of the last bundle")
	flags.StringVar(&set.progress, "progress", set.progress, "auto (a bar on a terminal, else lines), bar, lines, none")
	flags.BoolVar(&set.events, "events", false, "report to a program: lines that begin with @")
	flags.Func("hold", "`increment:step` of a publication at which to wait to be killed, like 500:field:T (for demos and tests)", set.hold.parse)

	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if *config != "" {
		if err := set.read(*config); err != nil {
			return set, fmt.Errorf("config %s: %w", *config, err)
		}
		if err := flags.Parse(args); err != nil {
			return set, err
		}
	}
	if flags.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return set, set.validate()
}

func (set *settings) read(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(set); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}

// validate checks what nothing later would.
func (set settings) validate() error {
	switch {
	case set.Steps < 1:
		return fmt.Errorf("steps is %d, must be 1 or more", set.Steps)
	case set.halo < kobayashi.Reach || set.halo > 64:
		return fmt.Errorf("halo is %d, must be %d to 64", set.halo, kobayashi.Reach)
	case (set.processes[0] == 0) != (set.processes[1] == 0):
		return fmt.Errorf("px is %d and py is %d: give both or none", set.processes[0], set.processes[1])
	case set.picture != "" && set.Checkpoint.Directory == "":
		return fmt.Errorf("a picture is made from the last checkpoint, but none is saved without -out")
	}
	if err := set.Config.Validate(); err != nil {
		return err
	}
	if list := set.Checkpoint.OnSignal; len(list) > 0 && set.Checkpoint.Directory == "" {
		return fmt.Errorf("on_signal is %s, but nothing is saved then without -out", strings.Join(list, ","))
	}
	if err := set.validateRun(); err != nil {
		return err
	}
	switch set.progress {
	case progressAuto, progressBar, progressLines, progressNone:
		return nil
	}
	return fmt.Errorf("progress is %q, must be auto, bar, lines or none", set.progress)
}

// maxStates is how many states a run may save: their times are in each of its files.
const maxStates = 1_000_000

func (set settings) validateRun() error {
	r := set.Run
	if r.Name == "" {
		if r != (runSettings{SaveEvery: r.SaveEvery}) {
			return fmt.Errorf("-resume, -wall-time, -stop-after and -stop-file are for a run with a name, but there is no -run")
		}
		return nil
	}
	switch k := set.Checkpoint; {
	case k.Directory == "":
		return fmt.Errorf("the files of run %s have no directory without -out", r.Name)
	case set.RestartFrom != "":
		return fmt.Errorf("run %s can't begin with the bundle %s: it goes on from its own checkpoints, by -resume", r.Name, set.RestartFrom)
	case k.Keep == 1 || k.Keep == 2:
		return fmt.Errorf("checkpoint.keep is %d: the bundles that the last two checkpoints of run %s name must be kept while the next one is written, so 3 at least", k.Keep, r.Name)
	case r.SaveEvery < 1:
		return fmt.Errorf("save is %d, must be 1 or more", r.SaveEvery)
	case set.Steps/r.SaveEvery > maxStates:
		return fmt.Errorf("save is %d: that makes more than %d states of %d steps", r.SaveEvery, maxStates, set.Steps)
	case r.WallTime.Duration < 0:
		return fmt.Errorf("wall-time is %v, must not be negative", r.WallTime)
	case r.StopAfter < 0:
		return fmt.Errorf("stop-after is %d, must not be negative", r.StopAfter)
	}
	return runfile.CheckName(r.Name)
}

func (h *hold) parse(s string) error {
	increment, at, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(increment, 10, 64)
	if !ok || err != nil || n < 1 {
		return fmt.Errorf("want an increment and a step, like 500:field:T")
	}
	*h = hold{increment: n, at: at}
	return nil
}
