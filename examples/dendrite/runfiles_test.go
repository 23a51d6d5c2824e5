//go:build hdf5

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/samerun"
	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

const crystal = "crystal"

// several is the number of ranks of a run that isn't on one.
const several = 3

// smallRun is a run of 60 steps that saves its state every 10 and has a checkpoint
// every 30.
func smallRun(dir string) settings {
	set := small(dir)
	set.Run.Name, set.Run.SaveEvery = crystal, 10
	set.Checkpoint.Every = 30
	return set
}

// arguments are the command line of a smallRun, with more.
func arguments(dir string, more ...string) []string {
	return append([]string{"-nx", "37", "-ny", "29", "-steps", "60", "-every", "30", "-save", "10",
		"-progress", "lines", "-out", dir, "-run", crystal}, more...)
}

// uninterrupted is the output of a smallRun on one rank.
func uninterrupted(t *testing.T) *runfile.Solution {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "whole")
	runRanks(t, 1, smallRun(dir))
	return joined(t, dir)
}

func joined(t *testing.T, dir string) *runfile.Solution {
	t.Helper()
	out, err := runfile.ReadRun(t.Context(), dir, crystal)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustBeSameRun(t *testing.T, dir string, want *runfile.Solution) {
	t.Helper()
	got := joined(t, dir)
	if err := samerun.Compare(t.Context(), got, want); err != nil {
		t.Errorf("%q joined and the uninterrupted run: %v", got.Files, err)
	}
}

// launch runs the solver by MPI's launcher, where it is there, and returns what it
// printed.
func launch(t *testing.T, ranks int, args ...string) string {
	t.Helper()
	output, exit := mpitest.Start(t, ranks, "dendrite", args).Wait()
	if exit != 0 {
		t.Fatalf("%d ranks with %q end with status %d:\n%s", ranks, args, exit, output)
	}
	return output
}

// parsed is the command line as settings.
func parsed(t *testing.T, args ...string) settings {
	t.Helper()
	set, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// segment is what the record of a segment says.
func segment(t *testing.T, dir string, number int) record.Record {
	t.Helper()
	settings, err := runfile.ReadSettings(t.Context(), runfile.SegmentFile(dir, crystal, number))
	if err != nil {
		t.Fatal(err)
	}
	r, err := settings.Record("segment")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// says fails unless the record of a segment has a text.
func says(t *testing.T, r record.Record, key, want string) {
	t.Helper()
	if got, err := r.Text(key); err != nil || got != want {
		t.Errorf("%s is %q, %v; want %q", key, got, err, want)
	}
}

func TestOutputHasWhatWasAsked(t *testing.T) {
	set := smallRun(filepath.Join(t.TempDir(), "out"))
	runRanks(t, 1, set)
	out := joined(t, set.Checkpoint.Directory)
	var want []float64
	for n := range 7 {
		want = append(want, float64(10*n)*set.Model.Step)
	}
	if err := sameBits(out.Times, want); err != nil {
		t.Errorf("times: %v", err)
	}
	if n := out.Statistics.Attempts(); n != 60 || slices.Contains(out.Statistics.Accepted, false) {
		t.Errorf("%d attempts, accepted %v", n, out.Statistics.Accepted)
	}
	// The numbers, and phi, are those of a solver without files.
	plain := set
	plain.Steps = 30
	state, err := observed(t.Context(), comm.Self(), plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := sameBits(out.States[3], state); err != nil {
		t.Errorf("state at step 30: %v", err)
	}
	domain := out.Layout.Unknown(namePhi).Domain
	cells := make([]float64, domain.Cells())
	if err := out.ReadField(t.Context(), namePhi, 6, domain.Box(), cells); err != nil {
		t.Fatal(err)
	}
	inBundle := read(t, filepath.Join(set.Checkpoint.Directory, "step_60"), namePhi)
	for i, v := range cells {
		if bits(v) != inBundle[i] {
			t.Fatalf("cell %d of phi is %v in the output, and another in the bundle", i, v)
		}
	}
	says(t, segment(t, set.Checkpoint.Directory, 1), "status", "completed")
	for _, path := range []string{
		runfile.SegmentFile(set.Checkpoint.Directory, crystal, 1),
		runfile.CheckpointFile(set.Checkpoint.Directory, crystal),
		runfile.PreviousFile(set.Checkpoint.Directory, crystal),
	} {
		if _, err := runfile.Verify(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
}

// The checkpoint's state is that of its time, though it is worked out only when there
// is a checkpoint.
func TestCheckpointHasThePresentState(t *testing.T) {
	set := smallRun(filepath.Join(t.TempDir(), "out"))
	set.Run.StopAfter = 27
	runRanks(t, 1, set)
	k, err := runfile.ReadCheckpoint(t.Context(), set.Checkpoint.Directory, crystal)
	if err != nil {
		t.Fatal(err)
	}
	plain := set
	plain.Steps = 27
	want, err := observed(t.Context(), comm.Self(), plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := sameBits(k.State, want); err != nil {
		t.Error(err)
	}
	if got := k.Bundles[namePhi]; got != "step_27" {
		t.Errorf("phi is in the bundle %q", got)
	}
}

// A run in segments, each on other ranks, has the output of an uninterrupted one.
func TestSegmentsJoinToTheUninterruptedRun(t *testing.T) {
	want := uninterrupted(t)
	type part struct {
		ranks int
		stop  func(set *settings)
	}
	after := func(steps int64) func(*settings) { return func(set *settings) { set.Run.StopAfter = steps } }
	atOnce := func(set *settings) { set.Run.WallTime = span{1} } // after the first step
	for _, tc := range []struct {
		name  string
		parts []part
	}{
		{"between two states", []part{{1, after(27)}, {1, nil}}},
		{"at a state, to other ranks", []part{{4, after(20)}, {2, nil}}},
		{"at a checkpoint, to one rank", []part{{3, after(30)}, {1, nil}}},
		{"just before the end, to several ranks", []part{{1, after(59)}, {4, nil}}},
		{"by the wall time", []part{{2, atOnce}, {1, atOnce}, {4, after(17)}, {3, atOnce}, {2, nil}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parts")
			for i, p := range tc.parts {
				set := smallRun(dir)
				set.Run.Resume = true
				set.halo = 1 + i%3
				if p.stop != nil {
					p.stop(&set)
				}
				runRanks(t, p.ranks, set)
				r := segment(t, dir, i+1)
				switch {
				case p.stop == nil:
					says(t, r, "status", "completed")
				case set.Run.StopAfter > 0:
					says(t, r, "stop_reason", fmt.Sprintf("limit of %d steps", set.Run.StopAfter))
				default:
					says(t, r, "stop_reason", "wall time limit of 1ns")
				}
			}
			mustBeSameRun(t, dir, want)

			// A job that is left over in the queue does nothing.
			set := smallRun(dir)
			set.Run.Resume = true
			runRanks(t, 1, set)
			if files, err := runfile.SegmentFiles(dir, crystal); err != nil || len(files) != len(tc.parts) {
				t.Errorf("%d segments, %v", len(files), err)
			}
		})
	}
}

// The same by MPI's launcher, where it is there.
func TestChainOfJobsJoinsToTheUninterruptedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parts")
	launch(t, 4, arguments(dir, "-resume", "-wall-time", "1ns", "-px", "2", "-py", "2")...)
	launch(t, 1, arguments(dir, "-resume", "-stop-after", "20", "-halo", "2")...)
	launch(t, 3, arguments(dir, "-resume", "-stop-after", "20", "-px", "1", "-py", "3")...)
	launch(t, 2, arguments(dir, "-resume")...)
	for number, ranks := range []int64{4, 1, 3, 2} {
		settings, err := runfile.ReadSettings(t.Context(), runfile.SegmentFile(dir, crystal, number+1))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := settings.Int("environment/ranks"); got != ranks || err != nil {
			t.Errorf("segment %d is of %d ranks, %v; want %d", number+1, got, err, ranks)
		}
	}
	mustBeSameRun(t, dir, uninterrupted(t))
}

// A signal stops the run at the next step. The job after it may be of another length.
func TestSignalStopsTheRun(t *testing.T) {
	for _, name := range []string{"SIGTERM", "SIGUSR1"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parts")
			j := mpitest.Start(t, several, "dendrite", arguments(dir, "-resume", "-on-signal", "SIGTERM,SIGUSR1", "-steps", "1000000000", "-save", "100000", "-every", "0"))
			j.WaitFor("segment 1 of run crystal begins at step 0", 1)
			j.Signal(several-1, map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGUSR1": syscall.SIGUSR1}[name])
			output, exit := j.Wait()
			if exit != 0 || !strings.Contains(output, ": signal "+name) {
				t.Fatalf("status %d:\n%s", exit, output)
			}
			r := segment(t, dir, 1)
			says(t, r, "status", "stopped")
			says(t, r, "stop_reason", "signal "+name)
			steps, err := r.Int("steps")
			if err != nil || steps < 1 {
				t.Fatalf("%d steps, %v", steps, err)
			}
			longer := []string{"-steps", strconv.FormatInt(steps+30, 10), "-save", "100000", "-every", "0"}
			runRanks(t, 2, parsed(t, arguments(dir, append(longer, "-resume")...)...))

			whole := filepath.Join(t.TempDir(), "whole")
			runRanks(t, 1, parsed(t, arguments(whole, longer...)...))
			mustBeSameRun(t, dir, joined(t, whole))
		})
	}
}

func TestStopFileStopsTheRun(t *testing.T) {
	dir := t.TempDir()
	halt := filepath.Join(dir, "halt")
	endless := arguments(dir, "-resume", "-stop-file", halt, "-steps", "1000000000", "-save", "100000", "-every", "0")
	j := mpitest.Start(t, several, "dendrite", endless)
	j.WaitFor("segment 1 of run crystal begins at step 0", 1)
	if err := os.WriteFile(halt, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if output, exit := j.Wait(); exit != 0 || !strings.Contains(output, ": file "+halt) {
		t.Fatalf("status %d:\n%s", exit, output)
	}
	// While it is there no job of the chain begins.
	output, exit := mpitest.Start(t, 1, "dendrite", endless).Wait()
	if exit == 0 || !strings.Contains(output, "the stop file is there: "+halt) {
		t.Errorf("status %d:\n%s", exit, output)
	}
}

// A job that is killed loses what came after its last checkpoint, wherever it was.
func TestKilledRunGoesOnFromItsLastCheckpoint(t *testing.T) {
	want := uninterrupted(t)
	for _, tc := range []struct {
		hold string
		from string // where the next job goes on from
	}{
		// The segment is written, the bundle half.
		{"60:field:T", "begins at step 30"},
		// The bundle is there, and no checkpoint names it.
		{"60:published", "begins at step 30"},
		// There was no checkpoint before.
		{"30:published", "begins at step 0"},
	} {
		t.Run(tc.hold, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parts")
			j := mpitest.Start(t, several, "dendrite", arguments(dir, "-resume", "-events", "-hold", tc.hold))
			j.WaitFor("@ holding=", 1)
			j.KillAll()
			if output, exit := j.Wait(); exit == 0 {
				t.Fatalf("the killed job ends with status 0:\n%s", output)
			}
			output := launch(t, 4, arguments(dir, "-resume", "-halo", "3")...)
			if !strings.Contains(output, tc.from) {
				t.Errorf("%q is not in the output:\n%s", tc.from, output)
			}
			mustBeSameRun(t, dir, want)
		})
	}
}

// What changes from one job to the next is recorded, and there is a warning.
func TestChangedSetupIsRecorded(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(set *settings)
		want   []string // sections
	}{
		{"nothing", func(*settings) {}, nil},
		{"the ranks, the halo, the checkpoints", func(set *settings) { set.halo, set.Checkpoint.Every = 3, 7 }, nil},
		{"latent heat", func(set *settings) { set.Model.Latent = 1.6 }, []string{"system"}},
		{"the seed of the noise", func(set *settings) { set.Model.Seed++ }, []string{"system"}},
		{"the end", func(set *settings) { set.Steps = 90 }, []string{"time"}},
		{"the saved times", func(set *settings) { set.Run.SaveEvery = 5 }, []string{"time"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := smallRun(filepath.Join(t.TempDir(), "out"))
			set.Run.StopAfter = 30
			runRanks(t, 1, set)
			set.Run.Resume, set.Run.StopAfter = true, 0
			tc.change(&set)
			runRanks(t, several, set)
			r := segment(t, set.Checkpoint.Directory, 2)
			if changed, err := r.Bool("settings_changed"); err != nil || changed != (tc.want != nil) {
				t.Errorf("settings_changed is %v, %v", changed, err)
			}
			if got, err := r.Texts("changed_sections"); !slices.Equal(got, tc.want) || (err != nil) != (tc.want == nil) {
				t.Errorf("changed sections are %q, %v; want %q", got, err, tc.want)
			}
			out := joined(t, set.Checkpoint.Directory)
			if last := out.Times[len(out.Times)-1]; last != float64(set.Steps)*set.Model.Step {
				t.Errorf("the joined output ends at %v s", last)
			}
		})
	}
}

func TestChangedSetupIsAWarning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	runRanks(t, 1, parsed(t, arguments(dir, "-stop-after", "30")...))
	config := filepath.Join(t.TempDir(), "changed.json")
	if err := os.WriteFile(config, []byte(`{"model": {"latent": 1.6}}`), 0o666); err != nil {
		t.Fatal(err)
	}
	output := launch(t, 1, arguments(dir, "-resume", "-config", config)...)
	if !strings.Contains(output, `level=WARN msg="the setup is another one than before"`) || !strings.Contains(output, "sections=[system]") {
		t.Errorf("no warning:\n%s", output)
	}
}

func TestRunRefusesWhatItCannotGoOnFrom(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, set *settings)
		is     error
		want   string
	}{
		{"files of a run that isn't resumed", func(_ *testing.T, set *settings) { set.Run.Resume = false }, runfile.ErrFilesExist, "crystal.checkpoint.h5"},
		{"another grid", func(_ *testing.T, set *settings) { set.Grid[0]++ }, runfile.ErrResume, "size along x: the layout has 38, the file has 37"},
		{"other walls", func(_ *testing.T, set *settings) { set.Periodic[1] = true }, runfile.ErrResume, "phi"},
		{"another spacing", func(_ *testing.T, set *settings) { set.Model.Spacing *= 1.01 }, runfile.ErrResume, "spacing along x"},
		{"another time step", func(_ *testing.T, set *settings) { set.Model.Step *= 1.01 }, runfile.ErrResume, "where the time step makes that"},
		{"an end that has passed", func(_ *testing.T, set *settings) { set.Steps = 20 }, runfile.ErrResume, "not within the time points"},
		{"no bundle of either checkpoint", func(t *testing.T, set *settings) {
			for _, name := range []string{"step_30", "step_40"} {
				must(t, os.RemoveAll(filepath.Join(set.Checkpoint.Directory, name)))
			}
		}, os.ErrNotExist, "step_40: no such file or directory; and can't resume from"},
		{"the bundle of another step", func(t *testing.T, set *settings) {
			must(t, os.RemoveAll(filepath.Join(set.Checkpoint.Directory, "step_40")))
			must(t, os.Rename(filepath.Join(set.Checkpoint.Directory, "step_30"), filepath.Join(set.Checkpoint.Directory, "step_40")))
		}, runfile.ErrResume, "its bundle"},
		{"two damaged bundles", func(t *testing.T, set *settings) {
			damage(t, set.Checkpoint.Directory, "step_40", "T")
			damage(t, set.Checkpoint.Directory, "step_30", "phi")
		}, publish.ErrChecksum, "bring a bundle back"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := smallRun(filepath.Join(t.TempDir(), "out"))
			set.Run.StopAfter = 40
			runRanks(t, 1, set)
			set.Run.Resume, set.Run.StopAfter = true, 0
			tc.change(t, &set)
			before := listing(t, set.Checkpoint.Directory)
			err := comm.Run(several, func(c *comm.Comm) error {
				err := run(t.Context(), c, set, t.Output())
				if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) {
					return fmt.Errorf("rank %d: error is %v, want %v with %q in it", c.Rank(), err, tc.is, tc.want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if after := listing(t, set.Checkpoint.Directory); !slices.Equal(after, before) {
				t.Errorf("before %q, after %q", before, after)
			}
		})
	}
}

// damage changes 8 bytes of a field of a bundle.
func damage(t *testing.T, dir, bundle, id string) {
	t.Helper()
	path := filepath.Join(dir, bundle, "fields", id+".bin")
	data, err := os.ReadFile(path)
	must(t, err)
	for i := range 8 {
		data[96+i] ^= 0xff
	}
	must(t, os.WriteFile(path, data, 0o666))
}

// A run whose last bundle is damaged, or gone, goes on from the checkpoint before, on
// other ranks, to the same end.
func TestDamagedBundleOfTheLastCheckpoint(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	runRanks(t, 1, smallRun(whole))
	want := joined(t, whole)
	for name, lose := range map[string]func(dir string){
		"damaged": func(dir string) { damage(t, dir, "step_40", "phi") },
		"gone":    func(dir string) { must(t, os.RemoveAll(filepath.Join(dir, "step_40"))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parts")
			set := smallRun(dir)
			set.Run.StopAfter = 40
			runRanks(t, 1, set)
			lose(dir)
			// A job that stops at the step of the lost bundle, and one to the end.
			output := launch(t, several, arguments(dir, "-resume", "-stop-after", "10")...)
			for _, text := range []string{"segment 2 of run crystal begins at step 30", "passed over for the one before", "step_40"} {
				if !strings.Contains(output, text) {
					t.Errorf("%q is not in the output:\n%s", text, output)
				}
			}
			says(t, segment(t, dir, 2), "resumed_from", runfile.PreviousFile(dir, crystal))
			launch(t, 2, arguments(dir, "-resume", "-halo", "3")...)
			mustBeSameRun(t, dir, want)
			mustBeEqual(t, filepath.Join(dir, "step_60"), filepath.Join(whole, "step_60"))
			_, err := os.Stat(filepath.Join(dir, "step_40.superseded"))
			if (err == nil) != (name == "damaged") {
				t.Errorf("the damaged bundle: %v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A run can be moved, since its checkpoints name bundles beside them.
func TestMovedRunGoesOn(t *testing.T) {
	want := uninterrupted(t)
	set := smallRun(filepath.Join(t.TempDir(), "here"))
	set.Run.StopAfter = 30
	runRanks(t, 1, set)
	there := filepath.Join(t.TempDir(), "there")
	must(t, os.Rename(set.Checkpoint.Directory, there))
	set.Checkpoint.Directory = there
	set.Run.Resume, set.Run.StopAfter = true, 0
	runRanks(t, several, set)
	mustBeSameRun(t, there, want)
}

// Checkpoints by wall time: the session's rule is the service's.
func TestCheckpointsByWallTime(t *testing.T) {
	set := smallRun(filepath.Join(t.TempDir(), "out"))
	set.Steps, set.Run.SaveEvery = 3, 3
	set.Checkpoint.Every, set.Checkpoint.EverySeconds = 0, float64(time.Nanosecond)/float64(time.Second)
	runRanks(t, 1, set)
	for _, name := range []string{"step_1", "step_2", "step_3"} {
		if _, err := publish.Inspect(filepath.Join(set.Checkpoint.Directory, name)); err != nil {
			t.Error(err)
		}
	}
}
