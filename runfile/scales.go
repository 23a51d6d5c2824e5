package runfile

import (
	"context"
	"fmt"
	"slices"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// A scale has the coordinates of an axis of unknowns. It is a dataset in the root, for
// readers of netCDF look for the dimensions of a group in the groups above it and in no
// other.
type scale struct {
	path string
	unit string // "" for none
	n    int
	// at is the coordinate of a row. Without it the rows are numbered from 1.
	at func(i int) float64

	same any // scales of an axis with the same content are one
}

// scaleSet is the scales of a layout, and to which datasets they belong.
type scaleSet struct {
	scales []scale
	users  []h5.Scaled
}

// axis returns the path of the scale of an axis. The first one of a name is called by it,
// the next one with other coordinates <name>_2.
func (s *scaleSet) axis(name string, of scale) string {
	count := 0
	for _, have := range s.scales {
		if have.same == of.same {
			return have.path
		}
		if have.path == name || count > 0 && have.path == fmt.Sprintf("%s_%d", name, count+1) {
			count++
		}
	}
	of.path = name
	if count > 0 {
		of.path = fmt.Sprintf("%s_%d", name, count+1)
	}
	s.scales = append(s.scales, of)
	return of.path
}

// scales are those of the fields and the radial unknowns, except for fields that are
// elsewhere. Scalars have none: the time would have to name each of them.
func (l *Layout) scales(elsewhere map[string]string) scaleSet {
	var s scaleSet
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		d := h5.Scaled{Dataset: h5.Join("unknowns", u.Name), Scales: []string{"time"}}
		switch _, ok := elsewhere[u.Name]; {
		case u.Kind == Field && !ok:
			for axis := 2; axis >= 0; axis-- {
				d.Scales = append(d.Scales, s.axis([]string{"x", "y", "z"}[axis], cellCentres(u.Domain, axis)))
			}
		case u.Kind == Radial:
			d.Scales = append(d.Scales, s.axis("r", radii(l.R)), s.axis("component", rowNumbers(u.Components)))
		default:
			continue
		}
		s.users = append(s.users, d)
	}
	return s
}

// cellCentres are the coordinates of the cells of a domain along an axis.
func cellCentres(d grid.Domain, axis int) scale {
	type same struct {
		axis, n         int
		origin, spacing float64
	}
	origin, spacing := d.Origin[axis], d.Spacing[axis]
	return scale{
		n: d.Size[axis],
		// The product is rounded before it is added, on all machines.
		at:   func(i int) float64 { return origin + float64(float64(i)*spacing) },
		same: same{axis, d.Size[axis], origin, spacing},
	}
}

// radii are the middles between faces of the radial grid, of which a layout has one.
func radii(faces []float64) scale {
	return scale{
		unit: faceUnits["r_faces"],
		n:    cells(faces),
		at:   func(i int) float64 { return float64(faces[i]/2) + float64(faces[i+1]/2) },
		same: "r",
	}
}

// rowNumbers is the scale of an axis that has no coordinates but the numbers of its rows.
func rowNumbers(n int) scale { return scale{n: n, same: n} }

// writeScales makes the time a dimension scale, and attaches the scales of their coordinates
// to the axes of fields and radial unknowns. It is called when all datasets have been made:
// they are named once and for all, and grow as they are. So must those who copy the file
// leave the datasets in their place.
func writeScales(ctx context.Context, f *h5.File, l *Layout, elsewhere map[string]string, o *options) error {
	s := l.scales(elsewhere)
	for _, of := range s.scales {
		if err := of.write(ctx, f, o); err != nil {
			return err
		}
		if err := f.MakeScale(of.path); err != nil {
			return err
		}
	}
	if err := f.MakeScale("time"); err != nil {
		return err
	}
	return f.AttachScales(s.users)
}

func (s *scale) write(ctx context.Context, f *h5.File, o *options) error {
	if s.at == nil {
		o.count(8 * s.n)
		numbers := make([]int64, s.n)
		for i := range numbers {
			numbers[i] = int64(i) + 1
		}
		return h5.Write(f, s.path, numbers, s.n)
	}
	if err := h5.CreateDataset[float64](f, s.path, h5.Layout{Shape: []int{s.n}}); err != nil {
		return err
	}
	err := s.pieces(ctx, func(first int, part []float64) error {
		o.count(8 * len(part))
		return h5.WriteSlab(f, s.path, part, []int{first}, []int{len(part)})
	})
	if err != nil || s.unit == "" {
		return err
	}
	return f.SetAttributeString(s.path, unitAttribute, s.unit)
}

// pieces calls do with the coordinates, some at a time.
func (s *scale) pieces(ctx context.Context, do func(first int, part []float64) error) error {
	buffer := make([]float64, min(s.n, transferBytes/8))
	for first := 0; first < s.n; first += len(buffer) {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buffer[:min(len(buffer), s.n-first)]
		for i := range part {
			part[i] = s.at(first + i)
		}
		if err := do(first, part); err != nil {
			return err
		}
	}
	return nil
}

// scales compares the coordinates of a file of ours with its layout. Files of earlier
// releases have none.
func (i *inspector) scales(ctx context.Context) error {
	if !i.r.ours {
		return nil
	}
	for _, s := range i.Layout.scales(nil).scales {
		there, err := i.f.Exists(s.path)
		if err == nil && there {
			err = s.check(ctx, i.f)
		}
		if err := i.keep(err); err != nil {
			return err
		}
	}
	return nil
}

func (s *scale) check(ctx context.Context, f *h5.File) error {
	info, err := f.Stat(s.path)
	if err != nil {
		return err
	}
	if !slices.Equal(info.Shape, []int{s.n}) {
		return in(f.Name(), s.path, ErrMismatch, "its shape is %v, that of the layout [%d]", info.Shape, s.n)
	}
	if s.at == nil {
		numbers, err := readVector[int64](f, s.path)
		for i, n := range numbers {
			if n != int64(i)+1 {
				return in(f.Name(), s.path, ErrMismatch, "number %d is %d, must be %d", i, n, i+1)
			}
		}
		return err
	}
	there := make([]float64, min(s.n, transferBytes/8))
	return s.pieces(ctx, func(first int, part []float64) error {
		got := there[:len(part)]
		if err := h5.ReadSlab(f, s.path, got, []int{first}, []int{len(part)}); err != nil {
			return err
		}
		for i, want := range part {
			if got[i] != want {
				return in(f.Name(), s.path, ErrMismatch, "coordinate %d is %v, that of the layout is %v", first+i, got[i], want)
			}
		}
		return nil
	})
}
