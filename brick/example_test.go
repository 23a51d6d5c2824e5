package brick_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
)

// cells is a brick in memory: one number per cell of the box, x fastest.
type cells []float64

// ReadCells makes cells a pack.Source.
func (c cells) ReadCells(dst []byte, first int64) error {
	for i := range len(dst) / 8 {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(c[first+int64(i)]))
	}
	return nil
}

// Two ranks write one array of 4 x 2 cells, cut along x; one rank reads it.
func ExamplePlan() {
	dir, err := os.MkdirTemp("", "brick")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	size := [3]int{4, 2, 1}
	path := filepath.Join(dir, "psi.bin")

	var written uint64
	err = comm.Run(2, func(c *comm.Comm) error {
		box := grid.Box{Low: [3]int{2 * c.Rank(), 0, 0}, Size: [3]int{2, 2, 1}}
		plan, err := brick.NewPlan(ctx, c, size, box, brick.Float64)
		if err != nil {
			return err
		}
		defer plan.Close()
		r := float64(10 * c.Rank())
		sums, err := plan.Write(ctx, []brick.WriteJob{
			{Name: `field "psi"`, Path: path, Source: cells{r, r + 1, r + 2, r + 3}},
		})
		if err == nil && c.Rank() == 0 {
			written = sums[0].CRC
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	plan, err := brick.NewPlan(ctx, comm.Self(), size, grid.Box{Size: size}, brick.Float64)
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	values := make([]float64, 8)
	crcs, err := plan.Read(ctx, []brick.ReadJob{
		{Name: `field "psi"`, Path: path, Sink: brick.SinkFunc(func(src []byte, first int64) error {
			for i := range len(src) / 8 {
				values[first+int64(i)] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
			}
			return nil
		})},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(values)
	fmt.Println("same checksum:", crcs[0] == written)
	// Output:
	// [0 1 10 11 2 3 12 13]
	// same checksum: true
}
