package runfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/owner"
	"github.com/fieldstone-io/fieldstone/internal/signals"
	"github.com/fieldstone-io/fieldstone/record"
)

// Config says what a run computes and how this segment of it begins and ends. All
// ranks give the same, but for Initial, of which rank 0's counts, and Logger.
type Config struct {
	// Directory holds the files of the run; it is made if missing. Name begins their
	// names. Where files of the run hold fields, all nodes must see the directory. This
	// path, From and Stop.File are relative to the working directory of rank 0 at Open,
	// where they are relative: a later change of it changes nothing.
	Directory, Name string

	// Resume goes on from the last checkpoint of the run, and starts it where there
	// is none. So all jobs of a chain may have the same configuration.
	Resume bool
	// Overwrite lets a run that does not resume replace the segment of its number, which
	// Open does.
	Overwrite bool
	// From is a file, output or checkpoint, from whose state the run starts unless
	// Resume finds a checkpoint. FromState is the number of a saved state, from 1; 0
	// stands for the last.
	From      string
	FromState int
	// Segment is the number of this segment; 0 means the one after the segment that
	// it goes on from, if that is one of this run, and 1 otherwise. So a run that
	// starts From a file of another run, or of one in another directory, has a first
	// segment of its own, with the state that it starts from if that is to be saved. Its
	// counts of states and steps begin at 0 if the file is none of a run of this name.
	// Otherwise, or with a greater Segment, they go on from that file's, so that the
	// segments of both directories can be joined.
	Segment int

	Layout Layout
	Setup  Setup
	// Initial is the state of a new run, which the solver gets back from Start; nil
	// where the solver makes it. Unknowns that a resumed state lacks are taken from
	// it.
	Initial []float64

	// TimePoints are times in seconds that accepted steps hit exactly, strictly
	// increasing: the first is where the run starts, the last where it ends.
	TimePoints []float64
	// SaveTimes are the time points at which states are saved; nil stands for all.
	SaveTimes []float64
	// Updates names the interval updates.
	Updates []string

	Checkpoint CheckpointConfig
	Stop       StopConfig
	Progress   ProgressConfig

	// Fields are the solver's fields, by the names of unknowns of the layout: those
	// that files of the run hold. On each rank they have the cells that the rank owns,
	// which together are the domain; float32 cells are stored as float64, complex ones
	// can't be. All ranks write their cells to the files, from where the fields have
	// them, as they are when SaveState and Checkpoint are called. A resumed run puts
	// the stored cells into them, on any number of ranks. A solver whose state moves from
	// one buffer to another says so by [Session.SetFields]; without that the session saves
	// what the fields given here have.
	Fields []field.Named
	// Bundle publishes the fields of the accepted state and returns the path of the
	// bundle, which the checkpoint names in place of holding them; nil where it is to
	// hold them. It is called on all ranks at once, after the segment is written and
	// before the checkpoint is. A resumed run finds the path in Start as it was returned.
	// By custom a relative path is one from the directory of the run, which then can be
	// moved, and readers of the files take it so. That of a publish.Service is relative to
	// the working directory if its checkpoint directory is: return the path from the run's
	// directory, or make one of them absolute.
	//
	// Bundles that the last two checkpoints name must be kept until the next checkpoint
	// is written: a publish.Service keeps three at least, and one more for each
	// checkpoint in a row that may fail. While checkpoints are not finite, the one before
	// is the newest that was; a run whose bundle of that is gone goes on from the last
	// checkpoint. A job that is killed between bundle and
	// checkpoint leaves a bundle that no checkpoint names, where the resumed run will
	// want to publish its own: the service restarts from the path in Start, and sets
	// newer ones aside.
	Bundle func(ctx context.Context) (path string, err error)
	// LoadBundle loads the fields of a stored state from the bundles that start.Bundles
	// names, such as by Service.Restore. Open calls it on all ranks at once, so it may be
	// collective, and only where the state to begin with names bundles. An error on any
	// rank is that of all. It says that the bundle can't be loaded, and Open passes over
	// the run's last checkpoint for the one before, for which it calls LoadBundle again;
	// unless it matches ErrResume, which says that the state is none that the run
	// can go on from, or the context was cancelled: then Open fails at once. Where
	// LoadBundle is nil, the solver loads the bundles after Open, and can't go back.
	LoadBundle func(ctx context.Context, start Start) error

	// Wait is how long Open waits for another run of the name to end; 0 stands for one
	// minute, less for not at all.
	Wait time.Duration

	// Device describes the device that computes, for the record; empty for none.
	Device string
	// Logger takes warnings and the progress, on rank 0; nil for nowhere. It takes one line
	// at the level Info for each checkpoint, for a resume and for a stop, with "time"
	// (accepted, in seconds), "states" (saved by the run), "bytes" (of values: read by a
	// resume, written since the checkpoint before, and by the segment until it stopped;
	// bundles not included) and "seconds" (on the clock, of Open, of the checkpoint, and
	// since the beginning of Open). On every rank
	// it takes the warning that a step of this rank takes long, as on a slow disk: after
	// a minute, then after two, four and so on.
	Logger *slog.Logger
}

// A CheckpointConfig says when checkpoints are written. There is always one when the
// run stops and when it reaches its end, unless they are off.
type CheckpointConfig struct {
	// Off writes no checkpoint: the run can't be resumed, and its output is
	// written by Close alone, until when saved states are in memory, but for fields.
	Off bool
	// Steps is the number of accepted steps from one checkpoint to the next; 0 for no
	// such rule.
	Steps int64
	// Interval is a span of the accepted time, in seconds. A checkpoint is due at the
	// first accepted step at or beyond each of its multiples, counted from the first time
	// point, whichever job the step is of and whatever other checkpoints there are. A
	// time that adding up made 1e-9 of itself too small is at the multiple.
	Interval float64
	// WallTime is the time on rank 0's clock from the end of one checkpoint, or of
	// Open, until the next is due.
	WallTime time.Duration

	// NonFinite says what becomes of a state with numbers that are NaN or infinite;
	// empty stands for [WarnNonFinite]. NonFiniteUnknowns says so for some unknowns, by
	// their names. What a bundle holds is judged by the bundle's metadata.
	NonFinite         NonFinitePolicy
	NonFiniteUnknowns map[string]NonFinitePolicy
	// ConstantFields are the names of fields that may stay as they are from one
	// checkpoint to the next. For any other field in the files that is a warning, once in
	// a session, if it has changed before: kernels' writes may not have been noted, or the
	// session may have the wrong one of two buffers, see Fields.
	ConstantFields []string
}

// A StopConfig says what ends a segment before the run's end.
type StopConfig struct {
	// WallTime is how long after the beginning of Open, on rank 0's clock; 0 for no
	// limit. So what Open waits for and reads is part of it. Leave room for what the job
	// does before Open, for one step and for one checkpoint.
	WallTime time.Duration
	// Steps is the number of accepted steps of the segment; 0 for no limit.
	Steps int64
	// File names a file that, when it appears, ends the segment. Rank 0 looks for it
	// once a second at most.
	File string
	// Signals names signals, such as "SIGTERM" and "SIGUSR1", that end the segment
	// when any rank gets them. One that the system doesn't have is an error that wraps
	// [errors.ErrUnsupported].
	Signals []string
}

// A ProgressConfig says when the progress is logged: after so many accepted steps, or
// so much time on rank 0's clock; never where both are 0.
type ProgressConfig struct {
	Steps    int64
	WallTime time.Duration
}

// fileEvery is the least time from one look for the stop file to the next: on a
// parallel filesystem each of them is a request to a server.
const fileEvery = time.Second

// validate reports what can't be. The error matches ErrInput.
func (c *Config) validate() error {
	for _, check := range []func() error{
		c.checkNames, c.checkLayout, c.checkTimes, c.checkUpdates, c.checkLimits, c.checkFields, c.checkPolicies, c.checkConstantFields,
	} {
		if err := check(); err != nil && !errors.Is(err, ErrInput) {
			return fmt.Errorf("%w: %w", ErrInput, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkNames() error {
	for what, text := range map[string]string{"Directory": c.Directory, "From": c.From, "Stop.File": c.Stop.File} {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s %q has a NUL character", what, text)
		}
	}
	switch {
	case c.Directory == "":
		return errors.New("the directory is empty")
	case c.Segment < 0 || c.Segment > maxSegment:
		return fmt.Errorf("segment is %d, must be 1 to %d, or 0 to choose", c.Segment, maxSegment)
	case c.FromState < 0, c.From == "" && c.FromState != 0:
		return fmt.Errorf("state %d is to be taken from the file %q", c.FromState, c.From)
	case c.Resume && c.Overwrite:
		return errors.New("resume and overwrite exclude each other")
	}
	return CheckName(c.Name)
}

// maxSegment is the last number of four digits.
const maxSegment = 9999

func (c *Config) checkLayout() error {
	if err := c.Layout.Validate(); err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	if n := c.Layout.Size(); c.Initial != nil && len(c.Initial) != n {
		return fmt.Errorf("the initial state has %d numbers, the layout %d", len(c.Initial), n)
	}
	return nil
}

func (c *Config) checkTimes() error {
	if len(c.TimePoints) < 2 {
		return fmt.Errorf("%d time points, must be two at least", len(c.TimePoints))
	}
	for what, times := range map[string][]float64{"time point": c.TimePoints, "save time": c.SaveTimes} {
		for i, t := range times {
			if math.IsNaN(t) || math.IsInf(t, 0) {
				return fmt.Errorf("%s %d is %v", what, i, t)
			}
			if i > 0 && t <= times[i-1] {
				return fmt.Errorf("%s %d is %v, not greater than %v before it", what, i, t, times[i-1])
			}
		}
	}
	for i, t := range c.SaveTimes {
		if _, ok := slices.BinarySearch(c.TimePoints, t); !ok {
			return fmt.Errorf("save time %d, %v, is not one of the time points", i, t)
		}
	}
	return nil
}

func (c *Config) checkUpdates() error {
	for i, name := range c.Updates {
		if err := record.CheckKey(name); err != nil {
			return fmt.Errorf("update: %w", err)
		}
		if slices.Contains(c.Updates[:i], name) {
			return fmt.Errorf("update %q is there twice", name)
		}
	}
	return nil
}

// checkFields looks at the fields that files of the run hold.
func (c *Config) checkFields() error {
	for i := range c.Layout.Unknowns {
		u := &c.Layout.Unknowns[i]
		if !c.needsField(u) {
			continue
		}
		if _, err := c.field(u); err != nil {
			return err
		}
		if _, err := planes(u.Domain, chunkBytes); err != nil {
			return fmt.Errorf("field %q: %w", u.Name, err)
		}
	}
	return nil
}

func (c *Config) checkLimits() error {
	for what, n := range map[string]int64{
		"Checkpoint.Steps":    c.Checkpoint.Steps,
		"Checkpoint.WallTime": int64(c.Checkpoint.WallTime),
		"Stop.Steps":          c.Stop.Steps,
		"Stop.WallTime":       int64(c.Stop.WallTime),
		"Progress.Steps":      c.Progress.Steps,
		"Progress.WallTime":   int64(c.Progress.WallTime),
	} {
		if n < 0 {
			return fmt.Errorf("%s is negative", what)
		}
	}
	k := c.Checkpoint
	switch {
	case !(k.Interval >= 0) || math.IsInf(k.Interval, 0):
		return fmt.Errorf("Checkpoint.Interval is %v, must be a span of time", k.Interval)
	case k.Off && (k.Steps != 0 || k.Interval != 0 || k.WallTime != 0 || k.NonFinite != "" || k.NonFiniteUnknowns != nil || k.ConstantFields != nil):
		return errors.New("Checkpoint.Off excludes its other settings")
	}
	for i, name := range c.Stop.Signals {
		if _, err := signals.Lookup(name); err != nil {
			return fmt.Errorf("Stop.Signals: %w", err)
		}
		if slices.Contains(c.Stop.Signals[:i], name) {
			return fmt.Errorf("Stop.Signals: %s is there twice", name)
		}
	}
	return nil
}

// saveTimes are the times at which states are saved.
func (c *Config) saveTimes() []float64 {
	if c.SaveTimes == nil {
		return c.TimePoints
	}
	return c.SaveTimes
}

// wait is how long Open waits for another run of the name.
func (c *Config) wait() time.Duration {
	if c.Wait == 0 {
		return owner.DefaultWait
	}
	return c.Wait
}

// end is the accepted time at which the run ends.
func (c *Config) end() float64 { return c.TimePoints[len(c.TimePoints)-1] }
