package pack

import (
	"bytes"
	"slices"
	"testing"

	"github.com/minio/crc64nvme"
)

// FuzzChecksumPieces cuts a file as the second argument says: pairs of bytes,
// the length of a piece and the rank that adds it, or whether it is put off to
// the end.
func FuzzChecksumPieces(f *testing.F) {
	f.Add([]byte("123456789"), []byte{2, 0, 1, 1, 2, 4, 1, 0})
	f.Add(bytes.Repeat([]byte("abcdefg"), 300), []byte{255, 0, 200, 1, 200, 0, 200, 1, 200, 6})
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, file, script []byte) {
		const ranks = 4
		var now, later []cut
		at := 0
		for ; len(script) >= 2 && at < len(file); script = script[2:] {
			n := min(int(script[0]), len(file)-at)
			c := cut{at, at + n, int(script[1] % ranks)}
			if script[1]/ranks%2 == 1 {
				later = append(later, c)
			} else {
				now = append(now, c)
			}
			at += n
		}
		now = append(now, cut{at, len(file), 0})
		got, err := addAll(file, ranks, append(now, later...))
		if err != nil {
			t.Fatal(err)
		}
		if want := crc64nvme.Checksum(file); got != want {
			t.Fatalf("got %016x, want %016x", got, want)
		}
	})
}

// FuzzPackUnpack packs a range of any layout and puts it back into a storage
// in which all owned cells of the range were lost.
func FuzzPackUnpack(f *testing.F) {
	f.Add(uint8(5), uint8(4), uint8(3), uint8(1), uint8(2), uint8(0), uint16(7), uint16(31), uint8(4), uint8(3))
	f.Add(uint8(0), uint8(4), uint8(3), uint8(1), uint8(0), uint8(0), uint16(0), uint16(0), uint8(0), uint8(0))
	f.Add(uint8(31), uint8(1), uint8(1), uint8(8), uint8(0), uint8(0), uint16(1), uint16(30), uint8(29), uint8(1))
	f.Fuzz(func(t *testing.T, nx, ny, nz, hx, hy, hz uint8, first, count uint16, n, gap uint8) {
		l := Layout{
			Size: [3]int{int(nx % 32), int(ny % 16), int(nz % 16)},
			Halo: [3]int{int(hx % 9), int(hy % 9), int(hz % 9)},
		}
		storage := make([]float32, l.PaddedCells())
		for i := range storage {
			storage[i] = float32(i)
		}
		packed := make([]float32, count)
		err := Pack(packed, storage, l, int64(first))
		if inside := int64(first)+int64(count) <= l.Cells(); inside != (err == nil) {
			t.Fatalf("%+v, %d cells from %d: %v", l, count, first, err)
		}
		if err != nil {
			return
		}
		wide := make([]float64, count)
		if err := Widen(wide, storage, l, int64(first)); err != nil {
			t.Fatal(err)
		}
		lost := make([]float32, len(storage))
		copy(lost, storage)
		for n, at := range ownedIndices(l)[first : int(first)+int(count)] {
			if packed[n] != storage[at] || wide[n] != float64(storage[at]) {
				t.Fatalf("%+v: cell %d is %v and %v, want %v", l, int(first)+n, packed[n], wide[n], storage[at])
			}
			lost[at] = -1
		}
		narrowed := bytes.Clone(Bytes(lost))
		if err := Unpack(lost, packed, l, int64(first)); err != nil {
			t.Fatal(err)
		}
		if err := NarrowBytes(viewOf[float32](t, narrowed), diskBytes(wide), l, int64(first)); err != nil {
			t.Fatal(err)
		}
		checkFuzzedRows(t, l, storage, Bytes(packed), int64(first), int(n), int(gap))
		if !bytes.Equal(Bytes(lost), Bytes(storage)) || !bytes.Equal(narrowed, Bytes(storage)) {
			t.Fatalf("%+v, %d cells from %d: the storage did not come back", l, count, first)
		}
	})
}

// checkFuzzedRows compares rows of n cells, gap cells apart, with cells that
// were packed without gaps.
func checkFuzzedRows(t *testing.T, l Layout, storage []float32, packed []byte, first int64, n, gap int) {
	rows := 0
	if n > 0 {
		rows = len(packed) / 4 / n
	}
	apart := make([]byte, 4*(n+gap)*rows)
	if err := PackRows(apart, storage, l, first, n, rows, 4*(n+gap)); err != nil {
		t.Fatal(err)
	}
	back := make([]float32, len(storage))
	if err := UnpackRows(back, apart, l, first, n, rows, 4*(n+gap)); err != nil {
		t.Fatal(err)
	}
	want := make([]float32, len(storage))
	for i, at := range ownedIndices(l)[first:][:n*rows] {
		want[at] = storage[at]
		to := apart[4*(i/n*(n+gap)+i%n):][:4]
		if bigEndian {
			slices.Reverse(to)
		}
		if !bytes.Equal(to, packed[4*i:4*i+4]) {
			t.Fatalf("%+v, rows of %d cells, %d apart, from %d: cell %d is % x", l, n, n+gap, first, i, to)
		}
		clear(to)
	}
	if !slices.Equal(back, want) {
		t.Fatalf("%+v, rows of %d cells, %d apart, from %d: the cells did not come back", l, n, n+gap, first)
	}
	if slices.ContainsFunc(apart, func(b byte) bool { return b != 0 }) {
		t.Fatalf("%+v, rows of %d cells, %d apart, from %d: a gap was written to", l, n, n+gap, first)
	}
}
