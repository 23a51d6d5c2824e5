//go:build linux && (amd64 || arm64)

package fakegpu_test

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unsafe"
)

const ptxHead = ".version 6.0\n.target sm_70\n.address_size 64\n"

// perThread is a kernel that runs body for each thread with the three numbers %a, %b, %c
// (64 bits each) of the thread, and stores the 64 bits that body puts into %d.
func perThread(body string) string {
	return ptxHead + `
.visible .entry k(.param .u64 out, .param .u64 in)
{
	.reg .pred %p<9>;
	.reg .b16 %h<9>;
	.reg .b32 %r<9>;
	.reg .f32 %f<9>;
	.reg .b64 %q<9>;
	.reg .f64 %g<9>;
	.reg .b64 %a, %b, %c, %d, %src, %dst;
	.reg .b32 %i;
	ld.param.u64 %src, [in];
	ld.param.u64 %dst, [out];
	mov.u32 %i, %ctaid.x;
	mad.lo.s32 %i, %i, 256, 0;
	mov.u32 %r0, %tid.x;
	add.s32 %i, %i, %r0;
	mul.wide.u32 %q0, %i, 24;
	add.s64 %src, %src, %q0;
	mul.wide.u32 %q0, %i, 8;
	add.s64 %dst, %dst, %q0;
	ld.global.u64 %a, [%src];
	ld.global.u64 %b, [%src+8];
	ld.global.u64 %c, [%src+16];
	cvt.u32.u64 %r1, %a;
	cvt.u32.u64 %r2, %b;
	cvt.u32.u64 %r3, %c;
	mov.b64 %g1, %a;
	mov.b64 %g2, %b;
	mov.b64 %g3, %c;
	mov.b32 %f1, %r1;
	mov.b32 %f2, %r2;
	mov.b32 %f3, %r3;
	cvt.u16.u32 %h1, %r1;
	cvt.u16.u32 %h2, %r2;
	mov.u64 %d, 0;
` + body + `
	st.global.u64 [%dst], %d;
	ret;
}
`
}

type triple [3]uint64

// run returns what the kernel makes of each triple. It pads to whole blocks.
func (c *cuda) run(t *testing.T, ptx string, in []triple) []uint64 {
	t.Helper()
	m, code, log := c.loadPTX(ptx)
	if code != ok {
		t.Fatalf("load: error %d: %s", code, log)
	}
	defer func() { c.must(c.unload(m)) }()
	var f uintptr
	c.must(c.function(&f, m, "k"))
	blocks := (len(in) + 255) / 256
	padded := make([]triple, 256*blocks)
	copy(padded, in)
	out := make([]uint64, 256*blocks)
	src, dst := c.alloc(int(bytesOf(padded))), c.alloc(int(bytesOf(out)))
	c.must(c.toDevice(src, pointer(padded), bytesOf(padded)))
	arguments := [2]uintptr{dst, src}
	size := uint64(16)
	extra := [5]unsafe.Pointer{word(1), unsafe.Pointer(&arguments), word(2), unsafe.Pointer(&size), word(0)}
	c.must(c.launch(f, uint32(blocks), 1, 1, 256, 1, 1, 0, 0, nil, &extra[0]))
	c.must(c.toHost(pointer(out), dst, bytesOf(out)))
	c.must(c.free(src))
	c.must(c.free(dst))
	return out[:len(in)]
}

var (
	integers = []uint64{
		0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 100, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000,
		0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x123456789abcdef0,
		1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64,
	}
	doubles = []float64{
		0, math.Copysign(0, -1), 1, -1, 1.5, -2.5, 0.1, 1e-300, 1e300, -1e300, math.Pi, 1 << 31, -1 << 31, 1 << 32, 1 << 52, 1<<53 - 1,
		1 << 62, 1 << 63, 1 << 64, 2147483646.5, -0.5, 0.5, 2.5, 3.5, 1e-40, math.MaxFloat32, 1e39, math.SmallestNonzeroFloat32 / 2,
		math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022, math.MaxFloat64, -math.MaxFloat64, 1 + 0x1p-24, 1 + 0x1p-52,
		math.Inf(1), math.Inf(-1), math.NaN(),
	}
	singles = []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 1.5, -2.5, 0.1, 1e-30, 1e30, -1e30, math.Pi, 1 << 15, 1 << 16, 1 << 24, 1 << 31, -1 << 31, 1 << 32,
		1 << 63, 1 << 64, -0.5, 0.5, 2.5, 3.5, 0x1p-126, 0x1p-127, 0x1p-149, -0x1p-149, math.MaxFloat32, -math.MaxFloat32, 1 + 0x1p-23,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	}
)

// Triples of special numbers, all pairs of them, and of random bits.
func triples[T any](numbers []T, toBits func(T) uint64) []triple {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func() uint64 {
		if random.IntN(2) == 0 {
			return random.Uint64()
		}
		return toBits(numbers[random.IntN(len(numbers))])
	}
	var all []triple
	for _, a := range numbers {
		for _, b := range numbers {
			all = append(all, triple{toBits(a), toBits(b), pick()})
		}
	}
	for range 1000 {
		all = append(all, triple{pick(), pick(), pick()})
	}
	return all
}

func bitsOfSingle(f float32) uint64 { return uint64(math.Float32bits(f)) }

// Bodies of kernels.
func on64(op string) string { return op + " %d, %a, %b;" }
func on32(op string) string { return op + " %r4, %r1, %r2;\n\tcvt.u64.u32 %d, %r4;" }
func on16(op string) string { return op + " %h3, %h1, %h2;\n\tcvt.u64.u16 %d, %h3;" }
func test(op, a, b string) string {
	return op + " %p1, " + a + ", " + b + ";\n\tselp.u64 %d, 1, 0, %p1;"
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func TestPTXIntegers(t *testing.T) {
	s32 := func(v uint64) int32 { return int32(uint32(v)) }
	u32 := func(v uint64) uint32 { return uint32(v) }
	b32 := func(v int32) uint64 { return uint64(uint32(v)) }
	shift := func(by uint64) uint64 { return uint64(u32(by)) }
	tests := []struct {
		body string
		want func(a, b, c uint64) uint64
	}{
		{on64("add.s64"), func(a, b, _ uint64) uint64 { return a + b }},
		{on64("sub.u64"), func(a, b, _ uint64) uint64 { return a - b }},
		{on64("mul.lo.s64"), func(a, b, _ uint64) uint64 { return a * b }},
		{on64("mul.hi.u64"), func(a, b, _ uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }},
		{on64("mul.hi.s64"), func(a, b, _ uint64) uint64 {
			p := new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(b)))
			return uint64(p.Rsh(p, 64).Int64())
		}},
		{"mad.lo.s64 %d, %a, %b, %c;", func(a, b, c uint64) uint64 { return a*b + c }},
		{on64("and.b64"), func(a, b, _ uint64) uint64 { return a & b }},
		{on64("or.b64"), func(a, b, _ uint64) uint64 { return a | b }},
		{on64("xor.b64"), func(a, b, _ uint64) uint64 { return a ^ b }},
		{on64("min.s64"), func(a, b, _ uint64) uint64 { return uint64(min(int64(a), int64(b))) }},
		{on64("max.u64"), func(a, b, _ uint64) uint64 { return max(a, b) }},
		{on64("div.u64"), func(a, b, _ uint64) uint64 {
			if b == 0 {
				return math.MaxUint64
			}
			return a / b
		}},
		{on64("rem.s64"), func(a, b, _ uint64) uint64 {
			if b == 0 {
				return a
			}
			return uint64(int64(a) % int64(b))
		}},
		{on64("div.s64"), func(a, b, _ uint64) uint64 {
			if b == 0 {
				return math.MaxUint64
			}
			return uint64(int64(a) / int64(b))
		}},
		{"shl.b64 %d, %a, %r2;", func(a, b, _ uint64) uint64 { return a << shift(b) }},
		{"shr.u64 %d, %a, %r2;", func(a, b, _ uint64) uint64 { return a >> shift(b) }},
		{"shr.s64 %d, %a, %r2;", func(a, b, _ uint64) uint64 { return uint64(int64(a) >> shift(b)) }},
		{"not.b64 %d, %a;", func(a, _, _ uint64) uint64 { return ^a }},
		{"cnot.b64 %d, %a;", func(a, _, _ uint64) uint64 { return truth(a == 0) }},
		{"neg.s64 %d, %a;", func(a, _, _ uint64) uint64 { return -a }},
		{"abs.s64 %d, %a;", func(a, _, _ uint64) uint64 { return uint64(max(int64(a), -int64(a), math.MinInt64)) }},
		{"brev.b64 %d, %a;", func(a, _, _ uint64) uint64 { return bits.Reverse64(a) }},
		{"clz.b64 %r4, %a;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a)) }},
		{"popc.b64 %r4, %a;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }},

		{on32("add.s32"), func(a, b, _ uint64) uint64 { return uint64(u32(a) + u32(b)) }},
		{on32("sub.s32"), func(a, b, _ uint64) uint64 { return uint64(u32(a) - u32(b)) }},
		{on32("add.sat.s32"), func(a, b, _ uint64) uint64 {
			return b32(int32(min(max(int64(s32(a))+int64(s32(b)), math.MinInt32), math.MaxInt32)))
		}},
		{on32("mul.lo.u32"), func(a, b, _ uint64) uint64 { return uint64(u32(a) * u32(b)) }},
		{on32("mul.hi.u32"), func(a, b, _ uint64) uint64 { return uint64(u32(a)) * uint64(u32(b)) >> 32 }},
		{on32("mul.hi.s32"), func(a, b, _ uint64) uint64 { return b32(int32(int64(s32(a)) * int64(s32(b)) >> 32)) }},
		{"mul.wide.u32 %d, %r1, %r2;", func(a, b, _ uint64) uint64 { return uint64(u32(a)) * uint64(u32(b)) }},
		{"mul.wide.s32 %d, %r1, %r2;", func(a, b, _ uint64) uint64 { return uint64(int64(s32(a)) * int64(s32(b))) }},
		{"mad.wide.s32 %d, %r1, %r2, %c;", func(a, b, c uint64) uint64 { return uint64(int64(s32(a))*int64(s32(b))) + c }},
		{"mad.lo.s32 %r4, %r1, %r2, %r3;\ncvt.u64.u32 %d, %r4;", func(a, b, c uint64) uint64 { return uint64(u32(a)*u32(b) + u32(c)) }},
		{on32("div.u32"), func(a, b, _ uint64) uint64 {
			if u32(b) == 0 {
				return math.MaxUint32
			}
			return uint64(u32(a) / u32(b))
		}},
		{on32("rem.u32"), func(a, b, _ uint64) uint64 {
			if u32(b) == 0 {
				return uint64(u32(a))
			}
			return uint64(u32(a) % u32(b))
		}},
		{on32("div.s32"), func(a, b, _ uint64) uint64 {
			if u32(b) == 0 {
				return math.MaxUint32
			}
			return b32(s32(a) / s32(b))
		}},
		{on32("min.u32"), func(a, b, _ uint64) uint64 { return uint64(min(u32(a), u32(b))) }},
		{on32("max.s32"), func(a, b, _ uint64) uint64 { return b32(max(s32(a), s32(b))) }},
		{on32("shl.b32"), func(a, b, _ uint64) uint64 { return uint64(u32(a) << u32(b)) }},
		{on32("shr.u32"), func(a, b, _ uint64) uint64 { return uint64(u32(a) >> u32(b)) }},
		{on32("shr.s32"), func(a, b, _ uint64) uint64 { return b32(s32(a) >> u32(b)) }},
		{"clz.b32 %r4, %r1;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros32(u32(a))) }},
		{"brev.b32 %r4, %r1;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return uint64(bits.Reverse32(u32(a))) }},
		{"abs.s32 %r4, %r1;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return b32(max(s32(a), -s32(a), math.MinInt32)) }},
		{"shf.l.wrap.b32 %r4, %r1, %r2, %r3;\ncvt.u64.u32 %d, %r4;", func(a, b, c uint64) uint64 {
			return (uint64(u32(b))<<32 | uint64(u32(a))) << (c & 31) >> 32
		}},
		{"prmt.b32 %r4, %r1, %r2, 0x3715;\ncvt.u64.u32 %d, %r4;", func(a, b, _ uint64) uint64 {
			bytes := [8]byte{byte(a), byte(a >> 8), byte(a >> 16), byte(a >> 24), byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}
			return uint64(bytes[5]) | uint64(bytes[1])<<8 | uint64(bytes[7])<<16 | uint64(bytes[3])<<24
		}},
		{"bfe.u32 %r4, %r1, 5, 9;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return uint64(u32(a) >> 5 & 511) }},
		{"bfe.s64 %d, %a, 40, 30;", func(a, _, _ uint64) uint64 { return uint64(int64(a) >> 40) }},
		{"bfe.s32 %r4, %r1, 5, 9;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return b32(s32(a) << 18 >> 23) }},
		{"bfi.b64 %d, %a, %b, 8, 16;", func(a, b, _ uint64) uint64 { return b&^(0xffff<<8) | a&0xffff<<8 }},

		{on16("add.u16"), func(a, b, _ uint64) uint64 { return uint64(uint16(a) + uint16(b)) }},
		{on16("mul.lo.s16"), func(a, b, _ uint64) uint64 { return uint64(uint16(a) * uint16(b)) }},
		{on16("min.s16"), func(a, b, _ uint64) uint64 { return uint64(uint16(min(int16(a), int16(b)))) }},
		{"mul.wide.s16 %r4, %h1, %h2;\ncvt.u64.u32 %d, %r4;", func(a, b, _ uint64) uint64 { return b32(int32(int16(a)) * int32(int16(b))) }},

		{test("setp.lt.s64", "%a", "%b"), func(a, b, _ uint64) uint64 { return truth(int64(a) < int64(b)) }},
		{test("setp.lt.u64", "%a", "%b"), func(a, b, _ uint64) uint64 { return truth(a < b) }},
		{test("setp.lo.u32", "%r1", "%r2"), func(a, b, _ uint64) uint64 { return truth(u32(a) < u32(b)) }},
		{test("setp.hs.u32", "%r1", "%r2"), func(a, b, _ uint64) uint64 { return truth(u32(a) >= u32(b)) }},
		{test("setp.ge.s32", "%r1", "%r2"), func(a, b, _ uint64) uint64 { return truth(s32(a) >= s32(b)) }},
		{test("setp.le.u64", "%a", "%b"), func(a, b, _ uint64) uint64 { return truth(a <= b) }},
		{test("setp.gt.s64", "%a", "%b"), func(a, b, _ uint64) uint64 { return truth(int64(a) > int64(b)) }},
		{test("setp.ne.b64", "%a", "%b"), func(a, b, _ uint64) uint64 { return truth(a != b) }},
		{test("setp.eq.s16", "%h1", "%h2"), func(a, b, _ uint64) uint64 { return truth(uint16(a) == uint16(b)) }},
		{"setp.lt.u64 %p2, %a, %b;\nsetp.eq.and.s32 %p1|%p3, %r1, %r2, %p2;\nselp.u64 %d, 1, 0, %p1;\n@%p3 add.u64 %d, %d, 2;", func(a, b, _ uint64) uint64 {
			return truth(u32(a) == u32(b) && a < b) + 2*truth(u32(a) != u32(b) && a < b)
		}},
		{"setp.lt.u64 %p2, %a, %b;\nnot.pred %p3, %p2;\n@!%p3 mov.u64 %d, 5;", func(a, b, _ uint64) uint64 { return 5 * truth(a < b) }},
		{"shf.r.clamp.b32 %r4, %r1, %r2, %r3;\ncvt.u64.u32 %d, %r4;", func(a, b, c uint64) uint64 {
			return uint64(u32((uint64(u32(b))<<32 | uint64(u32(a))) >> min(u32(c), 32)))
		}},

		{"cvt.s64.s32 %d, %r1;", func(a, _, _ uint64) uint64 { return uint64(int64(s32(a))) }},
		{"cvt.s64.s8 %d, %r1;", func(a, _, _ uint64) uint64 { return uint64(int64(int8(a))) }},
		{"cvt.s32.s16 %r4, %r1;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return b32(int32(int16(a))) }},
		{"cvt.sat.u8.s32 %r4, %r1;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return uint64(min(max(s32(a), 0), 255)) }},
		{"cvt.sat.s32.s64 %r4, %a;\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 {
			return b32(int32(min(max(int64(a), math.MinInt32), math.MaxInt32)))
		}},
		{"mov.b64 {%r4, %r5}, %a;\nmov.b64 %d, {%r5, %r4};", func(a, _, _ uint64) uint64 { return a>>32 | a<<32 }},
		{"mov.b32 {%h3, %h4}, %r1;\nmov.b32 %r4, {%h4, %h3};\ncvt.u64.u32 %d, %r4;", func(a, _, _ uint64) uint64 { return uint64(bits.RotateLeft32(u32(a), 16)) }},
	}
	c := newCUDA(t)
	in := triples(integers, func(v uint64) uint64 { return v })
	for _, test := range tests {
		out := c.run(t, perThread(test.body), in)
		for i, n := range in {
			if want := test.want(n[0], n[1], n[2]); out[i] != want {
				t.Errorf("%s\n\tof %#x, %#x, %#x is %#x, want %#x", test.body, n[0], n[1], n[2], out[i], want)
				break
			}
		}
	}
}

// rounded is x rounded to a float64 (or float32) in a mode.
func rounded(x *big.Float, mode big.RoundingMode, single bool) float64 {
	precision := uint(53)
	if single {
		precision = 24
	}
	y := new(big.Float).SetMode(mode).SetPrec(precision).Set(x)
	f, _ := y.Float64()
	return f
}

func TestPTXDoubles(t *testing.T) {
	f := math.Float64frombits
	b := math.Float64bits
	on := func(op string) string { return op + " %g4, %g1, %g2;\n\tmov.b64 %d, %g4;" }
	of := func(op string) string { return op + " %g4, %g1;\n\tmov.b64 %d, %g4;" }
	minimum := func(x, y float64) float64 {
		if x != x {
			return y
		}
		if y != y {
			return x
		}
		return math.Min(x, y)
	}
	tests := []struct {
		body string
		want func(x, y, z float64) uint64
	}{
		{on("add.f64"), func(x, y, _ float64) uint64 { return b(x + y) }},
		{on("add.rn.f64"), func(x, y, _ float64) uint64 { return b(x + y) }},
		{on("sub.f64"), func(x, y, _ float64) uint64 { return b(x - y) }},
		{on("mul.rn.f64"), func(x, y, _ float64) uint64 { return b(x * y) }},
		{on("div.rn.f64"), func(x, y, _ float64) uint64 { return b(x / y) }},
		{"fma.rn.f64 %g4, %g1, %g2, %g3;\nmov.b64 %d, %g4;", func(x, y, z float64) uint64 { return b(math.FMA(x, y, z)) }},
		{of("sqrt.rn.f64"), func(x, _, _ float64) uint64 { return b(math.Sqrt(x)) }},
		{of("rcp.rn.f64"), func(x, _, _ float64) uint64 { return b(1 / x) }},
		{of("neg.f64"), func(x, _, _ float64) uint64 { return b(x) ^ 1<<63 }},
		{of("abs.f64"), func(x, _, _ float64) uint64 { return b(x) &^ (1 << 63) }},
		{on("copysign.f64"), func(x, y, _ float64) uint64 { return b(math.Copysign(y, x)) }},
		{on("min.f64"), func(x, y, _ float64) uint64 { return b(minimum(x, y)) }},
		{on("max.f64"), func(x, y, _ float64) uint64 { return b(-minimum(-x, -y)) }},
		{of("cvt.rmi.f64.f64"), func(x, _, _ float64) uint64 { return b(math.Floor(x)) }},
		{of("cvt.rpi.f64.f64"), func(x, _, _ float64) uint64 { return b(math.Ceil(x)) }},
		{of("cvt.rzi.f64.f64"), func(x, _, _ float64) uint64 { return b(math.Trunc(x)) }},
		{of("cvt.rni.f64.f64"), func(x, _, _ float64) uint64 { return b(math.RoundToEven(x)) }},
		{"cvt.rn.f32.f64 %f4, %g1;\nmov.b32 %r4, %f4;\ncvt.u64.u32 %d, %r4;", func(x, _, _ float64) uint64 { return single(float32(x)) }},
		{"cvt.rz.f32.f64 %f4, %g1;\nmov.b32 %r4, %f4;\ncvt.u64.u32 %d, %r4;", func(x, _, _ float64) uint64 {
			y := float32(x)
			if x == x && math.Abs(float64(y)) > math.Abs(x) {
				y = math.Nextafter32(y, 0)
			}
			return single(y)
		}},
		{"cvt.rzi.s32.f64 %r4, %g1;\ncvt.u64.u32 %d, %r4;", func(x, _, _ float64) uint64 {
			if x != x {
				return 1 << 31
			}
			return uint64(uint32(int32(math.Trunc(min(max(x, math.MinInt32), math.MaxInt32)))))
		}},
		{"cvt.rni.s64.f64 %d, %g1;", func(x, _, _ float64) uint64 {
			switch x = math.RoundToEven(x); {
			case x != x:
				return 1 << 63
			case x >= 1<<63:
				return math.MaxInt64
			case x < -1<<63:
				return 1 << 63
			}
			return uint64(int64(x))
		}},
		{"cvt.rzi.u64.f64 %d, %g1;", func(x, _, _ float64) uint64 {
			switch {
			case x != x:
				return 1 << 63
			case x >= 1<<64:
				return math.MaxUint64
			case x <= 0:
				return 0
			}
			v, _ := new(big.Float).SetFloat64(x).Uint64()
			return v
		}},
		{"cvt.rn.f64.s64 %g4, %a;\nmov.b64 %d, %g4;", func(x, _, _ float64) uint64 { return b(float64(int64(b(x)))) }},
		{"cvt.rn.f64.u32 %g4, %r1;\nmov.b64 %d, %g4;", func(x, _, _ float64) uint64 { return b(float64(uint32(b(x)))) }},
		{"cvt.rn.f32.u64 %f4, %a;\nmov.b32 %r4, %f4;\ncvt.u64.u32 %d, %r4;", func(x, _, _ float64) uint64 { return single(float32(b(x))) }},
		{test("setp.lt.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(x < y) }},
		{test("setp.ge.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(x >= y) }},
		{test("setp.eq.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(x == y) }},
		{test("setp.ne.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(x < y || x > y) }},
		{test("setp.neu.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(x != y) }},
		{test("setp.leu.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(!(x > y)) }},
		{test("setp.gtu.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(!(x <= y)) }},
		{test("setp.nan.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(x != x || y != y) }},
		{test("setp.num.f64", "%g1", "%g2"), func(x, y, _ float64) uint64 { return truth(x == x && y == y) }},
		{"testp.finite.f64 %p1, %g1;\nselp.u64 %d, 1, 0, %p1;", func(x, _, _ float64) uint64 { return truth(x-x == 0) }},
		{"testp.infinite.f64 %p1, %g1;\nselp.u64 %d, 1, 0, %p1;", func(x, _, _ float64) uint64 { return truth(math.IsInf(x, 0)) }},
		{"testp.subnormal.f64 %p1, %g1;\nselp.u64 %d, 1, 0, %p1;", func(x, _, _ float64) uint64 { return truth(x != 0 && math.Abs(x) < 0x1p-1022) }},
		{"add.f64 %g4, %g1, 0d3FF8000000000000;\nmov.b64 %d, %g4;", func(x, _, _ float64) uint64 { return b(x + 1.5) }},
	}
	c := newCUDA(t)
	in := triples(doubles, b)
	for _, test := range tests {
		out := c.run(t, perThread(test.body), in)
		for i, n := range in {
			want := test.want(f(n[0]), f(n[1]), f(n[2]))
			if out[i] != want && !(f(out[i]) != f(out[i]) && f(want) != f(want)) {
				t.Errorf("%s\n\tof %v, %v, %v is %#x, want %#x", test.body, f(n[0]), f(n[1]), f(n[2]), out[i], want)
				break
			}
		}
	}
}

// single is the device's pattern: NaN has one.
func single(f float32) uint64 {
	if f != f {
		return 0x7fffffff
	}
	return bitsOfSingle(f)
}

func TestPTXSingles(t *testing.T) {
	f := func(v uint64) float32 { return math.Float32frombits(uint32(v)) }
	end := "\n\tmov.b32 %r4, %f4;\n\tcvt.u64.u32 %d, %r4;"
	on := func(op string) string { return op + " %f4, %f1, %f2;" + end }
	of := func(op string) string { return op + " %f4, %f1;" + end }
	flush := func(x float32) float32 {
		if x != 0 && math.Abs(float64(x)) < 0x1p-126 {
			return float32(math.Copysign(0, float64(x)))
		}
		return x
	}
	minimum := func(x, y float32) float32 {
		if x != x {
			return y
		}
		if y != y {
			return x
		}
		return min(x, y)
	}
	tests := []struct {
		body string
		want func(x, y, z float32) uint64
	}{
		{on("add.f32"), func(x, y, _ float32) uint64 { return single(x + y) }},
		{on("sub.rn.f32"), func(x, y, _ float32) uint64 { return single(x - y) }},
		{on("mul.f32"), func(x, y, _ float32) uint64 { return single(x * y) }},
		{on("div.rn.f32"), func(x, y, _ float32) uint64 { return single(x / y) }},
		{of("sqrt.rn.f32"), func(x, _, _ float32) uint64 { return single(float32(math.Sqrt(float64(x)))) }},
		{of("rcp.rn.f32"), func(x, _, _ float32) uint64 { return single(1 / x) }},
		{on("add.ftz.f32"), func(x, y, _ float32) uint64 { return single(flush(flush(x) + flush(y))) }},
		{on("mul.ftz.f32"), func(x, y, _ float32) uint64 { return single(flush(flush(x) * flush(y))) }},
		{on("add.sat.f32"), func(x, y, _ float32) uint64 {
			sum := x + y
			if !(sum > 0) {
				sum = 0
			}
			return single(min(sum, 1))
		}},
		{"fma.rn.f32 %f4, %f1, %f2, %f3;" + end, func(x, y, z float32) uint64 { return single(fma32(x, y, z)) }},
		{of("neg.f32"), func(x, _, _ float32) uint64 { return bitsOfSingle(x) ^ 1<<31 }},
		{of("abs.f32"), func(x, _, _ float32) uint64 { return bitsOfSingle(x) &^ (1 << 31) }},
		{on("min.f32"), func(x, y, _ float32) uint64 { return single(minimum(x, y)) }},
		{on("max.f32"), func(x, y, _ float32) uint64 { return single(-minimum(-x, -y)) }},
		{on("min.NaN.f32"), func(x, y, _ float32) uint64 { return single(min(x, y)) }},
		{of("cvt.rni.f32.f32"), func(x, _, _ float32) uint64 { return single(float32(math.RoundToEven(float64(x)))) }},
		{of("cvt.sat.f32.f32"), func(x, _, _ float32) uint64 {
			if !(x > 0) {
				return 0
			}
			return single(min(x, 1))
		}},
		{"cvt.f64.f32 %g4, %f1;\nmov.b64 %d, %g4;", func(x, _, _ float32) uint64 { return math.Float64bits(float64(x)) }},
		{"cvt.rzi.s32.f32 %r4, %f1;\ncvt.u64.u32 %d, %r4;", func(x, _, _ float32) uint64 {
			switch {
			case x != x:
				return 0
			case x >= 1<<31:
				return math.MaxInt32
			case x < -1<<31:
				return 1 << 31
			}
			return uint64(uint32(int32(x)))
		}},
		{"cvt.rzi.u64.f32 %d, %f1;", func(x, _, _ float32) uint64 {
			switch {
			case x != x:
				return 1 << 63
			case x >= 1<<64:
				return math.MaxUint64
			case x <= 0:
				return 0
			}
			v, _ := new(big.Float).SetFloat64(float64(x)).Uint64()
			return v
		}},
		{"cvt.rn.f32.s32 %f4, %r1;" + end, func(x, _, _ float32) uint64 { return single(float32(int32(bitsOfSingle(x)))) }},
		{test("setp.lt.f32", "%f1", "%f2"), func(x, y, _ float32) uint64 { return truth(x < y) }},
		{test("setp.equ.f32", "%f1", "%f2"), func(x, y, _ float32) uint64 { return truth(!(x < y || x > y)) }},
		{"testp.normal.f32 %p1, %f1;\nselp.u64 %d, 1, 0, %p1;", func(x, _, _ float32) uint64 {
			return truth(math.Abs(float64(x)) >= 0x1p-126 && !math.IsInf(float64(x), 0))
		}},
		{"fma.rn.f32 %f4, %f1, 0f40000000, 0fBF800000;" + end, func(x, _, _ float32) uint64 { return single(fma32(x, 2, -1)) }},
	}
	c := newCUDA(t)
	in := triples(singles, bitsOfSingle)
	for _, test := range tests {
		out := c.run(t, perThread(test.body), in)
		for i, n := range in {
			want := test.want(f(n[0]), f(n[1]), f(n[2]))
			if out[i] != want && !strings.Contains(test.body, "cvt.f64") {
				t.Errorf("%s\n\tof %v, %v, %v is %#x, want %#x", test.body, f(n[0]), f(n[1]), f(n[2]), out[i], want)
				break
			}
			if x, y := math.Float64frombits(out[i]), math.Float64frombits(want); out[i] != want && !(x != x && y != y) {
				t.Errorf("%s\n\tof %v is %v, want %v", test.body, f(n[0]), x, y)
				break
			}
		}
	}
}

// fma32 rounds once: the product is exact in float64, and rounding the sum to odd there
// keeps what the second rounding needs.
func fma32(x, y, z float32) float32 {
	product := float64(x) * float64(y)
	sum := product + float64(z)
	if math.IsInf(sum, 0) || sum != sum || product == 0 || z == 0 {
		return float32(sum)
	}
	exact := new(big.Float).SetPrec(1000).Add(big.NewFloat(product), big.NewFloat(float64(z)))
	if exact.Sign() == 0 {
		return float32(sum)
	}
	f, _ := exact.Float32()
	return f
}

func TestPTXRounding(t *testing.T) {
	operations := map[string]func(x, y *big.Float) *big.Float{
		"add": func(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(3000).Add(x, y) },
		"sub": func(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(3000).Sub(x, y) },
		"mul": func(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(3000).Mul(x, y) },
		"div": func(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(3000).Quo(x, y) },
	}
	modes := map[string]big.RoundingMode{"rn": big.ToNearestEven, "rz": big.ToZero, "rm": big.ToNegativeInf, "rp": big.ToPositiveInf}
	random := rand.New(rand.NewPCG(3, 4))
	var in []triple
	for range 500 {
		x, y := random.NormFloat64()*1e3, random.NormFloat64()
		in = append(in, triple{math.Float64bits(x), math.Float64bits(y)})
	}
	c := newCUDA(t)
	for op, exact := range operations {
		for mode, rounding := range modes {
			doubly := c.run(t, perThread(op+"."+mode+".f64 %g4, %g1, %g2;\nmov.b64 %d, %g4;"), in)
			singly := c.run(t, perThread("cvt.rn.f32.f64 %f1, %g1;\ncvt.rn.f32.f64 %f2, %g2;\n"+op+"."+mode+".f32 %f4, %f1, %f2;\ncvt.f64.f32 %g4, %f4;\nmov.b64 %d, %g4;"), in)
			for i, n := range in {
				x, y := math.Float64frombits(n[0]), math.Float64frombits(n[1])
				if want := rounded(exact(big.NewFloat(x), big.NewFloat(y)), rounding, false); math.Float64frombits(doubly[i]) != want {
					t.Fatalf("%s.%s.f64 of %v, %v is %v, want %v", op, mode, x, y, math.Float64frombits(doubly[i]), want)
				}
				x, y = float64(float32(x)), float64(float32(y))
				if want := rounded(exact(big.NewFloat(x), big.NewFloat(y)), rounding, true); math.Float64frombits(singly[i]) != want {
					t.Fatalf("%s.%s.f32 of %v, %v is %v, want %v", op, mode, x, y, math.Float64frombits(singly[i]), want)
				}
			}
		}
	}
}

func TestPTXControl(t *testing.T) {
	c := newCUDA(t)
	in := make([]triple, 300)
	for i := range in {
		in[i] = triple{uint64(i), uint64(i % 7), 3}
	}
	for _, test := range []struct {
		name, body string
		want       func(a, b uint64) uint64
	}{
		{"loop", "$loop:\n\tsetp.ge.u64 %p1, %d, %a;\n\t@%p1 bra $done;\n\tadd.u64 %d, %d, 2;\n\tbra.uni $loop;\n$done:", func(a, _ uint64) uint64 { return (a + 1) / 2 * 2 }},
		{"exit of some threads", "setp.eq.u64 %p1, %b, 3;\n\t@%p1 exit;\n\tmov.u64 %d, 9;", func(_, b uint64) uint64 {
			if b == 3 {
				return math.MaxUint64 // what was there
			}
			return 9
		}},
		{"scopes", "{\n\tadd.u64 %d, %a, 1;\n\t{ add.u64 %d, %d, 1; }\n}", func(a, _ uint64) uint64 { return a + 2 }},
		{"comments", "// add.u64 %d, %a, 5;\n/* add.u64\n%d, %a, 5; */ add.u64 %d, %a, 1; // more", func(a, _ uint64) uint64 { return a + 1 }},
		{"memory of a thread", ".local .align 8 .b8 depot[16];\n\tmov.u64 %q1, depot;\n\tcvta.local.u64 %q2, %q1;\n\tst.local.u64 [%q1+8], %a;\n\tld.u64 %d, [%q2+8];", func(a, _ uint64) uint64 { return a }},
		{"narrow loads", "ld.global.s8 %r4, [%src];\n\tcvt.s64.s32 %d, %r4;", func(a, _ uint64) uint64 { return uint64(int64(int8(a))) }},
		{"special registers", "mov.u32 %r4, %ntid.x;\n\tmov.u32 %r5, %nctaid.x;\n\tmad.lo.u32 %r4, %r4, %r5, %tid.y;\n\tcvt.u64.u32 %d, %r4;", func(_, _ uint64) uint64 { return 512 }},
	} {
		out := c.run(t, perThread(test.body), in)
		for i := range in {
			if want := test.want(in[i][0], in[i][1]); out[i] != want {
				t.Errorf("%s: thread %d has %#x, want %#x", test.name, i, out[i], want)
				break
			}
		}
	}
}

func TestPTXVectors(t *testing.T) {
	c := newCUDA(t)
	out := c.run(t, perThread(`
	and.b64 %q1, %src, -16;
	ld.global.v2.u64 {%q2, %q3}, [%q1];
	ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%q1];
	mov.b64 %q4, {%r6, %r7};
	setp.eq.u64 %p1, %q3, %q4;
	selp.u64 %d, %q2, 0, %p1;`), []triple{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}})
	for i, want := range []uint64{1, 3, 7, 9} {
		if out[i] != want {
			t.Errorf("thread %d has %d, want %d", i, out[i], want)
		}
	}
}

func TestPTXFaults(t *testing.T) {
	for _, test := range []struct {
		name, body string
		code       int32
	}{
		{"misaligned", "ld.global.u64 %d, [%src+4];", misaligned},
		{"nowhere", "mov.u64 %q1, 4096;\n\tld.global.u64 %d, [%q1];", illegalAddress},
		{"across the end", "setp.ne.u32 %p1, %i, 0;\n\t@%p1 exit;\n\tld.global.u64 %d, [%src+6144];", illegalAddress},
		{"past the memory of a thread", ".local .align 8 .b8 depot[8];\n\tmov.u64 %q1, depot;\n\tst.local.u64 [%q1+8], %a;", illegalAddress},
		{"no end", "$loop:\n\tbra $loop;", launchTimeout},
	} {
		c := newCUDA(t)
		c.fake.Setting(t, "STEPS", "1000")
		m, code, log := c.loadPTX(perThread(test.body))
		if code != ok {
			t.Fatalf("%s: error %d: %s", test.name, code, log)
		}
		var f uintptr
		c.must(c.function(&f, m, "k"))
		arguments := [2]uintptr{c.alloc(8 * 256), c.alloc(24*256 + 4)}
		size := uint64(16)
		extra := [5]unsafe.Pointer{word(1), unsafe.Pointer(&arguments), word(2), unsafe.Pointer(&size), word(0)}
		c.must(c.launch(f, 1, 1, 1, 256, 1, 1, 0, 0, nil, &extra[0]))
		c.want(c.sync(), test.code, test.name)
	}
}

func TestPTXParameters(t *testing.T) {
	c := newCUDA(t)
	m, code, log := c.loadPTX(ptxHead + `
.visible .entry k(
	.param .u8 small,
	.param .align 8 .b8 whole[24],
	.param .u64 .ptr .global .align 8 out
)
.maxntid 32, 1, 1
.minnctapersm 1
{
	.reg .b32 %r<3>;
	.reg .b64 %q<3>;
	ld.param.u64 %q0, [out];
	ld.param.u8 %r0, [small];
	cvt.u64.u32 %q1, %r0;
	st.global.u64 [%q0], %q1;
	ld.param.u64 %q1, [whole+16];
	st.global.u64 [%q0+8], %q1;
	ret;
}`)
	if code != ok {
		t.Fatalf("error %d: %s", code, log)
	}
	var f uintptr
	c.must(c.function(&f, m, "k"))
	out := c.alloc(16)
	values := struct {
		small uint8
		whole [3]uint64
		out   uintptr
	}{200, [3]uint64{1, 2, 3}, out}
	size := uint64(unsafe.Sizeof(values))
	extra := [5]unsafe.Pointer{word(1), unsafe.Pointer(&values), word(2), unsafe.Pointer(&size), word(0)}
	c.must(c.launch(f, 1, 1, 1, 1, 1, 1, 0, 0, nil, &extra[0]))
	got := make([]uint64, 2)
	c.must(c.toHost(pointer(got), out, 16))
	if got[0] != 200 || got[1] != 3 {
		t.Errorf("%v, want 200 and 3", got)
	}
	c.want(c.launch(f, 1, 1, 1, 33, 1, 1, 0, 0, nil, &extra[0]), outOfResources, "launch more threads than the kernel allows")
}

// Every PTX text of the project must load.
func TestPTXOfTheProject(t *testing.T) {
	c := newCUDA(t)
	for _, name := range []string{kernels + "box.ptx", kernels + "devicetest.ptx", "../../examples/allencahn/internal/stepper/allencahn.ptx"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, code, log := c.loadPTX(string(text))
		if code != ok {
			t.Errorf("%s: error %d: %s", name, code, log)
			continue
		}
		c.must(c.unload(m))
	}
}

// Whatever the text, the driver doesn't crash and leaves nothing behind.
func FuzzPTX(f *testing.F) {
	for _, name := range []string{kernels + "box.ptx", kernels + "devicetest.ptx"} {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(string(text))
		}
	}
	f.Add(perThread("add.s64 %d, %a, %b;"))
	f.Add(perThread(".local .align 8 .b8 depot[16];\n\tsetp.lt.and.f64 %p1|%p2, %g1, %g2, !%p3;"))
	f.Add(ptxHead + ".visible .entry k(.param .align 8 .b8 p[8])\n.maxntid 1,2,3\n{\n$l:\n@!%p1 bra $l;\n}")
	f.Add(fmt.Sprintf("%sld.global.v4.f32 {%%f1,%%f2,%%f3,%%f4}, [%%src+-8];", ptxHead))
	f.Fuzz(func(t *testing.T, text string) {
		c := newCUDA(t)
		m, code, _ := c.loadPTX(text)
		if code == ok {
			c.must(c.unload(m))
		}
		if live := c.fake.Live(); live.Modules != 0 {
			t.Errorf("%d modules are left", live.Modules)
		}
	})
}
