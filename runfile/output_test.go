//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, states := range []int{0, 1, 3} {
		for name, opts := range map[string][]Option{
			"in place":            nil,
			"atomically":          {Atomic()},
			"to be extended":      {Extendible()},
			"atomic and extended": {Atomic(), Extendible()},
		} {
			t.Run(fmt.Sprintf("%d states %s", states, name), func(t *testing.T) {
				closed(t)
				path := filepath.Join(t.TempDir(), "run.h5")
				s := everything(t, states)
				if err := WriteOutput(t.Context(), path, s, append(opts, Fields(fieldValues))...); err != nil {
					t.Fatal(err)
				}
				got, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
				if err != nil {
					t.Fatal(err)
				}
				if states == 0 {
					s.Updates = nil // they leave no trace
				}
				same(t, "solution", got, s)
				if got.Settings.Hash() != s.Settings.Hash() {
					t.Error("the hash of the settings is another one")
				}
				b := grid.Box{Low: [3]int{1, 0, 1}, Size: [3]int{2, 3, 1}}
				for i := range states {
					values, want := make([]float64, b.Cells()), make([]float64, b.Cells())
					if err := got.ReadField(t.Context(), "phi", i, b, values); err != nil {
						t.Fatal(err)
					}
					if err := fieldValues(t.Context(), "phi", i, b, want); err != nil {
						t.Fatal(err)
					}
					same(t, "field", values, want)
				}
			})
		}
	}
}

func TestSettingsAreReadTypeForType(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	s := everything(t, 1)
	if err := WriteOutput(t.Context(), path, s, Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSettings(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(s.Settings) || got.Hash() != s.Settings.Hash() {
		t.Errorf("got\n%v\nwant\n%v", got, s.Settings)
	}
	if got.String() != s.Settings.String() {
		t.Errorf("the order of keys was lost: got\n%v\nwant\n%v", got, s.Settings)
	}
}

// chunksOf makes chunks small.
func chunksOf(bytes int) Option {
	return func(o *options) error { o.chunkBytes = bytes; return nil }
}

func TestLargeDatasetsAreSplit(t *testing.T) {
	// A plane of the field has 96 bytes.
	for _, bytes := range []int{96, 150, 192, 1 << 20} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			closed(t)
			path := filepath.Join(t.TempDir(), "run.h5")
			s := everything(t, 3)
			if err := WriteOutput(t.Context(), path, s, Extendible(), chunksOf(bytes), Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			got, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "solution", got, s)
			values, want := make([]float64, box.Cells()), make([]float64, box.Cells())
			if err := got.ReadField(t.Context(), "phi", 2, box.Box(), values); err != nil {
				t.Fatal(err)
			}
			if err := fieldValues(t.Context(), "phi", 2, box.Box(), want); err != nil {
				t.Fatal(err)
			}
			same(t, "field", values, want)
		})
	}
	path := filepath.Join(t.TempDir(), "run.h5")
	if err := WriteOutput(t.Context(), path, everything(t, 1), chunksOf(95), Fields(fieldValues)); err != nil {
		t.Errorf("a plane that is larger than a chunk: %v", err)
	}
}

func TestChunksOfAFieldAreAlike(t *testing.T) {
	for _, c := range []struct{ z, most, want int }{{1, 10, 1}, {10, 10, 10}, {11, 10, 6}, {20, 10, 10}, {21, 10, 7}, {7, 1, 1}, {7, 0, 1}} {
		d := grid.Domain{Size: [3]int{5, 3, c.z}}
		if got, err := planes(d, c.most*5*3*8); err != nil || got != c.want {
			t.Errorf("%d planes in chunks of %d at most: %d, %v; want %d", c.z, c.most, got, err, c.want)
		}
	}
}

// A plane is the smallest chunk of a field.
func TestLargePlanes(t *testing.T) {
	for _, c := range []struct {
		x, y int
		ok   bool
	}{{12000, 12000, true}, {1 << 15, 1<<14 - 1, true}, {1 << 15, 1 << 14, false}, {1 << 30, 1, false}} {
		n, err := planes(grid.Domain{Size: [3]int{c.x, c.y, 3}}, chunkBytes)
		if c.ok && (n != 1 || err != nil) || !c.ok && !errors.Is(err, ErrInput) {
			t.Errorf("%d x %d cells: %d planes, %v", c.x, c.y, n, err)
		}
	}
}

// invalid are solutions that can't be written, and what the error names.
var invalid = map[string]struct {
	change func(s *Solution)
	names  string
}{
	"an unknown twice":         {func(s *Solution) { s.Layout.Unknowns[1].Name = "current" }, `"current"`},
	"a unit with a line break": {func(s *Solution) { s.Layout.Unknowns[1].Unit = "V\n" }, `"E"`},
	"times that don't ascend":  {func(s *Solution) { s.Times[1] = 0 }, "0 s"},
	"a time that is NaN":       {func(s *Solution) { s.Times[1] = math.NaN() }, "NaN"},
	"a state too few":          {func(s *Solution) { s.States = s.States[:1] }, "1 states at 2 times"},
	"a state too short":        {func(s *Solution) { s.States[1] = s.States[1][1:] }, "state 1"},
	"an outcome with NUL":      {func(s *Solution) { s.Statistics.Outcome[0] = "a\x00" }, "outcome 0"},
	"an outcome in no UTF-8":   {func(s *Solution) { s.Statistics.Outcome[0] = "\xff" }, "outcome 0"},
	"an update twice":          {func(s *Solution) { s.Updates[1].Name = "flux" }, `"flux"`},
	"an update named order":    {func(s *Solution) { s.Updates[1].Name = "order" }, "order"},
	"an update too few":        {func(s *Solution) { s.Updates[1].States = s.Updates[1].States[:1] }, `"mean"`},
	"updates of two lengths":   {func(s *Solution) { s.Updates[1].States[1] = nil }, `"mean"`},
	"attempts of two lengths":  {func(s *Solution) { s.Statistics.Outcome = []string{"a"} }, "outcome has 1 entries for 3"},
	"iterations too few":       {func(s *Solution) { s.Statistics.IterationLinear = []int64{1} }, "iteration_linear"},
	"an iteration of none":     {func(s *Solution) { s.Statistics.IterationAttempt[0] = 0 }, "iteration_attempt"},
}

func TestWhatCantBeWrittenIsRefusedBeforeTheFileIsTouched(t *testing.T) {
	for name, c := range invalid {
		t.Run(name, func(t *testing.T) {
			closed(t)
			path := filepath.Join(t.TempDir(), "run.h5")
			s := everything(t, 2)
			c.change(s)
			err := WriteOutput(t.Context(), path, s, Fields(fieldValues))
			if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%v does not match or name %s", err, c.names)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("there is a file: %v", err)
			}
		})
	}
	golden, err := ReadSettings(t.Context(), "testdata/golden/output.0.0.5.h5")
	if err != nil {
		t.Fatal(err)
	}
	s := everything(t, 1)
	s.Settings = golden
	if err := WriteOutput(t.Context(), filepath.Join(t.TempDir(), "run.h5"), s, Fields(fieldValues)); !errors.Is(err, ErrInput) || !errors.Is(err, record.ErrKey) {
		t.Errorf("settings with keys of others: %v", err)
	}
}

// One radius with one momentum grid of its own is what others may write as a group.
func TestOneRadiusAsAGroup(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	s := &Solution{Layout: everyUnknown(), Times: []float64{0, 1}}
	s.Layout.R, s.Layout.Unknowns = []float64{0, 1}, s.Layout.Unknowns[3:4]
	for i := range 2 {
		state := make([]float64, 8)
		for k := range state {
			state[k] = float64(10*i + k)
		}
		s.States = append(s.States, state)
	}
	if err := WriteOutput(t.Context(), path, s); err != nil {
		t.Fatal(err)
	}
	apply(t, path, unlink("unknowns/f"), func(f *h5.File) error {
		return h5.Write(f, "unknowns/f/radius_1", slices.Concat(s.States...), 2, 2, 4)
	})
	got, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "solution", got, s)
}

// Numbers that others store in another way are the same numbers.
func TestOtherFormsOfNumbers(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	s := everything(t, 2)
	if err := WriteOutput(t.Context(), path, s, Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	for i := range s.States {
		for k := range s.States[i][:4] {
			s.States[i][k] = float64(i + k)
		}
	}
	apply(t, path,
		replace("unknowns/current", func(f *h5.File) error { return h5.Write(f, "unknowns/current", []int16{0, 1}, 2) }),
		replace("unknowns/E", func(f *h5.File) error {
			l := h5.Layout{Shape: []int{2, 3, 1}, Chunk: []int{1, 3, 1}, Deflate: 1}
			return errors.Join(h5.CreateDataset[float32](f, "unknowns/E", l),
				h5.WriteSlab(f, "unknowns/E", []float32{1, 2, 3, 2, 3, 4}, []int{0, 0, 0}, l.Shape))
		}),
		replace("time", func(f *h5.File) error { return h5.Write(f, "time", []float32{0, 0.5}, 2) }),
		replace("solver_statistics/linear_iterations", func(f *h5.File) error {
			return h5.Write(f, "solver_statistics/linear_iterations", []uint8{90, 20, 10}, 3)
		}))
	got, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "solution", got, s)
	k, err := ReadState(t.Context(), path, State(1))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "state", k.State, s.States[1])
}

// overlapping are the files of a run, of which the second repeats a state of the first.
func overlapping(t *testing.T, dir string) (first, second *Solution) {
	t.Helper()
	first, second = everything(t, 3), everything(t, 2)
	first.Settings = mustRecord(t, "segment", mustRecord(t, "index", 1, "start_time", 0.0, "attempts_before", 0))
	second.Settings = mustRecord(t, "segment", mustRecord(t, "index", 2, "start_time", 0.5, "attempts_before", 2, "resumed_from_segment", 1))
	second.Times = []float64{1.25, 2}
	second.Layout.Unknowns[1].Unit = "kV/m"
	shift := func(ctx context.Context, name string, state int, b grid.Box, dst []float64) error {
		return fieldValues(ctx, name, state+10, b, dst)
	}
	for i, s := range []*Solution{first, second} {
		fields := []FieldReader{fieldValues, shift}[i]
		if err := WriteOutput(t.Context(), SegmentFile(dir, "run", i+1), s, Fields(fields), Atomic()); err != nil {
			t.Fatal(err)
		}
	}
	return first, second
}

func TestSegmentsAreJoinedFromTheirFiles(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	first, second := overlapping(t, dir)
	var warnings []string
	warn := Warn(func(s string) { warnings = append(warnings, s) })
	got, err := ReadRun(t.Context(), dir, "run", warn)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{SegmentFile(dir, "run", 1), SegmentFile(dir, "run", 2)}
	if !slices.Equal(got.Files, want) {
		t.Errorf("files %v", got.Files)
	}
	if !slices.Equal(got.Times, []float64{0, 0.5, 1.25, 2}) {
		t.Errorf("times %v", got.Times)
	}
	same(t, "states", got.States, slices.Concat(first.States[:2], second.States))
	if n := got.Statistics.Attempts(); n != 5 {
		t.Errorf("%d attempts", n)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `"V/m"`) || !strings.Contains(warnings[0], `"kV/m"`) {
		t.Errorf("warnings: %q", warnings)
	}
	// The fields come from the file that has the state, and so into a joined file.
	joined := filepath.Join(dir, "joined.h5")
	if err := WriteOutput(t.Context(), joined, got); err != nil {
		t.Fatal(err)
	}
	again, err := ReadOutput(t.Context(), []string{joined}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "joined file", again, got)
	one := make([]float64, 1)
	cell := grid.Box{Low: [3]int{3, 2, 1}, Size: [3]int{1, 1, 1}}
	for i, state := range []int{0, 1, 10, 11} {
		for _, s := range []*Solution{got, again} {
			if err := s.ReadField(t.Context(), "phi", i, cell, one); err != nil || one[0] != value(state, 3, 2, 1) {
				t.Errorf("field at saved state %d of %v: %v, %v", i, s.Files, one, err)
			}
		}
	}
	if _, err := ReadOutput(t.Context(), []string{want[1], want[0]}); !errors.Is(err, ErrNotOneRun) {
		t.Errorf("the other way round: %v", err)
	}
	if _, err := ReadRun(t.Context(), dir, "other"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a run without segments: %v", err)
	}
	if _, err := ReadOutput(t.Context(), nil); !errors.Is(err, ErrInput) {
		t.Errorf("no file: %v", err)
	}
}

func TestFieldsThatCantBeRead(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	if err := WriteOutput(t.Context(), path, everything(t, 2), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	s, err := ReadOutput(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]float64, box.Cells())
	outside := box.Box()
	outside.Low[2]++
	for name, c := range map[string]struct {
		call func() error
		want error
	}{
		"no field":        {func() error { return s.ReadField(t.Context(), "E", 0, box.Box(), all) }, ErrInput},
		"no unknown":      {func() error { return s.ReadField(t.Context(), "psi", 0, box.Box(), all) }, ErrInput},
		"no such state":   {func() error { return s.ReadField(t.Context(), "phi", 2, box.Box(), all) }, ErrNoState},
		"a state below 0": {func() error { return s.ReadField(t.Context(), "phi", -1, box.Box(), all) }, ErrNoState},
		"outside":         {func() error { return s.ReadField(t.Context(), "phi", 0, outside, all) }, ErrInput},
		"too little room": {func() error { return s.ReadField(t.Context(), "phi", 0, box.Box(), all[1:]) }, ErrInput},
		"not from a file": {func() error {
			return (&Checkpoint{Layout: s.Layout}).ReadField(t.Context(), "phi", box.Box(), all)
		}, ErrNoState},
	} {
		if err := c.call(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := everything(t, 2)
	other.Times[1] = 0.75
	if err := WriteOutput(t.Context(), path, other, Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadField(t.Context(), "phi", 1, box.Box(), all); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that has changed: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadField(t.Context(), "phi", 0, box.Box(), all); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestACancelledContextEndsEveryCall(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	put(t, dir, 1)
	overlapping(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := SegmentFile(dir, "run", 1)
	for name, call := range map[string]func() error{
		"WriteOutput":     func() error { return WriteOutput(ctx, path, everything(t, 1), Atomic(), Fields(fieldValues)) },
		"WriteCheckpoint": func() error { return WriteCheckpoint(ctx, dir, "run", smallCheckpoint(2)) },
		"ReadOutput":      func() error { _, err := ReadOutput(ctx, []string{path}); return err },
		"ReadRun":         func() error { _, err := ReadRun(ctx, dir, "run"); return err },
		"ReadSettings":    func() error { _, err := ReadSettings(ctx, path); return err },
		"ReadState":       func() error { _, err := ReadState(ctx, path); return err },
		"ReadCheckpoint":  func() error { _, err := ReadCheckpoint(ctx, dir, "run"); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if last, _, _ := checkpointTimes(t, dir); last != 1 {
		t.Errorf("the checkpoint is of %v", last)
	}
}

// Who reads while a file is replaced sees the old one or the new one.
func TestReadersSeeTheOldOrTheNewFile(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	path := SegmentFile(dir, "run", 1)
	write := func(n int) {
		if err := WriteOutput(t.Context(), path, everything(t, n), Atomic(), Fields(fieldValues)); err != nil {
			t.Error(err)
		}
		put(t, dir, float64(n))
	}
	write(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 2; n < 25; n++ {
			write(n)
		}
	}()
	states, checkpoint := 1, 1.0
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		s, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
		if err != nil {
			t.Fatal(err)
		}
		k, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
		if err != nil || k == nil {
			t.Fatal(k, err)
		}
		if len(s.Times) < states || k.Time < checkpoint-1 {
			t.Fatalf("%d states after %d, a checkpoint of %v after one of %v", len(s.Times), states, k.Time, checkpoint)
		}
		same(t, "states", s.States, everything(t, len(s.Times)).States)
		states, checkpoint = len(s.Times), k.Time
	}
	if states != 24 || checkpoint != 24 {
		t.Errorf("the last ones read have %d states and %v s", states, checkpoint)
	}
}

// The deepest records that there can be are written and read.
func TestTheDeepestRecord(t *testing.T) {
	for name, around := range map[string]func(r record.Record) record.Record{
		"records": func(r record.Record) record.Record { return mustRecord(t, "in", r) },
		"lists": func(r record.Record) record.Record {
			entry, err := r.With("name", "entry")
			if err != nil {
				t.Fatal(err)
			}
			return mustRecord(t, "in", []record.Record{entry})
		},
	} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			s := everything(t, 0)
			s.Settings = mustRecord(t, "x", 1)
			for range record.MaxDepth - 1 {
				s.Settings = around(s.Settings)
			}
			path := filepath.Join(t.TempDir(), "run.h5")
			if err := WriteOutput(t.Context(), path, s); err != nil {
				t.Fatal(err)
			}
			got, err := ReadSettings(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if got.Hash() != s.Settings.Hash() {
				t.Error("it is another one")
			}
		})
	}
}
