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
)

func TestCommandLine(t *testing.T) {
	config := filepath.Join(t.TempDir(), "run.json")
	text := `{"grid": [30, 20], "periodic": [true, false], "steps": 70, "model": {"latent": 1.6},
		"restart_from": "latest", "checkpoint": {"every": 7, "directory": "ckpt", "keep": 2, "on_signal": ["SIGTERM"]}}`
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
