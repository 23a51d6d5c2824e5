//go:build hdf5 && linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/samerun"
	"github.com/fieldstone-io/fieldstone/runfile"
)

var alone = part{name: "alone", ranks: 1, px: 1, py: 1, halo: 1}

// However much time the job has at first, in the end it has too little.
func TestJobThatEndsInTimeGetsLess(t *testing.T) {
	o := storyOptions(t)
	must(t, os.MkdirAll(o.dir, 0o777))
	var out bytes.Buffer
	s := &story{o: o, out: &out}
	dir := filepath.Join(t.TempDir(), "chain")
	g, err := s.stopByWallTime(t.Context(), alone, dir, time.Hour)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if g.status != "stopped" || int64(g.attempts) >= o.steps || g.attempts < 1 {
		t.Errorf("segment is %+v", g)
	}
	if !strings.Contains(out.String(), "once more, with less") {
		t.Errorf("output is\n%s", out.String())
	}
	// And with no time at all it makes a step.
	if g, err = s.stopByWallTime(t.Context(), alone, dir, 0); err != nil || g.attempts < 1 {
		t.Errorf("segment is %+v, %v", g, err)
	}
}

func TestChainOfAnotherRunIsFound(t *testing.T) {
	o := storyOptions(t)
	o.steps, o.every = 10, 10
	dirs := [2]string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	must(t, os.MkdirAll(o.dir, 0o777))
	for i, dir := range dirs {
		o.cells += i
		s := &story{o: o, out: new(bytes.Buffer)}
		if err := s.launch(alone, dir, s.withRun()...).run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s := &story{o: o, out: new(bytes.Buffer)}
	if _, err := s.sameOutput(t.Context(), dirs[0], dirs[1]); !errors.Is(err, samerun.ErrDiffer) {
		t.Errorf("error is %v", err)
	}
	if _, err := s.sameOutput(t.Context(), dirs[0], dirs[0]); err != nil {
		t.Error(err)
	}
}

// The tool is told of all segments, and a tool that fails is an error.
func TestToolDescribesTheFields(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	script := func(text string) { must(t, os.WriteFile(tool, []byte("#!/bin/sh\n"+text), 0o777)) }
	c := &chain{dir: dir, joined: &runfile.Solution{Files: []string{"a.h5", "b.h5"}}}

	script(fmt.Sprintf("echo \"$@\" >>%s/calls\n", dir))
	var out bytes.Buffer
	if err := c.write(t.Context(), &out, tool); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	must(t, err)
	series := filepath.Join(dir, "crystal.xmf")
	if want := "verify a.h5 b.h5\nxdmf -o " + series + " a.h5 b.h5\n"; string(calls) != want {
		t.Errorf("calls are %q, want %q", calls, want)
	}
	if !strings.Contains(out.String(), series) {
		t.Errorf("output is\n%s", out.String())
	}

	script("echo out of order; exit 3\n")
	var exit *exec.ExitError
	if err := c.write(t.Context(), &out, tool); !errors.As(err, &exit) || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("error is %v", err)
	}
}
