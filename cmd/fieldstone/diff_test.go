package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
	"pgregory.net/rapid"
)

// constant is a field of one value, but for some cells.
func constant(id string, v float64, but map[int]float64) sampleField {
	return sampleField{id, func(cell int) float64 {
		if w, ok := but[cell]; ok {
			return w
		}
		return v
	}}
}

func TestDiff(t *testing.T) {
	nan, otherNaN := math.NaN(), math.Float64frombits(0xfff8000000000001)
	domain := func(edit func(*grid.Domain)) grid.Domain {
		d := sampleDomain
		edit(&d)
		return d
	}
	one := func(but map[int]float64) sample {
		return sample{increment: 10, fields: []sampleField{constant("f", 1, but), constant("g", 2, nil)}}
	}
	for _, c := range []struct {
		name   string
		a, b   sample
		args   []string
		status int
		json   bool // is there a golden file of the JSON output?
	}{
		{name: "equal", a: one(nil), b: one(nil)},
		{name: "one cell by one ULP", a: one(nil), b: one(map[int]float64{17: math.Nextafter(1, 2)}), status: 1},
		{name: "several cells", a: one(map[int]float64{0: 5}), b: one(map[int]float64{6: 3, 23: -1}), status: 1},
		{name: "signs of zero", a: one(map[int]float64{4: 0}), b: one(map[int]float64{4: math.Copysign(0, -1)}), status: 1},
		{name: "NaNs of the same bits", a: one(map[int]float64{4: otherNaN}), b: one(map[int]float64{4: otherNaN})},
		{name: "NaNs of other bits", a: one(map[int]float64{4: nan}), b: one(map[int]float64{4: otherNaN}), status: 1},
		{name: "a NaN and a number, and a small difference", a: one(nil), b: one(map[int]float64{4: nan, 5: 1.5}), status: 1, json: true},
		{name: "an infinity", a: one(map[int]float64{4: math.MaxFloat64}), b: one(map[int]float64{4: math.Inf(1)}), status: 1},
		{name: "fields of one side only", a: sample{fields: []sampleField{constant("f", 1, nil), constant("only a", 1, nil)}},
			b: sample{fields: []sampleField{constant("only b", 1, nil), constant("f", 1, nil)}}, status: 1, json: true},
		{name: "another order of fields", a: sample{fields: []sampleField{constant("f", 1, nil), constant("g", 2, nil)}},
			b: sample{fields: []sampleField{constant("g", 2, nil), constant("f", 1, nil)}}},
		{name: "other dimensions", a: one(nil),
			b: sample{increment: 10, domain: domain(func(d *grid.Domain) { d.Size = [3]int{4, 2, 3} }), fields: []sampleField{constant("f", 1, nil)}}, status: 1, json: true},
		{name: "another spacing", a: sample{}, b: sample{domain: domain(func(d *grid.Domain) { d.Spacing[1] = 2 })}},
		{name: "another spacing, with metadata", a: sample{}, b: sample{domain: domain(func(d *grid.Domain) { d.Spacing[1] = 2 })},
			args: []string{"--metadata"}, status: 1},
		{name: "another periodicity", a: sample{}, b: sample{domain: domain(func(d *grid.Domain) { d.Periodic[2] = true })}},
		{name: "other metadata, not looked at", a: sample{increment: 10}, b: sample{increment: 20, method: "etd1"}},
		{name: "other metadata", a: sample{increment: 10}, b: sample{increment: 20, method: "etd1"}, args: []string{"--metadata"}, status: 1, json: true},
		{name: "the same metadata", a: sample{increment: 10}, b: sample{increment: 10}, args: []string{"--metadata"}},
		{name: "boundary conditions, equal as values", args: []string{"--metadata"},
			a: sample{walls: []publish.Boundary{wall{config: `{"type":"fixed","value":1}`, state: `{"a":1,"b":2}`}}},
			b: sample{walls: []publish.Boundary{wall{config: `{"value":1.0,"type":"fixed"}`, state: `{"b":2e0,"a":1}`}}}},
		{name: "boundary conditions, of another state", args: []string{"--metadata"}, status: 1,
			a: sample{walls: []publish.Boundary{wall{config: `{"type":"fixed"}`, state: `{"a":1}`}}},
			b: sample{walls: []publish.Boundary{wall{config: `{"type":"fixed"}`}}}},
		{name: "boundary conditions on one side only", args: []string{"--metadata"}, status: 1, json: true,
			a: sample{}, b: sample{walls: []publish.Boundary{wall{config: `{"type":"fixed"}`}}}},
		{name: "sidecars, not looked at", a: sample{sidecar: 1}, b: sample{sidecar: 2}},
		{name: "sidecars that differ", a: sample{sidecar: 1}, b: sample{sidecar: 2}, args: []string{"--sidecar"}, status: 1, json: true},
		{name: "sidecars, equal as values", a: sample{sidecar: json.RawMessage(`{"a": 1, "b": 2}`)},
			b: sample{sidecar: json.RawMessage(`{"b": 2.0, "a": 1}`)}, args: []string{"--sidecar"}},
		{name: "a sidecar on one side only", a: sample{sidecar: 1}, b: sample{}, args: []string{"--sidecar"}, status: 1},
		{name: "no sidecars", a: sample{}, b: sample{}, args: []string{"--sidecar"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			c.a.save(t, "a")
			c.b.save(t, "b")
			args := append([]string{"diff", "a", "b"}, c.args...)
			file := "diff-" + strings.NewReplacer(" ", "-", ",", "").Replace(c.name)
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
			// Sides can be swapped.
			mustRun(t, c.status, append([]string{"diff", "b", "a", "-q"}, c.args...)...)
			if text.errors != "" || asJSON.errors != "" {
				t.Errorf("standard error: %q and %q", text.errors, asJSON.errors)
			}
		})
	}
}

// Creation time, writer and decomposition tell of the writing, not of the state.
func TestDiffMetadataLeavesOutTheWriting(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{}.save(t, "a")
	sample{}.save(t, "b")
	editMetadata(t, "b", func(m *publish.Metadata) {
		m.Writer = &publish.Writer{Version: "9.9.9"}
		m.Decomposition = &publish.Decomposition{MPISize: 7, LocalSize: [3]int{1, 2, 3}}
	})
	mustRun(t, 0, "diff", "--metadata", "a", "b")
}

func TestDiffOfWhatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T)
		args    []string
		errors  string
	}{
		{"nothing there", nil, []string{"a", "nowhere"}, "fieldstone: diff nowhere: no such file or directory\n"},
		{"both missing", nil, []string{"here", "there"},
			"fieldstone: diff here: no such file or directory\nfieldstone: diff there: no such file or directory\n"},
		{"a directory of bundles", nil, []string{"a", "."}, "fieldstone: diff: A, a, is a bundle, and B, ., is a directory of bundles or run files\n"},
		{"a field of a wrong size", func(t *testing.T) {
			rewrite(t, "b", "fields/phi.bin", func(b []byte) []byte { return b[1:] })
		}, []string{"a", "b"}, "fieldstone: diff b: fields/phi.bin: 191 bytes, the grid needs exactly 192\n"},
		{"metadata that were changed", func(t *testing.T) { flip(t, "b", "metadata.json") }, []string{"a", "b"}, "fieldstone: diff b: metadata.json: "},
		{"a sidecar that was changed", func(t *testing.T) { flip(t, "a", "sidecar.json") }, []string{"a", "b"}, "fieldstone: diff a: sidecar.json: checksum differs"},
		{"one argument", nil, []string{"a"}, "fieldstone: diff: want two bundles" + withHDF5(", two run files", "") + " or two directories of them\ntry 'fieldstone diff --help'\n"},
		{"three arguments", nil, []string{"a", "b", "c"}, "fieldstone: diff: want two bundles" + withHDF5(", two run files", "") + " or two directories of them, got 3 arguments\ntry 'fieldstone diff --help'\n"},
		{"an empty argument", nil, []string{"a", ""}, "fieldstone: diff: an argument is empty\ntry 'fieldstone diff --help'\n"},
		{"quietly and in JSON", nil, []string{"-q", "--json", "a", "b"}, "fieldstone: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			sample{sidecar: 1}.save(t, "a")
			sample{}.save(t, "b")
			if c.prepare != nil {
				c.prepare(t)
			}
			o := mustRun(t, 2, append([]string{"diff"}, c.args...)...)
			if !strings.HasPrefix(o.errors, c.errors) || o.out != "" {
				t.Errorf("%q and %q, want %q", o.out, o.errors, c.errors)
			}
		})
	}
}

// A flipped bit in a field is found as such, since checksums aren't looked at.
func TestDiffFindsAFlippedBit(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{}.save(t, "a")
	sample{}.save(t, "b")
	rewrite(t, "b", "fields/T.bin", func(b []byte) []byte {
		b[8*19] ^= 1
		return b
	})
	d := decodeJSON[struct {
		Fields []struct {
			ID, State string
			Differing int
			All       struct {
				MaxULP int `json:"max_ulp"`
			}
			First struct{ Cell [3]int }
		}
	}](t, mustRun(t, 1, "diff", "--json", "a", "b"))
	f := d.Fields[1]
	if f.ID != "T" || f.State != "different" || f.Differing != 1 || f.All.MaxULP != 1 || f.First.Cell != [3]int{3, 1, 1} {
		t.Errorf("%+v", f)
	}
}

// Fields are compared in pieces. The cell that differs must be found in each.
func TestDiffFindsTheFirstCellInEachPiece(t *testing.T) {
	t.Chdir(t.TempDir())
	// A piece and a half, and its boundary inside of a row.
	d := grid.Domain{Size: [3]int{1001, 3, 66}, Spacing: [3]float64{1, 1, 1}}
	zero := sample{domain: d, fields: []sampleField{constant("f", 0, nil)}}
	zero.save(t, "a")
	zero.save(t, "b")
	const piece = diffPiece / 8
	if d.Cells() <= piece {
		t.Fatal("the field is too small for this test")
	}
	for _, cell := range []int{0, 1, piece - 1, piece, piece + 1, int(d.Cells()) - 1} {
		t.Run(fmt.Sprint(cell), func(t *testing.T) {
			rewrite(t, "b", "fields/f.bin", func(b []byte) []byte {
				clear(b)
				b[8*cell+7] = 0x40 // the value 2
				return b
			})
			o := mustRun(t, 1, "diff", "a", "b")
			at := [3]int64{int64(cell % 1001), int64(cell / 1001 % 3), int64(cell / 3003)}
			if want := cellName(at) + "  0  2"; !strings.Contains(o.out, want) || !strings.Contains(o.out, "  1 of 198198  ") {
				t.Errorf("no %q in\n%s", want, o.out)
			}
		})
	}
}

// The whole command agrees with a comparison in plain words, for any cells.
func TestDiffAgreesWithANaiveOne(t *testing.T) {
	t.Chdir(t.TempDir())
	s := sample{fields: []sampleField{constant("f", 0, nil)}}
	s.save(t, "a")
	s.save(t, "b")
	n := int(sampleDomain.Cells())
	rapid.Check(t, func(rt *rapid.T) {
		a := cells(n).Draw(rt, "a")
		b := append([]float64(nil), a...)
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 5).Draw(rt, "changed") {
			b[i] = cells(1).Draw(rt, "b")[0]
		}
		for name, v := range map[string][]float64{"a": a, "b": b} {
			if err := os.WriteFile(filepath.Join(name, "fields/f.bin"), encode(v), 0o666); err != nil {
				rt.Fatal(err)
			}
		}
		differing, nonFinite, first, all, finiteOnly := naive(a, b)
		o := run(t, "diff", "--json", "a", "b")
		if o.status != min(1, int(differing)) {
			rt.Fatalf("exit status %d with %d differing cells", o.status, differing)
		}
		var got struct {
			Equal  bool
			Fields []struct {
				Cells, Differing int64
				NonFinite        int64 `json:"non_finite"`
				All, Finite      struct {
					MaxAbs any `json:"max_abs"`
					MaxULP any `json:"max_ulp"`
				}
				First *struct {
					Cell [3]int64
					Bits string `json:"b_bits"`
				}
			}
		}
		d := json.NewDecoder(strings.NewReader(o.out))
		d.UseNumber()
		if err := d.Decode(&got); err != nil {
			rt.Fatal(err)
		}
		f := got.Fields[0]
		if f.Cells != int64(n) || f.Differing != differing || f.NonFinite != nonFinite || got.Equal != (differing == 0) {
			rt.Errorf("%+v, want %d differing, %d not finite", f, differing, nonFinite)
		}
		for _, c := range []struct {
			got  any
			want any
		}{
			{f.All.MaxAbs, number(all.maxAbs)}, {f.Finite.MaxAbs, number(finiteOnly.maxAbs)},
			{f.All.MaxULP, ulpJSON(all.maxULP)}, {f.Finite.MaxULP, ulpJSON(finiteOnly.maxULP)},
		} {
			text, err := json.Marshal(c.got)
			if err != nil {
				rt.Fatal(err)
			}
			want, err := json.Marshal(c.want)
			if err != nil {
				rt.Fatal(err)
			}
			if string(text) != string(want) {
				rt.Errorf("%s, want %s", text, want)
			}
		}
		switch {
		case (f.First == nil) != (first < 0):
			rt.Errorf("first cell %v, want %d", f.First, first)
		case f.First == nil:
		case f.First.Cell[0]+4*(f.First.Cell[1]+3*f.First.Cell[2]) != first || f.First.Bits != bits(b[first]):
			rt.Errorf("first cell %v, want %d with %s", f.First, first, bits(b[first]))
		}
	})
}
