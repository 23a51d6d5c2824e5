// Package samerun compares the output of two runs bit for bit or within a tolerance, in all
// that can repeat: wall times can't.
package samerun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/sentinel"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// ErrDiffer says that the runs are not the same.
var ErrDiffer = errors.New("the runs differ")

func init() { sentinel.Register("samerun.ErrDiffer", ErrDiffer) }

// Compare returns nil if the solutions have the same setup and no part differs. The error
// tells the first difference and matches ErrDiffer; any other says that something can't be
// read.
func Compare(ctx context.Context, a, b *runfile.Solution) error {
	hashA, errA := a.Settings.Text("setup_hash")
	hashB, errB := b.Settings.Text("setup_hash")
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if hashA != hashB {
		return fmt.Errorf("%w: setup hashes are %s and %s", ErrDiffer, hashA, hashB)
	}
	parts, err := Parts(ctx, OfSolution(a), OfSolution(b), Options{Quick: true})
	if err != nil {
		return err
	}
	for _, p := range parts {
		if !p.Same() {
			return fmt.Errorf("%w: %v", ErrDiffer, &p)
		}
	}
	return nil
}

// A Side is what is compared of a file.
type Side struct {
	layout  runfile.Layout
	times   []float64
	states  [][]float64
	updates []runfile.UpdateStates
	columns []column // of the statistics
	read    runfile.FieldReader
	bundles map[string]string // that hold fields
}

// A column is a part of the statistics.
type column struct {
	name   string
	length int
	floats bool
	at     func(i int) any // comparable; a float is one of its bits
}

func columnOf[T any](name string, values []T) column {
	_, floats := any(values).([]float64)
	return column{name, len(values), floats, func(i int) any {
		if v, ok := any(values[i]).(float64); ok {
			return Float(math.Float64bits(v))
		}
		return values[i]
	}}
}

// Float is a float64 by its bits, so that a NaN equals itself and 0 differs from -0.
type Float uint64

// Value is the number.
func (f Float) Value() float64 { return math.Float64frombits(uint64(f)) }

// String is a text that is another for every other number, but for the NaNs.
func (f Float) String() string { return strconv.FormatFloat(f.Value(), 'g', -1, 64) }

// OfSolution takes a solution.
func OfSolution(s *runfile.Solution) *Side {
	t := &s.Statistics
	return &Side{
		layout: s.Layout, times: s.Times, states: s.States, updates: s.Updates, read: s.ReadField,
		columns: []column{
			columnOf("time", t.Time), columnOf("step_length", t.StepLength), columnOf("accepted", t.Accepted),
			columnOf("error_estimate", t.ErrorEstimate), columnOf("nonlinear_iterations", t.NonlinearIterations),
			columnOf("linear_iterations", t.LinearIterations), columnOf("outcome", t.Outcome),
			columnOf("iterations/attempt", t.IterationAttempt), columnOf("iterations/residual", t.IterationResidual),
			columnOf("iterations/linear_iterations", t.IterationLinear),
		},
	}
}

// OfCheckpoint takes a checkpoint. Its record of the stepper is one text.
func OfCheckpoint(k *runfile.Checkpoint) *Side {
	s := &Side{
		layout: k.Layout, times: []float64{k.Time}, states: [][]float64{k.State}, bundles: k.Bundles,
		columns: []column{
			columnOf("saved_count", []int{k.SavedCount}), columnOf("attempted", []int64{k.Summary.Attempted}),
			columnOf("accepted", []int64{k.Summary.Accepted}), columnOf("nonlinear_iterations", []int64{k.Summary.NonlinearIterations}),
			columnOf("linear_iterations", []int64{k.Summary.LinearIterations}), columnOf("stepper (hash)", []string{k.Stepper.Hash()}),
		},
		read: func(ctx context.Context, name string, _ int, box grid.Box, dst []float64) error {
			return k.ReadField(ctx, name, box, dst)
		},
	}
	for _, u := range k.Updates {
		s.updates = append(s.updates, runfile.UpdateStates{Name: u.Name, States: [][]float64{u.State}})
	}
	return s
}

// FieldBytes is how much there is to read of the fields.
func (s *Side) FieldBytes() (n int64) {
	for _, u := range s.layout.Unknowns {
		if u.Kind == runfile.Field && s.bundles[u.Name] == "" {
			n += 8 * u.Domain.Cells() * int64(len(s.times))
		}
	}
	return n
}

// How a part compares.
const (
	Equal       = "equal"
	Within      = "within tolerance"
	Different   = "different"
	OnlyA       = "only in A"
	OnlyB       = "only in B"
	NotCompared = "not compared"
)

// Kinds of parts.
const (
	kindLayout     = "layout"
	kindTimes      = "times"
	kindUnknown    = "unknown"
	kindUpdate     = "interval update"
	kindStatistics = "statistics"
)

// A Part is what is compared of one thing that both runs should have.
type Part struct {
	Kind, Name string
	State      string
	Reason     string // why it differs otherwise than in values, or isn't compared
	Values     int64  // that were compared
	Differing  int64  // of them
	// Maxima are those of floats, where there is a tolerance; otherwise nil.
	Maxima *Maxima[Place]
	First  *First // of the values that differ, by more than a tolerance where there is one
}

// Same reports whether nothing of the part counts as a difference.
func (p *Part) Same() bool { return p.State == Equal || p.State == Within }

// A Place is where a value is.
type Place struct {
	State int     // number of the saved state, from 0; -1: it belongs to none
	Time  float64 // of that in A
	Index int64   // within the state, in the order of the file
	Cell  *[3]int // of a field
}

// First is the first value that differs.
type First struct {
	Place
	A, B any // Float, an integer, a bool or a string
}

func (p *Part) String() string {
	text := p.Kind
	if p.Name != "" {
		text += " " + p.Name
	}
	switch f := p.First; {
	case p.Reason != "":
		return text + ": " + p.Reason
	case f == nil:
		return text + ": " + p.State
	default:
		if f.State >= 0 {
			text += fmt.Sprintf(" at %v s", f.Time)
		}
		where := fmt.Sprintf("number %d", f.Index)
		if f.Cell != nil {
			where = fmt.Sprintf("cell %v", *f.Cell)
		}
		return fmt.Sprintf("%s: %s is %v and %v", text, where, f.A, f.B)
	}
}

// differs notes a difference that is none of values.
func (p *Part) differs(format string, args ...any) {
	if p.State == Equal || p.Reason == "" {
		p.State, p.Reason = Different, fmt.Sprintf(format, args...)
	}
}

// add compares the next numbers of a saved state, which begin at an index.
func (p *Part) add(state int, time float64, index int64, a, b []float64) {
	p.Values += int64(len(a))
	for i := range a {
		p.value(Float(math.Float64bits(a[i])), Float(math.Float64bits(b[i])), Place{State: state, Time: time, Index: index + int64(i)})
	}
}

// value compares two values, floats by the tolerance where there is one.
func (p *Part) value(x, y any, at Place) {
	if x == y {
		return
	}
	p.Differing++
	if p.Maxima != nil && p.Maxima.Add(x.(Float).Value(), y.(Float).Value(), at) {
		if p.State == Equal {
			p.State = Within
		}
		return
	}
	p.State = Different
	if p.First == nil {
		p.First = &First{Place: at, A: x, B: y}
	}
}

// Options say how two sides are compared. The zero value compares all bits.
type Options struct {
	// Tolerance is that of all floats but those of the layout; nil: all bits count.
	Tolerance *Tolerance
	// Quick reads nothing any more after the first difference.
	Quick bool
	// Progress is told how many bytes of fields have been read since the last call.
	Progress func(bytes int64)
}

// Parts compares two sides. States are compared by their numbers, as many as both have.
// Fields are read a slab at a time.
func Parts(ctx context.Context, a, b *Side, o Options) ([]Part, error) {
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	c := &comparing{Options: o, a: a, b: b, states: min(len(a.times), len(b.times))}
	c.add(c.layout())
	c.add(c.times())
	if err := c.unknowns(ctx); err != nil {
		return nil, err
	}
	c.updates()
	c.statistics()
	return c.parts, nil
}

type comparing struct {
	Options
	a, b   *Side
	states int // that both have
	parts  []Part
	differ bool
}

// part is one of values.
func (c *comparing) part(kind, name string) Part {
	p := Part{Kind: kind, Name: name, State: Equal}
	if c.Tolerance != nil {
		p.Maxima = &Maxima[Place]{Tolerance: *c.Tolerance}
	}
	return p
}

func (c *comparing) add(p Part) {
	c.parts = append(c.parts, p)
	c.differ = c.differ || !p.Same()
}

// layout compares what gives the values their meaning, but not which unknowns there are.
func (c *comparing) layout() Part {
	p := Part{Kind: kindLayout, State: Equal}
	a, b := &c.a.layout, &c.b.layout
	if !slices.Equal(a.R, b.R) {
		p.differs("the radial grids differ")
	}
	for _, g := range a.Grids {
		if h := b.Grid(g.Name); h != nil && !reflect.DeepEqual(g, *h) {
			p.differs("the momentum grids %s differ", g.Name)
		}
	}
	for _, u := range a.Unknowns {
		v := b.Unknown(u.Name)
		switch {
		case v == nil:
		case !slices.Equal(u.Grids, v.Grids):
			p.differs("the momentum grids of %s are %q in A, %q in B", u.Name, u.Grids, v.Grids)
		case u.Unit != v.Unit:
			p.differs("the unit of %s is %q in A, %q in B", u.Name, u.Unit, v.Unit)
		case u.Domain != v.Domain:
			p.differs("the grid of the field %s is %+v in A, %+v in B", u.Name, u.Domain, v.Domain)
		}
	}
	return p
}

func (c *comparing) times() Part {
	p := c.part(kindTimes, "")
	for i := range c.states {
		p.add(i, c.a.times[i], 0, c.a.times[i:i+1], c.b.times[i:i+1])
	}
	if n, m := len(c.a.times), len(c.b.times); n != m {
		p.differs("%d saved states in A, %d in B", n, m)
	}
	return p
}

func (c *comparing) unknowns(ctx context.Context) error {
	for _, u := range c.a.layout.Unknowns {
		p := c.part(kindUnknown, u.Name)
		if v := c.b.layout.Unknown(u.Name); v == nil {
			p.State = OnlyA
		} else if err := c.unknown(ctx, &p, u, *v); err != nil {
			return err
		}
		c.add(p)
	}
	for _, u := range c.b.layout.Unknowns {
		if c.a.layout.Unknown(u.Name) == nil {
			c.add(Part{Kind: kindUnknown, Name: u.Name, State: OnlyB})
		}
	}
	return nil
}

func (c *comparing) unknown(ctx context.Context, p *Part, u, v runfile.Unknown) error {
	if u.Kind != v.Kind {
		p.differs("%s in A, %s in B", u.Kind, v.Kind)
		return nil
	}
	if u.Kind == runfile.Field {
		return c.field(ctx, p, u, v)
	}
	from, to := c.a.layout.Range(u.Name)
	fromB, toB := c.b.layout.Range(u.Name)
	if to-from != toB-fromB {
		p.differs("%d numbers in A, %d in B", to-from, toB-fromB)
		return nil
	}
	for i := range c.states {
		p.add(i, c.a.times[i], 0, c.a.states[i][from:to], c.b.states[i][fromB:toB])
	}
	return nil
}

// slabCells is the number of cells of a field that are read at once, unless a plane has
// more.
const slabCells = 1 << 18

func (c *comparing) field(ctx context.Context, p *Part, u, v runfile.Unknown) error {
	size := u.Domain.Size
	switch {
	case c.a.bundles[u.Name] != "" || c.b.bundles[u.Name] != "":
		p.State, p.Reason = NotCompared, "a bundle holds it"
		return nil
	case size != v.Domain.Size:
		p.differs("%v cells in A, %v in B", size, v.Domain.Size)
		return nil
	}
	defer p.nameCell(size)
	plane := size[0] * size[1]
	planes := max(1, min(size[2], slabCells/plane))
	cellsA, cellsB := make([]float64, planes*plane), make([]float64, planes*plane)
	for i := range c.states {
		for z := 0; z < size[2]; z += planes {
			if c.Quick && (c.differ || !p.Same()) {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			box := grid.Box{Low: [3]int{0, 0, z}, Size: [3]int{size[0], size[1], min(planes, size[2]-z)}}
			x, y := cellsA[:box.Cells()], cellsB[:box.Cells()]
			if err := c.a.read(ctx, u.Name, i, box, x); err != nil {
				return err
			}
			if err := c.b.read(ctx, u.Name, i, box, y); err != nil {
				return err
			}
			p.add(i, c.a.times[i], int64(z)*int64(plane), x, y)
			c.Progress(8 * box.Cells())
		}
	}
	return nil
}

// nameCell finds out the cells of the places of a field.
func (p *Part) nameCell(size [3]int) {
	if f := p.First; f != nil {
		f.nameCell(size)
	}
	if m := p.Maxima; m != nil {
		m.AbsAt.nameCell(size)
		m.RelAt.nameCell(size)
	}
}

func (p *Place) nameCell(size [3]int) {
	nx, ny := int64(size[0]), int64(size[1])
	p.Cell = &[3]int{int(p.Index % nx), int(p.Index / nx % ny), int(p.Index / nx / ny)}
}

func (c *comparing) updates() {
	named := func(list []runfile.UpdateStates, name string) int {
		return slices.IndexFunc(list, func(u runfile.UpdateStates) bool { return u.Name == name })
	}
	for _, u := range c.a.updates {
		p := c.part(kindUpdate, u.Name)
		if n := named(c.b.updates, u.Name); n < 0 {
			p.State = OnlyA
		} else {
			for i := range c.states {
				x, y := u.States[i], c.b.updates[n].States[i]
				if len(x) != len(y) {
					p.differs("%d numbers in A, %d in B", len(x), len(y))
					break
				}
				p.add(i, c.a.times[i], 0, x, y)
			}
		}
		c.add(p)
	}
	for _, u := range c.b.updates {
		if named(c.a.updates, u.Name) < 0 {
			c.add(Part{Kind: kindUpdate, Name: u.Name, State: OnlyB})
		}
	}
}

func (c *comparing) statistics() {
	for k, u := range c.a.columns {
		v := c.b.columns[k]
		p := c.part(kindStatistics, u.name)
		if !u.floats {
			p.Maxima = nil
		}
		for i := range min(u.length, v.length) {
			p.Values++
			p.value(u.at(i), v.at(i), Place{State: -1, Index: int64(i)})
		}
		if u.length != v.length {
			p.differs("%d entries in A, %d in B", u.length, v.length)
		}
		c.add(p)
	}
}
