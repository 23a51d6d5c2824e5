package brick_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Sections have the checksums of their bytes, however the ranks cut the array and with
// whatever driver.
func TestSections(t *testing.T) {
	size := [3]int{5, 6, 11}
	all := make([]byte, 5*6*11*8)
	whole := pattern{size: size, box: grid.Box{Size: size}}
	if err := whole.ReadCells(all, 0); err != nil {
		t.Fatal(err)
	}
	for _, planes := range []int{1, 3, 4, 11, 99} {
		var want []uint64
		for b := range slices.Chunk(all, planes*5*6*8) {
			want = append(want, pack.Sum(b))
		}
		for _, pg := range [][3]int{{1, 1, 1}, {1, 1, 3}, {1, 2, 2}, {2, 1, 2}} {
			ranks := pg[0] * pg[1] * pg[2]
			t.Run(fmt.Sprint(planes, " planes ", pg), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "it")
				err := comm.Run(ranks, func(c *comm.Comm) error {
					dec, err := grid.Decompose(grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}}, ranks, grid.ProcessGrid(pg[0], pg[1], pg[2]))
					if err != nil {
						return err
					}
					cells := pattern{size: size, box: dec.Box(c.Rank())}
					p, err := brick.NewPlan(t.Context(), c, size, cells.box, brick.Float64, brick.Sections(planes), brick.Staging(1000))
					if err != nil {
						return err
					}
					defer p.Close()
					sums, err := p.Write(t.Context(), []brick.WriteJob{{Path: path, Source: cells}, {Path: path + "2", Source: cells}})
					if err != nil {
						return err
					}
					if sums[0] != whole.sum() || sums[1] != whole.sum() {
						return fmt.Errorf("sums are %x, want %x", sums, whole.sum())
					}
					for range 2 {
						if got := p.Sections(); len(got) != 2 || !slices.Equal(got[0], want) || !slices.Equal(got[1], want) {
							return fmt.Errorf("sections are %x, want %x", got, want)
						}
						sink := brick.SinkFunc(cells.check)
						crcs, err := p.Read(t.Context(), []brick.ReadJob{{Path: path, Sink: sink}, {Path: path + "2", Sink: sink}})
						if err != nil {
							return err
						}
						if crcs[0] != whole.sum().CRC {
							return fmt.Errorf("sum is %x, want %x", crcs, whole.sum())
						}
					}
					if _, err := p.Write(t.Context(), nil); err != nil || p.Sections() != nil {
						return fmt.Errorf("a call without files leaves the sections %v, %v", p.Sections(), err)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
