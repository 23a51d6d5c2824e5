package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/samerun"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// runDifference is the outcome of a comparison of run files, as JSON.
type runDifference struct {
	A     string        `json:"a"`
	B     string        `json:"b"`
	Equal bool          `json:"equal"`
	Setup hashDiff      `json:"setup_hash"`
	Parts []runPartDiff `json:"parts"`

	metadata bool
}

type runPartDiff struct {
	Kind      string        `json:"kind"`
	Name      string        `json:"name"`
	State     string        `json:"state"`
	Reason    *string       `json:"reason"`
	Values    int64         `json:"values"`
	Differing int64         `json:"differing"`
	First     *runFirstDiff `json:"first"`
}

// runFirstDiff is the first value that differs. Bits are those of a float.
type runFirstDiff struct {
	State *int    `json:"saved_state"`
	Time  *number `json:"time"`
	Index int64   `json:"index"`
	Cell  *[3]int `json:"cell"`
	A     any     `json:"a"`
	B     any     `json:"b"`
	BitsA *string `json:"a_bits"`
	BitsB *string `json:"b_bits"`
}

// runSide is a file that is compared.
type runSide struct {
	*samerun.Side
	settings   record.Record
	checkpoint bool
}

func (a *app) openRunSide(ctx context.Context, path string) (*runSide, error) {
	if err := wantRunFile(path); err != nil {
		return nil, err
	}
	quiet := runfile.Warn(func(string) {})
	info, faults, err := runfile.Inspect(ctx, path, a.warnRun("diff"))
	switch {
	case err != nil:
		return nil, err
	case len(faults) > 0:
		return nil, faults[0]
	case info.State != nil:
		k, err := runfile.ReadState(ctx, path, quiet)
		if err != nil {
			return nil, err
		}
		return &runSide{samerun.OfCheckpoint(k), k.Settings, true}, nil
	}
	s, err := runfile.ReadOutput(ctx, []string{path}, quiet)
	if err != nil {
		return nil, err
	}
	return &runSide{samerun.OfSolution(s), s.Settings, false}, nil
}

func (a *app) diffRuns(ctx context.Context, pathA, pathB string, o diffOptions) error {
	var sides [2]*runSide
	for i, path := range []string{pathA, pathB} {
		side, err := a.openRunSide(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.reportRun("diff", path, err)
			continue
		}
		sides[i] = side
	}
	x, y := sides[0], sides[1]
	switch {
	case x == nil || y == nil:
		return statusError(statusFailed)
	case x.checkpoint != y.checkpoint:
		return errors.New("diff: one file is a checkpoint, the other an output")
	}
	d := &runDifference{A: pathA, B: pathB, Setup: compareHashes(x.settings, y.settings), Parts: []runPartDiff{}, metadata: o.metadata}
	bar := a.start("diff", min(x.FieldBytes(), y.FieldBytes()))
	parts, err := samerun.Parts(ctx, x.Side, y.Side, o.quiet, bar.add)
	bar.end()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("diff: %w", err)
	}
	d.Equal = !o.metadata || d.Setup.State == sideEqual
	for i := range parts {
		d.Equal = d.Equal && parts[i].State == samerun.Equal
		d.Parts = append(d.Parts, newRunPartDiff(&parts[i]))
	}
	switch {
	case o.quiet:
	case o.json:
		err = writeJSON(a.out, d)
	default:
		d.write(a)
	}
	if err == nil && !d.Equal {
		err = statusError(statusBad)
	}
	return err
}

func newRunPartDiff(p *samerun.Part) runPartDiff {
	d := runPartDiff{Kind: p.Kind, Name: p.Name, State: p.State, Reason: known(p.Reason), Values: p.Values, Differing: p.Differing}
	f := p.First
	if f == nil {
		return d
	}
	d.First = &runFirstDiff{Index: f.Index, Cell: f.Cell, A: f.A, B: f.B}
	if f.State >= 0 {
		d.First.State, d.First.Time = &f.State, pointer(number(f.Time))
	}
	if v, ok := f.A.(samerun.Float); ok {
		w := f.B.(samerun.Float)
		d.First.A, d.First.BitsA = number(v.Value()), pointer(bits(v.Value()))
		d.First.B, d.First.BitsB = number(w.Value()), pointer(bits(w.Value()))
	}
	return d
}

func (d *runDifference) write(a *app) {
	fmt.Fprintf(a.out, "A: %s\nB: %s\n", oneLine(d.A), oneLine(d.B))
	counts := ""
	if !d.metadata && d.Setup.State != sideEqual {
		counts = " (that counts with --metadata)"
	}
	fmt.Fprintf(a.out, "setup hash: %s%s\n", d.Setup.State, counts)
	t := newTable()
	t.row("PART", "NAME", "STATE", "VALUES", "FIRST AT", "A", "B")
	numbers := false
	for i := range d.Parts {
		p := &d.Parts[i]
		row := []string{p.Kind, p.Name, p.State}
		switch {
		case p.First != nil:
			numbers = true
			x, y := p.First.texts()
			row = append(row, fmt.Sprintf("%d of %d", p.Differing, p.Values), p.First.place(), x, y)
		case p.Reason != nil:
			row[2] += ": " + *p.Reason
		}
		t.row(row...)
	}
	if !numbers {
		t.rows[0] = t.rows[0][:3]
	}
	t.write(a.out, "")
}

// place says where a value is.
func (f *runFirstDiff) place() string {
	text := strconv.FormatInt(f.Index, 10)
	if f.Cell != nil {
		text = fmt.Sprintf("(%d, %d, %d)", f.Cell[0], f.Cell[1], f.Cell[2])
	}
	if f.Time != nil {
		text = fmt.Sprintf("%s s, %s", exact(float64(*f.Time)), text)
	}
	return text
}

// texts are the values, with their bits where both print alike.
func (f *runFirstDiff) texts() (a, b string) {
	x, ok := f.A.(number)
	if !ok {
		return fmt.Sprint(f.A), fmt.Sprint(f.B)
	}
	a, b = exact(float64(x)), exact(float64(f.B.(number)))
	if a == b {
		a, b = a+" ("+*f.BitsA+")", b+" ("+*f.BitsB+")"
	}
	return a, b
}
