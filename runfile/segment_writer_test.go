//go:build hdf5

package runfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/record"
)

// series is a run with a state at each of many steps.
func series(dir string, states, size int) Config {
	cfg := Config{
		Directory: dir, Name: "run", Resume: true,
		Layout: Layout{R: []float64{0, 1}, Unknowns: []Unknown{
			{Name: "a", Kind: Scalar, Unit: "A"},
			{Name: "n", Kind: Radial, Components: size},
		}},
		Initial:    make([]float64, 1+size),
		Updates:    []string{"mean", "none"},
		Checkpoint: CheckpointConfig{Steps: 1 << 40},
	}
	for i := range states + 1 {
		cfg.TimePoints = append(cfg.TimePoints, float64(i))
	}
	return cfg
}

// advanceSeries makes steps up to a time, and saves the state after each.
func advanceSeries(t testing.TB, s *Session, until float64) []float64 {
	t.Helper()
	state := slices.Repeat([]float64{s.time}, s.cfg.Layout.Size())
	for {
		s.SetUpdate("mean", []float64{s.time, 1})
		s.SetUpdate("none", nil)
		if err := s.SaveState(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		if s.time >= until {
			return state
		}
		next := s.NextTime()
		for i := range state {
			state[i] = next + float64(i)/4096
		}
		s.Attempt(Attempt{Time: next, StepLength: 1, Accepted: true, Outcome: fmt.Sprint("step ", next),
			Iterations: []Iteration{{next, 2}, {next / 2, 3}}})
	}
}

// checkpointNow writes a checkpoint.
func checkpointNow(t testing.TB, s *Session, state []float64) {
	t.Helper()
	s.cfg.Checkpoint.Steps = 1
	out, err := s.Checkpoint(t.Context(), state, nil)
	if err != nil || !out.Written {
		t.Fatalf("checkpoint at %v s: %+v, %v", s.time, out, err)
	}
	s.cfg.Checkpoint.Steps = 1 << 40
}

// checkSeries reads all that a run with states up to a time has written.
func checkSeries(t testing.TB, dir string, until float64) {
	t.Helper()
	got := joinedOnDisk(t, dir)
	n := int(until) + 1
	if len(got.Times) != n || got.Statistics.Attempts() != n-1 || len(got.Updates) != 2 {
		t.Fatalf("%d states, %d attempts, %d updates, want %d, %d and 2", len(got.Times), got.Statistics.Attempts(), len(got.Updates), n, n-1)
	}
	for i, time := range got.Times {
		want := slices.Repeat([]float64{time}, got.Layout.Size())
		for k := range want {
			if i > 0 {
				want[k] += float64(k) / 4096
			}
		}
		if time != float64(i) || !slices.Equal(got.States[i], want) {
			t.Fatalf("state %d at %v s: %v", i, time, got.States[i][:2])
		}
		for _, u := range got.Updates {
			if u.Name == "mean" && !slices.Equal(u.States[i], []float64{time, 1}) || u.Name == "none" && len(u.States[i]) != 0 {
				t.Fatalf("update %s of state %d is %v", u.Name, i, u.States[i])
			}
		}
	}
	s := &got.Statistics
	for i := range n - 1 {
		now := float64(i + 1)
		if s.Time[i] != now || s.Outcome[i] != fmt.Sprint("step ", now) || !s.Accepted[i] ||
			!slices.Equal(s.IterationAttempt[2*i:2*i+2], []int64{int64(i + 1), int64(i + 1)}) || s.IterationResidual[2*i+1] != now/2 {
			t.Fatalf("attempt %d: %v, %q, %v", i, s.Time[i], s.Outcome[i], s.IterationAttempt[2*i:2*i+2])
		}
	}
}

// What a checkpoint hands over, and what it changes of the segment's file, is what is
// new, however much the run has saved before.
func TestACheckpointCostsWhatIsNew(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	const size = 1000
	s, err := Open(t.Context(), comm.Self(), series(dir, 2000, size))
	if err != nil {
		t.Fatal(err)
	}
	w := s.file.(*segmentWriter)
	file := SegmentFile(dir, "run", 1)
	read := func() []byte {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var costs [][3]int64
	for _, saved := range []float64{10, 1000} {
		checkpointNow(t, s, advanceSeries(t, s, saved))
		before, had := read(), w.o.written
		checkpointNow(t, s, advanceSeries(t, s, saved+1))
		after := read()
		changed := int64(0)
		for at := 0; at < len(before); at += 512 {
			if !bytes.Equal(before[at:min(at+512, len(before))], after[at:min(at+512, len(before))]) {
				changed += 512
			}
		}
		costs = append(costs, [3]int64{w.o.written - had, int64(len(after) - len(before)), changed})
		t.Logf("one state after %v of %d bytes: %d bytes handed over; the file grows from %d bytes by %d, and %d of its bytes are in sectors that change",
			saved+1, 8*(size+1), costs[len(costs)-1][0], len(before), costs[len(costs)-1][1], changed)
	}
	if costs[0][0] != costs[1][0] {
		t.Errorf("%d bytes are handed over after few states, %d after many", costs[0][0], costs[1][0])
	}
	// A tree of chunks may get one more level, and a chunk be full.
	for i := 1; i < 3; i++ {
		if most := costs[0][i] + 32<<10; costs[1][i] > most {
			t.Errorf("%d bytes after few states, %d after many", costs[0][i], costs[1][i])
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkSeries(t, dir, 1001)
	// What is removed from the file when something takes its place doesn't add up.
	s, err = Open(t.Context(), comm.Self(), series(t.TempDir(), 200, 1))
	if err != nil {
		t.Fatal(err)
	}
	w = s.file.(*segmentWriter)
	var sizes []int64
	for i := range 101 {
		checkpointNow(t, s, advanceSeries(t, s, float64(i+1)))
		info, err := os.Stat(w.path)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	grows := float64(sizes[100]-sizes[0]) / 100
	t.Logf("100 checkpoints with a state of 16 bytes: %d bytes, then %d: %.0f for each", sizes[0], sizes[100], grows)
	if grows > 8<<10 {
		t.Errorf("the file grows by %.0f bytes with each checkpoint", grows)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// States that a checkpoint has published are not kept in memory.
func TestSavedStatesAreReleased(t *testing.T) {
	closed(t)
	const size = 4 << 10
	s, err := Open(t.Context(), comm.Self(), series(t.TempDir(), 2000, size))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	checkpointNow(t, s, advanceSeries(t, s, 50))
	before := heap()
	for n := 100.0; n <= 1000; n += 50 {
		checkpointNow(t, s, advanceSeries(t, s, n))
	}
	if grown := heap() - before; grown > 50*size*8 {
		t.Errorf("%d bytes are kept of 950 states of %d", grown, size*8)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// diskWith is a disk whose files are made through another filesystem.
func diskWith(cfg Config, fsys vfs.FS) *disk {
	d := newDisk(cfg.Directory, cfg.Name, silent)
	d.fsys = fsys
	return d
}

// Whichever call of the system fails, a checkpoint that fails leaves the segment of the
// one before, and the next try has everything.
func TestAFailedCheckpointIsTriedAgain(t *testing.T) {
	closed(t)
	for late := range 2 {
		for i := 0; ; i++ {
			dir := t.TempDir()
			in := vfs.NewInject(vfs.OS)
			cfg := series(dir, 10, 3)
			s, err := open(t.Context(), comm.Self(), cfg, diskWith(cfg, in), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if late == 1 { // the segment's file is there already
				checkpointNow(t, s, advanceSeries(t, s, 1))
			}
			state := advanceSeries(t, s, 3)
			before, _ := os.ReadFile(SegmentFile(dir, "run", 1))
			in.FailAt(len(in.Ops())+1+i, syscall.EIO)
			s.cfg.Checkpoint.Steps = 1
			out, err := s.Checkpoint(t.Context(), state, nil)
			if err == nil {
				if i < 10 || !out.Written {
					t.Fatalf("only %d calls; %+v", i, out)
				}
				break
			}
			trace := strings.Join(in.Trace(), "; ")
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("%s: %v", trace, err)
			}
			after, _ := os.ReadFile(SegmentFile(dir, "run", 1))
			if !bytes.Equal(before, after) {
				if rename := "-> " + SegmentFile(dir, "run", 1); !strings.Contains(trace, rename) {
					t.Fatalf("%s: the segment has changed", trace)
				}
				checkSeries(t, dir, 3)
			}
			if out, err := s.Checkpoint(t.Context(), state, nil); err != nil || !out.Written {
				t.Fatalf("%s; the second try: %+v, %v", trace, out, err)
			}
			checkSeries(t, dir, 3)
			checkpointNow(t, s, advanceSeries(t, s, 4))
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkSeries(t, dir, 4)
			if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
				t.Fatalf("%s: %q is left", trace, left)
			}
		}
	}
}

// A segment that something else has changed is not added to.
func TestARecordIsUpdated(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	inner := mustRecord(t, "z", 1, "a", 2)
	first := mustRecord(t, "index", 1, "start", 0.0, "status", "running", "list", []string{"b", "a"}, "inner", inner)
	if err := makeFile(path, func(f *h5.File) error { return writeRecord(f, "r", first) }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]record.Record{
		"nothing":      first,
		"one value":    mustRecord(t, "index", 1, "start", 0.0, "status", "done", "list", []string{"b", "a"}, "inner", inner),
		"another type": mustRecord(t, "index", 1, "start", int64(0), "status", "done", "list", []string{"b", "a"}, "inner", inner),
		"one more":     mustRecord(t, "index", 1, "start", 0.0, "reason", "steps", "status", "done", "inner", inner),
		"less":         mustRecord(t, "index", 1),
		"in a record":  mustRecord(t, "index", 1, "inner", mustRecord(t, "z", 1, "a", 3)),
		"the order":    mustRecord(t, "inner", inner, "index", 1),
		"all":          mustRecord(t, "x", "y"),
		"no key":       {},
	} {
		t.Run(name, func(t *testing.T) {
			var got record.Record
			if err := change(path, func(f *h5.File) error {
				err := updateRecord(f, "r", want)
				if err == nil {
					got, err = readRecord(f, "r")
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if !got.Equal(want) || got.String() != want.String() {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

func TestAChangedSegmentIsNotAddedTo(t *testing.T) {
	closed(t)
	for name, tc := range map[string]struct {
		change func(t *testing.T, file string)
		want   error
	}{
		"removed": {func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, os.ErrNotExist},
		"cut": {func(t *testing.T, file string) {
			if err := os.Truncate(file, 100); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"replaced by another": {func(t *testing.T, file string) {
			s := &Solution{Layout: Layout{Unknowns: []Unknown{{Name: "a", Kind: Scalar}}}, Times: []float64{0}, States: [][]float64{{1}}}
			if err := WriteOutput(t.Context(), file, s); err != nil {
				t.Fatal(err)
			}
		}, ErrMismatch},
		"torn": {func(t *testing.T, file string) {
			f, err := vfs.ReadFile(vfs.OS, file, 1<<30)
			if err == nil {
				err = os.WriteFile(file, bytes.Replace(f, []byte(completeAttribute), []byte("complexes"), 1), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(t.Context(), comm.Self(), series(dir, 10, 3))
			if err != nil {
				t.Fatal(err)
			}
			checkpointNow(t, s, advanceSeries(t, s, 2))
			file := SegmentFile(dir, "run", 1)
			tc.change(t, file)
			before, _ := os.ReadFile(file)
			state := advanceSeries(t, s, 3)
			s.cfg.Checkpoint.Steps = 1
			_, err = s.Checkpoint(t.Context(), state, nil)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("error is %v", err)
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the file has changed")
			}
			if k, err := ReadCheckpoint(t.Context(), dir, "run"); err != nil || k.Time != 2 {
				t.Errorf("the checkpoint is %+v, %v", k, err)
			}
			if err := s.Close(t.Context()); err == nil {
				t.Error("close has no error")
			}
		})
	}
}

// Working files that killed runs left go with the first file that is written; others
// stay.
func TestWorkingFilesOfKilledRunsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	nonce := strings.Repeat("0f", 16)
	mine := []string{"run.segment0001.h5.tmp", "run.segment0003.h5.tmp", "run.segment0001.h5." + nonce + ".tmp", "run.checkpoint.h5." + nonce + ".tmp"}
	others := []string{"run.segment1.h5.tmp", "run2.segment0001.h5.tmp", "run.segment0001.h5.other", "notes.tmp",
		"run.segment0001.h5." + nonce, "run.segment0001.h5." + nonce[1:] + ".tmp", "run2.checkpoint.h5." + nonce + ".tmp", nonce + ".tmp"}
	for _, name := range slices.Concat(mine, others) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("left"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(t.Context(), comm.Self(), series(dir, 3, 3))
	if err != nil {
		t.Fatal(err)
	}
	if before := names(t, dir); len(before) != len(mine)+len(others)+1 { // and the lock
		t.Errorf("opening leaves %q", before)
	}
	checkpointNow(t, s, advanceSeries(t, s, 3))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := names(t, dir)
	for _, name := range mine {
		if slices.Contains(after, name) {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range others {
		if !slices.Contains(after, name) {
			t.Errorf("%s is gone", name)
		}
	}
	checkSeries(t, dir, 3)
}
