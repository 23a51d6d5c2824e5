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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// diskConfig is the run of decayConfig in a directory.
func diskConfig(dir string) Config {
	cfg := decayConfig()
	cfg.Directory, cfg.Resume = dir, true
	return cfg
}

// runOnDisk opens a session, advances it to its end and closes it.
func runOnDisk(ctx context.Context, c *comm.Comm, cfg Config) (Outcome, error) {
	s, err := Open(ctx, c, cfg)
	if err != nil {
		return Outcome{}, err
	}
	out, err := advance(ctx, s)
	return out, errors.Join(err, s.Close(ctx))
}

// joinedOnDisk is the output of the run as it is read from its files.
func joinedOnDisk(t testing.TB, dir string) *Solution {
	t.Helper()
	s, err := ReadRun(t.Context(), dir, "run", Warn(func(text string) { t.Errorf("warning: %s", text) }))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A chain of segments on a disk is the run in one piece, bit for bit, on any number of
// ranks.
func TestSegmentsOnDisk(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		dir := filepath.Join(t.TempDir(), "results", "a")
		cfg := diskConfig(dir)
		cfg.Stop.Steps = 9
		for n := 1; ; n++ {
			out, err := runOnDisk(t.Context(), c, cfg)
			if err != nil || n > 20 {
				t.Fatalf("segment %d: %+v, %v", n, out, err)
			}
			if out.Done {
				break
			}
		}
		if c.Rank() != 0 {
			return
		}
		sameOutput(t, joinedOnDisk(t, dir), uninterrupted(t))
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := strings.TrimPrefix(e.Name(), "run.")
			if !strings.HasPrefix(name, "segment000") && name != "checkpoint.h5" && name != "checkpoint.prev.h5" {
				t.Errorf("%s is left", e.Name())
			}
		}
	})
}

func TestSecondRunOfTheNameIsRefused(t *testing.T) {
	t.Setenv("PBS_JOBID", "77.server")
	dir := t.TempDir()
	cfg := diskConfig(dir)
	s, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), comm.Self(), cfg)
	for _, text := range []string{"run.lock", fmt.Sprintf("process %d on ", os.Getpid()), "PBS job 77.server"} {
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), text) {
			t.Errorf("a second run returns %v, want %q", err, text)
		}
	}
	other := cfg
	other.Name = "other"
	o, err := Open(t.Context(), comm.Self(), other)
	if err != nil {
		t.Fatalf("a run of another name gives %v", err)
	}
	if err := errors.Join(o.Close(t.Context()), s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if out, err := runOnDisk(t.Context(), comm.Self(), cfg); err != nil || !out.Done {
		t.Errorf("after the first run has closed: %+v, %v", out, err)
	}
}

// Where nothing can be written it is found out before the run begins, even if what a
// killed job left of the lock can be locked.
func TestADirectoryThatCanNotBeWrittenIsFoundByOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.lock"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	inject := vfs.NewInject(vfs.OS)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpMkdir, vfs.OpCreate, vfs.OpRemove}, Err: syscall.EACCES}); err != nil {
		t.Fatal(err)
	}
	d := newDisk(dir, "run", silent)
	d.fsys = inject
	_, err := open(t.Context(), comm.Self(), diskConfig(dir), d, time.Now)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "the directory can't be written") {
		t.Errorf("error is %v", err)
	}
}

func TestADirectoryThatIsALinkToNothingIsNamedAsSuch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	if err := os.Symlink("nowhere", dir); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), comm.Self(), diskConfig(dir))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir+" is a link to nothing") {
		t.Errorf("error is %v", err)
	}
}

func TestOpenOnDiskRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, dir string, c *Config)
		is      error
		text    string
	}{
		{"a directory that is a file", func(t *testing.T, dir string, c *Config) {
			c.Directory = filepath.Join(dir, "run.checkpoint.h5", "sub")
		}, syscall.ENOTDIR, "run.checkpoint.h5"},
		{"checkpoints that are no HDF5", func(t *testing.T, dir string, c *Config) {
			for _, file := range []string{CheckpointFile(dir, "run"), PreviousFile(dir, "run")} {
				if err := os.WriteFile(file, []byte("nothing"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}, ErrUnreadable, "run.checkpoint.prev.h5"},
		{"a file without that state", func(t *testing.T, dir string, c *Config) {
			c.Name, c.From, c.FromState = "other", SegmentFile(dir, "run", 1), 9
		}, ErrNoState, "number 9 of 3, counted from 1"},
		{"a new run beside an old one", func(t *testing.T, dir string, c *Config) { c.Resume = false }, ErrFilesExist, "run.checkpoint.h5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := diskConfig(dir)
			if _, err := runOnDisk(t.Context(), comm.Self(), cfg); err != nil {
				t.Fatal(err)
			}
			tc.prepare(t, dir, &cfg)
			before := names(t, dir)
			_, err := Open(t.Context(), comm.Self(), cfg)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error is %v, want one of %q with %q", err, tc.is, tc.text)
			}
			if after := names(t, dir); !slices.Equal(before, after) {
				t.Errorf("there are %q, were %q", after, before)
			}
		})
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// The state of an output file begins a run at one of its time points.
func TestRunFromAnOutputFileOnDisk(t *testing.T) {
	dir := t.TempDir()
	cfg := diskConfig(dir)
	if _, err := runOnDisk(t.Context(), comm.Self(), cfg); err != nil {
		t.Fatal(err)
	}
	first := joinedOnDisk(t, dir)
	cfg.Name, cfg.Resume, cfg.From, cfg.FromState = "other", false, SegmentFile(dir, "run", 1), 2
	s, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	start := s.Start()
	if start.Time != 0.5 || start.HasStepper || start.Segment != 1 || !slices.Equal(start.State, first.States[1]) {
		t.Errorf("it starts with %+v", start)
	}
	if _, err := advance(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := ReadOutput(t.Context(), []string{SegmentFile(dir, "other", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(other.Times, []float64{0.5, 1}) || !slices.Equal(other.States[0], first.States[1]) {
		t.Errorf("saved times are %v", other.Times)
	}
}

// The output of joined segments has the settings of the last one, but counts its states
// from its own first one; so does a run that begins with one of them.
func TestStatesOfJoinedOutput(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	cfg := diskConfig(dir)
	cfg.Stop.Steps = 12
	for done := false; !done; {
		out, err := runOnDisk(ctx, comm.Self(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		done = out.Done
	}
	cfg.Stop.Steps = 0
	segments, err := SegmentFiles(dir, "run")
	if err != nil || len(segments) < 3 {
		t.Fatal(segments, err)
	}
	var files []string
	for _, s := range segments {
		files = append(files, s.File)
	}
	for skip := range 2 {
		joined := filepath.Join(dir, fmt.Sprintf("from%d.h5", skip+1))
		s, err := ReadOutput(ctx, files[skip:])
		if err == nil {
			err = WriteOutput(ctx, joined, s)
		}
		if err != nil {
			t.Fatal(err)
		}
		start, err := s.Settings.Float("segment/start_time")
		if err != nil {
			t.Fatal(err)
		}
		before := 3 - len(s.Times) // in the segments that are left out
		for i, time := range s.Times {
			k, err := ReadState(ctx, joined, State(i))
			if err != nil {
				t.Fatal(err)
			}
			segment := 0
			if time > start {
				segment = len(files)
			}
			if k.SavedCount != before+i+1 || k.Segment != segment {
				t.Errorf("%s: state %d is number %d of segment %d, want %d of %d", joined, i, k.SavedCount, k.Segment, before+i+1, segment)
			}
		}
	}
	// The state at 0.5 s is the second of the run.
	for number, want := range map[int]int{1: 0, 4: 2} {
		cfg := diskConfig(filepath.Join(dir, fmt.Sprint(number)))
		cfg.From, cfg.FromState, cfg.Segment = filepath.Join(dir, "from1.h5"), 2, number
		if _, err := runOnDisk(ctx, comm.Self(), cfg); err != nil {
			t.Fatal(err)
		}
		settings, err := ReadSettings(ctx, SegmentFile(cfg.Directory, "run", number))
		if err != nil {
			t.Fatal(err)
		}
		saved, err := settings.Int("segment/saved_before")
		if err != nil || saved != int64(want) || settings.Has("segment/attempts_before") || settings.Has("segment/resumed_from_segment") {
			t.Errorf("segment %d: %d states before, %v; its record is\n%v", number, saved, err, settings)
		}
		// A first segment has the state at 0.5 s too.
		k, err := ReadCheckpoint(ctx, cfg.Directory, "run")
		if err != nil || k.SavedCount != 3-int(boolFlag(number == 1)) {
			t.Errorf("segment %d: %d states, %v", number, k.SavedCount, err)
		}
	}
}

// fieldRun is a run with a field on one rank, whose cells are a function of the time.
func fieldRun(t *testing.T, dir string) (Config, *field.Field[float64]) {
	t.Helper()
	domain := grid.Domain{Size: [3]int{5, 4, 3}, Spacing: [3]float64{1, 1, 1}}
	f, err := field.New[float64](domain, domain.Box(), field.Halo(1))
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Directory: dir, Name: "run", Resume: true,
		Layout:     Layout{Unknowns: []Unknown{{Name: "E", Kind: Scalar}, {Name: "phi", Kind: Field, Domain: domain}}},
		Initial:    []float64{0},
		TimePoints: []float64{0, 1, 2, 3, 4},
		Fields:     []field.Named{{ID: "phi", Field: f}},
		Checkpoint: CheckpointConfig{Steps: 1},
	}, f
}

func setCells(t *testing.T, f *field.Field[float64], time float64) {
	t.Helper()
	view, err := f.MutableView()
	if err != nil {
		t.Fatal(err)
	}
	for i := range view {
		view[i] = math.NaN() // ghost cells
	}
	for z := range 3 {
		for y := range 4 {
			for x := range 5 {
				view[f.Index(x, y, z)] = time*1000 + float64(x+10*y+100*z)
			}
		}
	}
}

func checkCells(t *testing.T, what string, at func(x, y, z int) float64, time float64) {
	t.Helper()
	for z := range 3 {
		for y := range 4 {
			for x := range 5 {
				if got, want := at(x, y, z), time*1000+float64(x+10*y+100*z); got != want {
					t.Fatalf("%s: cell %d, %d, %d is %v, want %v", what, x, y, z, got, want)
				}
			}
		}
	}
}

// loopOverTimePoints steps from one time point to the next.
func loopOverTimePoints(t *testing.T, s *Session, f *field.Field[float64]) (out Outcome) {
	t.Helper()
	state := []float64{s.Start().Time}
	setCells(t, f, state[0])
	if err := s.SaveState(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	for !s.Done() && !out.Stop {
		state[0] = s.NextTime()
		setCells(t, f, state[0])
		s.Attempt(Attempt{Time: state[0], Accepted: true})
		if err := s.SaveState(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		var err error
		if out, err = s.Checkpoint(t.Context(), state, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// On one rank the files hold the fields, and a resumed run gets their cells back.
func TestFieldsInFiles(t *testing.T) {
	dir := t.TempDir()
	cfg, f := fieldRun(t, dir)
	cfg.Stop.Steps = 2
	s, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if out := loopOverTimePoints(t, s, f); !out.Stop {
		t.Fatalf("outcome %+v", out)
	}
	cfg, f = fieldRun(t, dir)
	if s, err = Open(t.Context(), comm.Self(), cfg); err != nil {
		t.Fatal(err)
	}
	view, err := f.View()
	if err != nil {
		t.Fatal(err)
	}
	checkCells(t, "the resumed field", func(x, y, z int) float64 { return view[f.Index(x, y, z)] }, 2)
	loopOverTimePoints(t, s, f)
	out := joinedOnDisk(t, dir)
	for i, time := range []float64{0, 1, 2, 3, 4} {
		cells := make([]float64, 60)
		if err := out.ReadField(t.Context(), "phi", i, f.Domain().Box(), cells); err != nil || out.Times[i] != time {
			t.Fatalf("state %d at %v s: %v", i, out.Times[i], err)
		}
		checkCells(t, fmt.Sprintf("state %d", i), func(x, y, z int) float64 { return cells[x+5*(y+4*z)] }, time)
	}
}

// A reader of a segment keeps what it has opened while the next version is written.
func TestSegmentsAreReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	cfg, f := fieldRun(t, dir)
	s, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var before os.FileInfo
	s.cfg.Bundle = func(context.Context) (string, error) { // called when the segment is written
		info, err := os.Stat(SegmentFile(dir, "run", 1))
		if err == nil && before != nil && os.SameFile(before, info) {
			t.Error("the segment was written in place")
		}
		before = info
		return "somewhere", err
	}
	loopOverTimePoints(t, s, f)
	if before == nil {
		t.Error("no segment was written")
	}
}

// Where one stored field doesn't fit, none is changed.
func TestFieldsThatDoNotFitStay(t *testing.T) {
	dir := t.TempDir()
	cfg, f := fieldRun(t, dir)
	domain := f.Domain()
	thin, err := field.New[float64](domain, domain.Box())
	if err != nil {
		t.Fatal(err)
	}
	cells, err := thin.MutableView()
	if err != nil {
		t.Fatal(err)
	}
	cells[7] = 0.1 // no float32
	cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, Unknown{Name: "T", Kind: Field, Domain: domain})
	cfg.Fields = append(cfg.Fields, field.Named{ID: "T", Field: thin})
	cfg.Stop.Steps = 1
	s, err := Open(t.Context(), comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	loopOverTimePoints(t, s, f)
	setCells(t, f, 77)
	narrow, err := field.New[float32](domain, domain.Box())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Fields[1].Field = narrow
	if _, err := Open(t.Context(), comm.Self(), cfg); !errors.Is(err, ErrResume) || !strings.Contains(err.Error(), `"T"`) {
		t.Fatalf("a field that doesn't fit gives %v", err)
	}
	view, err := f.View()
	if err != nil {
		t.Fatal(err)
	}
	checkCells(t, "the other field", func(x, y, z int) float64 { return view[f.Index(x, y, z)] }, 77)
}

// On several ranks a checkpoint names the bundle that was published after the segment
// was written and before the checkpoint is.
func TestFieldsInBundles(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		domain := grid.Domain{Size: [3]int{4, 4, 4}, Spacing: [3]float64{1, 1, 1}}
		dir := t.TempDir()
		var failing error
		calls := 0
		cfg := Config{
			Directory: dir, Name: "run", Resume: true,
			Layout:     Layout{Unknowns: []Unknown{{Name: "phi", Kind: Field, Domain: domain}}},
			TimePoints: []float64{0, 1, 2, 3}, SaveTimes: []float64{},
			Checkpoint: CheckpointConfig{Steps: 1},
			Stop:       StopConfig{Steps: 2},
			Bundle: func(ctx context.Context) (string, error) {
				calls++
				path := "bundle " + strconv.Itoa(calls)
				if failing == nil {
					return path, c.Meet(ctx)
				}
				if c.Rank() == c.Size()-1 {
					return "", failing
				}
				return path, nil
			},
		}
		s, err := Open(ctx, c, cfg)
		if err != nil {
			t.Fatal(err)
		}
		failing = errKilled
		s.Attempt(Attempt{Time: 1, Accepted: true})
		if _, err := s.Checkpoint(ctx, nil, nil); !errors.Is(err, errKilled) {
			t.Errorf("a bundle that fails gives %v", err)
		}
		_, err1 := os.Stat(SegmentFile(dir, "run", 1))
		_, err2 := os.Stat(CheckpointFile(dir, "run"))
		if err1 != nil || !errors.Is(err2, fs.ErrNotExist) {
			t.Errorf("after a bundle that failed: %v, %v", err1, err2)
		}
		failing = nil
		s.Attempt(Attempt{Time: 2, Accepted: true})
		out, err := s.Checkpoint(ctx, nil, nil)
		if err != nil || !out.Stop || !out.Written {
			t.Fatalf("outcome %+v, %v", out, err)
		}
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(ctx, c, cfg); err != nil {
			t.Fatal(err)
		}
		if got, want := s.Start().Bundles["phi"], "bundle "+strconv.Itoa(calls); got != want {
			t.Errorf("rank %d has the bundle %q, want %q", c.Rank(), got, want)
		}
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func init() {
	// A solver that goes on until it is told to stop: its end lies far away.
	mpitest.Register("endless run", func(c *comm.Comm, args []string) error {
		ctx := context.Background()
		cfg := diskConfig(args[0])
		cfg.TimePoints, cfg.SaveTimes = []float64{0, 1e9}, []float64{0}
		cfg.Updates, cfg.Checkpoint = nil, CheckpointConfig{Steps: 50}
		cfg.Stop.Signals = []string{"SIGTERM", "SIGUSR1"}
		s, err := Open(ctx, c, cfg)
		if err != nil {
			return err
		}
		state := s.Start().State
		if err := s.SaveState(ctx, state); err != nil {
			return err
		}
		for out, n := (Outcome{}), 0; !out.Stop; n++ {
			s.Attempt(Attempt{Time: s.Start().Time + float64(n+1), Accepted: true})
			state[0]++
			if out, err = s.Checkpoint(ctx, state, nil); err != nil {
				return err
			}
			if out.Written && !out.Stop && c.Rank() == 0 {
				fmt.Println("checkpoint")
			}
		}
		return s.Close(ctx)
	})
}

// Real signals, of which one rank at least gets one, end a job cleanly; a kill is no
// obstacle to the next.
func TestSignalsAndKills(t *testing.T) {
	dir := t.TempDir()
	segment, steps := 0, int64(0)
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGKILL, syscall.SIGTERM} {
		j := mpitest.Start(t, 2, "endless run", []string{dir})
		j.WaitFor("checkpoint", 2)
		if sig == syscall.SIGKILL {
			// The lock goes with its owner, while the file of it stays.
			if _, err := Open(t.Context(), comm.Self(), diskConfig(dir)); !errors.Is(err, ErrInUse) {
				t.Errorf("a second run gives %v", err)
			}
			j.KillAll()
			j.Wait()
			segment++
			continue
		}
		j.Signal(1, sig)
		if output, exit := j.Wait(); exit != 0 {
			t.Fatalf("after %v: exit status %d:\n%s", sig, exit, output)
		}
		segment++
		settings, err := ReadSettings(t.Context(), SegmentFile(dir, "run", segment))
		if err != nil {
			t.Fatal(err)
		}
		reason, err := settings.Text("segment/stop_reason")
		written, err2 := settings.Bool("segment/checkpoint_written")
		want := map[syscall.Signal]string{syscall.SIGUSR1: "signal SIGUSR1", syscall.SIGTERM: "signal SIGTERM"}[sig]
		if err != nil || err2 != nil || reason != want || !written {
			t.Errorf("segment %d: reason %q, checkpoint written: %v; %v, %v", segment, reason, written, err, err2)
		}
		k, err := ReadCheckpoint(t.Context(), dir, "run")
		if err != nil || k.Segment != segment || k.State[0] != 1+k.Time || k.Summary.Accepted <= steps {
			t.Fatalf("checkpoint %+v, %v", k, err)
		}
		steps = k.Summary.Accepted
	}
	if n := joinedOnDisk(t, dir).Statistics.Attempts(); int64(n) != steps {
		t.Errorf("%d attempts, want %d", n, steps)
	}
}

func TestFilesOfTheRunItself(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	d := newDisk(dir, "run", silent)
	for file, want := range map[string]bool{
		SegmentFile(dir, "run", 1):                          true,
		SegmentFile(dir, "run", 12):                         true,
		SegmentFile(dir+"/.", "run", 1):                     true,
		CheckpointFile(dir, "run"):                          true,
		PreviousFile(dir, "run"):                            true,
		SegmentFile(other, "run", 1):                        false,
		SegmentFile(dir, "runner", 1):                       false,
		CheckpointFile(dir, "run.segmented"):                false,
		SegmentFile(dir, "run.segment", 1):                  false,
		filepath.Join(dir, "run.segment1.h5"):               false,
		filepath.Join(dir, "run.h5"):                        false,
		filepath.Join(dir, "nowhere", "run.segment0001.h5"): false,
	} {
		if got := d.owns(file); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}
