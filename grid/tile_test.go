package grid_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"pgregory.net/rapid"
)

func TestTile(t *testing.T) {
	whole := box(0, 4, 0, 4, 0, 4)
	lower, upper := box(0, 4, 0, 4, 0, 2), box(0, 4, 0, 4, 2, 4)
	tests := []struct {
		name  string
		whole grid.Box
		boxes []grid.Box
		want  string // the error's text
	}{
		{"the whole", whole, []grid.Box{whole}, ""},
		{"two halves", whole, []grid.Box{upper, lower}, ""},
		{"empty boxes don't count, wherever they lie", whole, []grid.Box{{}, lower, box(99, 99, 0, 1, 0, 1), upper, box(1, 1, 0, 4, 0, 4)}, ""},
		{"an offset whole", box(2, 4, 3, 5, 0, 1), []grid.Box{box(2, 4, 3, 4, 0, 1), box(2, 4, 4, 5, 0, 1)}, ""},
		{"nothing tiles an empty whole", grid.Box{}, nil, ""},
		{"bricks that no plane separates", box(0, 3, 0, 3, 0, 1), []grid.Box{
			box(0, 2, 0, 1, 0, 1), box(2, 3, 0, 2, 0, 1), box(1, 3, 2, 3, 0, 1), box(0, 1, 1, 3, 0, 1), box(1, 2, 1, 2, 0, 1),
		}, ""},
		{"no boxes leave a gap", whole, nil, "gap: cells [0:4, 0:4, 0:4] of [0:4, 0:4, 0:4] belong to no box"},
		{"a missing half is a gap", whole, []grid.Box{lower}, "gap: cells [0:4, 0:4, 2:4] of [0:4, 0:4, 0:4] belong to no box"},
		{"the same box twice is an overlap", whole, []grid.Box{whole, whole},
			"overlap: box 0 [0:4, 0:4, 0:4] and box 1 [0:4, 0:4, 0:4] both hold cells [0:4, 0:4, 0:4]"},
		{"indices count empty boxes too", whole, []grid.Box{{}, lower, {}, upper, box(3, 4, 0, 1, 1, 3)},
			"overlap: box 1 [0:4, 0:4, 0:2] and box 4 [3:4, 0:1, 1:3] both hold cells [3:4, 0:1, 1:2]"},
		{"an overlap is told before a gap", whole, []grid.Box{box(0, 4, 0, 4, 1, 3), box(0, 4, 0, 4, 2, 4)},
			"overlap: box 0 [0:4, 0:4, 1:3] and box 1 [0:4, 0:4, 2:4] both hold cells [0:4, 0:4, 2:3]"},
		{"a box outside is told first", whole, []grid.Box{lower, lower, box(0, 4, 0, 4, 2, 5)},
			"outside: box 2 [0:4, 0:4, 2:5] is not within [0:4, 0:4, 0:4]"},
		{"below 0 is outside", whole, []grid.Box{box(-1, 4, 0, 4, 0, 4)}, "outside: box 0 [-1:4, 0:4, 0:4] is not within [0:4, 0:4, 0:4]"},
		{"any box is outside of an empty whole", grid.Box{}, []grid.Box{box(0, 1, 0, 1, 0, 1)}, "outside: box 0 [0:1, 0:1, 0:1] is not within [0:0, 0:0, 0:0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := grid.Tile(tt.whole, tt.boxes); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTileWithBoxThatOverflows(t *testing.T) {
	b := grid.Box{Low: [3]int{1, 0, 0}, Size: [3]int{math.MaxInt, 1, 1}}
	err := grid.Tile(box(0, 4, 0, 4, 0, 4), []grid.Box{b})
	if e, ok := errors.AsType[*grid.OutsideError](err); !ok || e.Index != 0 || e.Box != b {
		t.Errorf("error %v, want box 0 outside", err)
	}
}

// bruteTile says which cell is wrong, or nothing.
func bruteTile(whole grid.Box, boxes []grid.Box) string {
	count := map[[3]int]int{}
	for i, b := range boxes {
		if !whole.Contains(b) {
			return fmt.Sprintf("outside: box %d", i)
		}
		eachCell(b, func(c [3]int) { count[c]++ })
	}
	gap := ""
	overlap := ""
	eachCell(whole, func(c [3]int) {
		switch {
		case count[c] == 0:
			gap = fmt.Sprintf("gap: cell %v", c)
		case count[c] > 1:
			overlap = fmt.Sprintf("overlap: cell %v", c)
		}
	})
	if overlap != "" {
		return overlap
	}
	return gap
}

func eachCell(b grid.Box, fn func(c [3]int)) {
	if b.Empty() {
		return
	}
	h := b.High()
	for z := b.Low[2]; z < h[2]; z++ {
		for y := b.Low[1]; y < h[1]; y++ {
			for x := b.Low[0]; x < h[0]; x++ {
				fn([3]int{x, y, z})
			}
		}
	}
}

// cut splits a box at random into about n boxes, so that they tile it.
func cut(t *rapid.T, b grid.Box, n int) []grid.Box {
	a := rapid.IntRange(0, 2).Draw(t, "axis")
	if n <= 1 || b.Size[a] < 2 {
		return []grid.Box{b}
	}
	at := rapid.IntRange(1, b.Size[a]-1).Draw(t, "at")
	lower, upper := b, b
	lower.Size[a] = at
	upper.Low[a] += at
	upper.Size[a] -= at
	k := rapid.IntRange(1, n-1).Draw(t, "share")
	return append(cut(t, lower, k), cut(t, upper, n-k)...)
}

// Tile agrees with counting the cells, for tilings, tilings with one box
// changed, and arbitrary boxes.
func TestTileAgreesWithCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := grid.Box{}
		for a := range 3 {
			whole.Low[a] = rapid.IntRange(-2, 2).Draw(t, "low")
			whole.Size[a] = rapid.IntRange(1, 6).Draw(t, "size")
		}
		boxes := cut(t, whole, rapid.IntRange(1, 12).Draw(t, "boxes"))
		switch rapid.SampledFrom([]string{"as is", "moved", "grown", "dropped", "added", "arbitrary"}).Draw(t, "change") {
		case "moved":
			boxes[rapid.IntRange(0, len(boxes)-1).Draw(t, "which")].Low[rapid.IntRange(0, 2).Draw(t, "axis")] += rapid.SampledFrom([]int{-1, 1}).Draw(t, "by")
		case "grown":
			boxes[rapid.IntRange(0, len(boxes)-1).Draw(t, "which")].Size[rapid.IntRange(0, 2).Draw(t, "axis")] += rapid.SampledFrom([]int{-1, 1}).Draw(t, "by")
		case "dropped":
			boxes[rapid.IntRange(0, len(boxes)-1).Draw(t, "which")] = grid.Box{}
		case "added":
			boxes = append(boxes, genBox().Draw(t, "box"))
		case "arbitrary":
			boxes = rapid.SliceOfN(genBox(), 0, 6).Draw(t, "boxes")
		}
		boxes = rapid.Permutation(boxes).Draw(t, "order")

		want := bruteTile(whole, boxes)
		err := grid.Tile(whole, boxes)
		if (err == nil) != (want == "") {
			t.Fatalf("whole %v, boxes %v: %v, by counting %q", whole, boxes, err, want)
		}
		checkTileError(t, whole, boxes, err, want)
	})
}

// checkTileError checks that what the error names is really wrong.
func checkTileError(t *rapid.T, whole grid.Box, boxes []grid.Box, err error, want string) {
	switch e := err.(type) {
	case nil:
	case *grid.OutsideError:
		if e.Whole != whole || e.Box != boxes[e.Index] || whole.Contains(e.Box) || want != fmt.Sprintf("outside: box %d", e.Index) {
			t.Fatalf("boxes %v: %v, by counting %q", boxes, e, want)
		}
	case *grid.OverlapError:
		if e.A >= e.B || e.BoxA != boxes[e.A] || e.BoxB != boxes[e.B] || e.Common.Empty() || e.Common != e.BoxA.Intersect(e.BoxB) || want[:7] != "overlap" {
			t.Fatalf("boxes %v: %v, by counting %q", boxes, e, want)
		}
	case *grid.GapError:
		if e.Whole != whole || e.Gap.Empty() || !whole.Contains(e.Gap) || want[:3] != "gap" {
			t.Fatalf("boxes %v: %v, by counting %q", boxes, e, want)
		}
		for i, b := range boxes {
			if !b.Intersect(e.Gap).Empty() {
				t.Fatalf("gap %v has cells of box %d %v", e.Gap, i, b)
			}
		}
	default:
		t.Fatalf("error of type %T: %v", err, err)
	}
}

// TestTileManyBoxes checks huge domains over many ranks, where counting cells
// or comparing pairs would not come to an end, and errors in the midst of them.
func TestTileManyBoxes(t *testing.T) {
	for _, p := range [][3]int{{1, 1, 20000}, {100, 200, 1}, {25, 40, 20}} {
		d := domain(100_003, 90_001, 80_021)
		dec, err := grid.Decompose(d, p[0]*p[1]*p[2], grid.ProcessGrid(p[0], p[1], p[2]))
		if err != nil {
			t.Fatal(err)
		}
		boxes := make([]grid.Box, dec.Ranks())
		for r := range boxes {
			boxes[r] = dec.Box(r)
		}
		if err := grid.Tile(d.Box(), boxes); err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		const odd = 12_345
		boxes[odd].Size[2]--
		if _, ok := errors.AsType[*grid.GapError](grid.Tile(d.Box(), boxes)); !ok {
			t.Errorf("%v: no gap where box %d is too short", p, odd)
		}
		boxes[odd].Size[2]++
		boxes[odd].Low[2]--
		boxes[odd].Size[2]++
		err = grid.Tile(d.Box(), boxes)
		if boxes[odd].Low[2] < 0 {
			if e, ok := errors.AsType[*grid.OutsideError](err); !ok || e.Index != odd {
				t.Errorf("%v: %v, want box %d outside", p, err, odd)
			}
		} else if e, ok := errors.AsType[*grid.OverlapError](err); !ok || e.A != odd && e.B != odd {
			t.Errorf("%v: %v, want an overlap with box %d", p, err, odd)
		}
	}
}

func BenchmarkTile(b *testing.B) {
	d := domain(4096, 4096, 4096)
	for _, ranks := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) {
			dec, err := grid.Decompose(d, ranks)
			if err != nil {
				b.Fatal(err)
			}
			boxes := make([]grid.Box, ranks)
			for r := range boxes {
				boxes[r] = dec.Box(r)
			}
			for b.Loop() {
				if err := grid.Tile(d.Box(), boxes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
