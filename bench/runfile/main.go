package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/plan"
)

func main() {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "checkpoints":
		err = checkpoints(os.Args[2:], os.Stdout)
	case len(os.Args) == 2:
		err = run(os.Args[1], os.Stdout)
	default:
		fmt.Fprintln(os.Stderr, "usage: runfile job.json\n       runfile checkpoints [-quick] [-dir directory]")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runfile:", err)
		os.Exit(1)
	}
}

func run(path string, out io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var job plan.Job
	if err := json.Unmarshal(data, &job); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	encoder := json.NewEncoder(out)
	for _, c := range job.Launch.Cases {
		lines, err := measure(context.Background(), job, c)
		if err != nil {
			return fmt.Errorf("case %q: %w", c.Name, err)
		}
		for _, l := range lines {
			if err := encoder.Encode(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// A contestant does one thing with the file at a path, and tells how long it took.
type contestant interface {
	do(ctx context.Context, what plan.Kind, path string) (seconds float64, err error)
	// check compares a file with what is to be in it.
	check(ctx context.Context, path string) error
	close() error
}

// measure lets the contestants of a case take turns.
func measure(ctx context.Context, job plan.Job, c plan.Case) ([]plan.Line, error) {
	folder := job.Tmpfs
	if c.Place == plan.Disk {
		folder = job.Disk
	}
	began := time.Now()
	lines := make([]plan.Line, len(c.Contestants))
	players := make([]contestant, len(c.Contestants))
	defer func() {
		for _, p := range players {
			if p != nil {
				_ = p.close() // it has answered to everything
			}
		}
	}()
	ours := newOurs(c)
	for i, name := range c.Contestants {
		lines[i] = plan.Line{Case: c.Name, Contestant: name, Bytes: c.Bytes()}
		var err error
		switch name {
		case "fieldstone":
			players[i] = ours
		case "h5py":
			if players[i], err = startPeer(c); err != nil {
				players[i], lines[i].Missing = nil, err.Error()
			}
		default:
			return nil, fmt.Errorf("nobody is called %s", name)
		}
	}
	file := func(i int) string { return filepath.Join(folder, c.Contestants[i]+".h5") }
	if c.Kind != plan.WriteRun {
		// All read the same file.
		path := filepath.Join(folder, "run.h5")
		defer os.Remove(path)
		if _, err := ours.do(ctx, plan.WriteRun, path); err != nil {
			return nil, err
		}
		file = func(int) string { return path }
	}
	spent := 0.0
	for repetition := 0; repetition <= c.Repeats && (repetition <= 3 || spent < c.Seconds); repetition++ {
		for _, i := range plan.Order(len(players), repetition) {
			l := &lines[i]
			if players[i] == nil || l.Error != "" {
				continue
			}
			if c.Kind == plan.WriteRun {
				// So late, for what is free may go back to the host of a virtual machine.
				for k := range players {
					if err := os.Remove(file(k)); err != nil && !os.IsNotExist(err) {
						return nil, err
					}
				}
			}
			seconds, err := players[i].do(ctx, c.Kind, file(i))
			if err == nil && c.Kind == plan.WriteRun {
				err = checker(players, i).check(ctx, file(i))
			}
			if err != nil {
				l.Error = err.Error()
				continue
			}
			l.Checked++
			spent += seconds
			if repetition > 0 {
				l.Seconds = append(l.Seconds, seconds)
			}
		}
	}
	for i := range players {
		lines[i].Took = time.Since(began).Seconds()
		if c.Kind == plan.WriteRun {
			if err := os.Remove(file(i)); err != nil && !os.IsNotExist(err) {
				return nil, err
			}
		}
	}
	return lines, nil
}

// checker is who looks at what one has written: another one, if there is one.
func checker(players []contestant, i int) contestant {
	for k, p := range players {
		if k != i && p != nil {
			return p
		}
	}
	return players[i]
}
