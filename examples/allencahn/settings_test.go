package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want func(set *settings)
	}{
		{"nothing gives the defaults", nil, func(set *settings) {}},
		{"grid and ranks", []string{"-nx", "9", "-ny", "8", "-nz", "7", "-periodic", "xz", "-px", "2", "-py", "1", "-pz", "3"}, func(set *settings) {
			set.grid, set.periodic, set.processes = [3]int{9, 8, 7}, [3]bool{true, false, true}, [3]int{2, 1, 3}
		}},
		{"walls again", []string{"-periodic", "xyz", "-periodic", "none"}, func(set *settings) {}},
		{"model", []string{"-mobility", "0.5", "-kappa", "3", "-width", "1.5", "-spacing", "0.75", "-dt", "0.01"}, func(set *settings) {
			m := &set.model
			m.Mobility, m.Kappa, m.Width, m.Spacing, m.Step = 0.5, 3, 1.5, 0.75, 0.01
		}},
		{"start", []string{"-start", "random", "-seed", "5", "-radius", "12.5"}, func(set *settings) {
			set.start, set.seed, set.radius = startRandom, 5, 12.5
		}},
		{"run", []string{"-device", "emulated:3", "-steps", "80", "-out", "ckpt", "-every", "7", "-keep", "2", "-restart", "latest", "-on-signal", "SIGTERM,SIGUSR1", "-wall-time", "90s", "-progress=false"}, func(set *settings) {
			set.device, set.steps, set.wallTime, set.progress = "emulated:3", 80, 90*time.Second, false
			set.saves.RestartFrom = "latest"
			c := &set.saves.Checkpoint
			c.Directory, c.Every, c.Keep, c.OnSignal = "ckpt", 7, 2, []string{"SIGTERM", "SIGUSR1"}
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

func TestWrongCommandLineNamesFlagAndValue(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-nz", "0"}, "-nz is 0"},
		{[]string{"-nx", "many"}, `"many" for flag -nx`},
		{[]string{"-px", "2"}, "-px, -py, -pz are [2 0 0]"},
		{[]string{"-px", "-1", "-py", "-1", "-pz", "-1"}, "-px, -py, -pz are [-1 -1 -1]"},
		{[]string{"-periodic", "w"}, `"w" for flag -periodic`},
		{[]string{"-periodic", ""}, `"" for flag -periodic`},
		{[]string{"-steps", "0"}, "-steps is 0"},
		{[]string{"-device", "abacus:0"}, `-device is "abacus:0", must be host, or`},
		{[]string{"-device", ""}, `-device is ""`},
		{[]string{"-start", "cube"}, `-start is "cube"`},
		{[]string{"-start", "plane", "-periodic", "xy"}, `-start is "plane", which needs walls along x`},
		{[]string{"-radius", "-2"}, "-radius is -2"},
		{[]string{"-radius", "NaN"}, "-radius is NaN"},
		{[]string{"-mobility", "0"}, "-mobility is 0"},
		{[]string{"-kappa", "-1"}, "-kappa is -1"},
		{[]string{"-width", "0.5"}, "-width is 0.5"},
		{[]string{"-spacing", "Inf"}, "-spacing is +Inf"},
		{[]string{"-dt", "1"}, "-dt is 1, must be at most"},
		{[]string{"-out", "x", "-every", "-1"}, "-every is -1"},
		{[]string{"-out", "x", "-keep", "-1"}, "-keep is -1"},
		{[]string{"-out", "x", "-wall-time", "-1s"}, "-wall-time is -1s"},
		{[]string{"-out", "x", "-on-signal", "SIGWEIRD"}, "-on-signal is SIGWEIRD"},
		{[]string{"-wall-time", "1h"}, "-wall-time is 1h0m0s, but nothing is saved then without -out"},
		{[]string{"-on-signal", "SIGTERM"}, "-on-signal is SIGTERM, but nothing is saved then without -out"},
		{[]string{"-restart", "latest"}, "-restart is latest"},
		{[]string{"run"}, `unexpected argument "run"`},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			var usage bytes.Buffer
			_, err := parse(tc.args, &usage)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
			if usage.Len() > 0 {
				t.Errorf("the help hides the error: %s", usage.String())
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
		t.Errorf("usage is %q", usage.String())
	}
}

func TestExitStatus(t *testing.T) {
	nowhere, err := filepath.Abs("nowhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		says   string // one line of it is enough
	}{
		{"a run that ends", nil, 0, "step 2 of 2 (100 %)"},
		{"help", []string{"-h"}, 0, "Usage of allencahn"},
		{"a device that isn't there", []string{"-device", "emulated:99"}, 1,
			`allencahn: rank 0: -device emulated:99: open device "emulated:99": unavailable`},
		{"a bundle that isn't there", []string{"-device", "emulated", "-restart", "nowhere"}, 1, "allencahn: restart: rank 0: stat " + nowhere},
		{"a wrong flag", []string{"-dt", "5"}, 2, "allencahn: -dt is 5, must be at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// A process of its own, since MPI can't begin twice in one.
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			c := exec.Command(self, append([]string{"-nx", "4", "-ny", "4", "-nz", "4", "-steps", "2"}, tc.args...)...)
			c.Env = append(os.Environ(), asCommand+"=1")
			output, err := c.CombinedOutput()
			if c.ProcessState == nil {
				t.Fatal(err)
			}
			if got := c.ProcessState.ExitCode(); got != tc.status || !strings.Contains(string(output), tc.says) {
				t.Errorf("status is %d, want %d, with %q:\n%s", got, tc.status, tc.says, output)
			}
		})
	}
}
