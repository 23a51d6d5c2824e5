package phasefield_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A world is a whole domain on one rank. Ghost cells hold NaN: one that is used
// shows.
type world struct {
	model     phasefield.Model
	domain    grid.Domain
	layout    pack.Layout
	stencil   phasefield.Stencil
	phi, next []float64
}

func newWorld(t *testing.T, m phasefield.Model, size [3]int, periodic [3]bool, shape func(d grid.Domain) phasefield.Shape) *world {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	w := &world{
		model:  m,
		domain: grid.Domain{Size: size, Spacing: [3]float64{m.Spacing, m.Spacing, m.Spacing}, Periodic: periodic},
		layout: pack.Layout{Size: size, Halo: [3]int{1, 2, 1}},
	}
	var sides phasefield.Sides
	for axis, p := range periodic {
		if p {
			sides[axis] = [2]phasefield.Side{phasefield.Wrap, phasefield.Wrap}
		}
	}
	var err error
	if w.stencil, err = phasefield.NewStencil(w.layout, sides); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*[]float64{&w.phi, &w.next} {
		*f = make([]float64, w.layout.PaddedCells())
		for i := range *f {
			(*f)[i] = math.NaN()
		}
	}
	phasefield.Fill(w.phi, w.layout, w.domain.Box(), shape(w.domain))
	return w
}

func (w *world) run(steps int) {
	rates := w.model.Rates()
	for range steps {
		rates.Step(w.next, w.phi, w.stencil)
		w.phi, w.next = w.next, w.phi
	}
}

func (w *world) at(i, j, k int) float64 { return w.phi[w.layout.Index(i, j, k)] }

func (w *world) energy() float64 { return w.model.Energy(w.phi, w.stencil) }

func random(d grid.Domain) phasefield.Shape { return phasefield.Random(d, 7) }

func TestStepIsTheFormulaForEveryCell(t *testing.T) {
	for _, periodic := range [][3]bool{{}, {true, true, true}, {true, false, false}, {false, true, false}, {false, false, true}} {
		for _, size := range [][3]int{{7, 5, 4}, {1, 1, 1}, {2, 1, 3}, {1, 6, 2}} {
			m := phasefield.Standard()
			w := newWorld(t, m, size, periodic, random)
			neighbor := func(cell [3]int, axis, way int) float64 {
				n := cell[axis] + way
				if periodic[axis] {
					n = (n + size[axis]) % size[axis]
				}
				cell[axis] = min(max(n, 0), size[axis]-1)
				return w.at(cell[0], cell[1], cell[2])
			}
			want := make(map[[3]int]float64)
			for k := range size[2] {
				for j := range size[1] {
					for i := range size[0] {
						c := [3]int{i, j, k}
						want[c] = m.Rates().Next(w.at(i, j, k), neighbor(c, 0, -1), neighbor(c, 0, 1),
							neighbor(c, 1, -1), neighbor(c, 1, 1), neighbor(c, 2, -1), neighbor(c, 2, 1))
					}
				}
			}
			w.run(1)
			for c, v := range want {
				if got := w.at(c[0], c[1], c[2]); math.Float64bits(got) != math.Float64bits(v) {
					t.Errorf("periodic %v, size %v: cell %v is %v, want %v", periodic, size, c, got, v)
				}
			}
		}
	}
}

// The formula against one that is written down independently.
func TestNextIsAllenCahn(t *testing.T) {
	m := phasefield.Model{Mobility: 0.7, Kappa: 1.3, Width: 1.7, Spacing: 0.9, Step: 0.05}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var v [7]float64
		for i := range v {
			v[i] = 2*rng.Float64() - 1
		}
		got := m.Rates().Next(v[0], v[1], v[2], v[3], v[4], v[5], v[6])
		laplacian := 0.0
		for axis := range 3 {
			laplacian += (v[1+2*axis] - 2*v[0] + v[2+2*axis]) / math.Pow(m.Spacing, 2)
		}
		rate := m.Mobility * m.Kappa * (laplacian + (v[0]-math.Pow(v[0], 3))/math.Pow(m.Width, 2))
		if want := v[0] + m.Step*rate; math.Abs(got-want) > 1e-14 {
			t.Fatalf("next of %v is %v, want %v", v, got, want)
		}
	}
}

func TestFreeEnergyFallsAndPhiKeepsItsBounds(t *testing.T) {
	for _, step := range []float64{0.01, phasefield.Standard().MaxStep()} {
		m := phasefield.Standard()
		m.Step = step
		w := newWorld(t, m, [3]int{20, 17, 14}, [3]bool{true, false, true}, random)
		before := w.energy()
		first := before
		for n := range 300 {
			w.run(1)
			now := w.energy()
			if !(now < before) {
				t.Fatalf("dt %v, step %d: the energy was %v and is %v", step, n+1, before, now)
			}
			before = now
			for k := range w.domain.Size[2] {
				for j := range w.domain.Size[1] {
					for i := range w.domain.Size[0] {
						if c := w.at(i, j, k); !(c >= -1 && c <= 1) {
							t.Fatalf("dt %v, step %d: phi is %v", step, n+1, c)
						}
					}
				}
			}
		}
		if step > 0.1 && before > first/2 {
			t.Errorf("no phases formed: the energy was %v and is %v", first, before)
		}
	}
}

// The gradient of the energy that is measured drives the steps: the energy falls
// by the square of the change, up to terms of higher order.
func TestEnergyIsTheOneThatTheStepsFollow(t *testing.T) {
	m := phasefield.Model{Mobility: 0.5, Kappa: 2, Width: 1.5, Spacing: 0.8, Step: 1e-6}
	w := newWorld(t, m, [3]int{9, 8, 7}, [3]bool{false, true, false}, random)
	before := w.energy()
	old := append([]float64(nil), w.phi...)
	w.run(1)
	square := 0.0
	for k := range 7 {
		for j := range 8 {
			for i := range 9 {
				at := w.layout.Index(i, j, k)
				square += math.Pow(w.phi[at]-old[at], 2)
			}
		}
	}
	// dF = -integral of (dphi/dt)^2 / M dt
	want := -square / m.Step / m.Mobility * math.Pow(m.Spacing, 3)
	if got := w.energy() - before; math.Abs(got/want-1) > 1e-3 {
		t.Errorf("the energy changes by %v, want %v", got, want)
	}
}

func TestFlatInterfaceKeepsItsProfile(t *testing.T) {
	m := phasefield.Standard()
	m.Width = 4 // eight cells: the grid hardly shows
	w := newWorld(t, m, [3]int{80, 3, 2}, [3]bool{false, true, false},
		func(d grid.Domain) phasefield.Shape { return m.Plane(d, 39.5) })
	start := append([]float64(nil), w.phi...)
	w.run(2000)
	for i := range 80 {
		at := w.layout.Index(i, 1, 1)
		if math.Abs(w.phi[at]-start[at]) > 0.01 {
			t.Errorf("phi at %d was %v and is %v", i, start[at], w.phi[at])
		}
		if mirror := w.layout.Index(79-i, 0, 0); math.Abs(w.phi[at]+w.phi[mirror]) > 1e-12 {
			t.Errorf("phi at %d is %v, at the mirror image %v: the interface has moved", i, w.phi[at], w.phi[mirror])
		}
	}
}

// The eighth of a sphere whose centre is where three walls meet.
func TestSphereShrinksAtTheKnownRate(t *testing.T) {
	for _, m := range []phasefield.Model{
		phasefield.Standard(),
		{Mobility: 0.5, Kappa: 3, Width: 2.2, Spacing: 1.1, Step: 0.08},
	} {
		h := m.Spacing
		w := newWorld(t, m, [3]int{34, 34, 34}, [3]bool{}, func(d grid.Domain) phasefield.Shape {
			return m.Sphere(d, [3]float64{-h / 2, -h / 2, -h / 2}, 26*h)
		})
		square := func() float64 { // of the radius, from the volume
			volume := 8 * phasefield.Share(w.phi, w.stencil) * h * h * h
			return math.Pow(3*volume/(4*math.Pi), 2.0/3)
		}
		const steps = 150
		last := square()
		if want := 26 * 26 * h * h; math.Abs(last/want-1) > 0.02 {
			t.Fatalf("the square of the radius is %v at first, want %v", last, want)
		}
		for part := range 5 {
			w.run(steps)
			now := square()
			rate := (now - last) / (steps * m.Step)
			if want := -4 * m.Mobility * m.Kappa; math.Abs(rate/want-1) > 0.03 {
				t.Errorf("mobility %v, kappa %v, part %d: R^2 changes by %v per time, want %v", m.Mobility, m.Kappa, part, rate, want)
			}
			last = now
		}
	}
}

func TestSphereLiesWhereItWasPut(t *testing.T) {
	m := phasefield.Standard()
	m.Spacing, m.Step = 0.5, 0.02
	d := grid.Domain{Size: [3]int{20, 20, 20}, Origin: [3]float64{1, 2, 3}, Spacing: [3]float64{0.5, 0.5, 0.5}}
	shape := m.Sphere(d, [3]float64{5, 6, 7}, 3)
	for _, tc := range []struct {
		cell [3]int
		want float64
	}{
		{[3]int{8, 8, 8}, math.Tanh(3 / (math.Sqrt2 * 2))},
		{[3]int{14, 8, 8}, 0},
		{[3]int{8, 2, 8}, 0},
		{[3]int{8, 8, 16}, math.Tanh(-1 / (math.Sqrt2 * 2))},
	} {
		if got := shape(tc.cell); math.Abs(got-tc.want) > 1e-15 {
			t.Errorf("phi of %v is %v, want %v", tc.cell, got, tc.want)
		}
	}
}

func TestRandomStartDependsOnSeedAndCellAlone(t *testing.T) {
	d := grid.Domain{Size: [3]int{50, 40, 30}, Spacing: [3]float64{1, 1, 1}}
	a, other := phasefield.Random(d, 7), phasefield.Random(d, 8)
	seen := make(map[float64]bool)
	sum, same := 0.0, 0
	for k := range 30 {
		for j := range 40 {
			for i := range 50 {
				v := a([3]int{i, j, k})
				if math.Abs(v) > 0.1 {
					t.Fatalf("phi is %v", v)
				}
				if v == other([3]int{i, j, k}) {
					same++
				}
				seen[v] = true
				sum += v
			}
		}
	}
	if n := 50 * 40 * 30; len(seen) < n-1 || math.Abs(sum)/float64(n) > 0.002 || same > 0 {
		t.Errorf("%d values in %d cells, mean %v, %d the same with another seed", len(seen), n, sum/float64(n), same)
	}
	if phasefield.Random(d, 7)([3]int{3, 4, 5}) != a([3]int{3, 4, 5}) {
		t.Error("a cell is another one the second time")
	}
}

func TestEnergiesOfPartsAddUp(t *testing.T) {
	m := phasefield.Standard()
	w := newWorld(t, m, [3]int{12, 7, 6}, [3]bool{false, false, true}, random)
	const cut = 5
	total := 0.0
	for part, size := range []int{cut, 12 - cut} {
		l := pack.Layout{Size: [3]int{size, 7, 6}, Halo: [3]int{1, 0, 0}}
		phi := make([]float64, l.PaddedCells())
		for k := range 6 {
			for j := range 7 {
				for i := -1; i <= size; i++ {
					phi[l.Index(i, j, k)] = w.at(min(max(part*cut+i, 0), 11), j, k)
				}
			}
		}
		sides := phasefield.Sides{{}, {}, {phasefield.Wrap, phasefield.Wrap}}
		sides[0][1-part] = phasefield.Ghost
		s, err := phasefield.NewStencil(l, sides)
		if err != nil {
			t.Fatal(err)
		}
		total += m.Energy(phi, s)
	}
	if want := w.energy(); math.Abs(total/want-1) > 1e-12 {
		t.Errorf("the parts have the energy %v, the whole %v", total, want)
	}
}

func TestModelsThatMakeNoSense(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(m *phasefield.Model)
		want  string
	}{
		{"no mobility", func(m *phasefield.Model) { m.Mobility = 0 }, "mobility is 0"},
		{"negative kappa", func(m *phasefield.Model) { m.Kappa = -1 }, "kappa is -1"},
		{"a width that is no number", func(m *phasefield.Model) { m.Width = math.NaN() }, "width is NaN"},
		{"infinite spacing", func(m *phasefield.Model) { m.Spacing = math.Inf(1) }, "spacing is +Inf"},
		{"no time step", func(m *phasefield.Model) { m.Step = 0 }, "dt is 0"},
		{"an interface between two cells", func(m *phasefield.Model) { m.Width = 0.5 }, "width is 0.5, must be at least the spacing, 1"},
		{"a time step too long", func(m *phasefield.Model) { m.Step = 0.16 }, "dt is 0.16, must be at most 0.153"},
		{"rates beyond all numbers", func(m *phasefield.Model) { m.Mobility, m.Kappa = 1e200, 1e200 }, "dt is 0.1, must be at most 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := phasefield.Standard()
			tc.spoil(&m)
			if err := m.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestStencilsThatMakeNoSense(t *testing.T) {
	sides := phasefield.Sides{{}, {phasefield.Ghost, phasefield.Wall}, {}}
	for _, l := range []pack.Layout{
		{Size: [3]int{4, 4, 4}, Halo: [3]int{1, 0, 1}},
		{Size: [3]int{-1, 4, 4}},
	} {
		if s, err := phasefield.NewStencil(l, sides); err == nil {
			t.Errorf("layout %v: stencil is %+v", l, s)
		}
	}
	if _, err := phasefield.NewStencil(pack.Layout{Size: [3]int{1, 1, 1}}, phasefield.Sides{{7, 0}}); err == nil {
		t.Error("side 7 is something")
	}
}

// A rank may own nothing.
func TestEmptyBoxHasNothingToStep(t *testing.T) {
	for _, size := range [][3]int{{0, 3, 3}, {3, 0, 3}, {3, 3, 0}} {
		s, err := phasefield.NewStencil(pack.Layout{Size: size}, phasefield.Sides{{phasefield.Wall, phasefield.Wrap}})
		if err != nil {
			t.Fatal(err)
		}
		m := phasefield.Standard()
		m.Rates().Step(nil, nil, s)
		if e, share := m.Energy(nil, s), phasefield.Share(nil, s); e != 0 || share != 0 {
			t.Errorf("energy %v, share %v", e, share)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	l := pack.Layout{Size: [3]int{128, 128, 128}, Halo: [3]int{1, 1, 1}}
	s, err := phasefield.NewStencil(l, phasefield.Sides{})
	if err != nil {
		b.Fatal(err)
	}
	phi, next := make([]float64, l.PaddedCells()), make([]float64, l.PaddedCells())
	rates := phasefield.Standard().Rates()
	b.SetBytes(2 * 8 * l.Cells())
	for b.Loop() {
		rates.Step(next, phi, s)
		phi, next = next, phi
	}
}
