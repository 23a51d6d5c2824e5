//go:build hdf5

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// A countingRun is a run of which the state is the time. It has a checkpoint after each
// step, whose field is in a bundle if there are any.
type countingRun struct {
	name    string
	stop    int64
	bundles bool
	rarely  bool // it ends before its first checkpoint
	log     bytes.Buffer
}

func (r *countingRun) config() runfile.Config {
	cfg := runfile.Config{
		Directory: "results", Name: r.name, Resume: true,
		Layout:     runfile.Layout{Unknowns: []runfile.Unknown{{Name: "I", Kind: runfile.Scalar}}},
		Initial:    []float64{0},
		TimePoints: []float64{0, 1, 2, 3, 4, 5},
		Checkpoint: runfile.CheckpointConfig{Steps: 1},
		Stop:       runfile.StopConfig{Steps: r.stop},
		Logger:     slog.New(slog.NewTextHandler(&r.log, nil)),
		Wait:       -1,
	}
	if r.rarely {
		cfg.Checkpoint.Steps = 100
	}
	if r.bundles {
		cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, runfile.Unknown{Name: "phi", Kind: runfile.Field, Domain: runDomain})
		cfg.SaveTimes = []float64{}
	}
	return cfg
}

// job runs one job, of some steps.
func (r *countingRun) job(t *testing.T) error {
	ctx := t.Context()
	cfg := r.config()
	var s *runfile.Session
	time := 0.0
	if r.bundles {
		cfg.Bundle = func(context.Context) (string, error) { return plainBundle(t, fmt.Sprintf("step_%v", time)), nil }
	}
	s, err := runfile.Open(ctx, comm.Self(), cfg)
	if err != nil {
		return err
	}
	time = s.Start().Time
	err = s.SaveState(ctx, []float64{time})
	for n, out := 0, (runfile.Outcome{}); err == nil && !out.Stop && !out.Done && !(r.rarely && n == 2); n++ {
		time = s.NextTime()
		s.Attempt(runfile.Attempt{Time: time, StepLength: 1, Accepted: true})
		if err = s.SaveState(ctx, []float64{time}); err == nil {
			out, err = s.Checkpoint(ctx, []float64{time}, func() (record.Record, error) { return record.Of("length", 1.0) })
		}
	}
	return errors.Join(err, s.Close(ctx))
}

// plainBundle makes a bundle with one field in the directory of the runs.
func plainBundle(t *testing.T, name string) string {
	dir := filepath.Join("results", name)
	d := runDomain.Size
	write(t, filepath.Join(dir, "metadata.json"), fmt.Appendf(nil, `{"format_version": 2, "accepted_time": 0, "accepted_increment": 0,
"method_identity": "", "domain": {"global_dimensions": [%d, %d, %d], "physical_origin": [0, 0, 0], "grid_spacing": [1, 1, 1],
"periodic": [true, true, true]}, "fields": ["phi"]}`, d[0], d[1], d[2]))
	write(t, filepath.Join(dir, "fields", "phi.bin"), make([]byte, 8*grid.Domain{Size: d}.Cells()))
	return name
}

// twoJobs makes two segments of a run in a fresh current directory, of two steps and of one.
func twoJobs(t *testing.T, r *countingRun) {
	prepare(t, fmt.Sprint("two jobs ", r.bundles), func(dir string) {
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		defer t.Chdir(here)
		for _, r.stop = range []int64{2, 1} {
			if err := r.job(t); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Whoever is asked about the files of a run says the same of them: verify, segments, join,
// and a run that resumes. The text is that of the fault.
func TestOneJudgement(t *testing.T) {
	const s1, s2, s3 = "results/r.segment0001.h5", "results/r.segment0002.h5", "results/r.segment0003.h5"
	const last, previous = "results/r.checkpoint.h5", "results/r.checkpoint.prev.h5"
	set := func(path, object string, v any) func(t *testing.T) {
		return func(t *testing.T) {
			edit(t, path, replace(object, func(f *h5.File) error {
				switch v := v.(type) {
				case int64:
					return h5.Write(f, object, []int64{v})
				case string:
					return f.WriteString(object, v)
				}
				return h5.Write(f, object, []float64{v.(float64)})
			}))
		}
	}
	renamed := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		bundles bool
		change  func(t *testing.T)
		bad     []string // files
		text    string   // of the fault
		start   float64  // at which a resumed run begins; -1: it is refused
		segment int
		joins   bool
	}{
		"good": {change: func(*testing.T) {}, start: 3, segment: 3, joins: true},
		"a checkpoint with another hash": {change: set(last, "settings/setup_hash", "x"), bad: []string{last},
			text: "settings/setup_hash: the hash does not match", start: 2, segment: 2, joins: true},
		"a torn checkpoint": {change: func(t *testing.T) { write(t, last, read(t, last)[:3000]) }, bad: []string{last},
			text: "not a usable HDF5 file", start: 2, segment: 2, joins: true},
		"a checkpoint that wasn't finished": {change: func(t *testing.T) {
			edit(t, last, func(f *h5.File) error { return f.DeleteAttribute("/", "complete") })
		}, bad: []string{last}, text: "the file was not finished", start: 2, segment: 2, joins: true},
		"an output in the place of a checkpoint": {change: func(t *testing.T) { write(t, last, read(t, s1)) }, bad: []string{last},
			text: "not a checkpoint", start: 2, segment: 2, joins: true},
		"a state that the segment lacks": {change: set(last, "checkpoint/saved_count", int64(9)), bad: []string{last},
			text: "checkpoint/saved_count: does not match: it is 9, " + s2 + " has 1 and 3 before it", start: -1, joins: true},
		"steps that the segment lacks": {change: set(last, "checkpoint/summary/attempted", int64(9)), bad: []string{last},
			text: "checkpoint/summary/attempted: does not match: it is 9, " + s2 + " has 1 and 2 before it", start: -1, joins: true},
		"a segment that ends before the checkpoint": {change: set(s2, "settings/segment/end_time", 2.5), bad: []string{last},
			text: "checkpoint/segment: does not match: it is 2, but " + s2 + " ends at 2.5 s, this is at 3 s: they are of different runs", start: -1, joins: true},
		"a segment that is missing": {change: func(t *testing.T) { remove(t, s2) }, bad: []string{last},
			text: "checkpoint/segment: does not match: it is 2, and there is no " + s2, start: 2, segment: 2, joins: true},
		"no segments": {change: func(t *testing.T) { remove(t, s1); remove(t, s2) }, start: 3, segment: 3},
		"a torn segment": {change: func(t *testing.T) { write(t, s2, read(t, s2)[:3000]) }, bad: []string{s2},
			text: "not a usable HDF5 file", start: -1},
		"a segment that wasn't finished": {change: func(t *testing.T) {
			edit(t, s2, func(f *h5.File) error { return f.DeleteAttribute("/", "complete") })
		}, bad: []string{s2}, text: "the file was not finished", start: -1},
		"a segment with another hash": {change: set(s2, "settings/hashes/time", "x"), bad: []string{s2},
			text: "settings/time: the hash does not match: stored is x", start: -1},
		"a segment of another number": {change: set(s2, "settings/segment/index", int64(7)), bad: []string{s2},
			text: "settings/segment/index: does not match: it is 7, and the file has the name of segment 2", start: -1},
		"a segment of another run": {change: func(t *testing.T) {
			other := &countingRun{name: "other", stop: 2}
			if err := errors.Join(other.job(t), other.job(t)); err != nil {
				t.Fatal(err)
			}
			renamed("results/other.segment0002.h5", s2)
		}, bad: []string{last}, text: ": they are of different runs", start: -1, joins: true},
		"a run that was overwritten": {change: func(t *testing.T) {
			if err := (&countingRun{name: "other", rarely: true}).job(t); err != nil {
				t.Fatal(err)
			}
			renamed(previous, last) // of the first segment
			renamed("results/other.segment0001.h5", s1)
			remove(t, s2)
		}, bad: []string{last}, text: ": the run was overwritten", start: 0, segment: 1, joins: true},
		"a directory in the place of the next segment": {change: func(t *testing.T) { write(t, s3+"/x", nil) }, bad: []string{s3},
			text: "it is no regular file", start: -1, joins: true},
		"a directory in the place of the last checkpoint": {change: func(t *testing.T) { remove(t, last); write(t, last+"/x", nil) }, bad: []string{last},
			text: "it is no regular file", start: -1, joins: true},
		"a bundle that is lost": {bundles: true, change: func(t *testing.T) { remove(t, "results/step_3/metadata.json") }, bad: []string{last},
			text: "checkpoint/bundles/phi: the bundle step_3: file does not exist: there is no results/step_3/metadata.json", start: 2, segment: 2, joins: true},
		"a bundle that lacks a part of a field": {bundles: true, change: func(t *testing.T) { write(t, "results/step_3/fields/phi.bin", []byte("short")) }, bad: []string{last},
			text: "checkpoint/bundles/phi: the bundle step_3: does not match: results/step_3/fields/phi.bin has 5 bytes, its domain takes 192", start: 2, segment: 2, joins: true},
	} {
		t.Run(name, func(t *testing.T) {
			nothingOpen(t)
			r := &countingRun{name: "r", stop: 2, bundles: c.bundles}
			twoJobs(t, r)
			c.change(t)

			var files []string
			for _, file := range []string{last, previous, s1, s2, s3} {
				if exists(file) {
					files = append(files, file)
				}
			}
			bad := 0
			for _, file := range files {
				good := true
				for _, b := range c.bad {
					good = good && b != file
				}
				o := run(t, "verify", file)
				if (o.status == 0) != good || !good && !strings.Contains(o.errors, c.text) {
					t.Errorf("verify %s: %d: %s%s", file, o.status, o.out, o.errors)
				}
				if !good {
					bad++
				}
			}
			o := run(t, "verify", "results")
			if (o.status == 0) != (bad == 0) || bad > 0 && !strings.Contains(o.errors, c.text) {
				t.Errorf("verify of all: %d: %s%s", o.status, o.out, o.errors)
			}
			l := run(t, "segments", "results", "r")
			if bad > 0 && !strings.Contains(l.out, c.text) || strings.Contains(l.out, " bad ") && bad == 0 {
				t.Errorf("segments: %s%s", l.out, l.errors)
			}
			var segments []string
			for _, file := range files {
				if strings.Contains(file, "segment") && !isDir(file) {
					segments = append(segments, file)
				}
			}
			if segments != nil {
				o := run(t, append([]string{"join", "-o", "joined.h5"}, segments...)...)
				if (o.status == 0) != c.joins || !c.joins && !strings.Contains(o.errors, c.text) {
					t.Errorf("join: %d: %s%s", o.status, o.out, o.errors)
				}
			}

			r.log.Reset()
			cfg := r.config()
			if c.bundles {
				cfg.Bundle = func(context.Context) (string, error) { return "", nil }
			}
			before := strings.Join(listed(t, "results"), " ")
			s, err := runfile.Open(t.Context(), comm.Self(), cfg)
			if c.start < 0 {
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("a run that resumes returns %v", err)
				}
				if after := strings.Join(listed(t, "results"), " "); strings.ReplaceAll(after, " r.lock", "") != strings.ReplaceAll(before, " r.lock", "") {
					t.Errorf("there are %s, were %s", after, before)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Start(); got.Time != c.start || got.Segment != c.segment {
				t.Errorf("segment %d starts at %v s, want %d at %v s", got.Segment, got.Time, c.segment, c.start)
			}
			if log := strings.ReplaceAll(r.log.String(), `\"`, `"`); c.text != "" && !strings.Contains(log, c.text) {
				t.Errorf("the log is %s", log)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}

			// What comes of it is good, and joins.
			r.stop = 9
			if err := r.job(t); err != nil {
				t.Fatal(err)
			}
			if o := run(t, "verify", "results"); o.status != 0 {
				t.Errorf("verify of what comes of it: %s%s", o.out, o.errors)
			}
			if o := run(t, "segments", "results", "r"); !strings.Contains(o.out, "the segments join\n") {
				t.Errorf("segments of what comes of it: %s", o.out)
			}
		})
	}
}
