package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
)

// Fixed is a boundary condition without state: a constant value beyond one side
// of the domain. It is one of the two examples of a [Boundary].
type Fixed struct {
	config FixedConfig
}

// FixedConfig is the configuration of a [Fixed], also in its JSON form, to which
// "type": "fixed" is added.
type FixedConfig struct {
	// Axis is "x", "y" or "z", Side "low" or "high".
	Axis string `json:"axis"`
	Side string `json:"side"`
	// Value is what the cells beyond that side hold. It is finite.
	Value float64 `json:"value"`
}

var (
	axes  = map[string]int{"x": 0, "y": 1, "z": 2}
	sides = map[string]bool{"low": true, "high": true}
)

// NewFixed returns a condition with the given configuration.
func NewFixed(config FixedConfig) (*Fixed, error) {
	if _, ok := axes[config.Axis]; !ok {
		return nil, fmt.Errorf("fixed boundary: axis %q is not x, y or z", config.Axis)
	}
	if !sides[config.Side] {
		return nil, fmt.Errorf("fixed boundary: side %q is not low or high", config.Side)
	}
	if !nonfinite.Finite(config.Value) {
		return nil, fmt.Errorf("fixed boundary: value %v is not finite", config.Value)
	}
	return &Fixed{config}, nil
}

// Apply sets the ghost cells beyond the side of the domain, on the ranks that
// have some. The domain is bounded along the axis. It is not collective.
func (b *Fixed) Apply(f *field.Field[float64]) error {
	axis := axes[b.config.Axis]
	domain, box, layout := f.Domain(), f.Box(), f.Layout()
	if domain.Periodic[axis] {
		return fmt.Errorf("fixed boundary: the domain is periodic along %s", b.config.Axis)
	}
	if box.Empty() {
		return nil
	}
	halo := layout.Halo[axis]
	if halo == 0 {
		return fmt.Errorf("fixed boundary: the field has no ghost cells along %s", b.config.Axis)
	}
	var low, high [3]int // local, with the ghost cells of the other axes
	for a := range low {
		low[a], high[a] = -layout.Halo[a], layout.Size[a]+layout.Halo[a]
	}
	// A thin box has ghost cells beyond the domain without touching its side.
	if b.config.Side == "low" {
		high[axis] = min(high[axis], -box.Low[axis])
	} else {
		low[axis] = max(low[axis], domain.Size[axis]-box.Low[axis])
	}
	if low[axis] >= high[axis] {
		return nil
	}
	data, err := f.MutableView()
	if err != nil {
		return fmt.Errorf("fixed boundary: %w", err)
	}
	for k := low[2]; k < high[2]; k++ {
		for j := low[1]; j < high[1]; j++ {
			for i := low[0]; i < high[0]; i++ {
				data[f.Index(i, j, k)] = b.config.Value
			}
		}
	}
	return nil
}

// Config implements [Boundary].
func (b *Fixed) Config() (json.RawMessage, error) {
	return json.Marshal(struct {
		Type string `json:"type"`
		FixedConfig
	}{"fixed", b.config})
}

// CheckpointState implements [Boundary]: there is none.
func (b *Fixed) CheckpointState(context.Context, *comm.Comm) (json.RawMessage, error) {
	return nil, nil
}

// RestoreCheckpointState implements [Boundary]. It refuses a state, which can't
// be one of this condition.
func (b *Fixed) RestoreCheckpointState(state json.RawMessage) error {
	if state != nil {
		return errors.New("fixed boundary: has no state, one was saved")
	}
	return nil
}
