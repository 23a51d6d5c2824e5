package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestCommandLine(t *testing.T) {
	config := filepath.Join(t.TempDir(), "run.json")
	text := `{"grid": [30, 20], "periodic": [true, false], "steps": 70, "model": {"latent": 1.6},
		"restart_from": "latest", "checkpoint": {"every": 7, "directory": "ckpt", "keep": 2, "on_signal": ["SIGTERM"]}}`
	runConfig := filepath.Join(t.TempDir(), "chain.json")
	runText := `{"checkpoint": {"every": 0, "every_seconds": 1800, "directory": "results"},
		"run": {"name": "crystal", "resume": true, "save_every": 20, "wall_time": "23h40m", "stop_after": 9, "stop_file": "halt"}}`
	if err := os.WriteFile(runConfig, []byte(runText), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		want func(set *settings)
	}{
		{"nothing gives the defaults", nil, func(set *settings) {}},
		{"flags", []string{"-nx", "9", "-ny", "8", "-periodic", "xy", "-px", "2", "-py", "3", "-halo", "4", "-hold", "500:field:T"}, func(set *settings) {
			set.Grid, set.Periodic = [2]int{9, 8}, [2]bool{true, true}
			set.processes, set.halo = [2]int{2, 3}, 4
			set.hold = hold{500, "field:T"}
		}},
		{"a file overrides the defaults, flags override the file", []string{"-steps", "80", "-config", config, "-periodic", "none"}, func(set *settings) {
			set.Grid, set.Steps = [2]int{30, 20}, 80
			set.Model.Latent = 1.6
			set.RestartFrom = "latest"
			set.Checkpoint.Every, set.Checkpoint.Directory = 7, "ckpt"
			set.Checkpoint.Keep, set.Checkpoint.OnSignal = 2, []string{"SIGTERM"}
		}},
		{"flags of a run", []string{"-out", "results", "-run", "crystal", "-save", "20", "-resume", "-wall-time", "1h30m", "-stop-after", "5", "-stop-file", "halt", "-on-signal", "SIGUSR1,SIGTERM"}, func(set *settings) {
			set.Checkpoint.Directory = "results"
			set.Checkpoint.OnSignal = []string{"SIGUSR1", "SIGTERM"}
			set.Run = runSettings{Name: "crystal", Resume: true, SaveEvery: 20, WallTime: span{90 * time.Minute}, StopAfter: 5, StopFile: "halt"}
		}},
		{"a file for a run, and a flag", []string{"-config", runConfig, "-stop-file", "end"}, func(set *settings) {
			set.Checkpoint.Directory = "results"
			set.Checkpoint.Every, set.Checkpoint.EverySeconds = 0, 1800
			set.Run = runSettings{Name: "crystal", Resume: true, SaveEvery: 20, WallTime: span{23*time.Hour + 40*time.Minute}, StopAfter: 9, StopFile: "end"}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parse(tc.args, new(bytes.Buffer))
			if err != nil {
				t.Fatal(err)
			}
			want := defaults()
			tc.want(&want)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("settings are\n%+v, want\n%+v", got, want)
			}
		})
	}
}

func TestWrongCommandLine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no step", []string{"-steps", "0"}, "steps is 0"},
		{"no ghost cells", []string{"-halo", "0"}, "halo is 0"},
		{"px without py", []string{"-px", "2"}, "give both or none"},
		{"unknown axis", []string{"-periodic", "z"}, "want x, y, xy or none"},
		{"unknown progress", []string{"-progress", "loud"}, `progress is "loud"`},
		{"latest of no directory", []string{"-restart", "latest"}, "checkpoint.directory"},
		{"a picture of nothing", []string{"-png", "x.png"}, "without -out"},
		{"a hold without a step", []string{"-hold", "12"}, "want an increment and a step"},
		{"signals of no saves", []string{"-on-signal", "SIGTERM"}, "nothing is saved then without -out"},
		{"a signal that can't be", []string{"-out", "d", "-on-signal", "SIGKILL"}, `"SIGKILL" is not one of`},
		{"a run without a directory", []string{"-run", "a"}, "run a have no directory without -out"},
		{"a run that restarts", []string{"-run", "a", "-out", "d", "-restart", "latest"}, "run a can't begin with the bundle latest"},
		{"a name with a slash", []string{"-run", "a/b", "-out", "d"}, "a/b"},
		{"a run that keeps too little", []string{"-run", "a", "-config", file("keep", `{"checkpoint": {"directory": "d", "keep": 2}}`)}, "checkpoint.keep is 2"},
		{"resume of no run", []string{"-out", "d", "-resume"}, "there is no -run"},
		{"a wall time of no run", []string{"-out", "d", "-wall-time", "1h"}, "there is no -run"},
		{"steps of no run", []string{"-out", "d", "-stop-after", "3"}, "there is no -run"},
		{"a stop file of no run", []string{"-out", "d", "-stop-file", "halt"}, "there is no -run"},
		{"states at no steps", []string{"-run", "a", "-out", "d", "-save", "0"}, "save is 0"},
		{"too many states", []string{"-run", "a", "-out", "d", "-save", "1", "-steps", "2000000"}, "more than 1000000 states"},
		{"a wall time that isn't one", []string{"-run", "a", "-out", "d", "-wall-time", "soon"}, "invalid value"},
		{"a negative wall time", []string{"-run", "a", "-out", "d", "-wall-time", "-1s"}, "wall-time is -1s"},
		{"a negative number of steps", []string{"-run", "a", "-out", "d", "-stop-after", "-1"}, "stop-after is -1"},
		{"unknown key of a run", []string{"-config", file("run", `{"run": {"nmae": "a"}}`)}, "nmae"},
		{"a wall time without a unit", []string{"-config", file("time", `{"run": {"wall_time": "30"}}`)}, "missing unit"},
		{"an argument", []string{"run"}, `unexpected argument "run"`},
		{"no such file", []string{"-config", filepath.Join(dir, "none")}, "no such file"},
		{"unknown key", []string{"-config", file("key", `{"stesp": 3}`)}, "stesp"},
		{"unknown key of the service", []string{"-config", file("ckpt", `{"checkpoint": {"evry": 3}}`)}, "evry"},
		{"two values", []string{"-config", file("two", `{} {}`)}, "more than one JSON value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parse(tc.args, new(bytes.Buffer))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var usage bytes.Buffer
	if _, err := parse([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error is %v", err)
	}
	if !strings.Contains(usage.String(), "-restart") {
		t.Errorf("help is %q", usage.String())
	}
}
