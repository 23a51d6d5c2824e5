package pack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/minio/crc64nvme"
	"pgregory.net/rapid"
)

const checkValue = 0xAE8B14860A799888 // of "123456789", from the CRC catalogue

func TestCheckValueFromEveryWay(t *testing.T) {
	const text = "123456789"
	pieces := NewChecksum(9)
	pieces.Add(5, []byte("6789"))
	pieces.Add(0, []byte("12"))
	pieces.Add(3, []byte("45"))
	other := NewChecksum(9)
	other.Add(2, []byte("3"))
	for name, got := range map[string]uint64{
		"sum":     Sum([]byte(text)),
		"bitwise": bitwiseSum([]byte(text)),
		"update":  Update(Update(0, []byte("1234")), []byte("56789")),
		"combine": Combine(Sum([]byte("1234")), Sum([]byte("56789")), 5),
		"pieces":  Finish(pieces.Part()^other.Part(), 9),
	} {
		if got != checkValue {
			t.Errorf("%s: got %016x, want %016x", name, got, uint64(checkValue))
		}
	}
}

// bitwiseSum is the definition: one bit at a time, the polynomial in the order
// in which the standard prints it.
func bitwiseSum(b []byte) uint64 {
	r := ^uint64(0)
	for _, v := range b {
		for bit := range 8 {
			feedback := r>>63 ^ uint64(v>>bit&1)
			r <<= 1
			if feedback == 1 {
				r ^= 0xad93d23594c93659
			}
		}
	}
	var reversed uint64
	for i := range 64 {
		reversed |= (r >> i & 1) << (63 - i)
	}
	return ^reversed
}

func TestSumIsTheStandardOneForAllLengthsAndAlignments(t *testing.T) {
	b := make([]byte, 1200)
	fill(newRandom(1), b)
	for n := range 1100 {
		offset := n * 7 % 64
		p := b[offset : offset+n]
		if got, want := Sum(p), crc64nvme.Checksum(p); got != want {
			t.Fatalf("%d bytes at %d: got %016x, want %016x", n, offset, got, want)
		}
		if n < 300 {
			if got, want := Sum(p), bitwiseSum(p); got != want {
				t.Fatalf("%d bytes at %d: got %016x, want %016x", n, offset, got, want)
			}
		}
		cut := n * 5 / 7
		if got, want := Update(Sum(p[:cut]), p[cut:]), Sum(p); got != want {
			t.Fatalf("%d and %d bytes: got %016x, want %016x", cut, n-cut, got, want)
		}
	}
}

func TestShiftIsFeedingZeros(t *testing.T) {
	zeros := make([]byte, 5000)
	r := newRandom(2)
	for n := range 1000 {
		if n > 300 {
			n = r.IntN(len(zeros))
		}
		start := r.Uint64()
		want := remainder(start, zeros[:n])
		if got := shift(start, int64(n)); got != want {
			t.Fatalf("%d zeros: got %016x, want %016x", n, got, want)
		}
		if n > 0 {
			var o operator
			o.fill(int64(n))
			if got := o.apply(start); got != want {
				t.Fatalf("operator of %d zeros: got %016x, want %016x", n, got, want)
			}
		}
	}
}

func TestShiftsAddUpToTheLongestFile(t *testing.T) {
	r := newRandom(3)
	for range 500 {
		a := int64(r.Uint64() >> 1 >> r.IntN(60))
		b := r.Int64N(math.MaxInt64 - a + 1)
		start := r.Uint64()
		want := shift(start, a+b)
		if got := shift(shift(start, a), b); got != want {
			t.Fatalf("%d + %d: got %016x, want %016x", a, b, got, want)
		}
		if b > 0 {
			var o operator
			o.fill(b)
			if got := o.apply(shift(start, a)); got != want {
				t.Fatalf("operator of %d after %d: got %016x, want %016x", b, a, got, want)
			}
		}
	}
}

func TestTimesIsARingMultiplication(t *testing.T) {
	r := newRandom(4)
	for range 2000 {
		a, b, c := r.Uint64(), r.Uint64(), r.Uint64()
		if times(a, one) != a || times(a, b) != times(b, a) ||
			times(a, times(b, c)) != times(times(a, b), c) ||
			times(a, b^c) != times(a, b)^times(a, c) ||
			times(a, one>>1) != timesX(a) {
			t.Fatalf("a = %016x, b = %016x, c = %016x", a, b, c)
		}
	}
}

func TestCombineOfRandomParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.Byte()).Draw(t, "a")
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		got := Combine(Sum(a), Sum(b), int64(len(b)))
		if want := crc64nvme.Checksum(append(a, b...)); got != want {
			t.Fatalf("got %016x, want %016x", got, want)
		}
	})
}

// A cut is a piece of a file and the rank that adds it.
type cut struct{ from, to, rank int }

// addAll adds the pieces in their order and returns the file's checksum.
func addAll(file []byte, ranks int, cuts []cut) (uint64, error) {
	sums := make([]*Checksum, ranks)
	for i := range sums {
		sums[i] = NewChecksum(int64(len(file)))
	}
	for _, c := range cuts {
		sums[c.rank].Add(int64(c.from), file[c.from:c.to])
	}
	var parts uint64
	var covered int64
	for i, s := range sums {
		if s.Err() != nil {
			return 0, s.Err()
		}
		part := s.Part()
		if again := s.Part(); again != part {
			return 0, fmt.Errorf("rank %d: asking for the part changed it", i)
		}
		parts ^= part
		covered += s.Covered()
	}
	if covered != int64(len(file)) {
		return 0, fmt.Errorf("%d bytes covered of %d", covered, len(file))
	}
	return Finish(parts, int64(len(file))), nil
}

func TestPiecesInAnyOrderOnAnyRankGiveTheSumOfTheFile(t *testing.T) {
	for _, order := range []string{"ascending", "descending", "shuffled"} {
		t.Run(order, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 9000)).Draw(t, "size")
				longest := rapid.IntRange(1, 700).Draw(t, "longest piece")
				ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
				r := newRandom(seed)
				file := make([]byte, size)
				fill(r, file)
				var cuts []cut
				for at := 0; at < size; {
					n := min(r.IntN(longest+1), size-at)
					cuts = append(cuts, cut{at, at + n, r.IntN(ranks)})
					at += n
				}
				reorder(r, cuts, order)
				got, err := addAll(file, ranks, cuts)
				if err != nil {
					t.Fatal(err)
				}
				if want := crc64nvme.Checksum(file); got != want {
					t.Fatalf("got %016x, want %016x", got, want)
				}
			})
		})
	}
}

func reorder(r *rand.Rand, cuts []cut, order string) {
	switch order {
	case "descending":
		for i, j := 0, len(cuts)-1; i < j; i, j = i+1, j-1 {
			cuts[i], cuts[j] = cuts[j], cuts[i]
		}
	case "shuffled":
		r.Shuffle(len(cuts), func(i, j int) { cuts[i], cuts[j] = cuts[j], cuts[i] })
	}
}

func TestRowsOfBricksGiveTheSumOfTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var size, split [3]int
		for a := range 3 {
			size[a] = rapid.IntRange(1, 24).Draw(t, "size")
			split[a] = rapid.IntRange(0, size[a]).Draw(t, "split")
		}
		file := make([]byte, 8*size[0]*size[1]*size[2])
		fill(newRandom(rapid.Uint64().Draw(t, "seed")), file)
		var cuts []cut
		for rank := range 8 {
			low, high := [3]int{}, split
			for a := range 3 {
				if rank>>a&1 == 1 {
					low[a], high[a] = split[a], size[a]
				}
			}
			for k := low[2]; k < high[2]; k++ {
				for j := low[1]; j < high[1]; j++ {
					row := 8 * (k*size[1] + j) * size[0]
					cuts = append(cuts, cut{row + 8*low[0], row + 8*high[0], rank})
				}
			}
		}
		got, err := addAll(file, 8, cuts)
		if err != nil {
			t.Fatal(err)
		}
		if want := crc64nvme.Checksum(file); got != want {
			t.Fatalf("got %016x, want %016x", got, want)
		}
	})
}

func TestMissingPiecesCountAsZeros(t *testing.T) {
	c := NewChecksum(1000)
	c.Add(300, []byte("abc"))
	file := make([]byte, 1000)
	copy(file[300:], "abc")
	if got, want := Finish(c.Part(), 1000), crc64nvme.Checksum(file); got != want {
		t.Fatalf("got %016x, want %016x", got, want)
	}
	if got, want := Finish(NewChecksum(0).Part(), 0), crc64nvme.Checksum(nil); got != want {
		t.Fatalf("got %016x, want %016x", got, want)
	}
}

func TestAFileOfManyTebibytes(t *testing.T) {
	// "123456789" at the ends and in the middle of 2^62+5 bytes, against
	// Combine, which knows nothing of parts.
	const size = int64(1)<<62 + 5
	text := []byte("123456789")
	middle := size/2 - 3
	first, second := NewChecksum(size), NewChecksum(size)
	first.Add(size-9, text)
	first.Add(0, text)
	second.Add(middle, text)
	want := Sum(text)
	want = appendZeros(want, middle-9)
	want = Combine(want, Sum(text), 9)
	want = appendZeros(want, size-9-middle-9)
	want = Combine(want, Sum(text), 9)
	if got := Finish(first.Part()^second.Part(), size); got != want {
		t.Fatalf("got %016x, want %016x", got, want)
	}
}

// appendZeros returns the checksum of what crc is the checksum of, followed by
// n zeros; the zeros' own is made by doubling.
func appendZeros(crc uint64, n int64) uint64 {
	zeros, have := Sum([]byte{0}), int64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			crc = Combine(crc, zeros, have)
		}
		zeros, have = Combine(zeros, zeros, have), 2*have
	}
	return crc
}

func TestMisuseOfAChecksumIsReported(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int64
		offset int64
		want   string
	}{
		{"negative size", -1, 0, "file size is -1"},
		{"negative offset", 100, -1, "3 bytes at offset -1 lie outside a file of 100 bytes"},
		{"across the end", 100, 98, "3 bytes at offset 98"},
		{"offset that overflows", 100, math.MaxInt64, "3 bytes at offset 9223372036854775807"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewChecksum(c.size)
			s.Add(c.offset, []byte("abc"))
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if s.Part() != 0 || s.Covered() != 0 {
				t.Fatal("the piece was added")
			}
			s.Reset(9)
			s.Add(0, []byte("123456789"))
			if got := Finish(s.Part(), 9); got != checkValue || s.Err() != nil {
				t.Fatalf("after a reset: got %016x, error %v", got, s.Err())
			}
		})
	}
}

func TestChecksumsDoNotAllocateOnceTheirGapsAreKnown(t *testing.T) {
	row := make([]byte, 200)
	fill(newRandom(5), row)
	c := NewChecksum(1 << 40)
	brick := func() {
		c.Reset(1 << 40)
		for k := range int64(5) {
			for j := range int64(6) {
				c.Add(k<<20+j<<12, row)
			}
		}
		_ = Finish(c.Part(), 1<<40)
	}
	brick()
	if n := testing.AllocsPerRun(20, brick); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheOperatorCacheIsBoundedAndForgetsWithoutHarm(t *testing.T) {
	var c operatorCache
	first := c.get(1)
	for range 2 {
		for gap := int64(1); gap <= 200; gap++ {
			o := c.get(gap)
			if got, want := o.apply(1), shift(1, gap); got != want {
				t.Fatalf("gap %d: got %016x, want %016x", gap, got, want)
			}
			if again := c.get(gap); again != o {
				t.Fatalf("gap %d is built again while it is in the cache", gap)
			}
		}
	}
	if first == c.get(1) {
		t.Fatal("the cache kept more than it holds")
	}
	if got, want := first.apply(1), shift(1, 1); got != want {
		t.Fatalf("an operator changed after it was dropped: got %016x, want %016x", got, want)
	}
}
