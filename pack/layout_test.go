package pack

import (
	"errors"
	"math"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLayoutValidate(t *testing.T) {
	const most = math.MaxInt
	large := "" // what only a 64-bit host can address
	if bits.UintSize == 32 {
		large = "more than"
	}
	for _, c := range []struct {
		name   string
		layout Layout
		want   string // part of the error; empty if valid
	}{
		{"a line", Layout{Size: [3]int{5, 1, 1}}, ""},
		{"no cells", Layout{Size: [3]int{5, 0, 1}, Halo: [3]int{1, 1, 1}}, ""},
		{"nothing at all", Layout{}, ""},
		{"2^40 cells", Layout{Size: [3]int{1 << 14, 1 << 13, 1 << 13}}, large},
		{"negative size", Layout{Size: [3]int{5, -1, 1}}, "size along y is -1"},
		{"negative halo", Layout{Size: [3]int{5, 1, 1}, Halo: [3]int{0, 0, -2}}, "halo along z is -2"},
		{"2^63 cells", Layout{Size: [3]int{1 << 21, 1 << 21, 1 << 21}}, "more than"},
		{"2^64 cells, which wraps to 0", Layout{Size: [3]int{1 << 22, 1 << 21, 1 << 21}}, "more than"},
		{"an axis of the largest int", Layout{Size: [3]int{most, 1, 1}}, "more than"},
		{"a halo of the largest int", Layout{Size: [3]int{1, 1, 1}, Halo: [3]int{most, 0, 0}}, "more than"},
		{"all of it the largest int", Layout{Size: [3]int{most, most, most}, Halo: [3]int{most, most, most}}, "more than"},
		{"an empty axis that would hide an overflow", Layout{Size: [3]int{0, most >> 8, most >> 8}}, "more than"},
		{"the halo alone too large", Layout{Size: [3]int{1, 1, 1}, Halo: [3]int{1 << 20, 1 << 20, 1 << 20}}, "more than"},
		{"most cells that complex128 can have", Layout{Size: [3]int{math.MaxInt / 16, 1, 1}}, ""},
		{"one more", Layout{Size: [3]int{math.MaxInt/16 + 1, 1, 1}}, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.layout.Validate()
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestLayoutIndexIsRowMajorOverThePaddedStorage(t *testing.T) {
	l := Layout{Size: [3]int{4, 3, 2}, Halo: [3]int{2, 1, 3}}
	if got := l.PaddedSize(); got != [3]int{8, 5, 8} {
		t.Fatalf("padded size %v", got)
	}
	want := 0
	for k := -3; k < 5; k++ {
		for j := -1; j < 4; j++ {
			for i := -2; i < 6; i++ {
				if got := l.Index(i, j, k); got != want {
					t.Fatalf("Index(%d, %d, %d) = %d, want %d", i, j, k, got, want)
				}
				want++
			}
		}
	}
	if l.PaddedCells() != int64(want) || l.Cells() != 24 {
		t.Fatalf("%d padded, %d owned cells", l.PaddedCells(), l.Cells())
	}
}

func TestWrongLengthsAreErrorsThatNameGotAndWant(t *testing.T) {
	l := Layout{Size: [3]int{4, 3, 2}, Halo: [3]int{1, 1, 1}} // 24 of 120 cells
	storage, short := make([]float64, 120), make([]float64, 119)
	singles, shortSingles := make([]float32, 120), make([]float32, 121)
	cells := make([]float64, 24)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"pack, storage too short", Pack(cells, short, l, 0), "pack cells: padded storage has 119 cells, want 120"},
		{"unpack, storage too short", Unpack(short, cells, l, 0), "unpack cells: padded storage has 119 cells, want 120"},
		{"widen, storage too long", Widen(cells, shortSingles, l, 0), "widen cells: padded storage has 121 cells, want 120"},
		{"narrow, storage too long", Narrow(shortSingles, cells, l, 0), "narrow cells: padded storage has 121 cells, want 120"},
		{"pack, no storage", Pack(cells, nil, l, 0), "pack cells: padded storage has 0 cells, want 120"},
		{"pack behind the end", Pack(cells, storage, l, 1), "pack cells: 24 cells from 1 on asked for, the brick has 24"},
		{"pack nothing behind the end", Pack(nil, storage, l, 25), "pack cells: 0 cells from 25 on asked for, the brick has 24"},
		{"unpack before the start", Unpack(storage, cells, l, -1), "unpack cells: 24 cells from -1 on asked for, the brick has 24"},
		{"widen far behind the end", Widen(cells, singles, l, math.MaxInt64), "from 9223372036854775807 on"},
		{"narrow far before the start", Narrow(singles, cells, l, math.MinInt64), "from -9223372036854775808 on"},
		{"pack, half a cell", PackBytes(make([]byte, 12), storage, l, 0), "pack cells: 12 bytes are not a whole number of 8-byte cells"},
		{"unpack, half a cell", UnpackBytes(make([]complex128, 120), make([]byte, 24), l, 0), "unpack cells: 24 bytes are not a whole number of 16-byte cells"},
		{"widen, half a cell", WidenBytes(make([]byte, 4), singles, l, 0), "widen cells: 4 bytes"},
		{"narrow, half a cell", NarrowBytes(singles, make([]byte, 4), l, 0), "narrow cells: 4 bytes"},
		{"check, half a cell", CheckNarrowBytes(make([]byte, 4), 0), "narrow cells: 4 bytes"},
		{"pack bytes, storage too short", PackBytes(Bytes(cells), short, l, 0), "has 119 cells, want 120"},
		{"unpack bytes, storage too short", UnpackBytes(short, Bytes(cells), l, 0), "has 119 cells, want 120"},
		{"widen bytes, storage too long", WidenBytes(Bytes(cells), shortSingles, l, 0), "has 121 cells, want 120"},
		{"narrow bytes, storage too long", NarrowBytes(shortSingles, Bytes(cells), l, 0), "has 121 cells, want 120"},
		{"pack with a bad layout", Pack(cells, storage, Layout{Size: [3]int{-1, 1, 1}}, 0), "size along x is -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
				t.Fatalf("got %v, want %q", c.err, c.want)
			}
		})
	}
	var size *SizeError
	if err := Pack(cells, short, l, 0); !errors.As(err, &size) || size.Got != 119 || size.Want != 120 {
		t.Errorf("got %v", err)
	}
	var reach *RangeError
	if err := Pack(cells, storage, l, 1); !errors.As(err, &reach) || reach.First != 1 || reach.Cells != 24 {
		t.Errorf("got %v", err)
	}
	var partial *PartialCellError
	if err := PackBytes(make([]byte, 12), storage, l, 0); !errors.As(err, &partial) || partial.Bytes != 12 {
		t.Errorf("got %v", err)
	}
}

func TestNoArgumentsMakeThePackageDoAnythingButMoveOrRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		extent := rapid.OneOf(rapid.IntRange(-1, 9), rapid.SampledFrom([]int{
			math.MinInt, math.MaxInt, math.MaxInt/2 + 1, math.MaxInt32, math.MaxInt >> 31, 1 << 21,
		}))
		var l Layout
		for a := range 3 {
			l.Size[a] = extent.Draw(t, "size")
			l.Halo[a] = extent.Draw(t, "halo")
		}
		first := rapid.OneOf(rapid.Int64Range(-1, 800), rapid.Int64()).Draw(t, "first")
		packed := make([]float64, rapid.IntRange(0, 800).Draw(t, "packed"))
		padded := rapid.IntRange(0, 800).Draw(t, "padded")
		valid := l.Validate() == nil
		if valid && l.PaddedCells() < 1<<16 && rapid.Bool().Draw(t, "fitting") {
			padded = int(l.PaddedCells())
		}
		doubles, singles := make([]float64, padded), make([]float32, padded)
		fits := valid && int64(padded) == l.PaddedCells() &&
			first >= 0 && first <= l.Cells() && int64(len(packed)) <= l.Cells()-first
		for name, err := range map[string]error{
			"pack":   Pack(packed, doubles, l, first),
			"unpack": Unpack(doubles, packed, l, first),
			"widen":  Widen(packed, singles, l, first),
			"narrow": Narrow(singles, packed, l, first),
		} {
			if fits != (err == nil) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

func TestEmptyBricksMoveNothing(t *testing.T) {
	for _, l := range []Layout{
		{},
		{Size: [3]int{0, 4, 4}},
		{Size: [3]int{4, 0, 4}, Halo: [3]int{1, 0, 0}},
		{Size: [3]int{4, 4, 0}, Halo: [3]int{2, 2, 2}},
	} {
		storage := make([]complex128, l.PaddedCells())
		if err := Pack(nil, storage, l, 0); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
		if err := Unpack(storage, nil, l, 0); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
		if err := PackBytes(nil, storage, l, 0); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
		if err := Pack(make([]complex128, 1), storage, l, 0); err == nil {
			t.Errorf("%+v: a cell was packed", l)
		}
	}
}

func TestMovingCellsDoesNotAllocate(t *testing.T) {
	l := Layout{Size: [3]int{20, 10, 5}, Halo: [3]int{2, 2, 2}}
	doubles, singles := make([]float64, l.PaddedCells()), make([]float32, l.PaddedCells())
	complexes := make([]complex128, l.PaddedCells())
	flat := Layout{Size: [3]int{333, 1, 1}}
	blocks, sum := make([]float64, 333), NewChecksum(8*333)
	packed, packedComplex := make([]float64, 333), make([]complex128, 333)
	for name, fn := range map[string]func() error{
		"pack":                     func() error { return Pack(packed, doubles, l, 17) },
		"unpack":                   func() error { return Unpack(doubles, packed, l, 17) },
		"pack complex":             func() error { return Pack(packedComplex, complexes, l, 17) },
		"pack bytes":               func() error { return PackBytes(Bytes(packed), doubles, l, 17) },
		"unpack bytes":             func() error { return UnpackBytes(doubles, Bytes(packed), l, 17) },
		"widen":                    func() error { return Widen(packed, singles, l, 17) },
		"narrow":                   func() error { return Narrow(singles, packed, l, 17) },
		"widen bytes":              func() error { return WidenBytes(Bytes(packed), singles, l, 17) },
		"narrow bytes":             func() error { return NarrowBytes(singles, Bytes(packed), l, 17) },
		"pack rows":                func() error { return PackRows(Bytes(packed), doubles, l, 20, 20, 10, 240) },
		"unpack rows":              func() error { return UnpackRows(doubles, Bytes(packed), l, 20, 20, 10, 240) },
		"widen rows":               func() error { return WidenRows(Bytes(packed), singles, l, 20, 20, 10, 240) },
		"narrow rows":              func() error { return NarrowRows(singles, Bytes(packed), l, 20, 20, 10, 240) },
		"pack stream":              func() error { return PackStream(Bytes(packed), doubles, l, 17) },
		"unpack stream":            func() error { return UnpackStream(doubles, Bytes(packed), l, 17) },
		"pack sum":                 func() error { return PackSum(Bytes(packed), doubles, l, 17, sum, 0) },
		"unpack sum":               func() error { return UnpackSum(doubles, Bytes(packed), l, 17, sum, 0) },
		"pack sum of whole blocks": func() error { return PackSum(Bytes(packed), blocks, flat, 0, sum, 0) },
		"widen sum":                func() error { return WidenSum(Bytes(packed), singles, l, 17, sum, 0) },
		"narrow sum":               func() error { return NarrowSum(singles, Bytes(packed), l, 17, sum, 0) },
		"check narrow":             func() error { return CheckNarrow(packed, 17) },
		"view":                     func() error { _, err := View[complex128](Bytes(packedComplex)); return err },
		"no cells, no work":        func() error { return Pack(nil, doubles, l, 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			n := testing.AllocsPerRun(20, func() { err = fn() })
			if err != nil {
				t.Fatal(err)
			}
			if swaps := bigEndian && (strings.HasPrefix(name, "unpack ") || strings.HasPrefix(name, "narrow ")); n != 0 && !swaps {
				t.Errorf("%v allocations", n)
			}
		})
	}
}
