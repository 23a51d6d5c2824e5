package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/fieldstone-io/fieldstone/bench/plan"
)

// python is Debian's interpreter, to which its h5py belongs; another python3 on the path
// would not find it.
const python = "/usr/bin/python3"

//go:embed peer.py
var script string

// peer is the process of h5py. It answers each question with one line.
type peer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

type question struct {
	Do, Path string
}

type answer struct {
	Seconds float64
	Error   string
}

// startPeer fails where there is no h5py.
func startPeer(c plan.Case) (*peer, error) {
	if out, err := exec.Command(python, "-c", "import h5py").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("no h5py for %s: %w: %.200s", python, err, out)
	}
	job, err := json.Marshal(struct {
		Cells    [3]int
		States   int
		Unknowns []string
	}{c.Cells, saved(c), unknowns})
	if err != nil {
		return nil, err
	}
	p := &peer{cmd: exec.Command(python, "-c", script, string(job))}
	p.cmd.Stderr = os.Stderr
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

func (p *peer) ask(q question) (a answer, err error) {
	if err = json.NewEncoder(p.in).Encode(q); err == nil {
		err = p.answers.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

func (p *peer) do(_ context.Context, what plan.Kind, path string) (float64, error) {
	a, err := p.ask(question{string(what), path})
	return a.Seconds, err
}

func (p *peer) check(_ context.Context, path string) error {
	_, err := p.ask(question{"check", path})
	return err
}

func (p *peer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
