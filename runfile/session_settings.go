package runfile

import (
	"crypto/rand"
	"os"
	"runtime"
	"slices"

	"github.com/fieldstone-io/fieldstone/record"
)

// A Setup describes what a run computes, as far as the layout and the times don't: a
// record each for the sections of the settings that the setup hash covers. An empty
// record says that there is nothing of the kind.
type Setup struct {
	System     record.Record // every equation with its terms and options, tolerances
	Updates    record.Record // the interval updates by name
	Prescribed record.Record // tables of prescribed functions of time
	Solver     record.Record // nonlinear and linear solver
	Stepper    record.Record // the stepper; it becomes part of the section time
	Run        record.Record // whatever the caller adds

	// Incomplete says that some object of the run has no record of its own.
	Incomplete bool
	// Deterministic says that the stepper's record makes a resumed run repeat the
	// uninterrupted one bit for bit, and not only within its tolerance.
	Deterministic bool
}

// setupSections are the sections of the settings that are hashed.
var setupSections = []string{"grids", "layout", "system", "updates", "prescribed", "solver", "time", "run"}

// settings returns the settings of a run but for the section segment.
func (c *Config) settings(ranks int) (record.Record, error) {
	var settings record.Record
	b := record.NewBuilder()
	b.Section("grids", c.Layout.describeGrids)
	b.Section("layout", c.Layout.describe)
	b.Record("system", c.Setup.System)
	b.Record("updates", c.Setup.Updates)
	b.Record("prescribed", c.Setup.Prescribed)
	b.Record("solver", c.Setup.Solver)
	b.Section("time", func(b *record.Builder) {
		b.Floats("points", c.TimePoints).Floats("save_times", c.saveTimes()).Record("stepper", c.Setup.Stepper)
	})
	b.Record("run", c.Setup.Run)
	hashed, err := b.Build()
	if err != nil {
		return settings, err
	}
	hashes, err := record.Hashes(hashed, setupSections...)
	if err != nil {
		return settings, err
	}
	b.Record("hashes", hashes)
	b.Text("setup_hash", hashes.Hash())
	b.Bool("complete", !c.Setup.Incomplete)
	b.Section("code", describeCode)
	b.Section("environment", func(b *record.Builder) { c.describeEnvironment(b, ranks) })
	b.Section("checkpoint", c.describeCheckpoint)
	b.Section("stop", c.describeStop)
	b.Section("log", c.describeProgress)
	return b.Build()
}

func (l *Layout) describeGrids(b *record.Builder) {
	for _, g := range l.Grids {
		b.Section(g.Name, func(b *record.Builder) {
			b.Text("type", "cylindrical").Floats("p_faces", g.P).Floats("xi_faces", g.Xi)
		})
	}
}

// describe is what the setup hash sees of the layout: no units, and grids by name.
func (l *Layout) describe(b *record.Builder) {
	if l.R != nil {
		b.Floats("r_faces", l.R)
	}
	b.Int("size", int64(l.Size()))
	if len(l.Unknowns) == 0 {
		b.Records("unknowns", nil)
	}
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		b.Entry("unknowns", u.Name, func(b *record.Builder) {
			u.describe(b)
			b.Int("size", int64(l.length(u)))
		})
	}
}

// describeCode says from which sources the program was built, as far as Go knows.
func describeCode(b *record.Builder) {
	commit, version, clean := codeVersion()
	b.Text("commit", commit).Text("version", version).Bool("tree_clean", clean)
}

// sessionKey tells sessions apart that have the same settings, so that files of one are
// not taken for those of another.
const sessionKey = "session"

// named returns the settings with a name of the session that nothing else has.
func named(settings record.Record) (record.Record, error) {
	environment, err := settings.Record("environment")
	if err == nil {
		environment, err = environment.With(sessionKey, rand.Text())
	}
	if err != nil {
		return settings, err
	}
	return settings.With("environment", environment)
}

// sessionOf gives the name of the session that wrote settings, empty where there is
// none.
func sessionOf(settings record.Record) (string, error) {
	name, err := optional(settings.Text("environment/" + sessionKey))
	if err != nil || name == nil {
		return "", ofSettings(err)
	}
	return *name, nil
}

func (c *Config) describeEnvironment(b *record.Builder, ranks int) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	device := c.Device
	if device == "" {
		device = "none"
	}
	b.Text("machine", host).Text("os", runtime.GOOS+"/"+runtime.GOARCH).Text("go", runtime.Version())
	b.Int("ranks", int64(ranks)).Text("device", device)
}

// none describes settings that ask for nothing.
const none = "none"

func (c *Config) describeCheckpoint(b *record.Builder) {
	k := c.Checkpoint
	if k.Off {
		b.Text("type", none)
		return
	}
	b.Text("type", "checkpoints").Text("directory", c.Directory).Text("name", c.Name)
	b.Bool("resume", c.Resume).Bool("overwrite", c.Overwrite)
	b.Int("steps", k.Steps).Float("interval", k.Interval).Float("wall_time", k.WallTime.Seconds())
}

func (c *Config) describeStop(b *record.Builder) {
	k := c.Stop
	if k.WallTime == 0 && k.Steps == 0 && k.File == "" && len(k.Signals) == 0 {
		b.Text("type", none)
		return
	}
	b.Text("type", "limits")
	b.Float("wall_time", k.WallTime.Seconds()).Int("steps", k.Steps).Text("file", k.File).Texts("signals", k.Signals)
}

func (c *Config) describeProgress(b *record.Builder) {
	k := c.Progress
	if k.Steps == 0 && k.WallTime == 0 {
		b.Text("type", none)
		return
	}
	b.Text("type", "progress").Int("steps", k.Steps).Float("wall_time", k.WallTime.Seconds())
}

// changedSections names the sections of the setup whose hashes differ from those of
// earlier settings.
func changedSections(before, now record.Record) []string {
	return slices.DeleteFunc(slices.Clone(setupSections), func(section string) bool {
		a, errA := before.Text("hashes/" + section)
		b, errB := now.Text("hashes/" + section)
		return errA == nil && errB == nil && a == b
	})
}
