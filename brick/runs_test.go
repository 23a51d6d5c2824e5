package brick

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/grid"
)

// cellsOf lists the file cells of a box one by one, in the order of the packed
// cells.
func cellsOf(size [3]int, b grid.Box) []int64 {
	var cells []int64
	for k := range b.Size[2] {
		for j := range b.Size[1] {
			for i := range b.Size[0] {
				cells = append(cells, (int64(b.Low[2]+k)*int64(size[1])+int64(b.Low[1]+j))*int64(size[0])+int64(b.Low[0]+i))
			}
		}
	}
	return cells
}

// checkRuns compares the runs of cells [first, first+count) with the cells.
func checkRuns(size [3]int, b grid.Box, elem Element, first, count int64) error {
	cells := cellsOf(size, b)
	e := int64(elem.Size())
	done := first
	lastEnd := int64(-1)
	err := newRuns(size, b, elem).each(first, count, func(offset, from, to int64) error {
		switch {
		case from != (done-first)*e || to <= from || (to-from)%e != 0:
			return fmt.Errorf("bytes %d to %d after %d cells", from, to, done-first)
		case offset == lastEnd:
			return fmt.Errorf("a run begins at byte %d where the one before ends", offset)
		}
		for at := offset; at < offset+to-from; at += e {
			if want := cells[done] * e; at != want {
				return fmt.Errorf("cell %d is at byte %d, want %d", done, at, want)
			}
			done++
		}
		lastEnd = offset + to - from
		return nil
	})
	if err == nil && done != first+count {
		err = fmt.Errorf("%d cells, want %d", done-first, count)
	}
	return err
}

// Runs cover the range, in order, each as long as it can be.
func TestRunsAreTheBoxCellByCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var size [3]int
		var b grid.Box
		for axis := range size {
			size[axis] = rapid.IntRange(1, 7).Draw(t, "size")
			b.Low[axis] = rapid.IntRange(0, size[axis]-1).Draw(t, "low")
			b.Size[axis] = rapid.IntRange(0, size[axis]-b.Low[axis]).Draw(t, "extent")
			if rapid.Bool().Draw(t, "whole axis") {
				b.Low[axis], b.Size[axis] = 0, size[axis]
			}
		}
		elem := rapid.SampledFrom([]Element{Float64, Complex128}).Draw(t, "element")
		first := rapid.Int64Range(0, b.Cells()).Draw(t, "first")
		count := rapid.Int64Range(0, b.Cells()-first).Draw(t, "count")
		if err := checkRuns(size, b, elem, first, count); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRuns(f *testing.F) {
	f.Add(uint8(3), uint8(4), uint8(5), uint8(1), uint8(0), uint8(2), uint8(2), uint8(4), uint8(3), uint16(3), uint16(9))
	f.Add(uint8(7), uint8(1), uint8(1), uint8(0), uint8(0), uint8(0), uint8(7), uint8(1), uint8(1), uint16(0), uint16(7))
	f.Fuzz(func(t *testing.T, nx, ny, nz, lx, ly, lz, bx, by, bz uint8, first, count uint16) {
		size := [3]int{int(nx%16) + 1, int(ny%16) + 1, int(nz%16) + 1}
		low := [3]int{int(lx), int(ly), int(lz)}
		ext := [3]int{int(bx), int(by), int(bz)}
		var b grid.Box
		for axis := range size {
			b.Low[axis] = low[axis] % size[axis]
			b.Size[axis] = ext[axis] % (size[axis] - b.Low[axis] + 1)
		}
		from := int64(first) % (b.Cells() + 1)
		n := int64(count) % (b.Cells() - from + 1)
		if err := checkRuns(size, b, Float64, from, n); err != nil {
			t.Errorf("box %v of %v, %d cells from %d on: %v", b, size, n, from, err)
		}
	})
}

// Offsets and counts beyond 32 bits, without the bytes.
func TestRunsOfHugeArrays(t *testing.T) {
	const n = 1 << 20
	cases := []struct {
		name         string
		size         [3]int
		box          grid.Box
		first, count int64
		runs         int
		offset       int64 // of the first run
		end          int64 // of the last one
	}{
		{
			name: "a slab of more than 2^31 cells is one run",
			size: [3]int{n, n, 1 << 10}, box: grid.Box{Low: [3]int{0, 0, 512}, Size: [3]int{n, n, 512}},
			first: 0, count: n * n * 512, runs: 1, offset: 8 * n * n * 512, end: 8 * n * n * 1024,
		},
		{
			name: "a piece of it beyond cell 2^31",
			size: [3]int{n, n, 1 << 10}, box: grid.Box{Low: [3]int{0, 0, 512}, Size: [3]int{n, n, 512}},
			first: 1<<31 + 5, count: 1 << 32, runs: 1, offset: 8 * (n*n*512 + 1<<31 + 5), end: 8 * (n*n*512 + 1<<31 + 5 + 1<<32),
		},
		{
			name: "the last rows of a box that is split along x",
			size: [3]int{n, n, 1 << 10}, box: grid.Box{Low: [3]int{n / 2, 0, 0}, Size: [3]int{n / 2, n, 1 << 10}},
			first: n/2*n*(1<<10) - n, count: n, runs: 2, offset: 8 * (n*n*(1<<10) - n - n/2), end: 8 * n * n * (1 << 10),
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			runs, begin, end := 0, int64(-1), int64(0)
			err := newRuns(tc.size, tc.box, Float64).each(tc.first, tc.count, func(offset, from, to int64) error {
				if runs++; begin < 0 {
					begin = offset
				}
				end = offset + to - from
				return nil
			})
			if err != nil || runs != tc.runs || begin != tc.offset || end != tc.end {
				t.Errorf("%d runs from %d to %d, %v; want %d from %d to %d", runs, begin, end, err, tc.runs, tc.offset, tc.end)
			}
		})
	}
}
