package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fieldstone-io/fieldstone/examples/dendrite/internal/kobayashi"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/publish"
)

// checkpoints connects a simulation with the checkpoint service. Its methods are
// collective, but for close.
type checkpoints struct {
	service *publish.Service
	cfg     publish.Config
	sim     *simulation
	solver  publish.Solver // what the service sees of sim
	say     *reporter

	last   string // path of the bundle that was saved or restored last
	lastAt int64  // its increment
}

func newCheckpoints(ctx context.Context, sim *simulation, cfg publish.Config, say *reporter) (*checkpoints, error) {
	id, err := method(sim.model)
	if err := sim.comm.Agree(ctx, err); err != nil {
		return nil, err
	}
	k := &checkpoints{cfg: cfg, sim: sim, say: say}
	k.solver = publish.Solver{
		Fields:  []field.Named{{ID: "phi", Field: sim.phi}, {ID: "T", Field: sim.temp}},
		Clock:   sim,
		Method:  id,
		Sidecar: func() (any, error) { return sim.model, nil },
	}
	k.service, err = publish.NewService(ctx, sim.comm, cfg,
		publish.Logger(say.log),
		publish.OnStep(func(step publish.Step, detail string) { say.publishing(sim.increment, step, detail) }))
	return k, err
}

// startCheckpoints is newCheckpoints and restore.
func startCheckpoints(ctx context.Context, sim *simulation, cfg publish.Config, anyModel bool, say *reporter) (*checkpoints, error) {
	k, err := newCheckpoints(ctx, sim, cfg, say)
	if err != nil {
		return nil, err
	}
	if err := sim.comm.Agree(ctx, k.restore(ctx, anyModel)); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// method identifies the integrator and its parameters: the service refuses to
// restart from a bundle of another one.
func method(m kobayashi.Model) (string, error) {
	parameters, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("kobayashi 1993, explicit euler, parameters %016x", pack.Sum(parameters)), nil
}

func (k *checkpoints) close() { k.service.Close() }

// restore continues from the bundle that the configuration asks for, if any: one of
// the same model, unless anyModel.
func (k *checkpoints) restore(ctx context.Context, anyModel bool) error {
	solver := k.solver
	if anyModel {
		solver.Method = ""
	}
	loaded, err := k.service.Restore(ctx, solver)
	if err != nil || loaded == nil {
		return err
	}
	k.last, k.lastAt = loaded.Path, k.sim.increment
	k.say.restarted(k.last, k.sim)
	return nil
}

// maybeSave is called after each step and saves when that is due. A signal that
// the configuration names ends the run: stop says which one.
func (k *checkpoints) maybeSave(ctx context.Context) (stop string, err error) {
	begin := time.Now()
	out, err := k.service.MaybeSave(ctx, k.solver)
	if out.Saved {
		k.saved(out.Path, begin)
	}
	return out.Reason, err
}

// save saves the state and returns the path of its bundle.
func (k *checkpoints) save(ctx context.Context) (path string, err error) {
	begin := time.Now()
	if path, err = k.service.Save(ctx, k.solver); err == nil {
		k.saved(path, begin)
	}
	return path, err
}

// saveLast saves the final state unless that was done.
func (k *checkpoints) saveLast(ctx context.Context) error {
	if k.cfg.Checkpoint.Directory == "" || k.lastAt == k.sim.increment {
		return nil
	}
	_, err := k.save(ctx)
	return err
}

func (k *checkpoints) saved(path string, begin time.Time) {
	k.last, k.lastAt = path, k.sim.increment
	k.say.saved(path, k.sim, time.Since(begin))
}
