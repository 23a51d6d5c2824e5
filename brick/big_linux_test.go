package brick_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// pattern is an array whose cell with global number n holds n times an odd
// constant, so that every cell is different.
type pattern struct {
	size [3]int
	box  grid.Box
}

const patternFactor = 0x9E3779B97F4A7C15

// runs calls f for the pieces of rows that make up n cells from cell first of the
// box on: the offset in the packed cells, and the global number of its first cell.
func (p pattern) runs(first, n int64, f func(at, cell, count int64) error) error {
	bx, by := int64(p.box.Size[0]), int64(p.box.Size[1])
	for at := int64(0); at < n; {
		c := first + at
		i, j, k := c%bx, c/bx%by, c/bx/by
		count := min(bx-i, n-at)
		cell := ((int64(p.box.Low[2])+k)*int64(p.size[1])+int64(p.box.Low[1])+j)*int64(p.size[0]) + int64(p.box.Low[0]) + i
		if err := f(at, cell, count); err != nil {
			return err
		}
		at += count
	}
	return nil
}

func fillPattern(dst []byte, cell int64) {
	v := uint64(cell) * patternFactor
	for ; len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, v)
		v += patternFactor
	}
}

// ReadCells implements pack.Source.
func (p pattern) ReadCells(dst []byte, first int64) error {
	return p.runs(first, int64(len(dst)/8), func(at, cell, count int64) error {
		fillPattern(dst[8*at:8*(at+count)], cell)
		return nil
	})
}

// check is a sink.
func (p pattern) check(src []byte, first int64) error {
	return p.runs(first, int64(len(src)/8), func(at, cell, count int64) error {
		v := uint64(cell) * patternFactor
		for i := at; i < at+count; i++ {
			if got := binary.LittleEndian.Uint64(src[8*i:]); got != v {
				return fmt.Errorf("cell %d is %#x, want %#x", cell+i-at, got, v)
			}
			v += patternFactor
		}
		return nil
	})
}

// sum is that of the whole array, by other implementations and without a file.
func (p pattern) sum() (sum brick.Sum) {
	h := crc64nvme.New()
	buf := make([]byte, 1<<20)
	cells := int64(p.size[0]) * int64(p.size[1]) * int64(p.size[2])
	for cell := int64(0); cell < cells; {
		n := min(int64(len(buf)/8), cells-cell)
		fillPattern(buf[:8*n], cell)
		h.Write(buf[:8*n])
		for i := range n {
			if u := binary.LittleEndian.Uint64(buf[8*i:]); u>>52&0x7ff == 0x7ff {
				sum.NonFinite++
			}
		}
		cell += n
	}
	sum.CRC = h.Sum64()
	return sum
}

// cycle writes and reads an array that is cut along y, so that every round is
// strided, and compares every cell, the checksums, and single cells of the file.
func cycle(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string, size [3]int, spots []int64, opts ...brick.Option) {
	dec, err := grid.Decompose(grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}}, c.Size(), grid.ProcessGrid(1, c.Size(), 1))
	if err != nil {
		t.Fatal(err)
	}
	p := pattern{size: size, box: dec.Box(c.Rank())}
	plan, err := brick.NewPlan(t.Context(), c, size, p.box, brick.Float64, append(opts, brick.Using(d))...)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	path := filepath.Join(dir, "big.bin")
	want := p.sum()
	timed := func(what string, f func() (crc uint64, err error)) {
		start := time.Now()
		crc, err := f()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if crc != want.CRC {
			t.Errorf("%s: checksum %016x, want %016x", what, crc, want.CRC)
		}
		if took := time.Since(start); c.Rank() == 0 {
			t.Logf("%s %.2f GB in %.1f s, checksum %016x", what, float64(plan.FileSize())/1e9, took.Seconds(), crc)
		}
	}
	timed("write", func() (uint64, error) {
		sums, err := plan.Write(t.Context(), []brick.WriteJob{{Name: "big", Path: path, Source: p}})
		if err != nil {
			return 0, err
		}
		if sums[0].NonFinite != want.NonFinite {
			t.Errorf("%d numbers aren't finite, want %d", sums[0].NonFinite, want.NonFinite)
		}
		return sums[0].CRC, nil
	})
	if c.Rank() == 0 {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range spots {
			var b [8]byte
			if _, err := f.ReadAt(b[:], 8*cell); err != nil {
				t.Fatal(err)
			}
			if got, want := binary.LittleEndian.Uint64(b[:]), uint64(cell)*patternFactor; got != want {
				t.Errorf("cell %d of the file is %#x, want %#x", cell, got, want)
			}
		}
		f.Close()
	}
	timed("read", func() (uint64, error) {
		crcs, err := plan.Read(t.Context(), []brick.ReadJob{{Name: "big", Path: path, Sink: brick.SinkFunc(p.check)}})
		if err != nil {
			return 0, err
		}
		return crcs[0], nil
	})
	// The file goes when every rank is done, not with the test, which may keep it
	// for as long as the output is looked at.
	if err := c.Meet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Rank() == 0 {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// The rounds of a large array, driven by a small one.
func stridedRounds(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	cycle(t, c, d, dir, [3]int{50, 60, 20}, []int64{0, 29_999, 59_999}, brick.Staging(5000))
}

// More than 2^31-1 cells in the file, more than 2 GiB in each rank's brick, in the
// largest rounds there are: 17.6 GB, some minutes. `make big` runs it.
func TestMoreThan2GiBPerRank(t *testing.T) {
	if os.Getenv("FIELDSTONE_BIG") != "1" {
		t.Skip("writes 17.6 GB: FIELDSTONE_BIG=1 or `make big` runs it")
	}
	const n = 1300
	const need = n*n*n*8 + 1<<30
	u, err := vfs.OS.Usage(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if u.Free < need {
		t.Fatalf("%s has %.1f GB free, the test needs %.1f: set TMPDIR", os.TempDir(), float64(u.Free)/1e9, float64(need)/1e9)
	}
	d := brick.POSIX
	if mpi.Enabled {
		d = brick.MPIIO
	}
	component := mpitest.Components()[0]
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		cycle(t, c, d, t.TempDir(), [3]int{n, n, n}, []int64{0, 1<<31 - 1, 1 << 31, 1<<31 + 12_345_678, n*n*n - 1}, brick.Staging(1<<30))
	}, append(component.Options, mpitest.Limit(40*time.Minute))...)
}
