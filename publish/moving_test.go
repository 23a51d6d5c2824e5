package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
)

func TestFixed(t *testing.T) {
	domain := grid.Domain{Size: [3]int{6, 4, 2}, Spacing: [3]float64{1, 1, 1}, Periodic: [3]bool{false, true, false}}
	for _, c := range []struct {
		name       string
		axis, side string
		beyond     func(cell [3]int) bool
	}{
		{"x low", "x", "low", func(p [3]int) bool { return p[0] < 0 }},
		{"x high", "x", "high", func(p [3]int) bool { return p[0] >= 6 }},
		{"z low", "z", "low", func(p [3]int) bool { return p[2] < 0 }},
		{"z high", "z", "high", func(p [3]int) bool { return p[2] >= 2 }},
	} {
		t.Run(c.name+" sets the ghost cells beyond the side, and nothing else", func(t *testing.T) {
			b, err := NewFixed(FixedConfig{Axis: c.axis, Side: c.side, Value: 7})
			if err != nil {
				t.Fatal(err)
			}
			decomposition, err := grid.Decompose(domain, 8)
			if err != nil {
				t.Fatal(err)
			}
			for rank := range 8 {
				f, err := field.New[float64](domain, decomposition.Box(rank), field.Halo(2))
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Apply(f); err != nil {
					t.Fatal(err)
				}
				data, err := f.View()
				if err != nil {
					t.Fatal(err)
				}
				for p := range f.Padded().Cells() {
					want := 0.0
					if c.beyond(f.Global(p[0], p[1], p[2])) {
						want = 7
					}
					if got := data[f.Index(p[0], p[1], p[2])]; got != want {
						t.Fatalf("rank %d: %v is %v, want %v", rank, f.Global(p[0], p[1], p[2]), got, want)
					}
				}
			}
		})
	}
}

func TestFixedRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		config FixedConfig
		want   string
	}{
		{"an unknown axis", FixedConfig{Axis: "w", Side: "low"}, `axis "w" is not x, y or z`},
		{"an unknown side", FixedConfig{Axis: "x", Side: "left"}, `side "left" is not low or high`},
		{"NaN", FixedConfig{Axis: "x", Side: "low", Value: math.NaN()}, "value NaN is not finite"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewFixed(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	b, err := NewFixed(FixedConfig{Axis: "x", Side: "low", Value: 1})
	if err != nil {
		t.Fatal(err)
	}
	domain := grid.Domain{Size: [3]int{2, 2, 2}, Spacing: [3]float64{1, 1, 1}}
	t.Run("a field without ghost cells", func(t *testing.T) {
		f, err := field.New[float64](domain, domain.Box())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Apply(f); err == nil || !strings.Contains(err.Error(), "no ghost cells along x") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a periodic domain", func(t *testing.T) {
		domain.Periodic[0] = true
		f, err := field.New[float64](domain, domain.Box(), field.Halo(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Apply(f); err == nil || !strings.Contains(err.Error(), "periodic along x") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a state", func(t *testing.T) {
		if err := b.RestoreCheckpointState(json.RawMessage(`1`)); err == nil || !strings.Contains(err.Error(), "has no state") {
			t.Errorf("got %v", err)
		}
	})
}

var movingDomain = grid.Domain{Size: [3]int{12, 4, 3}, Origin: [3]float64{100, 0, 0}, Spacing: [3]float64{0.5, 1, 1}, Periodic: [3]bool{true, true, true}}

var movingConfig = MovingConfig{Level: 0.5, Start: 2, Distance: 1, Width: 3, Value: -1}

// frontField is 1 up to the front and falls to 0 within the column after it; only
// one row reaches the front, which is somewhere else at each step.
func frontField(f *field.Field[float64], tail, front float64) error {
	data, err := f.MutableView()
	if err != nil {
		return err
	}
	n := f.Domain().Size[0]
	for p := range f.Owned().Cells() {
		g := f.Global(p[0], p[1], p[2])
		value := 0.0
		for u := g[0]; float64(u) < front+1; u += n {
			if float64(u) >= tail {
				value = max(value, min(1, front+1-float64(u)))
			}
		}
		if g[1] != int(front)%4 || g[2] != int(front)%3 {
			value = min(value, 0.25)
		}
		data[f.Index(p[0], p[1], p[2])] = value
	}
	return nil
}

func TestMovingFollowsAFrontAroundTheDomain(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			err := comm.Run(ranks, func(c *comm.Comm) error {
				ctx := context.Background()
				decomposition, err := grid.Decompose(movingDomain, ranks)
				if err != nil {
					return err
				}
				f, err := field.New[float64](movingDomain, decomposition.Box(c.Rank()), field.Halo(1))
				if err != nil {
					return err
				}
				b, err := NewMoving(movingDomain, movingConfig)
				if err != nil {
					return err
				}
				if _, _, ok := b.Position(); ok {
					t.Error("a front before the first look")
				}
				// It starts at column 2 and goes almost three times around.
				for step := range 61 {
					front := 2 + 0.5*float64(step)
					if err := errors.Join(frontField(f, front-4, front), b.Observe(f)); err != nil {
						return err
					}
					if err := b.Advance(ctx, c); err != nil {
						return err
					}
					// The level is crossed half a cell after the front.
					xpos, idx, ok := b.Position()
					if want := int(front + 0.5); !ok || idx != want {
						t.Errorf("step %d: index %d, %t, want %d", step, idx, ok, want)
					}
					if want := 100 + 0.5*(front+0.5); math.Abs(xpos-want) > 1e-12 {
						t.Errorf("step %d: position %v, want %v", step, xpos, want)
					}
					if err := b.Apply(f); err != nil {
						return err
					}
					data, err := f.View()
					if err != nil {
						return err
					}
					for p := range f.Padded().Cells() {
						g := f.Global(p[0], p[1], p[2])
						v := data[f.Index(p[0], p[1], p[2])]
						ahead := (g[0] - idx + 36*12) % 12
						band := ahead >= 2 && ahead <= 4 && f.Box().ContainsCell(g)
						if (v == -1) != band {
							t.Fatalf("step %d: %v is %v, the front at %d", step, g, v, idx)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// spike sets one column of all cells.
func spike(f *field.Field[float64], column int, value float64) error {
	data, err := f.MutableView()
	if err != nil {
		return err
	}
	for p := range f.Owned().Cells() {
		if f.Global(p[0], p[1], p[2])[0] == column {
			data[f.Index(p[0], p[1], p[2])] = value
		}
	}
	return nil
}

func TestMovingFront(t *testing.T) {
	bounded := movingDomain
	bounded.Periodic[0] = false
	for _, c := range []struct {
		name   string
		domain grid.Domain
		start  int
		steps  [][12]float64 // the columns at each step
		idx    int
		xpos   float64
		found  bool
	}{
		{"no front", movingDomain, 2, [][12]float64{{0.4}}, 2, 101, false},
		{"NaN is no front", movingDomain, 2, [][12]float64{{math.NaN(), math.NaN()}}, 2, 101, false},
		{"the first front from the start on", movingDomain, 2, [][12]float64{{1, 0, 0, 1, 1, 0, 0, 1}}, 4, 102.25, true},
		{"the first front beyond the end of a periodic domain", movingDomain, 6, [][12]float64{{1, 1}}, 13, 106.75, true},
		{"no front beyond the end of a bounded domain", bounded, 6, [][12]float64{{1, 1}}, 6, 103, false},
		{"columns that are not connected don't move it", movingDomain, 0, [][12]float64{{1}, {1, 0, 1, 1}}, 0, 100.25, true},
		{"it jumps as far as the columns are connected", movingDomain, 0, [][12]float64{{1}, {1, 1, 1, 1}}, 3, 101.75, true},
		{"it doesn't go back", movingDomain, 0, [][12]float64{{1, 1, 1}, {1}}, 2, 101.25, true},
		{"its position doesn't go back within a cell", movingDomain, 0, [][12]float64{{1, 0.25}, {1, 0}}, 0, 100 + 0.5*0.5/0.75, true},
		{"it goes around once at most in a step", movingDomain, 0, [][12]float64{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, 11, 105.5, true},
		{"it ends with a bounded domain", bounded, 0, [][12]float64{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, 11, 105.5, true},
		{"infinite values have a front without fraction", movingDomain, 0, [][12]float64{{math.Inf(1), math.Inf(-1)}}, 0, 100, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := movingConfig
			config.Start = c.start
			b, err := NewMoving(c.domain, config)
			if err != nil {
				t.Fatal(err)
			}
			f, err := field.New[float64](c.domain, c.domain.Box())
			if err != nil {
				t.Fatal(err)
			}
			for _, columns := range c.steps {
				for i, v := range columns {
					if err := spike(f, i, v); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(b.Observe(f), b.Advance(context.Background(), comm.Self())); err != nil {
					t.Fatal(err)
				}
			}
			xpos, idx, ok := b.Position()
			if ok != c.found || idx != c.idx || math.Abs(xpos-c.xpos) > 1e-12 {
				t.Errorf("got %v, %d, %t, want %v, %d, %t", xpos, idx, ok, c.xpos, c.idx, c.found)
			}
			if err := b.Apply(f); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestMovingStateIsAgreedWhenItIsSaved(t *testing.T) {
	// Rank r sees column 2+r only; the front is that of all of them.
	err := sameOnRanks(t, 3, func(c *comm.Comm) error {
		b, err := NewMoving(movingDomain, movingConfig)
		if err != nil {
			return err
		}
		f, err := field.New[float64](movingDomain, grid.Box{Low: [3]int{2 + c.Rank(), 0, 0}, Size: [3]int{1, 4, 3}})
		if err != nil {
			return err
		}
		if err := errors.Join(spike(f, 2+c.Rank(), 1), b.Observe(f)); err != nil {
			return err
		}
		records, err := BoundaryRecords(context.Background(), c, []Boundary{b})
		if err != nil {
			return err
		}
		if want := `{"xpos":102,"idx":4,"first":false}`; string(records[0].State) != want {
			t.Errorf("rank %d: state %s, want %s", c.Rank(), records[0].State, want)
		}
		if want := `{"type":"moving","level":0.5,"start":2,"distance":1,"width":3,"value":-1}`; string(records[0].Config) != want {
			t.Errorf("configuration %s, want %s", records[0].Config, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// farIndex is a column that no float32 has exactly.
const farIndex = math.MaxInt >> 12

func TestMovingAndFixedRestart(t *testing.T) {
	conditions := func() ([]Boundary, *Moving) {
		fixed, err := NewFixed(FixedConfig{Axis: "y", Side: "low", Value: 1})
		if err != nil {
			t.Fatal(err)
		}
		moving, err := NewMoving(movingDomain, movingConfig)
		if err != nil {
			t.Fatal(err)
		}
		return []Boundary{fixed, moving}, moving
	}
	var records []BoundaryRecord
	err := sameOnRanks(t, 3, func(c *comm.Comm) error {
		boundaries, moving := conditions()
		moving.state = movingState{XPos: 0.1 + 0.2, Idx: farIndex, First: false}
		r, err := BoundaryRecords(context.Background(), c, boundaries)
		if c.Rank() == 0 {
			records = r
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		records []BoundaryRecord
		want    string
	}{
		{"all states are restored", records, ""},
		{"an old bundle has no state of the front", nil, "boundary condition 1: moving boundary: the saved state of the front is missing (the bundle has no boundary_conditions)"},
		{"a null state is none", []BoundaryRecord{records[0], {Config: records[1].Config}}, "boundary condition 1: moving boundary: the saved state of the front is missing"},
		{"a state of one without state", []BoundaryRecord{{records[0].Config, records[1].State}, records[1]}, "boundary condition 0: fixed boundary: has no state, one was saved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := sameOnRanks(t, 2, func(cm *comm.Comm) error {
				boundaries, moving := conditions()
				moving.buffer()
				before := moving.state
				err := RestoreBoundaries(context.Background(), cm, c.records, boundaries)
				switch {
				case err == nil && moving.state != movingState{XPos: 0.1 + 0.2, Idx: farIndex}:
					t.Errorf("restored %+v", moving.state)
				case err == nil && moving.columns != nil:
					t.Error("what was observed before the restore still counts")
				case err != nil && moving.state != before:
					t.Errorf("changed to %+v", moving.state)
				}
				return err
			})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestMovingStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := NewMoving(movingDomain, movingConfig)
		if err != nil {
			t.Fatal(err)
		}
		a.state = movingState{
			XPos:  anyFloat("xpos").Draw(t, "xpos"),
			Idx:   rapid.IntRange(0, maxMovingIndex).Draw(t, "idx"),
			First: rapid.Bool().Draw(t, "first"),
		}
		text, err := a.CheckpointState(context.Background(), comm.Self())
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewMoving(movingDomain, movingConfig)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.RestoreCheckpointState(text); err != nil {
			t.Fatal(err)
		}
		if math.Float64bits(a.state.XPos) != math.Float64bits(b.state.XPos) || a.state.Idx != b.state.Idx || a.state.First != b.state.First {
			t.Fatalf("saved %+v, restored %+v", a.state, b.state)
		}
	})
}

func TestMovingRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *grid.Domain, m *MovingConfig)
		want   string
	}{
		{"an invalid domain", func(d *grid.Domain, m *MovingConfig) { d.Size[1] = 0 }, "size along y"},
		{"NaN as level", func(d *grid.Domain, m *MovingConfig) { m.Level = math.NaN() }, "level NaN is not finite"},
		{"a value at the level", func(d *grid.Domain, m *MovingConfig) { m.Value = 0.5 }, "value 0.5 is not finite and below the level 0.5"},
		{"an infinite value", func(d *grid.Domain, m *MovingConfig) { m.Value = math.Inf(-1) }, "value -Inf"},
		{"a start outside", func(d *grid.Domain, m *MovingConfig) { m.Start = 12 }, "start 12 is not one of 12 columns"},
		{"no width", func(d *grid.Domain, m *MovingConfig) { m.Width = 0 }, "don't fit into 12 columns"},
		{"a band that would reach the front from behind", func(d *grid.Domain, m *MovingConfig) { m.Distance, m.Width = 6, 6 }, "distance 6 and width 6 don't fit into 12 columns"},
		{"a distance at the end of the integers", func(d *grid.Domain, m *MovingConfig) { m.Distance = math.MaxInt }, "don't fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			domain, config := movingDomain, movingConfig
			c.change(&domain, &config)
			if _, err := NewMoving(domain, config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	b, err := NewMoving(movingDomain, movingConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, state, want string }{
		{"no state", ``, "missing"},
		{"a null state", `null`, "missing"},
		{"a state that is no object", `[1]`, "saved state: want an object, got an array"},
		{"a state without position", `{"idx": 1, "first": false}`, "saved state: xpos: missing"},
		{"a position that is a string", `{"xpos": "1", "idx": 1, "first": false}`, "saved state: xpos: want a number, got a string"},
		{"a position beyond float64", `{"xpos": 1e999, "idx": 1, "first": false}`, "saved state: xpos: 1e999 is out of the range"},
		{"an index with a fraction", `{"xpos": 1, "idx": 1.5, "first": false}`, "saved state: idx: want an integer, got 1.5"},
		{"a negative index", `{"xpos": 1, "idx": -1, "first": false}`, "saved state: idx: -1 is out of range"},
		{"a huge index", fmt.Sprintf(`{"xpos": 1, "idx": %d, "first": false}`, math.MaxInt), "is out of range"},
		{"no flag", `{"xpos": 1, "idx": 1}`, "saved state: first: missing"},
		{"a flag that is a number", `{"xpos": 1, "idx": 1, "first": 0}`, "saved state: first: want a boolean, got a number"},
		{"not JSON", `{`, "saved state: line 1, column 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := b.state
			if err := b.RestoreCheckpointState(json.RawMessage(c.state)); err == nil || !strings.Contains(err.Error(), c.want) || b.state != before {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("a field of another grid", func(t *testing.T) {
		other := movingDomain
		other.Size[0]++
		f, err := field.New[float64](other, other.Box())
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{b.Observe(f), b.Apply(f)} {
			var e *grid.MismatchError
			if !errors.As(err, &e) {
				t.Errorf("got %v", err)
			}
		}
	})
}
