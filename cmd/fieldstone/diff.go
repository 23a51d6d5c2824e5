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
	"github.com/spf13/cobra"
)

// diffPiece is the number of bytes that are read of a field at once.
const diffPiece = 1 << 20

// diffOptions are the flags of diff.
type diffOptions struct {
	metadata, sidecar, quiet, json bool
}

func newDiff(a *app) *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two bundles or two run files, bit for bit",
		Long: `Compare the fields of two bundles, or what two files of runs hold, bit for bit.

Of each field that differs the output has the number of differing cells, the
largest absolute difference, the root mean square of the difference over all
cells, the largest difference in units in the last place (ULP), and the first
differing cell in the order of the file (x fastest) with both values. NaNs of the
same bits are equal; a NaN is infinitely far from everything else. -0 and +0 are
different, at the distance 0.

A field that only one bundle has is a difference. Grids of different dimensions
are a difference, and their fields aren't compared. Origin, spacing and periodicity
count with --metadata only. Checksums are not verified.

Of two outputs or two checkpoints of runs the times, the unknowns, the states of interval
updates and the statistics are compared, but no wall times, and the setup hash with
--metadata only ('fieldstone settings diff' compares the settings). Of each that differs
the output has the number of differing values, and the first one with both values. Saved
states are compared by their numbers, as many as both files have.

Exit status: 0 when everything that is compared is equal, 1 when not, 2 for wrong
usage or when something can't be read.`,
		Example: `  fieldstone diff a/step_40 b/step_40
  fieldstone diff --metadata a/step_40 b/step_40
  fieldstone diff -q a/step_40 b/step_40 && echo equal
  fieldstone diff a/decay.h5 b/decay.h5`,
		Args:              arguments(2, 2, "two bundles or two run files"),
		ValidArgsFunction: completePaths(2),
		RunE: func(c *cobra.Command, args []string) error {
			if isRunFile(args[0]) || isRunFile(args[1]) {
				if o.sidecar {
					return misused(c, errors.New("diff: a run file has no sidecar"))
				}
				return a.diffRuns(c.Context(), args[0], args[1], o)
			}
			return a.diff(c.Context(), args[0], args[1], o)
		},
	}
	c.Flags().BoolVar(&o.metadata, "metadata", false, "compare metadata.json too, but for creation time, writer and decomposition; of run files the setup hash")
	c.Flags().BoolVar(&o.sidecar, "sidecar", false, "compare sidecar.json too, as a JSON value")
	c.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "write nothing: the exit status is the answer")
	c.Flags().BoolVar(&o.json, "json", false, "write JSON")
	c.MarkFlagsMutuallyExclusive("quiet", "json")
	return c
}

// difference is the outcome of a comparison, as JSON.
type difference struct {
	A        string      `json:"a"`
	B        string      `json:"b"`
	Equal    bool        `json:"equal"`
	Grid     gridDiff    `json:"grid"`
	Fields   []fieldDiff `json:"fields"`
	Metadata []keyDiff   `json:"metadata"` // null: not compared
	Sidecar  *sideState  `json:"sidecar"`  // null: not compared

	size [3]int
}

// gridDiff is a difference of the grids. Cells of grids of the same dimensions
// can be compared.
type gridDiff struct {
	Comparable bool    `json:"comparable"`
	Difference *string `json:"difference"`
}

// sideState says how what both bundles could have compares.
type sideState string

const (
	sideEqual       sideState = "equal"
	sideDifferent   sideState = "different"
	sideOnlyA       sideState = "only in A"
	sideOnlyB       sideState = "only in B"
	sideNotCompared sideState = "not compared" // the grids differ
)

type fieldDiff struct {
	ID        string        `json:"id"`
	State     sideState     `json:"state"`
	Cells     int64         `json:"cells"`
	Differing int64         `json:"differing"`
	NonFinite int64         `json:"non_finite"`
	All       *distanceJSON `json:"all"`
	Finite    *distanceJSON `json:"finite"`
	First     *firstDiff    `json:"first"`
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

func (a *app) diff(ctx context.Context, pathA, pathB string, o diffOptions) error {
	var bundles [2]*publish.Bundle
	for i, path := range []string{pathA, pathB} {
		b, err := publish.OpenBundle(path)
		if err != nil {
			a.report("diff", path, err)
			continue
		}
		defer b.Close()
		bundles[i] = b
	}
	if bundles[0] == nil || bundles[1] == nil {
		return statusError(statusFailed)
	}
	d, err := a.compare(ctx, bundles[0], bundles[1], o)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	switch {
	case o.quiet:
	case o.json:
		err = writeJSON(a.out, d)
	default:
		d.write(a)
	}
	if err == nil && !d.Equal {
		err = statusError(statusBad)
	}
	return err
}

// readError is an error of one of the two bundles.
func readError(path string, err error) error {
	return fmt.Errorf("diff %s: %s", path, reason(path, err))
}

func (a *app) compare(ctx context.Context, x, y *publish.Bundle, o diffOptions) (*difference, error) {
	m, n := x.Metadata(), y.Metadata()
	d := &difference{A: x.Path(), B: y.Path(), Equal: true, Fields: []fieldDiff{}, size: m.Domain.Size}
	if o.metadata {
		var err error
		if d.Metadata, err = compareMetadata(m, n); err != nil {
			return nil, err
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
	err := a.compareFields(ctx, x, y, d, o.quiet)
	return d, err
}

// compareFields stops at the first difference if quick is set.
func (a *app) compareFields(ctx context.Context, x, y *publish.Bundle, d *difference, quick bool) error {
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
		if quick && !d.Equal {
			return nil
		}
		c, err := compareField(ctx, x, y, f.ID, quick, bar.add)
		if err != nil {
			return err
		}
		f.set(c, d.size)
		d.Equal = d.Equal && c.equal()
	}
	return nil
}

func compareField(ctx context.Context, x, y *publish.Bundle, id string, quick bool, progress func(int64)) (*comparison, error) {
	p, err := x.Field(id)
	if err != nil {
		return nil, readError(x.Path(), err)
	}
	q, err := y.Field(id)
	if err != nil {
		return nil, readError(y.Path(), err)
	}
	c := newComparison()
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
		if quick && !c.equal() {
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
	if c.equal() {
		return
	}
	f.State = sideDifferent
	nx, ny := int64(size[0]), int64(size[1])
	f.First = &firstDiff{
		Cell: [3]int64{c.first % nx, c.first / nx % ny, c.first / nx / ny},
		A:    number(c.valA), BitsA: bits(c.valA),
		B: number(c.valB), BitsB: bits(c.valB),
	}
}

func bits(v float64) string { return fmt.Sprintf("%016x", math.Float64bits(v)) }

func (d distance) json() *distanceJSON {
	return &distanceJSON{MaxAbs: number(d.maxAbs), RMS: number(d.rms), MaxULP: ulpJSON(d.maxULP)}
}

// compareMetadata lists the keys that differ, but for those that tell of the
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
		return "", fmt.Errorf("diff: sidecar.json: %w", err)
	case same:
		return sideEqual, nil
	}
	return sideDifferent, nil
}

func (d *difference) write(a *app) {
	fmt.Fprintf(a.out, "A: %s\nB: %s\n", oneLine(d.A), oneLine(d.B))
	if d.Metadata != nil {
		fmt.Fprintln(a.out, "metadata")
		t := newTable()
		if len(d.Metadata) > 0 {
			t.row("KEY", "A", "B")
		} else {
			t.row("equal")
		}
		for _, k := range d.Metadata {
			t.row(k.Key, orMissing(k.A), orMissing(k.B))
		}
		t.write(a.out, "  ")
	}
	if d.Sidecar != nil {
		fmt.Fprintf(a.out, "sidecar: %s\n", *d.Sidecar)
	}
	switch {
	case d.Grid.Difference == nil:
	case d.Grid.Comparable && d.Metadata != nil: // it is among them
	case d.Grid.Comparable:
		fmt.Fprintf(a.out, "%s (that counts with --metadata)\n", *d.Grid.Difference)
	default:
		fmt.Fprintf(a.out, "%s: the cells can't be compared\n", *d.Grid.Difference)
	}
	d.writeFields(a)
}

func (d *difference) writeFields(a *app) {
	t := newTable(2, 3, 4, 5)
	t.row("FIELD", "STATE", "CELLS", "MAX ABS", "RMS", "MAX ULP", "FIRST AT", "A", "B")
	numbers := false
	for _, f := range d.Fields {
		row := []string{f.ID, string(f.State)}
		if f.First != nil {
			numbers = true
			row = append(row, f.numbers()...)
		}
		t.row(row...)
	}
	if !numbers {
		t.rows[0] = t.rows[0][:2]
	}
	fmt.Fprintln(a.out, "fields")
	t.write(a.out, "  ")
	for _, f := range d.Fields {
		if f.NonFinite > 0 {
			fmt.Fprintf(a.out, "%s: NaNs or infinities in %s; the others: max abs %s, rms %s, max ulp %s\n",
				oneLine(f.ID), count(f.NonFinite, "differing cell"),
				rough(float64(f.Finite.MaxAbs)), rough(float64(f.Finite.RMS)), f.Finite.MaxULP)
		}
	}
}

func (f *fieldDiff) numbers() []string {
	a, b := exact(float64(f.First.A)), exact(float64(f.First.B))
	if a == b {
		a, b = a+" ("+f.First.BitsA+")", b+" ("+f.First.BitsB+")"
	}
	return []string{
		fmt.Sprintf("%d of %d", f.Differing, f.Cells),
		rough(float64(f.All.MaxAbs)), rough(float64(f.All.RMS)), f.All.MaxULP.String(),
		cellName(f.First.Cell), a, b,
	}
}

func orMissing(value json.RawMessage) string {
	if value == nil {
		return "missing"
	}
	return string(value)
}

func cellName(c [3]int64) string { return fmt.Sprintf("(%d, %d, %d)", c[0], c[1], c[2]) }

// compareGrids looks at dimensions, and at origin, spacing (within 1e-12
// relative) and periodicity, in this order.
func compareGrids(d, e grid.Domain) gridDiff {
	err := d.SameGrid(e)
	if err == nil {
		err = d.SamePeriodicity(e)
	}
	g := gridDiff{Comparable: d.Size == e.Size}
	if err != nil {
		g.Difference = pointer(err.Error())
	}
	return g
}
