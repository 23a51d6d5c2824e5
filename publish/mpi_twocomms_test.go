//go:build mpi

package publish

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// Publications on two communicators at once all end, also by MPI-IO, whose calls block:
// the ranks begin with different ones.
func TestTwoPublicationsAtOnce(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		dir := sharedDir(t, nil)
		mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
			var parts [2]*comm.Comm
			for i := range parts {
				var err error
				parts[i], err = c.Split(0, 0)
				must(t, c, err)
			}
			var wg sync.WaitGroup
			var errs [2]error
			for i := range parts {
				i := (i + c.Rank()) % len(parts)
				wg.Go(func() {
					for n := range 10 {
						path := filepath.Join(dir, fmt.Sprintf("%s_%d_%d", filepath.Base(t.Name()), i, n))
						err := saveSized(parts[i], path, 0, 0, 2, Bricks(brick.Using(brick.MPIIO)))
						if err == nil {
							err = loadSized(parts[i], path, 0, 1, 2, Bricks(brick.Using(brick.MPIIO)))
						}
						errs[i] = errors.Join(errs[i], err)
					}
				})
			}
			wg.Wait()
			must(t, c, errors.Join(errs[:]...))
			for i := range parts {
				must(t, c, parts[i].Free())
			}
		}, opts...)
	})
}
