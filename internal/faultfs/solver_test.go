//go:build linux

package faultfs_test

import (
	"fmt"
	"math"

	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

var domain = grid.Domain{Size: [3]int{9, 7, 5}, Spacing: [3]float64{1, 1, 1}, Periodic: [3]bool{true, false, true}}

var ids = []string{"phi", "T"}

// cellOf is a cell of a field in the state of an increment.
func cellOf(id string, increment int64, cell [3]int) float64 {
	return float64(increment)*1e6 + float64(len(id))*1e4 + float64(cell[0]+10*cell[1]+100*cell[2])
}

// solver is a rank of a solver, whose state is a function of the increment.
type solver struct {
	fields    []*field.Field[float64]
	increment int64
	results   int64
}

func newSolver(w *world, increment int64) (*solver, error) {
	decomposition, err := grid.Decompose(domain, w.c.Size())
	if err != nil {
		return nil, err
	}
	box := decomposition.Box(w.c.Rank())
	if w.short {
		box = domain.Box()
		box.Low[0] = domain.Size[0] * w.c.Rank() / w.c.Size()
		box.Size[0] = domain.Size[0]*(w.c.Rank()+1)/w.c.Size() - box.Low[0]
	}
	s := new(solver)
	for range ids {
		f, err := field.New[float64](domain, box, field.Halo(1))
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, f)
	}
	return s, s.advance(increment)
}

// each calls do for every owned cell.
func (s *solver) each(do func(id string, cell [3]int, value *float64) error) error {
	for i, f := range s.fields {
		data, err := f.MutableView()
		if err != nil {
			return err
		}
		for c := range f.Padded().Cells() {
			cell := f.Global(c[0], c[1], c[2])
			if f.Box().ContainsCell(cell) {
				if err := do(ids[i], cell, &data[f.Index(c[0], c[1], c[2])]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *solver) advance(increment int64) error {
	s.increment, s.results = increment, 2*increment
	return s.each(func(id string, cell [3]int, value *float64) error {
		*value = cellOf(id, increment, cell)
		return nil
	})
}

// check reports whether the cells are those of an increment.
func (s *solver) check(increment int64) error {
	return s.each(func(id string, cell [3]int, value *float64) error {
		if want := cellOf(id, increment, cell); *value != want {
			return fmt.Errorf("field %q: cell %v is %v, want %v of increment %d", id, cell, *value, want, increment)
		}
		return nil
	})
}

func (s *solver) Accepted() (int64, float64) { return s.increment, float64(s.increment) / 3 }

func (s *solver) Restore(increment int64, _ float64) error {
	s.increment = increment
	return nil
}

func (s *solver) named() []field.Named {
	list := make([]field.Named, len(ids))
	for i, id := range ids {
		list[i] = field.Named{ID: id, Field: s.fields[i]}
	}
	return list
}

func (s *solver) state() publish.State {
	n, time := s.Accepted()
	return publish.State{Fields: s.named(), Time: time, Increment: n, ResultCounter: s.results, Method: "euler"}
}

func (s *solver) objects() publish.Solver {
	return publish.Solver{Fields: s.named(), Clock: s, Results: &s.results, Method: "euler"}
}

// checkBundle reports whether the bundle at dir is good, and the state of an increment.
func checkBundle(w *world, dir string, increment int64) error {
	b, err := publish.OpenBundle(dir, publish.VerifyOnOpen(w.ctx))
	if err != nil {
		return err
	}
	defer b.Close()
	m := b.Metadata()
	if m.AcceptedIncrement != increment || m.AcceptedTime != float64(increment)/3 || m.ResultCounter != 2*increment {
		return fmt.Errorf("%s: has the metadata of increment %d, want %d", dir, m.AcceptedIncrement, increment)
	}
	for _, id := range ids {
		got := make([]float64, domain.Size[0]*domain.Size[1]*domain.Size[2])
		if err := b.ReadField(id, got); err != nil {
			return err
		}
		if err := checkCells(id, increment, got); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// checkCells is for the cells of a whole field, x fastest.
func checkCells(id string, increment int64, got []float64) error {
	i := 0
	for z := range domain.Size[2] {
		for y := range domain.Size[1] {
			for x := range domain.Size[0] {
				if want := cellOf(id, increment, [3]int{x, y, z}); math.Float64bits(got[i]) != math.Float64bits(want) {
					return fmt.Errorf("field %q: cell %d, %d, %d is %v, want %v", id, x, y, z, got[i], want)
				}
				i++
			}
		}
	}
	return nil
}
