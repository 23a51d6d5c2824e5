package publish

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// testDomain is small, uneven for 2, 3 and 4 ranks, and bounded on one axis.
var testDomain = grid.Domain{
	Size:     [3]int{5, 7, 3},
	Origin:   [3]float64{-1.5, 0, 2.25},
	Spacing:  [3]float64{0.5, 0.1, 1. / 3},
	Periodic: [3]bool{true, false, true},
}

// cellValue is what cell (i, j, k) of a field holds in the state of an increment.
func cellValue(id string, increment int64, cell [3]int) float64 {
	h := uint64(increment) + 1
	for _, b := range []byte(id) {
		h = h*1099511628211 + uint64(b)
	}
	for _, n := range cell {
		h = h*6364136223846793005 + uint64(n) + 1442695040888963407
	}
	h ^= h >> 29
	return math.Float64frombits(h%(1<<62)|1<<62) * math.Copysign(1, float64(int64(h)))
}

// ghostValue fills ghost cells, so that a test sees when one is touched.
const ghostValue = -12345.5

type testClock struct {
	increment int64
	time      float64
}

func (c *testClock) Accepted() (int64, float64) { return c.increment, c.time }
func (c *testClock) Restore(n int64, t float64) error {
	c.increment, c.time = n, t
	return nil
}

func testTime(increment int64) float64 { return float64(increment) / 3 }

// testSolver is a rank of a solver with two fields.
type testSolver struct {
	ids     []string
	fields  []*field.Field[float64]
	clock   testClock
	results int64
}

func newTestSolver(c *comm.Comm, halo int, ids ...string) (*testSolver, error) {
	dec, err := grid.Decompose(testDomain, c.Size())
	if err != nil {
		return nil, err
	}
	s := &testSolver{ids: ids}
	for range ids {
		f, err := field.New[float64](testDomain, dec.Box(c.Rank()), field.Halo(halo))
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, f)
	}
	return s, s.each(func(int, [3]int) (float64, bool) { return ghostValue, true })
}

// each sets all cells for which f says so; owned cells are given by their global
// indices, ghost cells by -1.
func (s *testSolver) each(f func(i int, cell [3]int) (float64, bool)) error {
	for i, fld := range s.fields {
		data, err := fld.MutableView()
		if err != nil {
			return err
		}
		for c := range fld.Padded().Cells() {
			cell := fld.Global(c[0], c[1], c[2])
			if !fld.Box().ContainsCell(cell) {
				cell = [3]int{-1, -1, -1}
			}
			if v, set := f(i, cell); set {
				data[fld.Index(c[0], c[1], c[2])] = v
			}
		}
	}
	return nil
}

// advance brings the solver to the state of an increment.
func (s *testSolver) advance(increment int64) error {
	s.clock = testClock{increment, testTime(increment)}
	s.results = increment * 2
	return s.each(func(i int, cell [3]int) (float64, bool) {
		return cellValue(s.ids[i], increment, cell), cell[0] >= 0
	})
}

// check reports whether the solver is exactly in the state of an increment, ghost
// cells untouched.
func (s *testSolver) check(increment int64) error {
	if s.clock != (testClock{increment, testTime(increment)}) || s.results != increment*2 {
		return fmt.Errorf("clock %+v, results %d: want the state of increment %d", s.clock, s.results, increment)
	}
	for i, fld := range s.fields {
		data, err := fld.View()
		if err != nil {
			return err
		}
		for c := range fld.Padded().Cells() {
			cell, want := fld.Global(c[0], c[1], c[2]), ghostValue
			if fld.Box().ContainsCell(cell) {
				want = cellValue(s.ids[i], increment, cell)
			}
			if got := data[fld.Index(c[0], c[1], c[2])]; math.Float64bits(got) != math.Float64bits(want) {
				return fmt.Errorf("field %q cell %v is %v, want %v", s.ids[i], cell, got, want)
			}
		}
	}
	return nil
}

func (s *testSolver) named() []field.Named {
	list := make([]field.Named, len(s.ids))
	for i, id := range s.ids {
		list[i] = field.Named{ID: id, Field: s.fields[i]}
	}
	return list
}

func (s *testSolver) solver() Solver {
	return Solver{Fields: s.named(), Clock: &s.clock, Results: &s.results, Method: "euler"}
}

func (s *testSolver) state() State {
	return State{Fields: s.named(), Time: s.clock.time, Increment: s.clock.increment, ResultCounter: s.results, Method: "euler"}
}

// onRanks runs f on in-process ranks and returns what each returned. It fails the
// test unless all errors have the same text.
func onRanks(t testing.TB, ranks int, f func(c *comm.Comm) error) error {
	t.Helper()
	errs := make([]error, ranks)
	if err := comm.Run(ranks, func(c *comm.Comm) error {
		errs[c.Rank()] = f(c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for r, err := range errs {
		if fmt.Sprint(err) != fmt.Sprint(errs[0]) {
			t.Fatalf("the ranks' outcomes differ: rank 0 has %v, rank %d has %v", errs[0], r, err)
		}
	}
	return errs[0]
}

// saveStep publishes the state of an increment as dir/step_<increment>.
func saveStep(t testing.TB, fsys vfs.FS, ranks int, dir string, increment int64, opts ...Option) error {
	t.Helper()
	return onRanks(t, ranks, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi", "T")
		if err == nil {
			err = s.advance(increment)
		}
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		opts := append([]Option{Filesystem(fsys)}, opts...)
		return SaveBundle(context.Background(), c, filepath.Join(dir, StepName(increment)), s.state(), opts...)
	})
}

// loadStep loads a bundle on some ranks and checks it cell by cell.
func loadStep(t testing.TB, fsys vfs.FS, ranks int, path string, increment int64, opts ...Option) error {
	t.Helper()
	return onRanks(t, ranks, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 2, "T", "phi")
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		opts := append([]Option{Filesystem(fsys)}, opts...)
		l, err := LoadBundle(context.Background(), c, path, Request{Fields: s.named(), Method: "euler"}, opts...)
		if err != nil {
			return err
		}
		if !l.Verified {
			return errors.New("the bundle was not verified")
		}
		s.clock = testClock{l.Metadata.AcceptedIncrement, l.Metadata.AcceptedTime}
		s.results = l.Metadata.ResultCounter
		return c.Agree(context.Background(), s.check(increment))
	})
}
