//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

// A difference says in which cells two bundles have other bits in a field.
type difference struct {
	field string
	cells int64  // how many
	first [3]int // the first one, in the order of the file
	a, b  float64
}

func (d difference) String() string {
	return fmt.Sprintf("field %s differs in %d cells, first in %v: %v and %v", d.field, d.cells, d.first, d.a, d.b)
}

// compareBundles verifies the checksums of two bundles and compares their fields
// bit for bit, a row at a time. The error says what can't be compared.
func compareBundles(ctx context.Context, pathA, pathB string) (diffs []difference, err error) {
	a, err := publish.OpenBundle(pathA)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := publish.OpenBundle(pathB)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := errors.Join(a.Verify(ctx, nil), b.Verify(ctx, nil)); err != nil {
		return nil, err
	}

	ma, mb := a.Metadata(), b.Metadata()
	if ma.Domain != mb.Domain || ma.AcceptedIncrement != mb.AcceptedIncrement ||
		math.Float64bits(ma.AcceptedTime) != math.Float64bits(mb.AcceptedTime) || !slices.Equal(ma.Fields, mb.Fields) {
		return nil, fmt.Errorf("%s and %s are of different states: increments %d and %d, times %v and %v, fields %q and %q, grids %+v and %+v",
			pathA, pathB, ma.AcceptedIncrement, mb.AcceptedIncrement, ma.AcceptedTime, mb.AcceptedTime, ma.Fields, mb.Fields, ma.Domain, mb.Domain)
	}
	for _, id := range ma.Fields {
		d, err := compareField(ctx, a, b, id, ma.Domain.Size)
		if err != nil {
			return nil, err
		}
		if d.cells > 0 {
			diffs = append(diffs, d)
		}
	}
	return diffs, nil
}

func compareField(ctx context.Context, a, b *publish.Bundle, id string, size [3]int) (difference, error) {
	d := difference{field: id}
	rowA, rowB := make([]float64, size[0]), make([]float64, size[0])
	for k := range size[2] {
		for j := range size[1] {
			row := grid.Box{Low: [3]int{0, j, k}, Size: [3]int{size[0], 1, 1}}
			if err := errors.Join(ctx.Err(), a.ReadBox(id, row, rowA), b.ReadBox(id, row, rowB)); err != nil {
				return d, err
			}
			for i := range rowA {
				if math.Float64bits(rowA[i]) == math.Float64bits(rowB[i]) {
					continue
				}
				if d.cells == 0 {
					d.first, d.a, d.b = [3]int{i, j, k}, rowA[i], rowB[i]
				}
				d.cells++
			}
		}
	}
	return d, nil
}
