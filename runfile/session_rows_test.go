package runfile

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/record"
)

// gridLayout has an unknown of each kind.
func gridLayout() Layout {
	return Layout{
		R: []float64{0, 1, 2},
		Grids: []MomentumGrid{
			{Name: "inner", P: []float64{0, 1, 3}, Xi: []float64{-1, 0, 1}},
			{Name: "outer", P: []float64{0, 2}, Xi: []float64{-1, 0.5, 1}},
		},
		Unknowns: []Unknown{
			{Name: "E", Kind: Scalar},
			{Name: "n", Kind: Radial, Components: 2},
			{Name: "f", Kind: Kinetic, Grids: []string{"inner", "outer"}},
			{Name: "phi", Kind: Field, Domain: grid.Domain{
				Size: [3]int{4, 5, 6}, Origin: [3]float64{1, 2, 3}, Spacing: [3]float64{1, 1, 2}, Periodic: [3]bool{true, false, false},
			}},
		},
	}
}

// A state is not taken by unknowns on any other grid than its own.
func TestOtherGridsAreRefused(t *testing.T) {
	stored := gridLayout()
	from := &Checkpoint{Layout: stored, State: make([]float64, stored.Size())}
	for i := range from.State {
		from.State[i] = float64(i)
	}
	l := gridLayout()
	if state, err := matchUnknowns(&l, from, nil, silent); err != nil || !slices.Equal(state, from.State) {
		t.Fatalf("the same grids give %v, %v", state, err)
	}
	domain := func(l *Layout) *grid.Domain { return &l.Unknowns[3].Domain }
	for _, tc := range []struct {
		name   string
		change func(l *Layout)
		texts  []string
	}{
		{"cells of a field", func(l *Layout) { domain(l).Size[1] = 6 }, []string{`"phi"`, "size", "6", "5"}},
		{"a transposed field", func(l *Layout) { s := &domain(l).Size; s[0], s[2] = s[2], s[0] }, []string{`"phi"`, "size", "6", "4"}},
		{"the origin of a field", func(l *Layout) { domain(l).Origin[2] = 3.5 }, []string{`"phi"`, "origin", "3.5", "3"}},
		{"the spacing of a field", func(l *Layout) { domain(l).Spacing[0] = 0.5 }, []string{`"phi"`, "spacing", "0.5", "1"}},
		{"a field that is periodic", func(l *Layout) { domain(l).Periodic[2] = true }, []string{`"phi"`, "periodicity", "true", "false"}},
		{"a field that is not periodic", func(l *Layout) { domain(l).Periodic[0] = false }, []string{`"phi"`, "periodicity", "true", "false"}},
		{"a face of p", func(l *Layout) { l.Grids[0].P[1] = 1.5 }, []string{`"f"`, "face 2 of p at radius 1 is 1.5, stored is 1"}},
		{"a face of p at the last radius", func(l *Layout) { l.Grids[1].P[1] = 1.5 }, []string{`"f"`, "face 2 of p at radius 2 is 1.5, stored is 2"}},
		{"a face of xi", func(l *Layout) { l.Grids[0].Xi[1] = 0.25 }, []string{`"f"`, "face 2 of xi at radius 1 is 0.25, stored is 0"}},
		{"a face of xi at the last radius", func(l *Layout) { l.Grids[1].Xi[1] = 0.25 }, []string{`"f"`, "face 2 of xi at radius 2 is 0.25, stored is 0.5"}},
		{"cells of p", func(l *Layout) { l.Grids[0].P = []float64{0, 3} }, []string{`"f"`, "p at radius 1 has 2 faces, stored are 3"}},
		{"cells of xi", func(l *Layout) { l.Grids[1].Xi = []float64{-1, 1} }, []string{`"f"`, "xi at radius 2 has 2 faces, stored are 3"}},
		{"as many cells, otherwise arranged", func(l *Layout) { l.Grids[1].P, l.Grids[1].Xi = []float64{0, 1, 2}, []float64{-1, 1} }, []string{`"f"`, "p at radius 2 has 3 faces, stored are 2"}},
		{"another order of grids", func(l *Layout) { l.Unknowns[2].Grids = []string{"outer", "inner"} }, []string{`"f"`, "p at radius 1"}},
		{"a radius", func(l *Layout) { l.R[1] = 0.5 }, []string{`"n"`, "face 2 of the radial grid is 0.5, stored is 1"}},
		{"components", func(l *Layout) { l.Unknowns[1].Components = 3 }, []string{`"n"`, "3 components, stored are 2"}},
		{"a kind", func(l *Layout) { l.Unknowns[0] = Unknown{Name: "E", Kind: Radial, Components: 1} }, []string{`"E"`, "radial", "scalar"}},
	} {
		l := gridLayout()
		tc.change(&l)
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		_, err := matchUnknowns(&l, from, make([]float64, l.Size()), silent)
		if err == nil {
			t.Errorf("%s: it is taken", tc.name)
			continue
		}
		for _, text := range tc.texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q lacks %q", tc.name, err, text)
			}
		}
	}
}

func wantSection(t *testing.T, settings record.Record, section string, want record.Record) {
	t.Helper()
	if got, err := settings.Record(section); err != nil || !got.Equal(want) {
		t.Errorf("section %s is\n%v, %v\nwant\n%v", section, got, err, want)
	}
}

// What a run is asked for, and where it runs, is in its settings with nothing left out.
func TestSectionsThatAreNotHashed(t *testing.T) {
	cfg := fullConfig(t)
	cfg.Directory, cfg.Name, cfg.Overwrite, cfg.Device = "there", "name", true, "cuda:1"
	cfg.Setup.Incomplete = true
	cfg.Checkpoint = CheckpointConfig{Steps: 3, Interval: 0.25, WallTime: 90 * time.Second}
	cfg.Stop = StopConfig{WallTime: time.Hour, Steps: 7, File: "halt", Signals: []string{"SIGTERM", "SIGUSR1"}}
	cfg.Progress = ProgressConfig{Steps: 11, WallTime: 1500 * time.Millisecond}
	s := settingsOf(t, cfg, 5)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	commit, version, clean := codeVersion()
	wantSection(t, s, "code", mustOf(t, "commit", commit, "version", version, "tree_clean", clean))
	wantSection(t, s, "environment", mustOf(t, "machine", host, "os", runtime.GOOS+"/"+runtime.GOARCH,
		"go", runtime.Version(), "ranks", int64(5), "device", "cuda:1"))
	wantSection(t, s, "checkpoint", mustOf(t, "type", "checkpoints", "directory", "there", "name", "name",
		"resume", false, "overwrite", true, "steps", int64(3), "interval", 0.25, "wall_time", 90.0))
	wantSection(t, s, "stop", mustOf(t, "type", "limits", "wall_time", 3600.0, "steps", int64(7), "file", "halt",
		"signals", []string{"SIGTERM", "SIGUSR1"}))
	wantSection(t, s, "log", mustOf(t, "type", "progress", "steps", int64(11), "wall_time", 1.5))
	if complete, err := s.Bool("complete"); err != nil || complete {
		t.Errorf("complete is %v, %v for a setup that is not", complete, err)
	}

	cfg.Checkpoint, cfg.Stop, cfg.Progress = CheckpointConfig{Off: true}, StopConfig{}, ProgressConfig{}
	s = settingsOf(t, cfg, 5)
	for _, section := range []string{"checkpoint", "stop", "log"} {
		wantSection(t, s, section, mustOf(t, "type", "none"))
	}
	// Any of the limits is one.
	for _, stop := range []StopConfig{{WallTime: time.Second}, {Steps: 1}, {File: "halt"}, {Signals: []string{"SIGINT"}}} {
		cfg.Stop = stop
		if kind, err := settingsOf(t, cfg, 1).Text("stop/type"); err != nil || kind != "limits" {
			t.Errorf("%+v is %q, %v", stop, kind, err)
		}
	}
	for _, progress := range []ProgressConfig{{Steps: 1}, {WallTime: time.Second}} {
		cfg.Progress = progress
		if kind, err := settingsOf(t, cfg, 1).Text("log/type"); err != nil || kind != "progress" {
			t.Errorf("%+v is %q, %v", progress, kind, err)
		}
	}
}

// A segment that another commit goes on with says so, and names the one before.
func TestASegmentOfAnotherCommit(t *testing.T) {
	m := twoSegments(t)
	m.last.Settings = withKey(t, m.last.Settings, "code", "commit", "abc")
	cfg := decayConfig()
	cfg.Resume = true
	s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	s.settings = withKey(t, s.settings, "code", "commit", "def")
	if err := s.describeOrigin(m.last); err != nil {
		t.Fatal(err)
	}
	if _, err := advance(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"code/commit": "def", "segment/previous_commit": "abc", "segment/commit_changed": true, "segment/settings_changed": false,
	} {
		if v, err := m.files[3].Settings.Get(path); err != nil || v.Any() != want {
			t.Errorf("%s is %v, %v; want %v", path, v, err, want)
		}
	}
}

// Progress is logged once so much time has gone by, whatever the steps.
func TestProgressByWallTime(t *testing.T) {
	var log bytes.Buffer
	c := newClock()
	c.step = 0
	cfg := decayConfig()
	cfg.Progress.WallTime = time.Minute
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, err := open(t.Context(), comm.Self(), cfg, newMemory(), c.now)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDecay(s)
	if err != nil {
		t.Fatal(err)
	}
	s.SetUpdate("mean", []float64{1, 0})
	if err := s.SaveState(t.Context(), d.state); err != nil {
		t.Fatal(err)
	}
	for i, after := range []struct{ seconds, lines int }{{59, 0}, {1, 1}, {30, 1}, {29, 1}, {2, 2}, {59, 2}, {600, 3}, {1, 3}} {
		c.at = c.at.Add(time.Duration(after.seconds) * time.Second)
		accept(s, d)
		if err := s.SaveState(t.Context(), d.state); err != nil {
			t.Fatal(err)
		}
		if out, err := s.Checkpoint(t.Context(), d.state, d.record); err != nil || out.Done {
			t.Fatal(out, err)
		}
		if got := strings.Count(log.String(), "msg=progress"); got != after.lines {
			t.Fatalf("after step %d there are %d lines, want %d:\n%s", i+1, got, after.lines, log.String())
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The first segment of a run counts its own states and steps only, whatever the run had
// that it begins with.
func TestARunFromAnotherCountsFromZero(t *testing.T) {
	other := twoSegments(t)
	k := *other.last
	k.File = "other.h5"
	if k.SavedCount == 0 || k.Summary.Attempted == 0 {
		t.Fatalf("the other run has %+v", k)
	}
	m := newMemory()
	m.outputs["other.h5 -1"] = &k
	cfg := decayConfig()
	cfg.From = "other.h5"
	s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	if start := s.Start(); start.Segment != 1 || start.Saved != 0 || start.Summary != (Summary{}) {
		t.Errorf("it starts with %+v", start)
	}
	if _, err := advance(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := m.files[1]
	if before, err := out.Settings.Int("segment/saved_before"); err != nil || before != 0 {
		t.Errorf("saved_before is %d, %v", before, err)
	}
	if m.last.SavedCount != len(out.Times) {
		t.Errorf("the checkpoint counts %d states of %d", m.last.SavedCount, len(out.Times))
	}
	accepted := int64(0)
	for _, a := range out.Statistics.Accepted {
		accepted += boolFlag(a)
	}
	if got := m.last.Summary; got.Attempted != int64(out.Statistics.Attempts()) || got.Accepted != accepted || accepted == 0 {
		t.Errorf("the checkpoint has %+v; there are %d attempts, %d accepted", got, out.Statistics.Attempts(), accepted)
	}
}

// Everything that goes into the files is the same on all ranks, units too.
func TestRanksAgreeOnUnits(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		for _, unknown := range []int{0, 1} {
			m := newMemory()
			cfg := decayConfig()
			u := &cfg.Layout.Unknowns[unknown]
			if c.Rank() == 1 {
				u.Unit = "other"
			}
			s, err := open(t.Context(), c, cfg, m, newClock().now)
			if err == nil {
				t.Errorf("a run opens that has other units on rank 1")
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "the unit of "+u.Name) || !strings.Contains(err.Error(), `"other"`) {
				t.Errorf("other units give %v", err)
			}
		}
	})
}
