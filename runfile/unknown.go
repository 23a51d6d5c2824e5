package runfile

import (
	"fmt"
	"math"
	"strings"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
)

// Kind is what an unknown is defined on.
type Kind string

// The kinds of unknowns. The shapes are those of C order, time first.
const (
	Field  Kind = "field"  // (t, z, y, x): a cartesian field, distributed over the ranks
	Scalar Kind = "scalar" // (t): one number

	// These are of the plasma solver whose format the files extend.
	Radial  Kind = "radial"  // (t, r, component): components on the radial grid
	Kinetic Kind = "kinetic" // (t, r, xi, p): a distribution on a momentum grid at each radius
)

// An Unknown is one quantity of a run's state.
type Unknown struct {
	// Name names its entry in files: see [record.CheckKey].
	Name string
	Kind Kind
	// Unit is the unit of the stored values, such as "V/m", ASCII without control
	// characters; empty for none.
	Unit string
	// Scale is a reference magnitude, positive, of which the stored values know
	// nothing. 0 stands for 1.
	Scale float64
	// Lower is the lower limit of the values, nil for none.
	Lower *LowerLimit

	// Domain is the grid of a field. Its coordinates, in files, are those of
	// [grid.Domain.Coordinates].
	Domain grid.Domain

	// Components is the number of values at each radius of a radial unknown.
	Components int
	// Groups are the components, from 0, at which the declared groups of a radial
	// unknown start; nil where it declares none.
	Groups []int

	// Grids names the momentum grids of a kinetic unknown: one for all radii, or one
	// for each radius.
	Grids []string
}

// A LowerLimit bounds the values of an unknown from below.
type LowerLimit struct {
	Tolerance, Value float64
	Reference        string // empty for none
}

// A MomentumGrid is a cylindrical grid of momentum p, in m_e c, and pitch xi.
type MomentumGrid struct {
	Name  string
	P, Xi []float64 // faces, strictly increasing: one more than cells
}

// A Layout tells what a run's state consists of, and how its numbers are arranged.
// The state of all unknowns but fields is one vector: the unknowns in order, the
// values of each in C order without the time.
type Layout struct {
	Unknowns []Unknown

	// R holds the faces of the radial grid in metres, strictly increasing. Radial
	// and kinetic unknowns need it; kinetic ones need Grids too.
	R     []float64
	Grids []MomentumGrid
}

// Cells returns the number of cells between faces.
func cells(faces []float64) int { return max(0, len(faces)-1) }

// Grid returns the momentum grid of a name, nil if there is none.
func (l *Layout) Grid(name string) *MomentumGrid {
	for i := range l.Grids {
		if l.Grids[i].Name == name {
			return &l.Grids[i]
		}
	}
	return nil
}

// Unknown returns the unknown of a name, nil if there is none.
func (l *Layout) Unknown(name string) *Unknown {
	for i := range l.Unknowns {
		if l.Unknowns[i].Name == name {
			return &l.Unknowns[i]
		}
	}
	return nil
}

// Size returns the length of the state vector. The layout must be valid.
func (l *Layout) Size() int {
	n := 0
	for i := range l.Unknowns {
		n += l.length(&l.Unknowns[i])
	}
	return n
}

// Range returns where the values of an unknown lie in the state vector: nowhere for a
// field, or a name that isn't there.
func (l *Layout) Range(name string) (from, to int) {
	for i := range l.Unknowns {
		n := l.length(&l.Unknowns[i])
		if l.Unknowns[i].Name == name {
			return from, from + n
		}
		from += n
	}
	return 0, 0
}

// length is the number of values in the state vector.
func (l *Layout) length(u *Unknown) int {
	switch u.Kind {
	case Scalar:
		return 1
	case Radial:
		return cells(l.R) * u.Components
	case Kinetic:
		n := 0
		for r := range cells(l.R) {
			n += l.atRadius(u, r)
		}
		return n
	}
	return 0
}

// momentum is the grid of a kinetic unknown at a radius.
func (l *Layout) momentum(u *Unknown, r int) *MomentumGrid {
	if len(u.Grids) == 1 {
		return l.Grid(u.Grids[0])
	}
	return l.Grid(u.Grids[r])
}

// atRadius is the number of values of a kinetic unknown at a radius.
func (l *Layout) atRadius(u *Unknown, r int) int {
	g := l.momentum(u, r)
	return cells(g.P) * cells(g.Xi)
}

// Validate checks a layout. The error names the unknown or the grid, and the value.
func (l *Layout) Validate() error {
	if l.R != nil {
		if err := checkFaces("the radial grid", l.R); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, g := range l.Grids {
		if err := record.CheckKey(g.Name); err != nil {
			return fmt.Errorf("momentum grid: %w", err)
		}
		if seen[g.Name] {
			return fmt.Errorf("momentum grid %q is there twice", g.Name)
		}
		seen[g.Name] = true
		if err := checkFaces(fmt.Sprintf("p of momentum grid %q", g.Name), g.P); err != nil {
			return err
		}
		if err := checkFaces(fmt.Sprintf("xi of momentum grid %q", g.Name), g.Xi); err != nil {
			return err
		}
	}
	seen = map[string]bool{}
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		if err := record.CheckKey(u.Name); err != nil {
			return fmt.Errorf("unknown: %w", err)
		}
		if seen[u.Name] {
			return fmt.Errorf("unknown %q is there twice", u.Name)
		}
		seen[u.Name] = true
		if err := l.checkUnknown(u); err != nil {
			return fmt.Errorf("unknown %q: %w", u.Name, err)
		}
	}
	return nil
}

func (l *Layout) checkUnknown(u *Unknown) error {
	if err := checkUnit(u.Unit); err != nil {
		return err
	}
	if u.Scale < 0 || math.IsNaN(u.Scale) || math.IsInf(u.Scale, 0) {
		return fmt.Errorf("scale is %v, must be positive", u.Scale)
	}
	if u.Kind != Radial && (u.Components != 0 || u.Groups != nil) {
		return fmt.Errorf("a %s unknown has no components", u.Kind)
	}
	if u.Kind != Kinetic && u.Grids != nil {
		return fmt.Errorf("a %s unknown has no momentum grids", u.Kind)
	}
	switch u.Kind {
	case Scalar:
		return nil
	case Field:
		if err := u.Domain.Validate(); err != nil {
			return err
		}
		if n := u.Domain.Size; int64(n[0])*int64(n[1]) > math.MaxInt/8 {
			return fmt.Errorf("a plane of %d x %d cells is more than this system can address", n[0], n[1])
		}
		return nil
	case Radial, Kinetic:
		if cells(l.R) == 0 {
			return fmt.Errorf("a %s unknown needs the radial grid", u.Kind)
		}
	default:
		return fmt.Errorf("kind %q is not known", u.Kind)
	}
	if u.Kind == Radial {
		return checkGroups(u)
	}
	if n := len(u.Grids); n != 1 && n != cells(l.R) {
		return fmt.Errorf("%d momentum grids, must be one, or one for each of %d radii", n, cells(l.R))
	}
	for _, name := range u.Grids {
		if l.Grid(name) == nil {
			return fmt.Errorf("momentum grid %q is not in the layout", name)
		}
	}
	return nil
}

func checkGroups(u *Unknown) error {
	if u.Components < 1 {
		return fmt.Errorf("%d components, must be one at least", u.Components)
	}
	if u.Groups == nil {
		return nil
	}
	if len(u.Groups) == 0 || u.Groups[0] != 0 {
		return fmt.Errorf("the component groups start at %v, the first must at 0", u.Groups)
	}
	for i, start := range u.Groups {
		if start >= u.Components || i > 0 && start <= u.Groups[i-1] {
			return fmt.Errorf("the component groups start at %v: not ascending below %d", u.Groups, u.Components)
		}
	}
	return nil
}

func checkFaces(what string, faces []float64) error {
	if len(faces) < 2 {
		return fmt.Errorf("%s has %d faces, must have two at least", what, len(faces))
	}
	for i, f := range faces {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("face %d of %s is %v", i, what, f)
		}
		if i > 0 && f <= faces[i-1] {
			return fmt.Errorf("face %d of %s is %v, not greater than %v before it", i, what, f, faces[i-1])
		}
	}
	return nil
}

// checkUnit tells whether a unit is one that files may hold.
func checkUnit(unit string) error {
	if strings.ContainsFunc(unit, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("unit %q is not ASCII without control characters", unit)
	}
	return nil
}
