package comm_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func init() {
	mpitest.Register("agree often", func(c *comm.Comm, args []string) error {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		ctx := context.Background()
		if err := c.Meet(ctx); err != nil {
			return err
		}
		start := time.Now()
		for range n {
			if err := c.Agree(ctx, nil); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			fmt.Printf("took %d ns\n", time.Since(start))
		}
		return nil
	})
}

// The cost of an agreement when all is well, apart from the ranks' start.
func BenchmarkAgree(b *testing.B) {
	for _, ranks := range []int{1, 2, 4, 7} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			output, exit := mpitest.Command(b, ranks, "agree often", strconv.Itoa(b.N))
			match := regexp.MustCompile(`took (\d+) ns`).FindStringSubmatch(output)
			if exit != 0 || match == nil {
				b.Fatalf("exit status %d:\n%s", exit, output)
			}
			ns, err := strconv.ParseFloat(match[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(ns/float64(b.N), "ns/op")
		})
	}
}
