package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// runFiles writes the files of a run beside the bundles: this segment's output and
// checkpoints, which name the bundle that has the fields. The session decides when
// there is a checkpoint and when the segment ends. The methods are collective.
type runFiles struct {
	set     settings
	sim     *simulation
	say     *reporter
	session *runfile.Session
	observe *observer
	saves   *checkpoints // publishes the bundles
}

// openRun begins a segment of the run that the settings name, with the service for its
// bundles.
func openRun(ctx context.Context, sim *simulation, set settings, say *reporter) (*runFiles, error) {
	r := &runFiles{set: set, sim: sim, say: say}
	var err error
	if r.observe, err = newObserver(ctx, sim); err != nil {
		return nil, err
	}
	setup, err := describe(set)
	if err := sim.comm.Agree(ctx, err); err != nil {
		return nil, err
	}
	r.session, err = runfile.Open(ctx, sim.comm, runfile.Config{
		Directory:  set.Checkpoint.Directory,
		Name:       set.Run.Name,
		Resume:     set.Run.Resume,
		Layout:     r.observe.layout,
		Setup:      setup,
		TimePoints: times(set, sim.TimeAt),
		Checkpoint: runfile.CheckpointConfig{
			Steps:    max(0, set.Checkpoint.Every),
			WallTime: time.Duration(max(0, set.Checkpoint.EverySeconds) * float64(time.Second)),
		},
		Stop: runfile.StopConfig{
			WallTime: set.Run.WallTime.Duration,
			Steps:    set.Run.StopAfter,
			File:     set.Run.StopFile,
			Signals:  set.Checkpoint.OnSignal,
		},
		Fields:     []field.Named{{ID: namePhi, Field: sim.phi}},
		Bundle:     r.bundle,
		LoadBundle: r.load,
		Logger:     say.log,
	})
	if err != nil {
		return nil, err
	}
	if start := r.session.Start(); r.saves == nil && start.Resumed {
		err = fmt.Errorf("%w from %s: it names no bundle", runfile.ErrResume, start.File)
	} else if r.saves == nil {
		r.saves, err = startCheckpoints(ctx, sim, r.bundles(""), true, say)
	}
	if err := sim.comm.Agree(ctx, err); err != nil {
		return nil, r.close(ctx, err)
	}
	return r, nil
}

// bundle publishes the fields for a checkpoint, which names the bundle as seen from
// the directory that both are in: so that it can be moved.
func (r *runFiles) bundle(ctx context.Context) (string, error) {
	path, err := r.saves.save(ctx)
	return filepath.Base(path), err
}

// load goes on from the bundle that a checkpoint names, while the session is opened: if
// that is damaged, or gone, the session has the checkpoint before.
func (r *runFiles) load(ctx context.Context, start runfile.Start) error {
	bundle := start.Bundles[namePhi]
	if !filepath.IsAbs(bundle) {
		bundle = filepath.Join(r.set.Checkpoint.Directory, bundle)
	}
	if err := r.sim.comm.OnRoot(ctx, nil, func() error { return r.check(start, bundle) }); err != nil {
		return err
	}
	var err error
	// The files of a run record that its model is another one, and warn.
	r.saves, err = startCheckpoints(ctx, r.sim, r.bundles(bundle), true, r.say)
	return err
}

// bundles is how the service for bundles works for a run: it begins with the bundle
// that the checkpoint names, and later ones, of a segment that was killed before its
// checkpoint was written, are out of the way.
func (r *runFiles) bundles(from string) publish.Config {
	cfg := r.set.Config
	cfg.RestartFrom = from
	if r.set.Run.Resume {
		cfg.Checkpoint.Superseded = publish.SetAside
	}
	// The session says when. The service must only know that it will save.
	cfg.Checkpoint.Every, cfg.Checkpoint.EverySeconds, cfg.Checkpoint.OnSignal = 1, 0, nil
	return cfg
}

// check checks that a bundle is of the checkpoint's step, and that the time step is the one
// of the checkpoint, which no other checkpoint would be better for. The service compares
// the rest when it loads the bundle.
func (r *runFiles) check(start runfile.Start, bundle string) error {
	increment, err := start.Stepper.Int("increment")
	if err != nil {
		return fmt.Errorf("%w: %w", runfile.ErrResume, err)
	}
	if made := r.sim.TimeAt(increment); made != start.Time {
		return fmt.Errorf("%w: it is of step %d at %v s, where the time step makes that %v s",
			runfile.ErrResume, increment, start.Time, made)
	}
	m, err := publish.ReadMetadata(bundle)
	if err == nil && m.AcceptedIncrement != increment {
		err = fmt.Errorf("%w: it is of step %d, and its bundle %s of step %d",
			publish.ErrMismatch, increment, bundle, m.AcceptedIncrement)
	}
	return err
}

// begin is called before the first step, when the fields are those of the start.
func (r *runFiles) begin(ctx context.Context) error {
	start := r.session.Start()
	r.say.segment(r.set.Run.Name, start.Segment, r.sim)
	if start.Resumed {
		return nil
	}
	return r.save(ctx)
}

// stepped is called after each step. stop says why the segment has to end now.
func (r *runFiles) stepped(ctx context.Context) (stop string, err error) {
	r.session.Attempt(runfile.Attempt{
		Time:          r.sim.TimeAt(r.sim.increment),
		StepLength:    r.sim.model.Step,
		Accepted:      true,
		ErrorEstimate: math.NaN(), // there is none
	})
	if now := r.sim.increment; now%r.set.Run.SaveEvery == 0 || now == r.set.Steps {
		if err := r.save(ctx); err != nil {
			return "", err
		}
	}
	out, err := r.session.Checkpoint(ctx, r.observe.state, func() (record.Record, error) {
		// There is a checkpoint: only now the state must be the present one.
		if err := r.observe.observe(ctx); err != nil {
			return record.Record{}, err
		}
		return record.Of("increment", r.sim.increment, "step_length", r.sim.model.Step)
	})
	return out.Reason, err
}

// save saves the state of a time at which one is saved.
func (r *runFiles) save(ctx context.Context) error {
	if err := r.observe.observe(ctx); err != nil {
		return err
	}
	return r.session.SaveState(ctx, r.observe.state)
}

// close ends the segment. err is what ended the run, nil if nothing went wrong: the
// ranks close it together only if all of them have that error.
func (r *runFiles) close(ctx context.Context, err error) error {
	var agreed *comm.RankError
	if err != nil && !errors.As(err, &agreed) {
		return err
	}
	return errors.Join(err, r.session.Close(ctx))
}
