package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

func bits(v float64) uint64 { return math.Float64bits(v) }

// crossing is a run with a crystal across the walls, so that what happens there
// matters.
func crossing(periodic [2]bool) settings {
	set := small("")
	set.Periodic = periodic
	set.Model.Radius = 0.4
	return set
}

func TestObservedNumbersHaveTheSameBitsOnAnyDecompositionAndHalo(t *testing.T) {
	for _, periodic := range [][2]bool{{false, false}, {true, true}} {
		whole := crossing(periodic)
		want, err := observed(t.Context(), comm.Self(), whole)
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			processes [2]int
			halo      int
		}{
			{[2]int{2, 1}, 1},
			{[2]int{1, 3}, 2},
			{[2]int{2, 2}, 3},
			{[2]int{4, 1}, 2},
			{[2]int{3, 2}, 1},
			{[2]int{1, 31}, 4}, // boxes thinner than the halo, and two empty ones
		} {
			t.Run(fmt.Sprintf("periodic %v, %v ranks, halo %d", periodic, tc.processes, tc.halo), func(t *testing.T) {
				set := whole
				set.processes, set.halo = tc.processes, tc.halo
				err := comm.Run(tc.processes[0]*tc.processes[1], func(c *comm.Comm) error {
					got, err := observed(t.Context(), c, set)
					if err == nil {
						err = sameBits(got, want)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The numbers are what their names say, by plain sums over all cells.
func TestObservedNumbers(t *testing.T) {
	for _, size := range [][2]int{{37, 29}, {32, 40}, {5, 1}, {1, 1}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			set := crossing([2]bool{true, false})
			set.Grid, set.Steps = size, 30
			sim, err := newSimulation(comm.Self(), set)
			if err != nil {
				t.Fatal(err)
			}
			o, err := newObserver(t.Context(), sim)
			if err != nil {
				t.Fatal(err)
			}
			for sim.increment < set.Steps {
				if err := sim.advance(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := o.observe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := o.layout.Validate(); err != nil {
				t.Fatal(err)
			}
			phi, temp, err := sim.mutable()
			if err != nil {
				t.Fatal(err)
			}
			nx, ny, h := size[0], size[1], set.Model.Spacing
			faces := o.layout.R
			bins := len(faces) - 1
			solid, energy := 0, 0.0
			sums, cells := make([]float64, bins), make([]float64, bins)
			row := make([]float64, nx)
			for j := range ny {
				sim.stepper.Energy(phi, temp, j, row)
				for i := range nx {
					p := phi[sim.phi.Layout().Index(i, j, 0)]
					energy += row[i] * h * h
					if p >= 0.5 {
						solid++
					}
					r := math.Hypot(float64(i)-float64(nx-1)/2, float64(j)-float64(ny-1)/2) * h
					for k := range bins {
						if r >= faces[k]*(1-1e-12) && r < faces[k+1]*(1-1e-12) {
							sums[k] += p
							cells[k]++
						}
					}
				}
			}
			want := []float64{float64(solid) / float64(nx*ny), energy}
			for k := range bins {
				want = append(want, sums[k]/cells[k])
			}
			if len(o.state) != len(want) {
				t.Fatalf("%d numbers, want %d", len(o.state), len(want))
			}
			for i := range want {
				if !(math.Abs(o.state[i]-want[i]) <= 1e-12) { // no NaN
					t.Errorf("number %d is %v, want %v", i, o.state[i], want[i])
				}
			}
		})
	}
}
