package brick

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
)

// skipping is a driver that leaves out the last cells of rank 1.
type skipping struct{ posix }

func (skipping) write(ctx context.Context, p *Plan, jobs []WriteJob, t *tally) error {
	whole := p.box
	if p.c.Rank() == 1 {
		p.box.Size[2]--
	}
	defer func() { p.box = whole }()
	return posix{}.write(ctx, p, jobs, t)
}

func (skipping) read(ctx context.Context, p *Plan, jobs []ReadJob, t *tally) error {
	whole := p.box
	if p.c.Rank() == 1 {
		p.box.Size[2]--
	}
	defer func() { p.box = whole }()
	return posix{}.read(ctx, p, jobs, t)
}

type zeros struct{}

func (zeros) ReadCells(dst []byte, _ int64) error {
	clear(dst)
	return nil
}

// A new file holds zeros, and bytes that nobody adds count as zeros in a checksum:
// only the count tells that a driver left cells out.
func TestADriverThatLeavesCellsOutIsFoundOut(t *testing.T) {
	dir := t.TempDir()
	err := comm.Run(2, func(c *comm.Comm) error {
		ctx := context.Background()
		box := grid.Box{Low: [3]int{0, 0, 3 * c.Rank()}, Size: [3]int{4, 4, 3}}
		p, err := NewPlan(ctx, c, [3]int{4, 4, 6}, box, Float64)
		if err != nil {
			return err
		}
		defer p.Close()
		path := filepath.Join(dir, "a.bin")
		write := []WriteJob{{Name: "a", Path: path, Source: zeros{}}}
		if _, err := p.Write(ctx, write); err != nil {
			return err
		}
		p.drv = skipping{}
		_, werr := p.Write(ctx, write)
		_, rerr := p.Read(ctx, []ReadJob{{Name: "a", Path: path, Sink: SinkFunc(func([]byte, int64) error { return nil })}})
		for _, err := range []error{werr, rerr} {
			if err == nil || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), "256 of 384 bytes") {
				return errors.Join(errors.New("not found out"), fmt.Errorf("%v", err))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
