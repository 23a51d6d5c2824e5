//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/fieldstone-io/fieldstone/publish"
)

// A story is the demo while it runs.
type story struct {
	o    options
	out  io.Writer
	live bool // out is a terminal: progress stays on one line

	bytes int64           // of one bundle
	saves []time.Duration // of all publications
}

// A part is how one run of the solver is cut.
type part struct {
	name   string
	ranks  int
	px, py int
	halo   int
}

func (p part) String() string {
	return fmt.Sprintf("%s (%d x %d), halo %d", ranks(p.ranks), p.px, p.py, p.halo)
}

func ranks(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", n)
}

// demo tells the story. The error is the first thing that isn't as it must be.
func demo(ctx context.Context, o options, out io.Writer) error {
	s := &story{o: o, out: out}
	if f, ok := out.(*os.File); ok {
		s.live = term.IsTerminal(int(f.Fd()))
	}
	err := s.tell(ctx)
	if err != nil {
		s.say("   it ends here") // and not on a line with progress
	}
	return err
}

func (s *story) tell(ctx context.Context) error {
	o, out := s.o, s.out
	killed := part{"killed", 4, 2, 2, 1}
	restarted := part{"restarted", 2, 1, 2, 3}
	undisturbed := part{"undisturbed", 3, 3, 1, 2}
	stopped := part{"stopped", 4, 1, 4, 2}
	resumed := part{"resumed", 2, 2, 1, 1}
	if o.mpi == "none" {
		s.say("there is no MPI here: every run has one rank, and only the halo changes")
		for _, p := range []*part{&killed, &restarted, &undisturbed, &stopped, &resumed} {
			p.ranks, p.px, p.py = 1, 1, 1
		}
	}

	ckpt := filepath.Join(o.dir, "interrupted")
	whole := filepath.Join(o.dir, "whole")
	jobs := filepath.Join(o.dir, "chain")
	picture := filepath.Join(o.dir, "dendrite.png")
	for _, old := range []string{ckpt, whole, jobs, picture} {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(o.dir, 0o777); err != nil {
		return err
	}

	lost := int64(o.killAt) * o.every
	good := lost - o.every
	kill, err := s.killInPublication(ctx, killed, ckpt, lost)
	if err != nil {
		return err
	}
	left, err := s.checkLeftover(ckpt, lost, good)
	if err != nil {
		return err
	}
	restart, err := s.restart(ctx, restarted, ckpt, picture, good)
	if err != nil {
		return err
	}
	run, err := s.undisturbed(ctx, undisturbed, whole)
	if err != nil {
		return err
	}
	compared, err := s.compare(ctx, ckpt, whole)
	if err != nil {
		return err
	}
	chain, err := s.chained(ctx, stopped, resumed, jobs, whole)
	if err != nil {
		return err
	}

	slices.Sort(s.saves)
	median := s.saves[len(s.saves)/2]
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", what, fmt.Sprintf(format, args...)) }
	row("grid", "%d x %d cells, 2 fields, %d steps, a checkpoint every %d", o.cells, o.cells, o.steps, o.every)
	row("launched by", "%s", cmp.Or(o.mpirun, "nothing: one rank, no MPI"))
	row("killed", "%v: SIGKILL to %s in publication %d (step %d), at %s; %.1f s", killed, ranks(kill.ranks), o.killAt, lost, kill.at, kill.took.Seconds())
	row("left behind", "step_%d.publishing with %s; newest good bundle step_%d", lost, left, good)
	row("restarted", "%v: from step_%d, to the end; %.1f s", restarted, good, restart.Seconds())
	row("undisturbed", "%v: from the beginning; %.1f s", undisturbed, run.Seconds())
	row("compared", "%d bundles of both, verified: phi and T equal bit for bit", compared)
	row("publications", "%d of %.2f MB, durable; median %.1f ms, %.0f MB/s", len(s.saves), float64(s.bytes)/1e6, median.Seconds()*1e3, float64(s.bytes)/1e6/median.Seconds())
	row("picture", "%s", picture)
	if err := t.Flush(); err != nil || chain == nil {
		return err
	}
	return chain.write(ctx, out, o.tool)
}

// launch prepares a run of the solver.
func (s *story) launch(p part, dir string, args ...string) *launch {
	l := &launch{
		name:  p.name + " run",
		ranks: p.ranks,
		args: append([]string{
			"-nx", strconv.Itoa(s.o.cells), "-ny", strconv.Itoa(s.o.cells),
			"-steps", strconv.FormatInt(s.o.steps, 10), "-every", strconv.FormatInt(s.o.every, 10),
			"-px", strconv.Itoa(p.px), "-py", strconv.Itoa(p.py), "-halo", strconv.Itoa(p.halo),
			"-out", dir,
		}, args...),
		log: filepath.Join(s.o.dir, p.name+".log"),
	}
	l.event = s.saved
	l.line = func(text string) {
		if strings.HasPrefix(text, "step ") {
			s.progress("   " + text)
		}
	}
	return l
}

func (s *story) saved(e event) {
	if e.number("saved") >= 0 {
		s.saves = append(s.saves, time.Duration(e.number("nanoseconds")))
	}
}

// say prints a line for good, progress one that the next line may replace.
func (s *story) say(format string, args ...any) {
	if s.live {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *story) progress(text string) {
	if s.live {
		fmt.Fprint(s.out, "\r\x1b[K", text)
		return
	}
	fmt.Fprintln(s.out, text)
}

// A death is what is known about the killed run.
type death struct {
	ranks int
	at    string
	took  time.Duration
}

// killInPublication runs the solver up to the given publication, in which it
// reports from the middle, and kills it there.
func (s *story) killInPublication(ctx context.Context, p part, dir string, lost int64) (death, error) {
	s.say("1. run with %v, to be killed while it publishes step %d", p, lost)
	// T is the second field: the first one has been written when it begins.
	point := "field:T"
	l := s.launch(p, dir, "-hold", fmt.Sprintf("%d:%s", lost, point))
	var d death
	var kerr error
	l.event = func(e event) {
		if e.number("holding") == lost {
			d.at = e["at"]
			d.ranks, kerr = l.kill()
			s.say("   SIGKILL to %s at %s of publication %d", ranks(d.ranks), d.at, s.o.killAt)
			return
		}
		s.saved(e)
	}
	err := l.run(ctx, s.o)
	d.took = l.took
	switch {
	case kerr != nil:
		return d, kerr
	case d.at != point:
		return d, errors.Join(fmt.Errorf("the first run did not come to %s of step %d", point, lost), err)
	case d.ranks != p.ranks:
		return d, fmt.Errorf("%s got a SIGKILL, not %d", ranks(d.ranks), p.ranks)
	case err == nil:
		return d, errors.New("the killed run ended with status 0")
	}
	return d, ctx.Err()
}

// checkLeftover looks at what the killed run left behind, and describes it.
func (s *story) checkLeftover(dir string, lost, good int64) (string, error) {
	final := filepath.Join(dir, publish.StepName(lost))
	if _, err := os.Lstat(final); !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is there (%v), though its publication was killed", final, err)
	}
	staging := final + ".publishing"
	if _, err := os.Lstat(filepath.Join(staging, "fields", "phi.bin")); err != nil {
		return "", fmt.Errorf("the killed publication left no first field: %w", err)
	}
	if _, err := publish.OpenBundle(staging); err == nil {
		return "", fmt.Errorf("%s opens as a bundle", staging)
	}
	info, err := publish.Inspect(filepath.Join(dir, publish.StepName(good)))
	if err != nil {
		return "", fmt.Errorf("the newest bundle is not good: %w", err)
	}
	s.bytes = info.Bytes

	// The files have their full size from the start, since their space is
	// reserved; what is missing is the metadata.
	var files []string
	for _, name := range []string{"phi.bin", "T.bin"} {
		if f, err := os.Lstat(filepath.Join(staging, "fields", name)); err == nil {
			files = append(files, fmt.Sprintf("%s (%.2f MB)", name, float64(f.Size())/1e6))
		}
	}
	left := strings.Join(files, ", ") + ", no metadata.json"
	s.say("   left behind: %s with %s: no bundle", staging, left)
	return left, nil
}

// restart goes on from what is left, which must be the newest good bundle.
func (s *story) restart(ctx context.Context, p part, dir, picture string, good int64) (time.Duration, error) {
	s.say("2. restart with %v, from the newest good bundle", p)
	l := s.launch(p, dir, "-restart", publish.Latest, "-png", picture)
	from := int64(-1)
	l.event = func(e event) {
		if n := e.number("restart"); n >= 0 {
			from = n
			s.say("   restarted from %s", e["bundle"])
		}
		s.saved(e)
	}
	if err := l.run(ctx, s.o); err != nil {
		return l.took, err
	}
	if from != good {
		return l.took, fmt.Errorf("restarted from increment %d, but the newest good bundle is %s", from, publish.StepName(good))
	}
	return l.took, s.nothingLeft(dir)
}

func (s *story) undisturbed(ctx context.Context, p part, dir string) (time.Duration, error) {
	s.say("3. run with %v, undisturbed", p)
	l := s.launch(p, dir, s.withRun()...)
	if err := l.run(ctx, s.o); err != nil {
		return l.took, err
	}
	return l.took, s.nothingLeft(dir)
}

// nothingLeft reports anything in a checkpoint directory that isn't a bundle or a file
// of the run.
func (s *story) nothingLeft(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := publish.ParseStepName(e.Name()); !ok && !isOfRun(e.Name()) {
			return fmt.Errorf("%s is left over", filepath.Join(dir, e.Name()))
		}
	}
	return nil
}

// compare compares all bundles of the two directories and returns their number.
func (s *story) compare(ctx context.Context, dirA, dirB string) (int, error) {
	s.say("4. comparison of all bundles of both histories")
	n := 0
	for step := s.o.every; ; step = min(step+s.o.every, s.o.steps) {
		name := publish.StepName(step)
		diffs, err := compareBundles(ctx, filepath.Join(dirA, name), filepath.Join(dirB, name))
		if err != nil {
			return n, err
		}
		if len(diffs) > 0 {
			return n, fmt.Errorf("%s of the two histories: %v", name, diffs[0])
		}
		n++
		if step == s.o.steps {
			return n, nil
		}
	}
}
