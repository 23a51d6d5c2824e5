//go:build linux

package faultfs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// A call is what a sweep is about: some collective calls of the library.
type call struct {
	name   string
	driver brick.Driver
	// before makes what is there before, without faults.
	before func(w *world) error
	// run makes the calls, on all ranks, with a fault, and returns a look at the outcome,
	// without faults and on all ranks. Its errors are kinds of verdicts.
	run func(w *world) (look func() error)
	// long: it makes thousands of calls on the filesystem.
	long bool
	// rare: a sample goes without it.
	rare bool
	// short: rows are cut among the ranks, and memory is too little for all of them at once.
	short bool
}

func (c call) String() string { return c.name + ", " + c.driver.String() }

// The kinds of what a look finds.
var (
	errLost  = errors.New("lost")
	errWrong = errors.New("wrong")
)

// world is what a rank knows.
type world struct {
	ctx context.Context
	c   *comm.Comm
	// The directory of a trial: as it is, and where calls fail.
	real, dir string
	driver    brick.Driver
	short     bool
	said      []string // what the calls returned
	failures  int
}

// say notes what a call returned, which is to be the same on all ranks.
func (w *world) say(what string, err error) error {
	if err != nil {
		w.failures++
	}
	w.said = append(w.said, fmt.Sprintf("%s: %v", what, err))
	return err
}

// on calls f on rank 0 alone.
func (w *world) on0(f func() error) error {
	if w.c.Rank() != 0 {
		return nil
	}
	return f()
}

func (w *world) options() []publish.Option {
	bricks := []brick.Option{brick.Using(w.driver)}
	if w.short {
		// Of the hints a library would make several rounds of a collective call.
		bricks = append(bricks, brick.Staging(1200), brick.Hints(map[string]string{"cb_buffer_size": "1000"}))
	}
	return []publish.Option{publish.Bricks(bricks...), publish.Logger(slog.New(slog.DiscardHandler))}
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func kind(of, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", of, err)
}

// calls are all of them. Session chooses its driver itself.
func calls() (list []call) {
	drivers := []brick.Driver{brick.POSIX, brick.Node}
	if mpi.Enabled {
		drivers = append(drivers, brick.MPIIO)
	}
	for _, d := range drivers {
		list = append(list,
			call{name: "SaveBundle", driver: d, before: saveOld, run: save},
			call{name: "LoadBundle", driver: d, before: saveOld, run: load},
			call{name: "Service", driver: d, before: serviceBefore, run: service, long: true})
	}
	if mpi.Enabled {
		list = append(list,
			call{name: "SaveBundle, short", driver: brick.MPIIO, before: saveOld, run: save, short: true},
			call{name: "LoadBundle, short", driver: brick.MPIIO, before: saveOld, run: load, short: true})
	}
	if h5.Enabled {
		list = append(list, call{name: "Session", driver: brick.Auto, before: sessionBefore, run: session, long: true})
		for n, d := range drivers {
			list = append(list, call{name: "Session, bundles", driver: d, before: bundlesBefore, run: sessionWithBundles, long: true, rare: n < len(drivers)-1})
		}
	}
	return list
}

// ---- SaveBundle ----

func saveOld(w *world) error {
	s, err := newSolver(w, 1)
	if err != nil {
		return err
	}
	return publish.SaveBundle(w.ctx, w.c, filepath.Join(w.dir, "old"), s.state(), w.options()...)
}

func save(w *world) func() error {
	s, err := newSolver(w, 2)
	if w.say("solver", err) != nil {
		return func() error { return err }
	}
	store := func(name string) error {
		return publish.SaveBundle(w.ctx, w.c, filepath.Join(w.dir, name), s.state(), w.options()...)
	}
	err = w.say("SaveBundle", store("new"))
	return func() error {
		found := w.on0(func() error { return looksSaved(w, err) })
		next := "new"
		if there(filepath.Join(w.real, "new")) {
			next = "newer"
		}
		if err := w.c.Agree(w.ctx, found); err != nil {
			return found
		}
		if err := store(next); err != nil {
			return kind(errWrong, fmt.Errorf("without a fault: %w", err))
		}
		return w.on0(func() error { return kind(errWrong, checkBundle(w, filepath.Join(w.real, next), 2)) })
	}
}

// looksSaved is about what SaveBundle left when it returned err.
func looksSaved(w *world, err error) error {
	if err := checkBundle(w, filepath.Join(w.real, "old"), 1); err != nil {
		return kind(errLost, err)
	}
	path := filepath.Join(w.real, "new")
	if err != nil && !there(path) {
		return nil
	}
	if bad := checkBundle(w, path, 2); bad != nil {
		return kind(errWrong, bad)
	}
	if err != nil && !errors.Is(err, publish.ErrDurabilityUnknown) {
		return kind(errWrong, errors.New("the bundle is in place, and the error doesn't say so"))
	}
	return nil
}

// ---- LoadBundle ----

func load(w *world) func() error {
	path := filepath.Join(w.dir, "old")
	read := func(s *solver) error {
		_, err := publish.LoadBundle(w.ctx, w.c, path, publish.Request{Fields: s.named(), Method: "euler"}, w.options()...)
		return err
	}
	s, err := newSolver(w, 9)
	if w.say("solver", err) != nil {
		return func() error { return err }
	}
	err = w.say("LoadBundle", read(s))
	return func() error {
		want := int64(1)
		if err != nil {
			want = 9
		}
		var found error
		if !errors.Is(err, publish.ErrFieldsUndefined) {
			found = kind(errWrong, s.check(want))
		}
		if found == nil {
			found = w.on0(func() error { return kind(errLost, checkBundle(w, filepath.Join(w.real, "old"), 1)) })
		}
		if err := w.c.Agree(w.ctx, found); err != nil {
			return found
		}
		if err := read(s); err != nil {
			return kind(errWrong, fmt.Errorf("without a fault: %w", err))
		}
		return kind(errWrong, s.check(1))
	}
}

// ---- Service ----

func serviceConfig(w *world) publish.Config {
	return publish.Config{RestartFrom: publish.Latest, Checkpoint: publish.CheckpointConfig{
		Every: 1, Directory: filepath.Join(w.dir, "states"), Keep: 2, WaitSeconds: -1, Superseded: publish.SetAside,
	}}
}

// work is a job: it restarts and makes steps. accepted is the state that a later job may
// count on, as far as the calls said.
func work(w *world, s *solver, steps int, accepted *int64) {
	service, err := publish.NewService(w.ctx, w.c, serviceConfig(w), w.options()...)
	if w.say("NewService", err) != nil {
		return
	}
	defer service.Close()
	loaded, err := service.Restore(w.ctx, s.objects())
	if w.say("Restore", err) != nil {
		return
	}
	if loaded != nil {
		*accepted = loaded.Metadata.AcceptedIncrement
		if err := s.check(*accepted); err != nil {
			w.say("the restored state", err)
		}
	}
	for range steps {
		if err := s.advance(s.increment + 1); w.say("solver", err) != nil {
			return
		}
		out, err := service.MaybeSave(w.ctx, s.objects())
		if w.say(fmt.Sprint("MaybeSave ", s.increment), err) == nil && out.Saved {
			*accepted = s.increment
		}
	}
}

func serviceBefore(w *world) error {
	s, err := newSolver(w, 0)
	if err != nil {
		return err
	}
	var accepted int64
	if work(w, s, 2, &accepted); accepted != 2 || w.failures > 0 {
		return fmt.Errorf("the service saved increment %d: %q", accepted, w.said)
	}
	return nil
}

func service(w *world) func() error {
	accepted := int64(2)
	s, err := newSolver(w, 0)
	if w.say("solver", err) == nil {
		work(w, s, 3, &accepted)
	}
	return func() error {
		if w.failures > 1 {
			return kind(errWrong, errors.New("a call failed without a fault"))
		}
		if err := w.c.Agree(w.ctx, w.on0(func() error { return bundlesAreGood(w, accepted) })); err != nil {
			return err
		}
		return goesOn(w, accepted)
	}
}

// bundlesAreGood reports whether all bundles verify, that of an increment among them.
func bundlesAreGood(w *world, increment int64) error {
	dir := filepath.Join(w.real, "states")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return kind(errLost, err)
	}
	if increment > 0 && !there(filepath.Join(dir, publish.StepName(increment))) {
		return kind(errLost, fmt.Errorf("step %d isn't there: %v", increment, entries))
	}
	for _, e := range entries {
		if n, ok := publish.ParseStepName(e.Name()); ok {
			if err := checkBundle(w, filepath.Join(dir, e.Name()), n); err != nil {
				return kind(errLost, err)
			}
		}
	}
	return nil
}

// goesOn reports whether the next job restarts from the accepted state, or a later one,
// and saves.
func goesOn(w *world, accepted int64) error {
	w.said, w.failures = nil, 0
	s, err := newSolver(w, 0)
	if err != nil {
		return err
	}
	var now int64
	work(w, s, 0, &now)
	if w.failures > 0 || now < accepted {
		return kind(errLost, fmt.Errorf("without a fault the next job restarts from increment %d, not %d: %q", now, accepted, w.said))
	}
	work(w, s, 1, &now)
	if w.failures > 0 || now != s.increment {
		return kind(errWrong, fmt.Errorf("without a fault the next job has saved increment %d: %q", now, w.said))
	}
	return w.on0(func() error { return bundlesAreGood(w, now) })
}

// ---- Session ----

var endOfRun = 5

func sessionConfig(w *world, s *solver, steps int64) runfile.Config {
	cfg := runfile.Config{
		Directory: filepath.Join(w.dir, "run"), Name: "run", Resume: true, Wait: -time.Second,
		Initial:    []float64{0},
		Layout:     runfile.Layout{Unknowns: []runfile.Unknown{{Name: "E", Kind: runfile.Scalar}}},
		Fields:     s.named(),
		Checkpoint: runfile.CheckpointConfig{Steps: 1},
		Stop:       runfile.StopConfig{Steps: steps},
	}
	for n := range endOfRun + 1 {
		cfg.TimePoints = append(cfg.TimePoints, float64(n))
	}
	for _, id := range ids {
		cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, runfile.Unknown{Name: id, Kind: runfile.Field, Domain: domain})
	}
	return cfg
}

// steps is a job of a run. accepted is the time of the last checkpoint that was written,
// as far as the calls said.
func steps(w *world, s *solver, cfg runfile.Config, accepted *int64) (done bool) {
	session, err := runfile.Open(w.ctx, w.c, cfg)
	if w.say("Open", err) != nil {
		return false
	}
	defer func() {
		if w.say("Close", session.Close(w.ctx)) != nil {
			done = false
		}
	}()
	at := int64(session.Start().Time)
	state := slices.Clone(session.Start().State)
	if session.Start().Resumed {
		*accepted = at
		if err := s.check(at); err != nil || state[0] != float64(at) {
			w.say("the resumed state", fmt.Errorf("%v at %d: %w", state, at, err))
			return false
		}
	}
	if w.say("solver", s.advance(at)) != nil || w.say("SaveState", session.SaveState(w.ctx, state)) != nil {
		return false
	}
	for !session.Done() {
		state[0] = session.NextTime()
		if w.say("solver", s.advance(int64(state[0]))) != nil {
			return false
		}
		session.Attempt(runfile.Attempt{Time: state[0], StepLength: 1, Accepted: true})
		if w.say("SaveState", session.SaveState(w.ctx, state)) != nil {
			return false
		}
		out, err := session.Checkpoint(w.ctx, state, nil)
		if w.say(fmt.Sprint("Checkpoint ", state[0]), err) != nil {
			return false
		}
		if out.Written {
			*accepted = int64(state[0])
		}
		if out.Stop {
			return false
		}
	}
	return true
}

func sessionBefore(w *world) error { return firstJob(w, plain) }

// plain is a job of a run whose files hold the fields.
func plain(w *world, limit int64, accepted *int64) bool {
	s, err := newSolver(w, 0)
	return w.say("solver", err) == nil && steps(w, s, sessionConfig(w, s, limit), accepted)
}

// firstJob makes the first two steps of a run.
func firstJob(w *world, job func(w *world, limit int64, accepted *int64) bool) error {
	var accepted int64
	if job(w, 2, &accepted); accepted != 2 || w.failures > 0 {
		return fmt.Errorf("the session wrote the checkpoint of %d s: %q", accepted, w.said)
	}
	return nil
}

func session(w *world) func() error { return secondJob(w, plain) }

// secondJob goes on to the end of the run, with a fault; so does the look, without one.
func secondJob(w *world, job func(w *world, limit int64, accepted *int64) bool) func() error {
	accepted := int64(2)
	job(w, 0, &accepted)
	return func() error {
		if err := w.c.Agree(w.ctx, w.on0(func() error { return runIsGood(w, accepted) })); err != nil {
			return err
		}
		w.said, w.failures = nil, 0
		if done := job(w, 0, &accepted); !done || w.failures > 0 {
			return kind(errWrong, fmt.Errorf("without a fault the next job doesn't end the run: %q", w.said))
		}
		return w.on0(func() error { return runIsGood(w, int64(endOfRun)) })
	}
}

// runIsGood reports whether a checkpoint of a time, or a later one, can be read, and
// whether the segments have the states up to it.
func runIsGood(w *world, time int64) error {
	dir := filepath.Join(w.real, "run")
	k, err := runfile.ReadCheckpoint(w.ctx, dir, "run")
	if err != nil {
		return kind(errLost, err)
	}
	if k == nil || int64(k.Time) < time {
		return kind(errLost, fmt.Errorf("the checkpoint is %+v, want that of %d s", k, time))
	}
	cells := make([]float64, domain.Size[0]*domain.Size[1]*domain.Size[2])
	for _, id := range ids {
		if k.Bundles != nil {
			break
		}
		if err := k.ReadField(w.ctx, id, domain.Box(), cells); err != nil {
			return kind(errLost, err)
		}
		if err := checkCells(id, int64(k.Time), cells); err != nil {
			return kind(errWrong, err)
		}
	}
	out, err := runfile.ReadRun(w.ctx, dir, "run")
	if err != nil {
		return kind(errLost, err)
	}
	if len(out.Times) <= int(k.Time) {
		return kind(errLost, fmt.Errorf("saved are %v, the checkpoint is of %v s", out.Times, k.Time))
	}
	for i, at := range out.Times {
		if at != float64(i) || out.States[i][0] != at {
			return kind(errWrong, fmt.Errorf("saved are %v, with the states %v", out.Times, out.States))
		}
		for _, id := range ids {
			if err := out.ReadField(w.ctx, id, i, domain.Box(), cells); err != nil {
				return kind(errLost, err)
			}
			if err := checkCells(id, int64(at), cells); err != nil {
				return kind(errWrong, fmt.Errorf("state of %v s: %w", at, err))
			}
		}
	}
	return nil
}

// ---- Session with bundles ----

func bundlesBefore(w *world) error { return firstJob(w, bundled) }

func sessionWithBundles(w *world) func() error { return secondJob(w, bundled) }

// bundled is a job of a run whose checkpoints name bundles.
func bundled(w *world, limit int64, accepted *int64) bool {
	s, err := newSolver(w, 0)
	if w.say("solver", err) != nil {
		return false
	}
	cfg := publish.Config{Checkpoint: publish.CheckpointConfig{
		Every: 1, Directory: filepath.Join(w.dir, "run", "bundles"), Keep: 4, WaitSeconds: -1, Superseded: publish.SetAside,
	}}
	var service *publish.Service
	restore := func(ctx context.Context, path string) error {
		cfg.RestartFrom = path
		if service != nil {
			service.Close()
		}
		var err error
		if service, err = publish.NewService(ctx, w.c, cfg, w.options()...); err == nil && path != "" {
			_, err = service.Restore(ctx, s.objects())
		}
		return err
	}
	defer func() {
		if service != nil {
			service.Close()
		}
	}()
	run := sessionConfig(w, s, limit)
	run.Layout.Unknowns = slices.Clone(run.Layout.Unknowns)
	run.Bundle = func(ctx context.Context) (string, error) {
		if service == nil {
			if err := restore(ctx, ""); err != nil {
				return "", err
			}
		}
		path, err := service.Save(ctx, s.objects())
		return strings.TrimPrefix(path, filepath.Join(w.dir, "run")+"/"), err
	}
	run.LoadBundle = func(ctx context.Context, start runfile.Start) error {
		return restore(ctx, filepath.Join(w.dir, "run", start.Bundles[ids[0]]))
	}
	return steps(w, s, run, accepted)
}
