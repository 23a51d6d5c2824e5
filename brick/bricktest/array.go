package bricktest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/minio/crc64nvme"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/grid"
)

// array is a set of files of one layout whose content follows from the seed, the
// file and the global cell: any 64 bits, with many infinities and NaNs of all sorts
// among them, and many of the largest finite numbers.
type array struct {
	Seed uint64
	Size [3]int
	Elem brick.Element
}

// word is the splitmix64 generator's output for a number that is different for
// each word of each cell of each file.
func (a array) word(file, i, j, k, part int) uint64 {
	cell := (uint64(k)*uint64(a.Size[1])+uint64(j))*uint64(a.Size[0]) + uint64(i)
	x := a.Seed + 0x9E3779B97F4A7C15*(1+2*cell+uint64(part)+uint64(file)<<48)
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	x ^= x >> 31
	const sign, exponent = 1 << 63, 0x7ff << 52
	switch x >> 20 % 16 {
	case 0:
		x |= exponent // NaN
	case 1:
		x = x&sign | exponent // infinity
	case 2:
		x = x&^exponent | 0x7fe<<52
	}
	return x
}

// appendCell appends the bytes of one cell, by global indices.
func (a array) appendCell(b []byte, file, i, j, k int) []byte {
	for part := range a.Elem.Size() / 8 {
		b = binary.LittleEndian.AppendUint64(b, a.word(file, i, j, k, part))
	}
	return b
}

func (a array) fileSize() int64 {
	return int64(a.Size[0]) * int64(a.Size[1]) * int64(a.Size[2]) * int64(a.Elem.Size())
}

// bytes is what a file must hold: x fastest, nothing else.
func (a array) bytes(file int) []byte {
	b := make([]byte, 0, a.fileSize())
	for k := range a.Size[2] {
		for j := range a.Size[1] {
			for i := range a.Size[0] {
				b = a.appendCell(b, file, i, j, k)
			}
		}
	}
	return b
}

func checksum(b []byte) uint64 { return crc64nvme.Checksum(b) }

// nonFinite counts the numbers that are NaN or infinite, one by one.
func nonFinite(b []byte) int64 {
	n := int64(0)
	for ; len(b) >= 8; b = b[8:] {
		if v := math.Float64frombits(binary.LittleEndian.Uint64(b)); math.IsNaN(v) || math.IsInf(v, 0) {
			n++
		}
	}
	return n
}

// brickOf is one rank's box of one file, and how far it has been moved.
type brickOf struct {
	a    array
	file int
	box  grid.Box
	next int64 // the cell that must come next
}

// cells gives the packed bytes of n cells from cell first of the box on.
func (b *brickOf) cells(dst []byte, first, n int64) []byte {
	sx, sy := int64(b.box.Size[0]), int64(b.box.Size[1])
	for cell := first; cell < first+n; cell++ {
		i, j, k := int(cell%sx), int(cell/sx%sy), int(cell/sx/sy)
		dst = b.a.appendCell(dst, b.file, b.box.Low[0]+i, b.box.Low[1]+j, b.box.Low[2]+k)
	}
	return dst
}

// piece checks that a call of the driver continues where the last one ended.
func (b *brickOf) piece(buf []byte, first int64) (n int64, err error) {
	elem := int64(b.a.Elem.Size())
	n = int64(len(buf)) / elem
	switch {
	case n == 0 || n*elem != int64(len(buf)):
		return 0, fmt.Errorf("driver: %d bytes for cells of %d", len(buf), elem)
	case first != b.next:
		return 0, fmt.Errorf("driver: cells from %d on, expected from %d on", first, b.next)
	case n > b.box.Cells()-first:
		return 0, fmt.Errorf("driver: %d cells from %d on in a box of %d", n, first, b.box.Cells())
	}
	b.next += n
	return n, nil
}

func (b *brickOf) complete() error {
	if b.next != b.box.Cells() {
		return fmt.Errorf("file %d: driver moved %d of %d cells", b.file, b.next, b.box.Cells())
	}
	return nil
}

// source yields the content of a box. before, if set, is called with the range of
// cells that is asked for and may fail.
type source struct {
	brickOf
	before func(first, n int64) error
}

func newSource(a array, file int, box grid.Box) *source {
	return &source{brickOf: brickOf{a: a, file: file, box: box}}
}

// ReadCells implements pack.Source.
func (s *source) ReadCells(dst []byte, first int64) error {
	n, err := s.piece(dst, first)
	if err != nil {
		return err
	}
	if s.before != nil {
		if err := s.before(first, n); err != nil {
			return err
		}
	}
	s.cells(dst[:0], first, n)
	return nil
}

// sink compares what it is given with the content of a box.
type sink struct {
	brickOf
	before func(first, n int64) error
}

func newSink(a array, file int, box grid.Box) *sink {
	return &sink{brickOf: brickOf{a: a, file: file, box: box}}
}

// WriteCells implements brick.Sink.
func (k *sink) WriteCells(src []byte, first int64) error {
	n, err := k.piece(src, first)
	if err != nil {
		return err
	}
	if k.before != nil {
		if err := k.before(first, n); err != nil {
			return err
		}
	}
	want := k.cells(make([]byte, 0, len(src)), first, n)
	for at := range src {
		if src[at] != want[at] {
			return fmt.Errorf("file %d: byte %d of the cells from %d on of box %v is %#x, want %#x",
				k.file, at, first, k.box, src[at], want[at])
		}
	}
	return nil
}
