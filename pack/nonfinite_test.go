package pack

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// countNonFinite is the plain count that all others are compared with.
func countNonFinite(b []byte) int {
	n := 0
	for ; len(b) >= 8; b = b[8:] {
		if v := math.Float64frombits(binary.LittleEndian.Uint64(b)); math.IsNaN(v) || math.IsInf(v, 0) {
			n++
		}
	}
	return n
}

// edges are the numbers on both sides of what is finite.
var edges = []uint64{
	0x7ff0000000000000, // infinities
	0xfff0000000000000,
	0x7ff0000000000001, // signalling NaNs
	0xfff7ffffffffffff,
	0x7ff8000000000000, // quiet NaNs
	0xffffffffffffffff,
	0x7fefffffffffffff, // the largest finite numbers
	0xffefffffffffffff,
	0x0010000000000000, // normal, subnormal, zero
	0x800fffffffffffff,
	0x0000000000000001,
	0x8000000000000000,
	0x7fe0000000000000, // the exponent of all ones except its lowest bit
	0x3ff0000000000000,
}

// strew puts edges among the numbers of b: few of them, or nothing else.
func strew(r *rand.Rand, b []byte) {
	every := []int{1, 2, 9, 100}[r.IntN(4)]
	for ; len(b) >= 8; b = b[8:] {
		if r.IntN(every) == 0 {
			binary.LittleEndian.PutUint64(b, edges[r.IntN(len(edges))])
		}
	}
}

func TestKernelsCountWhatIsNotFinite(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		memory := arena{newArena(t, 8*700)}
		r := newRandom(10)
		for n := 0; n <= 600; n++ {
			for _, low := range []bool{false, true} {
				b := memory.slice(8*n, r.IntN(2)*r.IntN(64), low)
				fill(r, b)
				strew(r, b)
				if got, want := k.nonFinite(b), countNonFinite(b); got != want {
					t.Fatalf("%d numbers: %d aren't finite, want %d", n, got, want)
				}
			}
		}
		for _, u := range edges {
			one := binary.LittleEndian.AppendUint64(nil, u)
			if got, want := k.nonFinite(one), countNonFinite(one); got != want {
				t.Errorf("%#016x: %d, want %d", u, got, want)
			}
		}
	})
}

// Every way of adding to a checksum counts, and one that isn't asked to doesn't.
func TestChecksumsCountWhatIsNotFinite(t *testing.T) {
	withKernels(t, func(t *testing.T, _ *kernelSet) {
		r := newRandom(11)
		for range 60 {
			l := sumLayout(r)
			first, end := randomRange(r, l, int(l.Cells()))
			countMoves[float64](t, r, l, first, end, 8, PackSum[float64], UnpackSum[float64])
			countMoves[complex128](t, r, l, first, end, 16, PackSum[complex128], UnpackSum[complex128])
			countMoves[float32](t, r, l, first, end, 8, WidenSum, NarrowSum)
		}
	})
}

func countMoves[T Number](t *testing.T, r *rand.Rand, l Layout, first, end, size int,
	packSum func([]byte, []T, Layout, int64, *Checksum, int64) error,
	unpackSum func([]T, []byte, Layout, int64, *Checksum, int64) error,
) {
	t.Helper()
	storage := make([]T, l.PaddedCells())
	fill(r, Bytes(storage))
	if size == 8 && wordSize[T]() == 4 {
		for i := range storage {
			singles := any(storage).([]float32)
			singles[i] = math.Float32frombits(randomFloat32(r))
		}
	} else {
		strew(r, Bytes(storage))
	}
	packed := make([]byte, size*(end-first))
	offset := int64(8 * r.IntN(9))
	bytes := offset + int64(len(packed)) + 16
	sum, silent := NewChecksum(bytes), NewChecksum(bytes)
	sum.CountNonFinite()
	if err := packSum(packed, storage, l, int64(first), sum, offset); err != nil {
		t.Fatal(err)
	}
	if err := packSum(packed, storage, l, int64(first), silent, offset); err != nil {
		t.Fatal(err)
	}
	want := int64(countNonFinite(packed))
	check := func(what string) {
		t.Helper()
		if sum.NonFinite() != want || sum.Err() != nil || sum.Part() != silent.Part() {
			t.Fatalf("%s %T, %+v, cells [%d, %d): %d numbers aren't finite, want %d; error %v", what, storage, l, first, end, sum.NonFinite(), want, sum.Err())
		}
	}
	check("pack")
	sum.Reset(bytes)
	if sum.NonFinite() != 0 {
		t.Fatalf("%d numbers after a reset", sum.NonFinite())
	}
	if err := unpackSum(make([]T, len(storage)), packed, l, int64(first), sum, offset); err != nil {
		t.Fatal(err)
	}
	check("unpack")
	sum.Reset(bytes)
	sum.Add(offset, packed)
	check("add")
	other := NewChecksum(bytes)
	other.Join(sum)
	if other.NonFinite() != want {
		t.Fatalf("%d numbers after a join, want %d", other.NonFinite(), want)
	}
	if silent.NonFinite() != 0 {
		t.Fatalf("a checksum that wasn't asked to count has %d", silent.NonFinite())
	}
}

func TestPartsOfNumbersAreNotCountedIn(t *testing.T) {
	for _, piece := range []struct{ offset, n int64 }{{0, 9}, {0, 7}, {4, 8}, {1, 7}} {
		sum := NewChecksum(64)
		sum.CountNonFinite()
		sum.Add(piece.offset, make([]byte, piece.n))
		if sum.Err() == nil || sum.Covered() != 0 {
			t.Errorf("%+v: %d bytes were added, error %v", piece, sum.Covered(), sum.Err())
		}
	}
	sum := NewChecksum(64)
	sum.CountNonFinite()
	sum.Add(3, nil)
	if sum.Err() != nil {
		t.Errorf("nothing at all: %v", sum.Err())
	}
}

// FuzzCountNonFinite compares the kernels with the plain count.
func FuzzCountNonFinite(f *testing.F) {
	var all []byte
	for _, u := range edges {
		all = binary.LittleEndian.AppendUint64(all, u)
	}
	f.Add(all, uint8(3))
	f.Add(all[8:48], uint8(0))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, repeat uint8) {
		var b []byte
		for range int(repeat) + 1 {
			b = append(b, data[:len(data)&^7]...)
		}
		for _, k := range available() {
			if got, want := k.nonFinite(b), countNonFinite(b); got != want {
				t.Fatalf("%s: %d, want %d", k.name, got, want)
			}
		}
	})
}
