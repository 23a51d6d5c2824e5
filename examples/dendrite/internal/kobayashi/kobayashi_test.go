package kobayashi

import (
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// closed is a domain on one rank with walls that let nothing through.
type closed struct {
	*Stepper
	phi, temp []float64
}

func newClosed(t *testing.T, m Model, nx, ny, halo int) *closed {
	t.Helper()
	d := grid.Domain{Size: [3]int{nx, ny, 1}, Spacing: [3]float64{m.Spacing, m.Spacing, m.Spacing}}
	l := pack.Layout{Size: d.Size, Halo: [3]int{halo, halo, 0}}
	s, err := NewStepper(m, d, d.Box(), l)
	if err != nil {
		t.Fatal(err)
	}
	c := &closed{s, make([]float64, l.PaddedCells()), make([]float64, l.PaddedCells())}
	for i := range c.phi { // a ghost cell that is used unset shows
		c.phi[i], c.temp[i] = math.NaN(), math.NaN()
	}
	s.Start(c.phi, c.temp)
	return c
}

func (c *closed) run(from, to int64) {
	for number := from; number < to; number++ {
		c.fillGhosts(c.phi)
		c.fillGhosts(c.temp)
		c.Step(c.phi, c.temp, number)
	}
}

func (c *closed) fillGhosts(f []float64) {
	l := c.layout
	nx, ny := l.Size[0], l.Size[1]
	for j := range ny {
		f[l.Index(-1, j, 0)] = f[l.Index(0, j, 0)]
		f[l.Index(nx, j, 0)] = f[l.Index(nx-1, j, 0)]
	}
	for i := -1; i <= nx; i++ {
		f[l.Index(i, -1, 0)] = f[l.Index(i, 0, 0)]
		f[l.Index(i, ny, 0)] = f[l.Index(i, ny-1, 0)]
	}
}

func (c *closed) owned(f []float64) []float64 {
	var cells []float64
	for j := range c.layout.Size[1] {
		row := c.layout.Index(0, j, 0)
		cells = append(cells, f[row:row+c.layout.Size[0]]...)
	}
	return cells
}

func sum(cells []float64) float64 {
	total := 0.0
	for _, v := range cells {
		total += v
	}
	return total
}

func TestCrystalGrows(t *testing.T) {
	c := newClosed(t, Snowflake(), 80, 70, 1)
	solid := c.Solid(c.phi)
	if solid == 0 {
		t.Fatal("no crystal to begin with")
	}
	for at := int64(0); at < 500; at += 100 {
		c.run(at, at+100)
		if now := c.Solid(c.phi); now <= solid {
			t.Errorf("step %d: %d solid cells, 100 steps before %d", at+100, now, solid)
		} else {
			solid = now
		}
		for i, p := range c.owned(c.phi) {
			if !(p > -0.05 && p < 1.05) {
				t.Fatalf("step %d: phi of cell %d is %v", at+100, i, p)
			}
		}
		for i, v := range c.owned(c.temp) {
			if !(v > -0.1 && v < 2) {
				t.Fatalf("step %d: T of cell %d is %v", at+100, i, v)
			}
		}
	}
	if all := int64(80 * 70); solid > all/2 {
		t.Errorf("%d of %d cells are solid: the crystal has hit the walls", solid, all)
	}
}

// Heat comes from freezing only: the sum of T - K phi is constant in a closed
// domain.
func TestHeatIsConserved(t *testing.T) {
	m := Snowflake()
	c := newClosed(t, m, 60, 60, 1)
	before := sum(c.owned(c.temp)) - m.Latent*sum(c.owned(c.phi))
	c.run(0, 300)
	after := sum(c.owned(c.temp)) - m.Latent*sum(c.owned(c.phi))
	if sum(c.owned(c.temp)) < 100 {
		t.Error("no heat was released")
	}
	if math.Abs(after-before) > 1e-9*math.Abs(before) {
		t.Errorf("heat was %v and is %v", before, after)
	}
}

func TestSixArmsHaveTheSymmetryOfTheGrid(t *testing.T) {
	m := Snowflake()
	m.Noise = 0
	c := newClosed(t, m, 81, 81, 1)
	c.run(0, 400)
	phi := c.owned(c.phi)
	at := func(i, j int) float64 { return phi[j*81+i] }
	for j := range 81 {
		for i := range 81 {
			for _, other := range []float64{at(80-i, j), at(i, 80-j)} {
				if math.Abs(at(i, j)-other) > 1e-6 {
					t.Fatalf("cell %d, %d is %v, its mirror image %v", i, j, at(i, j), other)
				}
			}
		}
	}
	// The arms point along y, and none along x.
	up, right := 0, 0
	for k := 40; k < 81; k++ {
		if at(40, k) >= 0.5 {
			up++
		}
		if at(k, 40) >= 0.5 {
			right++
		}
	}
	if up <= right {
		t.Errorf("%d solid cells upwards, %d to the right", up, right)
	}
}

func TestResultIsIndependentOfHalo(t *testing.T) {
	want := newClosed(t, Snowflake(), 33, 21, 1)
	want.run(0, 50)
	for halo := 2; halo <= 4; halo++ {
		got := newClosed(t, Snowflake(), 33, 21, halo)
		got.run(0, 50)
		for name, pair := range map[string][2][]float64{
			"phi": {want.owned(want.phi), got.owned(got.phi)},
			"T":   {want.owned(want.temp), got.owned(got.temp)},
		} {
			for i := range pair[0] {
				if math.Float64bits(pair[0][i]) != math.Float64bits(pair[1][i]) {
					t.Fatalf("halo %d: %s of cell %d is %v, with halo 1 %v", halo, name, i, pair[1][i], pair[0][i])
				}
			}
		}
	}
}

func TestNoiseDependsOnSeedStepAndCell(t *testing.T) {
	run := func(seed uint64, first int64) []float64 {
		m := Snowflake()
		m.Seed, m.Noise = seed, 0.1
		c := newClosed(t, m, 20, 20, 1)
		c.run(first, first+5)
		return c.owned(c.phi)
	}
	same := func(a, b []float64) bool {
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return true
	}
	if !same(run(1, 0), run(1, 0)) {
		t.Error("two equal runs differ")
	}
	if same(run(1, 0), run(2, 0)) {
		t.Error("another seed gives the same crystal")
	}
	if same(run(1, 0), run(1, 1)) {
		t.Error("the number of the step plays no role")
	}
}

func TestNoiseIsUniform(t *testing.T) {
	const n = 1 << 16
	var mean, square float64
	key := noise(7, 3)
	for cell := range uint64(n) {
		v := key.at(cell)
		if v < -0.5 || v >= 0.5 {
			t.Fatalf("cell %d: %v", cell, v)
		}
		mean += v / n
		square += v * v / n
	}
	if math.Abs(mean) > 0.005 || math.Abs(square-1.0/12) > 0.002 {
		t.Errorf("mean %v, mean square %v; want 0, 1/12", mean, square)
	}
}

// energy is the free energy of the whole domain.
func (c *closed) energy() float64 {
	c.fillGhosts(c.phi)
	total := 0.0
	density := make([]float64, c.layout.Size[0])
	for j := range c.layout.Size[1] {
		c.Energy(c.phi, c.temp, j, density)
		total += sum(density)
	}
	return total * c.model.Spacing * c.model.Spacing
}

// At a fixed temperature the crystal grows by going down in energy.
func TestFreeEnergyDecreases(t *testing.T) {
	m := Snowflake()
	m.Noise, m.Latent = 0, 0
	c := newClosed(t, m, 60, 60, 1)
	first := c.energy()
	before := first
	for at := int64(0); at < 200; at += 5 {
		c.run(at, at+5)
		now := c.energy()
		if !(now < before) {
			t.Fatalf("step %d: the free energy is %v, 5 steps before %v", at+5, now, before)
		}
		before = now
	}
	if before > first-0.02 {
		t.Errorf("the free energy was %v and is %v: nothing has frozen", first, before)
	}
}

// The reaction term is the derivative of the energy with respect to phi.
func TestEnergyBelongsToTheEquation(t *testing.T) {
	m := Snowflake()
	m.Noise = 0
	const nx, ny = 3, 3
	well := func(p, temperature float64) float64 {
		c := newClosed(t, m, nx, ny, 2)
		for j := range ny {
			for i := range nx {
				at := c.layout.Index(i, j, 0)
				c.phi[at], c.temp[at] = p, temperature
			}
		}
		return c.energy() / (nx * ny * m.Spacing * m.Spacing)
	}
	for _, temperature := range []float64{0, 0.4, 1, 1.3} {
		for _, p := range []float64{0, 0.2, 0.5, 0.8, 1} {
			const d = 1e-4
			got := -(well(p+d, temperature) - well(p-d, temperature)) / (2 * d)
			drive := m.Alpha / math.Pi * math.Atan(m.Gamma*(m.Te-temperature))
			want := p * (1 - p) * (p - 0.5 + drive)
			if math.Abs(got-want) > 1e-7 {
				t.Errorf("phi %v, T %v: -dW/dphi is %v, the reaction %v", p, temperature, got, want)
			}
		}
	}
	if well(0, 0.3) != 0 {
		t.Error("melt has a free energy")
	}
	// A plane wave along y has the gradient's energy alone, where T = Te and W is even.
	c := newClosed(t, m, 4, 400, 1)
	for j := range 400 {
		for i := range 4 {
			at := c.layout.Index(i, j, 0)
			c.phi[at], c.temp[at] = 0.001*float64(j), m.Te
		}
	}
	density := make([]float64, 4)
	c.fillGhosts(c.phi)
	c.Energy(c.phi, c.temp, 200, density)
	slope, p := 0.001/m.Spacing, 0.2
	eps := m.Epsilon * (1 + m.Delta) // along a preferred direction
	want := eps*eps*slope*slope/2 + p*p*(1-p)*(1-p)/4
	if math.Abs(density[1]-want) > 1e-12 {
		t.Errorf("density is %v, want %v", density[1], want)
	}
}

func TestEpsilonIsTheCosineOfTheAngle(t *testing.T) {
	for _, fold := range []int{0, 1, 4, 6} {
		m := Snowflake()
		m.Fold, m.Theta0 = fold, 0.3
		s := newClosed(t, m, 3, 3, 1)
		for _, theta := range []float64{0, 0.1, 1, 2, 3, -1, -3} {
			for _, size := range []float64{1e-200, 1e-9, 1, 30} {
				eps, dEps := s.epsilon(size*math.Cos(theta), size*math.Sin(theta))
				sin, cos := math.Sincos(float64(fold) * (theta - m.Theta0))
				wantEps := m.Epsilon * (1 + m.Delta*cos)
				wantD := -m.Epsilon * m.Delta * float64(fold) * sin
				if size == 1e-200 { // no direction can be told
					wantEps, wantD = m.Epsilon, 0
				}
				if math.Abs(eps-wantEps) > 1e-15 || math.Abs(dEps-wantD) > 1e-15 {
					t.Errorf("fold %d, theta %v, size %v: %v, %v; want %v, %v", fold, theta, size, eps, dEps, wantEps, wantD)
				}
			}
		}
	}
}

func TestModelIsChecked(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(m *Model)
		want   string // empty: valid
	}{
		{"the snowflake is valid", func(m *Model) {}, ""},
		{"no anisotropy is valid", func(m *Model) { m.Delta, m.Fold = 0, 0 }, ""},
		{"NaN names the key", func(m *Model) { m.Gamma = math.NaN() }, "gamma is NaN"},
		{"infinite heat names the key", func(m *Model) { m.Latent = math.Inf(1) }, "latent is +Inf"},
		{"spacing must be positive", func(m *Model) { m.Spacing = 0 }, "spacing is 0"},
		{"relaxation time must be positive", func(m *Model) { m.Tau = -1 }, "tau is -1"},
		{"fold must not be negative", func(m *Model) { m.Fold = -6 }, "fold is -6"},
		{"a step that is unstable for T", func(m *Model) { m.Step = 3e-4 }, "step is 0.0003, the explicit scheme is stable up to 0.000225"},
		{"a step that is unstable for phi", func(m *Model) { m.Tau = 1e-5 }, "explicit scheme"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := Snowflake()
			tc.change(&m)
			err := m.Validate()
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestStepperChecksItsStorage(t *testing.T) {
	plane := grid.Domain{Size: [3]int{8, 8, 1}}
	box := grid.Box{Size: [3]int{8, 4, 1}}
	for _, tc := range []struct {
		name   string
		domain grid.Domain
		layout pack.Layout
		want   string
	}{
		{"more than one plane", grid.Domain{Size: [3]int{8, 8, 2}}, pack.Layout{Size: box.Size, Halo: [3]int{1, 1, 0}}, "2 planes"},
		{"no halo along y", plane, pack.Layout{Size: box.Size, Halo: [3]int{1, 0, 0}}, "halo is [1 0 0]"},
		{"layout of another box", plane, pack.Layout{Size: [3]int{8, 5, 1}, Halo: [3]int{1, 1, 0}}, "layout of [8 5 1] cells"},
		{"layout that is none", plane, pack.Layout{Size: box.Size, Halo: [3]int{-1, 1, 0}}, "halo along x is -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewStepper(Snowflake(), tc.domain, box, tc.layout)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestEmptyBoxIsLegal(t *testing.T) {
	d := grid.Domain{Size: [3]int{8, 8, 1}}
	box := grid.Box{Low: [3]int{8, 0, 0}, Size: [3]int{0, 8, 1}}
	l := pack.Layout{Size: box.Size}
	s, err := NewStepper(Snowflake(), d, box, l)
	if err != nil {
		t.Fatal(err)
	}
	phi := make([]float64, l.PaddedCells())
	s.Start(phi, phi)
	s.Step(phi, phi, 0)
	if n := s.Solid(phi); n != 0 {
		t.Errorf("%d solid cells of none", n)
	}
}

func BenchmarkStep(b *testing.B) {
	m := Snowflake()
	d := grid.Domain{Size: [3]int{256, 256, 1}}
	l := pack.Layout{Size: d.Size, Halo: [3]int{1, 1, 0}}
	s, err := NewStepper(m, d, d.Box(), l)
	if err != nil {
		b.Fatal(err)
	}
	phi, temp := make([]float64, l.PaddedCells()), make([]float64, l.PaddedCells())
	s.Start(phi, temp)
	number := int64(0)
	for b.Loop() {
		s.Step(phi, temp, number)
		number++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(number)/float64(d.Cells()), "ns/cell")
}
