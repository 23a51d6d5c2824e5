package pack

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"
)

func TestViewAndBytesShareMemory(t *testing.T) {
	s := []complex128{1 + 2i, 3 + 4i}
	b := Bytes(s)
	if len(b) != 32 {
		t.Fatalf("%d bytes", len(b))
	}
	v, err := View[complex128](b)
	if err != nil {
		t.Fatal(err)
	}
	v[1] = 5
	if len(v) != 2 || s[1] != 5 {
		t.Fatalf("got %v, of %v", v, s)
	}
	if b := Bytes([]float32(nil)); len(b) != 0 {
		t.Fatalf("%d bytes of nothing", len(b))
	}
	if v, err := View[float64](nil); len(v) != 0 || err != nil {
		t.Fatalf("%v, %v", v, err)
	}
}

func TestViewRefusesWhatIsNotElements(t *testing.T) {
	b := Bytes(make([]float64, 4))
	for _, c := range []struct {
		name string
		view func() error
		want string
	}{
		{"part of an element", func() error { _, err := View[float64](b[:12]); return err }, "12 bytes are not a multiple of 8"},
		{"part of a complex one", func() error { _, err := View[complex128](b[:24]); return err }, "24 bytes are not a multiple of 16"},
		{"an odd address", func() error { _, err := View[float32](b[1:5]); return err }, "not a multiple of 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.view(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	// float64 may have an alignment of 4 on a 32-bit host.
	_, err := View[float64](b[4:12])
	if aligned := unsafe.Alignof(float64(0)) <= 4; (err == nil) != aligned {
		t.Fatalf("got %v", err)
	}
}

func TestFilesAreLittleEndian(t *testing.T) {
	l := Layout{Size: [3]int{1, 1, 1}}
	got := make([]byte, 16)
	if err := PackBytes(got, []complex128{complex(1, -2)}, l, 0); err != nil {
		t.Fatal(err)
	}
	want := []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}
	if !bytes.Equal(got, want) {
		t.Fatalf("got % x, want % x", got, want)
	}
}

// The way of a big-endian host is run here on whatever host this is.
func TestSwappedPiecesCoverTheChunkWithReversedNumbers(t *testing.T) {
	const n, rows, row = 5000, 3, 5007 // more than one piece a row
	chunk := make([]byte, 16*((rows-1)*row+n))
	for i := range len(chunk) / 8 {
		binary.BigEndian.PutUint64(chunk[8*i:], uint64(i))
	}
	before := bytes.Clone(chunk)
	next := 0
	err := swapped[complex128](chunk, 16*n, rows, 16*row, func(piece []byte, cell int64) error {
		if cell != int64(next) || len(piece)%16 != 0 {
			t.Fatalf("piece of %d bytes at cell %d, want cell %d", len(piece), cell, next)
		}
		at := next/n*row + next%n
		for i := range len(piece) / 8 {
			if got := binary.LittleEndian.Uint64(piece[8*i:]); got != uint64(2*at+i) {
				t.Fatalf("cell %d, number %d: got %d", cell, i, got)
			}
		}
		next += len(piece) / 16
		return nil
	})
	if err != nil || next != n*rows {
		t.Fatalf("%d cells, error %v", next, err)
	}
	if !bytes.Equal(chunk, before) {
		t.Fatal("the chunk changed")
	}
	single := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	swapCells[float32](single)
	if !bytes.Equal(single, []byte{4, 3, 2, 1, 8, 7, 6, 5}) {
		t.Fatalf("got %v", single)
	}
}
