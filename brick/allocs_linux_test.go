package brick

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/shm"
)

type nothing struct{}

func (nothing) ReadCells(dst []byte, first int64) error                      { return nil }
func (nothing) ReadRows(dst []byte, first int64, n, rows, dstRow int) error  { return nil }
func (nothing) WriteCells(src []byte, first int64) error                     { return nil }
func (nothing) WriteRows(src []byte, first int64, n, rows, srcRow int) error { return nil }

// What a call allocates doesn't grow with the number of chunks, runs, steps and rows
// that it takes.
func TestMovingCellsAllocatesNothing(t *testing.T) {
	// Each rank's count sets it to 1 for its time, and the last one would leave it there.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	cases := []struct {
		name      string
		drv       Driver
		few, many [3]int // sizes; the second takes far more chunks or steps
	}{
		{"a stream of whole planes", POSIX, [3]int{8, 8, 4}, [3]int{8, 8, 400}},
		{"a window", Node, [3]int{8, 4, 4}, [3]int{8, 40, 40}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			allocs := func(size [3]int) (write, read float64) {
				dir := t.TempDir()
				ranks := 1
				if tc.drv == Node {
					ranks = 2
				}
				err := comm.Run(ranks, func(c *comm.Comm) error {
					box := grid.Box{Size: size}
					box.Size[0] /= ranks
					box.Low[0] = c.Rank() * box.Size[0]
					p, err := NewPlan(t.Context(), c, size, box, Float64, Using(tc.drv), Staging(512))
					if err != nil {
						return err
					}
					defer p.Close()
					if tc.drv == Node {
						p.kinds = []shm.Kind{shm.Anonymous} // as for processes
					}
					path := filepath.Join(dir, "a.bin")
					wj := []WriteJob{{Name: "a", Path: path, Source: nothing{}}}
					rj := []ReadJob{{Name: "a", Path: path, Sink: nothing{}}}
					run := func(f func() error) float64 {
						return testing.AllocsPerRun(10, func() {
							if e := f(); e != nil {
								err = e
							}
						})
					}
					w := run(func() error { _, err := p.Write(t.Context(), wj); return err })
					r := run(func() error { _, err := p.Read(t.Context(), rj); return err })
					if c.Rank() == 0 { // the number is that of all ranks
						write, read = w, r
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return write, read
			}
			fewW, fewR := allocs(tc.few)
			manyW, manyR := allocs(tc.many)
			if manyW > fewW+20 {
				t.Errorf("a write allocates %v times, a large one %v times", fewW, manyW)
			}
			if manyR > fewR+20 {
				t.Errorf("a read allocates %v times, a large one %v times", fewR, manyR)
			}
		})
	}
}
