package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Moving is a boundary condition with state: it follows a front that moves
// towards higher x, and keeps a band of columns ahead of it at a constant value,
// so that on a domain that is periodic along x the front never meets its own
// tail. It is one of the two examples of a [Boundary].
//
// A column is all cells with one x index; the front has reached it if one of
// them is at or above the level. The position is unwrapped: it goes on growing
// when the front passes the end of a periodic domain. The front never moves
// back.
//
//	for each step {
//		advance the field
//		front.Observe(f)      // this rank's part
//		front.Advance(ctx, c) // collective
//		front.Apply(f)
//	}
//
// The methods of one Moving are called by one goroutine at a time.
type Moving struct {
	config MovingConfig
	domain grid.Domain
	state  movingState

	// columns holds for each column the largest value that this rank saw since
	// the last agreement. It is no state: nil until it is used.
	columns []float64
}

// MovingConfig is the configuration of a [Moving], also in its JSON form, to
// which "type": "moving" is added.
type MovingConfig struct {
	// Level is the value that the front has and the cells ahead of it don't. It
	// is finite.
	Level float64 `json:"level"`
	// Start is the column from which on the front is looked for at first.
	Start int `json:"start"`
	// Distance is the number of columns between the front and the band, Width
	// that of the band, at least 1. Together they are less than the domain.
	Distance int `json:"distance"`
	Width    int `json:"width"`
	// Value is what the cells of the band hold. It is finite and below Level.
	Value float64 `json:"value"`
}

// movingState is what a restart needs.
type movingState struct {
	XPos  float64 `json:"xpos"`  // unwrapped position of the front, in the units of the domain
	Idx   int     `json:"idx"`   // unwrapped index of the last column that the front has reached
	First bool    `json:"first"` // the front wasn't found yet
}

// maxMovingIndex keeps indices and positions exact, and the next index an int.
const maxMovingIndex = min(1<<52, math.MaxInt/2)

// NewMoving returns a condition on the given domain whose front wasn't found
// yet.
func NewMoving(domain grid.Domain, config MovingConfig) (*Moving, error) {
	if err := domain.Validate(); err != nil {
		return nil, fmt.Errorf("moving boundary: %w", err)
	}
	n := domain.Size[0]
	switch {
	case !nonfinite.Finite(config.Level):
		return nil, fmt.Errorf("moving boundary: level %v is not finite", config.Level)
	case !nonfinite.Finite(config.Value) || config.Value >= config.Level:
		return nil, fmt.Errorf("moving boundary: value %v is not finite and below the level %v", config.Value, config.Level)
	case config.Start < 0 || config.Start >= n:
		return nil, fmt.Errorf("moving boundary: start %d is not one of %d columns", config.Start, n)
	case config.Distance < 0 || config.Width < 1 || config.Distance >= n || config.Width >= n-config.Distance:
		return nil, fmt.Errorf("moving boundary: distance %d and width %d don't fit into %d columns", config.Distance, config.Width, n)
	}
	b := &Moving{config: config, domain: domain}
	b.state = movingState{XPos: b.position(config.Start, 0), Idx: config.Start, First: true}
	return b, nil
}

// position is the place that is a fraction of a cell beyond a column's.
func (b *Moving) position(idx int, fraction float64) float64 {
	return b.domain.Origin[0] + (float64(idx)+fraction)*b.domain.Spacing[0]
}

// column returns the column of an unwrapped index, false beyond the end of a
// bounded domain.
func (b *Moving) column(idx int) (int, bool) {
	n := b.domain.Size[0]
	if idx >= n && !b.domain.Periodic[0] {
		return 0, false
	}
	return idx % n, true
}

// Position returns the unwrapped position of the front and the unwrapped index
// of the last column that it has reached; false as long as no front was found.
// They are those of the last [Moving.Advance], the same on all ranks.
func (b *Moving) Position() (xpos float64, idx int, ok bool) {
	return b.state.XPos, b.state.Idx, !b.state.First
}

// Observe looks at the owned cells of f. It is not collective; what it sees
// counts at the next [Moving.Advance]. NaNs are not seen.
func (b *Moving) Observe(f *field.Field[float64]) error {
	if err := b.sameGrid(f); err != nil {
		return err
	}
	data, err := f.View()
	if err != nil {
		return fmt.Errorf("moving boundary: %w", err)
	}
	b.buffer()
	box := f.Box()
	for k := range box.Size[2] {
		for j := range box.Size[1] {
			row := f.Index(0, j, k)
			for i := range box.Size[0] {
				if v := data[row+i]; v > b.columns[box.Low[0]+i] {
					b.columns[box.Low[0]+i] = v
				}
			}
		}
	}
	return nil
}

func (b *Moving) sameGrid(f *field.Field[float64]) error {
	if err := b.domain.SameGrid(f.Domain()); err != nil {
		return fmt.Errorf("moving boundary: condition and field: %w", err)
	}
	return nil
}

// buffer makes the columns, all of them not seen.
func (b *Moving) buffer() {
	if b.columns != nil {
		return
	}
	b.columns = make([]float64, b.domain.Size[0])
	for i := range b.columns {
		b.columns[i] = math.Inf(-1)
	}
}

// Advance moves the front by what the ranks have observed. It is collective: one
// reduction of as many numbers as the domain has columns. The outcome depends on
// the cells only, not on how they are spread over ranks.
func (b *Moving) Advance(ctx context.Context, c *comm.Comm) error {
	ctx = waiting.Named(ctx, "Moving.Advance")
	b.buffer()
	if err := c.AllReduceFloat64(ctx, comm.Max, b.columns); err != nil {
		return fmt.Errorf("moving boundary: %w", err)
	}
	seen := b.columns
	b.columns = nil

	// at returns what was seen in the column of an unwrapped index.
	at := func(idx int) float64 {
		if i, ok := b.column(idx); ok {
			return seen[i]
		}
		return math.Inf(-1)
	}
	s := &b.state
	if s.First {
		for n := range b.domain.Size[0] {
			if at(b.config.Start+n) >= b.config.Level {
				s.Idx, s.First = b.config.Start+n, false
				break
			}
		}
		if s.First {
			return nil
		}
	}
	// Not further than once around.
	for n := 1; n < b.domain.Size[0] && s.Idx < maxMovingIndex && at(s.Idx+1) >= b.config.Level; n++ {
		s.Idx++
	}
	here, ahead := at(s.Idx), at(s.Idx+1)
	if here < b.config.Level {
		return nil // it has moved back, or nothing was seen
	}
	fraction := 0.0
	if ahead < b.config.Level {
		fraction = (here - b.config.Level) / (here - ahead)
	}
	if !nonfinite.Finite(fraction) {
		fraction = 0
	}
	s.XPos = max(s.XPos, b.position(s.Idx, fraction))
	return nil
}

// Apply sets the owned cells of the band ahead of the front. It is not
// collective, and does nothing as long as no front was found. Ghost cells are
// the caller's to exchange.
func (b *Moving) Apply(f *field.Field[float64]) error {
	if err := b.sameGrid(f); err != nil {
		return err
	}
	if b.state.First {
		return nil
	}
	box := f.Box()
	var band []int // local
	for n := range b.config.Width {
		column, ok := b.column(b.state.Idx + b.config.Distance + 1 + n)
		if i := column - box.Low[0]; ok && 0 <= i && i < box.Size[0] {
			band = append(band, i)
		}
	}
	if band == nil || box.Empty() {
		return nil
	}
	data, err := f.MutableView()
	if err != nil {
		return fmt.Errorf("moving boundary: %w", err)
	}
	for k := range box.Size[2] {
		for j := range box.Size[1] {
			for _, i := range band {
				data[f.Index(i, j, k)] = b.config.Value
			}
		}
	}
	return nil
}

// Config implements [Boundary].
func (b *Moving) Config() (json.RawMessage, error) {
	return json.Marshal(struct {
		Type string `json:"type"`
		MovingConfig
	}{"moving", b.config})
}

// CheckpointState implements [Boundary]: {"xpos": float, "idx": int, "first":
// bool}. It advances the front by what has been observed, so that all ranks have
// the same state.
func (b *Moving) CheckpointState(ctx context.Context, c *comm.Comm) (json.RawMessage, error) {
	if err := b.Advance(ctx, c); err != nil {
		return nil, err
	}
	return json.Marshal(b.state)
}

// PrepareRestore implements [BoundaryPreparer].
func (b *Moving) PrepareRestore(state json.RawMessage) (commit func(), err error) {
	s, err := parseMovingState(state)
	if err != nil {
		return nil, fmt.Errorf("moving boundary: %w", err)
	}
	return func() {
		b.state = s
		b.columns = nil // observed before the restore
	}, nil
}

// RestoreCheckpointState implements [Boundary].
func (b *Moving) RestoreCheckpointState(state json.RawMessage) error {
	commit, err := b.PrepareRestore(state)
	if err != nil {
		return err
	}
	commit()
	return nil
}

func parseMovingState(state json.RawMessage) (s movingState, err error) {
	if len(state) == 0 || string(state) == "null" {
		return s, errors.New("the saved state of the front is missing")
	}
	o, err := parseObject(state, 0)
	if err != nil {
		return s, fmt.Errorf("saved state: %w", err)
	}
	var d metadataDecoder
	s.XPos = d.float(o.need("xpos"))
	s.Idx = d.size(o.need("idx"))
	s.First = d.bool(o.need("first"))
	switch {
	case d.err != nil:
		return s, fmt.Errorf("saved state: %w", d.err)
	case s.Idx < 0 || s.Idx > maxMovingIndex:
		return s, fmt.Errorf("saved state: idx: %d is out of range", s.Idx)
	}
	return s, nil
}
