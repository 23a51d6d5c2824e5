package grid

import (
	"fmt"
	"math"
	"strconv"
)

// maxCellBytes is the size of the largest element that is ever stored for a
// cell, a complex128.
const maxCellBytes = 16

// Rounding is no difference: spacings are equal up to a relative difference of
// spacingTolerance; origins up to originTolerance of the spacing, or originUnits units
// in the last place of the greater one.
const (
	spacingTolerance = 1e-12
	originTolerance  = 1e-6
	originUnits      = 4
)

var axisNames = [3]string{"x", "y", "z"}

// Domain is the global grid of a simulation. Arrays are in the order x, y, z.
type Domain struct {
	// Size is the number of cells along each axis, at least 1.
	Size [3]int
	// Origin is the physical position of the cell with index (0, 0, 0).
	Origin [3]float64
	// Spacing is the physical distance of neighbouring cells, greater than 0.
	Spacing [3]float64
	// Periodic tells for each axis whether the last cell's neighbour is the
	// first one.
	Periodic [3]bool
}

// Validate reports whether d describes a grid: sizes greater than 0, a cell
// count whose bytes (16 for each cell, the largest element) fit into an int64,
// finite origin, and finite spacing greater than 0. The error names the axis
// and the value.
func (d Domain) Validate() error {
	bytes := int64(maxCellBytes)
	for a, n := range d.Size {
		if n <= 0 {
			return fmt.Errorf("domain: size along %s is %d, must be greater than 0", axisNames[a], n)
		}
		if bytes > math.MaxInt64/int64(n) {
			return fmt.Errorf("domain: size %v: more cells than a file can hold, up to axis %s", d.Size, axisNames[a])
		}
		bytes *= int64(n)
	}
	for a, v := range d.Origin {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("domain: origin along %s is %v, must be finite", axisNames[a], v)
		}
	}
	for a, v := range d.Spacing {
		if math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
			return fmt.Errorf("domain: spacing along %s is %v, must be finite and greater than 0", axisNames[a], v)
		}
	}
	return nil
}

// Cells returns the number of cells of a valid domain.
func (d Domain) Cells() int64 {
	return d.Box().Cells()
}

// Box returns the box of all cells.
func (d Domain) Box() Box {
	return Box{Size: d.Size}
}

// Coordinates returns the physical position of the cell with the global
// indices i, j, k: origin + index * spacing for each axis. The indices may lie
// outside of the domain, as those of ghost cells do; they are not wrapped.
func (d Domain) Coordinates(i, j, k int) [3]float64 {
	return [3]float64{
		d.Origin[0] + float64(i)*d.Spacing[0],
		d.Origin[1] + float64(j)*d.Spacing[1],
		d.Origin[2] + float64(k)*d.Spacing[2],
	}
}

// MismatchError says in what two domains differ.
type MismatchError struct {
	// Quantity is "size", "origin", "spacing" or "periodicity".
	Quantity string
	// Axis is 0, 1 or 2.
	Axis int
	// A is the value of the domain that the method was called on, B that of
	// its argument.
	A, B string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("grids differ: %s along %s is %s and %s", e.Quantity, axisNames[e.Axis], e.A, e.B)
}

// Between says which value is whose: a names the owner of the domain that the method was
// called on, b that of its argument, as in "size along x: the bundle has 4, the solver
// has 5".
func (e *MismatchError) Between(a, b string) string {
	return fmt.Sprintf("%s along %s: %s has %s, %s has %s", e.Quantity, axisNames[e.Axis], a, e.A, b, e.B)
}

// SameGrid returns nil if d and e have the same size, spacings that are equal within
// 1e-12 relative, and along each axis origins that are equal within 1e-6 of the
// spacing, or within 4 units in the last place of the origin if that is more.
// Otherwise it returns a [*MismatchError] for the first difference. The periodic flags
// aren't looked at; see [Domain.SamePeriodicity].
func (d Domain) SameGrid(e Domain) error {
	for a := range d.Size {
		if d.Size[a] != e.Size[a] {
			return &MismatchError{"size", a, strconv.Itoa(d.Size[a]), strconv.Itoa(e.Size[a])}
		}
	}
	for a := range d.Origin {
		if !sameOrigin(d.Origin[a], e.Origin[a], min(d.Spacing[a], e.Spacing[a])) {
			return &MismatchError{"origin", a, formatFloat(d.Origin[a]), formatFloat(e.Origin[a])}
		}
	}
	for a := range d.Spacing {
		if !sameSpacing(d.Spacing[a], e.Spacing[a]) {
			return &MismatchError{"spacing", a, formatFloat(d.Spacing[a]), formatFloat(e.Spacing[a])}
		}
	}
	return nil
}

// SamePeriodicity returns nil if d and e are periodic along the same axes, and
// otherwise a [*MismatchError] for the first axis that differs.
func (d Domain) SamePeriodicity(e Domain) error {
	for a := range d.Periodic {
		if d.Periodic[a] != e.Periodic[a] {
			return &MismatchError{"periodicity", a, strconv.FormatBool(d.Periodic[a]), strconv.FormatBool(e.Periodic[a])}
		}
	}
	return nil
}

func sameSpacing(a, b float64) bool {
	return a == b || math.Abs(a-b) <= spacingTolerance*max(math.Abs(a), math.Abs(b))
}

func sameOrigin(a, b, spacing float64) bool {
	diff, most := math.Abs(a-b), max(math.Abs(a), math.Abs(b))
	unit := math.Nextafter(most, math.Inf(1)) - most
	return a == b || diff <= originTolerance*spacing || diff <= originUnits*unit
}

func formatFloat(v float64) string {
	return strconv.FormatFloat(v, 'g', -1, 64)
}
