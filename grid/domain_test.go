package grid_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
)

func domain(size ...int) grid.Domain {
	return grid.Domain{Size: [3]int(size), Spacing: [3]float64{1, 1, 1}}
}

func TestDomainValidate(t *testing.T) {
	valid := grid.Domain{Size: [3]int{10, 6, 7}, Origin: [3]float64{-1, 0, 2}, Spacing: [3]float64{0.5, 1, 2}}
	type test struct {
		name   string
		change func(d *grid.Domain)
		want   []string // in the error's text; none: valid
	}
	tests := []test{
		{"a plain domain is valid", func(*grid.Domain) {}, nil},
		{"one cell is enough", func(d *grid.Domain) { d.Size = [3]int{1, 1, 1} }, nil},
		{"size 0 names axis and value", func(d *grid.Domain) { d.Size[1] = 0 }, []string{"size", "y", "0"}},
		{"negative size names axis and value", func(d *grid.Domain) { d.Size[2] = -3 }, []string{"size", "z", "-3"}},
		{"two negative sizes are not a positive product", func(d *grid.Domain) { d.Size[0], d.Size[1] = -3, -3 }, []string{"size", "x", "-3"}},
		{"almost the largest cell count is valid", func(d *grid.Domain) { d.Size = [3]int{1 << 30, 1<<29 - 1, 1} }, nil},
		{"one cell more than the largest is refused", func(d *grid.Domain) { d.Size = [3]int{1 << 30, 1 << 29, 1} }, []string{"more cells", "y"}},
		{"a product that overflows is refused", func(d *grid.Domain) { d.Size = [3]int{1 << 30, 1 << 30, 1 << 4} }, []string{"more cells", "z"}},
		{"NaN origin names axis", func(d *grid.Domain) { d.Origin[0] = math.NaN() }, []string{"origin", "x", "NaN"}},
		{"infinite origin names axis", func(d *grid.Domain) { d.Origin[2] = math.Inf(-1) }, []string{"origin", "z", "-Inf"}},
		{"spacing 0 names axis", func(d *grid.Domain) { d.Spacing[0] = 0 }, []string{"spacing", "x", "0"}},
		{"negative spacing names value", func(d *grid.Domain) { d.Spacing[1] = -0.25 }, []string{"spacing", "y", "-0.25"}},
		{"NaN spacing names value", func(d *grid.Domain) { d.Spacing[1] = math.NaN() }, []string{"spacing", "y", "NaN"}},
		{"infinite spacing names value", func(d *grid.Domain) { d.Spacing[2] = math.Inf(1) }, []string{"spacing", "z", "+Inf"}},
	}
	if most := int64(math.MaxInt64 / 16); strconv.IntSize > 32 {
		tests = append(tests,
			test{"the largest cell count is valid", func(d *grid.Domain) { d.Size = [3]int{int(most), 1, 1} }, nil},
			test{"one cell more along one axis is refused", func(d *grid.Domain) { d.Size = [3]int{int(most + 1), 1, 1} }, []string{"more cells", "x"}})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := valid
			tt.change(&d)
			checkText(t, d.Validate(), tt.want)
		})
	}
}

// checkText wants an error with all parts in its text, or none without parts.
func checkText(t *testing.T, err error, parts []string) {
	t.Helper()
	if parts == nil {
		if err != nil {
			t.Fatalf("error %q, want none", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q doesn't have %q", err, p)
		}
	}
}

func TestDomainCellsAndBox(t *testing.T) {
	d := domain(10, 6, 7)
	if got := d.Cells(); got != 420 {
		t.Errorf("cells %d, want 420", got)
	}
	if got, want := d.Box(), (grid.Box{Size: [3]int{10, 6, 7}}); got != want {
		t.Errorf("box %v, want %v", got, want)
	}
}

func TestDomainCoordinates(t *testing.T) {
	d := grid.Domain{Size: [3]int{4, 4, 4}, Origin: [3]float64{1, -2, 0.5}, Spacing: [3]float64{0.5, 2, 0.25}}
	for _, tt := range []struct {
		name  string
		index [3]int
		want  [3]float64
	}{
		{"the first cell lies at the origin", [3]int{0, 0, 0}, [3]float64{1, -2, 0.5}},
		{"each axis has its own spacing", [3]int{1, 2, 3}, [3]float64{1.5, 2, 1.25}},
		{"ghost cells lie outside", [3]int{-1, 4, -2}, [3]float64{0.5, 6, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := d.Coordinates(tt.index[0], tt.index[1], tt.index[2]); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestSameGrid(t *testing.T) {
	base := grid.Domain{Size: [3]int{10, 6, 7}, Origin: [3]float64{0, 1e6, -3}, Spacing: [3]float64{0.1, 1, 2}}
	tests := []struct {
		name   string
		change func(d *grid.Domain)
		want   *grid.MismatchError
	}{
		{"equal domains are the same", func(*grid.Domain) {}, nil},
		{"periodic flags don't matter", func(d *grid.Domain) { d.Periodic[1] = true }, nil},
		{"spacing within 1e-12 relative is the same", func(d *grid.Domain) { d.Spacing[0] *= 1 + 9e-13 }, nil},
		{"origin within a millionth of the spacing is the same", func(d *grid.Domain) { d.Origin[1] += 9e-7 }, nil},
		{"origin past a millionth of the spacing differs", func(d *grid.Domain) { d.Origin[1] += 2e-6 }, &grid.MismatchError{Quantity: "origin", Axis: 1, A: "1e+06", B: "1.000000000002e+06"}},
		{"rounding noise around zero is the same", func(d *grid.Domain) { d.Origin[0] = 3*0.1 - 0.3 }, nil},
		{"a thousandth of a cell from zero differs", func(d *grid.Domain) { d.Origin[0] = 1e-4 }, &grid.MismatchError{Quantity: "origin", Axis: 0, A: "0", B: "0.0001"}},
		{"minus zero is zero", func(d *grid.Domain) { d.Origin[0] = math.Copysign(0, -1) }, nil},
		{"sizes are exact", func(d *grid.Domain) { d.Size[2]++ }, &grid.MismatchError{Quantity: "size", Axis: 2, A: "7", B: "8"}},
		{"spacing past the tolerance differs", func(d *grid.Domain) { d.Spacing[1] *= 1 + 2e-12 }, &grid.MismatchError{Quantity: "spacing", Axis: 1, A: "1", B: "1.000000000002"}},
		{"origin past the tolerance differs", func(d *grid.Domain) { d.Origin[2] = 3 }, &grid.MismatchError{Quantity: "origin", Axis: 2, A: "-3", B: "3"}},
		{"next to nothing is zero", func(d *grid.Domain) { d.Origin[0] = 1e-300 }, nil},
		{"an origin that is NaN differs", func(d *grid.Domain) { d.Origin[0] = math.NaN() }, &grid.MismatchError{Quantity: "origin", Axis: 0, A: "0", B: "NaN"}},
		{"an origin that is infinite differs", func(d *grid.Domain) { d.Origin[2] = math.Inf(1) }, &grid.MismatchError{Quantity: "origin", Axis: 2, A: "-3", B: "+Inf"}},
		{"NaN is never the same", func(d *grid.Domain) { d.Spacing[2] = math.NaN() }, &grid.MismatchError{Quantity: "spacing", Axis: 2, A: "2", B: "NaN"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := base
			tt.change(&d)
			checkMismatch(t, base.SameGrid(d), tt.want)
		})
	}
}

// Far from zero the spacing may be finer than the numbers are: then these decide.
func TestSameGridFarFromTheOrigin(t *testing.T) {
	at := func(origin, spacing float64) grid.Domain {
		d := domain(4, 3, 2)
		d.Origin[0], d.Spacing[0] = origin, spacing
		return d
	}
	const far, fine = 1e6, 1e-7
	unit := math.Nextafter(far, 2*far) - far
	for shift, same := range map[float64]bool{1: true, 4: true, 5: false} {
		a, b := at(far, fine), at(far+shift*unit, fine)
		if err, back := a.SameGrid(b), b.SameGrid(a); (err == nil) != same || (back == nil) != same {
			t.Errorf("shifted by %v units in the last place: %v, and %v the other way round", shift, err, back)
		}
	}
	if err := at(far, fine).SameGrid(at(far+3*fine, fine)); err == nil {
		t.Error("three cells off is the same")
	}
}

func TestSamePeriodicity(t *testing.T) {
	a, b := domain(4, 4, 4), domain(8, 8, 8)
	checkMismatch(t, a.SamePeriodicity(b), nil)
	b.Periodic[2] = true
	checkMismatch(t, a.SamePeriodicity(b), &grid.MismatchError{Quantity: "periodicity", Axis: 2, A: "false", B: "true"})
}

func checkMismatch(t *testing.T, err error, want *grid.MismatchError) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("error %q, want none", err)
		}
		return
	}
	got, ok := errors.AsType[*grid.MismatchError](err)
	if !ok || *got != *want {
		t.Fatalf("error %v, want %v", err, want)
	}
	axis := "xyz"[want.Axis : want.Axis+1]
	checkText(t, err, []string{want.Quantity, axis, want.A, want.B})
	if text, want := got.Between("one", "the other"), want.Quantity+" along "+axis+": one has "+want.A+", the other has "+want.B; text != want {
		t.Errorf("between the two it is %q, want %q", text, want)
	}
}
