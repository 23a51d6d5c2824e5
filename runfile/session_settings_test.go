package runfile

import (
	"slices"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
)

// fullConfig has something in each section of the setup.
func fullConfig(t *testing.T) Config {
	t.Helper()
	cfg := decayConfig()
	cfg.Layout.Grids = []MomentumGrid{{Name: "grid_1", P: []float64{0, 1, 3}, Xi: []float64{-1, 0, 1}}}
	cfg.Layout.Unknowns = append(cfg.Layout.Unknowns,
		Unknown{Name: "f", Kind: Kinetic, Grids: []string{"grid_1"}, Scale: 1e19, Lower: &LowerLimit{Tolerance: 1e-6}},
		Unknown{Name: "phi", Kind: Field, Domain: grid.Domain{Size: [3]int{2, 3, 4}, Spacing: [3]float64{1, 1, 1}}})
	cfg.Setup = Setup{
		System:     mustOf(t, "equation", "decay"),
		Updates:    mustOf(t, "mean", "over an interval"),
		Prescribed: mustOf(t, "table_1", []float64{0, 1}),
		Solver:     mustOf(t, "type", "newton"),
		Stepper:    mustOf(t, "type", "heun"),
		Run:        mustOf(t, "description", "a test"),
	}
	return cfg
}

func settingsOf(t *testing.T, cfg Config, ranks int) record.Record {
	t.Helper()
	s, err := cfg.settings(ranks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSettingsOfARun(t *testing.T) {
	s := settingsOf(t, fullConfig(t), 3)
	want := append(slices.Clone(setupSections), "hashes", "setup_hash", "complete", "code", "environment", "checkpoint", "stop", "log")
	if got := s.Keys(); !slices.Equal(got, want) {
		t.Errorf("sections are %q, want %q", got, want)
	}
	for _, section := range setupSections {
		r, err := s.Record(section)
		if err != nil {
			t.Fatal(err)
		}
		if hash, err := s.Text("hashes/" + section); err != nil || hash != r.Hash() || r.Len() == 0 {
			t.Errorf("section %s has %d entries and the hash %s, recorded is %s, %v", section, r.Len(), r.Hash(), hash, err)
		}
	}
	hashes, err := s.Record("hashes")
	if err != nil {
		t.Fatal(err)
	}
	if hash, err := s.Text("setup_hash"); err != nil || hash != hashes.Hash() {
		t.Errorf("the setup hash is %s, %v", hash, err)
	}
	for path, want := range map[string]any{
		"complete": true, "environment/ranks": int64(3), "environment/device": "none",
		"checkpoint/type": "checkpoints", "checkpoint/steps": int64(3), "stop/type": "none", "log/type": "none",
		"layout/size": int64(11), "layout/unknowns/f/scale": 1e19, "layout/unknowns/n/kind": "scalar",
	} {
		if v, err := s.Get(path); err != nil || v.Any() != want {
			t.Errorf("%s is %v, %v; want %v", path, v, err, want)
		}
	}
	if s.Has("layout/unknowns/n/unit") {
		t.Error("the settings have a unit")
	}
}

// The setup hash tells what is computed, and not by whom or how far.
func TestWhatTheSetupHashCovers(t *testing.T) {
	base := settingsOf(t, fullConfig(t), 1)
	for name, tc := range map[string]struct {
		change func(c *Config)
		want   []string // sections whose hash changes
	}{
		"the same":            {func(c *Config) {}, nil},
		"a unit":              {func(c *Config) { c.Layout.Unknowns[0].Unit = "cm^-3" }, nil},
		"the name":            {func(c *Config) { c.Name, c.Directory = "other", "there" }, nil},
		"when to save it":     {func(c *Config) { c.Checkpoint = CheckpointConfig{WallTime: time.Hour} }, nil},
		"when to stop":        {func(c *Config) { c.Stop = StopConfig{Steps: 3, File: "halt"} }, nil},
		"the device":          {func(c *Config) { c.Device = "cuda:0" }, nil},
		"the initial state":   {func(c *Config) { c.Initial = nil }, nil},
		"time points":         {func(c *Config) { c.TimePoints = append(c.TimePoints, 2) }, []string{"time"}},
		"save times":          {func(c *Config) { c.SaveTimes = nil }, []string{"time"}},
		"the stepper":         {func(c *Config) { c.Setup.Stepper = mustOf(t, "type", "euler") }, []string{"time"}},
		"an equation":         {func(c *Config) { c.Setup.System = mustOf(t, "equation", "growth") }, []string{"system"}},
		"a prescribed table":  {func(c *Config) { c.Setup.Prescribed = record.Record{} }, []string{"prescribed"}},
		"a face of a grid":    {func(c *Config) { c.Layout.Grids[0].P = []float64{0, 1, 4} }, []string{"grids"}},
		"a radius":            {func(c *Config) { c.Layout.R = []float64{0, 0.5, 2} }, []string{"layout"}},
		"a scale":             {func(c *Config) { c.Layout.Unknowns[0].Scale = 2 }, []string{"layout"}},
		"a lower limit":       {func(c *Config) { c.Layout.Unknowns[0].Lower = &LowerLimit{} }, []string{"layout"}},
		"a field's grid":      {func(c *Config) { c.Layout.Unknowns[3].Domain.Size[0] = 9 }, []string{"layout"}},
		"the order":           {func(c *Config) { u := c.Layout.Unknowns; u[0], u[1] = u[1], u[0] }, []string{"layout"}},
		"the solver and more": {func(c *Config) { c.Setup.Solver, c.Setup.Run = record.Record{}, record.Record{} }, []string{"solver", "run"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fullConfig(t)
			tc.change(&cfg)
			s := settingsOf(t, cfg, 2)
			if got := changedSections(base, s); !slices.Equal(got, tc.want) {
				t.Errorf("the changed sections are %q, want %q", got, tc.want)
			}
			a, err := base.Text("setup_hash")
			b, err2 := s.Text("setup_hash")
			if err != nil || err2 != nil || (a == b) != (tc.want == nil) {
				t.Errorf("setup hashes %s and %s; %v, %v", a, b, err, err2)
			}
		})
	}
}

// What can't be compared has changed.
func TestSectionsWithoutAHashHaveChanged(t *testing.T) {
	s := settingsOf(t, fullConfig(t), 1)
	if got := changedSections(record.Record{}, s); !slices.Equal(got, setupSections) {
		t.Errorf("changed sections are %q", got)
	}
}
