package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPackFollowsPlainIndexArithmetic(t *testing.T) {
	for _, l := range []Layout{
		{Size: [3]int{5, 1, 1}},
		{Size: [3]int{5, 1, 1}, Halo: [3]int{2, 0, 0}},
		{Size: [3]int{5, 4, 1}, Halo: [3]int{0, 2, 0}},
		{Size: [3]int{5, 4, 3}, Halo: [3]int{0, 0, 1}},
		{Size: [3]int{5, 4, 3}, Halo: [3]int{0, 1, 1}},
		{Size: [3]int{5, 4, 3}, Halo: [3]int{1, 2, 3}},
		{Size: [3]int{1, 4, 3}, Halo: [3]int{2, 2, 2}},
		{Size: [3]int{5, 1, 3}, Halo: [3]int{0, 2, 2}},
	} {
		storage := make([]float64, l.PaddedCells())
		for i := range storage {
			storage[i] = float64(i)
		}
		var want []float64
		for k := range l.Size[2] {
			for j := range l.Size[1] {
				for i := range l.Size[0] {
					want = append(want, float64(l.Index(i, j, k)))
				}
			}
		}
		for first := range len(want) + 1 {
			for end := first; end <= len(want); end++ {
				got := make([]float64, end-first)
				if err := Pack(got, storage, l, int64(first)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want[first:end]) {
					t.Fatalf("%v [%d, %d): got %v, want %v", l, first, end, got, want[first:end])
				}
				back := slices.Clone(storage)
				for _, v := range got {
					back[int(v)] = -1
				}
				if err := Unpack(back, got, l, int64(first)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(back, storage) {
					t.Fatalf("%v [%d, %d): unpack changed other cells", l, first, end)
				}
			}
		}
	}
}

// genLayout draws bricks of all dimensions, with and without halo along each
// axis, so that axes merge in every combination.
func genLayout() *rapid.Generator[Layout] {
	return rapid.Custom(func(t *rapid.T) Layout {
		var l Layout
		for a := range 3 {
			l.Size[a] = rapid.IntRange(1, 7).Draw(t, "size")
			l.Halo[a] = rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "halo")
		}
		if rapid.IntRange(0, 19).Draw(t, "empty") == 0 {
			l.Size[rapid.IntRange(0, 2).Draw(t, "axis")] = 0
		}
		return l
	})
}

// apart is a range of cells in rows with gaps.
type apart struct {
	first        int64
	n, rows, row int // row in cells
	behind       int // bytes behind the last row
}

func genApart(l Layout) *rapid.Generator[apart] {
	return rapid.Custom(func(t *rapid.T) apart {
		cells := int(l.Cells())
		a := apart{first: int64(rapid.IntRange(0, cells).Draw(t, "first"))}
		left := cells - int(a.first)
		a.n = rapid.OneOf(
			rapid.SampledFrom([]int{0, min(l.Size[0], left), min(l.Size[0]*l.Size[1], left), left}),
			rapid.IntRange(0, left),
		).Draw(t, "n")
		if a.n == 0 {
			a.rows = rapid.IntRange(0, 9).Draw(t, "rows")
		} else {
			a.rows = rapid.IntRange(0, left/a.n).Draw(t, "rows")
		}
		a.row = a.n + rapid.IntRange(0, 5).Draw(t, "gap")
		if a.rows < 2 {
			a.row = rapid.Int().Draw(t, "any distance")
		}
		a.behind = rapid.IntRange(0, 20).Draw(t, "behind")
		return a
	})
}

// length is that of the memory of the rows, in bytes.
func (a apart) length(size int) int {
	if a.n == 0 || a.rows == 0 {
		return a.behind
	}
	if a.rows == 1 {
		return a.n*size + a.behind
	}
	return ((a.rows-1)*a.row+a.n)*size + a.behind
}

// distance is that of the rows in bytes.
func (a apart) distance(size int) int {
	if a.rows < 2 {
		return a.row // not looked at
	}
	return a.row * size
}

// each calls fn with the number of each cell and where its bytes start.
func (a apart) each(size int, fn func(cell, at int)) {
	for i := range a.rows {
		for c := range a.n {
			at := c
			if i > 0 {
				at += i * a.row
			}
			fn(int(a.first)+i*a.n+c, at*size)
		}
	}
}

// Rows that lie apart get and give the cells that plain index arithmetic says,
// and nothing else changes on either side.
func TestRowsApartFollowPlainIndexArithmetic(t *testing.T) {
	withKernels(t, func(t *testing.T, _ *kernelSet) {
		rapid.Check(t, func(t *rapid.T) {
			l := genLayout().Draw(t, "layout")
			a := genApart(l).Draw(t, "rows")
			seed := rapid.Uint64().Draw(t, "seed")
			checkApart[float32](t, l, a, seed, PackRows, UnpackRows, 4, asIs)
			checkApart[float64](t, l, a, seed, PackRows, UnpackRows, 8, asIs)
			checkApart[complex128](t, l, a, seed, PackRows, UnpackRows, 16, asIs)
			checkApart[float32](t, l, a, seed, WidenRows, NarrowRows, 8, widened)
		})
	})
}

// asIs returns the bytes of a cell in a file.
func asIs(cell []byte) []byte {
	cell = bytes.Clone(cell)
	if bigEndian {
		for at := 0; at < len(cell); at += 8 {
			slices.Reverse(cell[at:min(at+8, len(cell))])
		}
	}
	return cell
}

func widened(cell []byte) []byte {
	return binary.LittleEndian.AppendUint64(nil, referenceWiden(binary.NativeEndian.Uint32(cell)))
}

func checkApart[T Number](t *rapid.T, l Layout, a apart, seed uint64,
	out func(dst []byte, src []T, l Layout, first int64, n, rows, dstRow int) error,
	in func(dst []T, src []byte, l Layout, first int64, n, rows, srcRow int) error,
	size int, file func(cell []byte) []byte,
) {
	r := newRandom(seed)
	storage := make([]T, l.PaddedCells())
	fill(r, Bytes(storage))
	stored := bytes.Clone(Bytes(storage))
	owned := ownedIndices(l)
	cell := func(n int) []byte {
		one := binary.Size(storage[:1])
		return stored[owned[n]*one:][:one]
	}

	got := make([]byte, a.length(size))
	fill(r, got)
	want := bytes.Clone(got)
	a.each(size, func(n, at int) { copy(want[at:], file(cell(n))) })
	if err := out(got, storage, l, a.first, a.n, a.rows, a.distance(size)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%T: got  % x\nwant % x", storage, got, want)
	}

	a.each(size, func(n, _ int) { clear(Bytes(storage[owned[n] : owned[n]+1])) })
	if err := in(storage, got, l, a.first, a.n, a.rows, a.distance(size)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Bytes(storage), stored) || !bytes.Equal(got, want) {
		t.Fatalf("%T: the storage did not come back", storage)
	}
}

func TestWrongRowsAreErrorsAndMoveNothing(t *testing.T) {
	l := Layout{Size: [3]int{4, 3, 2}, Halo: [3]int{1, 1, 1}} // 24 of 120 cells
	const most = math.MaxInt
	for _, c := range []struct {
		name              string
		length            int // of the memory of the rows, bytes
		first             int64
		n, rows, distance int
		want              string
		target            error
	}{
		{"a row too many", 800, 1, 4, 6, 100 * 8, "24 cells from 1 on asked for, the brick has 24", &RangeError{}},
		{"a negative length", 800, 0, -1, 6, 80, "-1 cells from 0 on", &RangeError{}},
		{"a negative number of rows", 800, 0, 4, -2, 80, "-2 cells from 0 on", &RangeError{}},
		{"both negative", 800, 0, -4, -2, 80, "-4 cells from 0 on", &RangeError{}},
		{"more cells than an int64 counts", 800, 0, most, most, 80, "9223372036854775807 cells from 0 on", &RangeError{}},
		{"nothing, far outside", 800, 25, 0, 6, 80, "0 cells from 25 on", &RangeError{}},
		{"a distance of half a cell more", 800, 0, 4, 6, 36, "36 bytes are not a whole number of 8-byte cells", &PartialCellError{}},
		{"rows that overlap", 800, 0, 4, 6, 24, "distance of rows has 3 cells, want 4", &SizeError{}},
		{"rows backwards", 800, 0, 4, 6, -32, "distance of rows has -4 cells, want 4", &SizeError{}},
		{"no distance", 800, 0, 4, 6, 0, "distance of rows has 0 cells, want 4", &SizeError{}},
		{"memory short by a byte", (5*7+4)*8 - 1, 0, 4, 6, 56, "memory of rows has 38 cells, want 39", &SizeError{}},
		{"memory short for the only row", 31, 0, 4, 1, 0, "memory of rows has 3 cells, want 4", &SizeError{}},
		{"no memory", 0, 0, 4, 6, 56, "memory of rows has 0 cells, want 39", &SizeError{}},
		{"a huge distance", 800, 0, 4, 6, most - 7, "memory of rows has 100 cells, want ", &SizeError{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "more cells than an int64 counts" && math.MaxInt == math.MaxInt32 {
				c.want = "4611686014132420609 cells from 0 on"
			}
			doubles, singles := make([]float64, 120), make([]float32, 120)
			for i := range doubles {
				doubles[i], singles[i] = 1, 1
			}
			memory := make([]byte, c.length)
			for name, err := range map[string]error{
				"pack":   PackRows(memory, doubles, l, c.first, c.n, c.rows, c.distance),
				"widen":  WidenRows(memory, singles, l, c.first, c.n, c.rows, c.distance),
				"unpack": UnpackRows(doubles, memory, l, c.first, c.n, c.rows, c.distance),
				"narrow": NarrowRows(singles, memory, l, c.first, c.n, c.rows, c.distance),
			} {
				if err == nil || !strings.Contains(err.Error(), name+" cells: ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: got %v, want %q", name, err, c.want)
				}
				if got, want := fmt.Sprintf("%T", err), fmt.Sprintf("%T", c.target); got != want {
					t.Errorf("%s: got a %s, want a %s", name, got, want)
				}
			}
			if slices.ContainsFunc(memory, func(b byte) bool { return b != 0 }) || slices.Min(doubles) != 1 || slices.Min(singles) != 1 {
				t.Error("something has moved")
			}
		})
	}
	l.Size[1] = -1
	if err := PackRows(nil, []float64{}, l, 0, 0, 0, 0); err == nil {
		t.Error("a bad layout was taken")
	}
}

func TestNarrowRowsNamesTheCellAndChangesNothing(t *testing.T) {
	l := Layout{Size: [3]int{4, 3, 2}, Halo: [3]int{1, 1, 1}}
	storage := make([]float32, l.PaddedCells())
	rows := make([]float64, 5*7+4)
	for i := range rows {
		rows[i] = 1
	}
	rows[4] = 0.1 // between two rows
	if err := NarrowRows(storage, diskBytes(rows), l, 0, 4, 6, 56); err != nil {
		t.Fatal(err)
	}
	clear(storage)
	rows[3*7+2] = 0.1
	err := NarrowRows(storage, diskBytes(rows), l, 0, 4, 6, 56)
	var inexact *NotFloat32Error
	if !errors.As(err, &inexact) || inexact.Cell != 14 || inexact.Value != 0.1 {
		t.Fatalf("got %v", err)
	}
	if slices.Max(storage) != 0 {
		t.Fatal("something has moved")
	}
}

func TestStreamCopiesAllBytesAndNoOthers(t *testing.T) {
	withKernels(t, func(t *testing.T, _ *kernelSet) {
		from, to := arena{newArena(t, 8<<10)}, arena{newArena(t, 8<<10)}
		r := newRandom(21)
		fill(r, from.all)
		fill(r, to.all)
		for n := range 1500 {
			src := from.slice(n, r.IntN(64), r.IntN(2) == 0)
			dst := to.slice(n, r.IntN(64), r.IntN(2) == 0)
			w := to.watch(dst)
			copy(w.expect, src)
			if err := Stream(dst, src); err != nil {
				t.Fatal(err)
			}
			if diff := w.difference(); diff != "" {
				t.Fatalf("%d bytes: %s", n, diff)
			}
		}
		if err := Stream(make([]byte, 3), make([]byte, 4)); err == nil {
			t.Error("lengths that differ")
		}
	})
}
