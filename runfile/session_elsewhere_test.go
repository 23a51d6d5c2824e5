//go:build hdf5

package runfile

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// A run that is continued in another directory, from its checkpoint, is one run: the counts
// go on, and the segments of both directories join to what one without a stop writes,
// whether or not the checkpoint's state is saved in both.
func TestContinuedInAnotherDirectory(t *testing.T) {
	for name, tc := range map[string]struct {
		every, stop int64
		again       bool // the first segment has the state too
	}{
		"between save times":       {9, 9, false},
		"gone on since":            {9, 13, false},
		"at a save time":           {5, 0, true},
		"at the time of the first": {1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, a, b := t.Context(), filepath.Join(t.TempDir(), "A"), filepath.Join(t.TempDir(), "B")
			cfg := diskConfig(a)
			cfg.Checkpoint.Steps, cfg.Stop.Steps = tc.every, tc.stop
			whole := cfg
			whole.Directory, whole.Stop = t.TempDir(), StopConfig{}
			if _, err := runOnDisk(ctx, comm.Self(), whole); err != nil {
				t.Fatal(err)
			}
			first := cfg
			if tc.again {
				first.TimePoints, first.SaveTimes = cfg.TimePoints[:3], cfg.SaveTimes[:2]
			}
			if _, err := runOnDisk(ctx, comm.Self(), first); err != nil {
				t.Fatal(err)
			}
			file := CheckpointFile(a, "run")
			k, err := ReadState(ctx, file)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Directory, cfg.From, cfg.Stop = b, file, StopConfig{Steps: 7}
			for done := false; !done; {
				out, err := runOnDisk(ctx, comm.Self(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				done = out.Done
			}
			settings, err := ReadSettings(ctx, SegmentFile(b, "run", 1))
			if err != nil {
				t.Fatal(err)
			}
			attempts, err := settings.Int("segment/attempts_before")
			if err != nil || attempts != k.Summary.Attempted || attempts == 0 {
				t.Errorf("attempts_before is %d, %v; the checkpoint has %d", attempts, err, k.Summary.Attempted)
			}
			saved, err := settings.Int("segment/saved_before")
			if want := int64(k.SavedCount) - boolFlag(tc.again); err != nil || saved != want {
				t.Errorf("saved_before is %d, %v; want %d", saved, err, want)
			}
			files := []string{SegmentFile(a, "run", 1)}
			list, err := SegmentFiles(b, "run")
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range list {
				files = append(files, g.File)
			}
			got, err := ReadOutput(ctx, files, noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			want := joinedOnDisk(t, whole.Directory)
			sameOutput(t, got, want)
			last, err := ReadCheckpoint(ctx, b, "run")
			if err != nil {
				t.Fatal(err)
			}
			if last.SavedCount != len(want.Times) || last.Summary.Attempted != int64(want.Statistics.Attempts()) {
				t.Errorf("the last checkpoint counts %d states and %+v; there are %d states and %d attempts",
					last.SavedCount, last.Summary, len(want.Times), want.Statistics.Attempts())
			}
		})
	}
}

// A run of another name counts from its own beginning. It is no continuation, but what it
// doesn't repeat of the other one is not cut where both are joined.
func TestJoinedWithARunOfAnotherName(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	cfg := diskConfig(dir)
	cfg.Stop.Steps = 12
	for range 2 {
		if _, err := runOnDisk(ctx, comm.Self(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Name, cfg.From, cfg.Stop = "other", CheckpointFile(dir, "run"), StopConfig{}
	if _, err := runOnDisk(ctx, comm.Self(), cfg); err != nil {
		t.Fatal(err)
	}
	got, err := ReadOutput(ctx, []string{SegmentFile(dir, "run", 1), SegmentFile(dir, "run", 2), SegmentFile(dir, "other", 1)}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	sameOutput(t, got, uninterrupted(t))
}

// A run that goes on from a saved state of its output has done what the statistics say,
// as far as they say.
func TestSummaryAfterAStateOfAnOutput(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	cfg := diskConfig(dir)
	if _, err := runOnDisk(ctx, comm.Self(), cfg); err != nil {
		t.Fatal(err)
	}
	out := joinedOnDisk(t, dir)
	n := out.Statistics.untilAccepted(0.5)
	want := Summary{Attempted: int64(n)}
	for i := range n {
		want.Accepted += boolFlag(out.Statistics.Accepted[i])
		want.NonlinearIterations += out.Statistics.NonlinearIterations[i]
		want.LinearIterations += out.Statistics.LinearIterations[i]
		want.WallTime += out.Statistics.WallTime[i]
	}
	if n < 5 || want.Accepted == want.Attempted {
		t.Fatalf("%d attempts, %+v", n, want)
	}
	other := filepath.Join(dir, "other")
	cfg.Directory, cfg.Resume, cfg.From, cfg.FromState = other, false, SegmentFile(dir, "run", 1), 2
	s, err := Open(ctx, comm.Self(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Start(); got.Summary != want || got.Saved != 1 {
		t.Errorf("it starts with %+v and %d states, want %+v and 1", got.Summary, got.Saved, want)
	}
	if _, err := advance(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	k, err := ReadCheckpoint(ctx, other, "run")
	if err != nil {
		t.Fatal(err)
	}
	if total := want.Attempted + int64(len(readStats(t, SegmentFile(other, "run", 1)).Time)); k.Summary.Attempted != total || k.SavedCount != 3 {
		t.Errorf("the checkpoint has %+v and %d states; %d attempts were made", k.Summary, k.SavedCount, total)
	}
	both, err := ReadOutput(ctx, []string{SegmentFile(dir, "run", 1), SegmentFile(other, "run", 1)}, noWarnings(t))
	if err != nil || !slices.Equal(both.Times, []float64{0, 0.5, 1}) {
		t.Errorf("joined: %v, %v", both, err)
	}

	// What isn't known is absent, and stays so.
	third := filepath.Join(dir, "third")
	cfg.Directory, cfg.From, cfg.FromState = third, SegmentFile(other, "run", 1), 1
	if _, err := runOnDisk(ctx, comm.Self(), cfg); err != nil {
		t.Fatal(err)
	}
	k, err = ReadCheckpoint(ctx, third, "run")
	if unknown := (Summary{-1, -1, -1, -1, -1}); err != nil || k.Summary != unknown {
		t.Errorf("the summary is %+v, %v", k.Summary, err)
	}
}

func readStats(t *testing.T, file string) Statistics {
	t.Helper()
	s, err := ReadOutput(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	return s.Statistics
}
