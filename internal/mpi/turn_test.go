//go:build mpi

package mpi_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// Blocking calls on two communicators at once all end, where the library takes the calls
// of one thread at a time.
func TestTwoCommunicatorsAtOnce(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		defer mpi.SetMultiple(mpi.SetMultiple(false))
		var parts [2]*comm.Comm
		for i := range parts {
			var err error
			if parts[i], err = c.Split(0, 0); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		var errs [2]error
		for i := range parts {
			// The ranks begin with different ones.
			i := (i + c.Rank()) % 2
			wg.Go(func() {
				for range 200 {
					part, err := parts[i].Split(0, 0)
					if err == nil {
						err = part.Free()
					}
					if err != nil {
						errs[i] = err
						return
					}
				}
			})
		}
		wg.Wait()
		if err := c.Agree(t.Context(), errors.Join(errs[:]...)); err != nil {
			t.Error(err)
		}
	})
}
