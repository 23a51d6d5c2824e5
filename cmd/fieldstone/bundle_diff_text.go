package main

import (
	"encoding/json"
	"fmt"
)

func (d *difference) write(a *app) {
	fmt.Fprintf(a.out, "A: %s\nB: %s\n", oneLine(d.A), oneLine(d.B))
	if d.Tolerance != nil {
		fmt.Fprintf(a.out, "tolerance: %v\n", d.Tolerance)
	}
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
	if d.Tolerance != nil {
		t = newTable(2, 3, 5)
		t.row("FIELD", "STATE", "BEYOND", "MAX ABS", "AT", "MAX REL", "AT", "FIRST BEYOND", "A", "B")
	}
	columns := 2
	for _, f := range d.Fields {
		row := []string{f.ID, string(f.State)}
		switch {
		case f.Maxima != nil && f.State != sideEqual:
			row = append(row, f.maxima()...)
		case f.First != nil:
			row = append(row, f.numbers()...)
		}
		columns = max(columns, len(row))
		t.row(row...)
	}
	t.rows[0] = t.rows[0][:columns]
	fmt.Fprintln(a.out, "fields")
	t.write(a.out, "  ")
	for _, f := range d.Fields {
		switch {
		case f.Maxima != nil && f.Maxima.NonFinite > 0:
			fmt.Fprintf(a.out, "%s: the maxima leave out %s with a NaN or an infinity\n", oneLine(f.ID), count(f.Maxima.NonFinite, "cell"))
		case f.Maxima == nil && f.NonFinite > 0:
			fmt.Fprintf(a.out, "%s: NaNs or infinities in %s; the others: max abs %s, rms %s, max ulp %s\n",
				oneLine(f.ID), count(f.NonFinite, "differing cell"),
				rough(float64(f.Finite.MaxAbs)), rough(float64(f.Finite.RMS)), f.Finite.MaxULP)
		}
	}
}

func (f *fieldDiff) numbers() []string {
	return append([]string{
		fmt.Sprintf("%d of %d", f.Differing, f.Cells),
		rough(float64(f.All.MaxAbs)), rough(float64(f.All.RMS)), f.All.MaxULP.String(),
	}, f.First.texts()...)
}

// texts are the cell and both values, with their bits where both print alike.
func (f *firstDiff) texts() []string {
	a, b := exact(float64(f.A)), exact(float64(f.B))
	if a == b {
		a, b = a+" ("+f.BitsA+")", b+" ("+f.BitsB+")"
	}
	return []string{cellName(f.Cell), a, b}
}

func (f *fieldDiff) maxima() []string {
	m := f.Maxima
	row := []string{fmt.Sprintf("%d of %d", m.Beyond, f.Cells), rough(float64(m.MaxAbs)), "", rough(float64(m.MaxRel)), ""}
	if m.MaxAbsCell != nil {
		row[2] = cellName(*m.MaxAbsCell)
	}
	if m.MaxRelCell != nil {
		row[4] = cellName(*m.MaxRelCell)
	}
	if f.First != nil {
		row = append(row, f.First.texts()...)
	}
	return row
}

func orMissing(value json.RawMessage) string {
	if value == nil {
		return "missing"
	}
	return string(value)
}

func cellName(c [3]int64) string { return fmt.Sprintf("(%d, %d, %d)", c[0], c[1], c[2]) }
