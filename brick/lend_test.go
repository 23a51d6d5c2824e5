package brick

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// lender has the numbers of its cells in the whole array, and lends some at a time.
type lender struct {
	size [3]int
	box  grid.Box
	most int // cells at once; 0: it lends none

	mu   sync.Mutex
	out  map[*byte]int // lent, by their first byte
	lent int
	read int
	fail func(first int64) error
}

func (l *lender) fill(dst []byte, first int64) {
	for i := range len(dst) / 8 {
		n := int(first) + i
		x, y, z := n%l.box.Size[0], n/l.box.Size[0]%l.box.Size[1], n/l.box.Size[0]/l.box.Size[1]
		cell := ((l.box.Low[2]+z)*l.size[1]+l.box.Low[1]+y)*l.size[0] + l.box.Low[0] + x
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(cell))
	}
}

func (l *lender) ReadCells(dst []byte, first int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read += len(dst) / 8
	l.fill(dst, first)
	return nil
}

func (l *lender) LendCells(first int64, most int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(first); err != nil {
			return nil, err
		}
	}
	b := make([]byte, 8*min(l.most, most/8, int(l.box.Cells()-first)))
	if len(b) == 0 {
		return nil, nil
	}
	l.fill(b, first)
	l.out[&b[0]] = len(b)
	l.lent += len(b) / 8
	return b, nil
}

func (l *lender) ReturnCells(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out[&b[0]] != len(b) {
		panic("returned what was not lent")
	}
	delete(l.out, &b[0])
	clear(b)
}

// writeLent writes a file of which each rank lends its cells.
func writeLent(t *testing.T, ranks int, drv Driver, path string, most int, spoil func(c *comm.Comm, l *lender)) (crc uint64, err error) {
	t.Helper()
	size := [3]int{16, 64, 40}
	err = comm.Run(ranks, func(c *comm.Comm) error {
		dec, err := grid.Decompose(grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}}, ranks, grid.ProcessGrid(1, 1, ranks))
		if err != nil {
			return err
		}
		l := &lender{size: size, box: dec.Box(c.Rank()), most: most, out: map[*byte]int{}}
		if spoil != nil {
			spoil(c, l)
		}
		p, err := NewPlan(t.Context(), c, size, l.box, Float64, Using(drv), Staging(16<<10))
		if err != nil {
			return err
		}
		defer p.Close()
		sums, err := p.Write(t.Context(), []WriteJob{{Name: "a", Path: path, Source: l}})
		if len(l.out) > 0 {
			t.Errorf("rank %d: %d pieces were not returned", c.Rank(), len(l.out))
		}
		if err != nil {
			return err
		}
		if most > 0 && l.lent != int(l.box.Cells()) || most == 0 && l.lent > 0 || l.lent+l.read != int(l.box.Cells()) {
			t.Errorf("rank %d: %d cells lent, %d read of %d", c.Rank(), l.lent, l.read, l.box.Cells())
		}
		if c.Rank() == 0 {
			crc = sums[0].CRC
		}
		return nil
	})
	return crc, err
}

// Cells that a source lends are written from where they are, in pieces of any size,
// and returned.
func TestLentCellsAreWritten(t *testing.T) {
	var want []byte
	for cell := range uint64(16 * 64 * 40) {
		want = binary.LittleEndian.AppendUint64(want, cell)
	}
	for _, drv := range []Driver{POSIX, Node} {
		for _, ranks := range []int{1, 2, 3} {
			for _, most := range []int{0, 37, 512, 1000, 1 << 20} {
				t.Run(fmt.Sprintf("%v, %d ranks, %d cells", drv, ranks, most), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "a.bin")
					crc, err := writeLent(t, ranks, drv, path, most, nil)
					if err != nil {
						t.Fatal(err)
					}
					got, err := os.ReadFile(path)
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("the file has other bytes, %v", err)
					}
					if crc != pack.Sum(want) {
						t.Errorf("checksum %016x, want %016x", crc, pack.Sum(want))
					}
				})
			}
		}
	}
}

// A source that fails when it is to lend is an error of its rank, and all that was
// lent is returned.
func TestALenderThatFails(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		fail func(first int64) error
		text string
	}{
		"an error":          {func(int64) error { return boom }, "boom"},
		"an error later on": {func(first int64) error { return map[bool]error{true: boom}[first >= 2000] }, "boom"},
		"a panic":           {func(int64) error { panic("ouch") }, "panic: ouch"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := writeLent(t, 2, POSIX, filepath.Join(t.TempDir(), "a.bin"), 100, func(c *comm.Comm, l *lender) {
				if c.Rank() == 1 {
					l.fail = tt.fail
				}
			})
			if err == nil || !strings.Contains(err.Error(), "rank 1: write a: ") || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// oddLender lends something else than what it was asked for.
type oddLender struct {
	*lender
	bytes int
}

func (l oddLender) LendCells(first int64, most int) ([]byte, error) {
	if l.bytes < 0 {
		return l.lender.LendCells(first, most)
	}
	b := make([]byte, l.bytes)
	l.out[&b[0]] = len(b)
	return b, nil
}

func (l oddLender) ReturnCells(b []byte) {
	l.lender.ReturnCells(b)
	if l.bytes < 0 {
		panic("gone")
	}
}

func TestALenderThatLendsSomethingElse(t *testing.T) {
	for text, n := range map[string]int{
		"the source lends 12 bytes":   12,
		"the source lends 9000 bytes": 9000,
		"panic: gone":                 -1,
	} {
		t.Run(text, func(t *testing.T) {
			size := [3]int{16, 8, 8}
			l := &lender{size: size, box: grid.Box{Size: size}, most: 10, out: map[*byte]int{}}
			p, err := NewPlan(t.Context(), comm.Self(), size, l.box, Float64, Staging(8<<10))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, err = p.Write(t.Context(), []WriteJob{{Name: "a", Path: filepath.Join(t.TempDir(), "a"), Source: oddLender{l, n}}})
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("error %v", err)
			}
			if len(l.out) > 0 {
				t.Errorf("%d pieces were not returned", len(l.out))
			}
		})
	}
}

// flusher is a sink that notes whether it is flushed after the last cell.
type flusher struct {
	cells, flushed int
	err            error
}

func (f *flusher) WriteCells(src []byte, _ int64) error {
	f.cells += len(src) / 8
	return nil
}

func (f *flusher) Flush() error {
	f.flushed = f.cells
	if f.err != nil && f.err.Error() == "panic" {
		panic(f.err)
	}
	return f.err
}

// A read is done when its sinks are flushed, and what fails there is its error.
func TestSinksAreFlushed(t *testing.T) {
	for _, drv := range []Driver{POSIX, Node} {
		for _, split := range []bool{false, true} {
			for name, fail := range map[string]error{"well": nil, "with an error": errors.New("too late"), "with a panic": errors.New("panic")} {
				t.Run(fmt.Sprintf("%v, split %t, %s", drv, split, name), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "a.bin")
					if _, err := writeLent(t, 1, POSIX, path, 100, nil); err != nil {
						t.Fatal(err)
					}
					size := [3]int{16, 64, 40}
					err := comm.Run(2, func(c *comm.Comm) error {
						box := grid.Box{Size: size}
						axis := map[bool]int{true: 0, false: 2}[split]
						box.Size[axis] /= 2
						box.Low[axis] = c.Rank() * box.Size[axis]
						p, err := NewPlan(t.Context(), c, size, box, Float64, Using(drv))
						if err != nil {
							return err
						}
						defer p.Close()
						f := &flusher{}
						if c.Rank() == 1 {
							f.err = fail
						}
						_, err = p.Read(context.Background(), []ReadJob{{Name: "a", Path: path, Sink: f}})
						if f.flushed != int(box.Cells()) {
							t.Errorf("rank %d: flushed after %d of %d cells", c.Rank(), f.flushed, box.Cells())
						}
						return err
					})
					switch {
					case fail == nil && err != nil:
						t.Error(err)
					case fail != nil && (err == nil || !strings.Contains(err.Error(), "rank 1: read a: ") || !strings.Contains(err.Error(), fail.Error())):
						t.Errorf("error %v", err)
					}
				})
			}
		}
	}
}
