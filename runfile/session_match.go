package runfile

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/fieldstone-io/fieldstone/grid"
)

// matchUnknowns arranges a stored state as a layout wants it. Unknowns are matched by
// name; one on other grids is refused, since nothing is remapped. One that is not
// stored keeps its value of initial, if there is such a state.
func matchUnknowns(l *Layout, from *Checkpoint, initial []float64, log *slog.Logger) ([]float64, error) {
	stored := &from.Layout
	state := make([]float64, l.Size())
	copy(state, initial)
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		v := stored.Unknown(u.Name)
		if v == nil {
			if initial == nil || u.Kind == Field {
				return nil, fmt.Errorf("it has no unknown %q", u.Name)
			}
			log.Warn("an unknown is not stored and begins anew: the segments won't join", "file", from.File, "unknown", u.Name)
			continue
		}
		if err := sameGrids(l, u, stored, v); err != nil {
			return nil, fmt.Errorf("unknown %q: %w", u.Name, err)
		}
		if unit := from.units[u.Name]; unit != "" && u.Unit != "" && u.Unit != unit {
			log.Warn("an unknown has another unit than the stored one: values are copied as they are",
				"file", from.File, "unknown", u.Name, "stored", unit, "declared", u.Unit)
		}
		to, end := l.Range(u.Name)
		at, _ := stored.Range(u.Name)
		copy(state[to:end], from.State[at:])
	}
	for i := range stored.Unknowns {
		if name := stored.Unknowns[i].Name; l.Unknown(name) == nil {
			log.Warn("a stored unknown is not wanted: the segments won't join", "file", from.File, "unknown", name)
		}
	}
	return state, nil
}

// sameGrids compares what two unknowns are defined on. The second is the stored one.
func sameGrids(l *Layout, u *Unknown, stored *Layout, v *Unknown) error {
	if u.Kind != v.Kind {
		return fmt.Errorf("it is %s, stored is a %s one", u.Kind, v.Kind)
	}
	switch u.Kind {
	case Scalar:
		return nil
	case Field:
		err := cmp.Or(u.Domain.SameGrid(v.Domain), u.Domain.SamePeriodicity(v.Domain))
		if m, ok := errors.AsType[*grid.MismatchError](err); ok {
			return errors.New(m.Between("the layout", "the file"))
		}
		return err
	}
	if err := sameFaces("the radial grid", l.R, stored.R); err != nil {
		return err
	}
	if u.Kind == Radial {
		if u.Components != v.Components {
			return fmt.Errorf("it has %d components, stored are %d", u.Components, v.Components)
		}
		return nil
	}
	for r := range cells(l.R) {
		a, b := l.momentum(u, r), stored.momentum(v, r)
		if err := sameFaces(fmt.Sprintf("p at radius %d", r+1), a.P, b.P); err != nil {
			return err
		}
		if err := sameFaces(fmt.Sprintf("xi at radius %d", r+1), a.Xi, b.Xi); err != nil {
			return err
		}
	}
	return nil
}

func sameFaces(what string, a, b []float64) error {
	if len(a) != len(b) {
		return fmt.Errorf("%s has %d faces, stored are %d", what, len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			return fmt.Errorf("face %d of %s is %v, stored is %v", i+1, what, a[i], b[i])
		}
	}
	return nil
}
