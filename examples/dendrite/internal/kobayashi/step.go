package kobayashi

import (
	"fmt"
	"math"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Reach is how far, in cells along x and y, the new value of a cell depends on
// old ones.
const Reach = 1

// nothing is the size below which phi counts as 0. The tails of phi far from the
// crystal then end, instead of running through all denormal numbers.
const nothing = 1e-20

// A Stepper advances the owned cells of one box. One goroutine uses it at a
// time.
type Stepper struct {
	model  Model
	domain grid.Domain
	box    grid.Box
	layout pack.Layout

	// Work arrays: the new values of the owned cells, and the fluxes of phi
	// through the lower faces of one row.
	newPhi, newT []float64
	lower        []float64

	cos0, sin0 float64 // of Fold * Theta0
}

// NewStepper makes a stepper for a box, which may be empty, of a domain that is
// one cell thick along z. The layout is that of the padded storage of phi and T,
// with at least [Reach] ghost cells along x and y where there are cells.
func NewStepper(m Model, domain grid.Domain, box grid.Box, layout pack.Layout) (*Stepper, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if domain.Size[2] != 1 {
		return nil, fmt.Errorf("kobayashi: the domain has %d planes, must be 1", domain.Size[2])
	}
	if err := layout.Validate(); err != nil {
		return nil, fmt.Errorf("kobayashi: %w", err)
	}
	if layout.Size != box.Size {
		return nil, fmt.Errorf("kobayashi: layout of %v cells for the box %v", layout.Size, box)
	}
	if !box.Empty() && (layout.Halo[0] < Reach || layout.Halo[1] < Reach) {
		return nil, fmt.Errorf("kobayashi: halo is %v, must be at least %d along x and y", layout.Halo, Reach)
	}
	sin0, cos0 := math.Sincos(float64(m.Fold) * m.Theta0)
	return &Stepper{
		model:  m,
		domain: domain,
		box:    box,
		layout: layout,
		newPhi: make([]float64, box.Cells()),
		newT:   make([]float64, box.Cells()),
		lower:  make([]float64, box.Size[0]),
		cos0:   cos0,
		sin0:   sin0,
	}, nil
}

// Start sets the owned cells to the state at time 0: melt at T = 0 around a disc
// of crystal in the middle of the domain.
func (s *Stepper) Start(phi, temp []float64) {
	for j := range s.box.Size[1] {
		for i := range s.box.Size[0] {
			x := float64(s.box.Low[0]+i) - float64(s.domain.Size[0]-1)/2
			y := float64(s.box.Low[1]+j) - float64(s.domain.Size[1]-1)/2
			at := s.layout.Index(i, j, 0)
			phi[at], temp[at] = 0, 0
			if math.Hypot(x, y)*s.model.Spacing <= s.model.Radius {
				phi[at] = 1
			}
		}
	}
}

// Solid counts the owned cells that are crystal: those with phi of 1/2 or more.
func (s *Stepper) Solid(phi []float64) int64 {
	n := int64(0)
	for j := range s.box.Size[1] {
		row := s.layout.Index(0, j, 0)
		for _, p := range phi[row : row+s.box.Size[0]] {
			if p >= 0.5 {
				n++
			}
		}
	}
	return n
}

// Energy puts the density of the free energy in the owned cells of row j into dst,
//
//	eps(theta)^2/2 |grad(phi)|^2 + W(phi, m(T)),
//
// where -dW/dphi is the reaction term without the noise, and W is 0 in the melt. The
// gradient is that between the neighbours on both sides, so ghost cells of phi must
// hold the values of the same time.
func (s *Stepper) Energy(phi, temp []float64, j int, dst []float64) {
	m := &s.model
	amplitude := m.Alpha / math.Pi
	a, b, c := s.around(phi, j-1), s.around(phi, j), s.around(phi, j+1)
	t := s.around(temp, j)
	for i := range s.box.Size[0] {
		gx := (b[i+2] - b[i]) / (2 * m.Spacing)
		gy := (c[i+1] - a[i+1]) / (2 * m.Spacing)
		gradient := 0.0
		if gx != 0 || gy != 0 {
			eps, _ := s.epsilon(gx, gy)
			gradient = eps * eps / 2 * (float64(gx*gx) + float64(gy*gy))
		}
		p := b[i+1]
		drive := float64(amplitude * math.Atan(m.Gamma*(m.Te-t[i+1])))
		well := p * p * ((0.25 - drive/2) + float64(p*((drive/3-0.5)+float64(p/4))))
		dst[i] = float64(gradient) + float64(well)
	}
}

// Step advances the owned cells of phi and T by one time step, the one with the
// given number. Ghost cells must hold the values of the same time; they become
// stale.
func (s *Stepper) Step(phi, temp []float64, number int64) {
	if s.box.Empty() {
		return
	}
	for j := range s.box.Size[1] {
		s.row(phi, temp, j, number)
	}
	nx := s.box.Size[0]
	for j := range s.box.Size[1] {
		row := s.layout.Index(0, j, 0)
		copy(phi[row:row+nx], s.newPhi[j*nx:])
		copy(temp[row:row+nx], s.newT[j*nx:])
	}
}

// row works out the new values of row j.
func (s *Stepper) row(phi, temp []float64, j int, number int64) {
	m := &s.model
	nx := s.box.Size[0]
	var (
		rateX  = m.Step / (m.Spacing * m.Tau) // of phi by fluxes
		rateR  = m.Step / m.Tau               // of phi by reaction
		rateT  = m.Step / (m.Spacing * m.Spacing)
		drive  = m.Alpha / math.Pi
		random = noise(m.Seed, number)
		cell   = uint64(s.box.Low[1]+j)*uint64(s.domain.Size[0]) + uint64(s.box.Low[0])
	)

	// Owned cell i of these rows is at i + 1.
	a, b, c := s.around(phi, j-1), s.around(phi, j), s.around(phi, j+1)
	tBelow, t, tAbove := s.around(temp, j-1), s.around(temp, j), s.around(temp, j+1)

	if j == 0 {
		for i := range nx {
			s.lower[i] = s.fluxY(a[i:i+3], b[i:i+3])
		}
	}
	left := s.fluxX(a[0:2], b[0:2], c[0:2])
	for i := range nx {
		right := s.fluxX(a[i+1:i+3], b[i+1:i+3], c[i+1:i+3])
		upper := s.fluxY(b[i:i+3], c[i:i+3])
		p, temperature := b[i+1], t[i+1]

		newPhi := p + float64(rateX*((right-left)+(upper-s.lower[i])))
		if interfacial := p * (1 - p); interfacial != 0 {
			force := p - 0.5 +
				float64(drive*math.Atan(m.Gamma*(m.Te-temperature))) +
				float64(m.Noise*random.at(cell+uint64(i)))
			newPhi += float64(rateR * interfacial * force)
		}
		if math.Abs(newPhi) < nothing {
			newPhi = 0
		}
		laplace := ((t[i] + t[i+2]) + (tBelow[i+1] + tAbove[i+1])) - float64(4*temperature)

		at := j*nx + i
		s.newPhi[at] = newPhi
		s.newT[at] = temperature + float64(rateT*laplace) + float64(m.Latent*(newPhi-p))
		left, s.lower[i] = right, upper
	}
}

// around returns the owned cells of row j with one more cell on each side.
func (s *Stepper) around(f []float64, j int) []float64 {
	at := s.layout.Index(-1, j, 0)
	return f[at : at+s.box.Size[0]+2]
}

// fluxX is the flux of phi through the face between two neighbours along x, of
// which b has the values; a and c are the pairs below and above.
func (s *Stepper) fluxX(a, b, c []float64) float64 {
	gx := (b[1] - b[0]) / s.model.Spacing
	gy := ((c[0] + c[1]) - (a[0] + a[1])) / (4 * s.model.Spacing)
	if gx == 0 && gy == 0 {
		return 0
	}
	eps, dEps := s.epsilon(gx, gy)
	return eps * (float64(eps*gx) - float64(dEps*gy))
}

// fluxY is the flux of phi through the face between two neighbours along y: the
// middle cells of a, the row below the face, and b, the row above.
func (s *Stepper) fluxY(a, b []float64) float64 {
	gx := ((a[2] + b[2]) - (a[0] + b[0])) / (4 * s.model.Spacing)
	gy := (b[1] - a[1]) / s.model.Spacing
	if gx == 0 && gy == 0 {
		return 0
	}
	eps, dEps := s.epsilon(gx, gy)
	return eps * (float64(eps*gy) + float64(dEps*gx))
}

// epsilon returns eps and eps' for a gradient. With u = (gx + i gy)/|g| the
// cosine and sine of n theta are the parts of u^n.
func (s *Stepper) epsilon(gx, gy float64) (eps, dEps float64) {
	m := &s.model
	norm := math.Sqrt(float64(gx*gx) + float64(gy*gy))
	if norm == 0 { // squares that underflow
		return m.Epsilon, 0
	}
	x, y := gx/norm, gy/norm
	cos, sin := 1.0, 0.0
	for n := m.Fold; n > 0; n >>= 1 { // square and multiply
		if n&1 != 0 {
			cos, sin = multiply(cos, sin, x, y)
		}
		x, y = multiply(x, y, x, y)
	}
	cos, sin = multiply(cos, sin, s.cos0, -s.sin0) // n (theta - theta0)
	delta := m.Epsilon * m.Delta
	return m.Epsilon + float64(delta*cos), -delta * float64(m.Fold) * sin
}

// multiply multiplies the complex numbers a + ib and c + id.
func multiply(a, b, c, d float64) (re, im float64) {
	return float64(a*c) - float64(b*d), float64(a*d) + float64(b*c)
}

// A noiseKey stands for the random numbers of one step.
type noiseKey uint64

func noise(seed uint64, step int64) noiseKey {
	return noiseKey(mix(mix(seed) + uint64(step)))
}

// at is uniform in [-1/2, 1/2), a function of seed, step and cell alone.
func (k noiseKey) at(cell uint64) float64 {
	return float64(mix(uint64(k)+cell)>>11)*0x1p-53 - 0.5
}

// mix is the output function of the SplitMix64 generator (Steele, Lea, Flood,
// OOPSLA 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
