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
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func init() {
	mpitest.Register("publish against another job", publishAgainstAnother)
	mpitest.Register("wait for a rank that does not come", waitForAbsentee)
}

// await waits until a file is there.
func await(path string) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		switch _, err := os.Stat(path); {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrNotExist):
			return err
		case time.Now().After(end):
			return fmt.Errorf("%s does not come", path)
		}
	}
}

// publishAgainstAnother publishes to a number of paths, to each at the moment at
// which the other job does. The arguments are the directory, the name of the job,
// that of the other one, and the number of paths.
func publishAgainstAnother(c *comm.Comm, args []string) error {
	ctx := context.Background()
	dir, self, other := args[0], args[1], args[2]
	rounds, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	box, err := cuts[1].box(testDomain, c)
	if err != nil {
		return err
	}
	for round := range rounds {
		p, err := newPart(testDomain, box, [3]int{1, 1, 1}, killedSpaces...)
		if err != nil {
			return err
		}
		increment := raceIncrement(self, round)
		if err := p.set(increment); err != nil {
			return err
		}
		if c.Rank() == 0 {
			sign := func(job string) string { return filepath.Join(dir, fmt.Sprintf("%s-is-at-%d", job, round)) }
			if err = os.WriteFile(sign(self), nil, 0o666); err == nil {
				err = await(sign(other))
			}
		}
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		err = SaveBundle(ctx, c, filepath.Join(dir, "bundles", StepName(round)), p.state(increment))
		outcome := fmt.Sprint(err)
		switch {
		case err == nil:
			outcome = "won"
		case errors.Is(err, ErrExists), errors.Is(err, ErrBeingPublished):
			outcome = "lost"
		}
		fmt.Printf("job %s, path %d: %s\n", self, round, outcome)
		if err := p.close(); err != nil {
			return err
		}
	}
	return nil
}

// raceIncrement tells the jobs' states apart.
func raceIncrement(job string, round int64) int64 { return int64(job[0])*1000 + round }

// TestOfTwoJobsOnOnePathOneWins lets two launches publish to the same paths at the
// same time.
func TestOfTwoJobsOnOnePathOneWins(t *testing.T) {
	const ranks, rounds = 2, 25
	components := mpitest.Components()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bundles"), 0o777); err != nil {
		t.Fatal(err)
	}
	jobs := map[string]*mpitest.Job{}
	for i, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		args := []string{dir, names[0], names[1], strconv.Itoa(rounds)}
		jobs[names[0]] = mpitest.Start(t, ranks, "publish against another job", args, components[i%len(components)].Options...)
	}
	outputs := map[string]string{}
	for name, job := range jobs {
		output, exit := job.Wait()
		if exit != 0 {
			t.Fatalf("job %s ended with status %d:\n%s", name, exit, output)
		}
		outputs[name] = output
	}
	wins := map[string]int{}
	for round := range int64(rounds) {
		var winner string
		for name, output := range outputs {
			won := strings.Count(output, fmt.Sprintf("job %s, path %d: won\n", name, round))
			lost := strings.Count(output, fmt.Sprintf("job %s, path %d: lost\n", name, round))
			if won+lost != ranks || won*lost != 0 {
				t.Fatalf("path %d: the ranks of job %s do not agree:\n%s", round, name, output)
			}
			if won > 0 {
				winner += name
			}
		}
		if len(winner) != 1 {
			t.Errorf("path %d: the winners are %q", round, winner)
			continue
		}
		wins[winner]++
		path := filepath.Join(dir, "bundles", StepName(round))
		if err := checkBundle(vfs.OS, path, testDomain, raceIncrement(winner, round), killedSpaces...); err != nil {
			t.Errorf("the bundle of job %s: %v", winner, err)
		}
	}
	t.Logf("paths won: %v", wins)
	if err := onlyBundles(filepath.Join(dir, "bundles")); err != nil {
		t.Error(err)
	}
}

// waitForAbsentee publishes, but for one rank, which sleeps instead, before the
// call or in its callback. The arguments are the directory, where, and the rank.
func waitForAbsentee(c *comm.Comm, args []string) error {
	ctx := context.Background()
	dir, where := args[0], args[1]
	absentee, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	absent := c.Rank() == absentee
	sign := func(word string) error {
		return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d", word, c.Rank())), nil, 0o666)
	}
	if err := c.Meet(ctx); err != nil {
		return err
	}
	if err := sign("started"); err != nil {
		return err
	}
	hang := func() {
		if err := sign("absent"); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour) // the job is ended long before
	}
	box, err := cuts[1].box(testDomain, c)
	if err != nil {
		return err
	}
	p, err := newPart(testDomain, box, [3]int{}, killedSpaces...)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "ckpt", StepName(2))
	switch where {
	case "before":
		if absent {
			hang()
		}
		err = SaveBundle(ctx, c, path, p.state(2))
	case "step":
		err = SaveBundle(ctx, c, path, p.state(2), OnStep(func(step Step, _ string) {
			if absent && step == StepWritten {
				hang()
			}
		}))
	case "callback":
		err = Directory(ctx, c, path, Metadata{Domain: testDomain, Fields: []string{"a"}}, func(context.Context, string) error {
			if absent {
				hang()
			}
			return nil
		})
	case "load":
		_, err = LoadBundle(ctx, c, filepath.Join(dir, "ckpt", StepName(1)), Request{Fields: p.named(), Accept: func(Metadata) error {
			if absent {
				hang()
			}
			return nil
		}})
		err = errors.Join(err, p.untouched())
	}
	// The others tell each other by files: there is no other way any more.
	outcome := "dead"
	if !errors.Is(err, comm.ErrDead) || c.Meet(ctx) == nil {
		outcome = fmt.Sprintf("alive (%v)", err)
	}
	said := func(rank int) string { return filepath.Join(dir, fmt.Sprintf("rank-%d", rank)) }
	temporary := said(c.Rank()) + ".new"
	if err := errors.Join(os.WriteFile(temporary, []byte(outcome), 0o666), os.Rename(temporary, said(c.Rank()))); err != nil {
		return err
	}
	for rank := range c.Size() {
		if rank != absentee {
			if err := await(said(rank)); err != nil {
				return err
			}
		}
	}
	c.Abort(3)
	return nil
}

// TestARankThatDoesNotComeIsAnErrorOnTheOthers lets one rank sleep for longer than
// the others wait: they get an error instead of a hang, from this call and every
// later one, and can end the job. What is left loads, and the next job clears it.
func TestARankThatDoesNotComeIsAnErrorOnTheOthers(t *testing.T) {
	components := mpitest.Components()
	for i, tc := range []struct {
		where    string
		absentee int
	}{
		{"before", 1}, {"before", 0}, {"callback", 1}, {"callback", 0}, {"step", 2}, {"load", 1},
	} {
		t.Run(fmt.Sprintf("rank %d in %s", tc.absentee, tc.where), func(t *testing.T) {
			t.Parallel() // most of the time the ranks wait
			const ranks = 3
			there := func(dir, word string, rank int) bool {
				_, err := os.Stat(filepath.Join(dir, fmt.Sprintf("%s-%d", word, rank)))
				return err == nil
			}
			var dir, output string
			var exit int
			// On a busy machine ranks may be late that are to come: then they all try again,
			// with more patience.
			for _, watch := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
				dir = t.TempDir()
				opts := slices.Clone(components[i%len(components)].Options)
				if tc.where == "step" { // where it counts as at work, and would be waited for
					opts = append(opts, mpitest.WorkLimit(watch))
				}
				if err := saveOn(filepath.Join(dir, "ckpt"), 1); err != nil {
					t.Fatal(err)
				}
				j := mpitest.Start(t, ranks, "wait for a rank that does not come", []string{dir, tc.where, strconv.Itoa(tc.absentee)},
					append(opts, mpitest.Watch(watch))...)
				output, exit = j.Wait()
				asked := there(dir, "absent", tc.absentee)
				for rank := range ranks {
					asked = asked && there(dir, "started", rank)
				}
				if asked {
					break
				}
				t.Logf("with a watch of %v the ranks were not as they were to be:\n%s", watch, output)
			}
			ckpt := filepath.Join(dir, "ckpt")
			if !there(dir, "absent", tc.absentee) {
				t.Errorf("rank %d is not absent", tc.absentee)
			}
			if exit != 3 {
				t.Errorf("status %d:\n%s", exit, output)
			}
			for rank := range ranks {
				said, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%d", rank)))
				if rank == tc.absentee && !errors.Is(err, os.ErrNotExist) || rank != tc.absentee && string(said) != "dead" {
					t.Errorf("rank %d said %q, %v\n%s", rank, said, err, output)
				}
			}
			checkNewest(t, ckpt, 1)
			err := comm.Run(2, func(c *comm.Comm) error {
				r, err := start(c, CheckpointConfig{Every: 1, Directory: ckpt})
				if err != nil {
					return err
				}
				if err := r.advance(); err != nil {
					return err
				}
				_, err = r.service.MaybeSave(context.Background(), r.solver())
				return err
			})
			if err != nil {
				t.Errorf("the next job: %v", err)
			}
			checkNewest(t, ckpt, 2)
			if err := onlyBundles(ckpt); err != nil {
				t.Error(err)
			}
		})
	}
}

// saveOn publishes the state of an increment in a new checkpoint directory.
func saveOn(dir string, increment int64) error {
	p, err := newPart(testDomain, testDomain.Box(), [3]int{}, killedSpaces...)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(dir, 0o777), p.set(increment)); err != nil {
		return err
	}
	return SaveBundle(context.Background(), comm.Self(), filepath.Join(dir, StepName(increment)), p.state(increment))
}
