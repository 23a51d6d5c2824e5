package phasefield

import (
	"fmt"
	"math"
)

// Model holds the parameters of the equation and of its discretisation. Its names
// in JSON are those of the solver's flags.
type Model struct {
	Mobility float64 `json:"mobility"` // M
	Kappa    float64 `json:"kappa"`    // coefficient of the gradient energy
	Width    float64 `json:"width"`    // w: of the interface
	Spacing  float64 `json:"spacing"`  // distance of two cells, along all axes
	Step     float64 `json:"dt"`       // time step
}

// Standard returns a model with an interface of a few cells.
func Standard() Model {
	return Model{Mobility: 1, Kappa: 1, Width: 2, Spacing: 1, Step: 0.1}
}

// Validate reports parameters without a meaning, a grid that can't resolve the
// interface, and a time step that is too long. The error names the parameter and
// its value.
func (m Model) Validate() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"mobility", m.Mobility},
		{"kappa", m.Kappa},
		{"width", m.Width},
		{"spacing", m.Spacing},
		{"dt", m.Step},
	} {
		if !(p.value > 0) || math.IsInf(p.value, 0) {
			return fmt.Errorf("%s is %v, must be finite and greater than 0", p.name, p.value)
		}
	}
	if m.Width < m.Spacing {
		return fmt.Errorf("width is %v, must be at least the spacing, %v: an interface that the grid doesn't resolve sticks to it", m.Width, m.Spacing)
	}
	if limit := m.MaxStep(); !(m.Step <= limit) {
		return fmt.Errorf("dt is %v, must be at most %v: the explicit scheme is unstable beyond", m.Step, limit)
	}
	return nil
}

// MaxStep returns the longest time step with which phi stays between -1 and 1: up
// to it, the new value of a cell grows with each of the old ones. The free energy
// falls with every such step.
func (m Model) MaxStep() float64 {
	return 1 / (m.Mobility * m.Kappa * (6/(m.Spacing*m.Spacing) + 2/(m.Width*m.Width)))
}

// Rates returns the factors of a step.
func (m Model) Rates() Rates {
	rate := m.Step * m.Mobility * m.Kappa
	return Rates{
		Diffusion: rate / (m.Spacing * m.Spacing),
		Reaction:  rate / (m.Width * m.Width),
	}
}

// Profile is phi at a distance from a flat interface at rest: negative below it,
// positive above.
func (m Model) Profile(distance float64) float64 {
	return math.Tanh(distance / (math.Sqrt2 * m.Width))
}
