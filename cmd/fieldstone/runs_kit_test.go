//go:build hdf5

package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// nothingOpen checks at the end of a test that the library has nothing open.
func nothingOpen(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if n := h5.OpenObjects(); n != 0 {
			t.Errorf("the library has %d objects open", n)
		}
	})
}

// must is for records that are always valid.
func must(r record.Record, err error) record.Record {
	if err != nil {
		panic(err)
	}
	return r
}

// runDomain is the grid of the field phi.
var runDomain = grid.Domain{Size: [3]int{4, 3, 2}, Origin: [3]float64{0, -1, 2}, Spacing: [3]float64{1, 0.5, 0.25}}

func runLayout() runfile.Layout {
	return runfile.Layout{
		R: []float64{0, 0.5, 1},
		Grids: []runfile.MomentumGrid{
			{Name: "grid_1", P: []float64{0, 1, 2}, Xi: []float64{-1, 1}},
			{Name: "grid_2", P: []float64{0, 1, 2, 3}, Xi: []float64{-1, 0, 1}},
		},
		Unknowns: []runfile.Unknown{
			{Name: "I", Kind: runfile.Scalar, Unit: "A", Scale: 1e6},
			{Name: "T", Kind: runfile.Radial, Unit: "eV", Scale: 1, Components: 1},
			{Name: "hot", Kind: runfile.Kinetic, Unit: "m^-3", Scale: 1, Grids: []string{"grid_1", "grid_2"}},
			{Name: "phi", Kind: runfile.Field, Scale: 1, Domain: runDomain},
		},
	}
}

// runSettings are settings with their hashes. edit changes the hashed ones.
func runSettings(edit func(b *record.Builder), segment record.Record) record.Record {
	b := record.NewBuilder()
	b.Section("system", edit)
	b.Section("time", func(b *record.Builder) {
		b.Floats("points", []float64{0, 0.25, 0.5, 0.75, 1}).Section("stepper", func(b *record.Builder) { b.Text("type", "heun") })
	})
	b.Section("run", func(b *record.Builder) { b.Text("description", "a decay") })
	hashed := must(b.Build())
	hashes := must(record.Hashes(hashed, "system", "time", "run"))
	return must(b.Record("hashes", hashes).Text("setup_hash", hashes.Hash()).
		Section("environment", func(b *record.Builder) { b.Text("machine", "node 1").Int("ranks", 4) }).
		Record("segment", segment).Build())
}

func tolerance(v float64) func(b *record.Builder) {
	return func(b *record.Builder) { b.Float("tolerance", v) }
}

// value is the value of phi at a saved time in a cell.
func value(time float64, x, y, z int) float64 { return 1000*time + float64(100*z+10*y+x) }

// output is the output of a segment with states at some times.
func output(settings record.Record, times ...float64) (*runfile.Solution, runfile.FieldReader) {
	s := &runfile.Solution{Settings: settings, Layout: runLayout(), Times: times}
	mean := runfile.UpdateStates{Name: "mean"}
	for _, t := range times {
		state := make([]float64, s.Layout.Size())
		for k := range state {
			state[k] = t + float64(k)
		}
		s.States = append(s.States, state)
		mean.States = append(mean.States, []float64{t, 1})
	}
	s.Updates = []runfile.UpdateStates{mean}
	return s, func(_ context.Context, _ string, state int, box grid.Box, dst []float64) error {
		i := 0
		for z := range box.Size[2] {
			for y := range box.Size[1] {
				for x := range box.Size[0] {
					dst[i] = value(times[state], x+box.Low[0], y+box.Low[1], z+box.Low[2])
					i++
				}
			}
		}
		return nil
	}
}

// attempts are attempted steps that aimed at some times; every third was rejected.
func attempts(times ...float64) (s runfile.Statistics) {
	for i, t := range times {
		s.Time, s.StepLength = append(s.Time, t), append(s.StepLength, 0.25)
		s.Accepted = append(s.Accepted, i%3 != 2)
		s.ErrorEstimate, s.WallTime = append(s.ErrorEstimate, 0.5), append(s.WallTime, 2)
		s.NonlinearIterations, s.LinearIterations = append(s.NonlinearIterations, 1), append(s.LinearIterations, 7)
		s.Outcome = append(s.Outcome, "converged")
		s.IterationAttempt, s.IterationResidual = append(s.IterationAttempt, int64(i+1)), append(s.IterationResidual, 1e-9)
		s.IterationLinear = append(s.IterationLinear, 7)
	}
	return s
}

func save(t *testing.T, path string, s *runfile.Solution, fields runfile.FieldReader) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := runfile.WriteOutput(t.Context(), path, s, runfile.Fields(fields)); err != nil {
		t.Fatal(err)
	}
}

const (
	segment1, segment2 = "results/decay.segment0001.h5", "results/decay.segment0002.h5"
	lastCheckpoint     = "results/decay.checkpoint.h5"
	previousCheckpoint = "results/decay.checkpoint.prev.h5"
)

// firstSegmentRecord is that of a segment which was stopped for a reason.
func firstSegmentRecord(reason string) (record.Record, error) {
	return record.Of(
		"index", 1, "start_time", 0.0, "saved_before", 0, "resumed", false, "status", "stopped", "end_time", 0.75, "steps", 4,
		"stop_reason", reason, "checkpoint_written", true, "attempts_before", 0, "deterministic", false,
	)
}

// firstSegment was stopped after it had gone on beyond its last checkpoint.
func firstSegment() (*runfile.Solution, runfile.FieldReader) {
	s, fields := output(runSettings(tolerance(1e-6), must(firstSegmentRecord("limit of 4 steps"))), 0, 0.25, 0.5, 0.75)
	s.Statistics = attempts(0.25, 0.5, 0.9, 0.75, 0.8)
	return s, fields
}

// secondSegment goes on from the checkpoint at 0.5 s, after three attempts.
func secondSegment() (*runfile.Solution, runfile.FieldReader) {
	settings := runSettings(tolerance(1e-6), record.Record{})
	hash, err := settings.Text("setup_hash")
	if err != nil {
		panic(err)
	}
	settings = must(settings.With("segment", must(record.Of(
		"index", 2, "start_time", 0.5, "saved_before", 3, "resumed", true, "status", "completed", "end_time", 1.0, "steps", 2,
		"checkpoint_written", true, "attempts_before", 3, "deterministic", false, "resumed_from", lastCheckpoint, "resumed_from_segment", 1,
		"previous_setup_hash", hash, "settings_changed", false,
	))))
	s, fields := output(settings, 0.75, 1)
	s.Statistics = attempts(0.75, 1)
	return s, fields
}

// checkpoint is one of a segment that has saved some states, and of which it has the
// record as it was then.
func checkpoint(time float64, segment, saved int) (*runfile.Checkpoint, runfile.FieldReader) {
	settings := runSettings(tolerance(1e-6), must(record.Of(
		"index", 1, "start_time", 0.0, "saved_before", 0, "resumed", false, "status", "running", "end_time", time, "steps", 2,
		"checkpoint_written", false, "attempts_before", 0, "deterministic", false,
	)))
	if segment == 2 {
		s, _ := secondSegment()
		section, err := s.Settings.Record("segment")
		section = must(must(section, err).With("checkpoint_written", false))
		settings = must(s.Settings.With("segment", section))
	}
	s, fields := output(settings, time)
	return &runfile.Checkpoint{
		Settings: s.Settings, Layout: s.Layout, Time: time, State: s.States[0], Segment: segment, SavedCount: saved,
		Summary: runfile.Summary{Attempted: 5, Accepted: 4, NonlinearIterations: 5, LinearIterations: 35, WallTime: 10},
		Stepper: must(record.Of("length", 0.25)), HasStepper: true,
		Updates: []runfile.UpdateState{{Name: "mean", State: []float64{time, 1}}},
	}, fields
}

// runs makes a run of two segments with its checkpoints under a fresh current
// directory, and a file of another writer.
func runs(t *testing.T) {
	t.Helper()
	nothingOpen(t)
	prepare(t, "runs", func(dir string) {
		s, fields := firstSegment()
		save(t, filepath.Join(dir, segment1), s, fields)
		s, fields = secondSegment()
		save(t, filepath.Join(dir, segment2), s, fields)
		for _, at := range []struct {
			time           float64
			segment, saved int
		}{{0.5, 1, 3}, {1, 2, 5}} {
			k, fields := checkpoint(at.time, at.segment, at.saved)
			if err := runfile.WriteCheckpoint(t.Context(), filepath.Join(dir, "results"), "decay", k, runfile.Fields(fields)); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, "theirs.h5"), read(t, filepath.Join(goldenRuns, "output.0.0.5.h5")))
	})
}

var goldenRuns, hostileRuns = absolute("../../runfile/testdata/golden"), absolute("../../runfile/testdata/hostile")

func absolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return path
}

// edit changes a run file, and takes its checksums away.
func edit(t *testing.T, path string, change func(f *h5.File) error) {
	t.Helper()
	f, err := h5.OpenReadWrite(path)
	if err != nil {
		t.Fatal(err)
	}
	if has, err := f.Exists("checksums"); err != nil || has && f.Unlink("checksums") != nil {
		t.Fatal("the checksums stay", err)
	}
	if err := change(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// replace puts another dataset in the place of one.
func replace(path string, write func(f *h5.File) error) func(f *h5.File) error {
	return func(f *h5.File) error {
		if err := f.Unlink(path); err != nil {
			return err
		}
		return write(f)
	}
}

// listed gives the names in a directory.
func listed(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// countdown is a context that ends when it has been looked at some times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left == 0 {
		return context.Canceled
	}
	c.left--
	return nil
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (n *number) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"NaN"`:
		*n = number(math.NaN())
		return nil
	case `"Infinity"`, `"-Infinity"`:
		*n = number(math.Inf(1 - 2*strings.Count(string(text), "-")))
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}
