package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/pack"
)

// small is a case that takes no time.
func small(kind plan.Kind, ranks int, contestants ...string) plan.Case {
	return plan.Case{
		Name: string(kind), Kind: kind, Cells: [3]int{12, 10, 8}, Processes: [3]int{ranks, 1, 1}, Fields: 3, Halo: 2,
		Place: plan.Tmpfs, Contestants: contestants, Repeats: 3, Seconds: 60,
	}
}

func newJob(t *testing.T, cases ...plan.Case) plan.Job {
	return plan.Job{
		Launch:    plan.Launch{Ranks: cases[0].Ranks(), Cases: cases},
		Libraries: t.TempDir(), Tmpfs: t.TempDir(), Disk: t.TempDir(),
	}
}

// measured runs a job on ranks in this process and returns rank 0's lines.
func measured(t *testing.T, job plan.Job, more map[string]contestant) map[string]plan.Line {
	t.Helper()
	var out bytes.Buffer
	all := maps.Clone(contestants)
	maps.Copy(all, more)
	err := comm.Run(job.Launch.Ranks, func(c *comm.Comm) error {
		return measure(context.Background(), c, job, all, &out) // rank 0 alone writes
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]plan.Line)
	for d := json.NewDecoder(&out); ; {
		var l plan.Line
		if err := d.Decode(&l); err == io.EOF {
			return lines
		} else if err != nil {
			t.Fatal(err)
		}
		lines[l.Contestant] = l
	}
}

func TestFieldstoneIsMeasured(t *testing.T) {
	for _, ranks := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("ranks=%d", ranks), func(t *testing.T) {
			job := newJob(t,
				small(plan.Bundle, ranks),
				small(plan.Save, ranks, "fieldstone", "fieldstone-posix"),
				small(plan.Restart, ranks, "inplace", "all-or-nothing"),
			)
			lines := measured(t, job, nil)
			for _, name := range []string{"fieldstone", "fieldstone-posix", "inplace", "all-or-nothing"} {
				l := lines[name]
				if l.Error != "" || l.Missing != "" || len(l.Seconds) != 3 || l.Checked != 4 || l.Bytes != 3*8*12*10*8 {
					t.Errorf("%s: %+v", name, l)
				}
				for _, s := range l.Seconds {
					if s <= 0 {
						t.Errorf("%s took %v s", name, s)
					}
				}
			}
		})
	}
}

func TestKernelsAreMeasured(t *testing.T) {
	k := small(plan.Kernel, 1, "pack", "pack-stream", "chunks", "chunks-sum", "chunks-sum-file")
	k.Fields, k.Cells = 1, [3]int{70, 60, 50} // more than a chunk
	for name, l := range measured(t, newJob(t, k), nil) {
		if l.Error != "" || len(l.Seconds) != 3 || l.Checked != 4 {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestMemoryIsMeasured(t *testing.T) {
	l := measured(t, newJob(t, small(plan.Memory, 1, "fieldstone")), nil)["fieldstone"]
	if l.Missing == "" && (l.Bytes <= 0 || l.Limit <= 0) {
		t.Errorf("%+v", l)
	}
}

func TestAMissingLibraryKeepsItsContestantOut(t *testing.T) {
	lines := measured(t, newJob(t, small(plan.Save, 2, "floor", "fieldstone")), nil)
	if l := lines["floor"]; !strings.Contains(l.Missing, "posix") || l.Error != "" || len(l.Seconds) != 0 {
		t.Errorf("%+v", l)
	}
	if l := lines["fieldstone"]; len(l.Seconds) != 3 {
		t.Errorf("%+v", l)
	}
}

func TestAnUnknownContestantIsAnError(t *testing.T) {
	job := newJob(t, small(plan.Save, 1, "nobody"))
	err := comm.Run(1, func(c *comm.Comm) error { return measure(context.Background(), c, job, contestants, io.Discard) })
	if err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("got %v", err)
	}
}

func TestEverySuiteNamesKnownContestants(t *testing.T) {
	for _, e := range []plan.Effort{plan.Full, plan.Quick} {
		for _, l := range plan.NewSuite(e).Launches {
			for _, k := range l.Cases {
				for _, name := range k.Contestants {
					if l.Component != plan.H5py && l.Component != plan.RunFiles && contestants[name] == nil { // those have programs of their own
						t.Errorf("%q: nobody is called %s", k.Name, name)
					}
				}
			}
		}
	}
}

// planted writes right files and then does something to them.
func planted(spoil func(s *state) error) contestant {
	return func(w *worker, s *state) (turn, error) {
		paths := s.paths(s.dir, ".bin")
		return turn{
			run: func() error {
				for f, path := range paths {
					if s.c.Rank() == 0 {
						cells := make([]float64, s.domain.Cells())
						setValues(cells, f, 0)
						if err := os.WriteFile(path, pack.Bytes(cells), 0o666); err != nil {
							return err
						}
					}
				}
				if s.c.Rank() == 0 {
					return spoil(s)
				}
				return nil
			},
			check: func() error { return checkShares(s, paths, nil, false) },
		}, nil
	}
}

func TestWrongOutputIsFoundOut(t *testing.T) {
	last := int64(8*12*10*8 - 8)
	flip := func(at int64) func(*state) error {
		return func(s *state) error {
			f, err := os.OpenFile(s.path("f1.bin"), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			b := make([]byte, 1)
			if _, err := f.ReadAt(b, at); err != nil {
				return err
			}
			b[0] ^= 1
			_, err = f.WriteAt(b, at)
			return errors.Join(err, f.Close())
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(s *state) error
		want  string // in the error; empty: all is well
	}{
		{"right files pass", func(*state) error { return nil }, ""},
		{"the lowest bit of the first cell", flip(0), "field 1, cell 0 "},
		{"the highest bit of the last cell", flip(last + 7), "field 1, cell 959 "},
		{"a byte on another rank's share", flip(last / 8 / 2 * 8), "field 1, cell 479 "},
		{"two cells in exchange", func(s *state) error {
			data, err := os.ReadFile(s.path("f0.bin"))
			if err != nil {
				return err
			}
			a := slices.Clone(data[:8])
			copy(data, data[8:16])
			copy(data[8:], a)
			return os.WriteFile(s.path("f0.bin"), data, 0o666)
		}, "field 0, cell 0 "},
		{"one field in the place of another", func(s *state) error {
			return os.Rename(s.path("f0.bin"), s.path("f2.bin"))
		}, "f0.bin"},
		{"a file too short", func(s *state) error { return os.Truncate(s.path("f2.bin"), last) }, "7672 bytes, not 7680"},
		{"a file too long", func(s *state) error { return os.Truncate(s.path("f2.bin"), last+9) }, "7681 bytes, not 7680"},
	} {
		for _, ranks := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, ranks=%d", c.name, ranks), func(t *testing.T) {
				lines := measured(t, newJob(t, small(plan.Save, ranks, "planted", "fieldstone")),
					map[string]contestant{"planted": planted(c.spoil)})
				got := lines["planted"]
				if c.want == "" && (got.Error != "" || len(got.Seconds) != 3) {
					t.Errorf("%+v", got)
				}
				if c.want != "" && (!strings.Contains(got.Error, c.want) || got.Checked != 0) {
					t.Errorf("found %q, not %q", got.Error, c.want)
				}
				if l := lines["fieldstone"]; l.Error != "" || len(l.Seconds) != 3 {
					t.Errorf("another contestant suffers: %+v", l)
				}
			})
		}
	}
}

func TestAWrongLoadIsFoundOut(t *testing.T) {
	spoiled := func(spoil func(s *state)) contestant {
		return func(w *worker, s *state) (turn, error) {
			return turn{
				run: func() error {
					s.fill()
					spoil(s)
					return nil
				},
				check: func() error { return errors.Join(s.checkFields(), s.checkPacked()) },
			}, nil
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(s *state)
		want  string
	}{
		{"right fields pass", func(*state) {}, ""},
		{"nothing was read", func(s *state) { s.scramble() }, "cell 0 is NaN"},
		{"the first ghost cell was touched", func(s *state) { s.padded[2][0] = 1 }, "ghost cell at 0 "},
		{"the last ghost cell was touched", func(s *state) { s.padded[0][len(s.padded[0])-1] = 1 }, "ghost cell at"},
		{"a ghost cell between rows was touched", func(s *state) {
			p := s.paddedSize()
			s.padded[1][(2*p[1]+2)*p[0]+2+s.box.Size[0]] = 0
		}, "field 1: the ghost cell at"},
		{"an owned cell is another", func(s *state) {
			p := s.paddedSize()
			s.padded[1][(2*p[1]+2)*p[0]+2]++
		}, "field 1: cell 0 is"},
		{"a packed cell is another", func(s *state) { s.packed[2][5] = 0 }, "packed field 2: cell 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := measured(t, newJob(t, small(plan.Restart, 1, "planted")), map[string]contestant{"planted": spoiled(c.spoil)})
			if got := lines["planted"].Error; (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("found %q, not %q", got, c.want)
			}
		})
	}
}

func TestAPackThatDoesNothingIsFoundOut(t *testing.T) {
	lazy := func(w *worker, s *state) (turn, error) {
		tn, err := packOurs(w, s)
		tn.run = func() error { return nil }
		return tn, err
	}
	k := small(plan.Kernel, 1, "pack", "planted", "pack-stream")
	lines := measured(t, newJob(t, k), map[string]contestant{"planted": lazy})
	if l := lines["planted"]; !strings.Contains(l.Error, "cell 0 is NaN") {
		t.Errorf("%+v", l)
	}
	if l := lines["pack-stream"]; l.Error != "" {
		t.Errorf("%+v", l)
	}
}

func TestAFailingRankTakesItsContestantOut(t *testing.T) {
	fails := func(w *worker, s *state) (turn, error) {
		return turn{
			run: func() error {
				if s.c.Rank() == 1 {
					return errors.New("no paper")
				}
				return nil
			},
			check: func() error { return nil },
		}, nil
	}
	lines := measured(t, newJob(t, small(plan.Save, 2, "fails", "fieldstone")), map[string]contestant{"fails": fails})
	if l := lines["fails"]; !strings.Contains(l.Error, "rank 1: no paper") {
		t.Errorf("%+v", l)
	}
	if l := lines["fieldstone"]; l.Error != "" || len(l.Seconds) != 3 {
		t.Errorf("%+v", l)
	}
}

func TestTheTimeIsThatOfTheLastRank(t *testing.T) {
	slow := func(w *worker, s *state) (turn, error) {
		return turn{
			run: func() error {
				if s.c.Rank() == 1 {
					sleepUntil(now() + 20e6)
				}
				return nil
			},
			check: func() error { return nil },
		}, nil
	}
	lines := measured(t, newJob(t, small(plan.Save, 2, "slow")), map[string]contestant{"slow": slow})
	for _, s := range lines["slow"].Seconds {
		if s < 0.02 {
			t.Errorf("a rank that sleeps 20 ms takes %v s", s)
		}
	}
}

// The clock goes on by what a turn takes, and by nothing else.
func TestWhoIsSlowRests(t *testing.T) {
	clock := int64(0)
	lasting := func(time int64) contestant {
		return func(w *worker, s *state) (turn, error) {
			w.now, w.sleepUntil = func() int64 { return clock }, func(t int64) { clock = t }
			return turn{
				run:   func() error { clock += time; return nil },
				check: func() error { return nil },
			}, nil
		}
	}
	k := small(plan.Save, 1, "yardstick", "slow", "slower", "fast")
	k.Repeats, k.Seconds = 6, 3600
	lines := measured(t, newJob(t, k), map[string]contestant{
		"yardstick": lasting(1e6), "slow": lasting(slow * 1e6), "slower": lasting(slow*1e6 + 1e5), "fast": lasting(1),
	})
	for name, want := range map[string]int{"yardstick": 6, "slow": 6, "slower": enough, "fast": 6} {
		if got := len(lines[name].Seconds); got != want {
			t.Errorf("%s had %d repetitions, not %d", name, got, want)
		}
	}
}

func TestACaseEndsWhenItsTimeIsOver(t *testing.T) {
	k := small(plan.Save, 1, "fieldstone")
	k.Repeats, k.Seconds = 1000, 0
	if l := measured(t, newJob(t, k), nil)["fieldstone"]; len(l.Seconds) != 3 {
		t.Errorf("%d repetitions", len(l.Seconds))
	}
}

func TestFilesAreGoneAtTheEnd(t *testing.T) {
	job := newJob(t, small(plan.Save, 1, "fieldstone"))
	measured(t, job, nil)
	left, err := os.ReadDir(filepath.Join(job.Tmpfs, "files"))
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestProcValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(path, []byte("Name:\tx\nVmRSS:\t     123 kB\nVmX: 5\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if v, err := procValue(path, "VmRSS:"); v != 123<<10 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	for _, key := range []string{"VmX:", "VmHWM:"} {
		if v, err := procValue(path, key); err == nil {
			t.Errorf("%s is %d", key, v)
		}
	}
}

func TestTheProgramRefusesBadJobs(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "job.json")
	if err := os.WriteFile(bad, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, bad + ".not"} {
		if err := run(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
