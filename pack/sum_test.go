package pack

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// What sums up while it moves does the same as the two steps, for all layouts
// and ranges, rows of whole blocks and others.
func TestSummingUpWhileMovingIsTheSameAsAfterwards(t *testing.T) {
	withKernels(t, func(t *testing.T, _ *kernelSet) {
		r := newRandom(8)
		for range 50 {
			l := sumLayout(r)
			n := int(l.Cells())
			first, end := randomRange(r, l, n)
			checkSum[float64](t, r, l, first, end, PackBytes, UnpackBytes, PackSum, UnpackSum, 8)
			checkSum[complex128](t, r, l, first, end, PackBytes, UnpackBytes, PackSum, UnpackSum, 16)
			checkSum[float32](t, r, l, first, end, PackBytes, UnpackBytes, PackSum, UnpackSum, 4)
			checkSum[float32](t, r, l, first, end, WidenBytes, NarrowBytes, WidenSum, NarrowSum, 8)
		}
	})
}

// sumLayout has rows that are often whole blocks, and some that are longer than
// a piece.
func sumLayout(r *rand.Rand) Layout {
	l := Layout{Size: [3]int{1 + r.IntN(70), 1 + r.IntN(40), 1 + r.IntN(5)}}
	switch r.IntN(4) {
	case 0:
		l.Size[0] = 16 * (1 + r.IntN(8))
	case 1:
		l.Size = [3]int{1 + r.IntN(5000), 1 + r.IntN(2), 1}
	}
	for a := range l.Halo {
		l.Halo[a] = r.IntN(2) * r.IntN(4)
	}
	return l
}

func checkSum[T Number](t *testing.T, r *rand.Rand, l Layout, first, end int,
	pack func([]byte, []T, Layout, int64) error,
	unpack func([]T, []byte, Layout, int64) error,
	packSum func([]byte, []T, Layout, int64, *Checksum, int64) error,
	unpackSum func([]T, []byte, Layout, int64, *Checksum, int64) error,
	size int,
) {
	t.Helper()
	storage := make([]T, l.PaddedCells())
	fill(r, Bytes(storage))
	count := end - first
	want := make([]byte, size*count)
	if err := pack(want, storage, l, int64(first)); err != nil {
		t.Fatal(err)
	}
	// A piece of a file behind another one, so that the register isn't 0.
	before := make([]byte, 1+r.IntN(9))
	fill(r, before)
	offset := int64(len(before) + r.IntN(3))
	file := make([]byte, int(offset)+len(want)+5)
	copy(file, before)
	copy(file[offset:], want)

	sum := NewChecksum(int64(len(file)))
	sum.Add(0, before)
	got := make([]byte, len(want))
	if err := packSum(got, storage, l, int64(first), sum, offset); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%T, %+v, cells [%d, %d): other bytes", storage, l, first, end)
	}
	checkFile(t, sum, file, len(before)+len(want))

	sum.Reset(int64(len(file)))
	sum.Add(0, before)
	back := make([]T, len(storage))
	expect := make([]T, len(storage))
	if err := unpack(expect, want, l, int64(first)); err != nil {
		t.Fatal(err)
	}
	if err := unpackSum(back, got, l, int64(first), sum, offset); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Bytes(back), Bytes(expect)) {
		t.Fatalf("%T, %+v, cells [%d, %d): other cells", storage, l, first, end)
	}
	checkFile(t, sum, file, len(before)+len(want))
}

func checkFile(t *testing.T, sum *Checksum, file []byte, covered int) {
	t.Helper()
	got, want := Finish(sum.Part(), int64(len(file))), ^remainderTables(^uint64(0), file)
	if got != want || sum.Err() != nil || sum.Covered() != int64(covered) {
		t.Fatalf("checksum %016x, want %016x; %d bytes, want %d; error %v", got, want, sum.Covered(), covered, sum.Err())
	}
}

func TestSummingUpAddsNothingWithAnError(t *testing.T) {
	l := Layout{Size: [3]int{4, 4, 4}, Halo: [3]int{1, 0, 1}}
	doubles, singles := make([]float64, l.PaddedCells()), make([]float32, l.PaddedCells())
	cells := make([]byte, 64*8)
	inexact := Bytes([]float64{1, 0.1})
	sum := NewChecksum(1000)
	for name, err := range map[string]error{
		"pack, half a cell":        PackSum(cells[:12], doubles, l, 0, sum, 0),
		"pack, too many cells":     PackSum(cells, doubles, l, 1, sum, 0),
		"pack, a wrong storage":    PackSum(cells, doubles[1:], l, 0, sum, 0),
		"unpack, half a cell":      UnpackSum(doubles, cells[:12], l, 0, sum, 0),
		"unpack, too many cells":   UnpackSum(doubles, cells, l, 1, sum, 0),
		"widen, half a cell":       WidenSum(cells[:12], singles, l, 0, sum, 0),
		"widen, too many cells":    WidenSum(cells, singles, l, 1, sum, 0),
		"narrow, half a cell":      NarrowSum(singles, cells[:12], l, 0, sum, 0),
		"narrow, too many cells":   NarrowSum(singles, cells, l, 1, sum, 0),
		"narrow, not a float32":    NarrowSum(singles, inexact, l, 0, sum, 0),
		"unpack, a negative first": UnpackSum(doubles, cells, l, math.MinInt64, sum, 0),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if sum.Covered() != 0 || sum.Part() != 0 || sum.Err() != nil {
		t.Errorf("%d bytes were added, error %v", sum.Covered(), sum.Err())
	}
	// Bytes outside the file are the checksum's misuse: they are moved.
	for i := range doubles {
		doubles[i], singles[i] = 1, 1
	}
	for name, fn := range map[string]func() error{
		"pack":  func() error { return PackSum(cells, doubles, l, 0, sum, 800) },
		"widen": func() error { return WidenSum(cells, singles, l, 0, sum, 800) },
	} {
		clear(cells)
		sum.Reset(1000)
		if err := fn(); err != nil {
			t.Error(err)
		}
		if sum.Covered() != 0 || sum.Err() == nil || !bytes.Equal(cells, diskBytes(onesOf(64))) {
			t.Errorf("%s: %d bytes were added, error %v", name, sum.Covered(), sum.Err())
		}
	}
}

func onesOf(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

func TestJoinedChecksumsAreThatOfAllPieces(t *testing.T) {
	r := newRandom(9)
	for range 200 {
		file := make([]byte, r.IntN(5000))
		fill(r, file)
		sums := make([]*Checksum, 1+r.IntN(5))
		for i := range sums {
			sums[i] = NewChecksum(int64(len(file)))
		}
		for at := 0; at < len(file); {
			n := 1 + r.IntN(len(file)-at)
			sums[r.IntN(len(sums))].Add(int64(at), file[at:at+n])
			at += n
		}
		for _, s := range sums[1:] {
			part, covered := s.Part(), s.Covered()
			sums[0].Join(s)
			if s.Part() != part || s.Covered() != covered {
				t.Fatal("the other checksum has changed")
			}
		}
		checkFile(t, sums[0], file, len(file))
	}
}

// A checksum that was joined goes on as if nothing had happened.
func TestPiecesAfterAJoin(t *testing.T) {
	file := []byte("123456789")
	a, b := NewChecksum(9), NewChecksum(9)
	a.Add(0, file[:2])
	b.Add(2, file[2:5])
	a.Join(b)
	a.Add(5, file[5:])
	checkFile(t, a, file, 9)
}

func TestJoinKeepsTheFirstError(t *testing.T) {
	good, bad, other := NewChecksum(9), NewChecksum(9), NewChecksum(8)
	bad.Add(9, []byte{1})
	other.Add(0, []byte{1})
	good.Join(other)
	want := "checksum: joined with that of a file of 8 bytes, want 9"
	if err := good.Err(); err == nil || err.Error() != want || good.Covered() != 0 || good.Part() != 0 {
		t.Errorf("error %v, want %s; %d bytes", err, want, good.Covered())
	}
	good.Join(bad)
	if err := good.Err(); err.Error() != want {
		t.Errorf("error %v, want the first one", err)
	}
	good.Reset(9)
	good.Join(bad)
	if !errors.Is(good.Err(), bad.Err()) {
		t.Errorf("error %v, want %v", good.Err(), bad.Err())
	}
}
