package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func init() {
	mpitest.Register("publish until killed", publishUntilKilled)
	mpitest.Register("publish until signalled", publishUntilSignalled)
}

// runner is a rank of a small solver with the checkpoint service.
type runner struct {
	*part
	c       *comm.Comm
	service *Service
	clock   testClock
	results int64
	n       int64 // accepted increment
}

func (r *runner) solver() Solver {
	return Solver{Fields: r.named(), Clock: &r.clock, Results: &r.results, Method: "euler"}
}

// start restores a solver from the newest bundle and checks it.
func start(c *comm.Comm, checkpoint CheckpointConfig, opts ...Option) (*runner, error) {
	ctx := context.Background()
	box, err := cuts[c.Size()%len(cuts)].box(testDomain, c)
	if err != nil {
		return nil, err
	}
	r := &runner{c: c}
	if r.part, err = newPart(testDomain, box, [3]int{2, 1, 0}, killedSpaces...); err != nil {
		return nil, err
	}
	if r.service, err = NewService(ctx, c, Config{RestartFrom: Latest, Checkpoint: checkpoint}, opts...); err != nil {
		return nil, err
	}
	if c.Rank() == 0 {
		if err := onlyBundles(checkpoint.Directory); err != nil {
			return nil, fmt.Errorf("the service started, but %w", err)
		}
	}
	loaded, err := r.service.Restore(ctx, r.solver())
	if err != nil {
		return nil, err
	}
	if loaded != nil {
		r.n = loaded.Metadata.AcceptedIncrement
		err = r.check(r.n)
	} else {
		err = r.untouched()
	}
	if err == nil && (r.clock.increment != r.n || r.clock.time != testTime(r.n) || r.results != 2*r.n) {
		err = fmt.Errorf("clock %+v, results %d", r.clock, r.results)
	}
	if err != nil {
		return nil, fmt.Errorf("restored: %w", err)
	}
	fmt.Printf("restored %d\n", r.n)
	return r, nil
}

var killedSpaces = []space{host64, host32}

// advance accepts a step.
func (r *runner) advance() error {
	r.n++
	r.clock, r.results = testClock{r.n, testTime(r.n)}, 2*r.n
	return r.set(r.n)
}

// onlyBundles reports what else is in a directory, beside the lock of its service.
func onlyBundles(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, ok := ParseStepName(e.Name()); !ok && e.Name() != directoryLock {
			err = errors.Join(err, fmt.Errorf("%s has %s", dir, e.Name()))
		}
	}
	return err
}

// publishUntilKilled restarts, saves a step, and is killed while it saves the
// next one: the arguments are the directory, the step of the publication, and who
// dies there: a rank, or all, which the test does.
func publishUntilKilled(c *comm.Comm, args []string) error {
	dir, at, victim := args[0], Step(args[1]), args[2]
	pids, err := c.AllGather(context.Background(), []byte(strconv.Itoa(os.Getpid())))
	if err != nil {
		return err
	}
	armed := false
	r, err := start(c, CheckpointConfig{Every: 1, Directory: dir, Keep: 3}, OnStep(func(step Step, detail string) {
		// The second field: then the first one is written already.
		if !armed || step != at || step == StepField && detail != "b" {
			return
		}
		shared := step == StepStaged || step == StepField || step == StepWritten
		switch rank, err := strconv.Atoi(victim); {
		case err != nil && c.Rank() == 0:
			fmt.Println("waiting for the end")
			select {}
		case err != nil || shared && rank != c.Rank():
		default: // the others go on
			pid, _ := strconv.Atoi(string(pids[rank]))
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
	}))
	if err != nil {
		return err
	}
	defer r.service.Close()
	for range 2 {
		if err := r.advance(); err != nil {
			return err
		}
		if _, err := r.service.MaybeSave(context.Background(), r.solver()); err != nil {
			return err
		}
		fmt.Printf("saved %d\n", r.n)
		armed = true
	}
	return nil
}

// TestAKilledJobLeavesNoPartialBundleAndTheNextGoesOn kills one rank, the first
// or the second, or all of them with the launcher, at each step of a publication.
// Afterwards the final path is absent, or a bundle that verifies, as are all
// others, and the next launch clears away what is left, restarts from the newest
// bundle and goes on: it is the one that is killed next.
func TestAKilledJobLeavesNoPartialBundleAndTheNextGoesOn(t *testing.T) {
	steps := []Step{StepLocked, StepStaged, StepField, StepWritten, StepMetadata, StepChecksums, StepSynced, StepRenamed, StepPublished}
	victims := []string{"0", "1", "all"}
	if !mpi.Enabled {
		victims = victims[:1] // a rank is not a process
	}
	components := mpitest.Components()
	dir := filepath.Join(t.TempDir(), "ckpt")
	newest, launches := int64(0), 0
	launch := func(step Step, victim string) (output string, exit int) {
		ranks := 2 + launches%4/3 // sometimes 3
		component := components[launches%len(components)]
		launches++
		t.Logf("kill %s at %q, %d ranks, %s, from increment %d", victim, step, ranks, component.Name, newest)
		j := mpitest.Start(t, ranks, "publish until killed", []string{dir, string(step), victim}, component.Options...)
		if victim == "all" {
			j.WaitFor("waiting for the end", 1)
			j.KillAll()
		}
		output, exit = j.Wait()
		// Saving is collective, so one rank's word is enough: what the others had
		// to say may have died with the launcher.
		for _, text := range []string{fmt.Sprintf("restored %d\n", newest), fmt.Sprintf("saved %d\n", newest+1)} {
			if !strings.Contains(output, text) {
				t.Fatalf("no rank said %q:\n%s", text, output)
			}
		}
		return output, exit
	}
	for _, step := range steps {
		for _, victim := range victims {
			output, exit := launch(step, victim)
			published := step == StepRenamed || step == StepPublished
			// From the metadata on the others have done their share, and only wait for
			// what rank 0 says: it may go on without them.
			waits := victim == "1" && slices.Index(steps, step) >= slices.Index(steps, StepMetadata)
			if exit == 0 || !waits && strings.Contains(output, fmt.Sprintf("saved %d\n", newest+2)) {
				t.Fatalf("nobody was killed (status %d):\n%s", exit, output)
			}
			newest++
			last := filepath.Join(dir, StepName(newest+1))
			exists, err := vfs.Exists(vfs.OS, last)
			if err != nil {
				t.Fatal(err)
			}
			if exists != published && (published || !waits) {
				t.Errorf("killed when %s: %s exists: %t, want %t\n%s", step, last, exists, published, output)
			}
			if exists {
				newest++
			}
			checkNewest(t, dir, newest)
		}
	}
	if _, exit := launch("", ""); exit != 0 {
		t.Errorf("the last launch ended with status %d", exit)
	}
	newest += 2
	checkNewest(t, dir, newest)
	if err := wantEntries(dir, StepName(newest-2), StepName(newest-1), StepName(newest)); err != nil {
		t.Error(err)
	}
}

// checkNewest verifies all bundles in a directory, of which the given one must be
// the newest.
func checkNewest(t *testing.T, dir string, newest int64) {
	t.Helper()
	o, err := newOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := checkpoints{o: &o, dir: dir}.steps()
	if err != nil || len(steps) == 0 || steps[0] != newest {
		t.Fatalf("%s has the bundles %v (%v): want %d as the newest", dir, steps, err, newest)
	}
	for _, n := range steps {
		if err := checkBundle(vfs.OS, filepath.Join(dir, StepName(n)), testDomain, n, killedSpaces...); err != nil {
			t.Error(err)
		}
	}
}

// publishUntilSignalled takes steps until the service tells it to stop.
func publishUntilSignalled(c *comm.Comm, args []string) error {
	r, err := start(c, CheckpointConfig{Directory: args[0], OnSignal: []string{"SIGTERM", "SIGUSR1"}})
	if err != nil {
		return err
	}
	defer r.service.Close()
	for {
		if err := r.advance(); err != nil {
			return err
		}
		outcome, err := r.service.MaybeSave(context.Background(), r.solver())
		if err != nil {
			return err
		}
		if outcome.Saved != outcome.Stop {
			return fmt.Errorf("saved and stopped differ: %+v", outcome)
		}
		if outcome.Stop {
			fmt.Printf("stopped by %s after %d\n", outcome.Reason, r.n)
			return nil
		}
		if r.n%50 == 0 {
			fmt.Println("stepping")
		}
	}
}

// TestASignalToOneRankSavesOnAllAndStops sends a signal to one rank of a running
// job; the next launch restarts from what it saved.
func TestASignalToOneRankSavesOnAllAndStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ckpt")
	newest := int64(0)
	components := mpitest.Components()
	for i, tc := range []struct {
		ranks, rank int
		name        string
	}{
		{2, 1, "SIGUSR1"},
		{3, 0, "SIGTERM"},
		{3, 2, "SIGTERM"},
	} {
		sig := signalNamed(t, tc.name).(syscall.Signal)
		j := mpitest.Start(t, tc.ranks, "publish until signalled", []string{dir}, components[i%len(components)].Options...)
		j.WaitFor("stepping", 2*tc.ranks)
		j.Signal(tc.rank, sig)
		output, exit := j.Wait()
		if exit != 0 || strings.Count(output, fmt.Sprintf("restored %d\n", newest)) != tc.ranks {
			t.Fatalf("status %d, not restarted from %d:\n%s", exit, newest, output)
		}
		var stops []string
		for line := range strings.Lines(output) {
			if _, stop, ok := strings.Cut(strings.TrimSpace(line), "stopped by "); ok {
				stops = append(stops, stop)
			}
		}
		o, _ := newOptions(nil)
		steps, err := checkpoints{o: &o, dir: dir}.steps()
		if err != nil || len(steps) != i+1 || steps[0] <= newest {
			t.Fatalf("the bundles are %v, %v:\n%s", steps, err, output)
		}
		newest = steps[0]
		want := slices.Repeat([]string{fmt.Sprintf("signal %s after %d", tc.name, newest)}, tc.ranks)
		if !slices.Equal(stops, want) {
			t.Errorf("the ranks stopped by %q: want %q\n%s", stops, want, output)
		}
		checkNewest(t, dir, newest)
	}
}
