//go:build mpi

package publish

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// The checksums by which a service finds out that a field has stopped changing are those of
// each driver.
func TestAServiceWarnsOfRepeatsWithEachDriver(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		for _, driver := range []brick.Driver{brick.POSIX, brick.Node, brick.MPIIO} {
			solver, err := newTestSolver(c, 1, "phi", "T")
			must(t, c, err)
			var log logs
			cfg := unwaiting("")
			cfg.Checkpoint.Directory = filepath.Join(t.TempDir(), driver.String())
			service, err := NewService(t.Context(), c, cfg, Bricks(brick.Using(driver)), Logger(slog.New(slog.NewTextHandler(&log, nil))))
			must(t, c, err)
			must(t, c, saveValues([2]float64{1, 1}, [2]float64{2, 2}, [2]float64{2, 3}, [2]float64{2, 4})(session{c, service, solver, nil}))
			service.Close()
			want := 0
			if c.Rank() == 0 {
				want = 1
			}
			if got := warnings(&log); len(got) != want {
				t.Errorf("%v: warnings %q, want %d", driver, got, want)
			}
		}
	})
}
