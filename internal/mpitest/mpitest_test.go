package mpitest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func init() {
	mpitest.Register("meet for ever", func(c *comm.Comm, args []string) error {
		fmt.Println("arguments:", args)
		for {
			if err := c.Meet(context.Background()); err != nil {
				return err
			}
			fmt.Println("met")
			time.Sleep(20 * time.Millisecond)
		}
	})
	mpitest.Register("fail on rank 1", func(c *comm.Comm, args []string) error {
		if c.Rank() == 1 {
			return errors.New("no more paper")
		}
		return c.Meet(context.Background())
	})
}

func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }

// A test that goes wrong on one rank must fail here, and say why. The test
// executes itself with the fault that it is to provoke.
func TestWhatGoesWrongIsSeen(t *testing.T) {
	const variable, limitVariable = "MPITEST_PROVOKE", "MPITEST_LIMIT"
	ctx := context.Background()
	faults := []struct {
		name  string
		fault func(t *mpitest.T, c *comm.Comm) // on rank 1 of 2; rank 0 meets
		want  []string                         // in the output; none if all is well
		mpi   bool                             // only where ranks are processes
	}{
		{
			"nothing",
			func(t *mpitest.T, c *comm.Comm) { c.Meet(ctx) },
			nil, false,
		},
		{
			"an error",
			func(t *mpitest.T, c *comm.Comm) { t.Errorf("paper: %d", 0); c.Meet(ctx) },
			[]string{"rank 1: paper: 0"}, false,
		},
		{
			"a fatal error",
			func(t *mpitest.T, c *comm.Comm) { t.Fatal("no", "paper") },
			[]string{"rank 1: no paper"}, false,
		},
		{
			"a panic",
			func(t *mpitest.T, c *comm.Comm) { panic("ouch") },
			[]string{"ouch", "mpitest_test.go"}, false,
		},
		{
			"an exit with a status",
			func(t *mpitest.T, c *comm.Comm) { os.Exit(3) },
			[]string{"rank 1 did not run the test to its end"}, true,
		},
		{
			"an exit that looks like success",
			func(t *mpitest.T, c *comm.Comm) { c.Meet(ctx); os.Exit(0) },
			[]string{"rank 1 did not run the test to its end"}, true,
		},
		{
			"a skip",
			func(t *mpitest.T, c *comm.Comm) { c.Meet(ctx); t.Skip("on one rank") },
			[]string{"rank 1 did not run the test to its end"}, true,
		},
		{
			"a hang",
			func(t *mpitest.T, c *comm.Comm) { hangOnPurpose() },
			[]string{"no end after ", "rank 1: goroutines at the limit", "hangOnPurpose", "comm.(*Comm).Meet"}, true,
		},
	}
	if provoke := os.Getenv(variable); provoke != "" {
		limit, err := time.ParseDuration(os.Getenv(limitVariable))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			if f.name != provoke {
				continue
			}
			mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
				if c.Rank() == 1 {
					f.fault(t, c)
				} else if err := c.Meet(ctx); err != nil {
					t.Log("meet:", err)
				}
			}, mpitest.Limit(limit), mpitest.Watch(time.Hour))
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if f.mpi && !mpi.Enabled {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			// A hang waits for the limit, before which a busy machine may not even have
			// started the ranks: then it gets another one.
			limits := []time.Duration{5 * time.Minute}
			if f.name == "a hang" {
				limits = []time.Duration{2 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}
			}
			var lacks []string
			for _, limit := range limits {
				cmd := exec.Command(self, "-test.run=^TestWhatGoesWrongIsSeen$")
				cmd.Env = append(os.Environ(), variable+"="+f.name, limitVariable+"="+limit.String())
				output, err := cmd.CombinedOutput()
				if failed := err != nil; failed != (f.want != nil) {
					t.Errorf("the test failed: %v\n%s", failed, output)
				}
				lacks = nil
				for _, text := range f.want {
					if !strings.Contains(string(output), text) {
						lacks = append(lacks, text)
					}
				}
				if lacks == nil {
					break
				}
				t.Logf("with a limit of %v the output lacks %q:\n%s", limit, lacks, output)
			}
			if lacks != nil {
				t.Errorf("the output lacks %q", lacks)
			}
		})
	}
}

func hangOnPurpose() { select {} }

// Every call of Run in a test has its own ranks and directory.
func TestSeveralRunsInOneTest(t *testing.T) {
	for i := range 2 {
		name := fmt.Sprintf("file of run %d", i)
		mpitest.Run(t, []int{1, 2}, func(t *mpitest.T, c *comm.Comm) {
			path := filepath.Join(t.TempDir(), name)
			var err error
			if c.Rank() == 0 {
				err = os.WriteFile(path, nil, 0o600)
			}
			if err := c.Agree(t.Context(), err); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(t.TempDir())
			if err != nil || len(entries) != 1 || entries[0].Name() != name {
				t.Errorf("shared directory holds %v, %v", entries, err)
			}
		})
	}
}

func TestProgramRunsOnAllRanks(t *testing.T) {
	output, exit := mpitest.Command(t, 3, "fail on rank 1")
	if exit == 0 || !strings.Contains(output, "no more paper") {
		t.Errorf("exit status %d, output:\n%s", exit, output)
	}
}

// After a kill nothing of the job is left, neither processes nor shared memory.
func TestKill(t *testing.T) {
	for _, tc := range []struct {
		name string
		kill func(j *mpitest.Job)
	}{
		{"one rank", func(j *mpitest.Job) { j.Kill(1) }},
		{"all ranks", (*mpitest.Job).KillAll},
		{"one rank by another signal", func(j *mpitest.Job) { j.Signal(2, syscall.SIGTERM) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var dir string
			t.Run("job", func(t *testing.T) {
				j := mpitest.Start(t, 3, "meet for ever", []string{"a", "b c"})
				dir = j.Dir()
				j.WaitFor("arguments: [a b c]", 3)
				j.WaitFor("met", 10)
				if strings.HasPrefix(mpi.Implementation(), "openmpi") {
					if segments, err := filepath.Glob(filepath.Join(dir, "vader_segment*")); err != nil || len(segments) != 3 {
						t.Errorf("shared memory of the library: %v, %v", segments, err)
					}
				}
				tc.kill(j)
				if output, exit := j.Wait(); exit == 0 {
					t.Errorf("exit status 0, output:\n%s", output)
				}
				// What the launcher started beside the ranks ends after it.
				var left []string
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
					if left = processesWith(t, dir); left == nil || time.Now().After(deadline) {
						break
					}
				}
				if left != nil {
					t.Errorf("processes of the job: %q", left)
				}
			})
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("directory of the job: %v", err)
			}
		})
	}
}

// processesWith lists the processes with a directory in their environment.
func processesWith(t *testing.T, dir string) (list []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range environments {
		if env, err := os.ReadFile(name); err == nil && strings.Contains(string(env), dir+"\x00") {
			list = append(list, name)
		}
	}
	return list
}

func TestARankWithADirectoryOfItsOwn(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		dir := filepath.Join(t.TempDir(), "own")
		err := os.MkdirAll(dir, 0o777)
		if err == nil && c.Rank() == 0 {
			err = os.WriteFile(filepath.Join(dir, "file"), nil, 0o666)
		}
		if err := c.Agree(t.Context(), err); err != nil {
			t.Fatal(err)
		}
		there, err := os.ReadDir(dir)
		if err != nil || (len(there) == 0) != t.IsApart() || t.IsApart() && c.Rank() != 1 {
			t.Errorf("apart: %t, with %v, %v", t.IsApart(), there, err)
		}
		if c.Rank() == 1 && !t.IsApart() {
			t.Log("no directory of its own here")
		}
	}, mpitest.Apart(1, "own"))
}
