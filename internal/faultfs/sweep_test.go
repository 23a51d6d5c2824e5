//go:build linux

package faultfs_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/faultfs"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }

func init() { mpitest.Register("sweep", sweep) }

const (
	// amountEnv is how much is swept; see [amounts]. Otherwise it is a sample.
	amountEnv = "FIELDSTONE_FAULTS"
	// tableEnv is a file to which the table is added.
	tableEnv = "FIELDSTONE_FAULTS_TABLE"
	// callEnv is a regular expression on the names of the calls that are swept, faultEnv one
	// on those of the faults: what a failure shows.
	callEnv  = "FIELDSTONE_FAULTS_CALL"
	faultEnv = "FIELDSTONE_FAULTS_FAULT"
	// jobsEnv is how many jobs of ranks share the faults of a library. One takes little more
	// than one processor.
	jobsEnv = "FIELDSTONE_FAULTS_JOBS"

	// watch is comm.Watch of the ranks, and limit how long one fault may take before it
	// counts as hung. Both are far beyond what a busy machine takes.
	watch = 40 * time.Second
	limit = time.Minute
)

// An amount says how many of the faults are tried.
type amount struct {
	whole bool
	// sample is the number for each call, where it isn't whole.
	sample int
	// Where it is: of the calls of one operation of one rank at most so many fail with
	// EIO, and so many meet with each of the other faults. They are spread evenly.
	// lookups are getattr, of which a path has one for each of its elements.
	plain, other, lookups int
	// The same for calls that make thousands of calls on the filesystem.
	longPlain, longOther int
}

const all = math.MaxInt

var amounts = map[string]amount{
	"":      {sample: 8},
	"whole": {whole: true, plain: all, other: all, lookups: 40, longPlain: 60, longOther: 6},
	"every": {whole: true, plain: all, other: all, lookups: all, longPlain: all, longOther: all},
}

// A fault is one trial: what one call of one rank meets with.
type fault struct {
	Call int
	Rank int
	Rule faultfs.Rule
}

func (f fault) String() string {
	what := string(f.Rule.Action)
	switch f.Rule.Action {
	case faultfs.Err, faultfs.After:
		what += " " + syscall.Errno(f.Rule.Argument).Error()
	case faultfs.Delay:
		what += fmt.Sprint(" ", f.Rule.Argument, " ms")
	}
	return fmt.Sprintf("rank %d: %s %d: %s", f.Rank, f.Rule.Op, f.Rule.Skip+1, what)
}

// What may fail otherwise than by EIO: what changes something, and what takes space.
var (
	changing = []string{"create", "write", "flush", "fsync", "truncate", "fallocate", "mkdir", "unlink", "rmdir",
		"rename", "rename2", "link", "symlink", "chmod", "fsyncdir", "lock", "flock"}
	growing = []string{"create", "write", "flush", "fsync", "truncate", "fallocate", "mkdir",
		"rename", "rename2", "link", "symlink", "fsyncdir"}
	slow = []string{"open", "create", "read", "write", "flush", "fsync", "mkdir", "unlink", "rename", "rename2", "fsyncdir", "lock", "flock"}
)

// faults are those that a clean run can meet with, of which each rank's calls were
// counted.
func (a amount) faults(n int, of call, counted []map[string]int) (list []fault) {
	for rank, ops := range counted {
		for _, op := range slices.Sorted(maps.Keys(ops)) {
			plain, other := a.plain, a.other
			if of.long {
				plain, other = a.longPlain, a.longOther
			}
			if op == "getattr" {
				plain = min(plain, a.lookups)
			}
			add := func(most int, action faultfs.Action, argument int) {
				calls := ops[op]
				most = min(most, calls)
				for k := range most {
					skip := k * calls / most
					list = append(list, fault{n, rank, faultfs.Rule{Op: op, Action: action, Argument: argument, Skip: skip, Times: 1}})
				}
			}
			add(plain, faultfs.Err, int(syscall.EIO))
			if slices.Contains(growing, op) {
				add(other, faultfs.Err, int(syscall.ENOSPC))
			}
			if slices.Contains(changing, op) {
				add(other, faultfs.After, int(syscall.EIO))
			}
			if op == "read" || op == "write" {
				add(other, faultfs.Short, 0)
			}
			if slices.Contains(slow, op) {
				add(other, faultfs.Delay, 20)
			}
		}
	}
	return list
}

// sampled is a part of the faults that has all kinds of them, as far as it is large enough:
// the same part for the same faults.
func sampled(list []fault, n int) []fault {
	if len(list) == 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(12, uint64(list[0].Call)))
	r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	type kind struct {
		rank   int
		op     string
		action faultfs.Action
	}
	seen := make(map[kind]int)
	turn := make(map[fault]int)
	for _, f := range list {
		k := kind{f.Rank, f.Rule.Op, f.Rule.Action}
		turn[f] = seen[k]
		seen[k]++
	}
	slices.SortStableFunc(list, func(a, b fault) int { return cmp.Compare(turn[a], turn[b]) })
	return list[:min(n, len(list))]
}

// An entry of the journal says how a trial began or ended.
type entry struct {
	Trial int
	Ended bool
	Fired bool
	Class string
	Text  string
}

// sweep is the program of the ranks. Its arguments are the mount, its base, the directory
// of the plan and the journal, the number of the first trial (-1: the plan is to be made),
// the amount, the process that started it, and which part of how many of the plan is this
// job's.
func sweep(c *comm.Comm, args []string) error {
	mount, base, notes := args[0], args[1], args[2]
	first, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	test, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	var part, parts int
	if _, err := fmt.Sscanf(args[6], "%d/%d", &part, &parts); err != nil {
		return err
	}
	go endWith(test)
	ctx := context.Background()
	r := &ranks{c: c, control: faultfs.Control(mount), mount: mount, base: base, notes: notes, calls: calls()}
	texts, err := c.AllGather(ctx, []byte(strconv.Itoa(os.Getpid())))
	if err != nil {
		return err
	}
	for _, text := range texts {
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			return err
		}
		r.pids = append(r.pids, pid)
	}
	if first < 0 {
		if err := r.plan(amounts[args[4]], part, parts); err != nil {
			return fmt.Errorf("without a fault: %w", err)
		}
		first = 0
	}
	var trials []fault
	text, err := os.ReadFile(filepath.Join(notes, "plan"))
	if err == nil {
		err = json.Unmarshal(text, &trials)
	}
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	for n := first; n < len(trials); n++ {
		if err := r.try(n, trials[n]); err != nil {
			return err
		}
	}
	return c.Agree(ctx, r.note(entry{Trial: len(trials), Ended: true}))
}

// endWith ends this process after another one: ranks that wait in C for each other would
// outlive a test that is killed.
func endWith(process int) {
	for syscall.Kill(process, 0) == nil {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}

// ranks are those of a sweep.
type ranks struct {
	c                  *comm.Comm
	control            faultfs.Control
	mount, base, notes string
	pids               []int
	calls              []call
}

func (r *ranks) on0(f func() error) error {
	var err error
	if r.c.Rank() == 0 {
		err = f()
	}
	return r.c.Agree(context.Background(), err)
}

// note adds to the journal.
func (r *ranks) note(e entry) error {
	if r.c.Rank() != 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(r.notes, "journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	return errors.Join(err, f.Close())
}

func (r *ranks) world(name string, driver call) *world {
	return &world{ctx: context.Background(), c: r.c, real: filepath.Join(r.base, name), dir: filepath.Join(r.mount, name), driver: driver.driver, short: driver.short}
}

// plan prepares what the calls find, and counts what they do. It keeps every parts-th fault.
func (r *ranks) plan(a amount, part, parts int) error {
	only, err := regexp.Compile(os.Getenv(callEnv))
	if err != nil {
		return err
	}
	faults, err := regexp.Compile(os.Getenv(faultEnv))
	if err != nil {
		return err
	}
	var trials []fault
	for n, call := range r.calls {
		if !a.whole && call.rare || !only.MatchString(call.String()) {
			continue
		}
		w := r.world(fmt.Sprint("before-", n), call)
		if err := r.on0(func() error { return os.Mkdir(w.real, 0o777) }); err != nil {
			return err
		}
		if err := r.c.Agree(w.ctx, call.before(w)); err != nil {
			return fmt.Errorf("%v: %w", call, err)
		}
		var counts []map[string]int
		e, err := r.run(n, func() error { return r.control.Count(r.pids...) }, func() error {
			_, seen, err := r.control.Seen()
			for _, pid := range r.pids {
				counts = append(counts, seen[pid])
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%v: %w", call, err)
		}
		if e.Class != "clean" || strings.Contains(e.Text, "rror") {
			return fmt.Errorf("%v: %s: %s", call, e.Class, e.Text)
		}
		list := amounts["every"].faults(n, call, counts)
		if a.whole {
			list = a.faults(n, call, counts)
		}
		if faults.String() != "" {
			list = slices.DeleteFunc(list, func(f fault) bool { return !faults.MatchString(f.String()) })
		} else if !a.whole {
			list = sampled(list, a.sample)
		}
		trials = append(trials, list...)
	}
	n := -1
	trials = slices.DeleteFunc(trials, func(fault) bool { n++; return n%parts != part })
	return r.on0(func() error {
		text, err := json.Marshal(append([]fault{}, trials...))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(r.notes, "plan"), text, 0o666)
	})
}

// try runs a call with a fault. Its error is that the ranks are of no more use.
func (r *ranks) try(n int, f fault) error {
	if err := r.note(entry{Trial: n}); err != nil {
		return err
	}
	fired := false
	f.Rule.Process = r.pids[f.Rank]
	e, err := r.run(f.Call, func() error { return r.control.Fail(f.Rule) }, func() error {
		times, _, err := r.control.Seen()
		fired = times > 0
		return err
	})
	e.Trial, e.Ended, e.Fired = n, true, fired
	if err != nil {
		e.Class, e.Text = "hung", err.Error()
	}
	return errors.Join(err, r.note(e))
}

// run runs a call on a copy of what it finds, between arm and disarm, and looks at the
// outcome.
func (r *ranks) run(n int, arm, disarm func() error) (e entry, err error) {
	call := r.calls[n]
	w := r.world("trial", call)
	if err := r.on0(func() error {
		return errors.Join(os.RemoveAll(w.real), os.CopyFS(w.real, os.DirFS(filepath.Join(r.base, fmt.Sprint("before-", n)))), arm())
	}); err != nil {
		return e, err
	}
	var look func() error
	perr := comm.Protect(func() error { look = call.run(w); return nil })
	said := strings.Join(w.said, "\n")
	if perr != nil {
		said = perr.Error()
	}
	if err := r.on0(func() error { return errors.Join(disarm(), r.control.Off()) }); err != nil {
		return e, fmt.Errorf("%w; before: %s", err, said)
	}
	w.dir = w.real // nothing fails any more, and it is quicker
	texts, err := r.c.AllGather(w.ctx, []byte(said))
	if err != nil {
		return e, err
	}
	for _, text := range texts {
		if !bytes.Equal(text, texts[0]) {
			return entry{Class: "wrong", Text: fmt.Sprintf("the ranks differ: %q", texts)}, nil
		}
	}
	if perr != nil {
		return entry{Class: "wrong", Text: said}, nil
	}
	err = comm.Protect(look)
	finding := "clean"
	switch {
	case errors.Is(err, errLost):
		finding = "lost: " + err.Error()
	case err != nil:
		finding = "wrong: " + err.Error()
	}
	// A rank that found nothing may have agreed with one that did.
	if texts, err = r.c.AllGather(w.ctx, []byte(finding)); err != nil {
		return e, err
	}
	for _, class := range []string{"lost", "wrong", "clean"} {
		for _, text := range texts {
			if strings.HasPrefix(string(text), class) {
				return entry{Class: class, Text: fmt.Sprintf("%s\nthe calls: %s", text, said)}, nil
			}
		}
	}
	return e, fmt.Errorf("nothing was found: %q", texts)
}

// ---- the test ----

// A row of the table.
type row struct{ tried, clean, hung, lost, wrong int }

func (r *row) add(other *row) {
	r.tried += other.tried
	r.clean += other.clean
	r.hung += other.hung
	r.lost += other.lost
	r.wrong += other.wrong
}

// Every call of the library that moves a state, with every call on the filesystem that
// its ranks make failing in turn: see docs/reliability.md.
func TestEveryCallFails(t *testing.T) {
	amount := os.Getenv(amountEnv)
	if _, ok := amounts[amount]; !ok {
		t.Fatalf("%s is %q", amountEnv, amount)
	}
	jobs := 1
	if text := os.Getenv(jobsEnv); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil || jobs < 1 {
			t.Fatalf("%s is %q", jobsEnv, text)
		}
	}
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) {
			supervisors := make([]*supervisor, jobs)
			t.Run("jobs", func(t *testing.T) {
				for k := range supervisors {
					t.Run(fmt.Sprint(k), func(t *testing.T) {
						t.Parallel()
						supervisors[k] = newSupervisor(t, component, amount, fmt.Sprint(k, "/", jobs))
						supervisors[k].sweep()
					})
				}
			})
			table(t, component.Name, supervisors)
		})
	}
}

// asOnNodes lets OMPIO prefer the files that it makes where the ranks are on several nodes.
var asOnNodes = mpitest.Env("OMPI_MCA_sharedfp_lockedfile_priority=100")

// With rows that are cut among the ranks, everything that MPI-IO has part in fails on one rank
// while the others are at work with it.
func TestNoRankWaitsForOneThatFails(t *testing.T) {
	if !mpi.Enabled {
		t.Skip("there is no MPI-IO without MPI")
	}
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) {
			component.Options = append(slices.Clone(component.Options),
				mpitest.Env(callEnv+"=Bundle, short", faultEnv+`=: (open|read|write) \d+: err `+syscall.EIO.Error()))
			s := newSupervisor(t, component, "", "0/1")
			s.sweep()
			if len(s.plan) < 40 {
				t.Errorf("%d faults were tried, want more", len(s.plan))
			}
		})
	}
}

func newSupervisor(t *testing.T, component mpitest.Component, amount, part string) *supervisor {
	base, mount, notes := t.TempDir(), t.TempDir(), t.TempDir()
	faultfs.Mount(t, base, mount)
	return &supervisor{t: t, notes: notes, args: []string{mount, base, notes}, component: component, amount: amount, part: part}
}

// supervisor starts the ranks, and starts them again when a fault has ended or stopped
// them.
type supervisor struct {
	t         *testing.T
	notes     string
	args      []string
	component mpitest.Component
	amount    string
	part      string

	read int // bytes of the journal
	last entry
	rows map[int]*row
	plan []fault
}

func (s *supervisor) sweep() {
	s.rows = make(map[int]*row)
	size := 2
	if !mpi.Enabled {
		size = 1
	}
	for next := -1; ; next = s.last.Trial + 1 {
		options := append(slices.Clone(s.component.Options), asOnNodes, mpitest.Watch(watch), mpitest.Limit(3*time.Hour))
		job := mpitest.Start(s.t, size, "sweep", append(slices.Clone(s.args), strconv.Itoa(next), s.amount, strconv.Itoa(os.Getpid()), s.part), options...)
		stuck := s.follow(job)
		if stuck {
			job.ShowStacks()
			job.KillAll()
		}
		output, exit := job.Wait()
		s.news()
		switch {
		case s.plan == nil:
			s.t.Fatalf("no plan was made, status %d:\n%s", exit, output)
		case s.last.Ended && s.last.Trial == len(s.plan):
			if exit != 0 {
				s.t.Errorf("status %d:\n%s", exit, output)
			}
			return
		case !s.last.Ended && stuck:
			s.count(entry{Trial: s.last.Trial, Ended: true, Fired: true, Class: "hung", Text: output})
		case !s.last.Ended:
			s.count(entry{Trial: s.last.Trial, Ended: true, Fired: true, Class: "wrong", Text: fmt.Sprintf("the job ended, status %d:\n%s", exit, output)})
		case s.last.Class != "hung":
			s.t.Fatalf("the job ended between two trials, status %d:\n%s", exit, output)
		}
	}
}

// follow reads the journal until the job ends. It reports whether a trial takes too long.
func (s *supervisor) follow(job *mpitest.Job) (stuck bool) {
	for moved := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if s.news() {
			moved = time.Now()
		}
		select {
		case <-job.Ended():
			return false
		default:
		}
		if time.Since(moved) > limit && s.plan != nil {
			return true
		}
	}
}

// news reads on in the journal.
func (s *supervisor) news() bool {
	if s.plan == nil {
		if text, err := os.ReadFile(filepath.Join(s.notes, "plan")); err == nil && json.Unmarshal(text, &s.plan) != nil {
			s.plan = nil // not whole yet
		}
	}
	text, err := os.ReadFile(filepath.Join(s.notes, "journal"))
	if err != nil || s.plan == nil {
		return false
	}
	text = text[s.read:]
	end := bytes.LastIndexByte(text, '\n') + 1
	for line := range bytes.Lines(text[:end]) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			s.t.Fatal(err)
		}
		s.last = e
		if e.Ended && e.Trial < len(s.plan) {
			s.count(e)
		}
	}
	s.read += end
	return end > 0
}

// count counts a trial whose fault has come about.
func (s *supervisor) count(e entry) {
	s.last = e
	if !e.Fired {
		return
	}
	f := s.plan[e.Trial]
	if s.rows[f.Call] == nil {
		s.rows[f.Call] = new(row)
	}
	row := s.rows[f.Call]
	row.tried++
	switch e.Class {
	case "clean":
		row.clean++
		return
	case "hung":
		row.hung++
	case "lost":
		row.lost++
	default:
		row.wrong++
	}
	s.t.Errorf("%v, %v: %s: %s", calls()[f.Call], f, e.Class, e.Text)
}

const tableFormat = "| %-8s | %-20s | %-6s | %5v | %5v | %4v | %4v | %5v |\n"

// table shows the rows of the jobs together, and adds them to the file that the caller wants.
func table(t *testing.T, library string, jobs []*supervisor) {
	rows := make(map[int]*row)
	for _, s := range jobs {
		if s == nil { // skipped
			continue
		}
		for n, r := range s.rows {
			if rows[n] == nil {
				rows[n] = new(row)
			}
			rows[n].add(r)
		}
	}
	var b strings.Builder
	for n, c := range calls() {
		if r := rows[n]; r != nil {
			fmt.Fprintf(&b, tableFormat, library, c.name, c.driver, r.tried, r.clean, r.hung, r.lost, r.wrong)
		}
	}
	t.Logf("\n"+tableFormat+"%s", "library", "call", "driver", "tried", "clean", "hung", "lost", "wrong", b.String())
	name := os.Getenv(tableEnv)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = f.WriteString(b.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}
