package main

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/samerun"
)

func TestDiffWithATolerance(t *testing.T) {
	nan, otherNaN, inf := math.NaN(), math.Float64frombits(0xfff8000000000001), math.Inf(1)
	one := func(but map[int]float64) sample {
		return sample{increment: 10, fields: []sampleField{constant("f", 1, but), constant("g", 2, nil)}}
	}
	for _, c := range []struct {
		name   string
		a, b   sample
		args   []string
		status int
		json   bool
	}{
		{name: "equal", a: one(nil), b: one(nil), args: []string{"--rtol", "1e-9"}},
		{name: "within", a: one(map[int]float64{3: 1000}), b: one(map[int]float64{3: 1000.5, 17: 1.001}), args: []string{"--rtol", "1e-2"}, json: true},
		{name: "beyond, relatively", a: one(map[int]float64{3: 1000}), b: one(map[int]float64{3: 1000.5, 17: 1.001}), args: []string{"--rtol", "6e-4"}, status: 1, json: true},
		{name: "beyond, absolutely", a: one(map[int]float64{3: 1000}), b: one(map[int]float64{3: 1000.5, 17: 1.001}), args: []string{"--atol", "0.1"}, status: 1},
		{name: "both parts together", a: one(map[int]float64{3: 1000}), b: one(map[int]float64{3: 1000.5, 17: 1.001}), args: []string{"--atol", "0.01", "--rtol", "5e-4"}},
		{name: "zeros and NaNs by value", a: one(map[int]float64{0: 0, 1: nan, 2: -inf}), b: one(map[int]float64{0: math.Copysign(0, -1), 1: otherNaN, 2: -inf}), args: []string{"--atol", "0"}},
		{name: "what is not finite", a: one(map[int]float64{0: nan, 1: inf, 2: 1}), b: one(map[int]float64{0: 1, 1: -inf, 2: 1.5}), args: []string{"--rtol", "1e300", "--atol", "1"}, status: 1, json: true},
		{name: "a field of one side only", a: one(nil), b: sample{increment: 10, fields: []sampleField{constant("f", 1, nil)}}, args: []string{"--rtol", "1"}, status: 1},
		{name: "metadata are exact", a: sample{increment: 10}, b: sample{increment: 20}, args: []string{"--rtol", "1", "--metadata"}, status: 1},
		{name: "other dimensions", a: one(nil), status: 1, args: []string{"--rtol", "1"},
			b: sample{increment: 10, domain: grid.Domain{Size: [3]int{4, 2, 3}, Spacing: [3]float64{1, 1, 1}}, fields: []sampleField{constant("f", 1, nil)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			c.a.save(t, "a")
			c.b.save(t, "b")
			args := append([]string{"diff", "a", "b"}, c.args...)
			file := "tolerance-" + strings.NewReplacer(" ", "-", ",", "").Replace(c.name)
			text, asJSON := mustRun(t, c.status, args...), mustRun(t, c.status, append(args, "--json")...)
			golden(t, file+".txt", text.out)
			if c.json {
				golden(t, file+".json", asJSON.out)
			}
			if equal := decodeJSON[struct{ Equal bool }](t, asJSON).Equal; equal != (c.status == 0) {
				t.Errorf("equal is %t with the exit status %d", equal, c.status)
			}
			if quiet := mustRun(t, c.status, append(args, "-q")...); quiet.out != "" || quiet.errors != "" {
				t.Errorf("quietly: %q and %q", quiet.out, quiet.errors)
			}
			mustRun(t, c.status, append([]string{"diff", "b", "a", "-q"}, c.args...)...)
			if text.errors != "" || asJSON.errors != "" {
				t.Errorf("standard error: %q and %q", text.errors, asJSON.errors)
			}
		})
	}
}

// Fields are compared in pieces; places are those in the field.
func TestToleranceAcrossPieces(t *testing.T) {
	const cells, size = 12, 8
	a, b := make([]byte, cells*size), make([]byte, cells*size)
	set := func(data []byte, cell int, v float64) {
		binary.LittleEndian.PutUint64(data[cell*size:], math.Float64bits(v))
	}
	set(a, 1, 1)
	set(b, 1, 1.125)
	set(a, 7, 100)
	set(b, 7, 101)
	set(b, 11, math.NaN())
	for _, piece := range []int{1, 3, 5, cells} {
		c := newComparison(&samerun.Tolerance{Absolute: 0.5})
		for at := 0; at < cells; at += piece {
			end := min(at+piece, cells)
			c.add(a[at*size:end*size], b[at*size:end*size])
		}
		want := samerun.Maxima[int64]{Tolerance: c.maxima.Tolerance, Beyond: 2, NonFinite: 1, Abs: 1, AbsAt: 7, Rel: 0.125 / 1.125, RelAt: 1}
		if *c.maxima != want || c.first != 7 || c.valA != 100 || c.same() {
			t.Errorf("pieces of %d: %+v, first %d", piece, *c.maxima, c.first)
		}
	}
}
