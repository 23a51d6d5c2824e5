package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// The harness that every kernel set is run through, the generic one included.
// The memory of each case lies either directly before a guard page or directly
// behind one, so that a kernel that touches one byte too many ends the test
// with a fault, and it is compared with its surroundings afterwards, so that one that
// writes a ghost cell is found. What must come out is computed cell by cell.

// An arena hands out memory at the edge of a guard page.
type arena struct{ all []byte }

// slice returns n bytes of the arena: the last ones, or skip bytes further
// ahead; with low set, the first ones or skip bytes further on.
func (a arena) slice(n, skip int, low bool) []byte {
	if low {
		return a.all[skip : skip+n : skip+n]
	}
	end := len(a.all) - skip
	return a.all[end-n : end : end]
}

// A witness knows what a part of an arena and its surroundings must hold.
type witness struct {
	near   []byte // the part and up to 256 bytes on each side of it
	want   []byte // what must be there
	expect []byte // the part's share of want, for the test to change
}

// watch expects that nothing changes in part, a slice of the arena, and around
// it.
func (a arena) watch(part []byte) *witness {
	low := 0
	if len(part) > 0 {
		low = int(uintptr(unsafe.Pointer(&part[0])) - uintptr(unsafe.Pointer(&a.all[0])))
	}
	from := max(low-256, 0)
	w := &witness{near: a.all[from:min(low+len(part)+256, len(a.all))]}
	w.want = bytes.Clone(w.near)
	w.expect = w.want[low-from:][:len(part)]
	return w
}

// difference tells where the memory is not as expected, counted from the
// part's start; it is empty if there is no such place.
func (w *witness) difference() string {
	if bytes.Equal(w.near, w.want) {
		return ""
	}
	for i := range w.near {
		if w.near[i] != w.want[i] {
			origin := cap(w.want) - cap(w.expect)
			return fmt.Sprintf("byte %d is %#02x, want %#02x", i-origin, w.near[i], w.want[i])
		}
	}
	return ""
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func fill(r *rand.Rand, b []byte) {
	for len(b) >= 8 {
		binary.NativeEndian.PutUint64(b, r.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// withKernels runs fn once for each kernel set of this machine, with the set
// in use.
func withKernels(t *testing.T, fn func(t *testing.T, k *kernelSet)) {
	for _, k := range available() {
		t.Run(k.name, func(t *testing.T) {
			before := kernels
			kernels = k
			defer func() { kernels = before }()
			fn(t, k)
		})
	}
}

// rowCase is one geometry of rows for a kernel.
type rowCase struct {
	n, rows        int // cells of a row, rows
	dstRow, srcRow int // distance of two rows
	skip           int // bytes between the memory and the guard page
	low            bool
}

// span is the number of cells from the first row's start to the last row's
// end.
func span(n, row, rows int) int { return (rows-1)*row + n }

// forEachRow calls fn for all row lengths up to 600 cells, with every halo up
// to 8 cells on one side of the copy or the other, and with random row counts,
// distances to the guard page, and sides of it.
func forEachRow(r *rand.Rand, fn func(c rowCase)) {
	for n := 1; n <= 600; n++ {
		for halo := 0; halo <= 8; halo++ {
			c := rowCase{n: n, rows: 1 + r.IntN(4), dstRow: n, srcRow: n + 2*halo, skip: r.IntN(64), low: r.IntN(2) == 0}
			if r.IntN(4) != 0 {
				c.skip = 0
			}
			if r.IntN(2) == 0 {
				c.dstRow, c.srcRow = c.srcRow, c.dstRow
			}
			if r.IntN(8) == 0 {
				c.dstRow, c.srcRow = n+r.IntN(9), n+r.IntN(9)
			}
			fn(c)
		}
	}
}

const arenaBytes = 4 * 620 * 16 * 2

func TestKernelsCopyRowsAndNothingElse(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		t.Run("copy", func(t *testing.T) { checkCopyRows(t, k.copyRows) })
		t.Run("stream", func(t *testing.T) { checkCopyRows(t, k.streamRows) })
	})
}

func checkCopyRows(t *testing.T, copyRows mover) {
	from, to := arena{newArena(t, arenaBytes)}, arena{newArena(t, arenaBytes)}
	r := newRandom(1)
	fill(r, from.all)
	fill(r, to.all)
	check := func(c rowCase, size, toSkip int) {
		src := from.slice(size*span(c.n, c.srcRow, c.rows), c.skip, c.low)
		dst := to.slice(size*span(c.n, c.dstRow, c.rows), toSkip, !c.low)
		fill(r, dst)
		w := to.watch(dst)
		for row := range c.rows {
			for b := range size * c.n {
				w.expect[size*row*c.dstRow+b] = src[size*row*c.srcRow+b]
			}
		}
		copyRows(dst, src, size*c.n, size*c.dstRow, size*c.srcRow, c.rows)
		if diff := w.difference(); diff != "" {
			t.Fatalf("%d-byte cells, %+v, %d bytes from the edge: %s", size, c, toSkip, diff)
		}
	}
	forEachRow(r, func(c rowCase) { check(c, 4<<r.IntN(3), r.IntN(2)*r.IntN(64)) })
	// Rows of any number of bytes at every place in a cache line, behind one
	// another or apart.
	for n := 1; n <= 1000; n++ {
		for place := range 64 {
			if n > 40 && r.IntN(12) != 0 {
				continue
			}
			c := rowCase{n: n, rows: 1 + r.IntN(5), dstRow: n, srcRow: n + r.IntN(70), skip: r.IntN(64), low: r.IntN(2) == 0}
			switch r.IntN(3) {
			case 0:
				c.dstRow, c.srcRow = n+r.IntN(130), n
			case 1:
				c.dstRow = (n+63)&^63 + 64*r.IntN(2)
			}
			check(c, 1, place)
		}
	}
}

// Whatever the length and the place of the bytes, and the memory ahead.
func TestKernelsFindTheRemainder(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		memory := arena{newArena(t, 16<<10)}
		r := newRandom(6)
		fill(r, memory.all)
		check := func(n, skip int, low bool) {
			b := memory.slice(n, skip, low)
			for _, register := range []uint64{0, r.Uint64()} {
				for _, ahead := range []*byte{nil, &memory.all[len(memory.all)-1], &memory.all[0]} {
					got, want := k.remainder(register, b, ahead), remainderTables(register, b)
					if got != want {
						t.Fatalf("%d bytes, %d from the edge: got %016x, want %016x", n, skip, got, want)
					}
				}
			}
		}
		for n := range 2200 {
			check(n, r.IntN(2)*r.IntN(64), n%2 == 0)
		}
		for skip := range 64 {
			check(8<<10, skip, skip%2 == 0)
			check(1024+r.IntN(4096), skip, skip%2 == 1)
		}
	})
}

func TestKernelsSumUpTheRowsThatTheyCopy(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		if k.copySumRows == nil {
			return
		}
		from, to := arena{newArena(t, arenaBytes)}, arena{newArena(t, arenaBytes)}
		r := newRandom(7)
		fill(r, from.all)
		fill(r, to.all)
		for n := sumBlock; n <= 20*sumBlock; n += sumBlock {
			for range 40 {
				c := rowCase{n: n, rows: 1 + r.IntN(5), dstRow: n + r.IntN(70), srcRow: n + r.IntN(70), skip: r.IntN(64), low: r.IntN(2) == 0}
				src := from.slice(span(c.n, c.srcRow, c.rows), c.skip, c.low)
				strew(r, src)
				dst := to.slice(span(c.n, c.dstRow, c.rows), r.IntN(2)*r.IntN(64), !c.low)
				w := to.watch(dst)
				sum := Checksum{open: r.Uint64()}
				want := sum.open
				for row := range c.rows {
					part := src[row*c.srcRow:][:c.n]
					copy(w.expect[row*c.dstRow:], part)
					want = remainderTables(want, part)
				}
				wantNonFinite := 0
				for row := range c.rows {
					wantNonFinite += countNonFinite(src[row*c.srcRow:][:c.n])
				}
				sum.fold()
				count := r.IntN(4) > 0
				if !count {
					wantNonFinite = 0
				}
				nonFinite := k.copySumRows(dst, src, c.n, c.dstRow, c.srcRow, c.rows, &sum.folded, count)
				sum.unfold()
				if nonFinite != wantNonFinite {
					t.Fatalf("%+v: %d numbers aren't finite, want %d", c, nonFinite, wantNonFinite)
				}
				if diff := w.difference(); diff != "" {
					t.Fatalf("%+v: %s", c, diff)
				}
				if sum.open != want {
					t.Fatalf("%+v: remainder %016x, want %016x", c, sum.open, want)
				}
			}
		}
	})
}

func TestKernelsWidenRowsAndNothingElse(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		from, to := arena{newArena(t, arenaBytes)}, arena{newArena(t, arenaBytes)}
		r := newRandom(2)
		fill(r, to.all)
		forEachRow(r, func(c rowCase) {
			src := viewOf[float32](t, from.slice(4*span(c.n, c.srcRow, c.rows), c.skip&^3, c.low))
			for i := range src {
				src[i] = math.Float32frombits(randomFloat32(r))
			}
			dst := to.slice(8*span(c.n, c.dstRow, c.rows), r.IntN(2)*r.IntN(64), !c.low)
			fill(r, dst)
			w := to.watch(dst)
			for row := range c.rows {
				for i := range c.n {
					u := referenceWiden(math.Float32bits(src[row*c.srcRow+i]))
					binary.NativeEndian.PutUint64(w.expect[8*(row*c.dstRow+i):], u)
				}
			}
			k.widenRows(dst, src, c.n, c.dstRow, c.srcRow, c.rows)
			if diff := w.difference(); diff != "" {
				t.Fatalf("%+v: %s", c, diff)
			}
		})
	})
}

func TestKernelsNarrowRowsAndNothingElse(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		from, to := arena{newArena(t, arenaBytes)}, arena{newArena(t, arenaBytes)}
		r := newRandom(3)
		fill(r, to.all)
		forEachRow(r, func(c rowCase) {
			src := from.slice(8*span(c.n, c.srcRow, c.rows), c.skip, c.low)
			dst := to.slice(4*span(c.n, c.dstRow, c.rows), r.IntN(2)*r.IntN(64)&^3, !c.low)
			fill(r, dst)
			w := to.watch(dst)
			for row := range c.rows {
				for i := range c.n {
					b := randomFloat32(r)
					binary.NativeEndian.PutUint64(src[8*(row*c.srcRow+i):], referenceWiden(b))
					binary.NativeEndian.PutUint32(w.expect[4*(row*c.dstRow+i):], b)
				}
			}
			k.narrowRows(viewOf[float32](t, dst), src, c.n, c.dstRow, c.srcRow, c.rows)
			if diff := w.difference(); diff != "" {
				t.Fatalf("%+v: %s", c, diff)
			}
		})
	})
}

func TestKernelsFindTheFirstValueThatIsNotAFloat32(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		memory := arena{newArena(t, 8*700)}
		r := newRandom(4)
		for n := 0; n <= 600; n++ {
			src := memory.slice(8*n, r.IntN(2)*r.IntN(64), n%2 == 0)
			for i := range n {
				binary.NativeEndian.PutUint64(src[8*i:], referenceWiden(randomFloat32(r)))
			}
			if got := k.inexact(src); got != -1 {
				t.Fatalf("%d exact values: got %d, want -1", n, got)
			}
			if n == 0 {
				continue
			}
			first := r.IntN(n)
			for range 3 {
				at := first + r.IntN(n-first)
				binary.NativeEndian.PutUint64(src[8*at:], inexactValues[r.IntN(len(inexactValues))])
			}
			binary.NativeEndian.PutUint64(src[8*first:], inexactValues[n%len(inexactValues)])
			if got := k.inexact(src); got != first {
				t.Fatalf("%d values: got %d, want %d", n, got, first)
			}
		}
	})
}

func TestLayoutsMoveExactlyTheAskedCells(t *testing.T) {
	withKernels(t, func(t *testing.T, k *kernelSet) {
		r := newRandom(5)
		from, to := arena{newArena(t, 352<<10)}, arena{newArena(t, 352<<10)}
		fill(r, from.all)
		fill(r, to.all)
		cases := 0
		for _, dimensions := range []int{1, 2, 3} {
			for halo := 0; halo <= 8; halo++ {
				for range 8 {
					l := randomLayout(r, dimensions, halo)
					owned := ownedIndices(l)
					moveCells[float32](t, r, from, to, l, owned)
					moveCells[float64](t, r, from, to, l, owned)
					moveCells[complex128](t, r, from, to, l, owned)
					convertCells(t, r, from, to, l, owned)
					cases++
				}
			}
		}
		if cases != 3*9*8 {
			t.Fatalf("ran %d layouts", cases)
		}
	})
}

// randomLayout has at most 22000 padded cells. The halo may be missing along
// some axes.
func randomLayout(r *rand.Rand, dimensions, halo int) Layout {
	l := Layout{Size: [3]int{1, 1, 1}}
	most := []int{0, 600, 50, 12}[dimensions]
	for a := range dimensions {
		l.Size[a] = 1 + r.IntN(most)
		l.Halo[a] = halo
		if r.IntN(5) == 0 {
			l.Halo[a] = r.IntN(9)
		}
	}
	if dimensions < 3 && r.IntN(3) == 0 {
		// A flat brick may well have padding along the axes that it lacks.
		l.Halo[2] = r.IntN(2)
	}
	return l
}

// ownedIndices lists where the owned cells of l lie, by the definition of
// packed order.
func ownedIndices(l Layout) []int {
	var at []int
	for k := range l.Size[2] {
		for j := range l.Size[1] {
			for i := range l.Size[0] {
				at = append(at, l.Index(i, j, k))
			}
		}
	}
	return at
}

// randomRange picks a range of n cells that tends to touch the ends of rows.
func randomRange(r *rand.Rand, l Layout, n int) (first, end int) {
	pick := func() int {
		at := r.IntN(n + 1)
		if r.IntN(2) == 0 {
			at -= at % l.Size[0]
		}
		return at
	}
	first, end = pick(), pick()
	if r.IntN(6) == 0 {
		first, end = 0, n
	}
	return min(first, end), max(first, end)
}

func moveCells[T Number](t *testing.T, r *rand.Rand, from, to arena, l Layout, owned []int) {
	t.Helper()
	var zero T
	size := binary.Size(zero)
	first, end := randomRange(r, l, len(owned))
	name := fmt.Sprintf("%T, %+v, cells [%d, %d)", zero, l, first, end)

	storage := from.slice(size*int(l.PaddedCells()), 0, false)
	packed := to.slice(size*(end-first), r.IntN(2)*r.IntN(64), r.IntN(2) == 0)
	w := to.watch(packed)
	for n, at := range owned[first:end] {
		copy(w.expect[n*size:(n+1)*size], storage[at*size:])
	}
	if err := PackBytes(packed, viewOf[T](t, storage), l, int64(first)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if bigEndian {
		swapCells[T](packed)
	}
	if diff := w.difference(); diff != "" {
		t.Fatalf("pack %s: %s", name, diff)
	}
	fill(r, packed)
	if err := PackStream(packed, viewOf[T](t, storage), l, int64(first)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if bigEndian {
		swapCells[T](packed)
	}
	if diff := w.difference(); diff != "" {
		t.Fatalf("stream %s: %s", name, diff)
	}

	storage = to.slice(size*int(l.PaddedCells()), 0, false)
	packed = from.slice(size*(end-first), r.IntN(2)*r.IntN(64), r.IntN(2) == 0)
	w = to.watch(storage)
	for n, at := range owned[first:end] {
		copy(w.expect[at*size:(at+1)*size], packed[n*size:])
	}
	if bigEndian {
		packed = bytes.Clone(packed)
		swapCells[T](packed)
	}
	if err := UnpackBytes(viewOf[T](t, storage), packed, l, int64(first)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := w.difference(); diff != "" {
		t.Fatalf("unpack %s: %s", name, diff)
	}
	for _, at := range owned[first:end] {
		fill(r, storage[at*size:(at+1)*size])
	}
	if err := UnpackStream(viewOf[T](t, storage), packed, l, int64(first)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := w.difference(); diff != "" {
		t.Fatalf("unpack stream %s: %s", name, diff)
	}
}

func convertCells(t *testing.T, r *rand.Rand, from, to arena, l Layout, owned []int) {
	t.Helper()
	first, end := randomRange(r, l, len(owned))
	name := fmt.Sprintf("%+v, cells [%d, %d)", l, first, end)

	storage := from.slice(4*int(l.PaddedCells()), 0, false)
	packed := to.slice(8*(end-first), r.IntN(2)*r.IntN(64), r.IntN(2) == 0)
	w := to.watch(packed)
	for n, at := range owned[first:end] {
		binary.LittleEndian.PutUint64(w.expect[8*n:], referenceWiden(binary.NativeEndian.Uint32(storage[4*at:])))
	}
	if err := WidenBytes(packed, viewOf[float32](t, storage), l, int64(first)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := w.difference(); diff != "" {
		t.Fatalf("widen %s: %s", name, diff)
	}

	packed = bytes.Clone(packed)
	back := to.slice(4*int(l.PaddedCells()), 0, true)
	fill(r, back)
	w = to.watch(back)
	for _, at := range owned[first:end] {
		copy(w.expect[4*at:4*at+4], storage[4*at:])
	}
	if err := NarrowBytes(viewOf[float32](t, back), packed, l, int64(first)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := w.difference(); diff != "" {
		t.Fatalf("narrow %s: %s", name, diff)
	}
}

func viewOf[T Number](t *testing.T, b []byte) []T {
	t.Helper()
	v, err := View[T](b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
