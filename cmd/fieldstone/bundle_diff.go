package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

// diffPiece is the number of bytes that are read of a field at once.
const diffPiece = 1 << 20

// difference is the outcome of a comparison, as JSON.
type difference struct {
	A        string      `json:"a"`
	B        string      `json:"b"`
	ABytes   []byte      `json:"a_bytes,omitempty"`
	BBytes   []byte      `json:"b_bytes,omitempty"`
	Equal    bool        `json:"equal"`
	Grid     gridDiff    `json:"grid"`
	Fields   []fieldDiff `json:"fields"`
	Metadata []keyDiff   `json:"metadata"` // null: not compared
	Sidecar  *sideState  `json:"sidecar"`  // null: not compared
	// Tolerance is that of the cells; without one all bits count.
	Tolerance *toleranceJSON `json:"tolerance,omitempty"`

	size [3]int
}

// gridDiff is a difference of the grids. Cells of grids of the same dimensions
// can be compared.
type gridDiff struct {
	Comparable bool    `json:"comparable"`
	Difference *string `json:"difference"`
}

type fieldDiff struct {
	ID        string        `json:"id"`
	State     sideState     `json:"state"`
	Cells     int64         `json:"cells"`
	Differing int64         `json:"differing"`
	NonFinite int64         `json:"non_finite"`
	All       *distanceJSON `json:"all"`
	Finite    *distanceJSON `json:"finite"`
	First     *firstDiff    `json:"first"`
	Maxima    *fieldMaxima  `json:"maxima,omitempty"` // with a tolerance
}

// fieldMaxima are the largest differences by a tolerance. A cell is null where there is
// no difference.
type fieldMaxima struct {
	Beyond     int64     `json:"beyond"`
	NonFinite  int64     `json:"non_finite"` // of them, those with a NaN or an infinity
	MaxAbs     number    `json:"max_abs"`
	MaxAbsCell *[3]int64 `json:"max_abs_cell"`
	MaxRel     number    `json:"max_rel"`
	MaxRelCell *[3]int64 `json:"max_rel_cell"`
}

type distanceJSON struct {
	MaxAbs number  `json:"max_abs"`
	RMS    number  `json:"rms"`
	MaxULP ulpJSON `json:"max_ulp"`
}

// ulpJSON is a ULP distance; that of a NaN is the string "Infinity".
type ulpJSON uint64

// MarshalJSON writes a number where there is one.
func (u ulpJSON) MarshalJSON() ([]byte, error) {
	if u == infinitelyFar {
		return []byte(`"Infinity"`), nil
	}
	return strconv.AppendUint(nil, uint64(u), 10), nil
}

func (u ulpJSON) String() string {
	if u == infinitelyFar {
		return rough(math.Inf(1))
	}
	return strconv.FormatUint(uint64(u), 10)
}

type firstDiff struct {
	Cell  [3]int64 `json:"cell"`
	A     number   `json:"a"`
	B     number   `json:"b"`
	BitsA string   `json:"a_bits"`
	BitsB string   `json:"b_bits"`
}

// keyDiff is a key of the metadata that differs. A missing value is null.
type keyDiff struct {
	Key string          `json:"key"`
	A   json.RawMessage `json:"a"`
	B   json.RawMessage `json:"b"`
}

func (b bundle) diff(ctx context.Context, with subject, o diffOptions) error {
	a, pathA, pathB := b.app, b.path, with.(bundle).path
	x, y, errA, errB := openBundles(pathA, pathB)
	defer closeBundles(x, y)
	if a.reportSides(pathA, pathB, errA, errB) {
		return statusError(statusFailed)
	}
	d, err := a.compare(ctx, x, y, o)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	if err := a.print(d, o); err != nil || d.Equal {
		return err
	}
	return statusError(statusBad)
}

// print shows what two subjects differ in, as the flags say.
func (a *app) print(d interface{ write(*app) }, o diffOptions) error {
	switch {
	case o.quiet:
	case o.json:
		return writeJSON(a.out, d)
	default:
		d.write(a)
	}
	return nil
}

func openBundles(pathA, pathB string) (x, y *publish.Bundle, errA, errB error) {
	x, errA = openBundle(pathA)
	y, errB = openBundle(pathB)
	return x, y, errA, errB
}

func closeBundles(bundles ...*publish.Bundle) {
	for _, b := range bundles {
		if b != nil {
			b.Close() // it was only read
		}
	}
}

// readError is an error of one of the two bundles.
func readError(path string, err error) error {
	return fmt.Errorf("diff %s: %s", path, reason(path, err))
}

func (a *app) compare(ctx context.Context, x, y *publish.Bundle, o diffOptions) (*difference, error) {
	m, n := x.Metadata(), y.Metadata()
	d := &difference{A: x.Path(), B: y.Path(), ABytes: notUTF8(x.Path()), BBytes: notUTF8(y.Path()), Equal: true, Fields: []fieldDiff{}, Tolerance: newToleranceJSON(o.tolerance), size: m.Domain.Size}
	if o.metadata {
		var err error
		if d.Metadata, err = compareMetadata(m, n); err != nil {
			return nil, fmt.Errorf("diff: metadata.json: %w", err)
		}
		d.Equal = len(d.Metadata) == 0
	}
	if o.sidecar {
		s, err := compareSidecars(x, y)
		if err != nil {
			return nil, err
		}
		d.Sidecar = &s
		d.Equal = d.Equal && s == sideEqual
	}
	d.Grid = compareGrids(m.Domain, n.Domain)
	d.Equal = d.Equal && d.Grid.Comparable
	err := a.compareFields(ctx, x, y, d, o)
	return d, err
}

// compareFields stops at the first difference if nothing is to be written.
func (a *app) compareFields(ctx context.Context, x, y *publish.Bundle, d *difference, o diffOptions) error {
	inA, inB := x.Fields(), y.Fields()
	var common []string
	for _, id := range inA {
		switch {
		case !slices.Contains(inB, id):
			d.Fields = append(d.Fields, fieldDiff{ID: id, State: sideOnlyA})
			d.Equal = false
		case !d.Grid.Comparable:
			d.Fields = append(d.Fields, fieldDiff{ID: id, State: sideNotCompared})
		default:
			d.Fields = append(d.Fields, fieldDiff{ID: id})
			common = append(common, id)
		}
	}
	for _, id := range inB {
		if !slices.Contains(inA, id) {
			d.Fields = append(d.Fields, fieldDiff{ID: id, State: sideOnlyB})
			d.Equal = false
		}
	}
	bar := a.start("diff", int64(len(common))*8*x.Metadata().Domain.Cells())
	defer bar.end()
	for i := range d.Fields {
		f := &d.Fields[i]
		if f.State != "" {
			continue
		}
		if o.quiet && !d.Equal {
			return nil
		}
		c, err := compareField(ctx, x, y, f.ID, o, bar.add)
		if err != nil {
			return err
		}
		f.set(c, d.size)
		d.Equal = d.Equal && c.same()
	}
	return nil
}

func compareField(ctx context.Context, x, y *publish.Bundle, id string, o diffOptions, progress func(int64)) (*comparison, error) {
	p, err := x.Field(id)
	if err != nil {
		return nil, readError(x.Path(), err)
	}
	q, err := y.Field(id)
	if err != nil {
		return nil, readError(y.Path(), err)
	}
	c := newComparison(o.tolerance)
	bufA, bufB := make([]byte, diffPiece), make([]byte, diffPiece)
	for at := int64(0); at < p.Size(); at += diffPiece {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(diffPiece, p.Size()-at)
		if err := readAt(p, bufA[:n], at); err != nil {
			return nil, readError(x.Path(), fmt.Errorf("field %q: %w", id, err))
		}
		if err := readAt(q, bufB[:n], at); err != nil {
			return nil, readError(y.Path(), fmt.Errorf("field %q: %w", id, err))
		}
		c.add(bufA[:n], bufB[:n])
		progress(n)
		if o.quiet && !c.same() {
			break
		}
	}
	return c, nil
}

// readAt fills p. The end of the file is an error.
func readAt(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (f *fieldDiff) set(c *comparison, size [3]int) {
	f.State, f.Cells, f.Differing, f.NonFinite = sideEqual, c.cells, c.differing, c.nonFinite
	f.All, f.Finite = c.distance().json(), c.finiteDistance().json()
	if m := c.maxima; m != nil {
		f.Maxima = &fieldMaxima{Beyond: m.Beyond, NonFinite: m.NonFinite, MaxAbs: number(m.Abs), MaxRel: number(m.Rel)}
		if m.Abs > 0 {
			f.Maxima.MaxAbsCell = pointer(cellAt(m.AbsAt, size))
		}
		if m.Rel > 0 {
			f.Maxima.MaxRelCell = pointer(cellAt(m.RelAt, size))
		}
	}
	switch {
	case c.equal():
		return
	case c.same():
		f.State = sideWithin
		return
	}
	f.State = sideDifferent
	f.First = &firstDiff{
		Cell: cellAt(c.first, size),
		A:    number(c.valA), BitsA: bits(c.valA),
		B: number(c.valB), BitsB: bits(c.valB),
	}
}

// cellAt is the cell of an index in the order of a file.
func cellAt(index int64, size [3]int) [3]int64 {
	nx, ny := int64(size[0]), int64(size[1])
	return [3]int64{index % nx, index / nx % ny, index / nx / ny}
}

func bits(v float64) string { return fmt.Sprintf("%016x", math.Float64bits(v)) }

func (d distance) json() *distanceJSON {
	return &distanceJSON{MaxAbs: number(d.maxAbs), RMS: number(d.rms), MaxULP: ulpJSON(d.maxULP)}
}

// compareMetadata lists the keys that differ, except those about the
// writing and not of the state.
func compareMetadata(m, n publish.Metadata) ([]keyDiff, error) {
	a, err := metadataKeys(m)
	if err != nil {
		return nil, err
	}
	b, err := metadataKeys(n)
	if err != nil {
		return nil, err
	}
	diffs := []keyDiff{}
	for i := range a {
		same := a[i].value == nil && b[i].value == nil
		if a[i].value != nil && b[i].value != nil {
			if same, err = publish.SameJSON(a[i].value, b[i].value); err != nil {
				return nil, fmt.Errorf("%s: %w", a[i].key, err)
			}
		}
		if !same {
			diffs = append(diffs, keyDiff{Key: a[i].key, A: a[i].value, B: b[i].value})
		}
	}
	return diffs, nil
}

type keyValue struct {
	key   string
	value json.RawMessage // nil: missing
}

func metadataKeys(m publish.Metadata) ([]keyValue, error) {
	var boundaries any
	if m.BoundaryConditions != nil {
		list := make([]shownBoundary, len(m.BoundaryConditions))
		for i, b := range m.BoundaryConditions {
			list[i] = shownBoundary(b)
		}
		boundaries = list
	}
	keys := []struct {
		key   string
		value any
	}{
		{"format_version", m.FormatVersion},
		{"accepted_time", m.AcceptedTime},
		{"accepted_increment", m.AcceptedIncrement},
		{"result_counter", m.ResultCounter},
		{"domain.global_dimensions", m.Domain.Size},
		{"domain.physical_origin", m.Domain.Origin},
		{"domain.grid_spacing", m.Domain.Spacing},
		{"domain.periodic", m.Domain.Periodic},
		{"method_identity", m.MethodIdentity},
		{"fields", m.Fields},
		{"boundary_conditions", boundaries},
	}
	list := make([]keyValue, len(keys))
	for i, k := range keys {
		list[i].key = k.key
		if k.value == nil {
			continue
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(k.value); err != nil {
			return nil, fmt.Errorf("%s: %w", k.key, err)
		}
		list[i].value = bytes.TrimSpace(b.Bytes())
	}
	return list, nil
}

func compareSidecars(x, y *publish.Bundle) (sideState, error) {
	a, inA := x.Sidecar()
	b, inB := y.Sidecar()
	switch {
	case !inA && !inB:
		return sideEqual, nil
	case !inB:
		return sideOnlyA, nil
	case !inA:
		return sideOnlyB, nil
	case bytes.Equal(a, b):
		return sideEqual, nil
	}
	same, err := publish.SameJSON(a, b)
	switch {
	case err != nil:
		of := x
		if _, errA := publish.SameJSON(a, a); errA == nil {
			of = y
		}
		return "", fmt.Errorf("diff %s: sidecar.json: %w", of.Path(), err)
	case same:
		return sideEqual, nil
	}
	return sideDifferent, nil
}

// compareGrids looks at dimensions, origin and spacing, with the tolerances of
// [grid.Domain.SameGrid], and at periodicity, in this order.
func compareGrids(d, e grid.Domain) gridDiff {
	err := d.SameGrid(e)
	if err == nil {
		err = d.SamePeriodicity(e)
	}
	g := gridDiff{Comparable: d.Size == e.Size}
	var m *grid.MismatchError
	switch {
	case errors.As(err, &m):
		g.Difference = pointer(fmt.Sprintf("grids differ: %s along %c is %s in A, %s in B", m.Quantity, "xyz"[m.Axis], m.A, m.B))
	case err != nil:
		g.Difference = pointer(err.Error())
	}
	return g
}
