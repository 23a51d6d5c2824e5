//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/samerun"
	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// runName begins the names of the files of a run.
const runName = "crystal"

// A segmentFile is what a segment says of itself.
type segmentFile struct {
	path             string
	ranks            int64
	status, reason   string
	states, attempts int
	took             time.Duration // all attempts together
}

// ended says why a segment ended.
func (g segmentFile) ended() string {
	if g.reason != "" {
		return g.reason
	}
	return g.status
}

func readSegment(ctx context.Context, path string) (segmentFile, error) {
	g := segmentFile{path: path}
	out, err := runfile.ReadOutput(ctx, []string{path})
	if err != nil {
		return g, err
	}
	var errs [3]error
	g.ranks, errs[0] = out.Settings.Int("environment/ranks")
	g.status, errs[1] = out.Settings.Text("segment/status")
	if out.Settings.Has("segment/stop_reason") {
		g.reason, errs[2] = out.Settings.Text("segment/stop_reason")
	}
	if err := errors.Join(errs[:]...); err != nil {
		return g, fmt.Errorf("%s: %w", path, err)
	}
	g.states, g.attempts = len(out.Times), out.Statistics.Attempts()
	for _, seconds := range out.Statistics.WallTime {
		g.took += time.Duration(seconds * float64(time.Second))
	}
	return g, nil
}

// withRun are the flags with which the solver writes run files, if it can.
func (s *story) withRun(args ...string) []string {
	if !h5.Enabled {
		return args
	}
	return append([]string{"-run", runName, "-save", strconv.FormatInt(max(1, s.o.every/5), 10)}, args...)
}

// isOfRun tells whether a file of a directory belongs there as one of the run.
func isOfRun(name string) bool {
	return name == runfile.SegmentFile("", runName, 1) || name == runfile.SegmentFile("", runName, 2) ||
		name == runfile.CheckpointFile("", runName) || name == runfile.PreviousFile("", runName)
}

// A chain is a run in two jobs, beside one that was never interrupted.
type chain struct {
	dir      string
	segments []segmentFile // the uninterrupted run's, and those of the chain
	joined   *runfile.Solution
}

// chained runs the solver in two jobs, of which the first one has too little time, and
// compares what they wrote with the run in the directory whole. Without HDF5 there is
// no chain.
func (s *story) chained(ctx context.Context, first, second part, dir, whole string) (*chain, error) {
	if !h5.Enabled {
		s.say("5. there is no HDF5 here: no run files")
		return nil, nil
	}
	s.say("5. the same run as a chain of two jobs, whose output is joined")
	one, err := readSegment(ctx, runfile.SegmentFile(whole, runName, 1))
	if err != nil {
		return nil, err
	}
	stopped, err := s.stopByWallTime(ctx, first, dir, one.took*2/5)
	if err != nil {
		return nil, err
	}
	resumed, err := s.resume(ctx, second, dir, int64(stopped.attempts))
	if err != nil {
		return nil, err
	}
	joined, err := s.sameOutput(ctx, dir, whole)
	if err != nil {
		return nil, err
	}
	return &chain{dir, []segmentFile{one, stopped, resumed}, joined}, nil
}

// stopByWallTime runs the first job of the chain, which must be stopped by its limit.
// A run that gets to its end before is made again with less time, so that it doesn't
// matter how fast the machine is: a job always makes one step.
func (s *story) stopByWallTime(ctx context.Context, p part, dir string, limit time.Duration) (segmentFile, error) {
	for {
		if limit = max(limit, 1); limit > time.Second {
			limit = limit.Round(time.Millisecond)
		}
		if err := os.RemoveAll(dir); err != nil {
			return segmentFile{}, err
		}
		s.say("   job 1 with %v and %v of time", p, limit)
		l := s.launch(p, dir, s.withRun("-resume", "-wall-time", limit.String())...)
		if err := l.run(ctx, s.o); err != nil {
			return segmentFile{}, err
		}
		g, err := readSegment(ctx, runfile.SegmentFile(dir, runName, 1))
		switch {
		case err != nil:
			return g, err
		case g.status == "completed":
			s.say("   it has come to the end in that time: once more, with less")
			limit = min(limit, g.took) / 2
			continue
		case g.reason != "wall time limit of "+limit.String():
			return g, fmt.Errorf("job 1 ended by %q, and not by its wall time", g.ended())
		}
		s.say("   stopped at step %d: %s", g.attempts, g.reason)
		return g, nil
	}
}

// resume runs the second job of the chain, which must go on where the first one was
// stopped.
func (s *story) resume(ctx context.Context, p part, dir string, from int64) (segmentFile, error) {
	s.say("   job 2 with %v, from there to the end", p)
	l := s.launch(p, dir, s.withRun("-resume")...)
	var number, start int64
	l.event = func(e event) {
		if n := e.number("segment"); n >= 0 {
			number, start = n, e.number("start")
		}
		s.saved(e)
	}
	if err := l.run(ctx, s.o); err != nil {
		return segmentFile{}, err
	}
	if number != 2 || start != from {
		return segmentFile{}, fmt.Errorf("job 2 is segment %d and begins at step %d, not segment 2 at step %d", number, start, from)
	}
	g, err := readSegment(ctx, runfile.SegmentFile(dir, runName, 2))
	if err == nil && g.status != "completed" {
		err = fmt.Errorf("job 2 ended by %q, and not at the end of the run", g.ended())
	}
	return g, errors.Join(err, s.nothingLeft(dir))
}

// sameOutput compares the joined output of two directories, and their last bundles.
func (s *story) sameOutput(ctx context.Context, dirA, dirB string) (*runfile.Solution, error) {
	a, errA := runfile.ReadRun(ctx, dirA, runName)
	b, errB := runfile.ReadRun(ctx, dirB, runName)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	if err := samerun.Compare(ctx, a, b); err != nil {
		return nil, fmt.Errorf("the joined output of %s and that of %s: %w", dirA, dirB, err)
	}
	last := publish.StepName(s.o.steps)
	diffs, err := compareBundles(ctx, filepath.Join(dirA, last), filepath.Join(dirB, last))
	if err == nil && len(diffs) > 0 {
		err = fmt.Errorf("%s of the chain and of the uninterrupted run: %v", last, diffs[0])
	}
	return a, err
}

// write writes the table of the segments, and what can be opened with what. For ParaView
// the tool, if there is one, makes an XDMF file, after it has verified the run files.
func (c *chain) write(ctx context.Context, out io.Writer, tool string) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nrun file\tranks\tended by\tstates\tattempts\t")
	for _, g := range c.segments {
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t\n", g.path, g.ranks, g.ended(), g.states, g.attempts)
	}
	fmt.Fprintf(t, "the last %d joined\t\t\t%d\t%d\tequal to the first, bit for bit\n",
		len(c.joined.Files), len(c.joined.Times), c.joined.Statistics.Attempts())

	fmt.Fprintln(t, "\nto open\twith")
	for _, file := range c.joined.Files {
		fmt.Fprintf(t, "%s\th5py, xarray (docs/reading-run-files.md): unknowns/phi, unknowns/free_energy\n", file)
	}
	if tool == "" {
		return t.Flush()
	}
	series := filepath.Join(c.dir, runName+".xmf")
	for _, args := range [][]string{
		append([]string{"verify"}, c.joined.Files...),
		append([]string{"xdmf", "-o", series}, c.joined.Files...),
	} {
		if printed, err := exec.CommandContext(ctx, tool, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", tool, strings.Join(args, " "), err, printed)
		}
	}
	fmt.Fprintf(t, "%s\tParaView: phi at all saved times\n", series)
	return t.Flush()
}
