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
	A      string        `json:"a"`
	B      string        `json:"b"`
	ABytes []byte        `json:"a_bytes,omitempty"`
	BBytes []byte        `json:"b_bytes,omitempty"`
	Equal  bool          `json:"equal"`
	Setup  hashDiff      `json:"setup_hash"`
	Parts  []runPartDiff `json:"parts"`
	// Tolerance is that of floats; without one all bits count.
	Tolerance *toleranceJSON `json:"tolerance,omitempty"`

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
	Maxima    *runMaxima    `json:"maxima,omitempty"` // of floats, with a tolerance
}

// runPlace is where a value is.
type runPlace struct {
	State *int    `json:"saved_state"`
	Time  *number `json:"time"`
	Index int64   `json:"index"`
	Cell  *[3]int `json:"cell"`
}

// runFirstDiff is the first value that counts as differing. Bits are those of a float.
type runFirstDiff struct {
	runPlace
	A     any     `json:"a"`
	B     any     `json:"b"`
	BitsA *string `json:"a_bits"`
	BitsB *string `json:"b_bits"`
}

// runMaxima are the largest differences by a tolerance. A place is null where there is no
// difference.
type runMaxima struct {
	Beyond    int64     `json:"beyond"`
	NonFinite int64     `json:"non_finite"` // of them, those with a NaN or an infinity
	MaxAbs    number    `json:"max_abs"`
	MaxAbsAt  *runPlace `json:"max_abs_at"`
	MaxRel    number    `json:"max_rel"`
	MaxRelAt  *runPlace `json:"max_rel_at"`
}

// runSide is a file that is compared.
type runSide struct {
	*samerun.Side
	path       string
	settings   record.Record
	checkpoint bool
}

func (s *runSide) kind() string {
	if s.checkpoint {
		return "a checkpoint"
	}
	return "an output"
}

func (a *app) openRunSide(ctx context.Context, path string) (*runSide, error) {
	if err := a.wantRunFile(path); err != nil {
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
		return &runSide{samerun.OfCheckpoint(k), path, k.Settings, true}, nil
	}
	s, err := runfile.ReadOutput(ctx, []string{path}, quiet)
	if err != nil {
		return nil, err
	}
	return &runSide{samerun.OfSolution(s), path, s.Settings, false}, nil
}

func (r runFile) diff(ctx context.Context, with subject, o diffOptions) error {
	if o.sidecar {
		return o.misused(errors.New("diff: a run file has no sidecar"))
	}
	a, pathA, pathB := r.app, r.path, with.(runFile).path
	x, errA := a.openRunSide(ctx, pathA)
	y, errB := a.openRunSide(ctx, pathB)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if a.reportRunSides(pathA, pathB, errA, errB) {
		return statusError(statusFailed)
	}
	d, err := a.compareRuns(ctx, x, y, o)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("diff: %w", err)
	}
	if err := a.print(d, o); err != nil || d.Equal {
		return err
	}
	return statusError(statusBad)
}

// reportRunSides is reportSides for run files.
func (a *app) reportRunSides(pathA, pathB string, errA, errB error) bool {
	return reportBoth(a.reportRun, pathA, pathB, errA, errB)
}

func (a *app) compareRuns(ctx context.Context, x, y *runSide, o diffOptions) (*runDifference, error) {
	if x.checkpoint != y.checkpoint {
		return nil, errors.New(ofTwoKinds(x.path, x.kind(), y.path, y.kind()))
	}
	d := &runDifference{
		A: x.path, B: y.path, ABytes: notUTF8(x.path), BBytes: notUTF8(y.path), Setup: compareHashes(x.settings, y.settings), Parts: []runPartDiff{},
		Tolerance: newToleranceJSON(o.tolerance), metadata: o.metadata,
	}
	bar := a.start("diff", min(x.FieldBytes(), y.FieldBytes()))
	parts, err := samerun.Parts(ctx, x.Side, y.Side, samerun.Options{Tolerance: o.tolerance, Quick: o.quiet, Progress: bar.add})
	bar.end()
	if err != nil {
		if f, ok := errors.AsType[*runfile.FileError](err); ok {
			err = fmt.Errorf("read field: %w", f)
		}
		return nil, err
	}
	d.Equal = !o.metadata || d.Setup.State == sideEqual
	for i := range parts {
		d.Equal = d.Equal && parts[i].Same()
		d.Parts = append(d.Parts, newRunPartDiff(&parts[i]))
	}
	return d, nil
}

func newRunPartDiff(p *samerun.Part) runPartDiff {
	d := runPartDiff{Kind: p.Kind, Name: p.Name, State: p.State, Reason: known(p.Reason), Values: p.Values, Differing: p.Differing}
	if m := p.Maxima; m != nil {
		d.Maxima = &runMaxima{Beyond: m.Beyond, NonFinite: m.NonFinite, MaxAbs: number(m.Abs), MaxRel: number(m.Rel)}
		if m.Abs > 0 {
			d.Maxima.MaxAbsAt = pointer(newRunPlace(m.AbsAt))
		}
		if m.Rel > 0 {
			d.Maxima.MaxRelAt = pointer(newRunPlace(m.RelAt))
		}
	}
	f := p.First
	if f == nil {
		return d
	}
	d.First = &runFirstDiff{runPlace: newRunPlace(f.Place), A: f.A, B: f.B}
	if v, ok := f.A.(samerun.Float); ok {
		w := f.B.(samerun.Float)
		d.First.A, d.First.BitsA = number(v.Value()), pointer(bits(v.Value()))
		d.First.B, d.First.BitsB = number(w.Value()), pointer(bits(w.Value()))
	}
	return d
}

func newRunPlace(p samerun.Place) runPlace {
	q := runPlace{Index: p.Index, Cell: p.Cell}
	if p.State >= 0 {
		q.State, q.Time = &p.State, pointer(number(p.Time))
	}
	return q
}

func (d *runDifference) write(a *app) {
	fmt.Fprintf(a.out, "A: %s\nB: %s\n", oneLine(d.A), oneLine(d.B))
	if d.Tolerance != nil {
		fmt.Fprintf(a.out, "tolerance: %v\n", d.Tolerance)
	}
	counts := ""
	if !d.metadata && d.Setup.State != sideEqual {
		counts = " (that counts with --metadata)"
	}
	fmt.Fprintf(a.out, "setup hash: %s%s\n", d.Setup.State, counts)
	t := newTable()
	if d.Tolerance == nil {
		t.row("PART", "NAME", "STATE", "VALUES", "FIRST AT", "A", "B")
	} else {
		t.row("PART", "NAME", "STATE", "BEYOND", "MAX ABS", "AT", "MAX REL", "AT", "FIRST BEYOND", "A", "B")
	}
	columns := 3
	for i := range d.Parts {
		p := &d.Parts[i]
		row := []string{p.Kind, p.Name, p.State}
		if p.Reason != nil {
			row[2] += ": " + *p.Reason
		}
		switch {
		case p.Differing == 0:
		case p.Maxima != nil:
			row = append(row, p.maxima()...)
		case d.Tolerance != nil: // integers or texts: each difference is beyond
			row = append(row, fmt.Sprintf("%d of %d", p.Differing, p.Values), "", "", "", "")
		default:
			row = append(row, fmt.Sprintf("%d of %d", p.Differing, p.Values))
		}
		if p.First != nil {
			x, y := p.First.texts()
			row = append(row, p.First.place(), x, y)
		}
		columns = max(columns, len(row))
		t.row(row...)
	}
	t.rows[0] = t.rows[0][:columns]
	t.write(a.out, "")
	for _, p := range d.Parts {
		if p.Maxima != nil && p.Maxima.NonFinite > 0 {
			fmt.Fprintf(a.out, "%s: the maxima leave out %s with a NaN or an infinity\n", oneLine(p.title()), count(p.Maxima.NonFinite, "value"))
		}
	}
}

// title is the kind of a part and its name.
func (p *runPartDiff) title() string {
	if p.Name == "" {
		return p.Kind
	}
	return p.Kind + " " + p.Name
}

func (p *runPartDiff) maxima() []string {
	m := p.Maxima
	row := []string{fmt.Sprintf("%d of %d", m.Beyond, p.Values), rough(float64(m.MaxAbs)), "", rough(float64(m.MaxRel)), ""}
	if m.MaxAbsAt != nil {
		row[2] = m.MaxAbsAt.place()
	}
	if m.MaxRelAt != nil {
		row[4] = m.MaxRelAt.place()
	}
	return row
}

// place says where a value is.
func (f *runPlace) place() string {
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
		return shortened(fmt.Sprint(f.A)), shortened(fmt.Sprint(f.B))
	}
	a, b = exact(float64(x)), exact(float64(f.B.(number)))
	if a == b {
		a, b = a+" ("+*f.BitsA+")", b+" ("+*f.BitsB+")"
	}
	return a, b
}
