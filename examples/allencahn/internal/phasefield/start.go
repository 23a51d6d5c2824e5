package phasefield

import (
	"math"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A Shape gives phi at time 0 for every cell of the domain, by its global indices.
type Shape func(cell [3]int) float64

// Sphere is a ball of the phase 1 around a point.
func (m Model) Sphere(d grid.Domain, center [3]float64, radius float64) Shape {
	return func(cell [3]int) float64 {
		p := d.Coordinates(cell[0], cell[1], cell[2])
		return m.Profile(radius - math.Hypot(math.Hypot(p[0]-center[0], p[1]-center[1]), p[2]-center[2]))
	}
}

// Plane is the phase 1 beyond a plane across the x axis, and the phase -1 before
// it.
func (m Model) Plane(d grid.Domain, at float64) Shape {
	return func(cell [3]int) float64 { return m.Profile(d.Coordinates(cell[0], 0, 0)[0] - at) }
}

// Random is a mixture without a phase: small random numbers, which depend on the
// seed and the cell alone.
func Random(d grid.Domain, seed uint64) Shape {
	const amplitude = 0.1
	key := mix(seed)
	return func(cell [3]int) float64 {
		number := (uint64(cell[2])*uint64(d.Size[1])+uint64(cell[1]))*uint64(d.Size[0]) + uint64(cell[0])
		return amplitude * (float64(mix(key+number)>>11)*0x1p-52 - 1)
	}
}

// mix is the output function of the SplitMix64 generator (Steele, Lea, Flood,
// OOPSLA 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Fill sets the owned cells of a padded array to a shape.
func Fill(phi []float64, l pack.Layout, box grid.Box, shape Shape) {
	for k := range box.Size[2] {
		for j := range box.Size[1] {
			at := l.Index(0, j, k)
			for i := range box.Size[0] {
				phi[at+i] = shape([3]int{box.Low[0] + i, box.Low[1] + j, box.Low[2] + k})
			}
		}
	}
}
