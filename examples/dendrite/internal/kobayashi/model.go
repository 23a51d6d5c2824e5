package kobayashi

import (
	"fmt"
	"math"
)

// Model holds the parameters of the equations and of their discretisation, in
// the paper's dimensionless units.
type Model struct {
	Tau     float64 `json:"tau"`     // relaxation time of the interface
	Epsilon float64 `json:"epsilon"` // E: mean thickness of the interface
	Delta   float64 `json:"delta"`   // strength of the anisotropy
	Fold    int     `json:"fold"`    // n: number of preferred directions
	Theta0  float64 `json:"theta0"`  // one of the preferred directions, radians
	Alpha   float64 `json:"alpha"`   // bound of the driving force, below 1
	Gamma   float64 `json:"gamma"`   // steepness of the driving force
	Te      float64 `json:"te"`      // temperature of equilibrium
	Latent  float64 `json:"latent"`  // K: latent heat
	Noise   float64 `json:"noise"`   // a: amplitude of the noise, which makes side branches
	Seed    uint64  `json:"seed"`    // of the noise
	Spacing float64 `json:"spacing"` // distance of two cells, along x and y
	Step    float64 `json:"step"`    // time step
	Radius  float64 `json:"radius"`  // of the crystal at time 0
}

// Snowflake returns the parameters of a crystal with six arms.
func Snowflake() Model {
	return Model{
		Tau:     0.0003,
		Epsilon: 0.01,
		Delta:   0.04,
		Fold:    6,
		Theta0:  math.Pi / 2,
		Alpha:   0.9,
		Gamma:   10,
		Te:      1,
		Latent:  1.8,
		Noise:   0.01,
		Seed:    1993,
		Spacing: 0.03,
		Step:    1e-4,
		Radius:  0.12,
	}
}

// Validate reports parameters without a meaning, and a time step for which the
// explicit scheme would blow up. The error names the JSON key and the value.
func (m Model) Validate() error {
	for _, p := range []struct {
		key      string
		value    float64
		positive bool
	}{
		{"tau", m.Tau, true},
		{"epsilon", m.Epsilon, true},
		{"delta", m.Delta, false},
		{"theta0", m.Theta0, false},
		{"alpha", m.Alpha, false},
		{"gamma", m.Gamma, false},
		{"te", m.Te, false},
		{"latent", m.Latent, false},
		{"noise", m.Noise, false},
		{"spacing", m.Spacing, true},
		{"step", m.Step, true},
		{"radius", m.Radius, false},
	} {
		if math.IsNaN(p.value) || math.IsInf(p.value, 0) {
			return fmt.Errorf("model: %s is %v, must be finite", p.key, p.value)
		}
		if p.positive && p.value <= 0 {
			return fmt.Errorf("model: %s is %v, must be greater than 0", p.key, p.value)
		}
	}
	if m.Fold < 0 {
		return fmt.Errorf("model: fold is %d, must be 0 or more", m.Fold)
	}
	// Four neighbours each take at most a quarter of a cell's content away.
	eps := m.Epsilon * (1 + math.Abs(m.Delta))
	h2 := m.Spacing * m.Spacing
	if limit := h2 / (4 * max(1, eps*eps/m.Tau)); m.Step > limit {
		return fmt.Errorf("model: step is %v, the explicit scheme is stable up to %v", m.Step, limit)
	}
	return nil
}
