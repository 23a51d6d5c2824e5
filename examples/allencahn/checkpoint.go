package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
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
	method  string
	say     *reporter

	last   string // path of the bundle that was saved or restored last
	lastAt int64  // its increment
}

func newCheckpoints(ctx context.Context, sim *simulation, cfg publish.Config, say *reporter) (*checkpoints, error) {
	id, err := method(sim.model)
	if err := sim.comm.Agree(ctx, err); err != nil {
		return nil, err
	}
	k := &checkpoints{cfg: cfg, sim: sim, method: id, say: say}
	k.service, err = publish.NewService(ctx, sim.comm, cfg, publish.Logger(say.log))
	return k, err
}

// method identifies the integrator and its parameters: the service refuses to
// restart from a bundle of another one. The device is no part of it, for the bits
// don't depend on it.
func method(m phasefield.Model) (string, error) {
	parameters, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("allen-cahn, explicit euler, parameters %016x", pack.Sum(parameters)), nil
}

// solver is what the service sees of the simulation, now: after each step phi is in
// the other one of two fields. The service packs it where it is, on the device too.
func (k *checkpoints) solver() publish.Solver {
	return publish.Solver{
		Fields:  []field.Named{{ID: "phi", Field: k.sim.stepper.Phi()}},
		Clock:   k.sim,
		Method:  k.method,
		Sidecar: func() (any, error) { return k.sim.model, nil },
	}
}

func (k *checkpoints) close() { k.service.Close() }

// restore continues from the bundle that the configuration asks for, if any.
func (k *checkpoints) restore(ctx context.Context) error {
	loaded, err := k.service.Restore(ctx, k.solver())
	if err != nil || loaded == nil {
		return err
	}
	k.last, k.lastAt = loaded.Path, k.sim.increment
	k.say.restarted(k.last, k.sim)
	return nil
}

// maybeSave is called after each step and saves when that is due. A signal that the
// configuration names ends the run: stop says which one.
func (k *checkpoints) maybeSave(ctx context.Context) (stop string, err error) {
	out, err := k.service.MaybeSave(ctx, k.solver())
	if out.Saved {
		k.last, k.lastAt = out.Path, k.sim.increment
	}
	return out.Reason, err
}

// saveLast saves the final state unless that was done.
func (k *checkpoints) saveLast(ctx context.Context) error {
	if k.cfg.Checkpoint.Directory == "" || k.lastAt == k.sim.increment {
		return nil
	}
	path, err := k.service.Save(ctx, k.solver())
	if err != nil {
		return err
	}
	k.last, k.lastAt = path, k.sim.increment
	return nil
}
