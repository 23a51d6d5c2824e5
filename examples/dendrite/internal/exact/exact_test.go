package exact

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func sum(terms ...float64) float64 {
	var s Sum
	for _, x := range terms {
		s.Add(x)
	}
	return s.Float64()
}

// rounded is the sum by another way: with more bits than any sum of these has.
func rounded(terms []float64) float64 {
	total := new(big.Float).SetPrec(2300)
	for _, x := range terms {
		total.Add(total, new(big.Float).SetFloat64(x))
	}
	x, _ := total.Float64()
	return x
}

func mustBe(t interface {
	Helper()
	Fatalf(string, ...any)
}, got, want float64) {
	t.Helper()
	if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Fatalf("sum is %v (%#x), want %v (%#x)", got, math.Float64bits(got), want, math.Float64bits(want))
	}
}

func TestSums(t *testing.T) {
	const (
		largest  = math.MaxFloat64
		smallest = math.SmallestNonzeroFloat64
		half     = 0x1p-53 // of the last bit of 1
	)
	inf, nan, minusZero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, tc := range []struct {
		name  string
		terms []float64
		want  float64
	}{
		{"nothing", nil, 0},
		{"zeros of both signs", []float64{minusZero, 0, minusZero}, 0},
		{"negative zeros", []float64{minusZero, minusZero}, 0},
		{"one term", []float64{-1.25}, -1.25},
		{"what a sum in order loses", []float64{1, 1e100, 1, -1e100}, 2},
		{"from one end to the other", []float64{largest, smallest, -largest}, smallest},
		{"denormals", []float64{smallest, smallest, -3 * smallest}, -smallest},
		{"denormals that become normal", []float64{0x1p-1023, 0x1p-1023}, 0x1p-1022},
		{"a tie goes to the even neighbour below", []float64{1, half}, 1},
		{"a tie goes to the even neighbour above", []float64{1 + 2*half, half}, 1 + 4*half},
		{"just above a tie", []float64{1, half, smallest}, 1 + 2*half},
		{"just below a tie", []float64{1 + 2*half, half, -smallest}, 1 + 2*half},
		{"larger in between than any number", []float64{largest, largest, -largest}, largest},
		{"too large", []float64{largest, largest}, inf},
		{"too small", []float64{-largest, -largest}, -inf},
		{"infinite", []float64{1, inf, -largest}, inf},
		{"infinite below", []float64{-inf, largest, largest}, -inf},
		{"infinite of both signs", []float64{inf, 1, -inf}, nan},
		{"not a number", []float64{1, nan, inf}, nan},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mustBe(t, sum(tc.terms...), tc.want)
			slices.Reverse(tc.terms)
			mustBe(t, sum(tc.terms...), tc.want)
		})
	}
}

// terms are numbers of all sizes, and of few, so that they cancel.
func terms() *rapid.Generator[[]float64] {
	any := rapid.Custom(func(t *rapid.T) float64 {
		x := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return 0
		}
		return x
	})
	near := rapid.Float64Range(-2, 2)
	return rapid.OneOf(rapid.SliceOf(any), rapid.SliceOf(near))
}

func TestSumIsTheRoundedExactOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := terms().Draw(t, "terms")
		mustBe(t, sum(list...), rounded(list))
	})
}

// When digits are carried over makes no difference.
func TestCarryChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := terms().Draw(t, "terms")
		var s Sum
		for _, x := range list {
			s.Add(x)
			if rapid.Bool().Draw(t, "carry") {
				s.carry()
			}
		}
		mustBe(t, s.Float64(), rounded(list))
	})
}

// The digits hold as many of the largest terms as there are between two carries.
func TestDigitsDoNotOverflow(t *testing.T) {
	for _, x := range []float64{math.MaxFloat64, -math.MaxFloat64, math.Nextafter(0x1p-1000, 1), 1 - 0x1p-53} {
		var s Sum
		s.Add(x)
		for k := range s.digit {
			s.digit[k] *= between - 1
		}
		s.terms = between - 1
		want := new(big.Float).SetPrec(2300).SetFloat64(x)
		want.Mul(want, big.NewFloat(between+1))
		s.Add(x) // carries
		if s.terms >= between {
			t.Fatalf("%d terms since the last carry", s.terms)
		}
		s.Add(x)
		f, _ := want.Float64()
		mustBe(t, s.Float64(), f)
	}
}

func TestRanksHaveTheSameSum(t *testing.T) {
	// The same lists on all ranks, of which each adds a part.
	random := rand.New(rand.NewPCG(1, 2))
	var lists [][]float64
	for range 5 {
		list := make([]float64, 400)
		for i := range list {
			list[i] = random.NormFloat64() * math.Ldexp(1, random.IntN(200)-100)
		}
		lists = append(lists, list)
	}
	lists = append(lists, []float64{1, math.Inf(1)}, []float64{math.Inf(-1), math.Inf(1)}, []float64{math.NaN()}, nil)

	mpitest.Run(t, []int{1, 2, 3, 4}, func(t *mpitest.T, c *comm.Comm) {
		for parts := range 3 {
			sums := make([]Sum, len(lists))
			for i, list := range lists {
				for k, x := range list {
					owner := []int{k % c.Size(), k * c.Size() / len(list), 0}[parts]
					if owner == c.Rank() {
						sums[i].Add(x)
					}
				}
			}
			if err := Reduce(t.Context(), c, sums); err != nil {
				t.Fatal(err)
			}
			for i, list := range lists {
				mustBe(t, sums[i].Float64(), sum(list...))
			}
			if err := Reduce(t.Context(), c, nil); err != nil {
				t.Fatalf("no sums: %v", err)
			}
		}
	})
}

func TestReduceOnADeadCommunicatorFails(t *testing.T) {
	c := comm.Self()
	if err := c.Free(); err != nil {
		t.Fatal(err)
	}
	if err := Reduce(context.Background(), c, make([]Sum, 1)); err == nil {
		t.Error("no error")
	}
}

func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }

func BenchmarkAdd(b *testing.B) {
	var s Sum
	x := 0.1
	for b.Loop() {
		s.Add(x)
		x *= -1.0001
	}
}
