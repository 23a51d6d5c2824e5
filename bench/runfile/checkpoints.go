package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

//go:embed appends.py
var appendsScript string

// window is over how many checkpoints a number is the mean.
const window = 20

// A reading is what a checkpoint costs, segment and checkpoint together.
type reading struct {
	Scalars, After      int     // checkpoints
	Made                float64 // groups and datasets
	Written             float64 // datasets that are changed, in HDF5's calls
	Milliseconds        float64 // of the processor
	Segment, Checkpoint int64   // bytes
	Peer                float64 // milliseconds of the processor, 0 where there is no h5py
}

// checkpoints measures what a checkpoint of a run of scalars costs, each with one new
// state of them, and what h5py takes to append the same.
func checkpoints(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("checkpoints", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "no more than 100 checkpoints")
	scalars, afters := numbers{10, 100, 2000}, numbers{10, 1000, 2000}
	flags.Var(&scalars, "scalars", "numbers of scalars")
	flags.Var(&afters, "after", "after how many checkpoints, in rising order")
	dir := flags.String("dir", "", "where the files are; by default in /dev/shm, or TMPDIR")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		afters = numbers{10, 100}
	}
	if *dir == "" {
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			*dir = "/dev/shm"
		}
	}
	fmt.Fprintf(out, "A checkpoint with one new state, mean of %d; %s.\n\n", window, load())
	fmt.Fprintf(out, "%8s %8s %6s %8s %10s %10s %6s %12s %15s\n", "scalars", "after", "made", "written", "CPU, ms", "h5py, ms", "ratio", "segment, MB", "checkpoint, MB")
	missing, err := measureCheckpoints(context.Background(), *dir, scalars, afters, func(r reading) {
		peer, ratio := "-", "-"
		if r.Peer > 0 {
			peer, ratio = fmt.Sprintf("%.1f", r.Peer), fmt.Sprintf("%.2f", r.Milliseconds/r.Peer)
		}
		fmt.Fprintf(out, "%8d %8d %6.1f %8.1f %10.1f %10s %6s %12.2f %15.2f\n", r.Scalars, r.After, r.Made, r.Written, r.Milliseconds, peer, ratio, float64(r.Segment)/1e6, float64(r.Checkpoint)/1e6)
	})
	if err != nil {
		return err
	}
	if missing != nil {
		fmt.Fprintln(out, "Without h5py:", missing)
	}
	fmt.Fprintf(out, "\nAt the end: %s.\n", load())
	return nil
}

// numbers is a flag of several, with commas between them.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*n), " ", ","), "[]")
}

func (n *numbers) Set(text string) error {
	*n = nil
	for _, part := range strings.Split(text, ",") {
		i, err := strconv.Atoi(part)
		if err == nil && i < 1 {
			err = errors.New("it is less than 1")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", part, err)
		}
		*n = append(*n, i)
	}
	return nil
}

// load says how busy the machine is.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load average unknown"
	}
	return "load average " + strings.Join(strings.Fields(string(text))[:3], " ")
}

// measureCheckpoints makes a run for each number of scalars, up to the last of the numbers
// of checkpoints, and tells of each reading. Missing is why there is no h5py.
func measureCheckpoints(ctx context.Context, dir string, scalars, afters []int, tell func(reading)) (missing, err error) {
	for _, n := range scalars {
		peer, err := startAppends(n)
		if err != nil {
			peer, missing = nil, err
		}
		err = measureRun(ctx, dir, n, afters, peer, tell)
		if peer != nil {
			err = errors.Join(err, peer.close())
		}
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

func measureRun(ctx context.Context, dir string, n int, afters []int, peer *appends, tell func(reading)) (err error) {
	work, err := os.MkdirTemp(dir, "fieldstone-checkpoints-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	last := afters[len(afters)-1]
	cfg := runfile.Config{
		Directory: work, Name: "run",
		Initial:    make([]float64, n),
		Checkpoint: runfile.CheckpointConfig{Steps: 1},
	}
	for i := range n {
		cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, runfile.Unknown{Name: scalarName(i), Kind: runfile.Scalar, Scale: 1, Unit: "A"})
	}
	for i := range last + window + 2 { // the run doesn't come to its end
		cfg.TimePoints = append(cfg.TimePoints, float64(i))
	}
	s, err := runfile.Open(ctx, comm.Self(), cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	state := make([]float64, n)
	if err := s.SaveState(ctx, state); err != nil {
		return err
	}
	step := func() error {
		next := s.NextTime()
		for i := range state {
			state[i] = next + float64(i)
		}
		s.Attempt(runfile.Attempt{Time: next, StepLength: 1, Accepted: true, Outcome: "converged", Iterations: []runfile.Iteration{{Residual: 1e-9, Linear: 3}}})
		if err := s.SaveState(ctx, state); err != nil {
			return err
		}
		out, err := s.Checkpoint(ctx, state, func() (record.Record, error) { return record.Of("type", "euler", "length", next) })
		if err == nil && !out.Written {
			err = errors.New("no checkpoint is written")
		}
		return err
	}
	done := 0
	for _, after := range afters {
		for ; done < after; done++ {
			if err := step(); err != nil {
				return err
			}
		}
		made, written, began := h5.Created(), h5.Changes(), processorTime()
		for range window {
			if err := step(); err != nil {
				return err
			}
			done++
		}
		r := reading{Scalars: n, After: after, Milliseconds: (processorTime() - began).Seconds() * 1e3 / window}
		r.Made, r.Written = float64(h5.Created()-made)/window, float64(h5.Changes()-written)/window
		for path, to := range map[string]*int64{runfile.SegmentFile(work, "run", 1): &r.Segment, runfile.CheckpointFile(work, "run"): &r.Checkpoint} {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			*to = info.Size()
		}
		if peer != nil {
			if r.Peer, err = peer.time(filepath.Join(work, "h5py.h5"), after); err != nil {
				return err
			}
		}
		tell(r)
	}
	return nil
}

func scalarName(i int) string { return fmt.Sprintf("s%04d", i) }

// appends is the process of h5py. It answers each question with one line.
type appends struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

func startAppends(n int) (*appends, error) {
	if out, err := exec.Command(python, "-c", "import h5py").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("no h5py for %s: %w: %.200s", python, err, out)
	}
	p := &appends{cmd: exec.Command(python, "-c", appendsScript, fmt.Sprint(n), fmt.Sprint(window))}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = json.NewDecoder(out)
	return p, p.cmd.Start()
}

// time returns the milliseconds of the processor for one checkpoint's appends, in a file
// that has had so many.
func (p *appends) time(path string, after int) (float64, error) {
	err := json.NewEncoder(p.in).Encode(struct {
		Path  string
		After int
	}{path, after})
	var a struct {
		Milliseconds float64
		Error        string
	}
	if err == nil {
		err = p.answers.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a.Milliseconds, err
}

func (p *appends) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
