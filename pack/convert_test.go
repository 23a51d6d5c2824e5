package pack

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// referenceWiden is an independent widen: the hardware's conversion, and the
// format's definition where that changes bits.
func referenceWiden(b uint32) uint64 {
	sign := uint64(b>>31) << 63
	exponent, fraction := b>>23&0xff, b&(1<<23-1)
	switch {
	case exponent == 0xff:
		return sign | 0x7ff0000000000000 | uint64(fraction)<<29
	case exponent == 0:
		return math.Float64bits(math.Ldexp(float64(fraction), -149)) | sign
	}
	return math.Float64bits(float64(math.Float32frombits(b)))
}

// randomFloat32 returns the bits of a float32 of any class.
func randomFloat32(r *rand.Rand) uint32 {
	b := r.Uint32()
	switch r.IntN(8) {
	case 0:
		return b & 0x807fffff // subnormal
	case 1:
		return b | 0x7f800000 // NaN, infinity
	case 2:
		return specialFloat32[r.IntN(len(specialFloat32))]
	}
	return b
}

var specialFloat32 = []uint32{
	0x00000000, 0x80000000, // zeros
	0x7f800000, 0xff800000, // infinities
	0x00000001, 0x80000001, 0x007fffff, // subnormal
	0x00800000, 0x7f7fffff, 0xff7fffff, // smallest and largest normal
	0x7fc00000, 0xffc00000, 0x7fffffff, // quiet NaNs
	0x7f800001, 0xffbfffff, 0x7fa5a5a5, // signalling NaNs
	0x3f800000, 0xbf800000, 0x3eaaaaab,
}

// inexactValues are no float32's.
var inexactValues = []uint64{
	math.Float64bits(0.1),
	math.Float64bits(-1 - 0x1p-24),
	math.Float64bits(math.MaxFloat64),
	math.Float64bits(0x1p128),             // one exponent too large
	math.Float64bits(0x1.ffffffp127),      // rounds to infinity
	math.Float64bits(0x1.fffffefffffffp0), // every bit counts
	math.Float64bits(0x1p-150),            // half of the smallest subnormal
	math.Float64bits(0x1.8p-149),          // between two subnormals
	math.Float64bits(0x1.000002p-127),     // a subnormal with a bit too many
	math.Float64bits(-0x1p-200),
	1,                  // the smallest float64
	0x7ff0000000000001, // NaNs whose payload needs the low bits
	0xfff8000010000000,
	0x7ff8000000000001,
}

func TestWidenIsExactAndNarrowItsInverse(t *testing.T) {
	check := func(b uint32) {
		u := widen(b)
		if want := referenceWiden(b); u != want {
			t.Fatalf("widen(%#08x) = %#016x, want %#016x", b, u, want)
		}
		if got, ok := narrow(u); !ok || got != b {
			t.Fatalf("narrow(widen(%#08x)) = %#08x, %v", b, got, ok)
		}
	}
	for _, b := range specialFloat32 {
		check(b)
	}
	for exponent := range uint32(512) {
		for shift := range 24 {
			for _, low := range []uint32{0, 1, 1<<shift - 1, 1 << shift, 1<<23 - 1 - 1<<shift} {
				check(exponent<<23 | low&(1<<23-1))
			}
		}
	}
	const stride = 1021 // odd, so that all low bits occur
	for b := uint32(0); b < math.MaxUint32-stride; b += stride {
		check(b)
	}
}

func TestNarrowAcceptsExactlyWhatRoundTripsThroughTheHardware(t *testing.T) {
	r := newRandom(1)
	exact := 0
	for range 400000 {
		u := r.Uint64()
		// Exponents around the range of float32, and few or many low bits.
		u = u&^(0x7ff<<52) | uint64(840+r.IntN(360))<<52
		u &^= 1<<r.IntN(53) - 1
		v := math.Float64frombits(u)
		// The nearest float32, without the hardware's rounding.
		f, _ := new(big.Float).SetFloat64(v).Float32()
		want := float64(f) == v
		b, ok := narrow(u)
		if ok != want {
			t.Fatalf("narrow(%x) is exact: %v, want %v", v, ok, want)
		}
		if ok {
			exact++
			if b != math.Float32bits(f) {
				t.Fatalf("narrow(%x) = %#08x, want %#08x", v, b, math.Float32bits(f))
			}
		}
	}
	if exact < 1000 {
		t.Fatalf("only %d exact values were tried", exact)
	}
}

func TestNarrowRefusesWhatIsNoFloat32(t *testing.T) {
	l := Layout{Size: [3]int{3, 2, 1}, Halo: [3]int{1, 1, 0}}
	for _, u := range inexactValues {
		t.Run(fmt.Sprintf("%#016x", u), func(t *testing.T) {
			src := []float64{1, 2, math.Float64frombits(u), math.Float64frombits(u)}
			dst := make([]float32, l.PaddedCells())
			for i := range dst {
				dst[i] = -7
			}
			before := slices.Clone(dst)
			for name, err := range map[string]error{
				"typed":       Narrow(dst, src, l, 1),
				"bytes":       NarrowBytes(dst, diskBytes(src), l, 1),
				"check":       CheckNarrow(src, 1),
				"check bytes": CheckNarrowBytes(diskBytes(src), 1),
			} {
				var inexact *NotFloat32Error
				if !errors.As(err, &inexact) {
					t.Fatalf("%s: got %v", name, err)
				}
				if inexact.Cell != 3 || math.Float64bits(inexact.Value) != u {
					t.Errorf("%s: got cell %d, value %#016x", name, inexact.Cell, math.Float64bits(inexact.Value))
				}
			}
			if !slices.Equal(dst, before) {
				t.Errorf("the destination changed: %v", dst)
			}
		})
	}
}

// diskBytes returns the file bytes of s.
func diskBytes(s []float64) []byte {
	b := slices.Clone(Bytes(s))
	if bigEndian {
		swapCells[float64](b)
	}
	return b
}
